//! A reference implementation of the ledger: it stores every reported event and computes the figures directly from the
//! definitions. It also checks that each packet carries the units that the trace names.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Mutex;

use rexmit_core::serial::unwrap_u32;
use rexmit_core::trace::TraceEvent;
use rexmit_netsim::network::{ObservedPacket, PacketObserver, PacketStep};
use rexmit_sctp::wire::{Chunk, Packet};
use rexmit_tcp::wire::{Flags, Segment};

use super::*;

/// All reported events in their order.
#[derive(Clone, Default)]
pub(super) struct Oracle(Arc<Mutex<Vec<Told>>>);

enum Told {
    Written(Instant, Vec<(u64, SendCause)>),
    Copied(Vec<(u64, SendCause)>),
    Sent {
        id: u64,
        bytes: Vec<u8>,
        ends: [SocketAddr; 2],
    },
    /// The other host sent a packet.
    Back {
        id: u64,
        bytes: Vec<u8>,
    },
    Arrived {
        id: u64,
        at: Instant,
    },
}

pub(super) struct OracleSink(Oracle);

impl Oracle {
    pub(super) fn sink(&self) -> OracleSink {
        OracleSink(self.clone())
    }

    pub(super) fn observer(&self, sender: HostId) -> impl PacketObserver + use<> {
        OracleObserver(self.clone(), sender)
    }

    fn tell(&self, reported: Told) {
        self.0.lock().unwrap().push(reported);
    }
}

impl TraceSink for OracleSink {
    fn record(&mut self, now: Instant, _: u32, event: &TraceEvent) {
        match event {
            TraceEvent::PacketSent { runs, .. } => {
                let units = runs.iter().flat_map(|r| (r.lowest..=r.highest).map(|n| (n, r.cause)));
                self.0.tell(Told::Written(now, units.collect()));
            }
            TraceEvent::CopiesSent { runs, .. } => {
                let units = runs.iter().flat_map(|&(lowest, highest)| lowest..=highest);
                self.0.tell(Told::Copied(units.map(|n| (n, SendCause::Redundant)).collect()));
            }
            _ => {}
        }
    }
}

struct OracleObserver(Oracle, HostId);

impl PacketObserver for OracleObserver {
    fn observe(&mut self, now: Instant, packet: &ObservedPacket<'_>, step: PacketStep) {
        let id = packet.id.0;
        match step {
            PacketStep::Sent { host } if host == self.1 => {
                let ends = [packet.source, packet.destination];
                self.0.tell(Told::Sent { id, bytes: packet.bytes.to_vec(), ends });
            }
            PacketStep::Sent { .. } => {
                self.0.tell(Told::Back { id, bytes: packet.bytes.to_vec() });
            }
            PacketStep::Received { .. } if !packet.is_damaged => {
                self.0.tell(Told::Arrived { id, at: now });
            }
            _ => {}
        }
    }
}

/// Reads the units from packets that a sender wrote.
pub(super) trait Look: Default {
    /// Whether the packet carries these units and no others.
    fn carries(&mut self, bytes: &[u8], ends: [SocketAddr; 2], units: &[(u64, SendCause)]) -> bool;

    /// Whether a packet of the receiver acknowledges something.
    fn acknowledges(_: &[u8]) -> bool {
        true
    }
}

#[derive(Default)]
pub(super) struct Chunks;

impl Look for Chunks {
    fn carries(&mut self, bytes: &[u8], _: [SocketAddr; 2], units: &[(u64, SendCause)]) -> bool {
        let packet = Packet::parse(bytes).expect("our own packet");
        let chunks = packet.chunks().map(|raw| raw.unwrap().decode().unwrap());
        let tsn = |chunk| if let Chunk::Data(data) = chunk { Some(data.tsn) } else { None };
        let mut found: Vec<u32> = chunks.filter_map(tsn).collect();
        let mut reported: Vec<u32> = units.iter().map(|&(unit, _)| unit as u32).collect();
        found.sort_unstable();
        reported.sort_unstable();
        found == reported
    }

    fn acknowledges(bytes: &[u8]) -> bool {
        let packet = Packet::parse(bytes).expect("our own packet");
        let mut chunks = packet.chunks().map(|raw| raw.unwrap().decode().unwrap());
        chunks.any(|chunk| matches!(chunk, Chunk::Sack(_)))
    }
}

/// The units of TCP, with their stream offsets as of their first transmission.
#[derive(Default)]
pub(super) struct Segments {
    places: BTreeMap<u64, (u64, u64)>,
    next: u64,
}

impl Look for Segments {
    fn carries(
        &mut self,
        bytes: &[u8],
        [from, to]: [SocketAddr; 2],
        units: &[(u64, SendCause)],
    ) -> bool {
        let Segment { header, payload } = Segment::parse(from.ip(), to.ip(), bytes).unwrap();
        if header.flags.has(Flags::SYN) {
            self.next = (1 << 32) + u64::from(header.sequence) + 1;
            return units.is_empty();
        }
        let start = unwrap_u32(self.next, header.sequence);
        let end = start + payload.len() as u64 + u64::from(header.flags.has(Flags::FIN));
        let (mut from, mut units) = (None, units.to_vec());
        units.sort_unstable_by_key(|&(unit, _)| unit);
        for (unit, cause) in units {
            if cause == SendCause::New {
                self.places.insert(unit, (self.next, end));
                self.next = end;
            }
            let place = self.places[&unit];
            let (first, last) = from.unwrap_or((place.0, place.0));
            if last != place.0 {
                return false;
            }
            from = Some((first, place.1));
        }
        // Acknowledged data of the first is not retransmitted.
        from.map_or(start == end, |(first, last)| first <= start && start < last && last == end)
    }
}

#[derive(Default)]
struct Unit {
    first: Instant,
    retransmissions: usize,
    /// For each copy: the number of the retransmission, its cause, and the indices of the events of its transmission
    /// and arrival.
    copies: Vec<(usize, SendCause, usize, Option<usize>)>,
}

impl Oracle {
    /// Asserts that `copies` follows from all reported events, when nothing is in flight.
    pub(super) fn check<L: Look>(&self, copies: &CopyStatistics) {
        let reported = self.0.lock().unwrap();
        let mut arrivals = BTreeMap::new();
        for (place, reported) in reported.iter().enumerate() {
            if let &Told::Arrived { id, at } = reported {
                arrivals.entry(id).or_insert((place, at));
            }
        }
        let (units, packets, lost) = units_in::<L>(&reported, &arrivals);
        assert_eq!((copies.packets, copies.packets_lost), (packets, lost));
        let mut expected = vec![[PerCause::<u64>::default(); 3]; CopyStatistics::RETRANSMISSIONS];
        let mut waited = vec![Vec::new(); CopyStatistics::RETRANSMISSIONS];
        let answers = answers_in::<L>(&reported, &arrivals);
        let mut classes = SpuriousClasses::default();
        for unit in units.values() {
            let brought = unit.copies.iter().filter_map(|copy| copy.3).min();
            for (index, &(number, cause, left, arrived)) in unit.copies.iter().enumerate() {
                let number = number.min(CopyStatistics::RETRANSMISSIONS - 1);
                let [sent, spurious, delivered] = &mut expected[number];
                sent[cause] += 1;
                let is_in_vain = unit.copies[..index].iter().any(|before| before.3.is_some());
                spurious[cause] += u64::from(is_in_vain);
                if is_in_vain && cause != SendCause::Redundant {
                    let known = brought.filter(|&place| place < left).map_or(left, |place| place);
                    let given = |&&(place, _): &&(usize, bool)| (known..left).contains(&place);
                    let given: Vec<bool> = answers.iter().filter(given).map(|it| it.1).collect();
                    match given[..] {
                        [] | [true, ..] => classes.premature += 1,
                        _ if given.contains(&true) => classes.crossed += 1,
                        _ => classes.unacknowledged += 1,
                    }
                }
                if let Some(place) = arrived.filter(|_| arrived == brought)
                    && let Told::Arrived { at, .. } = reported[place]
                {
                    delivered[cause] += 1;
                    waited[number].push(at - unit.first);
                }
            }
        }
        assert_eq!(copies.spurious_classes, classes);
        assert_eq!(copies.units, units.len() as u64);
        for (number, found) in copies.by_retransmission.iter().enumerate() {
            let all = [found.sent, found.spurious, found.delivered];
            assert_eq!(all, expected[number], "sent, spuriously, brought by number {number}");
            let sum: Duration = waited[number].iter().sum();
            let mean = sum.checked_div(waited[number].len() as u32);
            assert_eq!(found.latency.mean(), mean, "number {number}");
            let longest = waited[number].iter().max().copied().unwrap_or_default();
            assert_eq!(found.latency.quantile(1.0), longest, "number {number}");
        }
    }
}

/// The index of each ACK's transmission, and whether it arrived.
fn answers_in<L: Look>(
    reported: &[Told],
    arrivals: &BTreeMap<u64, (usize, Instant)>,
) -> Vec<(usize, bool)> {
    let answer = |(place, reported): (usize, &Told)| match reported {
        Told::Back { id, bytes } if L::acknowledges(bytes) => {
            Some((place, arrivals.contains_key(id)))
        }
        _ => None,
    };
    reported.iter().enumerate().filter_map(answer).collect()
}

/// All units, each with the number of packets that carried it, and of those that were lost.
fn units_in<L: Look>(
    reported: &[Told],
    arrivals: &BTreeMap<u64, (usize, Instant)>,
) -> (BTreeMap<u64, Unit>, u64, u64) {
    let mut look = L::default();
    let (mut units, mut packets, mut lost) = (BTreeMap::<u64, Unit>::new(), 0, 0);
    let (mut written, mut now) = (Vec::new(), Instant::ZERO);
    for (place, reported) in reported.iter().enumerate() {
        match reported {
            Told::Written(at, carried) => {
                assert!(written.is_empty(), "all written units were sent");
                (written, now) = (carried.clone(), *at);
            }
            Told::Copied(carried) => written.extend(carried),
            Told::Sent { id, bytes, ends } => {
                let carried = std::mem::take(&mut written);
                assert!(look.carries(bytes, *ends, &carried), "{id}: {carried:?} {bytes:x?}");
                let arrived = arrivals.get(id).map(|&(place, _)| place);
                packets += u64::from(!carried.is_empty());
                lost += u64::from(!carried.is_empty() && arrived.is_none());
                for (unit, cause) in carried {
                    let unit = units.entry(unit).or_default();
                    match cause {
                        SendCause::New => unit.first = now,
                        SendCause::Redundant => {}
                        _ => unit.retransmissions += 1,
                    }
                    unit.copies.push((unit.retransmissions, cause, place, arrived));
                }
            }
            Told::Back { .. } | Told::Arrived { .. } => {}
        }
    }
    (units, packets, lost)
}
