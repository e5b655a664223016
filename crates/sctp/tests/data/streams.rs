//! Streams, order and fragments (RFC 9260 §6.5, §6.6, §6.9).

use rexmit_sctp::{Event, OutboundMessage};

use crate::FULL;
use crate::kit::*;

/// A chunk of the peer with this stream and these flags.
fn chunk(n: u16, stream: u16, ssn: u16, bits: u8) -> wire::Data<'static> {
    wire::Data { flags: DataFlags::from_bits(bits), stream, ssn, ..data(n, b"m") }
}

const WHOLE: u8 = 3;
const UNORDERED: u8 = 7;

impl Script {
    /// The payloads of all messages that can be read.
    fn read_all(&mut self) -> Vec<bytes::Bytes> {
        std::iter::from_fn(|| self.receive()).collect()
    }

    /// Polls the pending SACK.
    #[track_caller]
    pub(super) fn take_sack(&mut self) {
        expect_packet!(self, [Sack(_)]);
    }
}

/// RFC 9260 §6.5: each stream numbers its ordered messages; unordered ones have no number.
#[test]
fn each_stream_counts_its_ordered_messages() {
    let mut s = Script::established_client();
    for (stream, unordered) in [(0, false), (3, false), (0, true), (0, false), (3, false)] {
        let message = OutboundMessage::new(stream, "m").unordered(unordered);
        s.try_send(message).expect("it is accepted");
    }
    let sent = s.next_packet();
    let mut seen: Vec<_> = sent
        .chunks()
        .iter()
        .map(|chunk| match chunk {
            Data(d) => (d.stream, d.flags.unordered, if d.flags.unordered { 0 } else { d.ssn }),
            other => panic!("{other:?}"),
        })
        .collect();
    seen.sort_unstable();
    assert_eq!(seen, [(0, false, 0), (0, false, 1), (0, true, 0), (3, false, 0), (3, false, 1)]);
}

/// RFC 9260 §6.5: "when the Stream Sequence Number reaches the value 65535 the next … is 0".
#[test]
fn outgoing_ssns_wrap() {
    let mut s = Script::established_client();
    for n in 0..65_538u32 {
        s.send(b"m");
        expect_packet!(s, [Data(data)] if data.ssn == n as u16);
        s.peer_acknowledges(tsn(n));
    }
}

/// The same for what arrives.
#[test]
fn incoming_ssns_wrap() {
    let mut s = Script::established_server_with(|_, association| association.sack.every = 255);
    let mut read = 0;
    for n in 0..65_540u32 {
        let message = wire::Data { tsn: tsn(n), ..data(n as u16, b"m") };
        s.peer_sends([Data(message)]);
        read += s.read_all().len();
        if n % 255 == 0 {
            s.take_sack();
        }
    }
    assert_eq!(read, 65_540);
    s.at(200).take_sack();
}

/// RFC 9260 §6.6: a missing message holds back its stream, and only its stream.
#[test]
fn a_missing_message_holds_back_its_own_stream_only() {
    let mut s = Script::established_server();
    s.peer_sends([Data(chunk(1, 0, 1, WHOLE))]);
    s.take_sack();
    assert_eq!(s.read_all().len(), 0);
    s.peer_sends([Data(chunk(2, 1, 0, WHOLE))]);
    s.take_sack();
    assert_eq!(s.read_all().len(), 1, "stream 1");
    s.peer_sends([Data(chunk(3, 0, 0, UNORDERED))]);
    s.take_sack();
    assert_eq!(s.read_all().len(), 1, "unordered");
    s.peer_sends([Data(chunk(0, 0, 0, WHOLE))]);
    s.take_sack();
    assert_eq!(s.read_all().len(), 2, "the missing one, and what waited for it");
}

/// RFC 9260 §6.9: consecutive TSNs, one SSN, B on the first and E on the last.
#[test]
fn a_large_message_is_cut_into_chunks_that_fill_packets() {
    let mut s = Script::established_client();
    s.send_len(2 * FULL + 1);
    for (n, beginning, ending, len) in
        [(0, true, false, FULL), (1, false, false, FULL), (2, false, true, 1)]
    {
        expect_packet!(s, [Data(d)] if d.tsn == tsn(n) && d.ssn == 0 && d.payload.len() == len
            && (d.flags.beginning, d.flags.ending) == (beginning, ending));
    }
}

/// RFC 9260 §6.9: a message that fits is not cut.
#[test]
fn a_message_that_fits_is_not_cut() {
    let mut s = Script::established_client();
    s.send_len(FULL);
    expect_packet!(s, [Data(d)] if d.flags.beginning && d.flags.ending);
}

/// RFC 9260 §6.9: fragments are reassembled in any order of arrival, also across the wrap.
#[test]
fn fragments_are_put_together_in_any_order() {
    let orders = [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2], [2, 0, 3, 1]];
    for order in orders {
        let mut s = Script::established_server_with(|_, association| {
            association.sack.delay = std::time::Duration::ZERO;
        });
        for n in order {
            let bits = u8::from(n == 0) << 1 | u8::from(n == 3);
            let piece = [b'0' + n];
            let fragment = wire::Data { payload: &piece, ..chunk(n.into(), 0, 0, bits) };
            s.peer_sends([Data(fragment)]);
            s.take_sack();
        }
        assert_eq!(s.read_all(), ["0123"], "{order:?}");
    }
}

/// RFC 9260 §6.5: such data is acknowledged, reported at once and not delivered; the association continues.
#[test]
fn data_for_a_stream_that_does_not_exist_are_acknowledged_and_reported() {
    let mut s = Script::established_server();
    s.peer_sends([Data(chunk(0, 10, 0, WHOLE))]);
    let stream = expect_packet!(s, [Error { causes }, Sack(sack)] if sack.cumulative_tsn_ack == tsn(0) =>
    match causes.flatten().next() {
        Some(Cause::InvalidStreamIdentifier(stream)) => Some(stream),
        _ => None,
    });
    assert_eq!((stream, s.read_all().len()), (Some(10), 0));
    s.peer_sends([Data(chunk(1, 9, 0, WHOLE))]);
    assert_eq!(s.read_all().len(), 1);
    s.at(200).take_sack();
}

/// RFC 9260 §6.9: fragments that contradict each other end the association. Here the peer may not abandon messages,
/// which could explain them.
#[test]
fn fragments_that_contradict_each_other_end_the_association() {
    let table: [(&str, [wire::Data<'static>; 2]); 5] = [
        ("begins inside another", [chunk(0, 0, 0, 2), chunk(1, 0, 1, WHOLE)]),
        ("goes on in another stream", [chunk(0, 0, 0, 2), chunk(1, 1, 0, 1)]),
        ("goes on with another SSN", [chunk(0, 0, 0, 2), chunk(1, 0, 1, 1)]),
        ("goes on unordered", [chunk(0, 0, 0, 2), chunk(1, 0, 0, 5)]),
        ("has no beginning", [chunk(0, 0, 0, WHOLE), chunk(1, 0, 1, 1)]),
    ];
    for (what, chunks) in table {
        let mut s = Script::established_server_with(|_, association| {
            association.extensions.partial_reliability = false;
        });
        s.peer_sends(chunks.map(Data));
        let code = expect_packet!(s, [Abort { t_bit: false, causes }] =>
            causes.flatten().next().map(|cause| cause.code()));
        assert_eq!(code, Some(13), "a message {what}");
        assert!(matches!(s.events().last(), Some(Event::Closed(_))), "a message {what}");
    }
}

/// RFC 9260 §6.6: a message with an SSN that was already delivered is not delivered, and ends the association.
#[test]
fn an_ssn_repeated_with_a_new_tsn_ends_the_association() {
    let mut s = Script::established_server();
    s.peer_sends([Data(chunk(0, 0, 0, WHOLE))]);
    s.take_sack();
    s.peer_sends([Data(chunk(1, 0, 0, WHOLE))]);
    expect_packet!(s, [Abort { .. }]);
}
