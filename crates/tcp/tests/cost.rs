//! The processing cost of a segment of a malicious peer, compared with that of a benign segment of the same size: the table
//! of docs/security.md. `cargo test --release -p rexmit-tcp --test cost -- --ignored --nocapture`

mod kit;

use std::time::Duration;

use kit::*;
use rexmit_core::Machine as _;
use rexmit_testkit::cost::{PACKETS, Table, median, timed};

/// Nearly the largest IP packet.
const LARGE: usize = 60_000;
const BUFFER_BYTES: usize = 4 << 20;
/// The segments in flight where acknowledgements are measured.
const IN_FLIGHT: u32 = 2000;
const SEGMENT_BYTES: u32 = 1460;

fn large(_: &mut EndpointConfig, connection: &mut ConnectionConfig) {
    connection.receive_buffer_bytes = BUFFER_BYTES;
    connection.send_buffer_bytes = 2 * BUFFER_BYTES;
    connection.nagle = false;
}

/// The peer's SYN offers everything.
fn offer(peer: &mut Peer) {
    peer.options.window_scale = Some(7);
    peer.options.sack_permitted = true;
}

fn established() -> Script {
    Script::established_server_with(large, offer)
}

/// A connection with [`IN_FLIGHT`] segments in flight, and how many bytes were acknowledged before.
fn with_segments_in_flight(profile: &str) -> (Script, u32) {
    let recovery = rexmit_tcp::recovery::RecoveryConfig::tcp_profile(profile).expect("it exists");
    let mut s = Script::established_server_with(
        |endpoint, connection| {
            large(endpoint, connection);
            connection.recovery = recovery;
        },
        offer,
    );
    let mut sent_to = 1;
    loop {
        let acked = sent_to;
        let _ = s.try_send(&vec![7; BUFFER_BYTES]);
        while let Some(sent) = s.poll_packet() {
            let end = sent.header.sequence.wrapping_sub(ISS) + sent.payload.len() as u32;
            sent_to = sent_to.max(end);
        }
        if (sent_to - acked) / SEGMENT_BYTES >= IN_FLIGHT {
            return (s, acked);
        }
        assert!(sent_to > acked, "the window does not grow");
        s.arrives(ack(1, sent_to).window(u16::MAX));
    }
}

/// The median processing time of a segment, including the segments and events that it causes, and its length in bytes. Data in
/// order is read after each.
fn cost(s: &mut Script, mut segment: impl FnMut(u32) -> Draft) -> (Duration, usize) {
    cost_of_bytes(s, |s, n| s.peer_segment(&segment(n)))
}

/// The median processing time of a segment of these bytes, and their number.
fn cost_of_bytes(
    s: &mut Script,
    mut segment: impl FnMut(&mut Script, u32) -> Vec<u8>,
) -> (Duration, usize) {
    let mut times = Vec::new();
    let mut len = 0;
    for n in 0..PACKETS {
        let bytes = segment(s, n);
        len = len.max(bytes.len());
        let (time, ()) = timed(|| {
            s.deliver(&bytes);
            while s.poll_packet().is_some() {}
            while s.endpoint.poll_event().is_some() {}
        });
        times.push(time);
        if s.has_connection() {
            s.receive();
        }
    }
    (median(times), len)
}

/// A segment with this many bytes of data from a correct peer, in order.
fn of_data(bytes: usize) -> Duration {
    let payload = vec![7; bytes];
    let mut s = established();
    cost(&mut s, |n| data(1 + n * payload.len() as u32, 1, &payload)).0
}

/// An acknowledgement of one more segment from a correct peer, which has not received the first one.
fn of_acks(profile: &str) -> Duration {
    let (mut s, base) = with_segments_in_flight(profile);
    cost(&mut s, |n| sack(base, &[(base + SEGMENT_BYTES, base + (500 + n) * SEGMENT_BYTES)])).0
}

/// An acknowledgement of everything up to `cumulative`, with SACK blocks.
fn sack(cumulative: u32, blocks: &[(u32, u32)]) -> Draft {
    let mut options = Options::default();
    for &(left, right) in blocks {
        options.sack.push(ISS.wrapping_add(left), ISS.wrapping_add(right));
    }
    ack(1, cumulative).window(u16::MAX).options(options)
}

type Attack = Box<dyn FnMut(u32) -> Draft>;

/// Segments that belong to no connection.
fn of_unknown_senders() -> Vec<(&'static str, Attack)> {
    vec![
        ("a SYN again", Box::new(|_| syn())),
        ("ACK of no connection", Box::new(|n| ack(n, n))),
        ("60,000 bytes of no connection", Box::new(|n| data(n, n, &[7; LARGE]))),
    ]
}

/// Segments of the peer of a connection whose application does not read.
fn of_peers() -> Vec<(&'static str, Attack)> {
    vec![
        ("one byte in order", Box::new(|n| data(1 + n, 1, b"x"))),
        ("one byte with a gap before it", Box::new(|n| data(3 + 2 * n, 1, b"x"))),
        ("one byte from the back", Box::new(|n| data(60_001 - 2 * n, 1, b"x"))),
        ("60,000 bytes received before", Box::new(|_| data(1, 1, &[7; LARGE]))),
        ("60,000 bytes beyond the window", Box::new(|_| data(1 << 30, 1, &[7; LARGE]))),
        ("RST beside the expected number", Box::new(|_| rst(100))),
        ("SYN within the connection", Box::new(|_| syn())),
        ("acknowledgement of data never sent", Box::new(|_| ack(1, 1 << 20))),
    ]
}

/// Acknowledgements of data after `base`, the first byte in flight.
fn of_receivers(base: u32) -> Vec<(&'static str, Attack)> {
    let at = move |segment: u32| base + segment * SEGMENT_BYTES;
    let most = IN_FLIGHT - 10;
    vec![
        ("the same SACK block again", Box::new(move |_| sack(base, &[(at(1), at(most))]))),
        (
            "SACK blocks back and forth",
            Box::new(move |n| {
                let blocks = [(at(n + 2), at(most))];
                sack(at(n.div_ceil(2)), if n % 2 == 0 { &blocks } else { &[] })
            }),
        ),
        ("a SACK block without a gap", Box::new(move |_| sack(base, &[(base, at(most))]))),
        (
            "a SACK block for every second segment, from the back",
            Box::new(move |n| {
                let block = |k: u32| (at(most - 2 * (4 * n + k)), at(most - 2 * (4 * n + k) + 1));
                sack(base, &[block(0), block(1), block(2), block(3)])
            }),
        ),
        (
            "SACK blocks of one byte",
            Box::new(move |n| {
                let block = |k: u32| (at(1 + 4 * n + k) + 7, at(1 + 4 * n + k) + 8);
                sack(base, &[block(0), block(1), block(2), block(3)])
            }),
        ),
        ("one byte acknowledged", Box::new(move |n| sack(base + n, &[]))),
        (
            "window 0 and not 0",
            Box::new(move |n| ack(1, base).window(if n % 2 == 0 { 0 } else { u16::MAX })),
        ),
    ]
}

#[test]
#[ignore = "measures"]
fn segments_cost_at_most_twenty_times_a_benign_one() {
    let mut table = Table::new("segment", &[]);
    let of_size = |bytes: usize| of_data(bytes.saturating_sub(20).max(1));
    // Each from a port of its own.
    let mut s = Script::server();
    let mut ports = 1024_u16..;
    let measured = cost_of_bytes(&mut s, |s, _| {
        s.peer.address.set_port(ports.next().expect("a port"));
        s.peer_segment(&syn())
    });
    table.row("SYN", measured, of_size(measured.1));
    for (name, segment) in of_unknown_senders() {
        let measured = cost(&mut Script::server(), segment);
        table.row(name, measured, of_size(measured.1));
    }
    for (name, mut segment) in of_peers() {
        let mut s = established();
        if name.contains("before") {
            s.arrives(segment(0));
            while s.poll_packet().is_some() {}
        }
        let measured = cost(&mut s, segment);
        table.row(name, measured, of_size(measured.1));
    }
    for profile in ["tcp-sack", "tcp-rr", "tcp-interactive"] {
        let benign = of_acks(profile);
        for index in 0..of_receivers(0).len() {
            let (mut s, base) = with_segments_in_flight(profile);
            let (name, segment) = of_receivers(base).swap_remove(index);
            let measured = cost(&mut s, segment);
            table.row(&format!("{name}, `{profile}`"), measured, benign);
        }
    }
    table.end();
}
