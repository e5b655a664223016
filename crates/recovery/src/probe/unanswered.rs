//! The ACKs of all connections of an endpoint, seen together: losses are independent, late ACKs are not.
//!
//! A packet is unanswered when its probe timer has expired and nothing was acknowledged since. Where losses are the
//! reason, most connections still have their answers in time. Where many are unanswered at once, the peers or this host have
//! no time to answer, or a link that all share is down: a probe would only be one more packet to be processed, or be
//! lost. The connections that are unanswered first probe for all; the others put their probes off, for
//! [`AT_A_TIME`] or longer at a time and [`LEAST_IN_ALL`] in all, or for twice the longest round trip that a late
//! ACK showed lately on any of them, if that is longer. Silent paths put nothing off.

use std::time::Duration;

use rexmit_core::Instant;

use super::rtt_samples::Micros;

/// With fewer connections unanswered, none puts its probes off.
const LEAST_CONNECTIONS: usize = 8;
/// An ACK counts for one to two periods.
const PERIOD: Duration = Duration::from_millis(50);
/// The least time by which a probe is put off at a time.
const AT_A_TIME: Duration = Duration::from_millis(10);
/// The least time by which a probe is put off, per unanswered connection, so that all of them together look again at most
/// 50,000 times per second: thousands of them would keep the host too busy to process the ACKs that they wait for.
const AT_A_TIME_EACH: Duration = Duration::from_micros(20);
/// How long probes are put off in all, if no ACK was so late.
const LEAST_IN_ALL: Duration = Duration::from_millis(100);
/// The time for which a late ACK counts.
const LATE_FOR: Duration = Duration::from_secs(1);

/// The unanswered connections of an endpoint, and the answers that came in time lately.
#[derive(Clone, Debug, Default)]
pub struct Unanswered {
    connections: usize,
    /// Answers in time, slow ones not included, in the period that began last, and in the one before.
    answers: [usize; 2],
    /// Slow answers over cold paths in these periods.
    slow: [usize; 2],
    began_at: Instant,
    /// The longest round trip of a late ACK, and when it came.
    late: Option<(Duration, Instant)>,
}

/// The report of one connection to an [`Unanswered`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Report {
    /// Whether the connection is unanswered.
    pub(crate) is_unanswered: bool,
    /// How often it was answered in time since the last report, slow answers not included.
    pub(crate) answers: u32,
    /// The number of slow ACKs of the connection over a cold path.
    pub(crate) slow: u32,
    /// The longest round trip since then of an ACK that came when a probe was due, if it is certain.
    pub(crate) late: Option<Micros>,
}

/// The contribution of a connection to an [`Unanswered`]: whether it is one of the unanswered connections. It
/// outlasts the [`LossRecovery`](crate::LossRecovery) of the connection, which a restart replaces.
#[derive(Clone, Copy, Debug, Default)]
pub struct Share(pub(super) bool);

impl Unanswered {
    /// Whether more than half as many connections are unanswered, or were answered slowly, as were answered in time lately.
    /// Losses alone are the reason for that only if a third of all packets or ACKs is lost.
    #[must_use]
    pub fn is_common(&self, now: Instant) -> bool {
        let recent = |counts: [usize; 2]| match (now - self.began_at).as_nanos() / PERIOD.as_nanos()
        {
            0 => counts[0] + counts[1],
            1 => counts[0],
            _ => 0,
        };
        let late = self.connections + recent(self.slow);
        self.connections >= LEAST_CONNECTIONS && 2 * late > recent(self.answers)
    }

    /// The time by which a probe is put off before its connection looks again.
    pub(crate) fn at_a_time(&self) -> Duration {
        let connections = u32::try_from(self.connections).unwrap_or(u32::MAX);
        AT_A_TIME.max(AT_A_TIME_EACH.saturating_mul(connections))
    }

    /// The longest time by which a probe may be put off.
    pub(crate) fn longest(&self, now: Instant) -> Duration {
        let recent = self.late.filter(|(_, at)| now - *at < LATE_FOR);
        recent.map_or(LEAST_IN_ALL, |(rtt, _)| LEAST_IN_ALL.max(2 * rtt))
    }

    pub(crate) fn update(&mut self, now: Instant, share: &mut Share, report: Report) {
        let Report { is_unanswered, answers, slow, late } = report;
        if let Some(rtt) = late.map(Duration::from)
            && self.late.is_none_or(|(longest, at)| longest <= rtt || now - at >= LATE_FOR)
        {
            self.late = Some((rtt, now));
        }
        if share.0 != is_unanswered {
            share.0 = is_unanswered;
            let connections = self.connections;
            self.connections =
                if is_unanswered { connections + 1 } else { connections.saturating_sub(1) };
        }
        if answers == 0 && slow == 0 {
            return;
        }
        if now - self.began_at >= PERIOD {
            let is_next = now - self.began_at < 2 * PERIOD;
            for counts in [&mut self.answers, &mut self.slow] {
                *counts = [0, if is_next { counts[0] } else { 0 }];
            }
            self.began_at = now;
        }
        self.answers[0] += answers as usize;
        self.slow[0] += slow as usize;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: fn(u64) -> Instant = Instant::from_millis;

    fn enter(
        unanswered: &mut Unanswered,
        now: Instant,
        is_unanswered: bool,
        answers: u32,
    ) -> Share {
        let mut share = Share::default();
        let report = Report { is_unanswered, answers, ..Report::default() };
        unanswered.update(now, &mut share, report);
        share
    }

    #[test]
    fn a_third_of_at_least_eight_connections_has_to_be_unanswered() {
        let mut unanswered = Unanswered::default();
        let mut shares: Vec<_> = (0..7).map(|_| enter(&mut unanswered, AT(1), true, 0)).collect();
        assert!(!unanswered.is_common(AT(1)), "seven");
        shares.push(enter(&mut unanswered, AT(1), true, 0));
        assert!(unanswered.is_common(AT(1)));
        enter(&mut unanswered, AT(1), false, 16);
        assert!(!unanswered.is_common(AT(1)), "twice as many were answered");
        shares.push(enter(&mut unanswered, AT(1), true, 0));
        assert!(unanswered.is_common(AT(1)));
        for share in &mut shares {
            unanswered.update(AT(2), share, Report { is_unanswered: true, ..Report::default() });
        }
        assert_eq!(unanswered.connections, 9, "each counts once");
        for share in &mut shares {
            unanswered.update(AT(3), share, Report::default());
        }
        assert_eq!(unanswered.connections, 0);
    }

    #[test]
    fn acks_count_for_one_to_two_periods() {
        let mut unanswered = Unanswered::default();
        (0..8).for_each(|_| _ = enter(&mut unanswered, AT(1000), true, 0));
        enter(&mut unanswered, AT(1000), false, 10);
        enter(&mut unanswered, AT(1060), false, 10);
        assert!(!unanswered.is_common(AT(1109)), "ten and ten");
        assert!(unanswered.is_common(AT(1110)), "ten");
        enter(&mut unanswered, AT(1500), false, 15);
        assert!(unanswered.is_common(AT(1500)), "those before are long past");
        enter(&mut unanswered, AT(1501), false, 1);
        assert!(!unanswered.is_common(AT(1501)));
    }

    #[test]
    fn slow_answers_over_cold_paths_count_as_unanswered() {
        let mut unanswered = Unanswered::default();
        (0..8).for_each(|_| _ = enter(&mut unanswered, AT(1000), true, 0));
        enter(&mut unanswered, AT(1000), false, 100);
        let mut slow = |at: u64, slow: u32| {
            let report = Report { slow, ..Report::default() };
            unanswered.update(AT(at), &mut Share::default(), report);
            unanswered.is_common(AT(at))
        };
        assert!(!slow(1010, 42), "50 of 100");
        assert!(slow(1020, 1));
        enter(&mut unanswered, AT(1060), false, 101);
        assert!(!unanswered.is_common(AT(1060)), "51 of 201");
        enter(&mut unanswered, AT(1120), false, 1);
        assert!(!unanswered.is_common(AT(1120)), "the slow ones are long past");
    }

    #[test]
    fn all_unanswered_connections_look_again_at_most_50000_times_a_second() {
        let mut unanswered = Unanswered::default();
        assert_eq!(unanswered.at_a_time(), Duration::from_millis(10));
        for connections in 1..=20_000 {
            enter(&mut unanswered, AT(1), true, 0);
            let looks = f64::from(connections) / unanswered.at_a_time().as_secs_f64();
            assert!(looks < 50_001.0, "{looks} with {connections}");
        }
    }

    #[test]
    fn a_late_ack_extends_the_wait_of_all_for_a_second() {
        let mut unanswered = Unanswered::default();
        let mut late_by = |now: u64, ms: u64| {
            let late = Some(Duration::from_millis(ms));
            unanswered.update(
                AT(now),
                &mut Share::default(),
                Report { late: late.map(Micros::from), ..Report::default() },
            );
            unanswered.longest(AT(now)).as_millis()
        };
        assert_eq!(late_by(10, 30), 100, "the least");
        assert_eq!(late_by(20, 90), 180);
        assert_eq!(late_by(30, 80), 180, "the longest counts");
        assert_eq!(late_by(900, 90), 180, "and again");
        assert_eq!(late_by(1899, 60), 180);
        assert_eq!(late_by(1900, 60), 120, "the longest was a second ago");
        assert_eq!(unanswered.longest(AT(2900)).as_millis(), 100);
    }
}
