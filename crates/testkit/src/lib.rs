//! Shared by the tests of the protocols, and independent of them: packet scripts for one endpoint, a thin stream
//! between two endpoints over a link that loses chosen packets, the pace of a sender in an outage, costs of packets, and reports of tests that cannot run on this machine.

pub mod cost;
mod not_run;
mod outage;
mod script;
pub mod thin_pattern;

use std::net::SocketAddr;

pub use not_run::not_run;
pub use outage::Pace;
pub use script::{PacketScript, Run};

/// The address `192.0.2.host`, with a port.
#[must_use]
pub fn address(host: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, host], port))
}
