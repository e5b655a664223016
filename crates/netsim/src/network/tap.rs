//! Captures: packets as pcapng, with IP headers, so that Wireshark decodes them.

use std::borrow::Cow;
use std::io::{self, Write};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use etherparse::{IpNumber, Ipv4Header, Ipv6FlowLabel, Ipv6Header, UdpHeader};
use pcap_file::DataLink;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use rexmit_core::{Instant, Machine};

use super::packets::Packet;
use super::{Direction, HostId, LinkId, Network};
use crate::path::{Fate, LossCause, Outcome};

/// Where packets are captured.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TapPoint {
    /// What a host sends and receives.
    Host(HostId),
    /// What enters a direction of a link, before its queue; packets that are lost, held back,
    /// damaged or doubled on it have a comment that says so.
    Entry(LinkId, Direction),
    /// What arrives at the end of a direction of a link.
    Exit(LinkId, Direction),
}

/// A capture under way.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TapId(usize);

/// An interface of a capture, seen from where the packets pass.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interface {
    tap: usize,
    number: u32,
}

/// What an interface sees of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sight<'a> {
    /// It comes in.
    Inbound,
    /// It goes out.
    Outbound,
    /// It goes out onto a link, where this becomes of it.
    Entering(&'a Outcome),
}

type Out = Box<dyn Write + Send>;

/// All captures of a network.
pub(super) struct Taps {
    open: Vec<Option<Tap>>,
    ip_protocol: IpNumber,
    headers_and_payload: Vec<u8>,
}

struct Tap {
    writer: PcapNgWriter<Out>,
    error: Option<io::Error>,
}

impl Default for Taps {
    fn default() -> Self {
        Self { open: Vec::new(), ip_protocol: IpNumber::SCTP, headers_and_payload: Vec::new() }
    }
}

impl Taps {
    /// Writes `packet` to each of `interfaces`. An error is kept for the end of the capture.
    pub(super) fn record(
        &mut self,
        interfaces: &[Interface],
        now: Instant,
        packet: &Packet,
        sight: Sight<'_>,
    ) {
        for interface in interfaces {
            let Some(tap) = &mut self.open[interface.tap] else { continue };
            if tap.error.is_some() {
                continue;
            }
            let bytes = &mut self.headers_and_payload;
            let block = write_packet(packet, self.ip_protocol, bytes)
                .and_then(|()| tap.write(*interface, now, bytes, sight));
            tap.error = block.err();
        }
    }

    fn open(&mut self, names: &[String], out: Out) -> io::Result<TapId> {
        let mut writer = PcapNgWriter::new(out).map_err(io::Error::other)?;
        for name in names {
            let options = vec![
                InterfaceDescriptionOption::IfName(Cow::Borrowed(name)),
                InterfaceDescriptionOption::IfTsResol(9), // nanoseconds
            ];
            let block = InterfaceDescriptionBlock { linktype: DataLink::RAW, snaplen: 0, options };
            writer.write_pcapng_block(block).map_err(io::Error::other)?;
        }
        self.open.push(Some(Tap { writer, error: None }));
        Ok(TapId(self.open.len() - 1))
    }
}

impl Tap {
    fn write(
        &mut self,
        interface: Interface,
        now: Instant,
        bytes: &[u8],
        sight: Sight<'_>,
    ) -> io::Result<()> {
        // The two low bits are the direction.
        let flags = if matches!(sight, Sight::Inbound) { 1 } else { 2 };
        let mut options = vec![EnhancedPacketOption::Flags(flags)];
        if let Sight::Entering(outcome) = sight
            && let Some(fate) = describe(outcome)
        {
            options.push(EnhancedPacketOption::Comment(Cow::Borrowed(fate)));
        }
        let block = EnhancedPacketBlock {
            interface_id: interface.number,
            timestamp: Duration::from_nanos(now.as_nanos()),
            original_len: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
            data: Cow::Borrowed(bytes),
            options,
        };
        self.writer.write_pcapng_block(block).map_err(io::Error::other)?;
        Ok(())
    }
}

/// Writes `packet` as an IP packet: directly over IP, or in UDP if it has ports.
fn write_packet(packet: &Packet, protocol: IpNumber, bytes: &mut Vec<u8>) -> io::Result<()> {
    bytes.clear();
    let is_encapsulated = packet.is_encapsulated();
    let protocol = if is_encapsulated { IpNumber::UDP } else { protocol };
    let udp_len = if is_encapsulated { UdpHeader::LEN } else { 0 };
    let payload_len = u16::try_from(udp_len + packet.bytes.len()).map_err(io::Error::other)?;
    let ports = (packet.source.port(), packet.destination.port());
    let udp = match (packet.source.ip(), packet.destination.ip()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let (source, destination) = (source.octets(), destination.octets());
            let ip = Ipv4Header::new(payload_len, packet.hop_limit, protocol, source, destination)
                .map_err(io::Error::other)?;
            ip.write(bytes)?; // with its checksum
            UdpHeader::with_ipv4_checksum(ports.0, ports.1, &ip, &packet.bytes)
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let ip = Ipv6Header {
                traffic_class: 0,
                flow_label: Ipv6FlowLabel::ZERO,
                payload_length: payload_len,
                next_header: protocol,
                hop_limit: packet.hop_limit,
                source: source.octets(),
                destination: destination.octets(),
            };
            ip.write(bytes)?;
            UdpHeader::with_ipv6_checksum(ports.0, ports.1, &ip, &packet.bytes)
        }
        _ => return Err(io::Error::other("addresses of two families")),
    };
    if is_encapsulated {
        udp.map_err(io::Error::other)?.write(bytes)?;
    }
    bytes.extend_from_slice(&packet.bytes);
    Ok(())
}

/// What a capture says about a packet that enters a link; nothing if it just arrives once.
fn describe(outcome: &Outcome) -> Option<&'static str> {
    let mut own = outcome.deliveries.iter().filter(|delivery| delivery.packet == outcome.packet);
    let is_corrupted = own.clone().any(|delivery| delivery.corruption.is_some());
    let is_doubled = own.any(|delivery| delivery.is_copy);
    match (outcome.fate, is_corrupted, is_doubled) {
        (Fate::Lost(LossCause::Listed), ..) => Some("lost: listed"),
        (Fate::Lost(LossCause::Burst), ..) => Some("lost: burst"),
        (Fate::Lost(LossCause::Uniform), ..) => Some("lost: uniform"),
        (Fate::Lost(LossCause::Queue), ..) => Some("lost: no room in the queue"),
        (Fate::Held, ..) => Some("held back"),
        (Fate::Passed, true, true) => Some("one bit flipped, arrives twice"),
        (Fate::Passed, true, false) => Some("one bit flipped"),
        (Fate::Passed, false, true) => Some("arrives twice"),
        (Fate::Passed, false, false) => None,
    }
}

impl<M: Machine> Network<M> {
    /// Captures from now on what passes at `points` and writes it as pcapng with nanosecond
    /// timestamps, one interface per point.
    ///
    /// Packets whose route has no ports are captured as SCTP directly over IP (or as what
    /// [`set_ip_protocol`](Self::set_ip_protocol) says), others in UDP (RFC 6951). Each packet
    /// causes a few small writes: give a file a [`BufWriter`](std::io::BufWriter).
    ///
    /// # Errors
    /// Those of writing the head of the file. Later ones are kept for
    /// [`finish_tap`](Self::finish_tap).
    pub fn tap(
        &mut self,
        points: &[TapPoint],
        out: impl Write + Send + 'static,
    ) -> io::Result<TapId> {
        let names: Vec<_> = points.iter().map(|&point| self.tap_name(point)).collect();
        let tap = self.taps.open(&names, Box::new(out))?;
        for (number, &point) in (0..).zip(points) {
            let interface = Interface { tap: tap.0, number };
            match point {
                TapPoint::Host(host) => self.hosts[host.0 as usize].taps.push(interface),
                TapPoint::Entry(link, direction) => {
                    self.links[link.end(direction)].entry_taps.push(interface);
                }
                TapPoint::Exit(link, direction) => {
                    self.links[link.end(direction)].exit_taps.push(interface);
                }
            }
        }
        Ok(tap)
    }

    /// Ends a capture and flushes its writer. No effect if it has ended.
    ///
    /// # Errors
    /// The first error of writing; what was captured after it is missing.
    pub fn finish_tap(&mut self, tap: TapId) -> io::Result<()> {
        let Some(Tap { writer, error }) = self.taps.open[tap.0].take() else { return Ok(()) };
        let flushed = writer.into_inner().flush();
        error.map_or(flushed, Err)
    }

    /// The IP protocol number under which captures show packets without ports. The default is
    /// 132, SCTP.
    pub fn set_ip_protocol(&mut self, number: u8) {
        self.taps.ip_protocol = IpNumber(number);
    }

    fn tap_name(&self, point: TapPoint) -> String {
        let name = |node: super::NodeId| self.nodes[node.0 as usize].name.as_str();
        match point {
            TapPoint::Host(host) => name(self.host_node(host)).to_owned(),
            TapPoint::Entry(link, direction) | TapPoint::Exit(link, direction) => {
                let end = &self.links[link.end(direction)];
                let side = if matches!(point, TapPoint::Entry(..)) { "entry" } else { "exit" };
                format!("{} to {}, {side}", name(end.from), name(end.to))
            }
        }
    }
}

/// Bytes in memory that can be read while a tap writes them.
#[derive(Clone, Debug, Default)]
pub struct SharedBuffer(Arc<Mutex<Vec<u8>>>);

impl SharedBuffer {
    /// What was written so far.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Write for SharedBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
