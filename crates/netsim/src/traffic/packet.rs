//! Parses captured packets. Packets may be truncated in the capture, so lengths are taken from the
//! headers.

use std::net::{IpAddr, SocketAddr};

use etherparse::{
    EtherType, IpNumber, LaxNetSlice, LaxSlicedPacket, TcpSlice, UdpHeader, UdpHeaderSlice,
};
use pcap_file::DataLink;

/// The UDP port of encapsulated SCTP (RFC 6951 §5.1).
const SCTP_OVER_UDP: u16 = 9899;

/// A packet of a transport protocol.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct TransportPacket {
    pub(super) protocol: IpNumber,
    pub(super) source: SocketAddr,
    pub(super) destination: SocketAddr,
    pub(super) content: Content,
}

/// The header fields needed to count payload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Content {
    /// A TCP segment.
    Tcp { is_syn: bool, is_ack: bool, sequence: u32, payload: u32 },
    /// A UDP datagram.
    Udp { payload: u32 },
    /// An SCTP packet: TSN and user data of each DATA chunk.
    Sctp { is_init: bool, data: Vec<(u32, u32)> },
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
    /// Its length according to the IP header; the capture may contain less.
    declared_len: usize,
    bytes: &'a [u8],
}

impl Transport<'_> {
    fn packet(
        &self,
        protocol: IpNumber,
        ports: (u16, u16),
        content: Content,
    ) -> Option<TransportPacket> {
        Some(TransportPacket {
            protocol,
            source: SocketAddr::new(self.source, ports.0),
            destination: SocketAddr::new(self.destination, ports.1),
            content,
        })
    }

    fn tcp(&self) -> Option<TransportPacket> {
        let segment = TcpSlice::from_slice(self.bytes).ok()?;
        let payload = self.declared_len.checked_sub(segment.header_slice().len())?;
        let content = Content::Tcp {
            is_syn: segment.syn(),
            is_ack: segment.ack(),
            sequence: segment.sequence_number(),
            payload: u32::try_from(payload).ok()?,
        };
        let ports = (segment.source_port(), segment.destination_port());
        self.packet(IpNumber::TCP, ports, content)
    }

    fn udp(&self) -> Option<TransportPacket> {
        let header = UdpHeaderSlice::from_slice(self.bytes).ok()?;
        let ports = (header.source_port(), header.destination_port());
        let declared_len = usize::from(header.length()).checked_sub(UdpHeader::LEN)?;
        if ports.0 == SCTP_OVER_UDP || ports.1 == SCTP_OVER_UDP {
            let bytes = self.bytes.get(UdpHeader::LEN..)?;
            return Transport { declared_len, bytes, ..*self }.sctp();
        }
        let payload = u32::try_from(declared_len).ok()?;
        self.packet(IpNumber::UDP, ports, Content::Udp { payload })
    }

    /// RFC 9260 §3: a common header, then chunks, each padded to four bytes.
    fn sctp(&self) -> Option<TransportPacket> {
        const DATA: u8 = 0;
        const DATA_HEADER: u16 = 16;
        const INIT: u8 = 1;
        let word = |at: usize| self.bytes.get(at..at + 4)?.first_chunk::<4>().copied();
        let [a, b, c, d] = word(0)?;
        let ports = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        let mut is_init = false;
        let mut data = Vec::new();
        let mut at = 12;
        while at < self.declared_len
            && let Some([chunk_type, _, high, low]) = word(at)
        {
            let len = u16::from_be_bytes([high, low]);
            is_init |= chunk_type == INIT;
            if chunk_type == DATA
                && let (Some(tsn), Some(payload)) = (word(at + 4), len.checked_sub(DATA_HEADER))
            {
                data.push((u32::from_be_bytes(tsn), u32::from(payload)));
            }
            at += usize::from(len.max(4)).next_multiple_of(4);
        }
        self.packet(IpNumber::SCTP, ports, Content::Sctp { is_init, data })
    }
}
