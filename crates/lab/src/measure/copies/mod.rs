//! Tracks every copy of a data unit sent in a simulated network: its cause, and its outcome.
//!
//! Two sources are combined. The sender's trace has the units in each packet and their causes; the
//! network reports the outcome of the packet. They are matched exactly: an endpoint traces a packet
//! while writing it, and the network sends it before polling the endpoint again, so a trace event
//! belongs to the next packet of that host.
//!
//! A retransmission event comprises the data declared lost by a timeout, or by a fast retransmit
//! and those that follow until the next event. It is spurious if every copy sent in it is spurious.
//!
//! Spurious retransmissions are classified by the ACKs of the data: see [`SpuriousClasses`].
//!
//! A unit is the unit of loss recovery: a DATA chunk of SCTP; in TCP the data of one segment at its
//! first transmission, a FIN included. It *arrives* when the first undamaged packet with it reaches
//! the receiving host, in order or not. Later processing is not observed: a unit counts as arrived
//! even if the endpoint discards it because its window is full, or because of PAWS (RFC 7323 §5).

mod answers;
mod events;
mod ledger;
mod observer;
mod statistics;
mod unit;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rexmit_core::Instant;
use rexmit_core::trace::{TraceEvent, TraceSink};
use rexmit_netsim::network::HostId;
use rexmit_sctp::wire::{Packet, kind};

use ledger::Ledger;
pub use observer::CopyObserver;
pub use statistics::{
    CopyStatistics, EventStatistics, KindStatistics, PerCause, RetransmissionStatistics,
    SpuriousClasses,
};

/// Measures the copies of one flow: the first association (or connection) of an endpoint that sends
/// data.
///
/// Its [`sink`](Self::sink) is passed to the sender's endpoint and its [`observer`](Self::observer)
/// to the network, both before data is sent. It stores packets in flight, and units from the oldest
/// one that is unacknowledged or has a copy in flight, so that its memory does not grow with the
/// length of a run.
///
/// For TCP, all packets from the receiving host count as ACKs; for [SCTP](Self::of_sctp), those
/// with a SACK.
///
/// ```
/// use rexmit_core::{Instant, Seed};
/// use rexmit_lab::hosts::{Bulk, BulkSender, Host, Sink};
/// use rexmit_lab::measure::CopyLedger;
/// use rexmit_netsim::network::{Network, PointToPoint};
/// use rexmit_tcp::Endpoint as Tcp;
/// use std::net::SocketAddr;
/// use std::time::Duration;
///
/// let seed = Seed::from_u64(1);
/// let endpoint = |name: &str| Tcp::new(Default::default(), &seed.split(name));
/// let [from, to] = PointToPoint::ADDRESSES.map(|address| SocketAddr::new(address, 9));
/// let bulk = Bulk { limit_bytes: Some(100_000), ..Bulk::new(from, to) };
/// let (mut client, mut server) = (endpoint("client")?, endpoint("server")?);
/// let ledger = CopyLedger::default();
/// client.set_trace(Some(ledger.sink()));
/// server.listen(9, None)?;
/// let sink = Sink::new(Duration::from_secs(1));
/// let machines = [Host::new(client, BulkSender::new(bulk)), Host::new(server, sink)];
/// let mut network = Network::new(&seed);
/// let path = "delay 50ms loss list 7".parse()?;
/// let pair = PointToPoint::build(&mut network, machines, &path)?;
/// network.add_observer(ledger.observer(pair.hosts[0]));
/// network.run_until(Instant::from_millis(5000), |_, _| {})?;
/// let copies = ledger.statistics();
/// assert_eq!((copies.packets_lost, copies.delivered()), (1, copies.units));
/// assert_eq!(copies.by_retransmission[1].latency.count(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct CopyLedger {
    ledger: Arc<Mutex<Ledger>>,
    is_answer: fn(&[u8]) -> bool,
}

impl Default for CopyLedger {
    fn default() -> Self {
        Self { ledger: Arc::default(), is_answer: |_| true }
    }
}

impl CopyLedger {
    /// A ledger for a flow over SCTP.
    #[must_use]
    pub fn of_sctp() -> Self {
        Self { is_answer: has_sack, ..Self::default() }
    }

    /// The sink for the sender's endpoint. Other associations of the endpoint are ignored.
    #[must_use]
    pub fn sink(&self) -> Box<dyn TraceSink> {
        Box::new(Sink { ledger: Arc::clone(&self.ledger), association: None })
    }

    /// The observer for the network; `sender` is the host of the endpoint with the sink.
    #[must_use]
    pub fn observer(&self, sender: HostId) -> CopyObserver {
        Self::observer_of([(self, sender)])
    }

    /// One observer for several flows, with the hosts of their senders. The cost per packet does not grow with the number
    /// of flows.
    #[must_use]
    pub fn observer_of<'a>(flows: impl IntoIterator<Item = (&'a Self, HostId)>) -> CopyObserver {
        let mut observer = CopyObserver::default();
        for (Self { ledger, is_answer }, sender) in flows {
            observer.watch(Arc::clone(ledger), *is_answer, sender);
        }
        observer
    }

    /// The statistics so far. Data in flight counts as not lost, so that a copy of it is spurious.
    #[must_use]
    pub fn statistics(&self) -> CopyStatistics {
        lock(&self.ledger).statistics()
    }

    /// The number of packets and units stored.
    #[must_use]
    pub fn kept(&self) -> (usize, usize) {
        lock(&self.ledger).kept()
    }
}

struct Sink {
    ledger: Arc<Mutex<Ledger>>,
    /// The measured association, once it has sent data.
    association: Option<u32>,
}

impl TraceSink for Sink {
    fn record(&mut self, now: Instant, association: u32, event: &TraceEvent) {
        if self.association.is_some_and(|measured| measured != association) {
            return;
        }
        match event {
            TraceEvent::PacketSent { packet, path, runs, .. } => {
                self.association = Some(association);
                lock(&self.ledger).on_written(now, *packet, *path, runs);
            }
            &TraceEvent::RetransmissionEvent { path, kind } => {
                lock(&self.ledger).events.begin(path, kind);
            }
            &TraceEvent::EventSpurious { path, .. } => lock(&self.ledger).events.on_told(path),
            TraceEvent::CopiesSent { packet, runs, .. } => {
                lock(&self.ledger).on_copies_written(now, *packet, runs);
            }
            &TraceEvent::AckReceived { cumulative, .. } => {
                lock(&self.ledger).on_acknowledged(cumulative);
            }
            _ => {}
        }
    }
}

/// Whether an SCTP packet has a SACK.
fn has_sack(packet: &[u8]) -> bool {
    let packet = Packet::parse(packet);
    packet.is_ok_and(|packet| packet.chunks().flatten().any(|chunk| chunk.kind == kind::SACK))
}

fn lock(ledger: &Mutex<Ledger>) -> MutexGuard<'_, Ledger> {
    // A panic elsewhere ends the run; nothing is read from it then.
    ledger.lock().unwrap_or_else(PoisonError::into_inner)
}
