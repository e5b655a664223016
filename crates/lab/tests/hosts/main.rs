//! Laws of the programs on simulated hosts: messages arrive, links are used and shared, loads have the specified size,
//! latency counts from the intended time of sending.

mod bulk;
mod captures;
mod copies;
mod ecn;
mod kit;
mod rivals;
mod thin;
mod web;
