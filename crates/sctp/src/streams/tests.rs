//! Both sides together, over a network that reorders and duplicates, with a sender that abandons messages.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use rexmit_core::{Instant, Rng, Seed};

use super::*;
use crate::message::{InboundMessage, MessageId, OutboundMessage, Reliability};
use crate::wire::SkippedMid;

#[test]
fn streams_cost_nothing_until_they_are_used() {
    assert!(size_of::<SendQueue>() + size_of::<Reassembly>() <= 512);
}

const SCHEDULERS: [Scheduling; 6] = [
    Scheduling::RoundRobin,
    Scheduling::FirstComeFirstServed,
    Scheduling::RoundRobinPerPacket,
    Scheduling::Priority,
    Scheduling::FairBandwidth,
    Scheduling::WeightedFairQueueing,
];
const STREAMS: u64 = 5;
const FIRST_TSN: u64 = (1 << 32) + 77;

/// What happened to an assigned TSN.
struct Sent {
    fragment: Fragment,
    abandoned: bool,
}

struct Pair {
    rng: Rng,
    now: Instant,
    queue: SendQueue,
    reassembly: Reassembly,
    /// Fates of the TSNs, from the one after `cumulative_tsn` on.
    sent: BTreeMap<u64, Sent>,
    next_tsn: u64,
    received: BTreeSet<u64>,
    cumulative_tsn: u64,
    /// TSNs in flight.
    flying: Vec<u64>,
    pending_reset: Option<Option<u16>>,
    messages: Vec<OutboundMessage>,
    /// Messages that may remain undelivered.
    given_up: BTreeSet<u64>,
    /// Messages that may still be delivered in order, by stream.
    ordered: [VecDeque<u64>; STREAMS as usize],
    unordered: BTreeSet<u64>,
}

impl Pair {
    fn new(seed: u64) -> Self {
        let scheduling = SCHEDULERS[seed as usize % SCHEDULERS.len()];
        let is_interleaved = seed % 4 >= 2;
        let mut queue = SendQueue::new(scheduling);
        let mut reassembly = Reassembly::new(ReassemblyLimits::default());
        reassembly.on_peer_known(is_interleaved, false);
        if is_interleaved {
            queue.interleave(2000);
        }
        Self {
            rng: Seed::from_u64(seed).rng(),
            now: Instant::ZERO,
            queue,
            reassembly,
            sent: BTreeMap::new(),
            next_tsn: FIRST_TSN,
            received: BTreeSet::new(),
            cumulative_tsn: FIRST_TSN - 1,
            flying: Vec::new(),
            pending_reset: None,
            messages: Vec::new(),
            given_up: BTreeSet::new(),
            ordered: Default::default(),
            unordered: BTreeSet::new(),
        }
    }

    fn step(&mut self) {
        self.now += Duration::from_millis(1);
        match self.rng.below(21) {
            0..=3 => self.push(),
            4..=9 => self.cut(),
            10..=15 => self.deliver(),
            16 => self.abandon(),
            17 => self.forward(),
            18 => self.ask_for_reset(),
            19 if self.rng.chance(0.3) => self.reschedule(),
            _ => {
                let given_up = &mut self.given_up;
                self.queue.expire(self.now, |id, _| {
                    given_up.insert(id.0);
                });
                self.read();
            }
        }
        self.reset_if_pending();
        assert!(!self.reassembly.has_contradiction(self.cumulative_tsn));
    }

    fn reschedule(&mut self) {
        let stream = self.rng.below(STREAMS) as u16;
        match self.rng.below(4) {
            0 => self.queue.set_scheduling(SCHEDULERS[self.rng.below(6) as usize]),
            1 => self.queue.begin_packet(),
            2 => self.queue.end_packet(),
            _ => self.queue.set_priority(stream, self.rng.below(1000) as u16),
        }
    }

    fn push(&mut self) {
        let (rng, id) = (&mut self.rng, self.messages.len() as u64);
        let most = if rng.chance(0.3) { 400 } else { 30 };
        let mut payload = vec![0; 1 + rng.below(most) as usize];
        rng.fill(&mut payload);
        let mut message = OutboundMessage::new(rng.below(STREAMS) as u16, payload);
        message.ppid = id as u32;
        message.unordered = rng.chance(0.3);
        if rng.chance(0.2) {
            message.reliability = Reliability::Timed(Duration::from_millis(rng.below(40)));
        }
        if message.unordered {
            self.unordered.insert(id);
        } else {
            self.ordered[message.stream as usize].push_back(id);
        }
        self.messages.push(message.clone());
        self.queue.push(self.now, MessageId(id), message);
    }

    fn cut(&mut self) {
        if self.next_tsn - self.cumulative_tsn > 60 {
            return;
        }
        let max_payload = 1 + self.rng.below(40) as usize;
        if let Some(fragment) = self.queue.next(max_payload) {
            self.flying.push(self.next_tsn);
            self.sent.insert(self.next_tsn, Sent { fragment, abandoned: false });
            self.next_tsn += 1;
        }
    }

    /// Delivers one of the TSNs in flight, and may keep it for a second delivery.
    fn deliver(&mut self) {
        if self.flying.is_empty() {
            return;
        }
        let at = self.rng.below(self.flying.len() as u64) as usize;
        let tsn = if self.rng.chance(0.1) { self.flying[at] } else { self.flying.swap_remove(at) };
        if tsn <= self.cumulative_tsn || !self.received.insert(tsn) {
            return;
        }
        let fragment = &self.sent[&tsn].fragment;
        let piece = Piece {
            tsn,
            stream: fragment.stream,
            // RFC 9260 §6.6: without significance, arbitrary, to be ignored.
            mid: if fragment.unordered && !self.reassembly.is_interleaved() {
                self.rng.below(1 << 16) as u32
            } else {
                fragment.mid
            },
            fsn: fragment.fsn,
            ppid: fragment.ppid,
            unordered: fragment.unordered,
            beginning: fragment.beginning,
            ending: fragment.ending,
            payload: &fragment.payload,
        };
        self.reassembly.on_data(&piece).expect("the sender is correct");
        self.advance();
    }

    fn advance(&mut self) {
        while self.received.remove(&(self.cumulative_tsn + 1)) {
            self.cumulative_tsn += 1;
            self.sent.remove(&self.cumulative_tsn);
        }
    }

    /// Abandons a message that has an outstanding TSN.
    fn abandon(&mut self) {
        let outstanding = self.next_tsn - 1 - self.cumulative_tsn;
        if outstanding == 0 {
            return;
        }
        let tsn = self.cumulative_tsn + 1 + self.rng.below(outstanding);
        let Fragment { message: id, stream, .. } = self.sent[&tsn].fragment;
        if let Some(rest) = self.queue.abandon_begun(stream, id) {
            // The TSN used up for the part that will not be sent.
            self.sent.insert(self.next_tsn, Sent { fragment: rest, abandoned: true });
            self.next_tsn += 1;
        }
        self.given_up.insert(id.0);
        for sent in self.sent.values_mut().filter(|sent| sent.fragment.message == id) {
            sent.abandoned = true;
        }
    }

    fn forward(&mut self) {
        let mut point = self.cumulative_tsn;
        let mut skipped = BTreeMap::new();
        let is_past = |tsn: u64, sent: &Sent| sent.abandoned || self.received.contains(&tsn);
        while let Some(sent) = self.sent.get(&(point + 1)).filter(|sent| is_past(point + 1, sent)) {
            if sent.abandoned {
                skipped.insert((sent.fragment.stream, sent.fragment.unordered), sent.fragment.mid);
            }
            point += 1;
        }
        if point == self.cumulative_tsn {
            return;
        }
        let mids = skipped.iter().map(|(&(stream, unordered), &mid)| SkippedMid {
            stream,
            unordered,
            mid,
        });
        self.reassembly.on_i_forward_tsn(mids);
        let ordered = skipped.iter().filter(|((_, unordered), _)| !unordered);
        let ssns = ordered.map(|(&(stream, _), &mid)| (stream, mid as u16));
        self.reassembly.on_forward_tsn(point, ssns);
        self.cumulative_tsn = point;
        self.sent = self.sent.split_off(&(point + 1));
        self.received = self.received.split_off(&(point + 1));
    }

    fn ask_for_reset(&mut self) {
        if self.pending_reset.is_none() && self.rng.chance(0.3) {
            let stream = self.rng.chance(0.7).then(|| self.rng.below(STREAMS) as u16);
            match stream {
                Some(stream) => self.queue.pause(stream),
                None => self.queue.pause_all(),
            }
            self.pending_reset = Some(stream);
        }
    }

    /// Resets the stream once none of its data is in flight.
    fn reset_if_pending(&mut self) {
        let Some(stream) = self.pending_reset else { return };
        let is_of_it = |sent: &Sent| stream.is_none_or(|stream| sent.fragment.stream == stream);
        if self.sent.values().any(is_of_it) {
            return;
        }
        match stream {
            Some(stream) if !self.queue.has_begun_message_on(stream) => {
                self.reassembly.on_streams_reset(Some(&[stream]));
                self.queue.reset_mids(stream);
                self.queue.resume(stream);
            }
            None if !self.queue.has_begun_message() => {
                self.reassembly.on_streams_reset(None);
                self.queue.reset_all_mids();
                self.queue.resume_all();
            }
            _ => return,
        }
        self.pending_reset = None;
    }

    fn read(&mut self) {
        while self.reassembly.has_ready() {
            let message = self.reassembly.pop().expect("one is ready");
            self.check(&message);
        }
        assert_eq!(self.reassembly.pop(), None);
    }

    fn check(&mut self, message: &InboundMessage) {
        let id = u64::from(message.ppid);
        let original = &self.messages[id as usize];
        assert_eq!(message.payload, original.payload);
        assert_eq!((message.stream, message.unordered), (original.stream, original.unordered));
        if message.unordered {
            assert!(self.unordered.remove(&id), "delivered twice");
            return;
        }
        let ordered = &mut self.ordered[message.stream as usize];
        while let Some(first) = ordered.pop_front() {
            if first == id {
                return;
            }
            assert!(self.given_up.contains(&first), "message {first} was overtaken by {id}");
        }
        panic!("message {id} was delivered twice or too late");
    }

    /// Lets everything arrive or be skipped, and checks that no message is missing and no state remains.
    fn finish(mut self) {
        self.queue.end_packet();
        while !self.queue.is_empty() || self.cumulative_tsn + 1 < self.next_tsn {
            self.cut();
            self.deliver();
            self.forward();
            self.reset_if_pending();
        }
        self.read();
        let undelivered = self.ordered.iter().flatten().chain(&self.unordered);
        for id in undelivered {
            assert!(self.given_up.contains(id), "message {id} was lost");
        }
        assert_eq!(self.queue.buffered_bytes(), 0);
        assert_eq!(self.reassembly.held_bytes(), 0);
        assert!(!self.reassembly.has_contradiction(self.cumulative_tsn));
    }
}

#[test]
fn every_message_is_delivered_exactly_once_and_in_order_or_given_up() {
    for seed in 0..500 {
        let mut pair = Pair::new(seed);
        for _ in 0..1500 {
            pair.step();
        }
        pair.finish();
    }
}
