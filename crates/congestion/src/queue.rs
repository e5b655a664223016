//! Signs of a queue on a path: the delay that it adds to round trips, and the packets that it drops.
//!
//! A drop-tail queue that a greedy sender keeps filled delays all packets about equally, while jitter delays
//! each packet differently. The queueing delay is therefore estimated as the mean round trip, minus the
//! shortest recent one, minus what jitter explains. Jitter is measured by the differences between round
//! trips: independent delays differ over one step by the same amount as over two, while a queue, which grows and drains,
//! differs more over two. A queue that stood for minutes is not detected, as by any delay-based sender, nor
//! is one so short that it fills and drains between two of our packets; the loss rate shows these.

use std::time::Duration;

use rexmit_core::Instant;

/// The shortest round trip is that of the last one to two of these periods.
const LEAST_WINDOW: Duration = Duration::from_secs(60);
/// Round trips before any delay is reported.
const FIRST_SAMPLES: u32 = 16;
/// The divisor of the smoothed mean: a new sample has at least this weight, 1/16.
const WEIGHT: u32 = 16;
/// The divisor of the mean squares of the differences, which measure jitter: a new sample has at least this weight, 1/128.
const JITTER_WEIGHT: u32 = 128;
/// Standard deviations of jitter between the mean and the least of about a thousand samples, with one for
/// the uncertainty of the estimate.
const JITTER_DEVIATIONS: f64 = 4.5;

/// The indications of a queue on a path.
#[derive(Clone, Copy, Debug, Default)]
pub struct QueueSigns {
    /// By the round trips.
    pub delay: QueueingDelay,
    /// By the losses.
    pub losses: RecentLosses,
}

/// How much longer round trips take because of a queue.
#[derive(Clone, Copy, Debug, Default)]
pub struct QueueingDelay {
    /// The latest sample, and the one before.
    latest: [f64; 2],
    mean: f64,
    /// The mean squares of the differences over one step and over two.
    squares: [f64; 2],
    /// The shortest of this window, and of the one before.
    least: [f64; 2],
    window_began_at: Instant,
    /// Samples so far, up to [`JITTER_WEIGHT`].
    count: u32,
}

impl QueueingDelay {
    /// Called when a round trip was measured.
    pub fn on_sample(&mut self, now: Instant, rtt: Duration) {
        let rtt = rtt.as_secs_f64();
        if self.count == 0 {
            (self.latest, self.mean, self.least) = ([rtt; 2], rtt, [rtt; 2]);
            self.window_began_at = now;
        } else if now - self.window_began_at > LEAST_WINDOW {
            // The shortest before a long pause says nothing of the path now.
            let is_recent = now - self.window_began_at <= 2 * LEAST_WINDOW;
            self.least = [rtt, if is_recent { self.least[0] } else { rtt }];
            self.window_began_at = now;
        }
        self.count = (self.count + 1).min(JITTER_WEIGHT);
        self.least[0] = self.least[0].min(rtt);
        blend(&mut self.mean, rtt, self.count.min(WEIGHT));
        for (square, before) in self.squares.iter_mut().zip(self.latest) {
            blend(square, (rtt - before).powi(2), self.count);
        }
        self.latest = [rtt, self.latest[0]];
    }

    /// The delay that the queue adds; zero while there are too few samples to distinguish it from jitter.
    pub fn standing(&self) -> Duration {
        if self.count < FIRST_SAMPLES {
            return Duration::ZERO;
        }
        let [one_step, two_steps] = self.squares;
        let jitter = (one_step - two_steps / 2.0).max(0.0).sqrt();
        let least = self.least[0].min(self.least[1]);
        Duration::from_secs_f64((self.mean - least - JITTER_DEVIATIONS * jitter).max(0.0))
    }
}

/// `old · (1 − 1/n) + new / n`.
fn blend(old: &mut f64, new: f64, n: u32) {
    *old += (new - *old) / f64::from(n);
}

/// Packets after which the counts are halved, more than a burst of losses has.
const LOSS_WINDOW: u32 = 128;
/// Packets counted as sent before the first.
const LOSS_HEAD_START: u32 = 64;
/// With more than this percentage of packets lost a path is overloaded, whatever its delay.
const OVERLOAD_PERCENT: u32 = 40;
/// With more than this percentage lost redundant copies stop, since they may be what fills the queue.
const COPIES_STOP_PERCENT: u32 = 30;
/// After a mark copies pause for this many packets with new data: they resume where less than about 3 % are marked.
const LEAST_PAUSE: u16 = 32;
/// The longest pause: it doubles while a mark follows soon after copies have resumed.
const LONGEST_PAUSE: u16 = 4096;
/// Soon is within so many times the pause: a queue that copies build slowly takes a while until it is marked.
const TRIAL_PAUSES: u16 = 8;
/// With less than this percentage lost they resume.
const COPIES_RESUME_PERCENT: u32 = 15;

/// How many of the latest packets with new data were declared lost, and whether one was marked. Retransmissions do not count: a burst of
/// losses takes many of them.
#[derive(Clone, Copy, Debug)]
pub struct RecentLosses {
    sent: u32,
    lost: u32,
    forbid_copies: bool,
    marks: RecentMarks,
}

impl Default for RecentLosses {
    fn default() -> Self {
        Self { sent: LOSS_HEAD_START, lost: 0, forbid_copies: false, marks: RecentMarks::NONE }
    }
}

impl RecentLosses {
    /// Called when a packet with new data was sent.
    pub const fn on_sent(&mut self) {
        if self.sent >= LOSS_WINDOW {
            (self.sent, self.lost) = (self.sent / 2, self.lost / 2);
        }
        self.sent += 1;
        self.forbid_copies &= self.exceed(COPIES_RESUME_PERCENT);
        self.marks.on_sent();
    }

    /// Called when a packet was declared lost.
    pub const fn on_lost(&mut self) {
        self.lost = self.lost.saturating_add(1);
        self.forbid_copies |= self.exceed(COPIES_STOP_PERCENT);
    }

    /// Called when a packet was marked by a router (ECN), which would have dropped it otherwise.
    pub fn on_marked(&mut self) {
        self.marks.on_marked();
    }

    /// Whether the path is overloaded, whatever its delay.
    pub const fn show_overload(&self) -> bool {
        self.exceed(OVERLOAD_PERCENT)
    }

    /// Whether the loss rate is so high that redundant copies may be its cause, or a router has marked one of the latest
    /// packets.
    pub const fn forbid_copies(&self) -> bool {
        self.forbid_copies || self.marks.paused > 0
    }

    const fn exceed(&self, percent: u32) -> bool {
        self.lost as u64 * 100 > self.sent as u64 * percent as u64
    }
}

/// Pauses of copies because of marks. After a pause copies are tried again: if marks follow, copies may be what causes them,
/// and the next pause is twice as long.
#[derive(Clone, Copy, Debug)]
struct RecentMarks {
    /// Packets with new data until copies may resume.
    paused: u16,
    /// The length of the latest pause.
    pause: u16,
    /// Packets with new data since copies have resumed.
    resumed: u16,
}

impl RecentMarks {
    const NONE: Self = Self { paused: 0, pause: LEAST_PAUSE, resumed: u16::MAX };

    const fn on_sent(&mut self) {
        if self.paused > 0 {
            self.paused -= 1;
        } else {
            self.resumed = self.resumed.saturating_add(1);
        }
    }

    fn on_marked(&mut self) {
        if self.paused == 0 {
            let is_soon = self.resumed <= TRIAL_PAUSES * self.pause;
            self.pause = if is_soon { (2 * self.pause).min(LONGEST_PAUSE) } else { LEAST_PAUSE };
            self.resumed = 0;
        }
        self.paused = self.pause;
    }
}

#[cfg(test)]
mod tests {
    use rexmit_core::{Rng, Seed};

    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// Adds samples at a constant pace from `start` on; returns the largest and the smallest estimate.
    fn answers(
        queueing: &mut QueueingDelay,
        start: Instant,
        times: impl IntoIterator<Item = Duration>,
    ) -> (Duration, Duration) {
        let mut told = (Duration::ZERO, Duration::MAX);
        for (n, time) in (0..).zip(times) {
            queueing.on_sample(start + n * MS(50), time);
            let standing = queueing.standing();
            told = (told.0.max(standing), told.1.min(standing));
        }
        told
    }

    #[test]
    fn a_queue_is_detected_within_two_seconds_and_forgotten_as_soon() {
        let mut queueing = QueueingDelay::default();
        let at = Instant::from_millis;
        assert_eq!(answers(&mut queueing, at(0), vec![MS(100); 100]).0, MS(0));
        answers(&mut queueing, at(10_000), vec![MS(150); 40]);
        assert!((MS(30)..=MS(50)).contains(&queueing.standing()), "{:?}", queueing.standing());
        answers(&mut queueing, at(20_000), vec![MS(100); 40]);
        assert!(queueing.standing() < MS(5), "{:?}", queueing.standing());
    }

    /// An approximately normally distributed delay around 200 ms, from a sum of uniform numbers.
    fn normal(rng: &mut Rng, deviation: Duration) -> Duration {
        let sum: f64 = (0..12).map(|_| rng.unit()).sum();
        Duration::from_secs_f64(0.2 + (sum - 6.0) * deviation.as_secs_f64())
    }

    /// Jitter with a standard deviation of 5 and of 20 ms each way.
    #[test]
    fn jitter_is_no_queue() {
        for each_way in [5, 20] {
            let mut rng = Seed::from_u64(each_way).rng();
            let deviation = MS(each_way).mul_f64(2f64.sqrt());
            let times: Vec<_> = (0..10_000).map(|_| normal(&mut rng, deviation)).collect();
            let most = answers(&mut QueueingDelay::default(), Instant::ZERO, times).0;
            assert!(most < MS(each_way), "{most:?} beside a deviation of {deviation:?}");
        }
    }

    /// The minimum of two windows ago is forgotten: the path may have become longer.
    #[test]
    fn a_delay_that_lasts_for_two_minutes_is_no_queue() {
        let mut queueing = QueueingDelay::default();
        let told = |queueing: &mut QueueingDelay, second: u64, ms| {
            answers(queueing, Instant::from_millis(second * 1000), vec![MS(ms); 20]);
            queueing.standing()
        };
        assert_eq!(told(&mut queueing, 0, 100), MS(0));
        for second in (1..60).step_by(5) {
            told(&mut queueing, second, 200);
        }
        assert!(told(&mut queueing, 60, 200) > MS(90));
        for second in (62..122).step_by(5) {
            assert!(told(&mut queueing, second, 200) > MS(90), "{second}");
        }
        told(&mut queueing, 125, 200);
        assert_eq!(told(&mut queueing, 130, 200), MS(0));
    }

    #[test]
    fn the_first_acks_show_no_queue() {
        let mut queueing = QueueingDelay::default();
        assert_eq!(answers(&mut queueing, Instant::ZERO, [MS(10), MS(200), MS(210)]).0, MS(0));
    }

    #[test]
    fn the_shortest_round_trip_before_a_pause_is_forgotten() {
        let mut queueing = QueueingDelay::default();
        answers(&mut queueing, Instant::ZERO, vec![MS(100); 20]);
        answers(&mut queueing, Instant::from_millis(3_600_000), vec![MS(200); 20]);
        assert_eq!(queueing.standing(), MS(0));
    }

    #[test]
    fn more_than_two_fifths_of_the_packets_are_too_many_to_lose() {
        let are_too_many = |every: u32, of: u32| {
            let mut losses = RecentLosses::default();
            for n in 0..1000 {
                losses.on_sent();
                if n % of < every {
                    losses.on_lost();
                }
            }
            losses.show_overload()
        };
        assert!(!are_too_many(9, 25), "a fifth each way is judged to be 36 %");
        assert!(are_too_many(1, 2));
        let mut losses = RecentLosses::default();
        (0..20).for_each(|_| (losses.on_sent(), losses.on_lost()).0);
        assert!(!losses.show_overload(), "the first ones tell nothing");
    }

    #[test]
    fn copies_stop_when_much_is_lost_and_resume_when_little_is() {
        let mut losses = RecentLosses::default();
        let mut forbids = |lost_of_ten: u32| {
            for n in 0..1000 {
                losses.on_sent();
                if n % 10 < lost_of_ten {
                    losses.on_lost();
                }
            }
            losses.forbid_copies()
        };
        let told = [2, 4, 2, 1, 2].map(&mut forbids);
        assert_eq!(told, [false, true, true, false, false]);
    }

    #[test]
    fn copies_pause_for_some_packets_after_a_mark() {
        let mut losses = RecentLosses::default();
        (0..100).for_each(|_| losses.on_sent());
        losses.on_marked();
        let paused = (0..100).take_while(|_| losses.forbid_copies() && (losses.on_sent(), true).1);
        assert_eq!(paused.count(), usize::from(LEAST_PAUSE));
        assert!(!losses.show_overload());
    }

    #[test]
    fn the_pause_doubles_while_marks_follow_the_copies() {
        let mut losses = RecentLosses::default();
        let mut pause_after = |unmarked: u16| {
            (0..unmarked).for_each(|_| losses.on_sent());
            losses.on_marked();
            (0..u16::MAX)
                .take_while(|_| losses.forbid_copies() && (losses.on_sent(), true).1)
                .count()
        };
        assert_eq!([100, 10, 500, 10].map(&mut pause_after), [32, 64, 128, 256]);
        assert_eq!((0..10).map(|_| pause_after(1)).last(), Some(LONGEST_PAUSE.into()));
        let quiet = TRIAL_PAUSES * LONGEST_PAUSE + 1;
        assert_eq!(pause_after(quiet), usize::from(LEAST_PAUSE), "they caused none");
    }

    #[test]
    fn marks_without_copies_do_not_make_the_pause_longer_but_begin_it_anew() {
        let mut losses = RecentLosses::default();
        for _ in 0..10 {
            losses.on_marked();
            (0..LEAST_PAUSE - 1).for_each(|_| losses.on_sent());
            assert!(losses.forbid_copies());
        }
        losses.on_sent();
        assert!(!losses.forbid_copies());
    }
}
