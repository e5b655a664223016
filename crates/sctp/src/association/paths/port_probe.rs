//! Validation of a changed encapsulation port of the peer, for example after a NAT forgot the old one (RFC
//! 6951 §5.4).
//!
//! An observer of an association's packets can send a copy of one from another port, and a peer can claim the
//! port of a third party. So a packet with the right tag from a new port is accepted, but the association
//! keeps the old port until a HEARTBEAT with a nonce was answered from the new one. Before that, only replies
//! to HEARTBEATs and this HEARTBEAT are sent to the new port.

use std::net::SocketAddr;
use std::time::Duration;

use rexmit_core::{Instant, Route};

use super::Paths;
use super::heartbeat::heartbeat_info;
use crate::association::context::{Context, Recovery};
use crate::wire::PacketWriter;

/// Unanswered HEARTBEATs to a new port after which it is forgotten.
const MAX_PROBES: u8 = 5;

/// The changes of the peer's transport addresses: those that the endpoint has to learn, and the port being
/// probed.
#[derive(Debug, Default)]
pub(in crate::association) struct Transports {
    /// See [`Self::version`].
    version: u32,
    /// Few associations have any.
    changes: Option<Box<Changes>>,
}

#[derive(Debug, Default)]
struct Changes {
    /// Transport addresses no longer used, for the endpoint to remove from its table.
    departed: Vec<SocketAddr>,
    probe: Option<PortProbe>,
}

/// A UDP port that the peer may have, and the HEARTBEAT that validates it.
#[derive(Debug)]
struct PortProbe {
    path: u8,
    remote: SocketAddr,
    nonce: u64,
    sent: u8,
    /// When the probe in flight counts as failed; `None` while one is to be sent.
    deadline: Option<Instant>,
}

impl PortProbe {
    const fn new(path: u8, remote: SocketAddr) -> Self {
        Self { path, remote, nonce: 0, sent: 0, deadline: None }
    }

    const fn is_due(&self) -> bool {
        self.deadline.is_none()
    }

    /// Whether a packet from `remote` may replace the probed port: not while the first HEARTBEAT to another
    /// port is in flight, so that packets from many ports do not cause more HEARTBEATs.
    fn may_be_replaced_by(&self, path: u8, remote: SocketAddr) -> bool {
        (self.path, self.remote) != (path, remote) && self.sent > 1
    }

    /// Returns whether the probe has failed, because its last HEARTBEAT was not answered in time.
    fn on_timeout(&mut self, now: Instant) -> bool {
        let is_late = self.deadline.is_some_and(|deadline| deadline <= now);
        if is_late {
            self.deadline = None;
        }
        is_late && self.sent >= MAX_PROBES
    }

    fn is_answered_by(&self, remote: SocketAddr, nonce: u64) -> bool {
        self.sent > 0 && self.nonce == nonce && self.remote == remote
    }

    fn on_sent(&mut self, now: Instant, nonce: u64, rto: Duration) {
        self.nonce = nonce;
        self.deadline = Some(now + rto * (1 << self.sent));
        self.sent += 1;
    }
}

impl Transports {
    /// The state for paths that replace the current ones: the probe is dropped.
    pub(super) fn of_other_paths(mut self) -> Self {
        self.touch();
        if let Some(changes) = &mut self.changes {
            changes.probe = None;
        }
        self
    }

    /// A number that changes whenever a path was added, removed or confirmed, or its remote address changed.
    pub(in crate::association) const fn version(&self) -> u32 {
        self.version
    }

    /// Increments [`Self::version`].
    pub(super) const fn touch(&mut self) {
        self.version = self.version.wrapping_add(1);
    }

    /// The transport addresses no longer used, each returned once.
    pub(in crate::association) fn take_departed(&mut self) -> Vec<SocketAddr> {
        let departed = self.changes.as_mut().map(|changes| std::mem::take(&mut changes.departed));
        self.changes.take_if(|changes| changes.probe.is_none());
        departed.unwrap_or_default()
    }

    fn depart(&mut self, remote: SocketAddr) {
        self.changes.get_or_insert_default().departed.push(remote);
    }

    fn probe(&self) -> Option<&PortProbe> {
        self.changes.as_ref()?.probe.as_ref()
    }

    /// Called when a packet shows that the encapsulation port of `path` may have changed: begins to probe
    /// `remote`.
    pub(super) fn suspect(&mut self, path: u8, remote: SocketAddr) {
        if self.probe().is_none_or(|probe| probe.may_be_replaced_by(path, remote)) {
            self.changes.get_or_insert_default().probe = Some(PortProbe::new(path, remote));
        }
    }

    pub(super) fn on_path_removed(&mut self, path: u8) {
        if let Some(changes) = &mut self.changes {
            changes.probe.take_if(|probe| probe.path == path);
        }
    }

    pub(super) fn probe_deadline(&self) -> Option<Instant> {
        self.probe()?.deadline
    }

    /// Called when the probe was not answered in time: it is retransmitted, or the port is abandoned.
    pub(super) fn on_probe_timeout(&mut self, now: Instant) {
        let Some(changes) = &mut self.changes else { return };
        changes.probe.take_if(|probe| probe.on_timeout(now));
    }

    /// Called when a HEARTBEAT ACK with this nonce came from `remote`. If it answers the port probe, returns the path
    /// whose port is now validated.
    pub(super) fn take_answered(&mut self, remote: SocketAddr, nonce: u64) -> Option<u8> {
        let probe = &mut self.changes.as_mut()?.probe;
        Some(probe.take_if(|probe| probe.is_answered_by(remote, nonce))?.path)
    }
}

impl Paths {
    /// Called when the probe confirmed the new port: changes the remote address of `path`, and of all other
    /// paths that had the same one.
    pub(super) fn follow_port(&mut self, path: u8, remote: SocketAddr) {
        let before = std::mem::replace(&mut self.get_mut(path).route.remote, remote);
        for entry in self.entries.iter_mut().filter(|entry| entry.route.remote == before) {
            entry.route.remote = remote;
        }
        self.leave_remote(before);
    }

    /// Makes the endpoint forget `remote`, unless another path has this address.
    pub(super) fn leave_remote(&mut self, remote: SocketAddr) {
        self.transports.touch();
        if !self.live().any(|(_, path)| path.route.remote == remote) {
            self.transports.depart(remote);
        }
    }

    /// The path whose port may have changed, if its HEARTBEAT is to be sent now.
    pub(in crate::association) fn with_port_probe_due(&self) -> Option<u8> {
        let probe = self.transports.probe()?;
        (self.is_watched && probe.is_due()).then_some(probe.path)
    }

    /// Writes the HEARTBEAT that probes a new port, in a packet of its own. Returns its route.
    pub(in crate::association) fn write_port_probe(
        &mut self,
        cx: &mut Context<'_>,
        recovery: &Recovery,
        writer: &mut PacketWriter<'_>,
    ) -> Option<Route> {
        let probe = self.transports.changes.as_mut()?.probe.as_mut()?;
        let nonce = cx.around.rng.u64();
        writer.heartbeat(&heartbeat_info(nonce, probe.path, cx.now));
        probe.on_sent(cx.now, nonce, recovery.paths()[probe.path].timer().rto());
        let (path, remote) = (probe.path, probe.remote);
        Some(Route { remote, ..self.get(path).route })
    }
}
