//! Traffic sources: the properties of each, over long seeded runs.

mod applications;
mod rates;
mod udp;
