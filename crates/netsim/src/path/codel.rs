//! CoDel: which packets of one queue are dropped or marked when they are dequeued (RFC 8289 §5).

use std::collections::VecDeque;
use std::time::Duration;

use rexmit_core::Instant;

use super::FqCodel;

/// A packet in a queue.
#[derive(Clone, Debug)]
pub(super) struct Queued<T> {
    pub(super) since: Instant,
    pub(super) len: usize,
    pub(super) is_ecn_capable: bool,
    pub(super) value: T,
}

/// A queue of packets.
#[derive(Clone, Debug)]
pub(super) struct Queue<T> {
    packets: VecDeque<Queued<T>>,
    bytes: usize,
}

/// A packet that is sent.
#[derive(Clone, Debug)]
pub(super) struct Sent<T> {
    pub(super) packet: Queued<T>,
    pub(super) is_marked: bool,
}

impl<T> Queue<T> {
    pub(super) const fn new() -> Self {
        Self { packets: VecDeque::new(), bytes: 0 }
    }

    pub(super) fn push(&mut self, packet: Queued<T>) {
        self.bytes += packet.len;
        self.packets.push_back(packet);
    }

    pub(super) fn pop(&mut self) -> Option<Queued<T>> {
        let packet = self.packets.pop_front()?;
        self.bytes -= packet.len;
        Some(packet)
    }

    pub(super) fn len(&self) -> usize {
        self.packets.len()
    }

    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }
}

/// The parameters of CoDel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Control {
    pub(super) target: Duration,
    pub(super) interval: Duration,
    /// MAXPACKET: so many bytes behind the packet do not count as a queue.
    pub(super) max_packet: usize,
    pub(super) ecn: bool,
}

impl Control {
    pub(super) const fn new(config: &FqCodel, max_packet: usize) -> Self {
        Self { target: config.target, interval: config.interval, max_packet, ecn: config.ecn }
    }

    /// The control law: the time of the next drop after that at `at`.
    fn next_drop(&self, at: Instant, count: u32) -> Instant {
        let gap = self.interval.as_nanos() as f64 / f64::from(count).sqrt();
        at + Duration::from_nanos(gap as u64)
    }
}

/// The intervals without drops after which the drop rate begins anew.
const MEMORY: u32 = 16;

/// The state of one queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Codel {
    /// When the delay will have been above the target for an interval; `None` while it is below.
    first_above: Option<Instant>,
    next_drop: Instant,
    /// Drops since the dropping state was entered.
    count: u32,
    /// The value of `count` when the dropping state was entered last.
    last_count: u32,
    is_dropping: bool,
}

impl Codel {
    /// The packet that is sent at `now`. Packets dropped before it are added to `dropped`.
    pub(super) fn dequeue<T>(
        &mut self,
        now: Instant,
        control: &Control,
        queue: &mut Queue<T>,
        dropped: &mut Vec<T>,
    ) -> Option<Sent<T>> {
        let (mut head, mut is_above) = self.pop(now, control, queue);
        if !self.is_dropping {
            if is_above {
                self.enter_dropping(now, control);
                return self.drop_or_mark(head?, control, dropped).or_else(|| {
                    let packet = self.pop(now, control, queue).0?;
                    Some(Sent { packet, is_marked: false })
                });
            }
            return head.map(|packet| Sent { packet, is_marked: false });
        }
        self.is_dropping = is_above;
        while self.is_dropping && now >= self.next_drop {
            self.count = self.count.saturating_add(1);
            let marked = self.drop_or_mark(head?, control, dropped);
            if marked.is_some() {
                self.next_drop = control.next_drop(self.next_drop, self.count);
                return marked;
            }
            (head, is_above) = self.pop(now, control, queue);
            self.is_dropping = is_above;
            if is_above {
                self.next_drop = control.next_drop(self.next_drop, self.count);
            }
        }
        head.map(|packet| Sent { packet, is_marked: false })
    }

    /// The head of the queue, and whether the delay has been above the target for an interval.
    fn pop<T>(
        &mut self,
        now: Instant,
        control: &Control,
        queue: &mut Queue<T>,
    ) -> (Option<Queued<T>>, bool) {
        let head = queue.pop();
        let sojourn = head.as_ref().map_or(Duration::ZERO, |packet| now - packet.since);
        if head.is_none() || sojourn < control.target || queue.bytes() <= control.max_packet {
            self.first_above = None;
            return (head, false);
        }
        let due = *self.first_above.get_or_insert(now + control.interval);
        (head, now >= due)
    }

    /// Begins with the drop rate that the last dropping state ended with, if that was not long ago.
    fn enter_dropping(&mut self, now: Instant, control: &Control) {
        let drops = self.count - self.last_count;
        let is_recent = now - self.next_drop < control.interval * MEMORY;
        self.is_dropping = true;
        self.count = if drops > 1 && is_recent { drops } else { 1 };
        self.next_drop = control.next_drop(now, self.count);
        self.last_count = self.count;
    }

    /// The packet if it is marked; otherwise it is dropped.
    fn drop_or_mark<T>(
        &self,
        packet: Queued<T>,
        control: &Control,
        dropped: &mut Vec<T>,
    ) -> Option<Sent<T>> {
        if control.ecn && packet.is_ecn_capable {
            return Some(Sent { packet, is_marked: true });
        }
        dropped.push(packet.value);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const LEN: usize = 1000;

    fn control() -> Control {
        Control::new(&FqCodel { ecn: true, ..FqCodel::default() }, 1500)
    }

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    fn packet(since: Instant, is_ecn_capable: bool) -> Queued<()> {
        Queued { since, len: LEN, is_ecn_capable, value: () }
    }

    /// A queue that is filled as fast as it is emptied.
    struct Line {
        queue: Queue<()>,
        codel: Codel,
        is_ecn_capable: bool,
    }

    impl Line {
        fn new(is_ecn_capable: bool) -> Self {
            Self { queue: Queue::new(), codel: Codel::default(), is_ecn_capable }
        }

        /// Dequeues at `now` from a queue of `standing` packets that are `standing` milliseconds old. Returns the number of
        /// packets dropped, and whether the one sent is marked.
        fn dequeue(&mut self, now: Instant, standing: u64) -> (usize, bool) {
            while self.queue.len() < standing as usize {
                self.queue.push(packet(now - MS * standing as u32, self.is_ecn_capable));
            }
            // All have the same age, however long they have been here.
            self.queue.packets.iter_mut().for_each(|p| p.since = now - MS * standing as u32);
            let mut dropped = Vec::new();
            let sent = self.codel.dequeue(now, &control(), &mut self.queue, &mut dropped).unwrap();
            (dropped.len(), sent.is_marked)
        }

        /// The times in milliseconds at which packets are dropped or marked, with a dequeue per millisecond.
        fn signals(&mut self, times: std::ops::Range<u64>, standing: u64) -> Vec<u64> {
            times
                .filter(|&ms| {
                    let (dropped, is_marked) = self.dequeue(at(ms), standing);
                    assert_eq!(dropped > 0 || is_marked, dropped + usize::from(is_marked) == 1);
                    dropped > 0 || is_marked
                })
                .collect()
        }
    }

    /// The first drop comes after an interval above the target, the following ones after interval/√count (RFC 8289 §5.5).
    #[test]
    fn drops_and_marks_follow_the_control_law() {
        let mut due = 1100.0;
        let mut expected = vec![1100];
        for count in 1..20 {
            due += 100.0 / f64::from(count).sqrt();
            expected.push(due.ceil() as u64);
        }
        for is_ecn_capable in [false, true] {
            let signals = Line::new(is_ecn_capable).signals(1000..3000, 20);
            assert_eq!(signals[..20], expected, "with ECN: {is_ecn_capable}");
        }
        assert!(Line::new(true).dequeue(at(0), 20) == (0, false));
    }

    #[test]
    fn capable_packets_are_marked_and_others_dropped() {
        for is_ecn_capable in [false, true] {
            let mut line = Line::new(is_ecn_capable);
            let (mut drops, mut marks) = (0, 0);
            for ms in 0..2000 {
                let (dropped, is_marked) = line.dequeue(at(ms), 20);
                drops += dropped;
                marks += usize::from(is_marked);
            }
            assert_eq!(drops > 0, !is_ecn_capable);
            assert_eq!(marks > 0, is_ecn_capable);
        }
        let mut dropped = Vec::new();
        let off = Control { ecn: false, ..control() };
        let kept = Codel::default().drop_or_mark(packet(at(0), true), &off, &mut dropped);
        assert!(kept.is_none() && dropped.len() == 1, "without ECN, also capable ones are dropped");
    }

    #[test]
    fn nothing_is_dropped_below_the_target_or_while_little_is_queued() {
        assert!(Line::new(false).signals(0..5000, 4).is_empty(), "4 ms are below the target");
        // At exactly the target packets are dropped, but not when one packet remains.
        assert!(!Line::new(false).signals(0..5000, 5).is_empty());
        let mut codel = Codel::default();
        let mut dropped = Vec::new();
        for ms in 0..5000 {
            let mut queue = Queue::new();
            // 1000 bytes remain, which are less than MAXPACKET.
            for _ in 0..2 {
                queue.push(packet(at(ms) - 500 * MS, false));
            }
            codel.dequeue(at(ms), &control(), &mut queue, &mut dropped).unwrap();
        }
        assert!(dropped.is_empty());
    }

    #[test]
    fn one_packet_below_the_target_ends_the_dropping_state() {
        let mut line = Line::new(false);
        assert_eq!(line.signals(1000..1250, 20), [1100, 1200]);
        assert_eq!(line.dequeue(at(1250), 4), (0, false));
        // The delay has to be above the target for a whole interval again.
        assert_eq!(line.signals(1251..1360, 20), [1351]);
    }

    /// Within 16 intervals the drop rate is resumed, later it begins anew (RFC 8289 §5.5).
    #[test]
    fn the_drop_rate_is_remembered_for_a_while() {
        let gap_after = |pause: u64| {
            let mut line = Line::new(false);
            line.signals(0..1000, 20);
            line.dequeue(at(1000), 4);
            let again = line.signals(1000 + pause..1600 + pause, 20);
            again[1] - again[0]
        };
        assert!(gap_after(200) < 50, "{}", gap_after(200));
        assert_eq!(gap_after(2000), 100);
    }

    #[test]
    fn a_queue_that_empties_leaves_no_packet_and_no_state_behind() {
        let mut line = Line::new(false);
        line.signals(0..100, 20);
        let mut dropped = Vec::new();
        while line.codel.dequeue(at(150), &control(), &mut line.queue, &mut dropped).is_some() {}
        assert_eq!((line.queue.len(), line.queue.bytes()), (0, 0));
        assert_eq!(line.codel.first_above, None);
    }
}
