//! FQ-CoDel: a queue per flow, and the order in which they are served (RFC 8290 §4).

use std::collections::VecDeque;

use rexmit_core::Instant;

use super::codel::{Codel, Control, Queue, Queued, Sent};
use super::offered::mixed;
use super::{FqCodel, QueueLimit};

/// The most packets that the largest flow loses at a time (RFC 8290 §4.1).
const MAX_SHED: usize = 64;

/// The queues of all flows. `T` is what the caller stores of a packet.
#[derive(Clone, Debug)]
pub(super) struct FairQueue<T> {
    config: FqCodel,
    flows: Vec<Flow<T>>,
    /// Flows that began to send, by number.
    new: VecDeque<usize>,
    /// The other flows with packets, or with a turn left.
    old: VecDeque<usize>,
    /// Makes the assignment of flows to queues depend on the seed.
    perturbation: u64,
    packets: usize,
    bytes: usize,
    /// When the first packet after an empty queue came.
    ready_at: Instant,
}

#[derive(Clone, Debug)]
struct Flow<T> {
    queue: Queue<T>,
    codel: Codel,
    /// Bytes that the flow may still send in this round.
    deficit: isize,
    /// Whether it is in one of the lists.
    is_listed: bool,
}

impl<T> FairQueue<T> {
    pub(super) fn new(config: FqCodel, perturbation: u64) -> Self {
        let mut queue = Self {
            config,
            flows: Vec::new(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            perturbation,
            packets: 0,
            bytes: 0,
            ready_at: Instant::ZERO,
        };
        queue.reconfigure(config);
        queue
    }

    /// Applies another configuration. Packets stay in their queues.
    pub(super) fn reconfigure(&mut self, config: FqCodel) {
        self.config = config;
        let idle =
            || Flow { queue: Queue::new(), codel: Codel::default(), deficit: 0, is_listed: false };
        self.flows.resize_with(self.flows.len().max(config.flows), idle);
    }

    /// Packets and bytes in all queues.
    pub(super) const fn depth(&self) -> (usize, usize) {
        (self.packets, self.bytes)
    }

    /// When a link that has been idle may send the first packet; `None` without packets.
    pub(super) fn ready_at(&self) -> Option<Instant> {
        (self.packets > 0).then_some(self.ready_at)
    }

    /// Adds a packet of the flow with this key.
    pub(super) fn push(&mut self, flow: u64, packet: Queued<T>) {
        if self.packets == 0 {
            self.ready_at = packet.since;
        }
        self.packets += 1;
        self.bytes += packet.len;
        let number = (mixed(flow ^ self.perturbation) % self.config.flows as u64) as usize;
        let flow = &mut self.flows[number];
        flow.queue.push(packet);
        if !flow.is_listed {
            flow.is_listed = true;
            flow.deficit = self.config.quantum as isize;
            self.new.push_back(number);
        }
    }

    /// Whether there are more packets than `limit` allows.
    pub(super) const fn exceeds(&self, limit: QueueLimit) -> bool {
        match limit {
            QueueLimit::Packets(most) => self.packets > most,
            QueueLimit::Bytes(most) => self.bytes > most,
        }
    }

    /// Drops half of the packets of the flow with the most bytes, from the head of its queue.
    pub(super) fn shed(&mut self, dropped: &mut Vec<T>) {
        let fattest =
            self.flows.iter_mut().rev().max_by_key(|flow| (flow.queue.bytes(), flow.queue.len()));
        let Some(Flow { queue, .. }) = fattest else { return };
        for _ in 0..queue.len().div_ceil(2).min(MAX_SHED) {
            let Some(packet) = queue.pop() else { return };
            self.packets -= 1;
            self.bytes -= packet.len;
            dropped.push(packet.value);
        }
    }

    /// The packet that is sent at `now`. Packets that CoDel drops before it are added to `dropped`.
    pub(super) fn dequeue(
        &mut self,
        now: Instant,
        max_packet: usize,
        dropped: &mut Vec<T>,
    ) -> Option<Sent<T>> {
        let control = Control::new(&self.config, max_packet);
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let number = *list.front()?;
            let flow = &mut self.flows[number];
            if flow.deficit <= 0 {
                flow.deficit += self.config.quantum as isize;
                list.pop_front();
                self.old.push_back(number);
                continue;
            }
            let before = (flow.queue.len(), flow.queue.bytes());
            let sent = flow.codel.dequeue(now, &control, &mut flow.queue, dropped);
            self.packets -= before.0 - flow.queue.len();
            self.bytes -= before.1 - flow.queue.bytes();
            if let Some(sent) = sent {
                flow.deficit -= sent.packet.len as isize;
                return Some(sent);
            }
            list.pop_front();
            // A new flow has to wait for the old ones before it is new again, so that they do not starve.
            if is_new {
                self.old.push_back(number);
            } else {
                flow.is_listed = false;
            }
        }
    }

    /// The next packet in the order of service, whatever its delay.
    pub(super) fn pop(&mut self) -> Option<Queued<T>> {
        // With no time passed since a packet came, CoDel neither drops nor marks.
        self.dequeue(Instant::ZERO, usize::MAX, &mut Vec::new()).map(|sent| sent.packet)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Queues without CoDel's drops: no delay is above the target.
    fn queues(quantum: usize) -> FairQueue<u64> {
        let target = Duration::from_secs(1000);
        FairQueue::new(FqCodel { target, quantum, ..FqCodel::default() }, 1)
    }

    /// Adds `count` packets of `len` bytes to a flow; their value is the flow's key.
    fn push(queue: &mut FairQueue<u64>, flow: u64, count: usize, len: usize) {
        for _ in 0..count {
            let packet = Queued { since: Instant::ZERO, len, is_ecn_capable: false, value: flow };
            queue.push(flow, packet);
        }
    }

    /// The flows of the next packets.
    fn sent(queue: &mut FairQueue<u64>, count: usize) -> Vec<u64> {
        let next = || queue.dequeue(Instant::ZERO, 1500, &mut Vec::new());
        std::iter::repeat_with(next)
            .map_while(|sent| Some(sent?.packet.value))
            .take(count)
            .collect()
    }

    #[test]
    fn packets_without_bytes_are_shed_too() {
        let mut queue = queues(1514);
        push(&mut queue, 1, 8, 0);
        let mut dropped = Vec::new();
        queue.shed(&mut dropped);
        assert_eq!((dropped, queue.depth()), (vec![1; 4], (4, 0)));
    }

    #[test]
    fn flows_share_the_link_by_bytes_and_not_by_packets() {
        let mut queue = queues(1514);
        push(&mut queue, 1, 1000, 1500);
        push(&mut queue, 2, 20_000, 100);
        push(&mut queue, 3, 1000, 700);
        let mut bytes = [0_usize; 4];
        for flow in sent(&mut queue, 3000) {
            bytes[flow as usize] += [0, 1500, 100, 700][flow as usize];
        }
        let [_, first, second, third] = bytes;
        for other in [second, third] {
            assert!(first.abs_diff(other) <= 3 * 1514, "{bytes:?}");
        }
    }

    #[test]
    fn a_flow_that_begins_is_served_before_the_old_ones_but_only_for_a_quantum() {
        let mut queue = queues(3000);
        for flow in [1, 2] {
            push(&mut queue, flow, 100, 1500);
        }
        assert_eq!(sent(&mut queue, 5), [1, 1, 2, 2, 1]);
        push(&mut queue, 3, 100, 500);
        assert_eq!(sent(&mut queue, 6), [3; 6]);
        assert_eq!(sent(&mut queue, 5), [1, 2, 2, 3, 3]);
    }

    /// RFC 8290 §4.2: a new flow whose queue is empty becomes an old one, and is new again only after a round of the others.
    #[test]
    fn flows_that_send_a_packet_at_a_time_do_not_starve_the_others() {
        let mut queue = queues(1500);
        push(&mut queue, 1, 100, 1500);
        assert_eq!(sent(&mut queue, 1), [1]);
        let mut order = Vec::new();
        for round in 0..100 {
            // By then the queue of the other one was found empty.
            push(&mut queue, 2 + round % 2, 1, 100);
            order.extend(sent(&mut queue, 1));
        }
        let packets = order.iter().filter(|&&flow| flow == 1).count();
        // More bytes than each of the others.
        assert!(packets * 1500 > (100 - packets) * 100 / 2, "{order:?}");
    }

    #[test]
    fn the_limit_drops_half_of_the_fattest_flow_from_its_head() {
        let mut queue = queues(1514);
        push(&mut queue, 1, 40, 100);
        push(&mut queue, 2, 10, 1500);
        assert!(queue.exceeds(QueueLimit::Packets(49)) && !queue.exceeds(QueueLimit::Packets(50)));
        assert!(
            queue.exceeds(QueueLimit::Bytes(18_999)) && !queue.exceeds(QueueLimit::Bytes(19_000))
        );
        let mut dropped = Vec::new();
        queue.shed(&mut dropped);
        assert_eq!(dropped, [2; 5], "the most bytes, although not the most packets");
        assert_eq!(queue.depth(), (45, 11_500));
        push(&mut queue, 1, 400, 100);
        dropped.clear();
        queue.shed(&mut dropped);
        assert_eq!(dropped, [1; 64], "64 at most");
        let rest = sent(&mut queue, 1000);
        assert_eq!((rest.len(), queue.depth()), (381, (0, 0)));
        queue.shed(&mut dropped);
        assert_eq!(dropped.len(), 64, "nothing is left to be dropped");
    }

    #[test]
    fn the_head_is_dropped_and_the_newest_stay() {
        let mut queue = queues(1514);
        for value in 0..10 {
            let packet = Queued { since: Instant::ZERO, len: 100, is_ecn_capable: false, value };
            queue.push(1, packet);
        }
        let mut dropped = Vec::new();
        queue.shed(&mut dropped);
        assert_eq!(dropped, [0, 1, 2, 3, 4]);
        assert_eq!(sent(&mut queue, 10), [5, 6, 7, 8, 9]);
    }

    #[test]
    fn another_number_of_queues_loses_no_packet() {
        let mut queue = queues(1514);
        (0..100).for_each(|flow| push(&mut queue, flow, 3, 100));
        queue.reconfigure(FqCodel { flows: 2, ..queue.config });
        (0..100).for_each(|flow| push(&mut queue, flow, 3, 100));
        queue.reconfigure(FqCodel { flows: 4000, ..queue.config });
        (0..100).for_each(|flow| push(&mut queue, flow, 3, 100));
        assert_eq!(sent(&mut queue, 1000).len(), 900);
        assert_eq!((queue.depth(), queue.ready_at()), ((0, 0), None));
    }

    #[test]
    fn which_flows_share_a_queue_depends_on_the_seed() {
        let shared = |perturbation| {
            let config = FqCodel { flows: 64, ..FqCodel::default() };
            let mut queue = FairQueue::new(config, perturbation);
            (0..64).for_each(|flow| push(&mut queue, flow, 1, 100));
            queue.flows.iter().map(|flow| flow.queue.len()).collect::<Vec<_>>()
        };
        assert_eq!(shared(1), shared(1));
        assert_ne!(shared(1), shared(1 << 63));
    }
}
