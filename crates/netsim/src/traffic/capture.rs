//! Captures as traces: the new payload of each flow and direction.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use etherparse::IpNumber;
use pcap_file::pcap::PcapParser;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::{Block, PcapNgParser};
use pcap_file::{DataLink, PcapError, TsResolution};
use rexmit_core::{RangeSet, serial};

use super::packet::{self, Content, TransportPacket};
use super::trace::{Flow, Message, Sender, Trace, TraceError};

const PCAPNG: [u8; 4] = [0x0A, 0x0D, 0x0D, 0x0A];
/// The magic numbers for micro- and nanoseconds, in both byte orders.
const PCAP: [[u8; 4]; 4] = [
    [0xA1, 0xB2, 0xC3, 0xD4],
    [0xD4, 0xC3, 0xB2, 0xA1],
    [0xA1, 0xB2, 0x3C, 0x4D],
    [0x4D, 0x3C, 0xB2, 0xA1],
];

/// Whether a file that begins with `bytes` is a capture.
pub(super) fn is_capture(bytes: &[u8]) -> bool {
    bytes.first_chunk().is_some_and(|magic| *magic == PCAPNG || PCAP.contains(magic))
}

/// Reads the capture in `bytes`.
pub(super) fn read(file: &str, name: &str, bytes: &[u8]) -> Result<Trace, TraceError> {
    let mut flows = Flows::default();
    let mut packets = 0;
    let result = if bytes.starts_with(&PCAPNG) {
        read_pcapng(bytes, &mut packets, &mut flows)
    } else {
        read_pcap(bytes, &mut packets, &mut flows)
    };
    result.map_err(|error| TraceError::BadCapture {
        file: file.to_owned(),
        packet: packets + 1,
        problem: problem(&error),
    })?;
    Ok(Trace { name: name.to_owned(), flows: flows.finish() })
}

fn read_pcap(bytes: &[u8], packets: &mut u64, flows: &mut Flows) -> Result<(), PcapError> {
    let (mut rest, parser) = PcapParser::new(bytes)?;
    let link = parser.header().datalink;
    let fraction = match parser.header().ts_resolution {
        TsResolution::MicroSecond => Duration::from_micros,
        TsResolution::NanoSecond => Duration::from_nanos,
    };
    while !rest.is_empty() {
        // Raw, because the library refuses packets that the capture has cut off.
        let (after, packet) = parser.next_raw_packet(rest)?;
        let time = Duration::from_secs(packet.ts_sec.into()) + fraction(packet.ts_frac.into());
        flows.on_frame(time, link, &packet.data);
        *packets += 1;
        rest = after;
    }
    Ok(())
}

fn read_pcapng(bytes: &[u8], packets: &mut u64, flows: &mut Flows) -> Result<(), PcapError> {
    let (mut rest, mut parser) = PcapNgParser::new(bytes)?;
    while !rest.is_empty() {
        let (after, block) = parser.next_block(rest)?;
        rest = after;
        if let Block::EnhancedPacket(packet) = block {
            *packets += 1;
            let Some(interface) = parser.packet_interface(&packet) else {
                return Err(PcapError::InvalidInterfaceId(packet.interface_id));
            };
            // The library gives the ticks of whatever resolution as nanoseconds.
            let time = ticks(packet.timestamp.as_nanos(), interface);
            flows.on_frame(time, interface.linktype, &packet.data);
        }
    }
    Ok(())
}

/// The duration of `ticks` of the clock of `interface` (`if_tsresol`; microseconds by default).
fn ticks(ticks: u128, interface: &InterfaceDescriptionBlock<'_>) -> Duration {
    let resolution = interface.options.iter().find_map(|option| match option {
        InterfaceDescriptionOption::IfTsResol(resolution) => Some(*resolution),
        _ => None,
    });
    let (base, exponent) = match resolution.unwrap_or(6) {
        binary if binary & 0x80 != 0 => (2u128, binary & 0x7F),
        decimal => (10, decimal),
    };
    // Beyond any clock the ticks count nothing.
    let per_second = base.checked_pow(exponent.into()).unwrap_or(u128::MAX);
    let nanos = ticks.saturating_mul(1_000_000_000) / per_second;
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

fn problem(error: &PcapError) -> String {
    match error {
        PcapError::IncompleteBuffer => "the file ends within it".to_owned(),
        other => other.to_string(),
    }
}

/// The protocol and the ends of a connection, ordered by address.
type Key = (u8, SocketAddr, SocketAddr);

/// The connections of a capture.
#[derive(Default)]
struct Flows {
    connections: Vec<Connection>,
    /// The current connection between two ends.
    present: BTreeMap<Key, usize>,
}

struct Connection {
    begin: Duration,
    client: SocketAddr,
    /// Initial sequence number of the client's SYN, if captured.
    syn: Option<u32>,
    flow: Flow,
    /// The sequence numbers, unwrapped, seen from the client and from the server.
    seen: [Option<RangeSet>; 2],
}

impl Flows {
    fn on_frame(&mut self, time: Duration, link: DataLink, frame: &[u8]) {
        let Some(packet) = packet::parse(link, frame) else { return };
        let ends = (packet.source, packet.destination);
        let key = (packet.protocol.0, ends.0.min(ends.1), ends.0.max(ends.1));
        let place = self.present.get(&key).copied().filter(|&place| {
            // The same ports again with another first sequence number: a new connection.
            !self.connections[place].is_replaced_by(&packet)
        });
        let place = place.unwrap_or_else(|| {
            self.connections.push(Connection::new(time, &packet));
            self.connections.len() - 1
        });
        self.present.insert(key, place);
        self.connections[place].on_packet(time, &packet);
    }

    /// The flows with payload, by the time of their first packet.
    fn finish(self) -> Vec<Flow> {
        let has_payload = |flow: &Flow| !(flow.client.is_empty() && flow.server.is_empty());
        let flows = self.connections.into_iter().map(|connection| connection.flow);
        (0..).zip(flows.filter(has_payload)).map(|(id, flow)| Flow { id, ..flow }).collect()
    }
}

impl Connection {
    fn new(begin: Duration, first: &TransportPacket) -> Self {
        let is_answer = matches!(first.content, Content::Tcp { is_syn: true, is_ack: true, .. });
        Self {
            begin,
            client: if is_answer { first.destination } else { first.source },
            syn: first_sequence(first),
            flow: Flow::default(),
            seen: [None, None],
        }
    }

    fn is_replaced_by(&self, packet: &TransportPacket) -> bool {
        let new = first_sequence(packet);
        packet.protocol == IpNumber::TCP && new.is_some() && new != self.syn
    }

    fn on_packet(&mut self, time: Duration, packet: &TransportPacket) {
        let sender = if packet.source == self.client { Sender::Client } else { Sender::Server };
        let seen = &mut self.seen[usize::from(sender == Sender::Server)];
        let bytes = match &packet.content {
            Content::Udp { payload } => *payload,
            Content::Tcp { is_syn, sequence, payload, .. } => {
                // The SYN has the number before the first byte.
                new_payload(seen, sequence.wrapping_add(u32::from(*is_syn)), *payload)
            }
            Content::Sctp { data, .. } => {
                let new = |&(tsn, payload): &(u32, u32)| new_payload(seen, tsn, 1) * payload;
                data.iter().map(new).fold(0, u32::saturating_add)
            }
        };
        if bytes > 0 {
            let messages = self.flow.messages_mut(sender);
            // Clocks of captures may step back.
            let earliest = messages.last().map_or(Duration::ZERO, |last| last.at);
            let at = time.saturating_sub(self.begin).max(earliest);
            messages.push(Message { at, bytes });
        }
    }
}

/// The sequence number of a SYN that opens a connection.
fn first_sequence(packet: &TransportPacket) -> Option<u32> {
    match packet.content {
        Content::Tcp { is_syn: true, is_ack: false, sequence, .. } => Some(sequence),
        _ => None,
    }
}

/// Adds the `len` sequence numbers from `first` on; returns how many of them are new.
fn new_payload(seen: &mut Option<RangeSet>, first: u32, len: u32) -> u32 {
    if len == 0 {
        return 0;
    }
    let seen = seen.get_or_insert_default();
    let reference = seen.max().unwrap_or((1 << 32) + u64::from(first));
    let first = serial::unwrap_u32(reference, first);
    let mut new = 0;
    seen.insert_range(first, first + u64::from(len) - 1, |from, to| new += to - from + 1);
    new as u32
}
