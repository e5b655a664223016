//! Paths chosen by measurements: that of new data by its tail latency, that of a retransmission by the loss rate of data
//! which another path has just lost.
//!
//! # Correlation
//! For each pair of paths the fates of packets are counted whose data was lost over the first and then sent over the
//! second: retransmissions and, for a pair of a path with itself, the first packet with new data that the path carries
//! soon after a loss. Their loss rate, P(lost on b | just lost on a), decides where a retransmission is sent. While few
//! are counted, another path is assumed to lose independently, and the same path to fail still.
//!
//! # Tail
//! The tail of a path is the mean latency of the slowest hundredth of its messages. A message that is lost once takes
//! the probe timeout and the way over the path of retransmissions, one that is lost twice also the timeout of that.
//! The shares of these are the share of losses on the path, and that times P(lost again).
//!
//! # Idle paths
//! A path without new data is probed with every hundredth new packet, so that its round trip and losses stay known for a
//! percent of the packets; once a second, the most that the protocol permits, while there are few samples or its last
//! packet was lost.
//!
//! # No flapping
//! New data changes to a path whose tail is shorter by a sixth at least for [`HOLD`] without interruption. It changes
//! at once from a path that loses [`SUSPECT_LOSSES`] packets in a row: nothing shows then that the path works.

use std::num::NonZeroU8;
use std::time::Duration;

use rexmit_core::Instant;
use rexmit_deadline::RoundTrip;

/// Paths of which something is counted; further ones are used as without measurements.
pub(crate) const MAX_MEASURED: usize = 8;
/// New packets per probe of an idle path that works.
const PACKETS_PER_PROBE: u64 = 100;
/// Packets in a row that are lost on a path before it gets no new data while there is another one.
const SUSPECT_LOSSES: u8 = 3;
/// Packets after which the counts of a pair are halved.
const PAIR_WINDOW: u16 = 64;
/// Packets of a path after which its counts are halved.
const PATH_WINDOW: u16 = 256;
/// The weight of the loss rate assumed for a pair, in packets.
const PAIR_PRIOR: f64 = 8.0;
/// The weight of the loss rate assumed for a path, in packets: the rate of all paths together.
const PATH_PRIOR: f64 = 16.0;
/// The loss rate assumed before the first packet.
const FIRST_LOSS: f64 = 0.01;
/// The loss rate assumed for a path right after it has lost a packet.
const STILL_FAILING: f64 = 0.5;
/// The path of a loss is preferred for the retransmission if its loss rate after a loss is lower than another's by this factor.
const SAME_ADVANTAGE: f64 = 2.0;
/// The share of messages that is the tail.
const TAIL: f64 = 0.01;
/// A path is better if its tail is this part of that of the present path at most.
const ADVANTAGE: f64 = 5.0 / 6.0;
/// The time for which a path is better before it gets new data.
const HOLD: Duration = Duration::from_secs(3);
/// Reviews of the tails are this far apart at least: they are the same within a few packets.
const REVIEW_INTERVAL: Duration = Duration::from_millis(100);

/// Two paths: the one on which data was lost, and the one over which it, or the next new data, is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pair(NonZeroU8);

impl Pair {
    /// `None` if one of them is not measured.
    pub(crate) fn new(lost_over: u8, sent_over: u8) -> Option<Self> {
        let is_measured = |path| usize::from(path) < MAX_MEASURED;
        let number = || NonZeroU8::new(1 + lost_over * MAX_MEASURED as u8 + sent_over);
        if is_measured(lost_over) && is_measured(sent_over) { number().map(Self) } else { None }
    }

    const fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// How many were sent, and how many of them were lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Outcomes {
    sent: u16,
    lost: u16,
}

impl Outcomes {
    fn note(&mut self, is_lost: bool, window: u16) {
        if self.sent >= window {
            *self = Self { sent: self.sent / 2, lost: self.lost / 2 };
        }
        self.sent += 1;
        self.lost += u16::from(is_lost);
    }

    /// The share of losses, where `weight` more with a share of `prior` were counted before.
    fn share(self, weight: f64, prior: f64) -> f64 {
        (f64::from(self.lost) + weight * prior) / (f64::from(self.sent) + weight)
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Record {
    packets: Outcomes,
    lost_in_a_row: u8,
    /// When the last packet was sent that is known to be lost and that no new data has followed since.
    unfollowed: Option<Instant>,
    /// New packets sent up to the last probe.
    probed_at: u64,
}

/// The round trip of a path on which nothing was measured.
pub(crate) const UNKNOWN: RoundTrip = RoundTrip {
    is_cold: true,
    least: Duration::ZERO,
    mean: Duration::from_secs(1),
    timeout: Duration::from_secs(2),
};

/// The most time that nearly all packets take: half of the mean round trip, and what the timeout adds for jitter.
fn one_way(rtt: RoundTrip) -> f64 {
    (rtt.timeout.saturating_sub(rtt.mean) + rtt.mean / 2).as_secs_f64()
}

/// What each path is known for at a review: `None` for those that cannot be used, or of which too little was measured.
pub(crate) type Latencies = [Option<RoundTrip>; MAX_MEASURED];

/// The measurements by which the paths of an association are compared. The size is constant.
#[derive(Debug)]
pub(crate) struct Diversity {
    records: [Record; MAX_MEASURED],
    pairs: [Outcomes; MAX_MEASURED * MAX_MEASURED],
    /// Packets with new data sent so far.
    new_packets: u64,
    /// The path that new data is to take.
    preferred: u8,
    /// The path that is better now, and since when.
    challenger: Option<(u8, Instant)>,
    reviewed_at: Instant,
}

/// What happened.
impl Diversity {
    pub(crate) const fn new(preferred: u8) -> Self {
        const NONE: Outcomes = Outcomes { sent: 0, lost: 0 };
        const UNKNOWN: Record =
            Record { packets: NONE, lost_in_a_row: 0, unfollowed: None, probed_at: 0 };
        Self {
            records: [UNKNOWN; MAX_MEASURED],
            pairs: [NONE; MAX_MEASURED * MAX_MEASURED],
            new_packets: 0,
            preferred,
            challenger: None,
            reviewed_at: Instant::ZERO,
        }
    }

    fn record(&mut self, path: u8) -> Option<&mut Record> {
        self.records.get_mut(usize::from(path))
    }

    /// Forgets the measurements of `path`, whose packets take another route from now on.
    pub(crate) fn renew_path(&mut self, path: u8) {
        let Some(record) = self.record(path) else { return };
        *record = Record::default();
        for other in 0..MAX_MEASURED as u8 {
            for pair in [Pair::new(path, other), Pair::new(other, path)].into_iter().flatten() {
                self.pairs[pair.index()] = Outcomes::default();
            }
        }
    }

    /// A packet over `path` was acknowledged, or a probe of it answered. `trial`: the pair that its fate counts for.
    pub(crate) fn on_arrived(&mut self, path: u8, trial: Option<Pair>) {
        if let Some(record) = self.record(path) {
            record.packets.note(false, PATH_WINDOW);
            record.lost_in_a_row = 0;
        }
        self.note_trial(trial, false);
    }

    /// A packet over `path`, sent at `sent_at`, was declared lost. `trial`: the pair that its fate counts for.
    pub(crate) fn on_lost(&mut self, path: u8, sent_at: Option<Instant>, trial: Option<Pair>) {
        if let Some(record) = self.record(path) {
            record.packets.note(true, PATH_WINDOW);
            record.lost_in_a_row = record.lost_in_a_row.saturating_add(1);
            record.unfollowed = sent_at;
        }
        self.note_trial(trial, true);
    }

    fn note_trial(&mut self, trial: Option<Pair>, is_lost: bool) {
        if let Some(pair) = trial {
            self.pairs[pair.index()].note(is_lost, PAIR_WINDOW);
        }
    }

    /// A packet with new data is sent over `path`: the pair that its fate counts for, if it follows a loss on this path
    /// that is younger than `soon`.
    pub(crate) fn on_new(&mut self, now: Instant, path: u8, soon: Duration) -> Option<Pair> {
        self.new_packets += 1;
        let lost_at = self.record(path)?.unfollowed.take()?;
        if now - lost_at <= soon { Pair::new(path, path) } else { None }
    }
}

/// What to do.
impl Diversity {
    /// Whether a probe of `path`, which is idle, is worth a packet now, given whether too little is known of it (`is_cold`).
    /// If so, it is counted as sent.
    pub(crate) fn take_probe(&mut self, path: u8, is_cold: bool) -> bool {
        let sent = self.new_packets;
        let Some(record) = self.record(path) else { return false };
        let is_suspect = is_cold || record.lost_in_a_row > 0;
        let is_due = is_suspect || sent - record.probed_at >= PACKETS_PER_PROBE;
        if is_due {
            record.probed_at = sent;
        }
        is_due
    }

    /// The path that new data is to take while it is active.
    pub(crate) const fn preferred(&self) -> u8 {
        self.preferred
    }

    /// New data is to take `path`, as the application wishes, until another one is better.
    pub(crate) const fn prefer(&mut self, path: u8) {
        (self.preferred, self.challenger) = (path, None);
    }

    /// Whether the last packets over `path` were all lost.
    pub(crate) fn is_suspect(&self, path: u8) -> bool {
        let record = self.records.get(usize::from(path));
        record.is_some_and(|record| record.lost_in_a_row >= SUSPECT_LOSSES)
    }

    /// The share of packets lost on `path`.
    pub(crate) fn loss(&self, path: u8) -> f64 {
        let record = self.records.get(usize::from(path)).copied().unwrap_or_default();
        record.packets.share(PATH_PRIOR, self.usual_loss())
    }

    /// The share of packets lost on all paths.
    fn usual_loss(&self) -> f64 {
        let all = self.records.iter().fold(Outcomes::default(), |all, record| {
            let Outcomes { sent, lost } = record.packets;
            Outcomes { sent: all.sent + sent, lost: all.lost + lost }
        });
        all.share(PATH_PRIOR, FIRST_LOSS)
    }

    /// The share of packets lost over `sent_over` of those whose data was lost over `lost_over` just before.
    pub(crate) fn loss_after(&self, lost_over: u8, sent_over: u8) -> f64 {
        let is_same = lost_over == sent_over;
        let prior = if is_same { STILL_FAILING } else { self.loss(sent_over) };
        let counted = Pair::new(lost_over, sent_over).map(|pair| self.pairs[pair.index()]);
        counted.unwrap_or_default().share(PAIR_PRIOR, prior)
    }

    /// The path of a retransmission or copy of what was sent over `path`, among `usable` ones: another one, that which
    /// loses such units least often, unless the same path was found to lose far fewer. `None` if no other is usable.
    pub(crate) fn away_from(&self, path: u8, usable: impl Iterator<Item = u8>) -> Option<u8> {
        let loss = |to: u8| {
            let failing = if self.is_suspect(to) { STILL_FAILING } else { 0.0 };
            self.loss_after(path, to).max(failing)
        };
        let others = usable.filter(|&other| other != path).map(|other| (loss(other), other));
        let (least, other) = others.min_by(|(a, _), (b, _)| a.total_cmp(b))?;
        Some(if loss(path) * SAME_ADVANTAGE < least { path } else { other })
    }

    /// The mean latency of the slowest hundredth of the messages over `path`, in seconds.
    fn tail(&self, path: u8, latencies: &Latencies) -> Option<f64> {
        let own = latencies[usize::from(path)]?;
        let usable = (0..MAX_MEASURED as u8).filter(|&it| latencies[usize::from(it)].is_some());
        let again = self.away_from(path, usable).unwrap_or(path);
        let other = latencies[usize::from(again)]?;
        let once = self.loss(path);
        let twice = once * self.loss_after(path, again);
        let [timeout, next] = [own.timeout, other.timeout].map(|it| it.as_secs_f64());
        let repaired = timeout + one_way(other);
        let steps = [(1.0, one_way(own)), (once, repaired), (twice, repaired + next)];
        // The latency that a step adds, times the part of the tail that gets there.
        let mut before = 0.0;
        Some(steps.iter().fold(0.0, |tail, &(share, latency)| {
            let added = (latency - std::mem::replace(&mut before, latency)) * share.min(TAIL);
            tail + added / TAIL
        }))
    }

    /// Whether [`review`](Self::review) is due.
    pub(crate) fn is_review_due(&self, now: Instant) -> bool {
        self.is_suspect(self.preferred) || now - self.reviewed_at >= REVIEW_INTERVAL
    }

    /// Reviews the path of new data, given what was measured of each. Returns whether it is another one now.
    pub(crate) fn review(&mut self, now: Instant, latencies: &Latencies) -> bool {
        self.reviewed_at = now;
        let is_suspect = self.is_suspect(self.preferred);
        let tails = (0..MAX_MEASURED as u8)
            .filter(|&path| path != self.preferred && !self.is_suspect(path))
            .filter_map(|path| Some((self.tail(path, latencies)?, path)));
        let best = tails.min_by(|(a, _), (b, _)| a.total_cmp(b));
        let present = self.tail(self.preferred, latencies).unwrap_or(f64::INFINITY);
        let better = best.filter(|&(tail, _)| is_suspect || tail <= present * ADVANTAGE);
        let Some((_, path)) = better else {
            self.challenger = None;
            return false;
        };
        let (_, since) = *self.challenger.filter(|(it, _)| *it == path).get_or_insert((path, now));
        if is_suspect || now - since >= HOLD {
            self.prefer(path);
            return true;
        }
        self.challenger = Some((path, since));
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;
    const AT: fn(u64) -> Instant = Instant::from_millis;

    fn latencies(of: &[(u64, u64)]) -> Latencies {
        let mut all = [None; MAX_MEASURED];
        for (path, &(mean, timeout)) in of.iter().enumerate() {
            all[path] = Some(RoundTrip { mean: MS(mean), timeout: MS(timeout), ..UNKNOWN });
        }
        all
    }

    /// `lost` of 100 packets over `path` are lost, spread evenly.
    fn lose(diversity: &mut Diversity, path: u8, lost: u64) {
        for n in 0..100 {
            match (n * lost) % 100 < lost {
                true => diversity.on_lost(path, Some(AT(n)), None),
                false => diversity.on_arrived(path, None),
            }
        }
    }

    /// `lost` of 32 units that were lost over `pair.0` are lost over `pair.1`, too.
    fn follow(diversity: &mut Diversity, pair: (u8, u8), lost: u64) {
        let trial = Pair::new(pair.0, pair.1);
        (0..32).for_each(|n| diversity.note_trial(trial, n < lost));
    }

    #[test]
    fn a_retransmission_begins_with_another_path() {
        let diversity = Diversity::new(0);
        assert_eq!(diversity.away_from(0, 0..2), Some(1));
        assert_eq!(diversity.away_from(1, 0..2), Some(0));
        assert_eq!(diversity.away_from(0, 0..1), None, "there is no other");
        assert_eq!(
            diversity.away_from(20, [20, 21].into_iter()),
            Some(21),
            "beyond what is counted"
        );
    }

    #[test]
    fn a_retransmission_avoids_the_path_that_fails_together_with_the_first() {
        let mut diversity = Diversity::new(0);
        follow(&mut diversity, (0, 1), 16);
        follow(&mut diversity, (0, 2), 2);
        assert_eq!(diversity.away_from(0, 0..3), Some(2));
        assert_eq!(diversity.away_from(1, 0..3), Some(0), "nothing is known of that pair");
        // The loss of a path by itself does not count, only that after a loss on the first.
        lose(&mut diversity, 2, 30);
        assert_eq!(diversity.away_from(0, 0..3), Some(2));
    }

    #[test]
    fn the_same_path_is_taken_only_if_it_was_measured_to_be_better() {
        let mut diversity = Diversity::new(0);
        follow(&mut diversity, (0, 1), 20);
        assert_eq!(diversity.away_from(0, 0..2), Some(1), "the same was not measured");
        follow(&mut diversity, (0, 0), 12);
        assert_eq!(diversity.away_from(0, 0..2), Some(1), "it is not much better");
        follow(&mut diversity, (0, 0), 0);
        follow(&mut diversity, (0, 0), 0);
        assert_eq!(diversity.away_from(0, 0..2), Some(0));
        diversity.renew_path(1);
        assert_eq!(diversity.away_from(0, 0..2), Some(1), "another route");
    }

    #[test]
    fn new_data_that_follows_a_loss_is_counted_once_and_soon() {
        let mut diversity = Diversity::new(0);
        assert_eq!(diversity.on_new(AT(0), 0, MS(200)), None);
        diversity.on_lost(0, Some(AT(100)), None);
        assert_eq!(diversity.on_new(AT(250), 1, MS(200)), None, "another path");
        assert_eq!(diversity.on_new(AT(250), 0, MS(200)), Pair::new(0, 0));
        assert_eq!(diversity.on_new(AT(251), 0, MS(200)), None);
        diversity.on_lost(0, Some(AT(300)), None);
        assert_eq!(diversity.on_new(AT(501), 0, MS(200)), None, "too late");
    }

    #[test]
    fn a_path_that_works_is_probed_with_every_hundredth_packet_and_a_suspect_one_always() {
        let mut diversity = Diversity::new(0);
        let probes = |diversity: &mut Diversity, is_cold| {
            let probe =
                |n| (diversity.on_new(AT(n), 0, MS(200)), diversity.take_probe(1, is_cold)).1;
            (0..1000).map(probe).filter(|is_sent| *is_sent).count()
        };
        assert_eq!(probes(&mut diversity, false), 10);
        assert_eq!(probes(&mut diversity, true), 1000);
        diversity.on_lost(1, None, None);
        assert_eq!(probes(&mut diversity, false), 1000);
        diversity.on_arrived(1, None);
        assert!((9..=10).contains(&probes(&mut diversity, false)));
    }

    /// Wi-Fi and cellular: the short path has the lower tail although it loses more.
    #[test]
    fn the_tail_has_losses_and_round_trips() {
        let mut diversity = Diversity::new(0);
        lose(&mut diversity, 0, 5);
        lose(&mut diversity, 1, 1);
        let known = latencies(&[(30, 50), (80, 90)]);
        let tail = |diversity: &Diversity, path| diversity.tail(path, &known).unwrap();
        let [short, long] = [0, 1].map(|path| tail(&diversity, path));
        // 50 + 50 ms for the most part; 50 ms for the best of the hundredth, 90 + 35 for the rest.
        assert!((0.095..0.115).contains(&short) && (0.09..0.13).contains(&long), "{short} {long}");
        lose(&mut diversity, 1, 30);
        assert!(tail(&diversity, 1) > 1.1 * long);
    }

    #[test]
    fn new_data_changes_after_a_while_and_does_not_flap() {
        let mut diversity = Diversity::new(0);
        let review = |diversity: &mut Diversity, ms, other| {
            diversity.review(AT(ms), &latencies(&[(100, 110), (other, other + 10)]));
            diversity.preferred()
        };
        for second in 1..100 {
            // Now a little better, now a little worse, and now and then much better for a second.
            let other = if second % 4 == 0 { 50 } else { 92 + second % 16 };
            assert_eq!(review(&mut diversity, second * 1000, other), 0, "{second}");
        }
        let changed = (1000..1040).find(|n| review(&mut diversity, n * 100, 50) == 1);
        assert_eq!(changed, Some(1030));
        assert_eq!(review(&mut diversity, 110_000, 100), 1, "it stays there");
    }

    #[test]
    fn new_data_leaves_a_path_at_once_that_loses_everything() {
        let mut diversity = Diversity::new(0);
        let known = latencies(&[(30, 40), (200, 220)]);
        for n in 0..3 {
            assert!(!diversity.review(AT(1000 + n), &known));
            diversity.on_lost(0, Some(AT(n)), None);
        }
        assert!(diversity.is_review_due(AT(1003)), "at once");
        assert!(diversity.review(AT(1003), &known));
        assert_eq!((diversity.preferred(), diversity.away_from(1, 0..2)), (1, Some(0)));
        follow(&mut diversity, (1, 1), 2);
        assert_eq!(diversity.away_from(1, 0..2), Some(1), "it fails less than a suspect path");
        (0..3).for_each(|_| diversity.on_lost(1, None, None));
        assert!(!diversity.review(AT(1004), &known), "there is no better one");
        assert_eq!(diversity.away_from(1, 0..2), Some(0));
        // It works again, and is better; that has to last.
        (0..400).for_each(|n| diversity.on_arrived((n % 2) as u8, None));
        assert!(!diversity.review(AT(2000), &known));
        assert!(diversity.review(AT(5000), &known));
    }

    #[test]
    fn counts_follow_a_change_and_stay_small() {
        let mut diversity = Diversity::new(0);
        (0..100_000).for_each(|_| diversity.on_lost(0, None, Pair::new(0, 1)));
        assert!(diversity.loss(0) > 0.9 && diversity.loss_after(0, 1) > 0.85);
        (0..600).for_each(|_| diversity.on_arrived(0, Pair::new(0, 1)));
        assert!(diversity.loss(0) < 0.15, "{}", diversity.loss(0));
        assert!(std::mem::size_of::<Diversity>() <= 640, "it is constant");
        assert_eq!(std::mem::size_of::<Option<Pair>>(), 1, "it is in each unit");
    }
}
