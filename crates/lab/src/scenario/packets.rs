//! The packets of a run: when each was sent, whether it arrived, and the data in it.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rexmit_core::Instant;
use rexmit_core::serial::Serial;
use rexmit_netsim::network::{
    DropCause, HostId, ObservedPacket, PacketId, PacketObserver, PacketStep,
};
use rexmit_netsim::path::LossCause;
use rexmit_sctp::wire::{Chunk, Packet};
use rexmit_tcp::wire::{Flags, Segment};
use rustc_hash::FxHashMap;

use super::error::ExecuteError;
use super::topology::Pair;

/// Largest number of packets of a run that are recorded.
pub const MAX_PACKET_ROWS: usize = 5_000_000;

/// One packet of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct PacketRow {
    /// The name of the flow, which all its connections share.
    pub flow: Arc<str>,
    /// Whether the sender of the flow sent the packet; otherwise the receiver did.
    pub is_forward: bool,
    /// When it was sent, in seconds since the run began.
    pub sent_s: f64,
    /// When it arrived, in seconds since the run began; `None` if it never did.
    pub arrived_s: Option<f64>,
    /// Why it was lost.
    pub lost: Option<&'static str>,
    /// The size as an IP packet, in bytes.
    pub bytes: usize,
    /// The data and acknowledgement in it; `None` unless it is a packet of SCTP or TCP, and not of web clients, which
    /// have many connections.
    pub content: Content,
}

/// The data and the acknowledgement in a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Content {
    /// The number of the first data: a TSN of SCTP, a sequence number of TCP.
    pub sequence: Option<u32>,
    /// User data, in bytes.
    pub payload_bytes: usize,
    /// User data that an earlier packet contained, in bytes: retransmissions and redundant copies.
    pub repeated_bytes: usize,
    /// The cumulative acknowledgement: the highest TSN received of SCTP, the next sequence number expected of TCP.
    pub acknowledged: Option<u32>,
}

/// The packets of a run, recorded while it proceeds.
#[derive(Clone, Debug, Default)]
pub(super) struct PacketLog(Arc<Mutex<Log>>);

#[derive(Debug, Default)]
struct Log {
    rows: Vec<PacketRow>,
    is_full: bool,
    /// The row of each packet in flight.
    under_way: FxHashMap<PacketId, usize>,
    hosts: FxHashMap<HostId, Sender>,
}

/// A host that sends packets.
#[derive(Debug)]
struct Sender {
    flow: Arc<str>,
    is_forward: bool,
    /// Whether the flow has a single connection, whose numbers can be tracked.
    is_one: bool,
    /// The highest number sent, plus one.
    next: Option<Serial<u32>>,
}

impl PacketLog {
    /// An observer that records packets of these flows, each given by its two hosts and whether it has only one
    /// connection.
    pub(super) fn observer<'a>(
        &self,
        flows: impl Iterator<Item = (&'a str, Pair, bool)>,
    ) -> impl PacketObserver + 'static {
        let mut log = self.lock();
        for (name, Pair { sender, receiver }, is_one) in flows {
            let flow: Arc<str> = name.into();
            for (host, is_forward) in [(sender, true), (receiver, false)] {
                let flow = Arc::clone(&flow);
                log.hosts.insert(host, Sender { flow, is_forward, is_one, next: None });
            }
        }
        self.clone()
    }

    /// All packets.
    pub(super) fn into_rows(self) -> Result<Vec<PacketRow>, ExecuteError> {
        let mut log = self.lock();
        if log.is_full {
            let what =
                format!("it has more than {MAX_PACKET_ROWS} packets: choose a shorter duration");
            return Err(ExecuteError::Failed(what));
        }
        Ok(std::mem::take(&mut log.rows))
    }

    fn lock(&self) -> MutexGuard<'_, Log> {
        // A panic elsewhere ends the run; nothing is read from it then.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PacketObserver for PacketLog {
    fn observe(&mut self, now: Instant, packet: &ObservedPacket<'_>, step: PacketStep) {
        self.lock().observe(now, packet, step);
    }
}

impl Log {
    fn observe(&mut self, now: Instant, packet: &ObservedPacket<'_>, step: PacketStep) {
        match step {
            PacketStep::Sent { host } => self.on_sent(now, packet, host),
            PacketStep::Duplicated { .. } => {}
            PacketStep::Received { .. } => {
                if let Some(row) = self.row(packet.id) {
                    row.arrived_s.get_or_insert(now.as_secs_f64());
                }
            }
            PacketStep::Dropped(cause) => {
                if let Some(row) = self.row(packet.id).filter(|row| row.arrived_s.is_none()) {
                    row.lost = Some(words(cause));
                }
            }
        }
    }

    /// The row of a packet. If a link duplicates it, the first arrival counts.
    fn row(&mut self, id: PacketId) -> Option<&mut PacketRow> {
        let row = self.under_way.remove(&id)?;
        self.rows.get_mut(row)
    }

    fn on_sent(&mut self, now: Instant, packet: &ObservedPacket<'_>, host: HostId) {
        let Some(sender) = self.hosts.get_mut(&host) else { return };
        if self.rows.len() == MAX_PACKET_ROWS {
            self.is_full = true;
            return;
        }
        self.under_way.insert(packet.id, self.rows.len());
        self.rows.push(PacketRow {
            flow: Arc::clone(&sender.flow),
            is_forward: sender.is_forward,
            sent_s: now.as_secs_f64(),
            arrived_s: None,
            lost: None,
            bytes: packet.wire_bytes,
            content: sender.content(packet),
        });
    }
}

impl Sender {
    fn content(&mut self, packet: &ObservedPacket<'_>) -> Content {
        if !self.is_one {
            return Content::default();
        }
        let addresses = (packet.source.ip(), packet.destination.ip());
        match Packet::parse(packet.bytes) {
            Ok(packet) => self.sctp(&packet),
            Err(_) => self.tcp(addresses, packet.bytes).unwrap_or_default(),
        }
    }

    fn sctp(&mut self, packet: &Packet<'_>) -> Content {
        let mut content = Content::default();
        for chunk in packet.chunks().map_while(Result::ok) {
            match chunk.decode() {
                Ok(Chunk::Data(data)) => {
                    self.on_data(&mut content, data.tsn, 1, data.payload.len());
                }
                Ok(Chunk::IData(data)) => {
                    self.on_data(&mut content, data.tsn, 1, data.payload.len());
                }
                Ok(Chunk::Sack(sack)) => content.acknowledged = Some(sack.cumulative_tsn_ack),
                _ => {}
            }
        }
        content
    }

    fn tcp(&mut self, addresses: (IpAddr, IpAddr), packet: &[u8]) -> Option<Content> {
        let Segment { header, payload } = Segment::parse(addresses.0, addresses.1, packet).ok()?;
        let mut content = Content::default();
        if header.flags.has(Flags::ACK) {
            content.acknowledged = Some(header.acknowledgment);
        }
        if !payload.is_empty() {
            self.on_data(&mut content, header.sequence, payload.len() as u32, payload.len());
        }
        Some(content)
    }

    /// Data of `numbers` sequence numbers from `first` on.
    fn on_data(&mut self, content: &mut Content, first: u32, numbers: u32, bytes: usize) {
        content.sequence.get_or_insert(first);
        content.payload_bytes += bytes;
        let end = Serial(first.wrapping_add(numbers));
        let new = match self.next {
            // Numbers are used in ascending order.
            Some(next) if !end.is_after(next) => 0,
            Some(next) => end.0.wrapping_sub(next.0).min(numbers),
            None => numbers,
        };
        if new > 0 {
            self.next = Some(end);
        }
        content.repeated_bytes += bytes * (numbers - new) as usize / numbers as usize;
    }
}

fn words(cause: DropCause) -> &'static str {
    match cause {
        DropCause::Link { cause: LossCause::Uniform, .. } => "uniform",
        DropCause::Link { cause: LossCause::Burst, .. } => "burst",
        DropCause::Link { cause: LossCause::Red, .. } => "red",
        DropCause::Link { cause: LossCause::Queue, .. } => "queue",
        DropCause::Link { cause: LossCause::Codel, .. } => "codel",
        DropCause::Link { cause: LossCause::Listed, .. } => "listed",
        _ => "undeliverable",
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::super::{ExecuteError, Scenario, execute, execute_with_packets};

    fn scenario(transport: &str) -> Scenario {
        let text = format!(
            r#"{{"duration": "60s", "network": {{"forward": "delay 50ms loss 5%"}},
                "thin": {{"game": {{"traffic": "every 100ms size 100", "transport": "{transport}"}}}}}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn packets_add_up_to_the_measured_quantities() {
        for transport in ["sctp", "tcp"] {
            let scenario = scenario(transport);
            let (outcome, packets) =
                execute_with_packets(&scenario, 1, &AtomicBool::new(false)).unwrap();
            assert_eq!(outcome, execute(&scenario, 1).unwrap(), "recording changes nothing");
            let data = packets.iter().filter(|row| row.is_forward && row.content.payload_bytes > 0);
            let new: usize = data
                .clone()
                .map(|row| row.content.payload_bytes - row.content.repeated_bytes)
                .sum();
            assert_eq!(new as f64, 100.0 * outcome.quantities["game.messages"], "{transport}");
            let repeating = data.clone().filter(|row| row.content.repeated_bytes > 0).count();
            assert!(repeating > 0 && repeating < data.clone().count() / 4, "{transport}");
            let forward = packets.iter().filter(|row| row.is_forward);
            let lost = forward.clone().filter(|row| row.lost == Some("uniform")).count();
            let share = outcome.quantities["network.forward.loss_share"];
            assert!((lost as f64 / forward.clone().count() as f64 - share).abs() < 1e-9);
            assert!(packets.iter().all(|row| row.lost.is_some() != row.arrived_s.is_some()));
            let in_time =
                |row: &&super::PacketRow| (row.arrived_s.unwrap() - row.sent_s - 0.05).abs() < 1e-6;
            assert!(packets.iter().filter(|row| row.lost.is_none()).all(|row| in_time(&row)));
            assert!(
                packets.iter().any(|row| !row.is_forward && row.content.acknowledged.is_some())
            );
        }
    }
    #[test]
    fn a_run_ends_when_another_thread_stops_it() {
        let mut scenario = scenario("sctp");
        // Of more packets than a run may have, so that it cannot end by itself.
        scenario.duration = serde_json::from_str("\"1000h\"").unwrap();
        let is_stopped = AtomicBool::new(false);
        let failed = std::thread::scope(|scope| {
            let run = scope.spawn(|| execute_with_packets(&scenario, 1, &is_stopped));
            is_stopped.store(true, Ordering::Relaxed);
            run.join().unwrap().unwrap_err()
        });
        assert!(matches!(&failed, ExecuteError::Failed(why) if why.contains("interrupted")));
    }
}
