//! The counters of a proxy.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::AddAssign;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

#[cfg(feature = "serde")]
use serde::Serialize;

use super::event::{EndReason, Refusal};
use crate::recovery::RecoveryStatistics;
use crate::tcp::{ConnectionStatistics, TcpStream};

/// Payload bytes transferred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[non_exhaustive]
pub struct TransferredBytes {
    /// Bytes from clients to the service.
    pub to_service: u64,
    /// Bytes from the service to clients.
    pub to_client: u64,
}

/// The smoothed round trip times of the present clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[non_exhaustive]
pub struct RoundTrips {
    /// The median.
    pub median: Duration,
    /// The 90th percentile.
    pub p90: Duration,
    /// The 99th percentile.
    pub p99: Duration,
}

/// Counters of a proxy.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[non_exhaustive]
pub struct ProxyStatistics {
    /// Clients that were accepted, without those refused because of the limit.
    pub accepted: u64,
    /// Clients connected now.
    pub open: u64,
    /// Clients reset because of [`max_connections`](super::ProxyConfig::max_connections).
    pub refused_at_limit: u64,
    /// Clients reset because the service could not be reached.
    pub refused_by_upstream: u64,
    /// Connections that both sides closed.
    pub finished: u64,
    /// Connections reset by the client.
    pub reset_by_client: u64,
    /// Connections reset by the service.
    pub reset_by_service: u64,
    /// Connections given up because the client did not respond any more.
    pub client_silent: u64,
    /// Connections reset for [`idle_timeout`](super::ProxyConfig::idle_timeout).
    pub idle: u64,
    /// Connections reset because the proxy stopped.
    pub stopped: u64,
    /// Payload bytes transferred.
    pub sent: TransferredBytes,
    /// Losses on the way to the clients, and retransmissions.
    pub recovery: RecoveryStatistics,
    /// Bytes in the buffers of our TCP: to be sent to clients, or received from them and not yet passed to
    /// the service.
    pub buffered_bytes: u64,
    /// Round trip times of present clients; `None` if none was measured.
    pub round_trips: Option<RoundTrips>,
}

/// Reports the statistics of a proxy, from any task or thread. Clones report on the same proxy.
#[derive(Clone, Default)]
pub struct Monitor(Arc<Mutex<Ledger>>);

#[derive(Default)]
struct Ledger {
    /// Counts of ended connections, and of events that are counted when they occur.
    past: ProxyStatistics,
    open: BTreeMap<u64, Arc<Client>>,
    next_number: u64,
}

/// A client that was accepted.
pub(super) struct Client {
    number: u64,
    pub(super) stream: TcpStream,
    pub(super) to_service: AtomicU64,
    pub(super) to_client: AtomicU64,
}

impl Client {
    pub(super) fn sent(&self) -> TransferredBytes {
        TransferredBytes {
            to_service: self.to_service.load(Ordering::Relaxed),
            to_client: self.to_client.load(Ordering::Relaxed),
        }
    }
}

impl Monitor {
    /// The present counters. They are collected client by client, so that no client is delayed for long.
    #[must_use]
    pub fn statistics(&self) -> ProxyStatistics {
        let (mut total, open): (_, Vec<_>) = {
            let ledger = self.ledger();
            (ledger.past, ledger.open.values().cloned().collect())
        };
        total.open = open.len() as u64;
        let mut round_trips = Vec::with_capacity(open.len());
        for client in &open {
            let present = total.add(client);
            let buffered = present.send_buffered_bytes + present.receive_buffered_bytes;
            total.buffered_bytes += buffered as u64;
            round_trips.extend(present.srtt);
        }
        round_trips.sort_unstable();
        total.round_trips = RoundTrips::of(&round_trips);
        total
    }

    pub(super) fn open(&self) -> usize {
        self.ledger().open.len()
    }

    pub(super) fn on_accepted(&self, stream: TcpStream) -> Arc<Client> {
        let mut ledger = self.ledger();
        let number = ledger.next_number;
        ledger.next_number += 1;
        ledger.past.accepted += 1;
        let (to_service, to_client) = Default::default();
        let client = Arc::new(Client { number, stream, to_service, to_client });
        ledger.open.insert(number, Arc::clone(&client));
        client
    }

    pub(super) fn on_refused(&self, refusal: &Refusal<'_>) {
        let mut ledger = self.ledger();
        match refusal {
            Refusal::Limit => ledger.past.refused_at_limit += 1,
            Refusal::Upstream(_) => ledger.past.refused_by_upstream += 1,
        }
    }

    /// Registers a connected client; dropping the entry removes it.
    pub(super) fn entry(&self, client: &Arc<Client>) -> Open<'_> {
        Open { monitor: self, client: Arc::clone(client) }
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The entry of a connected client; dropping it removes the client.
pub(super) struct Open<'a> {
    monitor: &'a Monitor,
    client: Arc<Client>,
}

impl Open<'_> {
    pub(super) fn end(self, ending: EndReason) {
        let past = &mut self.monitor.ledger().past;
        *match ending {
            EndReason::Finished => &mut past.finished,
            EndReason::ResetByClient => &mut past.reset_by_client,
            EndReason::ResetByService => &mut past.reset_by_service,
            EndReason::ClientSilent => &mut past.client_silent,
            EndReason::Idle => &mut past.idle,
            EndReason::Stopped => &mut past.stopped,
        } += 1;
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        // A task that is dropped early must not end its connection gracefully.
        self.client.stream.abort();
        let mut ledger = self.monitor.ledger();
        ledger.open.remove(&self.client.number);
        ledger.past.add(&self.client);
    }
}

impl ProxyStatistics {
    /// Adds the counters of a client; returns the statistics of its connection.
    fn add(&mut self, client: &Client) -> ConnectionStatistics {
        let statistics = client.stream.statistics();
        self.sent += client.sent();
        self.recovery += statistics.recovery;
        statistics
    }
}

impl AddAssign for TransferredBytes {
    fn add_assign(&mut self, other: Self) {
        self.to_service += other.to_service;
        self.to_client += other.to_client;
    }
}

impl RoundTrips {
    /// The percentiles of a sorted list.
    fn of(sorted: &[Duration]) -> Option<Self> {
        let last = sorted.len().checked_sub(1)?;
        let at = |percent: usize| sorted[(sorted.len() * percent / 100).min(last)];
        Some(Self { median: at(50), p90: at(90), p99: at(99) })
    }
}

impl fmt::Debug for Monitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Monitor").field("open", &self.open()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_list() {
        let list = |len: u64| (1..=len).map(Duration::from_millis).collect::<Vec<_>>();
        assert_eq!(RoundTrips::of(&[]), None);
        let millis = |it: RoundTrips| [it.median, it.p90, it.p99].map(|d| d.as_millis());
        assert_eq!(RoundTrips::of(&list(1)).map(millis), Some([1, 1, 1]));
        assert_eq!(RoundTrips::of(&list(100)).map(millis), Some([51, 91, 100]));
        assert_eq!(RoundTrips::of(&list(1000)).map(millis), Some([501, 901, 991]));
    }
}
