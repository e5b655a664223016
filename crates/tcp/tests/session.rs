//! One connection from SYN to TIME-WAIT, opened by either side: an example of a script.

mod kit;

use kit::*;

#[test]
fn a_server_echoes_and_the_client_finishes_first() {
    let mut s = Script::established_server();
    s.arrives(data(1, 1, b"hello"));
    expect_event!(s, Event::Readable);
    assert_eq!(s.receive(), b"hello");
    s.send(b"hello");
    s.expect(data(1, 6, b"hello"));
    s.arrives(fin(6, 6));
    s.expect(ack(6, 7));
    expect_event!(s, Event::Readable);
    assert_eq!(s.try_receive(10), Ok(vec![]));
    s.finish();
    s.expect(fin(6, 7));
    assert_eq!(s.state(), Some(State::LastAck));
    s.arrives(ack(7, 7));
    expect_event!(s, Event::Closed(CloseReason::Finished));
    assert_eq!(s.next_event(), None);
    assert_eq!((s.state(), s.endpoint.connection_count()), (None, 0));
    assert_eq!(s.endpoint.time_wait_count(), 0);
}

#[test]
fn a_client_finishes_first_and_waits() {
    let mut s = Script::established_client();
    s.send(b"hello");
    s.finish();
    s.expect(data(1, 1, b"hello").and(Flags::FIN));
    s.arrives(ack(1, 7));
    assert_eq!(s.state(), Some(State::FinWait2));
    s.arrives(fin(1, 7).payload(b"you"));
    s.expect(ack(7, 5));
    expect_event!(s, Event::Readable);
    expect_event!(s, Event::Closed(CloseReason::Finished));
    // Data is read after the connection has closed; TIME-WAIT lasts for two maximum segment lifetimes.
    assert_eq!(s.receive(), b"you");
    s.expect_silence();
    assert_eq!((s.endpoint.connection_count(), s.endpoint.time_wait_count()), (0, 1));
    s.expect_silence_until(59_999);
    assert_eq!(s.endpoint.time_wait_count(), 1);
    s.expect_silence_until(60_000);
    assert_eq!(s.endpoint.time_wait_count(), 0);
}
