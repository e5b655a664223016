//! The rules of proxies: those to be made, and those that exist.

use std::net::{IpAddr, SocketAddr};

/// The rules of one proxy.
pub(super) struct Rules<'a> {
    pub(super) listen: SocketAddr,
    pub(super) device: &'a str,
    /// The stack's address, if it differs from the one that clients connect to.
    pub(super) translated: Option<IpAddr>,
    /// Interfaces on which forwarding is enabled for this proxy only.
    pub(super) guarded: &'a [String],
}

/// Rules of proxies that were found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// Whether any of them belong to this listening address.
    pub(super) is_there: bool,
    /// Interfaces on which the proxy at this address has enabled forwarding.
    pub(super) guarded: Vec<String>,
    /// Interfaces on which other proxies have enabled forwarding.
    pub(super) guarded_by_others: Vec<String>,
}
