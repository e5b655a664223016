//! The receive window (RFC 9260 §6.2).

use rexmit_sctp::Event;

use crate::kit::*;

/// A receiver of 8 KiB. The peer's chunks are of 1000 bytes.
fn small() -> Script {
    Script::established_server_with(|_, association| {
        association.buffers.receive_bytes = 8_192;
        association.messages.max_bytes = 4_096;
        association.sack.delay = std::time::Duration::ZERO;
    })
}

impl Script {
    /// Chunk `n` arrives. Returns the cumulative TSN (as a number) and the window of the SACK.
    #[track_caller]
    fn chunk(&mut self, n: u16) -> (u32, u32) {
        let payload = [0; 1_000];
        self.peer_sends([Data(data(n, &payload))]);
        expect_packet!(self, [Sack(sack)] =>
            (sack.cumulative_tsn_ack.wrapping_sub(FIRST_TSN), sack.a_rwnd))
    }
}

/// RFC 9260 §6.2 B, C, D.
#[test]
fn the_window_shrinks_by_held_data_and_grows_by_read_data() {
    let mut s = small();
    assert_eq!(s.chunk(0), (0, 7_192));
    assert_eq!(s.chunk(1), (1, 6_192));
    s.receive().expect("a message");
    assert_eq!(s.chunk(2), (2, 6_192));
}

/// RFC 9260 §6.2, RFC 1122 §4.2.3.3: a window of less than a packet is only reduced, never increased.
#[test]
fn a_silly_window_is_not_offered() {
    let mut s = small();
    let windows: Vec<u32> = (0..7).map(|n| s.chunk(n).1).collect();
    assert_eq!(windows, [7_192, 6_192, 5_192, 4_192, 3_192, 2_192, 1_192]);
    s.peer_sends([Data(data(7, &[0; 1_100]))]);
    expect_packet!(s, [Sack(sack)] if sack.a_rwnd == 92);
    s.receive().expect("a message, after which there is room for 1092 bytes");
    s.peer_sends([Data(data(8, &[0; 50]))]);
    expect_packet!(s, [Sack(sack)] if sack.a_rwnd == 42);
    s.receive().expect("a message, after which there is room for a packet");
    s.peer_sends([Data(data(9, &[0; 40]))]);
    expect_packet!(s, [Sack(sack)] if sack.a_rwnd == 2_002);
}

/// The pieces of one message leave less than a packet of room in the buffer. The application cannot make room, so a
/// window for the rest of the message is advertised.
#[test]
fn the_rest_of_a_message_is_accepted_though_little_room_is_left() {
    let mut s = Script::established_server_with(|_, association| {
        association.buffers.receive_bytes = 4_096;
        association.messages.max_bytes = 4_096;
        association.sack.delay = std::time::Duration::ZERO;
    });
    let whole = data(0, &[0; 1_000]).flags;
    for (n, len, window) in
        [(0, 1_000, 3_096), (1, 1_000, 2_096), (2, 996, 1_232), (3, 1_000, 1_232)]
    {
        let payload = [0; 1_000];
        let flags = wire::DataFlags { beginning: n == 0, ending: false, ..whole };
        s.peer_sends([Data(wire::Data { flags, ssn: 0, ..data(n, &payload[..len]) })]);
        expect_packet!(s, [Sack(sack)] if
            (sack.cumulative_tsn_ack, sack.a_rwnd) == (tsn(n.into()), window));
    }
    let flags = wire::DataFlags { beginning: false, ending: true, ..whole };
    s.peer_sends([Data(wire::Data { flags, ssn: 0, ..data(4, &[0; 100]) })]);
    expect_packet!(s, [Sack(sack)] if sack.cumulative_tsn_ack == tsn(4));
    assert_eq!(s.receive().expect("a message").len(), 4_096);
    expect_packet!(s, [Sack(sack)] if sack.a_rwnd == 4_096);
}

/// RFC 9260 §6.2: new data is dropped while the buffer is full; a SACK that does not cover it is sent at once.
#[test]
fn a_full_receiver_drops_new_data_and_sends_a_sack_at_once() {
    let mut s = small();
    for n in 0..9 {
        s.chunk(n);
    }
    assert_eq!(s.chunk(9), (8, 0));
    assert_eq!(s.chunk(9), (8, 0), "and again when it probes");
    assert_eq!(s.statistics().traffic.chunks_dropped, 2);
    assert_eq!(s.statistics().receive_buffered_bytes, 9_000);
}

/// RFC 9260 §6.2: "MUST immediately send back a SACK chunk", though acknowledgements are delayed.
#[test]
fn dropped_data_is_answered_without_the_usual_delay() {
    let mut s = Script::established_server_with(|_, association| {
        association.buffers.receive_bytes = 8_192;
        association.messages.max_bytes = 4_096;
    });
    let payload = [0; 1_000];
    for n in 0..9 {
        s.peer_sends([Data(data(n, &payload))]);
        s.poll_packet();
    }
    for _ in 0..2 {
        assert_eq!(s.chunk(9), (8, 0));
    }
}

/// RFC 9260 §6.2: a full receiver accepts missing chunks below the highest TSN received, and drops nothing that it has
/// acknowledged.
#[test]
fn a_full_receiver_accepts_chunks_that_close_a_gap() {
    let mut s = small();
    s.chunk(0);
    for n in 2..10 {
        assert_eq!(s.chunk(n).0, 0);
    }
    assert_eq!(s.chunk(10), (0, 0), "beyond the highest: dropped");
    assert_eq!(s.chunk(1), (9, 0), "it closes the gap");
    let read = std::iter::from_fn(|| s.receive()).count();
    assert_eq!(read, 10);
    expect_packet!(s, [Sack(sack)] if sack.a_rwnd == 8_192);
}

/// RFC 9260 §6.2: the window update is sent when a quarter of the buffer is free, once.
#[test]
fn a_closed_window_that_opens_by_a_quarter_is_advertised() {
    let mut s = small();
    for n in 0..8 {
        s.chunk(n);
    }
    s.receive().expect("a message");
    s.expect_silence();
    s.receive().expect("a message");
    s.receive().expect("a message");
    expect_packet!(s, [Sack(sack)] if sack.a_rwnd == 3_192 && sack.cumulative_tsn_ack == tsn(7));
    while s.receive().is_some() {}
    s.expect_silence_until(5_000);
}

/// A window that was never closed needs no update.
#[test]
fn a_window_that_never_closed_is_not_updated() {
    let mut s = small();
    for n in 0..5 {
        s.chunk(n);
    }
    while s.receive().is_some() {}
    s.expect_silence_until(5_000);
}

/// Readable is reported once until the application has read everything.
#[test]
fn readable_is_reported_once_until_everything_was_read() {
    let mut s = small();
    s.chunk(0);
    s.chunk(1);
    assert_eq!(s.events(), [Event::Readable]);
    while s.receive().is_some() {}
    s.chunk(2);
    assert_eq!(s.events(), [Event::Readable]);
}
