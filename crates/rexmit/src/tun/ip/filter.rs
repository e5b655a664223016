//! Reads IP headers: drops and counts all packets except complete ones for us.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

use etherparse::{IpNumber, Ipv4HeaderSlice, Ipv6HeaderSlice, Ipv6RawExtHeaderSlice};
use rexmit_core::Route;
#[cfg(feature = "serde")]
use serde::Serialize;

/// The fate of received packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[non_exhaustive]
pub struct IpStatistics {
    /// Packets accepted.
    pub accepted: u64,
    /// Packets without a valid IPv4 or IPv6 header: too short, of another version, or with contradictory
    /// lengths.
    pub malformed: u64,
    /// Packets shorter than their header says.
    pub truncated: u64,
    /// Packets with a wrong IPv4 header checksum (RFC 791 §3.1).
    pub wrong_checksum: u64,
    /// Fragments, which are not reassembled.
    pub fragments: u64,
    /// Packets with IPv6 extension headers that are not skipped: routing, authentication and so on.
    pub extension_headers: u64,
    /// Packets of other protocols.
    pub other_protocol: u64,
    /// Packets for other addresses.
    pub other_destination: u64,
    /// Packets from an invalid source address: unspecified, multicast, broadcast or loopback (RFC 1122
    /// §3.2.1.3).
    pub impossible_source: u64,
}

impl IpStatistics {
    /// Packets dropped, for all reasons.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.malformed
            + self.truncated
            + self.wrong_checksum
            + self.fragments
            + self.extension_headers
            + self.other_protocol
            + self.other_destination
            + self.impossible_source
    }
}

/// Accepts packets of one protocol for some addresses, and strips their IP headers.
#[derive(Clone, Debug)]
pub struct PacketFilter {
    protocol: IpNumber,
    local: BTreeSet<IpAddr>,
    statistics: IpStatistics,
}

/// The header fields that both versions have, and the bytes after the header.
struct Packet<'a> {
    source: IpAddr,
    destination: IpAddr,
    protocol: IpNumber,
    payload: &'a [u8],
}

/// The counter of the reason why a packet is dropped.
type Reason = fn(&mut IpStatistics) -> &mut u64;

const MALFORMED: Reason = |statistics| &mut statistics.malformed;
const TRUNCATED: Reason = |statistics| &mut statistics.truncated;
const WRONG_CHECKSUM: Reason = |statistics| &mut statistics.wrong_checksum;
const FRAGMENT: Reason = |statistics| &mut statistics.fragments;
const EXTENSION_HEADER: Reason = |statistics| &mut statistics.extension_headers;
const OTHER_PROTOCOL: Reason = |statistics| &mut statistics.other_protocol;
const OTHER_DESTINATION: Reason = |statistics| &mut statistics.other_destination;
const IMPOSSIBLE_SOURCE: Reason = |statistics| &mut statistics.impossible_source;

impl PacketFilter {
    /// A filter for the protocol with this number (6 for TCP), and for the addresses `local`.
    #[must_use]
    pub fn new(protocol: u8, local: impl IntoIterator<Item = IpAddr>) -> Self {
        Self {
            protocol: IpNumber(protocol),
            local: local.into_iter().collect(),
            statistics: IpStatistics::default(),
        }
    }

    /// The addresses for which packets are accepted.
    #[must_use]
    pub const fn local(&self) -> &BTreeSet<IpAddr> {
        &self.local
    }

    /// The payload of an IP packet, and its route as seen from here, with ports 0. `None` if the packet is
    /// not for us or not complete, which is counted. Bytes after the end of the IP packet are ignored.
    pub fn accept<'a>(&mut self, packet: &'a [u8]) -> Option<(Route, &'a [u8])> {
        match self.check(packet) {
            Ok(Packet { source, destination, payload, .. }) => {
                self.statistics.accepted += 1;
                let route = Route { local: (destination, 0).into(), remote: (source, 0).into() };
                Some((route, payload))
            }
            Err(reason) => {
                *reason(&mut self.statistics) += 1;
                None
            }
        }
    }

    /// The present counters.
    #[must_use]
    pub const fn statistics(&self) -> &IpStatistics {
        &self.statistics
    }

    fn check<'a>(&self, bytes: &'a [u8]) -> Result<Packet<'a>, Reason> {
        let packet = match bytes.first().map(|first| first >> 4) {
            Some(4) => ipv4(bytes)?,
            Some(6) => ipv6(bytes)?,
            _ => return Err(MALFORMED),
        };
        match () {
            () if packet.protocol != self.protocol => Err(OTHER_PROTOCOL),
            () if !self.local.contains(&packet.destination) => Err(OTHER_DESTINATION),
            () if is_impossible(packet.source) => Err(IMPOSSIBLE_SOURCE),
            () => Ok(packet),
        }
    }
}

fn ipv4(bytes: &[u8]) -> Result<Packet<'_>, Reason> {
    let header = Ipv4HeaderSlice::from_slice(bytes).map_err(|_| MALFORMED)?;
    if !is_sum_right(header.slice()) {
        return Err(WRONG_CHECKSUM);
    }
    let (start, end) = (header.slice().len(), usize::from(header.total_len()));
    if end < start {
        return Err(MALFORMED);
    }
    let payload = bytes.get(start..end).ok_or(TRUNCATED)?;
    if header.is_fragmenting_payload() {
        return Err(FRAGMENT);
    }
    Ok(Packet {
        source: header.source_addr().into(),
        destination: header.destination_addr().into(),
        protocol: header.protocol(),
        payload,
    })
}

/// Whether the checksum of an IPv4 header is right: the ones' complement sum over the header is then all ones
/// (RFC 791 §3.1, RFC 1071).
fn is_sum_right(header: &[u8]) -> bool {
    // At most 30 words: no overflow.
    let words = header.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
    let sum: u32 = words.map(u32::from).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    folded == 0xffff
}

fn ipv6(bytes: &[u8]) -> Result<Packet<'_>, Reason> {
    let header = Ipv6HeaderSlice::from_slice(bytes).map_err(|_| MALFORMED)?;
    let start = header.slice().len();
    let end = start + usize::from(header.payload_length());
    let mut payload = bytes.get(start..end).ok_or(TRUNCATED)?;
    let mut protocol = header.next_header();
    // Options for nodes on the way and for the destination mean nothing here (RFC 8200 §4).
    while let IpNumber::IPV6_HEADER_HOP_BY_HOP | IpNumber::IPV6_DESTINATION_OPTIONS = protocol {
        let options = Ipv6RawExtHeaderSlice::from_slice(payload).map_err(|_| MALFORMED)?;
        protocol = options.next_header();
        payload = &payload[options.slice().len()..];
    }
    match protocol {
        IpNumber::IPV6_FRAGMENTATION_HEADER => Err(FRAGMENT),
        other if other.is_ipv6_ext_header_value() => Err(EXTENSION_HEADER),
        protocol => Ok(Packet {
            source: header.source_addr().into(),
            destination: header.destination_addr().into(),
            protocol,
            payload,
        }),
    }
}

fn is_impossible(source: IpAddr) -> bool {
    source.is_unspecified()
        || source.is_multicast()
        || source.is_loopback()
        || source == IpAddr::V4(Ipv4Addr::BROADCAST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tun::ip::HeaderConfig;

    const PAYLOAD: &[u8] = b"twelve bytes";

    fn route(source: &str, destination: &str) -> Route {
        let address = |text: &str| (text.parse::<IpAddr>().unwrap(), 0).into();
        Route { local: address(source), remote: address(destination) }
    }

    fn packet(route: Route) -> Vec<u8> {
        let header = HeaderConfig::new(6).header(route, PAYLOAD.len()).unwrap();
        [&header, PAYLOAD].concat()
    }

    fn v4() -> Vec<u8> {
        packet(route("10.0.0.1", "10.0.0.2"))
    }

    fn v6() -> Vec<u8> {
        packet(route("fd00::1", "fd00::2"))
    }

    /// Writes the checksum of a changed header.
    fn summed(mut packet: Vec<u8>) -> Vec<u8> {
        packet[10..12].fill(0);
        let header_bytes = usize::from(packet[0] & 0xf) * 4;
        let words = packet[..header_bytes].chunks(2);
        let sum: u32 = words.map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
        let sum = (sum & 0xffff) + (sum >> 16);
        packet[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
        packet
    }

    fn changed(mut packet: Vec<u8>, at: usize, to: u8) -> Vec<u8> {
        packet[at] = to;
        if packet[0] >> 4 == 4 && packet.len() >= 20 && packet[0] & 0xf >= 5 {
            packet = summed(packet);
        }
        packet
    }

    fn filter() -> PacketFilter {
        let local = ["10.0.0.2", "fd00::2"].map(|text| text.parse().unwrap());
        PacketFilter::new(6, local)
    }

    #[test]
    fn our_packets_pass_the_kernel_in_both_families() {
        let mut filter = filter();
        for (packet, from, to) in [(v4(), "10.0.0.1", "10.0.0.2"), (v6(), "fd00::1", "fd00::2")] {
            assert_eq!(filter.accept(&packet), Some((route(to, from), PAYLOAD)));
            // Padding of a link layer is not the packet's.
            let padded = [&packet[..], &[0; 9]].concat();
            assert_eq!(filter.accept(&padded), Some((route(to, from), PAYLOAD)));
        }
        assert_eq!(filter.statistics().accepted, 4);
    }

    #[test]
    fn options_are_skipped() {
        // RFC 791 §3.1: a longer header; RFC 8200 §4: hop-by-hop, then destination options.
        let mut options = v4();
        options.splice(20..20, [1; 8]);
        options[0] = 0x47;
        options[3] += 8;
        let mut extended = v6();
        extended.splice(40..40, [[60, 0, 1, 4, 0, 0, 0, 0], [6, 0, 1, 4, 0, 0, 0, 0]].concat());
        extended[5] += 16;
        extended[6] = 0;
        for packet in [summed(options), extended] {
            let mut filter = filter();
            assert_eq!(filter.accept(&packet).expect("accepted").1, PAYLOAD);
        }
    }

    #[test]
    fn each_fault_has_its_counter() {
        let flipped = |mut packet: Vec<u8>, at: usize, bits: u8| {
            packet[at] ^= bits;
            packet
        };
        let extension = |kind: u8, bytes: &[u8]| {
            let mut packet = v6();
            packet.splice(40..40, bytes.iter().copied());
            packet[5] += bytes.len() as u8;
            packet[6] = kind;
            packet
        };
        let table: [(&str, Vec<u8>, Reason); 23] = [
            ("nothing", vec![], MALFORMED),
            ("version 5", changed(v4(), 0, 0x55), MALFORMED),
            ("19 bytes", v4()[..19].to_vec(), MALFORMED),
            ("39 bytes", v6()[..39].to_vec(), MALFORMED),
            ("a header of 16 bytes", changed(v4(), 0, 0x44), MALFORMED),
            ("a header of 60 bytes", flipped(v4(), 0, 0x0a), MALFORMED),
            ("a total length of 19", changed(v4(), 3, 19), MALFORMED),
            ("options past the end", extension(0, &[6, 9, 0, 0, 0, 0, 0, 0]), MALFORMED),
            ("a byte too few (4)", v4()[..31].to_vec(), TRUNCATED),
            ("a byte too few (6)", v6()[..51].to_vec(), TRUNCATED),
            ("a flipped bit", flipped(v4(), 8, 1), WRONG_CHECKSUM),
            ("a flipped checksum", flipped(v4(), 11, 1), WRONG_CHECKSUM),
            ("more fragments", changed(v4(), 6, 0x20), FRAGMENT),
            ("a last fragment", changed(v4(), 7, 1), FRAGMENT),
            ("a fragment (6)", extension(44, &[6, 0, 0, 1, 0, 0, 0, 1]), FRAGMENT),
            ("a routing header", extension(43, &[6, 0, 4, 1, 0, 0, 0, 0]), EXTENSION_HEADER),
            ("UDP (4)", changed(v4(), 9, 17), OTHER_PROTOCOL),
            ("ICMPv6", changed(v6(), 6, 58), OTHER_PROTOCOL),
            ("another host (4)", changed(v4(), 19, 3), OTHER_DESTINATION),
            ("another host (6)", changed(v6(), 39, 3), OTHER_DESTINATION),
            ("from everybody", packet(route("255.255.255.255", "10.0.0.2")), IMPOSSIBLE_SOURCE),
            ("from a group", packet(route("ff02::1", "fd00::2")), IMPOSSIBLE_SOURCE),
            ("from nobody", packet(route("0.0.0.0", "10.0.0.2")), IMPOSSIBLE_SOURCE),
        ];
        for (what, packet, reason) in table {
            let mut filter = filter();
            assert_eq!(filter.accept(&packet), None, "{what}");
            let mut expected = IpStatistics::default();
            *reason(&mut expected) = 1;
            assert_eq!(filter.statistics(), &expected, "{what}");
            assert_eq!(expected.dropped(), 1, "{what}");
        }
    }
}
