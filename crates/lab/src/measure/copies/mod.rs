//! Every copy of a data unit sent in a simulated network: why it was sent, and what became
//! of it.
//!
//! Two sources are brought together. The trace of the sender says which units a packet carries and
//! why each of them left; the network says what becomes of the packet. They meet without guessing:
//! an endpoint reports a packet while it writes it, and the network sends what was written before it
//! asks the endpoint for more, so what the trace tells belongs to the next packet of that host.
//!
//! A retransmission event is what the sender declared lost at once: by a timeout, or by a fast
//! retransmit and those that follow until the next event. It was spurious if every copy that was sent in
//! it was spurious.
//!
//! A spurious repetition is distinguished by the answers to what had arrived: see [`NeedlessStatistics`].
//!
//! A unit is the unit of loss recovery: a DATA chunk of SCTP; in TCP the data of one segment at
//! first, a FIN included. It *arrives* when the first undamaged packet with it reaches the receiving
//! host, in order or not. What an endpoint does with it then is not seen: one that refuses a unit, for
//! want of room in its window or as older than it seems (PAWS, RFC 7323 §5), has it all the same here.

mod answers;
mod events;
mod ledger;
mod statistics;
mod unit;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rexmit_core::Instant;
use rexmit_core::trace::{TraceEvent, TraceSink};
use rexmit_netsim::network::{HostId, ObservedPacket, PacketObserver, PacketStep};
use rexmit_sctp::wire::{Packet, kind};

use ledger::Ledger;
pub use statistics::{
    CopyStatistics, EventStatistics, KindStatistics, NeedlessStatistics, PerCause,
    RetransmissionStatistics,
};

/// Measures the copies of one flow: the first association (or connection) of an endpoint from which
/// data leaves.
///
/// Its [`sink`](Self::sink) goes into the endpoint of the sender and its [`observer`](Self::observer)
/// into the network, both before data leaves. What it keeps is what is under way, and the units since
/// the oldest that is not acknowledged or has a copy under way: nothing grows with the length of a run.
///
/// Packets from the host that receives the data count as ACKs of it: all of TCP's; of
/// [SCTP's](Self::of_sctp) it is those with a SACK.
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
    /// Of a flow over SCTP.
    #[must_use]
    pub fn of_sctp() -> Self {
        Self { is_answer: has_sack, ..Self::default() }
    }

    /// For the endpoint that sends. It may have other associations too; they are left out.
    #[must_use]
    pub fn sink(&self) -> Box<dyn TraceSink> {
        Box::new(Sink { ledger: Arc::clone(&self.ledger), association: None })
    }

    /// For the network; `sender` is the host with the endpoint that has the sink.
    #[must_use]
    pub fn observer(&self, sender: HostId) -> impl PacketObserver + use<> {
        let (ledger, is_answer) = (Arc::clone(&self.ledger), self.is_answer);
        Observer { ledger, sender, receiver: None, is_answer }
    }

    /// Present knowledge. Data under way counts as not lost: a copy of it is spurious.
    #[must_use]
    pub fn statistics(&self) -> CopyStatistics {
        lock(&self.ledger).statistics()
    }

    /// Packets and units that it keeps now.
    #[must_use]
    pub fn kept(&self) -> (usize, usize) {
        lock(&self.ledger).kept()
    }
}

struct Sink {
    ledger: Arc<Mutex<Ledger>>,
    /// The one that is measured, once data left from it.
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

struct Observer {
    ledger: Arc<Mutex<Ledger>>,
    sender: HostId,
    /// Where the data arrives, once it has.
    receiver: Option<HostId>,
    is_answer: fn(&[u8]) -> bool,
}

impl PacketObserver for Observer {
    fn observe(&mut self, now: Instant, packet: &ObservedPacket<'_>, step: PacketStep) {
        if let PacketStep::Sent { host } = step
            && host != self.sender
        {
            if self.receiver == Some(host) && (self.is_answer)(packet.bytes) {
                lock(&self.ledger).on_answer_sent(packet.id);
            }
            return;
        }
        let mut ledger = lock(&self.ledger);
        match step {
            PacketStep::Sent { .. } => ledger.on_sent(packet.id),
            PacketStep::Doubled { .. } => ledger.on_doubled(packet.id),
            PacketStep::Received { host } if !packet.is_damaged => {
                if ledger.on_received(now, packet.id) {
                    self.receiver = Some(host);
                }
            }
            PacketStep::Received { .. } | PacketStep::Dropped(_) => ledger.on_dropped(packet.id),
        }
    }
}

/// Whether a packet of SCTP acknowledges something.
fn has_sack(packet: &[u8]) -> bool {
    let packet = Packet::parse(packet);
    packet.is_ok_and(|packet| packet.chunks().flatten().any(|chunk| chunk.kind == kind::SACK))
}

fn lock(ledger: &Mutex<Ledger>) -> MutexGuard<'_, Ledger> {
    // A panic elsewhere ends the run; nothing is read from it then.
    ledger.lock().unwrap_or_else(PoisonError::into_inner)
}
