use std::collections::VecDeque;
use std::time::Duration;

use rexmit_core::Seed;

use super::*;

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

fn message(stream: u16, bytes: usize) -> OutboundMessage {
    OutboundMessage::new(stream, vec![stream as u8; bytes])
}

fn timed(stream: u16, lifetime_millis: u64) -> OutboundMessage {
    let lifetime = Duration::from_millis(lifetime_millis);
    OutboundMessage { reliability: Reliability::Timed(lifetime), ..message(stream, 10) }
}

/// A queue with one message per entry, whose ids count from 0.
fn queue(scheduling: Scheduling, messages: Vec<OutboundMessage>) -> SendQueue {
    let mut queue = SendQueue::new(scheduling);
    for (id, message) in messages.into_iter().enumerate() {
        queue.push(at(0), MessageId(id as u64), message);
    }
    queue
}

/// The ids of the fragments that are cut until there are no more.
fn cut_all(queue: &mut SendQueue, max_payload: usize) -> Vec<u64> {
    std::iter::from_fn(|| queue.next(max_payload)).map(|fragment| fragment.message.0).collect()
}

fn expired(queue: &mut SendQueue, now: Instant) -> Vec<u64> {
    let mut ids = Vec::new();
    queue.expire(now, |id, _| ids.push(id.0));
    ids
}

#[test]
fn cuts_a_message_into_slices_that_are_marked_at_both_ends() {
    let mut original = message(5, 25);
    original.payload = (0..25).collect::<Vec<u8>>().into();
    original.ppid = 99;
    original.immediate = true;
    original.reliability = Reliability::MaxRetransmissions(3);
    let start = original.payload.as_ptr();
    let mut queue = queue(Scheduling::RoundRobin, vec![original]);
    let mut cut = Vec::new();
    while let Some(length) = queue.peek_len(10) {
        cut.push(queue.next(10).unwrap());
        assert_eq!(cut.last().unwrap().payload.len(), length);
    }
    let marks: Vec<_> = cut.iter().map(|f| (f.beginning, f.ending, f.immediate)).collect();
    assert_eq!(marks, [(true, false, false), (false, false, false), (false, true, true)]);
    assert_eq!(cut.iter().map(|f| f.payload.len()).collect::<Vec<_>>(), [10, 10, 5]);
    for (index, fragment) in cut.iter().enumerate() {
        assert_eq!((fragment.stream, fragment.ssn(), fragment.ppid), (5, 0, 99));
        assert_eq!(
            (fragment.expires, fragment.reliability),
            (None, Reliability::MaxRetransmissions(3))
        );
        assert_eq!(fragment.payload.as_ptr(), start.wrapping_add(10 * index), "not a slice");
    }
    assert!(queue.is_empty());
}

#[test]
fn nothing_is_cut_without_room() {
    let mut queue = queue(Scheduling::RoundRobin, vec![message(0, 5)]);
    assert_eq!((queue.peek_len(0), queue.next(0)), (None, None));
    assert_eq!(queue.peek_len(1), Some(1));
}

#[test]
fn round_robin_takes_one_message_of_each_stream_in_turn() {
    let messages = [1, 1, 1, 2, 2, 3].map(|stream| message(stream, 10)).to_vec();
    let mut fair = queue(Scheduling::RoundRobin, messages.clone());
    assert_eq!(cut_all(&mut fair, 10), [0, 3, 5, 1, 4, 2]);
    let mut in_order = queue(Scheduling::FirstComeFirstServed, messages);
    assert_eq!(cut_all(&mut in_order, 10), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn a_newcomer_waits_for_one_message_of_each_busy_stream_at_most() {
    let mut queue = queue(Scheduling::RoundRobin, vec![message(1, 10); 100]);
    assert_eq!(queue.next(10).unwrap().message, MessageId(0));
    queue.push(at(0), MessageId(1000), message(2, 10));
    assert_eq!(cut_all(&mut queue, 10)[..3], [1, 1000, 2]);
}

#[test]
fn a_begun_message_is_finished_before_another_begins_even_if_its_stream_is_paused() {
    let mut queue = queue(Scheduling::RoundRobin, vec![message(1, 30), message(2, 30)]);
    queue.next(10).unwrap();
    assert!(queue.has_begun_message() && queue.has_begun_message_on(1));
    assert!(!queue.has_begun_message_on(2));
    queue.pause(1);
    queue.pause_all();
    assert_eq!(cut_all(&mut queue, 10), [0, 0]);
    queue.resume_all();
    assert_eq!(cut_all(&mut queue, 10), [1, 1, 1]);
    assert!(!queue.has_begun_message());
}

#[test]
fn messages_of_a_paused_stream_wait_and_keep_their_place_by_age() {
    let messages = [1, 2, 1].map(|stream| message(stream, 10)).to_vec();
    let mut queue = queue(Scheduling::FirstComeFirstServed, messages);
    queue.pause(1);
    queue.push(at(0), MessageId(3), message(1, 10));
    assert_eq!(queue.next(10).unwrap().message, MessageId(1));
    assert_eq!(queue.peek_len(10), None);
    assert!(!queue.is_empty());
    queue.push(at(0), MessageId(4), message(2, 10));
    queue.resume(1);
    assert_eq!(cut_all(&mut queue, 10), [0, 2, 3, 4]);
}

#[test]
fn ordered_messages_are_numbered_per_stream_across_the_wrap_and_unordered_ones_are_not() {
    let mut queue = SendQueue::new(Scheduling::FirstComeFirstServed);
    for number in 0..70_000u32 {
        queue.push(at(0), MessageId(0), message(1, 1));
        queue.push(at(0), MessageId(1), OutboundMessage { unordered: true, ..message(1, 1) });
        assert_eq!(queue.next(10).unwrap().ssn(), number as u16);
        assert!(queue.next(10).unwrap().unordered);
    }
    queue.push(at(0), MessageId(0), message(2, 1));
    assert_eq!(queue.next(10).unwrap().ssn(), 0);
    queue.reset_mids(1);
    queue.push(at(0), MessageId(0), message(1, 1));
    queue.push(at(0), MessageId(0), message(2, 1));
    assert_eq!([queue.next(10).unwrap().ssn(), queue.next(10).unwrap().ssn()], [0, 1]);
    queue.reset_all_mids();
    queue.push(at(0), MessageId(0), message(1, 1));
    queue.push(at(0), MessageId(0), message(2, 1));
    assert_eq!([queue.next(10).unwrap().ssn(), queue.next(10).unwrap().ssn()], [0, 0]);
}

#[test]
fn messages_expire_unless_begun() {
    let messages = vec![timed(1, 5), timed(1, 20), message(1, 10), timed(2, 10)];
    let mut queue = queue(Scheduling::RoundRobin, messages);
    assert_eq!(queue.next_expiry(), Some(at(5)));
    let begun = queue.next(4).unwrap();
    assert_eq!((begun.message, begun.expires), (MessageId(0), Some(at(5))));
    assert_eq!(queue.next_expiry(), Some(at(10)), "the begun message is the association's");
    assert_eq!(expired(&mut queue, at(9)), [0; 0]);
    assert_eq!(expired(&mut queue, at(10)), [3], "a lifetime ends when it is used up");
    assert_eq!(expired(&mut queue, at(1000)), [1]);
    assert_eq!((queue.next_expiry(), queue.buffered_bytes()), (None, 16));
    assert_eq!(cut_all(&mut queue, 10), [0, 2]);
}

#[test]
fn an_expired_message_yields_its_age_but_not_the_turn_of_its_stream() {
    let messages = vec![timed(1, 5), message(2, 10), message(1, 10)];
    for (scheduling, order) in
        [(Scheduling::FirstComeFirstServed, [1, 2]), (Scheduling::RoundRobin, [2, 1])]
    {
        let mut queue = queue(scheduling, messages.clone());
        assert_eq!(expired(&mut queue, at(5)), [0]);
        assert_eq!(cut_all(&mut queue, 10), order);
    }
}

#[test]
fn the_rest_of_an_abandoned_message_is_not_cut() {
    let mut queue = queue(Scheduling::RoundRobin, vec![message(1, 30), message(1, 10)]);
    assert!(queue.abandon_begun(1, MessageId(0)).is_none(), "not begun");
    queue.next(10).unwrap();
    assert!(queue.abandon_begun(1, MessageId(1)).is_none(), "another is begun");
    let rest = queue.abandon_begun(1, MessageId(0)).expect("it is begun");
    assert!(rest.ending && !rest.beginning && rest.payload.is_empty());
    assert!(queue.abandon_begun(1, MessageId(0)).is_none(), "nothing is left of it");
    assert_eq!(queue.buffered_bytes(), 10);
    let next = queue.next(10).unwrap();
    assert_eq!((next.message, next.ssn(), next.beginning), (MessageId(1), 1, true));
}

#[test]
fn drains_whole_messages_in_the_order_in_which_they_were_accepted() {
    let messages = vec![message(2, 10), message(1, 30), timed(2, 5), message(1, 7)];
    let mut queue = queue(Scheduling::RoundRobin, messages.clone());
    queue.next(10).unwrap();
    queue.next(10).unwrap();
    queue.pause(2);
    let mut drained = Vec::new();
    queue.drain(|id, message, begun| drained.push((id.0, message, begun)));
    let [_, second, third, fourth] = messages.try_into().unwrap();
    assert_eq!(drained, [(1, second, true), (2, third, false), (3, fourth, false)]);
    assert!(queue.is_empty() && queue.peek_len(10).is_none() && queue.next_expiry().is_none());
    assert_eq!(queue.buffered_bytes(), 0);
}

/// The reference model: one list that is searched linearly.
#[derive(Default)]
struct Model {
    waiting: Vec<(u64, u16, Instant, usize)>,
    ring: VecDeque<u16>,
    paused: [bool; 4],
    begun: Option<(u64, usize)>,
}

impl Model {
    /// Streams join the ring when they have data to send, and leave it when they have none.
    fn settle(&mut self) {
        for stream in 0..4u16 {
            let has_turn =
                !self.paused[stream as usize] && self.waiting.iter().any(|m| m.1 == stream);
            match self.ring.iter().position(|&s| s == stream) {
                Some(place) if !has_turn => drop(self.ring.remove(place)),
                None if has_turn => self.ring.push_back(stream),
                _ => {}
            }
        }
    }

    fn next(&mut self, scheduling: Scheduling, max_payload: usize) -> Option<(u64, usize)> {
        if self.begun.is_none() {
            let index = match scheduling {
                Scheduling::FirstComeFirstServed => {
                    self.waiting.iter().position(|m| !self.paused[m.1 as usize])?
                }
                _ => {
                    let stream = self.ring.pop_front()?;
                    self.waiting.iter().position(|m| m.1 == stream)?
                }
            };
            let (id, _, _, bytes) = self.waiting.remove(index);
            self.begun = Some((id, bytes));
        }
        let (id, rest) = self.begun.take()?;
        let cut = rest.min(max_payload);
        self.begun = (rest > cut).then_some((id, rest - cut));
        Some((id, cut))
    }

    fn expire(&mut self, now: Instant) -> Vec<u64> {
        let mut gone: Vec<_> = self.waiting.extract_if(.., |m| m.2 <= now).collect();
        gone.sort_by_key(|&(id, _, expires, _)| (expires, id));
        gone.into_iter().map(|m| m.0).collect()
    }
}

#[test]
fn agrees_with_the_obvious_queue_under_random_operations() {
    for seed in 0..400 {
        let mut rng = Seed::from_u64(seed).rng();
        let scheduling =
            [Scheduling::RoundRobin, Scheduling::FirstComeFirstServed][seed as usize % 2];
        let (mut queue, mut model) = (SendQueue::new(scheduling), Model::default());
        for step in 0..300u64 {
            let (now, stream) = (at(step), rng.below(4) as u16);
            match rng.below(10) {
                0..=3 => {
                    let lifetime = Duration::from_millis(rng.below(60));
                    let is_timed = rng.chance(0.3);
                    let mut new = message(stream, 1 + rng.below(40) as usize);
                    let expires = if is_timed { now + lifetime } else { Instant::FAR_FUTURE };
                    if is_timed {
                        new.reliability = Reliability::Timed(lifetime);
                    }
                    model.waiting.push((step, stream, expires, new.payload.len()));
                    queue.push(now, MessageId(step), new);
                }
                4..=7 => {
                    let max_payload = 1 + rng.below(20) as usize;
                    let peeked = queue.peek_len(max_payload);
                    let cut = queue.next(max_payload).map(|f| (f.message.0, f.payload.len()));
                    assert_eq!(cut.map(|(_, length)| length), peeked, "seed {seed}");
                    assert_eq!(cut, model.next(scheduling, max_payload), "seed {seed}");
                }
                8 => {
                    let paused = rng.chance(0.3);
                    model.paused[stream as usize] = paused;
                    if paused { queue.pause(stream) } else { queue.resume(stream) }
                }
                _ => assert_eq!(expired(&mut queue, now), model.expire(now), "seed {seed}"),
            }
            model.settle();
            let waiting: usize = model.waiting.iter().map(|m| m.3).sum();
            assert_eq!(queue.buffered_bytes(), waiting + model.begun.map_or(0, |b| b.1));
            assert_eq!(queue.is_empty(), model.waiting.is_empty() && model.begun.is_none());
            let next_expiry = model.waiting.iter().map(|m| m.2).min();
            assert_eq!(queue.next_expiry(), next_expiry.filter(|&e| e < Instant::FAR_FUTURE));
        }
    }
}
