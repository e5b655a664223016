//! The memory of a connection is the number of bytes in its counters plus a stated overhead (docs/security.md). A
//! counting allocator measures it for each pattern of segments with which few bytes could occupy much memory.

mod kit;

use kit::*;
use rexmit_core::Machine as _;

/// The receive buffer and the send buffer of every script.
const BUFFER_BYTES: usize = 1024 * 1024;
/// The overhead of each segment that waits beyond a gap, as docs/security.md states it.
const HELD_BYTES: usize = 64;
const MAX_HELD_SEGMENTS: usize = 4096;
/// The overhead of a connection, whatever it holds.
const CONNECTION_BYTES: usize = 8 * 1024;

fn large(_: &mut EndpointConfig, connection: &mut ConnectionConfig) {
    connection.receive_buffer_bytes = BUFFER_BYTES;
    connection.send_buffer_bytes = BUFFER_BYTES;
    connection.max_held_segments = MAX_HELD_SEGMENTS;
}

/// An established connection whose windows are scaled, so that the whole buffer is offered.
fn established() -> Script {
    let mut s = Script::with(large);
    s.peer.options.window_scale = Some(7);
    s.peer_connects();
    discard(&mut s);
    s
}

/// Discards the segments and events of the endpoint.
fn discard(s: &mut Script) {
    while s.poll_packet().is_some() {}
    while s.endpoint.poll_event().is_some() {}
}

/// Measures the memory that is still allocated after `act`, and compares it with the bytes in the counters. A ring
/// buffer may take twice these bytes, but not more than the configured buffer.
#[track_caller]
fn expect_bounded(s: &mut Script, most_held: usize, act: impl FnOnce(&mut Script)) {
    let held = allocation_counter::measure(|| act(s)).bytes_current;
    let charged = s.statistics().receive_buffered_bytes;
    let bound = (2 * charged).min(BUFFER_BYTES) + most_held * HELD_BYTES + CONNECTION_BYTES;
    eprintln!("{held} bytes held, {charged} charged, bound {bound}");
    assert!(charged <= BUFFER_BYTES, "{charged} bytes charged");
    assert!(held <= bound as i64, "{held} bytes held, {charged} charged, bound {bound}");
}

#[test]
fn bytes_that_are_not_read_use_no_more_than_the_buffer() {
    let mut s = established();
    expect_bounded(&mut s, 0, |s| {
        for n in 0..2000 {
            s.arrives(data(1 + n * 1000, 1, &[7; 1000]));
            discard(s);
        }
    });
    assert!(s.statistics().receive_buffered_bytes > BUFFER_BYTES - 1000, "the window was used up");
}

/// One byte per segment, in order.
#[test]
fn segments_of_one_byte_use_only_their_bytes() {
    const COUNT: u32 = 20_000;
    let mut s = established();
    expect_bounded(&mut s, 0, |s| {
        for n in 0..COUNT {
            s.arrives(data(1 + n, 1, b"x"));
            discard(s);
        }
    });
    assert_eq!(s.statistics().receive_buffered_bytes, COUNT as usize);
}

/// Every second segment, and of one byte each: as many runs beyond gaps as may be held.
#[test]
fn every_second_byte_takes_a_bounded_overhead() {
    let mut s = established();
    expect_bounded(&mut s, MAX_HELD_SEGMENTS, |s| {
        for n in 1..2 * MAX_HELD_SEGMENTS as u32 {
            s.arrives(data(1 + 2 * n, 1, b"x"));
            discard(s);
        }
    });
}

/// The same in descending order, at the largest distance of each other.
#[test]
fn bytes_that_arrive_from_the_back_take_a_bounded_overhead() {
    let mut s = established();
    expect_bounded(&mut s, MAX_HELD_SEGMENTS, |s| {
        for n in (1..MAX_HELD_SEGMENTS as u32).rev() {
            s.arrives(data(1 + 250 * n, 1, b"x"));
            discard(s);
        }
    });
}

/// Much data beyond a gap, which then closes, and which the application reads: nothing is left once the connection is
/// idle.
#[test]
fn memory_is_released_when_everything_is_read() {
    let mut s = established();
    let held = allocation_counter::measure(|| {
        s.arrives(data(1, 1, b"x"));
        assert_eq!(s.receive(), b"x");
        discard(&mut s);
        s.at(1000);
        discard(&mut s);
        for round in 0..3 {
            let first = 2 + round * 500_000;
            for n in (0..500).rev() {
                s.arrives(data(first + n * 1000, 1, &[7; 1000]));
                discard(&mut s);
            }
            assert_eq!(s.receive().len(), 500_000, "round {round}");
            discard(&mut s);
        }
        s.at(120_000);
        discard(&mut s);
    });
    let held = held.bytes_current;
    eprintln!("{held} bytes held");
    assert!(held <= CONNECTION_BYTES as i64, "{held} bytes held when nothing is buffered");
}

/// One byte at the far end of the window of each of many connections: the counters include the gap before the byte.
#[test]
fn many_connections_hold_what_each_is_charged() {
    const COUNT: u16 = 200;
    let mut s = Script::with(large);
    s.peer.options.window_scale = Some(7);
    let mut ids = Vec::new();
    let held = allocation_counter::measure(|| {
        for n in 0..COUNT {
            let from = address(2, 10_000 + n);
            s.arrives_from(from, syn());
            while s.poll_packet().is_some() {}
            s.arrives_from(from, ack(1, 1));
            s.arrives_from(from, data(60_000, 1, b"x"));
            while s.poll_packet().is_some() {}
            while let Some((id, event)) = s.endpoint.poll_event() {
                if matches!(event, Event::Connected { .. }) {
                    ids.push(id);
                }
            }
        }
    });
    assert_eq!(ids.len(), usize::from(COUNT));
    let charged = ids.iter().map(|&id| s.endpoint.statistics(id).unwrap().receive_buffered_bytes);
    let charged: usize = charged.sum();
    let (held, bound) = (held.bytes_current, 2 * charged + usize::from(COUNT) * CONNECTION_BYTES);
    eprintln!("{held} bytes held, {charged} charged, bound {bound}");
    assert!(charged >= usize::from(COUNT) * 60_000, "{charged}");
    assert!(held <= bound as i64, "{held} bytes held, {charged} charged, bound {bound}");
}

/// Segments of one byte to a peer that first acknowledges everything, so that cwnd grows, and then nothing.
#[test]
fn segments_of_one_byte_that_are_not_acknowledged_are_bounded() {
    let mut s = Script::established_server_with(
        |endpoint, connection| {
            large(endpoint, connection);
            connection.nagle = false;
        },
        |peer| peer.options.window_scale = Some(7),
    );
    let mut acked = 1;
    while acked < 4 * BUFFER_BYTES as u32 {
        let _ = s.try_send(&[7; 1 << 16]);
        while let Some(sent) = s.poll_packet() {
            acked = acked.max(sent.header.sequence.wrapping_sub(ISS) + sent.payload.len() as u32);
        }
        s.arrives(ack(1, acked).window(u16::MAX));
    }
    while let Some(sent) = s.poll_packet() {
        acked = acked.max(sent.header.sequence.wrapping_sub(ISS) + sent.payload.len() as u32);
    }
    s.arrives(ack(1, acked).window(u16::MAX));
    let mut segments = 0;
    let held = allocation_counter::measure(|| {
        while s.try_send(b"x") == Ok(1) {
            while s.poll_packet().is_some() {
                segments += 1;
            }
        }
    });
    let (held, charged) = (held.bytes_current, s.statistics().send_buffered_bytes);
    eprintln!("{held} bytes held, {charged} charged, {segments} segments");
    assert_eq!(charged, BUFFER_BYTES);
    assert!(segments < 3000, "{segments} segments");
    // The buffer of the bytes was allocated before.
    assert!(held <= segments * 256, "{held} bytes held for {segments} segments");
}
