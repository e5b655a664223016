//! The fields of IP headers that paths need: ECN and flow.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use rexmit_core::Ecn;
use rexmit_netsim::path::{flow_key, header_ports};

use super::direction::Tag;

/// Packets that begin with their IP header. Of anything else, no field is read or written.
impl Tag for () {
    fn ecn(&self, packet: &[u8]) -> Ecn {
        match *packet {
            [first, class, ..] if first >> 4 == 4 => Ecn::from_bits(class),
            [first, class, ..] if first >> 4 == 6 => Ecn::from_bits(class >> 4),
            _ => Ecn::NotEct,
        }
    }

    fn flow(&self, packet: &[u8]) -> u64 {
        let flow = match packet.first().map(|first| first >> 4) {
            Some(4) => flow_of_ipv4(packet),
            Some(6) => flow_of_ipv6(packet),
            _ => None,
        };
        flow.unwrap_or_default()
    }

    fn mark(&mut self, packet: &mut [u8]) {
        match packet.first().map(|first| first >> 4) {
            Some(4) if packet.len() >= 20 => mark_ipv4(packet),
            Some(6) if packet.len() >= 40 => packet[1] |= Ecn::Ce.bits() << 4,
            _ => {}
        }
    }
}

/// Fragments of a packet are one flow: only the first has ports, so that none are used.
fn flow_of_ipv4(packet: &[u8]) -> Option<u64> {
    const FRAGMENT: u16 = 0x3fff; // offset and "more fragments"
    let header: &[u8; 20] = packet.first_chunk()?;
    let &[first, .., s0, s1, s2, s3, d0, d1, d2, d3] = header;
    let is_fragment = u16::from_be_bytes([header[6], header[7]]) & FRAGMENT != 0;
    let payload = packet.get(usize::from(first & 0xf) * 4..).filter(|_| !is_fragment);
    let ends = (Ipv4Addr::new(s0, s1, s2, s3), Ipv4Addr::new(d0, d1, d2, d3));
    let protocol = header[9];
    let [from, to] = payload.and_then(|bytes| header_ports(protocol, bytes)).unwrap_or_default();
    let (source, destination) = (ends.0.into(), ends.1.into());
    Some(flow_key(SocketAddr::new(source, from), SocketAddr::new(destination, to), protocol))
}

/// The ports are used only if the transport header is next.
fn flow_of_ipv6(packet: &[u8]) -> Option<u64> {
    let (header, payload) = packet.split_first_chunk::<40>()?;
    let address = |bytes: &[u8]| bytes.first_chunk::<16>().map(|bytes| Ipv6Addr::from(*bytes));
    let (source, destination) = (address(&header[8..])?, address(&header[24..])?);
    let protocol = header[6];
    let [from, to] = header_ports(protocol, payload).unwrap_or_default();
    let (source, destination) = (source.into(), destination.into());
    Some(flow_key(SocketAddr::new(source, from), SocketAddr::new(destination, to), protocol))
}

/// Corrects the checksum by the difference (RFC 1624, equation 3), so that a wrong one stays wrong.
fn mark_ipv4(packet: &mut [u8]) {
    let word = |at: usize, packet: &[u8]| u16::from_be_bytes([packet[at], packet[at + 1]]);
    let (before, checksum) = (word(0, packet), word(10, packet));
    packet[1] |= Ecn::Ce.bits();
    let after = word(0, packet);
    let mut sum = u32::from(!checksum) + u32::from(!before) + u32::from(after);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    packet[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use etherparse::{IpEcn, IpNumber, Ipv4Header, Ipv6FlowLabel, Ipv6Header};

    use super::*;

    /// A packet over IPv4 with these ECN bits and UDP ports.
    fn ipv4(ecn: u8, ports: [u16; 2], tweak: impl Fn(&mut Ipv4Header)) -> Vec<u8> {
        let ends = ([10, 0, 0, 1], [10, 0, 0, 2]);
        let mut header = Ipv4Header::new(8, 64, IpNumber::UDP, ends.0, ends.1).unwrap();
        header.ecn = IpEcn::try_new(ecn).unwrap();
        tweak(&mut header);
        header.header_checksum = header.calc_header_checksum();
        let mut packet = header.to_bytes().to_vec();
        ports.iter().for_each(|port| packet.extend(port.to_be_bytes()));
        packet.extend([0, 8, 0, 0]);
        packet
    }

    fn ipv6(ecn: u8, ports: [u16; 2]) -> Vec<u8> {
        let header = Ipv6Header {
            traffic_class: 0xa0 | ecn,
            flow_label: Ipv6FlowLabel::ZERO,
            payload_length: 8,
            next_header: IpNumber::UDP,
            hop_limit: 64,
            source: [1; 16],
            destination: [2; 16],
        };
        let mut packet = header.to_bytes().to_vec();
        ports.iter().for_each(|port| packet.extend(port.to_be_bytes()));
        packet.extend([0, 8, 0, 0]);
        packet
    }

    #[test]
    fn a_mark_changes_the_two_bits_and_keeps_the_checksum_right() {
        for ecn in 0..4 {
            for id in 0..2000 {
                let mut packet = ipv4(ecn, [1, 2], |header| header.identification = id * 31);
                assert_eq!(().ecn(&packet), Ecn::from_bits(ecn));
                ().mark(&mut packet);
                assert_eq!(packet, ipv4(3, [1, 2], |header| header.identification = id * 31));
            }
            let mut packet = ipv6(ecn, [1, 2]);
            assert_eq!(().ecn(&packet), Ecn::from_bits(ecn));
            ().mark(&mut packet);
            assert_eq!(packet, ipv6(3, [1, 2]));
        }
    }

    #[test]
    fn ports_make_flows_except_of_fragments() {
        let plain = |ports| ().flow(&ipv4(0, ports, |_| {}));
        assert_eq!(plain([1, 2]), plain([1, 2]));
        assert_ne!(plain([1, 2]), plain([1, 3]));
        let fragment = |ports| ().flow(&ipv4(0, ports, |header| header.more_fragments = true));
        assert_eq!(fragment([1, 2]), fragment([1, 3]));
        assert_ne!(().flow(&ipv6(0, [1, 2])), ().flow(&ipv6(0, [2, 2])));
        // Options are before the ports.
        let options = |ports| ().flow(&ipv4(0, ports, |header| header.options = [1; 4].into()));
        assert_eq!(options([1, 2]), plain([1, 2]));
    }

    #[test]
    fn what_is_no_ip_packet_is_left_as_it_is() {
        let whole = [ipv4(1, [1, 2], |_| {}), ipv6(1, [1, 2]), vec![0xff; 50]];
        for (packet, len) in
            whole.iter().flat_map(|packet| (0..packet.len()).map(move |n| (packet, n)))
        {
            let mut cut = packet[..len].to_vec();
            ().flow(&cut);
            ().ecn(&cut);
            ().mark(&mut cut);
            let is_marked = cut != packet[..len];
            assert_eq!(
                is_marked,
                packet[0] >> 4 == 4 && len >= 20 || packet[0] >> 4 == 6 && len >= 40
            );
        }
    }
}
