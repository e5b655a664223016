//! Parses captured packets. Packets may be truncated in the capture, so lengths are taken from the
//! headers.

use std::net::{IpAddr, SocketAddr};

use etherparse::{
    EtherType, IpNumber, LaxNetSlice, LaxSlicedPacket, TcpOptionElement, TcpSlice, UdpHeader,
    UdpHeaderSlice,
};
use pcap_file::DataLink;
use rexmit_core::checksum::{crc32c, crc32c_append};

use super::sctp_chunks::{self, SctpPacket};

/// The UDP port of encapsulated SCTP (RFC 6951 §5.1).
const SCTP_OVER_UDP: u16 = 9899;

/// A packet of a transport protocol.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TransportPacket {
    /// The transport protocol; SCTP in UDP is SCTP.
    pub protocol: Protocol,
    /// Address and port of the sender.
    pub source: SocketAddr,
    /// Address and port of the receiver.
    pub destination: SocketAddr,
    /// The headers of the packet.
    pub content: Content,
}

/// A transport protocol.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Protocol {
    /// TCP (RFC 9293).
    Tcp,
    /// UDP (RFC 768).
    Udp,
    /// SCTP (RFC 9260), over IP or in UDP (RFC 6951).
    Sctp,
}

/// The header fields of a packet.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Content {
    /// A TCP segment.
    Tcp(TcpSegment),
    /// A UDP datagram with this number of bytes of payload.
    Udp(u32),
    /// An SCTP packet.
    Sctp(SctpPacket),
}

/// The header fields of a TCP segment.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct TcpSegment {
    /// SYN.
    pub is_syn: bool,
    /// FIN.
    pub is_fin: bool,
    /// RST.
    pub is_reset: bool,
    /// The sequence number.
    pub sequence: u32,
    /// The acknowledgment number, if ACK is set.
    pub acknowledgment: Option<u32>,
    /// The window field, not scaled.
    pub window: u16,
    /// SACK blocks in the order of the option (RFC 2018 §3): the first number of each, and the one after its last.
    pub sack: Vec<(u32, u32)>,
    /// Payload in bytes.
    pub payload: u32,
}

impl TransportPacket {
    /// Whether the packet opens a connection: a SYN without ACK, or an INIT.
    #[must_use]
    pub fn opens(&self) -> bool {
        self.opening().is_some()
    }

    /// Distinguishes packets that open different connections between the same ports: the sequence number of a SYN, or
    /// the initiate tag of an INIT.
    pub(super) fn opening(&self) -> Option<u32> {
        match &self.content {
            Content::Tcp(segment) => {
                (segment.is_syn && segment.acknowledgment.is_none()).then_some(segment.sequence)
            }
            Content::Udp(_) => None,
            Content::Sctp(packet) => packet.init,
        }
    }

    /// Whether it answers the packet that opens a connection: a SYN with ACK, or an INIT ACK.
    #[must_use]
    pub fn answers_opening(&self) -> bool {
        match &self.content {
            Content::Tcp(segment) => segment.is_syn && segment.acknowledgment.is_some(),
            Content::Udp(_) => false,
            Content::Sctp(packet) => packet.is_init_ack,
        }
    }
}

/// Parses the transport packet in a captured frame; `None` for all other frames.
pub(super) fn parse(link: DataLink, frame: &[u8]) -> Option<TransportPacket> {
    let packet = match link {
        DataLink::ETHERNET => LaxSlicedPacket::from_ethernet(frame).ok()?,
        DataLink::LINUX_SLL => {
            let ether_type = u16::from_be_bytes([*frame.get(14)?, *frame.get(15)?]);
            LaxSlicedPacket::from_ether_type(EtherType(ether_type), frame.get(16..)?)
        }
        DataLink::LINUX_SLL2 => {
            let ether_type = u16::from_be_bytes([*frame.first()?, *frame.get(1)?]);
            LaxSlicedPacket::from_ether_type(EtherType(ether_type), frame.get(20..)?)
        }
        DataLink::NULL | DataLink::LOOP => LaxSlicedPacket::from_ip(frame.get(4..)?).ok()?,
        _ => LaxSlicedPacket::from_ip(frame).ok()?,
    };
    let net = packet.net?;
    let (source, destination, declared_len): (IpAddr, IpAddr, usize) = match &net {
        LaxNetSlice::Ipv4(ip) => {
            let header = ip.header();
            let len = usize::from(header.total_len()).checked_sub(header.slice().len())?;
            (header.source_addr().into(), header.destination_addr().into(), len)
        }
        LaxNetSlice::Ipv6(ip) => {
            let header = ip.header();
            let extensions = ip.extensions().slice().len();
            let len = usize::from(header.payload_length()).checked_sub(extensions)?;
            (header.source_addr().into(), header.destination_addr().into(), len)
        }
        LaxNetSlice::Arp(_) => return None,
    };
    let payload = net.ip_payload_ref().filter(|payload| !payload.fragmented)?;
    let transport = Transport { source, destination, declared_len, bytes: payload.payload };
    match payload.ip_number {
        IpNumber::TCP => transport.tcp(),
        IpNumber::UDP => transport.udp(),
        IpNumber::SCTP => transport.sctp(),
        _ => None,
    }
}

/// A transport packet to be parsed.
struct Transport<'a> {
    source: IpAddr,
    destination: IpAddr,
    /// Length of the packet according to the IP header; the capture may contain less.
    declared_len: usize,
    bytes: &'a [u8],
}

impl Transport<'_> {
    fn packet(&self, protocol: Protocol, ports: (u16, u16), content: Content) -> TransportPacket {
        let source = SocketAddr::new(self.source, ports.0);
        let destination = SocketAddr::new(self.destination, ports.1);
        TransportPacket { protocol, source, destination, content }
    }

    fn tcp(&self) -> Option<TransportPacket> {
        let segment = TcpSlice::from_slice(self.bytes).ok()?;
        let payload = self.declared_len.checked_sub(segment.header_slice().len())?;
        let mut sack = Vec::new();
        for option in segment.options_iterator().map_while(Result::ok) {
            if let TcpOptionElement::SelectiveAcknowledgement(first, others) = option {
                sack.push(first);
                sack.extend(others.into_iter().flatten());
            }
        }
        let content = Content::Tcp(TcpSegment {
            is_syn: segment.syn(),
            is_fin: segment.fin(),
            is_reset: segment.rst(),
            sequence: segment.sequence_number(),
            acknowledgment: segment.ack().then(|| segment.acknowledgment_number()),
            window: segment.window_size(),
            sack,
            payload: u32::try_from(payload).ok()?,
        });
        let ports = (segment.source_port(), segment.destination_port());
        Some(self.packet(Protocol::Tcp, ports, content))
    }

    fn udp(&self) -> Option<TransportPacket> {
        let header = UdpHeaderSlice::from_slice(self.bytes).ok()?;
        let ports = (header.source_port(), header.destination_port());
        let declared_len = usize::from(header.length()).checked_sub(UdpHeader::LEN)?;
        let bytes = self.bytes.get(UdpHeader::LEN..)?;
        let is_usual_port = ports.0 == SCTP_OVER_UDP || ports.1 == SCTP_OVER_UDP;
        if is_usual_port || (bytes.len() == declared_len && has_sctp_checksum(bytes)) {
            let content = Content::Sctp(sctp_chunks::parse(bytes, declared_len));
            // The ports of UDP, because the SCTP ports of several clients behind one NAT may be the same.
            return Some(self.packet(Protocol::Sctp, ports, content));
        }
        let payload = u32::try_from(declared_len).ok()?;
        Some(self.packet(Protocol::Udp, ports, Content::Udp(payload)))
    }

    fn sctp(&self) -> Option<TransportPacket> {
        let [a, b, c, d] = *self.bytes.first_chunk::<4>()?;
        let ports = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        let packet = sctp_chunks::parse(self.bytes, self.declared_len);
        Some(self.packet(Protocol::Sctp, ports, Content::Sctp(packet)))
    }
}

/// Whether a datagram has the checksum of an SCTP packet (RFC 9260 §6.8); one of 2³² datagrams with other data has it
/// by chance.
fn has_sctp_checksum(bytes: &[u8]) -> bool {
    const HEADER: usize = 12;
    if bytes.len() < HEADER + 4 || !bytes.len().is_multiple_of(4) {
        return false;
    }
    let (before, after) = (&bytes[..8], &bytes[HEADER..]);
    let sum = crc32c_append(crc32c_append(crc32c(before), &[0; 4]), after);
    bytes[8..HEADER] == sum.to_le_bytes()
}
