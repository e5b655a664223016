//! Ethernet frames and the IPv4 packets in them.

use std::net::{Ipv4Addr, SocketAddr};

use etherparse::{IpEcn, IpNumber, Ipv4Header, Ipv4HeaderSlice};
use rexmit_core::Ecn;
use rexmit_netsim::path::{Offered, flow_key, header_ports};

/// The length of an Ethernet header in bytes.
pub(crate) const ETHERNET: usize = 14;
const IPV4: [u8; 2] = [0x08, 0x00];
const ARP: [u8; 2] = [0x08, 0x06];
/// An ARP message between Ethernet and IPv4, up to and including the operation (RFC 826): a request.
const ARP_REQUEST: [u8; 8] = [0, 1, 8, 0, 6, 4, 0, 1];
const ARP_REPLY: [u8; 8] = [0, 1, 8, 0, 6, 4, 0, 2];
/// The time to live of packets from machines.
const HOP_LIMIT: u8 = 64;

/// An Ethernet address.
pub(crate) type Mac = [u8; 6];

/// An IPv4 packet that was received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Packet<'a> {
    pub(crate) source: Ipv4Addr,
    pub(crate) destination: Ipv4Addr,
    pub(crate) protocol: u8,
    pub(crate) ecn: Ecn,
    pub(crate) payload: &'a [u8],
}

/// The bytes of the frame from the IP header on, if it is an IPv4 packet.
pub(crate) fn ip_bytes(frame: &[u8]) -> Option<&[u8]> {
    let (header, rest) = frame.split_at_checked(ETHERNET)?;
    header.ends_with(&IPV4).then_some(rest)
}

/// The IPv4 packet in a frame, unless the frame has none, or a fragment, or a wrong checksum.
pub(crate) fn packet(frame: &[u8]) -> Option<Packet<'_>> {
    let bytes = ip_bytes(frame)?;
    let header = Ipv4HeaderSlice::from_slice(bytes).ok()?.to_header();
    let has_checksum = header.calc_header_checksum() == header.header_checksum;
    if !has_checksum || header.is_fragmenting_payload() {
        return None;
    }
    let payload = bytes.get(header.header_len()..usize::from(header.total_len))?;
    Some(Packet {
        source: header.source.into(),
        destination: header.destination.into(),
        protocol: header.protocol.0,
        ecn: Ecn::from_bits(header.ecn.value()),
        payload,
    })
}

/// The properties of a frame for a path: those of the IP packet.
pub(crate) fn offered(frame: &[u8]) -> Offered {
    let len = frame.len().saturating_sub(ETHERNET);
    let Some(packet) = packet(frame) else { return Offered::new(len) };
    let [from, to] = header_ports(packet.protocol, packet.payload).unwrap_or_default();
    let source = SocketAddr::from((packet.source, from));
    let destination = SocketAddr::from((packet.destination, to));
    Offered { len, ecn: packet.ecn, flow: flow_key(source, destination, packet.protocol) }
}

/// Sets the ECN field of the IP packet in a frame to CE, as a router does.
pub(crate) fn mark(frame: &mut [u8]) {
    let Some(bytes) = frame.get(ETHERNET..) else { return };
    let Ok(header) = Ipv4HeaderSlice::from_slice(bytes) else { return };
    let mut header = header.to_header();
    header.ecn = IpEcn::THREE;
    header.header_checksum = header.calc_header_checksum();
    let bytes = header.to_bytes();
    frame[ETHERNET..ETHERNET + bytes.len()].copy_from_slice(&bytes);
}

/// A frame with an IPv4 packet; `None` if the payload is too long for one.
pub(crate) fn encode(macs: [Mac; 2], packet: &Packet<'_>) -> Option<Vec<u8>> {
    let [source, destination] = macs;
    let len = u16::try_from(packet.payload.len()).ok()?;
    let protocol = IpNumber(packet.protocol);
    let addresses = [packet.source, packet.destination].map(|address| address.octets());
    let header = Ipv4Header::new(len, HOP_LIMIT, protocol, addresses[0], addresses[1]);
    let mut header = header.ok()?;
    header.dont_fragment = true;
    header.ecn = IpEcn::try_new(packet.ecn.bits()).ok()?;
    header.header_checksum = header.calc_header_checksum();
    Some([&destination, &source, &IPV4[..], &header.to_bytes(), packet.payload].concat())
}

/// The reply to a frame that asks for the Ethernet address of `address` (RFC 826).
pub(crate) fn arp_reply(frame: &[u8], mac: Mac, address: Ipv4Addr) -> Option<Vec<u8>> {
    let (header, message) = frame.split_at_checked(ETHERNET)?;
    let message = message.get(..28)?;
    let (kind, rest) = message.split_at(8);
    if !header.ends_with(&ARP) || kind != ARP_REQUEST || rest[16..] != address.octets() {
        return None;
    }
    let asking = &rest[..10];
    let own = [&mac[..], &address.octets()].concat();
    Some([&asking[..6], &mac, &ARP[..], &ARP_REPLY, &own, asking].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACS: [Mac; 2] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];

    fn example(payload: &[u8]) -> Packet<'_> {
        Packet {
            source: Ipv4Addr::new(10, 0, 0, 1),
            destination: Ipv4Addr::new(10, 0, 0, 2),
            protocol: 132,
            ecn: Ecn::Ect0,
            payload,
        }
    }

    #[test]
    fn a_packet_is_read_as_it_was_written() {
        let sent = example(b"hello");
        let mut frame = encode(MACS, &sent).unwrap();
        assert_eq!(frame.len(), ETHERNET + 20 + 5);
        assert_eq!(packet(&frame), Some(sent));
        assert_eq!(offered(&frame).len, 25);
        assert_eq!(offered(&frame).ecn, Ecn::Ect0);
        mark(&mut frame);
        assert_eq!(packet(&frame), Some(Packet { ecn: Ecn::Ce, ..sent }));
        frame[ETHERNET + 8] ^= 1;
        assert_eq!(packet(&frame), None, "the checksum is wrong");
        assert!(encode(MACS, &example(&[0; 65_536])).is_none());
    }

    #[test]
    fn frames_of_any_length_are_read() {
        let frame = encode(MACS, &example(b"hello")).unwrap();
        for len in 0..frame.len() {
            let mut frame = frame[..len].to_vec();
            assert_eq!(packet(&frame), None, "{len}");
            assert_eq!(arp_reply(&frame, MACS[0], Ipv4Addr::LOCALHOST), None);
            mark(&mut frame);
            assert_eq!(offered(&frame).len, len.saturating_sub(ETHERNET));
        }
    }

    #[test]
    fn a_request_for_an_address_is_answered() {
        let asked = Ipv4Addr::new(10, 0, 0, 2);
        let own = [&MACS[0][..], &[10, 0, 0, 1]].concat();
        let request =
            [&[0xff; 6], &MACS[0], &ARP[..], &ARP_REQUEST, &own, &[0; 6], &asked.octets()];
        let request = request.concat();
        let reply = arp_reply(&request, MACS[1], asked).unwrap();
        assert_eq!(reply[..6], MACS[0]);
        assert_eq!(reply[6..12], MACS[1]);
        assert_eq!(reply[20..22], [0, 2], "a reply");
        assert_eq!(reply[22..32], [&MACS[1][..], &asked.octets()].concat());
        assert_eq!(reply[32..], own);
        assert_eq!(arp_reply(&request, MACS[1], Ipv4Addr::new(10, 0, 0, 3)), None);
    }
}
