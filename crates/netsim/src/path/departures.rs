//! FQ-CoDel in a path: packets wait, and their fate is decided when the link becomes free.

use std::collections::VecDeque;
use std::time::Duration;

use rexmit_core::Instant;

use super::codel::{Queued, Sent};
use super::fair_queue::FairQueue;
use super::fate::{Corruption, Fate, LossCause, Outcome};
use super::{FqCodel, Offered, PathModel, QueueLimit};

/// The largest packet of a path without an MTU, in bytes, for CoDel.
const MAX_PACKET: usize = 1500;
/// The queue has limited the packets already.
const NO_LIMIT: QueueLimit = QueueLimit::Packets(usize::MAX);

/// The random values and plans of a packet, made when it was offered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drawn {
    pub(super) packet: u64,
    pub(super) delay: Duration,
    pub(super) may_overtake: bool,
    pub(super) corruption: Option<Corruption>,
    pub(super) copy_delay: Option<Duration>,
    /// The number of positions by which it is held back.
    pub(super) hold_by: Option<u32>,
}

/// The packets that wait.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    queue: FairQueue<Drawn>,
    /// Whether packets are still added; otherwise the configuration has changed.
    is_in_use: bool,
    /// Outcomes that were not polled yet.
    decided: VecDeque<Outcome>,
    /// The packets dropped in one step, kept for its memory.
    dropped: Vec<Drawn>,
}

impl Waiting {
    pub(super) fn new(config: FqCodel, perturbation: u64) -> Self {
        let queue = FairQueue::new(config, perturbation);
        Self { queue, is_in_use: true, decided: VecDeque::new(), dropped: Vec::new() }
    }

    /// Packets and bytes.
    pub(super) const fn depth(&self) -> (usize, usize) {
        self.queue.depth()
    }
}

/// Paths with [`FqCodel`](super::FqCodel).
impl PathModel {
    /// Whether [`Offered::flow`] matters for the next packet.
    #[must_use]
    pub fn needs_flow(&self) -> bool {
        self.waiting.is_some() || !self.changes.is_empty()
    }

    /// When [`poll_departure`](Self::poll_departure) is to be called next; a time in the past means immediately. `None`
    /// without packets in a queue of FQ-CoDel.
    #[must_use]
    pub fn next_departure(&self) -> Option<Instant> {
        let Waiting { queue, decided, .. } = self.waiting.as_deref()?;
        if !decided.is_empty() {
            return Some(Instant::ZERO);
        }
        Some(queue.ready_at()?.max(self.queue.free_at()))
    }

    /// The next outcome, decided by `now`, for a packet that was [`Fate::Queued`]. To be called until it returns `None`,
    /// after each offer, and at the time of [`next_departure`](Self::next_departure), before a packet is offered at a later
    /// time.
    pub fn poll_departure(&mut self, now: Instant) -> Option<Outcome> {
        if let Some(outcome) = self.waiting.as_deref_mut()?.decided.pop_front() {
            return Some(outcome);
        }
        if !self.is_queueing() {
            self.waiting = None;
            return None;
        }
        let at = self.next_departure().filter(|&at| at <= now)?;
        self.apply_changes(at);
        if self.is_queueing() {
            self.depart(at);
        }
        self.waiting.as_deref_mut()?.decided.pop_front()
    }

    /// Whether offered packets are queued.
    pub(super) fn is_queueing(&self) -> bool {
        self.waiting.as_deref().is_some_and(|waiting| waiting.is_in_use)
    }

    /// Adds a packet to the queue of its flow.
    pub(super) fn wait(&mut self, now: Instant, offered: Offered, drawn: Drawn) {
        let Some(Waiting { queue, dropped, .. }) = self.waiting.as_deref_mut() else { return };
        let Offered { len, ecn, flow } = offered;
        self.queue.advance(now);
        let is_busy = self.queue.free_at() > now;
        let is_ecn_capable = ecn.is_capable();
        queue.push(flow, Queued { since: now, len, is_ecn_capable, value: drawn });
        // A packet that is sent at once does not wait.
        while queue.exceeds(self.config.queue) && (is_busy || queue.depth().0 > 1) {
            queue.shed(dropped);
        }
        if is_busy {
            let (packets, bytes) = queue.depth();
            self.stats.on_queue(packets, bytes);
        }
        self.drop_waiting(LossCause::Queue);
    }

    /// Applies the queue discipline of a configuration that begins at `at`.
    pub(super) fn change_discipline(&mut self, at: Instant) {
        match (&mut self.waiting, self.config.fq_codel) {
            (Some(waiting), Some(config)) => {
                waiting.queue.reconfigure(config);
                waiting.is_in_use = true;
            }
            (waiting @ None, Some(config)) => {
                *waiting = Some(Box::new(Waiting::new(config, self.chance.perturbation)));
            }
            (Some(waiting), None) => {
                waiting.is_in_use = false;
                // They stay ahead of new packets, and CoDel drops none of them any more.
                while let Some(packet) = self.waiting.as_deref_mut().and_then(|w| w.queue.pop()) {
                    self.transmit(at, &Sent { packet, is_marked: false });
                }
            }
            (None, None) => {}
        }
    }

    /// Lets the link, which is free at `at`, send the next packet.
    fn depart(&mut self, at: Instant) {
        let Some(Waiting { queue, dropped, .. }) = self.waiting.as_deref_mut() else { return };
        let sent = queue.dequeue(at, self.config.mtu.unwrap_or(MAX_PACKET), dropped);
        self.drop_waiting(LossCause::Codel);
        if let Some(sent) = sent {
            self.queue.advance(at);
            self.transmit(at, &sent);
        }
    }

    fn transmit(&mut self, at: Instant, sent: &Sent<Drawn>) {
        let Sent { packet: Queued { len, value: drawn, .. }, is_marked } = *sent;
        let sent_at = self.queue.accept(at, len, self.config.rate, NO_LIMIT).unwrap_or(at);
        let mut outcome = Outcome { is_marked, ..Outcome::of(drawn.packet, Fate::Passed) };
        self.deliver(sent_at, &drawn, &mut outcome);
        self.stats.on_departure(&outcome);
        if let Some(waiting) = self.waiting.as_deref_mut() {
            waiting.decided.push_back(outcome);
        }
    }

    /// Reports the packets that were dropped from the queue.
    fn drop_waiting(&mut self, cause: LossCause) {
        let Some(Waiting { dropped, decided, .. }) = self.waiting.as_deref_mut() else { return };
        for drawn in dropped.drain(..) {
            let outcome = Outcome::of(drawn.packet, Fate::Lost(cause));
            self.stats.on_departure(&outcome);
            decided.push_back(outcome);
        }
    }
}
