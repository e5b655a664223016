//! Laws of the programs on simulated hosts: messages arrive, links are used and shared, loads
//! are what they say, latency is counted from the intended time of sending.

mod bulk;
mod captures;
mod copies;
mod kit;
mod rivals;
mod thin;
mod web;
