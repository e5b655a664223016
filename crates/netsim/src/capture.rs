//! Captures: packets as pcapng, with IP headers, so that Wireshark decodes them.
//!
//! It depends on no other module of this crate, so that simulated networks and the real-time emulator write the same
//! files.
//!
//! ```
//! use rexmit_netsim::capture::{CaptureWriter, CapturedPacket, CaptureDirection};
//! use std::time::Duration;
//! let mut capture = CaptureWriter::new(Vec::new(), ["eth0"])?;
//! capture.write(&CapturedPacket {
//!     interface: 0,
//!     time: Duration::from_nanos(50_000_001),
//!     source: "192.0.2.1:9899".parse()?,
//!     destination: "192.0.2.2:9899".parse()?,
//!     ip_protocol: 132,
//!     hop_limit: 64,
//!     ecn: rexmit_core::Ecn::NotEct,
//!     payload: b"a packet",
//!     direction: CaptureDirection::Out,
//!     comment: Some("lost: burst"),
//! })?;
//! let file: Vec<u8> = capture.finish()?;
//! assert!(file.windows(8).any(|bytes| bytes == b"a packet"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use etherparse::{IpEcn, IpNumber, Ipv4Header, Ipv6FlowLabel, Ipv6Header, UdpHeader};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::{DataLink, PcapError};
use rexmit_core::Ecn;

use crate::path::LossCause;

/// A writer of a pcapng file, with nanosecond time stamps.
///
/// Each packet causes a few small writes: wrap a file in a [`BufWriter`](std::io::BufWriter).
pub struct CaptureWriter<W: Write> {
    writer: PcapNgWriter<W>,
    headers_and_payload: Vec<u8>,
}

/// A packet for a capture.
#[derive(Clone, Copy, Debug)]
pub struct CapturedPacket<'a> {
    /// The interface of the file at which it was captured.
    pub interface: u32,
    /// The time, since 1970 or since the start of a simulation.
    pub time: Duration,
    /// The source address.
    pub source: SocketAddr,
    /// The destination address. If source or destination has a port, the packet is encapsulated in
    /// UDP (RFC 6951).
    pub destination: SocketAddr,
    /// The IP protocol number of a packet without ports.
    pub ip_protocol: u8,
    /// The IP header's time to live, or hop limit.
    pub hop_limit: u8,
    /// The IP header's ECN field.
    pub ecn: Ecn,
    /// The packet without IP and UDP headers.
    pub payload: &'a [u8],
    /// The direction, seen from the interface.
    pub direction: CaptureDirection,
    /// A comment, for example on a loss.
    pub comment: Option<&'a str>,
}

/// The direction of a packet at an interface.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CaptureDirection {
    /// Received by the interface.
    In = 1,
    /// Sent by the interface.
    Out = 2,
}

/// The prefix of the comments on lost packets in captures.
pub const LOST: &str = "lost: ";

/// The comment in captures on a lost packet.
#[must_use]
pub const fn loss_comment(cause: LossCause) -> &'static str {
    match cause {
        LossCause::Listed => "lost: listed",
        LossCause::Burst => "lost: burst",
        LossCause::Uniform => "lost: uniform",
        LossCause::Red => "lost: random early detection",
        LossCause::Queue => "lost: no room in the queue",
        LossCause::Codel => "lost: too long in the queue (CoDel)",
        LossCause::Mtu => "lost: larger than the MTU",
    }
}

impl<W: Write> CaptureWriter<W> {
    /// Writes the file header with interfaces of these names, numbered from 0.
    ///
    /// # Errors
    /// Errors of the writer.
    pub fn new<'a>(out: W, interfaces: impl IntoIterator<Item = &'a str>) -> io::Result<Self> {
        let mut writer = PcapNgWriter::new(out).map_err(io_error)?;
        for name in interfaces {
            let options = vec![
                InterfaceDescriptionOption::IfName(Cow::Borrowed(name)),
                InterfaceDescriptionOption::IfTsResol(9), // nanoseconds
            ];
            let block = InterfaceDescriptionBlock { linktype: DataLink::RAW, snaplen: 0, options };
            writer.write_pcapng_block(block).map_err(io_error)?;
        }
        Ok(Self { writer, headers_and_payload: Vec::new() })
    }

    /// Writes a packet with an IP header and, if it has ports, a UDP header.
    ///
    /// # Errors
    /// Errors of the writer, addresses of different families, or a packet too long for IP.
    pub fn write(&mut self, packet: &CapturedPacket<'_>) -> io::Result<()> {
        let mut bytes = std::mem::take(&mut self.headers_and_payload);
        let written = write_packet(packet, &mut bytes).and_then(|()| {
            let remarks = (packet.direction, packet.comment);
            self.write_ip(packet.interface, packet.time, &bytes, remarks)
        });
        self.headers_and_payload = bytes;
        written
    }

    /// Writes a packet that begins with its IP header, with its direction, seen from the interface,
    /// and an optional comment.
    ///
    /// # Errors
    /// Errors of the writer.
    pub fn write_ip(
        &mut self,
        interface: u32,
        time: Duration,
        bytes: &[u8],
        (direction, comment): (CaptureDirection, Option<&str>),
    ) -> io::Result<()> {
        // The two low bits are the direction.
        let mut options = vec![EnhancedPacketOption::Flags(direction as u32)];
        options.extend(comment.map(|text| EnhancedPacketOption::Comment(text.into())));
        let block = EnhancedPacketBlock {
            interface_id: interface,
            timestamp: time,
            original_len: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
            data: Cow::Borrowed(bytes),
            options,
        };
        self.writer.write_pcapng_block(block).map_err(io_error)?;
        Ok(())
    }

    /// Flushes the writer.
    ///
    /// # Errors
    /// Errors of the writer.
    pub fn flush(&mut self) -> io::Result<()> {
        self.writer.get_mut().flush()
    }

    /// Ends the file: flushes its writer and returns it.
    ///
    /// # Errors
    /// Errors of the writer.
    pub fn finish(self) -> io::Result<W> {
        let mut out = self.writer.into_inner();
        out.flush()?;
        Ok(out)
    }
}

impl<W: Write> fmt::Debug for CaptureWriter<W> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("CaptureWriter").finish_non_exhaustive()
    }
}

/// The I/O error of the writer, with its kind.
fn io_error(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        error => io::Error::other(error),
    }
}

/// Writes `packet` as an IP packet: directly over IP, or in UDP if it has ports.
fn write_packet(packet: &CapturedPacket<'_>, bytes: &mut Vec<u8>) -> io::Result<()> {
    bytes.clear();
    let ports = (packet.source.port(), packet.destination.port());
    let is_encapsulated = ports != (0, 0);
    let protocol = if is_encapsulated { IpNumber::UDP } else { IpNumber(packet.ip_protocol) };
    let udp_len = if is_encapsulated { UdpHeader::LEN } else { 0 };
    let payload_len = u16::try_from(udp_len + packet.payload.len()).map_err(io::Error::other)?;
    let udp = match (packet.source.ip(), packet.destination.ip()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let (source, destination) = (source.octets(), destination.octets());
            let mut ip =
                Ipv4Header::new(payload_len, packet.hop_limit, protocol, source, destination)
                    .map_err(io::Error::other)?;
            ip.ecn = IpEcn::try_new(packet.ecn.bits()).map_err(io::Error::other)?;
            ip.header_checksum = ip.calc_header_checksum();
            ip.write(bytes)?; // with its checksum
            UdpHeader::with_ipv4_checksum(ports.0, ports.1, &ip, packet.payload)
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let ip = Ipv6Header {
                traffic_class: packet.ecn.bits(),
                flow_label: Ipv6FlowLabel::ZERO,
                payload_length: payload_len,
                next_header: protocol,
                hop_limit: packet.hop_limit,
                source: source.octets(),
                destination: destination.octets(),
            };
            ip.write(bytes)?;
            UdpHeader::with_ipv6_checksum(ports.0, ports.1, &ip, packet.payload)
        }
        _ => return Err(io::Error::other("addresses of two families")),
    };
    if is_encapsulated {
        udp.map_err(io::Error::other)?.write(bytes)?;
    }
    bytes.extend_from_slice(packet.payload);
    Ok(())
}
