//! TIME-WAIT (RFC 9293 §3.10.7.4, RFC 6191, RFC 1337): which segments are answered, which are ignored, and which begin
//! a new connection.

mod kit;

use kit::*;

/// A server that finished first, in TIME-WAIT since 0 ms: SND.NXT is 2, RCV.NXT is 2.
fn waiting_with(
    change: impl FnOnce(&mut EndpointConfig, &mut ConnectionConfig),
    change_peer: impl FnOnce(&mut Peer),
) -> Script {
    let mut s = Script::established_server_with(change, change_peer);
    wait(&mut s);
    s
}

fn waiting() -> Script {
    waiting_with(|_, _| (), |_| ())
}

/// The application finishes first, then the peer.
#[track_caller]
fn wait(s: &mut Script) {
    s.finish();
    s.expect(fin(1, 1));
    s.arrives(fin(1, 2));
    s.expect(ack(2, 2));
    let events = s.events();
    assert_eq!(events.last(), Some(&Event::Closed(CloseReason::Finished)));
    assert_eq!(s.try_receive(1), Ok(vec![]));
    assert_eq!(s.next_event(), None);
    assert_eq!((s.endpoint.connection_count(), s.endpoint.time_wait_count()), (0, 1));
}

/// Timestamps of the peer, negotiated in its SYN.
fn stamped(peer: &mut Peer) {
    let stamps = Timestamps { value: 1000, echo_reply: 0 };
    peer.options.timestamps = Some(stamps);
    peer.timestamps = Some(stamps);
}

fn syn_stamped(seq: u32, value: u32) -> Draft {
    let timestamps = Some(Timestamps { value, echo_reply: 0 });
    Draft { seq, ..syn() }.options(Options { timestamps, ..Options::default() })
}

#[test]
fn a_repeated_fin_is_acknowledged_and_restarts_time_wait() {
    let mut s = waiting();
    s.at(50_000).arrives(fin(1, 2));
    s.expect(ack(2, 2));
    s.at(60_000).expect_silence();
    assert_eq!(s.endpoint.time_wait_count(), 1);
    s.expect_silence_until(109_999);
    assert_eq!(s.endpoint.time_wait_count(), 1);
    s.expect_silence_until(110_000);
    assert_eq!((s.endpoint.time_wait_count(), s.next_timeout_ms()), (0, None));
    s.arrives(fin(1, 2));
    s.expect(rst(2));
}

/// RFC 1337 §3 (F1).
#[test]
fn a_rst_does_not_end_the_wait() {
    let mut s = waiting();
    for seq in [0, 1, 2, 3] {
        s.arrives(rst(seq));
        s.arrives(rst_ack(seq, 2));
    }
    s.expect_silence();
    assert_eq!(s.endpoint.time_wait_count(), 1);
}

#[test]
fn unacceptable_segments_are_acknowledged_and_an_acceptable_ack_is_not() {
    let mut s = waiting();
    s.arrives(ack(2, 2));
    s.expect_silence();
    for old in [data(1, 1, b"x"), data(2, 2, b"new"), ack(1, 2), syn_ack(), fin(77, 2)] {
        s.arrives(old);
        s.expect(ack(2, 2));
    }
    assert_eq!(s.counted().time_wait.acks_sent, 5);
    // None of these segments was a retransmitted FIN, so TIME-WAIT was not restarted.
    s.at(60_000);
    assert_eq!(s.endpoint.time_wait_count(), 0);
}

#[test]
fn acknowledgements_are_limited_per_second() {
    let mut s = waiting_with(|config, _| config.out_of_the_blue_responses_per_second = 100, |_| ());
    let answers = (0..1000).filter(|_| {
        s.arrives(data(1, 1, b"x"));
        s.poll_packet().is_some()
    });
    let answers = answers.count();
    assert!((50..=150).contains(&answers), "{answers}");
}

/// The ACK lets the peer end its connection; RSTs go to peers without one.
#[test]
fn acknowledgements_do_not_share_the_limit_of_resets() {
    let mut s = waiting_with(|config, _| config.out_of_the_blue_responses_per_second = 10, |_| ());
    for port in 1000..1100 {
        s.arrives_from(address(3, port), ack(1, 1));
        s.poll_packet();
    }
    assert!(s.counted().out_of_the_blue_responses_suppressed > 50);
    s.arrives(fin(1, 2));
    s.expect(ack(2, 2));
}

#[test]
fn an_ack_in_time_wait_has_timestamps_if_the_connection_had_them() {
    let mut s = waiting_with(|_, _| (), stamped);
    s.at(7).arrives(fin(1, 2));
    let sent = s.expect(ack(2, 2));
    assert_eq!(sent.header.options.timestamps.map(|stamps| stamps.echo_reply), Some(1000));
}

#[test]
fn a_syn_that_is_later_reopens_and_another_does_not() {
    for (seq, is_later) in [(0, false), (1, false), (2, false), (3, true), (0x7FFF_0000, true)] {
        let mut s = waiting();
        s.arrives(Draft { seq, ..syn() });
        let sent = s.next_packet();
        let is_reopened = sent.header.flags.has(Flags::SYN);
        assert_eq!(is_reopened, is_later, "{seq}");
        assert_eq!(s.endpoint.time_wait_count(), usize::from(!is_later));
        if is_later {
            // Its sequence numbers begin after those of the connection before.
            assert_eq!(sent.header.sequence, ISS.wrapping_add(3));
            s.peer.endpoint_iss = sent.header.sequence;
            s.peer.iss = PEER_ISS.wrapping_add(seq);
            s.arrives(ack(1, 1));
            expect_event!(s, Event::Connected { incoming: true, .. });
            assert_eq!(s.counted().time_wait.reopened, 1);
        }
    }
}

/// RFC 6191 §2.
#[test]
fn timestamps_identify_a_later_syn_with_any_sequence_number() {
    for (seq, value, is_later) in [
        (0, 1001, true),
        (77, 1001, true),
        (77, 1000, true),
        (0, 1000, false),
        (77, 999, false),
        (0x9000_0000, 1001, true),
    ] {
        let mut s = waiting_with(|_, _| (), stamped);
        s.arrives(syn_stamped(seq, value));
        let is_reopened = s.next_packet().header.flags.has(Flags::SYN);
        assert_eq!(is_reopened, is_later, "{seq} {value}");
    }
    // If one side has no timestamps, sequence numbers decide.
    let mut s = waiting_with(|_, _| (), stamped);
    s.arrives(Draft { seq: 0, ..syn() });
    s.expect(ack(2, 2));
}

/// RFC 6191 §2: late segments of the old connection have no timestamps, and are dropped.
#[test]
fn a_syn_with_timestamps_is_later_than_a_connection_without_if_we_use_them() {
    let mut s = waiting();
    s.arrives(syn_stamped(0, 5000));
    assert!(s.next_packet().header.flags.has(Flags::SYN));
    let mut s = waiting_with(|_, connection| connection.timestamps = false, |_| ());
    s.arrives(syn_stamped(0, 5000));
    s.expect(ack(2, 2));
}

#[test]
fn nothing_reopens_without_a_listener_or_room_for_a_connection() {
    let mut s = waiting();
    s.endpoint.stop_listening(PORT);
    s.arrives(Draft { seq: 77, ..syn() });
    s.expect(ack(2, 2));
    let mut s = waiting_with(|config, _| config.max_connections = 1, |_| ());
    s.arrives_from(address(3, 1), syn());
    s.next_packet();
    s.arrives(Draft { seq: 77, ..syn() });
    s.expect_silence();
    assert_eq!(s.endpoint.time_wait_count(), 1);
    // When there is room, it does.
    s.arrives_from(address(3, 1), rst(1));
    s.expect_silence();
    s.arrives(Draft { seq: 77, ..syn() });
    assert!(s.next_packet().header.flags.has(Flags::SYN));
}

/// A SYN cookie as ISS might not be above the old connection's sequence numbers, and the peer has proved its address in
/// that connection. The new connection replaces the old one.
#[test]
fn a_full_backlog_does_not_prevent_reopening() {
    let mut s = waiting_with(|config, _| config.syn_backlog = 1, |_| ());
    s.arrives_from(address(3, 1), syn());
    s.next_packet();
    s.arrives(Draft { seq: 77, ..syn() });
    let sent = s.next_packet();
    assert_eq!(sent.header.sequence, ISS.wrapping_add(3));
    s.peer.endpoint_iss = sent.header.sequence;
    s.peer.iss = PEER_ISS.wrapping_add(77);
    s.arrives(ack(1, 1));
    expect_event!(s, Event::Connected { incoming: true, .. });
    let counted = s.counted();
    assert_eq!((counted.time_wait.reopened, counted.cookies.sent), (1, 0));
    assert_eq!((s.endpoint.time_wait_count(), s.endpoint.connection_count()), (0, 2));
}

#[test]
fn beyond_the_limit_the_oldest_is_forgotten() {
    let mut s = Script::with(|config, _| config.max_time_wait = 2);
    for n in 0..3u16 {
        s.at(u64::from(n));
        s.peer.address = address(2, PEER_PORT + n);
        s.peer_connects();
        wait_one(&mut s);
    }
    assert_eq!((s.endpoint.time_wait_count(), s.counted().time_wait.evicted), (2, 1));
    for (n, answer) in [(0, rst(2)), (1, ack(2, 2)), (2, ack(2, 2))] {
        s.peer.address = address(2, PEER_PORT + n);
        s.arrives(fin(1, 2));
        s.expect(answer);
    }
    let mut s = Script::established_server_with(|config, _| config.max_time_wait = 0, |_| ());
    wait_one(&mut s);
    assert_eq!((s.endpoint.time_wait_count(), s.counted().time_wait.evicted), (0, 1));
}

#[track_caller]
fn wait_one(s: &mut Script) {
    s.finish();
    s.expect(fin(1, 1));
    s.arrives(fin(1, 2));
    s.expect(ack(2, 2));
    s.events();
    assert_eq!(s.try_receive(1), Ok(vec![]));
    assert_eq!((s.next_event(), s.endpoint.connection_count()), (None, 0));
}

/// Unread data can still be read, for any time.
#[test]
fn a_connection_that_is_not_read_to_its_end_outlives_the_wait() {
    let mut s = Script::established_server();
    s.finish();
    s.expect(fin(1, 1));
    s.arrives(fin(1, 2).payload(b"late"));
    s.expect(ack(2, 6));
    s.at(100_000);
    assert_eq!(s.endpoint.connection_count(), 1);
    assert_eq!(s.receive(), b"late");
    assert_eq!(s.events().last(), Some(&Event::Closed(CloseReason::Finished)));
    assert_eq!(s.next_event(), None);
    assert_eq!((s.endpoint.connection_count(), s.endpoint.time_wait_count()), (0, 0));
}
