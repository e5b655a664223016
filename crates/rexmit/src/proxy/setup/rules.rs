//! The rules of proxies: those that one is to have, and those that are there.

use std::net::{IpAddr, SocketAddr};

/// The rules of one proxy.
pub(super) struct Rules<'a> {
    pub(super) listen: SocketAddr,
    pub(super) device: &'a str,
    /// The stack's address, if that is not the one that clients connect to.
    pub(super) translated: Option<IpAddr>,
    /// Interfaces on which forwarding is switched on for this proxy only.
    pub(super) guarded: &'a [String],
}

/// Rules of proxies that were found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// Whether any belong to this listening address.
    pub(super) is_there: bool,
    /// Interfaces on which it has switched forwarding on.
    pub(super) guarded: Vec<String>,
    /// Interfaces on which other proxies have switched forwarding on.
    pub(super) guarded_by_others: Vec<String>,
}
