//! What ICMP reports.
//!
//! "Port unreachable" in answer to the first packet of an attempt to connect: nothing listens there, so the
//! attempt fails at once instead of after its time limit. An attacker that has guessed the addresses and ports of an
//! attempt can forge such an answer. It counts only while nothing was received from the peer, and does not end an
//! association.
//!
//! "Packet too big", for associations with path MTU discovery: the protocol checks the quoted packet, and uses the size
//! only after a probe of it was answered.
//!
//! The system reports ICMP errors only while an attempt is in progress, or if an association may discover path MTUs.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use rexmit_core::{Instant, Route};
use rexmit_sctp::AssociationConfig;

use super::group::Shards;
use super::handover::Delivery;
use super::protocol::Protocol;
use super::state::{Shared, State};
use crate::socket::{Report, Socket};

/// The most reports handled before other tasks get their turn.
const MAX_REPORTS: usize = 16;

/// Attempts in progress, by the peer's address, and the reports that the driver reads.
#[derive(Default)]
pub(super) struct Refusals {
    attempts: BTreeMap<SocketAddr, Attempts>,
    /// Whether the driver reads all reports, because of those that tell the size of packets.
    has_sizes: bool,
    /// The next report. It has the socket.
    next: Option<Pin<Box<dyn Future<Output = io::Result<Report>> + Send>>>,
}

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
        let attempts = self.attempts.entry(remote).or_default();
        *attempts = Attempts { count: attempts.count + 1, ..Attempts::default() };
    }

    fn end(&mut self, remote: SocketAddr) {
        if let Some(attempts) = self.attempts.get_mut(&remote) {
            attempts.count -= 1;
            if attempts.count == 0 {
                self.attempts.remove(&remote);
            }
        }
    }

    /// Called when a packet was received from `remote`.
    pub(super) fn note_answer(&mut self, remote: SocketAddr) {
        if let Some(attempts) = self.attempts.get_mut(&remote) {
            attempts.is_answered = true;
        }
    }

    /// Called when an ICMP error for `remote` arrived.
    fn note_refusal(&mut self, remote: SocketAddr) {
        if let Some(attempts) = self.attempts.get_mut(&remote) {
            attempts.is_refused = !attempts.is_answered;
        }
    }

    fn is_refused(&self, remote: SocketAddr) -> bool {
        self.attempts.get(&remote).is_some_and(|attempts| attempts.is_refused)
    }

    /// Whether the socket is to report errors.
    fn are_wanted(&self) -> bool {
        self.has_sizes || !self.attempts.is_empty()
    }

    /// Called when the endpoint closes its socket or replaces it: lets go of it.
    pub(super) fn release_socket(&mut self) {
        self.next = None;
    }
}

/// An attempt in progress; dropped when it is over.
pub(super) struct Watch {
    shards: Shards,
    /// Whose socket is read: the kernel may give an ICMP error to the socket of any shard.
    reporting: Arc<Shared>,
    remote: SocketAddr,
    /// `None` without a socket, if its errors cannot be reported, or if the driver reads them.
    socket: Option<Arc<Socket>>,
}

impl Watch {
    /// Watches an attempt of one of `shards` to connect to `remote`, over UDP, by the socket of `reporting`.
    pub(super) fn new(shards: &Shards, reporting: &Arc<Shared>, remote: SocketAddr) -> Self {
        let mut state = reporting.lock();
        let socket = state.socket.clone().filter(|_| !state.refusals.has_sizes);
        let socket = socket.filter(|it| it.report_errors(true).is_ok());
        state.refusals.begin(remote);
        drop(state);
        Self { shards: shards.clone(), reporting: Arc::clone(reporting), remote, socket }
    }

    /// Waits until the attempt is refused.
    pub(super) async fn refused(&self) {
        let home = self.shards.home(Some(self.remote));
        loop {
            // First: a refusal after the look at the state is not missed.
            let changed = home.changed.notified();
            if home.lock().refusals.is_refused(self.remote) {
                return;
            }
            let Some(socket) = &self.socket else {
                changed.await;
                continue;
            };
            match first_of(socket.report(), changed).await {
                // It may be for another attempt, of another shard.
                Some(Ok(report)) => {
                    let home = self.shards.home(Some(report.remote()));
                    home.with(|state, now| state.on_report(now, report));
                }
                Some(Err(_)) => return std::future::pending().await,
                None => {}
            }
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.reporting.with_on_drop(|state, _| {
            state.refusals.end(self.remote);
            if let Some(socket) = self.socket.as_ref().filter(|_| !state.refusals.are_wanted()) {
                let _ = socket.report_errors(false); // It could be set, so it can be reset.
            }
        });
    }
}

impl State {
    /// Called for the configuration of an association: the driver reads reports if it has path MTU discovery. Within
    /// DTLS no report could be verified.
    pub(super) fn want_sizes(&mut self, config: &AssociationConfig) {
        let is_readable = matches!(self.sctp, Protocol::Unencrypted(_));
        if is_readable && config.path_mtu.is_some() && !self.refusals.has_sizes {
            self.refusals.has_sizes = true;
            self.report_sizes();
            self.next_turn.driver.note_work();
        }
    }

    /// Has the socket report errors, if the driver reads them; called for a new socket.
    pub(super) fn report_sizes(&mut self) {
        let is_reported = |socket: &Arc<Socket>| socket.report_errors(true).is_ok();
        self.refusals.has_sizes &= self.socket.as_ref().is_some_and(is_reported);
    }

    /// Handles the reports that have arrived, if the driver reads them.
    pub(super) fn poll_reports(&mut self, cx: &mut Context<'_>, now: Instant) {
        for _ in 0..MAX_REPORTS {
            let Some(socket) = self.socket.as_ref().filter(|_| self.refusals.has_sizes) else {
                return;
            };
            let next = self.refusals.next.get_or_insert_with(|| {
                let socket = Arc::clone(socket);
                Box::pin(async move { socket.report().await })
            });
            let Poll::Ready(report) = next.as_mut().poll(cx) else { return };
            self.refusals.next = None;
            match report {
                Ok(report) => {
                    let delivery = self.shard.as_ref().map(|it| it.hand_over_report(report));
                    if delivery.is_none_or(|it| it == Delivery::Here) {
                        self.on_report(now, report);
                    }
                }
                Err(_) => self.refusals.has_sizes = false,
            }
        }
        cx.waker().wake_by_ref();
    }

    pub(super) fn on_report(&mut self, now: Instant, report: Report) {
        match report {
            // It wakes the attempts.
            Report::Refused(destination) => {
                self.refusals.note_refusal(destination);
                self.wakes.endpoint();
            }
            Report::TooBig { remote, mtu, quote } => {
                let route = Route { local: self.local_addr, remote };
                match &mut self.sctp {
                    Protocol::Unencrypted(sctp) => {
                        sctp.handle_packet_too_big(now, route, mtu, &quote);
                    }
                    // Its quote is encrypted: the report cannot be verified.
                    #[cfg(feature = "dtls")]
                    Protocol::Encrypted(..) => {}
                }
            }
        }
    }
}

/// Waits until one of several watches of an attempt sees it refused.
pub(super) async fn refused(watches: &[Watch]) {
    let mut all: Vec<_> = watches.iter().map(|watch| Box::pin(watch.refused())).collect();
    poll_fn(|cx| {
        let is_refused = all.iter_mut().any(|it| it.as_mut().poll(cx).is_ready());
        if is_refused { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
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
            assert!(refusals.are_wanted());
            refusals.end(remote);
        }
        assert!(!refusals.are_wanted());
    }
}
