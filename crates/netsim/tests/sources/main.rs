//! Sources: each against what it promises, over long seeded runs.

mod applications;
mod rates;
mod udp;
