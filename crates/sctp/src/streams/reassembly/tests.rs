use bytes::Bytes;
use rexmit_core::Seed;

use super::*;

const BASE: u64 = 1 << 32;
/// Fragment flags: a complete message; the first, a middle and the last fragment.
const WHOLE: (bool, bool) = (true, true);
const BEGIN: (bool, bool) = (true, false);
const MIDDLE: (bool, bool) = (false, false);
const END: (bool, bool) = (false, true);

fn ordered(tsn: u64, stream: u16, ssn: u16, part: (bool, bool), payload: &[u8]) -> Piece<'_> {
    let (beginning, ending) = part;
    let (mid, fsn) = (ssn.into(), 0);
    Piece { tsn, stream, mid, fsn, ppid: 0, unordered: false, beginning, ending, payload }
}

fn unordered(tsn: u64, stream: u16, part: (bool, bool), payload: &[u8]) -> Piece<'_> {
    Piece { unordered: true, ..ordered(tsn, stream, 0, part, payload) }
}

struct Receiver(Reassembly);

impl Receiver {
    fn new(max_message_bytes: usize, max_held_chunks: usize) -> Self {
        let limits = ReassemblyLimits { max_message_bytes, max_held_chunks };
        Self(Reassembly::new(limits))
    }

    fn on(&mut self, piece: Piece<'_>) -> Result<(), ReassemblyError> {
        let outcome = self.0.on_data(&piece);
        self.assert_counts();
        outcome
    }

    fn forward(&mut self, tsn: u64, skipped: &[(u16, u16)]) {
        self.0.on_forward_tsn(tsn, skipped.iter().copied());
        self.assert_counts();
    }

    /// The payloads of all messages that are ready.
    fn read(&mut self) -> Vec<Bytes> {
        let read = std::iter::from_fn(|| self.0.pop()).map(|message| message.payload).collect();
        self.assert_counts();
        read
    }

    /// Asserts that the counters equal the stored fragments.
    fn assert_counts(&self) {
        let incomplete = match &self.0.fragments {
            Fragments::ByTsn(fragments) => fragments.counted_bytes(),
            Fragments::ByMid(fragments) => fragments.counted_bytes(),
        };
        let complete = self.0.messages.delivery.counted_bytes();
        assert_eq!(self.0.held_bytes(), incomplete + complete);
    }
}

impl Default for Receiver {
    fn default() -> Self {
        Self::new(1000, 1000)
    }
}

fn is_violation(outcome: Result<(), ReassemblyError>) -> bool {
    matches!(outcome, Err(ReassemblyError::ProtocolViolation(_)))
}

#[test]
fn pieces_become_a_message_in_whatever_order_they_arrive() {
    let pieces = [
        ordered(BASE, 1, 0, BEGIN, b"a"),
        ordered(BASE + 1, 1, 0, MIDDLE, b"bc"),
        ordered(BASE + 2, 1, 0, MIDDLE, b"d"),
        ordered(BASE + 3, 1, 0, END, b"ef"),
    ];
    for permutation in 0..4 * 4 * 4 * 4 {
        let order = [permutation % 4, permutation / 4 % 4, permutation / 16 % 4, permutation / 64];
        if (0..4).any(|index| !order.contains(&index)) {
            continue;
        }
        let mut receiver = Receiver::default();
        for index in order {
            assert!(!receiver.0.has_ready());
            receiver.on(pieces[index]).unwrap();
        }
        assert_eq!(receiver.read(), [&b"abcdef"[..]], "order {order:?}");
        assert_eq!(receiver.0.held_bytes(), 0);
    }
}

#[test]
fn ordered_messages_wait_for_their_turn_in_their_stream_only_and_unordered_ones_never() {
    let mut receiver = Receiver::default();
    receiver.on(ordered(BASE + 1, 1, 1, WHOLE, b"1/1")).unwrap();
    receiver.on(ordered(BASE + 2, 2, 0, WHOLE, b"2/0")).unwrap();
    receiver.on(unordered(BASE + 3, 1, WHOLE, b"1/u")).unwrap();
    assert_eq!(receiver.read(), [&b"2/0"[..], b"1/u"]);
    assert_eq!(receiver.0.held_bytes(), 3);
    receiver.on(ordered(BASE, 1, 0, WHOLE, b"1/0")).unwrap();
    assert_eq!(receiver.read(), [&b"1/0"[..], b"1/1"]);
}

#[test]
fn order_holds_across_the_wrap_of_the_ssn() {
    let mut rng = Seed::from_u64(3).rng();
    let mut receiver = Receiver::default();
    let numbers: Vec<u64> = (0..200_000).collect();
    let mut read = Vec::new();
    for window in numbers.chunks(100) {
        let mut window = window.to_vec();
        while !window.is_empty() {
            let number = window.swap_remove(rng.below(window.len() as u64) as usize);
            let payload = number.to_be_bytes();
            receiver.on(ordered(BASE + number, 9, number as u16, WHOLE, &payload)).unwrap();
            read.extend(receiver.read());
        }
    }
    assert_eq!(read.len(), numbers.len());
    assert!(read.iter().zip(&numbers).all(|(payload, number)| payload[..] == number.to_be_bytes()));
}

#[test]
fn contradictions_are_violations_and_spare_other_messages() {
    let waiting = ordered(BASE + 9, 2, 4, WHOLE, b"w");
    let begun = ordered(BASE, 1, 0, BEGIN, b"b");
    let violations = [
        ("a beginning inside", vec![begun], ordered(BASE + 1, 1, 1, BEGIN, b"x")),
        ("a message inside", vec![begun], ordered(BASE + 1, 1, 1, WHOLE, b"x")),
        ("another stream", vec![begun], ordered(BASE + 1, 3, 0, END, b"x")),
        ("another SSN", vec![begun], ordered(BASE + 1, 1, 1, MIDDLE, b"x")),
        ("another order", vec![begun], unordered(BASE + 1, 1, END, b"x")),
        ("another order, joined", vec![unordered(BASE + 1, 1, END, b"x")], begun),
        ("another stream, joined", vec![ordered(BASE + 1, 3, 0, END, b"x")], begun),
        ("a waiting SSN", vec![], ordered(BASE, 2, 4, WHOLE, b"x")),
        (
            "a past SSN",
            vec![ordered(BASE, 1, 0, WHOLE, b"x")],
            ordered(BASE + 1, 1, 0, WHOLE, b"x"),
        ),
        ("an SSN long past", vec![], ordered(BASE, 1, 40_000, WHOLE, b"x")),
    ];
    for (name, before, piece) in violations {
        let mut receiver = Receiver::default();
        receiver.on(waiting).unwrap();
        for piece in before {
            receiver.on(piece).unwrap();
        }
        assert!(is_violation(receiver.on(piece)), "{name}");
        receiver.read();
        for ssn in 0..4 {
            receiver.on(ordered(BASE + 20 + u64::from(ssn), 2, ssn, WHOLE, b"x")).unwrap();
        }
        assert_eq!(receiver.read().last().unwrap(), &b"w"[..], "{name}");
    }
}

#[test]
fn contradictions_that_no_neighbour_shows_are_found_when_the_gaps_are_filled() {
    let whole = |tsn| unordered(tsn, 1, WHOLE, b"x");
    for (name, piece) in [
        ("no end", unordered(BASE + 1, 1, BEGIN, b"x")),
        ("no beginning", unordered(BASE + 1, 1, END, b"x")),
        ("only a middle", unordered(BASE + 1, 1, MIDDLE, b"x")),
    ] {
        let mut receiver = Receiver::default();
        for piece in [whole(BASE + 2), whole(BASE), piece] {
            assert!(!receiver.0.has_contradiction(BASE - 1));
            receiver.on(piece).unwrap();
        }
        assert!(receiver.0.has_contradiction(BASE + 2), "{name}");
    }
}

#[test]
fn a_message_above_its_limit_is_dropped_however_it_grows() {
    for pieces in [
        vec![unordered(BASE, 1, WHOLE, &[0; 11])],
        vec![unordered(BASE, 1, BEGIN, &[0; 6]), unordered(BASE + 1, 1, MIDDLE, &[0; 5])],
        vec![unordered(BASE + 1, 1, END, &[0; 5]), unordered(BASE, 1, BEGIN, &[0; 6])],
    ] {
        let mut receiver = Receiver::new(10, 100);
        let (last, before) = pieces.split_last().unwrap();
        for piece in before {
            receiver.on(*piece).unwrap();
        }
        receiver.on(*last).unwrap();
        let dropped = DroppedMessage { stream: 1, ppid: 0, unordered: true };
        assert_eq!(receiver.0.take_dropped(), Some(dropped));
        assert_eq!(receiver.0.held_bytes(), 0);
        receiver.on(unordered(BASE + 7, 1, BEGIN, &[0; 6])).unwrap();
        receiver.on(unordered(BASE + 8, 1, END, &[0; 4])).unwrap();
        assert_eq!(receiver.read(), [&[0; 10][..]], "a message of exactly the limit is taken");
        assert_eq!(receiver.0.take_dropped(), None);
    }
}

/// Later messages are delivered in order, after the earlier ones.
#[test]
fn the_turn_of_a_dropped_message_passes() {
    for is_interleaved in [false, true] {
        let mut receiver = Receiver::new(10, 100);
        receiver.0.on_peer_known(is_interleaved, false);
        let part = |tsn, fsn, part, payload| Piece { fsn, ..ordered(tsn, 1, 1, part, payload) };
        receiver.on(part(BASE + 3, 2, END, &[0; 9])).unwrap();
        receiver.on(part(BASE + 1, 0, BEGIN, &[0; 9])).unwrap();
        receiver.on(ordered(BASE + 4, 1, 2, WHOLE, b"third")).unwrap();
        receiver.on(part(BASE + 2, 1, MIDDLE, &[0; 9])).unwrap();
        assert!(receiver.0.take_dropped().is_some());
        assert_eq!(receiver.read(), [&b""[..]; 0]);
        receiver.on(ordered(BASE, 1, 0, WHOLE, b"first")).unwrap();
        assert_eq!(receiver.read(), [&b"first"[..], b"third"]);
        assert_eq!(receiver.0.held_bytes(), 0);
    }
}

#[test]
fn pieces_that_would_be_held_above_the_limit_are_refused_without_effect() {
    let refused = Err(ReassemblyError::TooManyHeldChunks);
    let mut receiver = Receiver::new(1000, 3);
    for ssn in 1..=2u16 {
        receiver.on(ordered(BASE + 2 + u64::from(ssn), 1, ssn, WHOLE, b"x")).unwrap();
    }
    assert!(!receiver.0.is_full());
    receiver.on(ordered(BASE + 2, 1, 0, END, b"x")).unwrap();
    assert!(receiver.0.is_full());
    assert_eq!(receiver.on(ordered(BASE + 5, 1, 3, WHOLE, b"x")), refused);
    assert_eq!(receiver.on(unordered(BASE + 7, 1, MIDDLE, b"x")), refused);
    assert_eq!(receiver.0.held_bytes(), 3);
    receiver.on(ordered(BASE + 10, 2, 1, BEGIN, b"x")).unwrap();
    assert_eq!(receiver.on(ordered(BASE + 11, 2, 1, END, b"x")), refused);
    assert_eq!(receiver.0.held_bytes(), 4);
    // At the limit, the missing piece is still accepted, and so is a message that need not wait.
    receiver.on(unordered(BASE + 8, 1, WHOLE, b"u")).unwrap();
    receiver.on(ordered(BASE, 1, 0, BEGIN, b"x")).unwrap();
    receiver.on(ordered(BASE + 1, 1, 0, MIDDLE, b"x")).unwrap();
    assert!(receiver.0.is_full(), "unread messages are held, too");
    assert_eq!(receiver.read(), [&b"u"[..], b"xxx", b"x", b"x"]);
    receiver.on(ordered(BASE + 5, 1, 3, WHOLE, b"x")).unwrap();
    receiver.on(ordered(BASE + 11, 2, 1, END, b"x")).unwrap();
    assert!(!receiver.0.is_full());
}

#[test]
fn beginnings_are_limited_and_unread_messages_are_not_refused() {
    let mut receiver = Receiver::new(1000, 3);
    for tsn in 0..10 {
        receiver.on(unordered(BASE + tsn, 1, WHOLE, b"x")).unwrap();
    }
    for tsn in 0..3 {
        receiver.on(unordered(BASE + 100 + 2 * tsn, 1, BEGIN, b"x")).unwrap();
        receiver.on(unordered(BASE + 300 + 2 * tsn, 1, END, b"x")).unwrap();
    }
    let refused = receiver.on(unordered(BASE + 200, 1, BEGIN, b"x"));
    assert_eq!(refused, Err(ReassemblyError::TooManyHeldChunks));
    assert_eq!(receiver.0.held_bytes(), 16);
}

#[test]
fn a_forward_tsn_releases_what_waited_for_the_skipped() {
    let mut receiver = Receiver::default();
    for (tsn, stream, ssn) in [(1, 1, 1), (3, 1, 3), (4, 1, 4), (6, 1, 6), (7, 2, 1)] {
        let name = [stream as u8, ssn as u8];
        receiver.on(ordered(BASE + tsn, stream, ssn, WHOLE, &name)).unwrap();
    }
    receiver.forward(BASE + 2, &[(1, 2)]);
    assert_eq!(receiver.read(), [[1, 1], [1, 3], [1, 4]].map(Vec::from));
    receiver.forward(BASE + 2, &[(1, 0), (1, 2)]);
    assert_eq!(receiver.read().len(), 0, "an SSN in the past is without effect");
    receiver.forward(BASE + 5, &[(1, 5), (2, 0)]);
    assert_eq!(receiver.read(), [[1, 6], [2, 1]].map(Vec::from));
    receiver.on(ordered(BASE + 8, 1, 7, WHOLE, b"next")).unwrap();
    assert_eq!(receiver.read(), [&b"next"[..]]);
}

#[test]
fn a_forward_tsn_drops_what_misses_a_skipped_tsn_and_keeps_the_rest() {
    let mut receiver = Receiver::default();
    receiver.on(unordered(BASE, 1, BEGIN, b"lost")).unwrap();
    receiver.on(unordered(BASE + 2, 1, END, b"lost")).unwrap();
    receiver.on(unordered(BASE + 3, 1, BEGIN, b"kept ")).unwrap();
    receiver.on(unordered(BASE + 5, 1, END, b"message")).unwrap();
    receiver.forward(BASE + 3, &[]);
    assert_eq!(receiver.0.held_bytes(), 12);
    receiver.on(unordered(BASE + 4, 1, MIDDLE, b"whole ")).unwrap();
    assert_eq!(receiver.read(), [&b"kept whole message"[..]]);
}

#[test]
fn the_rest_of_a_skipped_message_is_discarded_whenever_it_arrives() {
    for late in [false, true] {
        let rest = [
            unordered(BASE + 2, 1, MIDDLE, b"x"),
            unordered(BASE + 3, 1, MIDDLE, b"x"),
            unordered(BASE + 4, 1, END, b"x"),
        ];
        let mut receiver = Receiver::default();
        let feed = |receiver: &mut Receiver| {
            for index in [1, 2, 0] {
                receiver.on(rest[index]).unwrap();
            }
        };
        if !late {
            feed(&mut receiver);
        }
        receiver.forward(BASE + 1, &[]);
        if late {
            feed(&mut receiver);
        }
        assert_eq!(receiver.0.held_bytes(), 0, "late: {late}");
        receiver.on(unordered(BASE + 6, 1, END, b"d")).unwrap();
        receiver.on(unordered(BASE + 5, 1, BEGIN, b"c")).unwrap();
        assert_eq!(receiver.read(), [&b"cd"[..]]);
        assert!(!receiver.0.has_contradiction(BASE + 6));
    }
}

#[test]
fn a_message_cut_short_by_its_sender_makes_room_for_the_next() {
    let mut receiver = Receiver::default();
    receiver.on(ordered(BASE, 1, 0, BEGIN, b"never finished")).unwrap();
    // The sender uses up BASE + 1 for the part that it will not send.
    receiver.forward(BASE + 1, &[(1, 0)]);
    receiver.on(ordered(BASE + 2, 1, 1, WHOLE, b"next")).unwrap();
    assert_eq!(receiver.read(), [&b"next"[..]]);
}

/// RFC 3758 §3.5: Linux numbers no further piece of a message that it abandons.
#[test]
fn a_message_cut_short_is_given_up_without_a_forward_tsn_once_all_before_has_arrived() {
    let pieces = [
        ordered(BASE, 1, 0, WHOLE, b"before"),
        ordered(BASE + 1, 1, 1, BEGIN, b"never"),
        ordered(BASE + 2, 1, 1, MIDDLE, b"finished"),
        ordered(BASE + 3, 1, 2, BEGIN, b"af"),
        ordered(BASE + 4, 1, 2, END, b"ter"),
        unordered(BASE + 5, 1, BEGIN, b"nor this"),
        ordered(BASE + 6, 1, 3, WHOLE, b"last"),
    ];
    for first in 0..pieces.len() {
        let mut receiver = Receiver::default();
        receiver.0.on_peer_known(false, true);
        let (late, early) = (&pieces[..first], &pieces[first..]);
        for piece in early {
            receiver.on(*piece).unwrap();
            receiver.0.abandon_cut_short(BASE - 1);
        }
        for piece in late {
            receiver.on(*piece).unwrap();
        }
        receiver.0.abandon_cut_short(BASE + 6);
        assert!(!receiver.0.has_contradiction(BASE + 6));
        assert_eq!(receiver.read(), [&b"before"[..], b"after", b"last"], "from {first}");
        assert_eq!(receiver.0.held_bytes(), 0);
    }
}

#[test]
fn a_reset_stream_starts_again_from_zero() {
    let mut receiver = Receiver::default();
    for stream in 1..=3u16 {
        let tsn = BASE + u64::from(stream);
        receiver.on(ordered(tsn, stream, 0, WHOLE, b"before")).unwrap();
    }
    receiver.0.on_streams_reset(Some(&[1, 2, 77]));
    receiver.read();
    receiver.on(ordered(BASE + 11, 1, 0, WHOLE, b"1")).unwrap();
    receiver.on(ordered(BASE + 12, 2, 0, WHOLE, b"2")).unwrap();
    assert!(is_violation(receiver.on(ordered(BASE + 13, 3, 0, WHOLE, b"3"))));
    assert_eq!(receiver.read(), [&b"1"[..], b"2"]);
    receiver.0.on_streams_reset(None);
    for stream in 1..=3u16 {
        let tsn = BASE + 20 + u64::from(stream);
        receiver.on(ordered(tsn, stream, 0, WHOLE, b"after")).unwrap();
    }
    assert_eq!(receiver.read(), [&b"after"[..]; 3]);
}

#[test]
fn a_reset_delivers_what_a_mistaken_peer_left_waiting() {
    for streams in [None, Some(&[1][..])] {
        let mut receiver = Receiver::default();
        for ssn in [5u16, 3] {
            receiver.on(ordered(BASE + u64::from(ssn), 1, ssn, WHOLE, &[ssn as u8])).unwrap();
        }
        receiver.0.on_streams_reset(streams);
        receiver.on(ordered(BASE + 9, 1, 0, WHOLE, &[0])).unwrap();
        assert_eq!(receiver.read(), [vec![3], vec![5], vec![0]]);
    }
}

#[test]
fn a_message_of_pieces_pins_at_most_twice_its_size() {
    let mut receiver = Receiver::new(1 << 20, 100);
    let mut tsn = BASE;
    for pieces in [60, 2, 45, 3, 2] {
        for index in 0..pieces {
            let part = [MIDDLE, BEGIN, END]
                [usize::from(index == 0) + 2 * usize::from(index + 1 == pieces)];
            receiver.on(unordered(tsn, 1, part, &[7; 1200])).unwrap();
            tsn += 1;
        }
        let payload = receiver.read().remove(0);
        let bytes = payload.len();
        assert_eq!(bytes, pieces * 1200);
        let pinned = payload.try_into_mut().expect("it is the only handle").capacity();
        assert!(pinned <= 2 * bytes, "{bytes} bytes pin {pinned}");
    }
}

#[test]
fn memory_of_a_long_backlog_is_given_back() {
    let mut receiver = Receiver::new(1000, 10_000);
    for tsn in 0..5000 {
        receiver.on(unordered(BASE + tsn, 1, WHOLE, b"x")).unwrap();
    }
    receiver.read();
    receiver.0.release_memory();
    assert_eq!(receiver.0.messages.delivery.ready_places(), 0);
}

#[test]
fn arbitrary_pieces_are_counted_bounded_and_never_a_panic() {
    for seed in 0..2000 {
        let mut rng = Seed::from_u64(seed).rng();
        let base = if seed.is_multiple_of(4) { u64::MAX - 20 } else { BASE };
        let mut receiver = Receiver::new(30, 8);
        for _ in 0..200 {
            let tsn = base.wrapping_add(rng.below(40));
            let payload = vec![1; rng.below(12) as usize];
            let part = (rng.chance(0.4), rng.chance(0.4));
            let ssn = [rng.below(4), rng.below(1 << 16)][usize::from(rng.chance(0.1))] as u16;
            let mut piece = ordered(tsn, rng.below(3) as u16, ssn, part, &payload);
            piece.unordered = rng.chance(0.3);
            let held = receiver.0.held_bytes();
            if receiver.on(piece) == Err(ReassemblyError::TooManyHeldChunks) {
                assert_eq!(receiver.0.held_bytes(), held);
            }
            match rng.below(20) {
                0 => receiver.forward(tsn, &[(rng.below(3) as u16, ssn)]),
                1 => receiver.0.on_streams_reset(Some(&[rng.below(3) as u16])),
                2 => receiver.0.on_streams_reset(None),
                3..=8 => drop(receiver.read()),
                _ => {}
            }
            let (begun, loose) = match &receiver.0.fragments {
                Fragments::ByTsn(fragments) => fragments.counts(),
                Fragments::ByMid(fragments) => fragments.counts(),
            };
            assert!(begun <= 8 && loose + receiver.0.messages.delivery.waiting_messages() <= 8);
        }
        receiver.forward(u64::MAX, &[]);
        receiver.0.on_streams_reset(None);
        receiver.read();
        assert_eq!(receiver.0.held_bytes(), 0);
    }
}

/// A piece of an interleaved message.
fn interleaved(
    (stream, mid, fsn): (u16, u32, u32),
    part: (bool, bool),
    payload: &[u8],
) -> Piece<'_> {
    Piece { mid, fsn, ..ordered(BASE, stream, 0, part, payload) }
}

fn of_mids(max_held_chunks: usize) -> Receiver {
    let mut receiver = Receiver::new(1000, max_held_chunks);
    receiver.0.on_peer_known(true, true);
    receiver
}

/// RFC 8260 §2.1: the MID is a serial number of 32 bits, with separate counts for ordered and unordered messages.
#[test]
fn interleaved_messages_go_by_their_mids_across_the_wrap() {
    let mut receiver = of_mids(100);
    let skipped = SkippedMid { stream: 1, unordered: false, mid: 0x7FFF_FFFE };
    let nearly = SkippedMid { mid: u32::MAX - 1, ..skipped };
    for skipped in [skipped, nearly, SkippedMid { unordered: true, ..skipped }] {
        receiver.0.on_i_forward_tsn([skipped].into_iter());
    }
    let unordered = |piece| Piece { unordered: true, ..piece };
    receiver.on(interleaved((1, 0, 1), END, b"d")).unwrap();
    receiver.on(unordered(interleaved((1, 0x7FFF_FFFF, 1), END, b"y"))).unwrap();
    receiver.on(interleaved((1, u32::MAX, 0), BEGIN, b"a")).unwrap();
    receiver.on(unordered(interleaved((1, 0x7FFF_FFFF, 0), BEGIN, b"x"))).unwrap();
    receiver.on(interleaved((1, 0, 0), BEGIN, b"c")).unwrap();
    assert_eq!(receiver.read(), [&b"xy"[..]]);
    receiver.on(interleaved((1, u32::MAX, 1), END, b"b")).unwrap();
    assert_eq!(receiver.read(), [&b"ab"[..], b"cd"]);
    assert_eq!(receiver.0.held_bytes(), 0);
}

#[test]
fn contradictions_of_interleaved_pieces_are_violations_and_spare_other_messages() {
    let begun = interleaved((1, 0, 0), BEGIN, b"b");
    let aside = interleaved((1, 0, 3), MIDDLE, b"m");
    let violations = [
        ("a second beginning", vec![begun], begun),
        ("a whole message inside", vec![begun], interleaved((1, 0, 0), WHOLE, b"x")),
        ("a fragment a second time", vec![begun], interleaved((1, 0, 0), MIDDLE, b"x")),
        ("the same, put aside", vec![aside], aside),
        ("a fragment 0 without B", vec![], interleaved((1, 0, 0), END, b"x")),
        ("beyond the end", vec![begun, aside], interleaved((1, 0, 1), END, b"x")),
        ("beyond a whole message", vec![aside], interleaved((1, 0, 0), WHOLE, b"x")),
        ("a MID a second time", vec![interleaved((1, 0, 0), WHOLE, b"x")], begun),
        ("a waiting MID", vec![interleaved((1, 1, 0), WHOLE, b"x")], {
            interleaved((1, 1, 1), END, b"x")
        }),
        ("a MID long past", vec![], interleaved((1, 0x9000_0000, 0), WHOLE, b"x")),
    ];
    for (name, before, piece) in violations {
        let mut receiver = of_mids(100);
        receiver.on(interleaved((2, 0, 0), BEGIN, b"s")).unwrap();
        for piece in before {
            receiver.on(piece).unwrap();
        }
        assert!(is_violation(receiver.on(piece)), "{name}");
        receiver.on(interleaved((2, 0, 1), END, b"t")).unwrap();
        assert_eq!(receiver.read().last().unwrap(), &b"st"[..], "{name}");
    }
}

/// Pieces of an abandoned message that arrive later are discarded, and change no state.
#[test]
fn skipped_interleaved_messages_leave_nothing() {
    for unordered in [false, true] {
        let piece = |place, part, payload| Piece { unordered, ..interleaved(place, part, payload) };
        let mut receiver = of_mids(100);
        receiver.on(piece((1, 0, 0), BEGIN, b"begun")).unwrap();
        receiver.on(piece((1, 0, 2), MIDDLE, b"aside")).unwrap();
        receiver.on(piece((1, 1, 1), END, b"next")).unwrap();
        receiver.on(piece((2, 0, 0), BEGIN, b"other")).unwrap();
        let skipped = [SkippedMid { stream: 1, unordered, mid: 0 }];
        receiver.0.on_i_forward_tsn(skipped.into_iter());
        assert_eq!(receiver.0.held_bytes(), 9, "of the next message, and of the other stream");
        receiver.on(piece((1, 0, 1), MIDDLE, b"late")).unwrap();
        receiver.on(piece((1, 0, 0), WHOLE, b"late")).unwrap();
        assert_eq!(receiver.0.held_bytes(), 9);
        receiver.on(piece((1, 1, 0), BEGIN, b"the ")).unwrap();
        assert_eq!(receiver.read(), [&b"the next"[..]]);
        receiver.0.on_streams_reset(Some(&[1]));
        receiver.on(piece((1, 0, 0), WHOLE, b"again")).unwrap();
        assert_eq!(receiver.read(), [&b"again"[..]]);
        receiver.0.on_streams_reset(None);
        assert_eq!(receiver.0.held_bytes(), 0);
    }
}

#[test]
fn interleaved_pieces_above_the_limit_are_refused_without_effect() {
    let refused = Err(ReassemblyError::TooManyHeldChunks);
    let mut receiver = of_mids(3);
    for mid in 0..3 {
        receiver.on(interleaved((1, mid, 1), END, b"x")).unwrap();
        receiver.on(interleaved((2, mid, 0), BEGIN, b"x")).unwrap();
    }
    assert!(receiver.0.is_full());
    assert_eq!(receiver.on(interleaved((1, 3, 1), END, b"x")), refused);
    assert_eq!(receiver.on(interleaved((2, 3, 0), BEGIN, b"x")), refused);
    assert_eq!(receiver.on(interleaved((3, 1, 0), WHOLE, b"x")), refused);
    assert_eq!(receiver.0.held_bytes(), 6);
    receiver.on(interleaved((2, 0, 1), END, b"y")).unwrap();
    receiver.on(interleaved((1, 0, 0), BEGIN, b"w")).unwrap();
    assert_eq!(receiver.read(), [&b"xy"[..], b"wx"]);
}

/// The largest messages are dropped first, whatever arrived since the first was dropped.
#[test]
fn the_largest_message_is_dropped_first_while_others_begin_grow_and_end() {
    let mut receiver = Receiver::new(1000, 1000);
    receiver.0.on_peer_known(true, false);
    let bytes = [7; 100];
    let mut sizes = [0; 20];
    let mut dropped = [false; 20];
    let mut fsns = [0; 20];
    // The next step would continue the message that ends.
    for step in 0..169_usize {
        let (stream, len) = (step * 7 % 20, 1 + step * 37 % 100);
        let part = if fsns[stream] == 0 { BEGIN } else { MIDDLE };
        let piece = (stream as u16, 0, fsns[stream]);
        receiver.on(interleaved(piece, part, &bytes[..len])).unwrap();
        fsns[stream] += 1;
        sizes[stream] += if dropped[stream] { 0 } else { len };
        if step % 13 == 12 {
            let (largest, _) = sizes.iter().enumerate().max_by_key(|it| (*it.1, it.0)).unwrap();
            assert_eq!(receiver.0.drop_largest().unwrap().stream, largest as u16, "{step}");
            (sizes[largest], dropped[largest]) = (0, true);
        }
        if step == 150 {
            receiver.on(interleaved((3, 0, fsns[3]), END, b"e")).unwrap();
            (sizes[3], fsns[3]) = (0, 1000);
            dropped[3] = true;
        }
    }
    let held: usize = sizes.iter().sum();
    assert!(held > 0);
    for _ in sizes.iter().filter(|&&size| size > 0) {
        assert!(receiver.0.drop_largest().is_some());
    }
    assert!(receiver.0.drop_largest().is_none());
}
