//! Copies of data in flight bundled with new DATA, and the I bit.

use std::num::{NonZeroU8, NonZeroU32};

use rexmit_sctp::{OutboundMessage, Reliability};

use super::*;

const COPIES: ThinConfig = ThinConfig::OFF.bundling(Some(BundlingConfig::ONE));
const NINE: BundlingConfig = BundlingConfig::ONE.packets(NonZeroU8::new(9).unwrap());

#[test]
fn a_packet_with_new_data_repeats_the_packet_before_it() {
    let mut s = Script::thin(COPIES);
    s.at(200).send_alone(1);
    s.at(250).send(b"2");
    assert_eq!(s.take_data(), [1, 2]);
    s.at(260).send(b"3");
    assert_eq!(s.take_data(), [2, 3], "one packet before");
    // Chunk 1 was lost: the peer gets all three chunks at once, and reports no duplicate.
    s.at(350).peer_acknowledges(tsn(2));
    s.at(360).peer_sacks(tsn(3), &[], &[tsn(2)]);
    s.expect_silence_until(3_000);
    let counted = s.statistics().recovery;
    assert_eq!((counted.retransmitted.redundant, counted.retransmitted.total()), (2, 0));
    assert_eq!((counted.packets_repaired, counted.packets_lost), (1, 1));
    assert_eq!((counted.fast_recoveries, counted.spurious.total()), (1, 0));
}

#[test]
fn duplicates_of_redundant_copies_are_ignored() {
    let mut s = Script::thin(COPIES);
    s.at(200).send_alone(1);
    s.at(250).send(b"2");
    assert_eq!(s.take_data(), [1, 2]);
    s.at(300).peer_acknowledges(tsn(1));
    s.at(350).peer_sacks(tsn(2), &[], &[tsn(1)]);
    s.expect_silence_until(3_000);
    let counted = s.statistics().recovery;
    assert_eq!((counted.packets_repaired, counted.packets_lost), (0, 0));
    assert_eq!((counted.fast_recoveries, counted.spurious.total()), (0, 0));
}

#[test]
fn only_copies_that_fit_with_the_new_chunk_are_sent() {
    let mut s = Script::thin(COPIES.bundling(Some(NINE)));
    for (n, len, want) in [(1, 600, vec![1]), (2, 300, vec![1, 2]), (3, 600, vec![2, 3])] {
        let payload = vec![b'x'; len];
        s.try_send(OutboundMessage::new(0, payload)).expect("accepted");
        assert_eq!(s.take_data(), want, "chunk {n}");
    }
    s.send_alone_full();
}

impl Script {
    /// A full packet carries no copies.
    fn send_alone_full(&mut self) {
        self.try_send(OutboundMessage::new(0, vec![b'x'; 1204])).expect("accepted");
        assert_eq!(self.take_data(), [4]);
    }
}

#[test]
fn a_limit_of_bytes_counts_the_whole_packet() {
    // Chunks of 7 bytes take 24.
    for (bytes, want) in [(71, vec![2, 3]), (72, vec![1, 2, 3])] {
        let bundling = NINE.bytes(NonZeroU32::new(bytes));
        let mut s = Script::thin(ThinConfig::OFF.bundling(Some(bundling)));
        s.send_alone(1);
        s.send(b"payload");
        assert_eq!(s.take_data(), [1, 2]);
        s.send(b"payload");
        assert_eq!(s.take_data(), want);
    }
}

#[test]
fn a_stream_that_is_not_thin_copies_nothing() {
    let mut s = Script::thin(ThinConfig::OFF);
    (1..=5).for_each(|n| s.send_alone(n));
    let (now, id) = (rexmit_core::Instant::from_millis(s.now_ms()), s.id());
    s.endpoint.set_thin(now, id, COPIES).expect("they make sense");
    s.send_alone(6);
    s.peer_acknowledges(tsn(3));
    s.send(b"payload");
    assert_eq!(s.take_data(), [6, 7], "three in flight");
}

/// RFC 7496: with zero retransmissions, the chunk is sent only once.
#[test]
fn chunks_that_may_not_be_retransmitted_are_not_copied() {
    let mut s = Script::thin(COPIES);
    let once =
        OutboundMessage::new(0, &b"once"[..]).reliability(Reliability::MaxRetransmissions(0));
    s.try_send(once).expect("accepted");
    assert_eq!(s.take_data(), [1]);
    s.send_alone(2);
}

/// RFC 7053.
#[test]
fn the_i_bit_is_set_while_thin() {
    let thin = ThinConfig::OFF.with_sctp(ThinSctpConfig::OFF.sack_immediately(true));
    let mut s = Script::thin(thin);
    for n in 1..=6 {
        s.send(b"payload");
        let is_thin = n <= 5;
        assert_eq!(s.take_flagged_data(), (vec![n], vec![is_thin]), "{} in flight", n - 1);
    }
    let mut s = Script::thin(ThinConfig::OFF);
    s.send(b"payload");
    assert_eq!(s.take_flagged_data(), (vec![1], vec![false]));
}
