//! Attempts to connect whose first packet is answered by ICMP "port unreachable": nothing listens there, so the
//! attempt fails at once instead of after its time limit.
//!
//! An attacker that has guessed the addresses and ports of an attempt can forge such an answer. It counts
//! only while nothing was received from the peer, and the system reports such errors only while an attempt is
//! in progress: they neither end an association nor make a send fail.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use super::state::{Shared, State};
use crate::socket::Socket;

/// Attempts in progress, by the peer's address.
#[derive(Default)]
pub(super) struct Refusals(BTreeMap<SocketAddr, Attempts>);

#[derive(Default)]
struct Attempts {
    count: usize,
    /// Whether something was received from the peer.
    is_answered: bool,
    is_refused: bool,
}

impl Refusals {
    /// Begins an attempt: packets received before do not count.
    fn begin(&mut self, remote: SocketAddr) {
        let attempts = self.0.entry(remote).or_default();
        *attempts = Attempts { count: attempts.count + 1, ..Attempts::default() };
    }

    fn end(&mut self, remote: SocketAddr) {
        if let Some(attempts) = self.0.get_mut(&remote) {
            attempts.count -= 1;
            if attempts.count == 0 {
                self.0.remove(&remote);
            }
        }
    }

    /// Called when a packet was received from `remote`.
    pub(super) fn note_answer(&mut self, remote: SocketAddr) {
        if let Some(attempts) = self.0.get_mut(&remote) {
            attempts.is_answered = true;
        }
    }

    /// Called when an ICMP error for `remote` arrived.
    fn note_refusal(&mut self, remote: SocketAddr) {
        if let Some(attempts) = self.0.get_mut(&remote) {
            attempts.is_refused = !attempts.is_answered;
        }
    }

    fn is_refused(&self, remote: SocketAddr) -> bool {
        self.0.get(&remote).is_some_and(|attempts| attempts.is_refused)
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// An attempt in progress; dropped when it is over.
pub(super) struct Watch {
    shared: Arc<Shared>,
    remote: SocketAddr,
    /// `None` without a socket, or if its errors cannot be reported.
    socket: Option<Arc<Socket>>,
}

impl Watch {
    /// Watches an attempt to connect to `remote`, over UDP.
    pub(super) fn new(shared: &Arc<Shared>, remote: SocketAddr) -> Self {
        let mut state = shared.lock();
        let socket = state.socket.clone().filter(|it| it.report_errors(true).is_ok());
        state.refusals.begin(remote);
        drop(state);
        Self { shared: Arc::clone(shared), remote, socket }
    }

    /// Waits until the attempt is refused.
    pub(super) async fn refused(&self) {
        let Some(socket) = &self.socket else { return std::future::pending().await };
        loop {
            if self.shared.lock().refusals.is_refused(self.remote) {
                return;
            }
            let changed = self.shared.changed.notified();
            match first_of(socket.refused(), changed).await {
                Some(Ok(destination)) => self.shared.with(|state, _| state.on_refused(destination)),
                Some(Err(_)) => return std::future::pending().await,
                None => {}
            }
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.with_on_drop(|state, _| {
            state.refusals.end(self.remote);
            if let Some(socket) = self.socket.as_ref().filter(|_| state.refusals.is_empty()) {
                let _ = socket.report_errors(false); // It could be set, so it can be reset.
            }
        });
    }
}

impl State {
    /// Records the refusal, and wakes the attempts.
    fn on_refused(&mut self, destination: SocketAddr) {
        self.refusals.note_refusal(destination);
        self.wakes.endpoint();
    }
}

/// Waits for both: the output of `future`, or `None` if `other` is ready first.
pub(super) async fn first_of<T>(
    future: impl Future<Output = T>,
    other: impl Future<Output = ()>,
) -> Option<T> {
    let (mut future, mut other) = (pin!(future), pin!(other));
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => other.as_mut().poll(cx).map(|()| None),
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_counts_while_nothing_was_received() {
        let [here, there]: [SocketAddr; 2] =
            ["192.0.2.1:9899", "192.0.2.2:9899"].map(|it| it.parse().unwrap());
        let mut refusals = Refusals::default();
        refusals.note_refusal(here);
        assert!(!refusals.is_refused(here), "without an attempt");
        refusals.begin(here);
        refusals.begin(there);
        refusals.note_answer(there);
        refusals.note_refusal(there);
        assert!(!refusals.is_refused(there), "it has answered");
        assert!(!refusals.is_refused(here), "of another address");
        refusals.note_refusal(here);
        assert!(refusals.is_refused(here));
        refusals.begin(here);
        assert!(!refusals.is_refused(here), "a new attempt");
        for remote in [here, here, there] {
            assert!(!refusals.is_empty());
            refusals.end(remote);
        }
        assert!(refusals.is_empty());
    }
}
