//! The filter of IP packets: each packet is accepted or dropped, and counted once; accepted packets have the header
//! that we would have written.

use std::net::IpAddr;

use rexmit::tun::ip::{HeaderConfig, PacketFilter};

use bolero::{TypeGenerator, check};

/// The number of random inputs per target in `cargo test`.
const ITERATIONS: usize = 20_000;

const PROTOCOL: u8 = 6;

fn local(is_ipv6: bool) -> IpAddr {
    if is_ipv6 { "fd00::2".parse().unwrap() } else { "10.0.0.2".parse().unwrap() }
}

/// Passes a packet to a filter, and checks invariants.
fn offer(bytes: &[u8]) -> bool {
    let mut filter = PacketFilter::new(PROTOCOL, [local(false), local(true)]);
    let accepted = filter.accept(bytes);
    let counts = *filter.statistics();
    assert_eq!(counts.accepted + counts.dropped(), 1);
    assert_eq!(counts.accepted == 1, accepted.is_some());
    let Some((route, payload)) = accepted else { return false };
    assert!(filter.local().contains(&route.local.ip()));
    assert_eq!(route.local.is_ipv4(), route.remote.is_ipv4());
    let header = HeaderConfig::new(PROTOCOL).header(route.reversed(), payload.len()).unwrap();
    let again = [&header, payload].concat();
    let mut filter = PacketFilter::new(PROTOCOL, [route.local.ip()]);
    assert_eq!(filter.accept(&again), Some((route, payload)));
    true
}

#[test]
fn arbitrary_ip_bytes() {
    check!().with_iterations(ITERATIONS).for_each(|bytes| {
        offer(bytes);
    });
}

/// A packet that is correct, or nearly so.
#[derive(Debug, TypeGenerator)]
struct Draft {
    is_ipv6: bool,
    source: [u8; 16],
    extensions: Vec<(u8, [u8; 6])>,
    payload: Vec<u8>,
    /// A byte that is changed afterwards: its offset, and the value.
    damage: Option<(u16, u8)>,
    cut: u8,
}

impl Draft {
    fn bytes(&self) -> Vec<u8> {
        let source: IpAddr = if self.is_ipv6 {
            self.source.into()
        } else {
            [self.source[0], self.source[1], self.source[2], self.source[3]].into()
        };
        let mut payload = Vec::new();
        let mut first = PROTOCOL;
        if self.is_ipv6 {
            let mut kinds = self.extensions.iter().map(|(kind, _)| extension(*kind));
            first = kinds.next().unwrap_or(PROTOCOL);
            for (_, data) in &self.extensions {
                payload.push(kinds.next().unwrap_or(PROTOCOL));
                payload.push(0);
                payload.extend(data);
            }
        }
        payload.extend(&self.payload);
        let route = rexmit::tun::ip::Route {
            local: (source, 0).into(),
            remote: (local(self.is_ipv6), 0).into(),
        };
        let header = HeaderConfig::new(first).header(route, payload.len()).unwrap();
        let mut packet = [&header, &payload[..]].concat();
        if let Some((at, bits)) = self.damage {
            let at = usize::from(at) % packet.len();
            packet[at] ^= bits;
        }
        packet.truncate(packet.len() - usize::from(self.cut & 1));
        packet
    }
}

/// The IPv6 extension header of this number: usually one that is skipped.
const fn extension(kind: u8) -> u8 {
    match kind % 8 {
        0..3 => 0,
        3..6 => 60,
        6 => 44,
        _ => kind,
    }
}

#[test]
fn nearly_valid_ip_packets() {
    let accepted = std::sync::atomic::AtomicUsize::new(0);
    check!().with_type::<Draft>().with_iterations(ITERATIONS).for_each(|draft| {
        if offer(&draft.bytes()) {
            accepted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    });
    assert!(accepted.into_inner() > 0, "no draft was right");
}
