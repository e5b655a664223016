//! The DTLS handshakes that calls are waiting for.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use rexmit_dtls::HandshakeError;

/// How a handshake ended.
pub(crate) type Outcome = Result<(), HandshakeError>;

/// Handshakes that [`Endpoint::connect`](super::Endpoint::connect) waits for, and their results.
#[derive(Default)]
pub(crate) struct Handshakes(BTreeMap<SocketAddr, Handshake>);

#[derive(Default)]
struct Handshake {
    /// Calls that wait for the handshake, or for the association that follows.
    waiting: usize,
    outcome: Option<Outcome>,
}

impl Handshakes {
    /// Registers a call that waits for the result of the handshake with `remote`.
    pub(super) fn wait_for(&mut self, remote: SocketAddr) {
        let handshake = self.0.entry(remote).or_default();
        handshake.waiting += 1;
        handshake.outcome = None;
    }

    /// Records that a call has stopped waiting.
    pub(super) fn leave(&mut self, remote: SocketAddr) {
        if let Some(handshake) = self.0.get_mut(&remote) {
            handshake.waiting -= 1;
            if handshake.waiting == 0 {
                self.0.remove(&remote);
            }
        }
    }

    /// Called when a connection with `remote` was established, or has ended.
    pub(super) fn report(&mut self, remote: SocketAddr, outcome: Outcome) {
        if let Some(handshake) = self.0.get_mut(&remote) {
            handshake.outcome = Some(outcome);
        }
    }

    /// The latest outcome reported.
    pub(super) fn outcome(&self, remote: SocketAddr) -> Option<Outcome> {
        self.0.get(&remote)?.outcome.clone()
    }
}
