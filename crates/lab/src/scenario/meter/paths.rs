//! Measurements of each path from the trace of a sender.

use std::sync::{Arc, Mutex, PoisonError};

use rexmit_core::Instant;
use rexmit_core::trace::{SendCause, TraceEvent, TraceSink};

use super::Thinned;
use crate::measure::LatencyDistribution;

/// The measurements of one path of a sender.
#[derive(Clone, Debug, Default)]
pub(in crate::scenario) struct PathTally {
    /// Data packets sent over it.
    pub(in crate::scenario) packets: u64,
    /// Data packets whose first data unit is a retransmission.
    pub(in crate::scenario) retransmissions: u64,
    /// Expiries of its retransmission timer.
    pub(in crate::scenario) timeouts: u64,
    pub(in crate::scenario) rtt_samples: LatencyDistribution,
    pub(in crate::scenario) rtt: Thinned,
    pub(in crate::scenario) cwnd: Thinned,
    cwnd_bytes: u64,
}

impl PathTally {
    /// The path that the event concerns, if any.
    const fn path_of(event: &TraceEvent) -> Option<u8> {
        match event {
            TraceEvent::PacketSent { path, .. }
            | TraceEvent::RetransmissionTimeout { path, .. }
            | TraceEvent::RttSample { path, .. }
            | TraceEvent::Window { path, .. } => Some(*path),
            _ => None,
        }
    }

    /// Adds the measurements of another connection. Series are those of the first one.
    pub(in crate::scenario) fn merge(&mut self, other: &Self) {
        self.packets += other.packets;
        self.retransmissions += other.retransmissions;
        self.timeouts += other.timeouts;
        self.rtt_samples.merge(&other.rtt_samples);
        self.rtt.or(&other.rtt);
        self.cwnd.or(&other.cwnd);
    }

    fn on_event(&mut self, now: Instant, event: &TraceEvent) {
        match event {
            TraceEvent::PacketSent { runs, .. } => {
                let is_new = runs.first().is_none_or(|run| run.cause == SendCause::New);
                self.packets += 1;
                self.retransmissions += u64::from(!is_new);
            }
            TraceEvent::RetransmissionTimeout { .. } => self.timeouts += 1,
            TraceEvent::RttSample { rtt, .. } => {
                self.rtt_samples.record(*rtt);
                self.rtt.push(now, rtt.as_secs_f64() * 1e3);
            }
            TraceEvent::Window { cwnd, .. } if *cwnd != self.cwnd_bytes => {
                self.cwnd_bytes = *cwnd;
                self.cwnd.push(now, *cwnd as f64);
            }
            _ => {}
        }
    }
}

/// Measures the two paths of a sender.
#[derive(Clone, Debug, Default)]
pub(in crate::scenario) struct PathsTrace(Arc<Mutex<[PathTally; 2]>>);

impl PathsTrace {
    /// The sink for the endpoint.
    pub(in crate::scenario) fn sink(&self) -> Box<dyn TraceSink> {
        Box::new(self.clone())
    }

    /// The measurements so far.
    pub(in crate::scenario) fn tallies(&self) -> [PathTally; 2] {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl TraceSink for PathsTrace {
    fn record(&mut self, now: Instant, _: u32, event: &TraceEvent) {
        let Some(path) = PathTally::path_of(event) else { return };
        let mut tallies = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tally) = tallies.get_mut(usize::from(path)) {
            tally.on_event(now, event);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rexmit_core::trace::SentRun;

    use super::*;

    /// The measurements of a path that sent `packets`, of which the first was retransmitted, and whose round
    /// trips took `rtts` milliseconds.
    fn tally(packets: u64, rtts: &[u64]) -> PathTally {
        let mut tally = PathTally::default();
        let mut on = |ms: u64, event: &TraceEvent| tally.on_event(Instant::from_millis(ms), event);
        for n in 0..packets {
            let cause = if n == 0 { SendCause::Timeout } else { SendCause::New };
            let runs = vec![SentRun::new(n, n, cause)];
            on(n, &TraceEvent::PacketSent { packet: n, path: 0, units: 1, bytes: 100, runs });
        }
        for &ms in rtts {
            let [rtt, srtt, rto] = [ms, ms, 1000].map(Duration::from_millis);
            on(ms, &TraceEvent::RttSample { path: 0, rtt, srtt, rto });
        }
        tally
    }

    #[test]
    fn connections_add_up_and_series_are_of_the_first_that_has_one() {
        let mut sum = PathTally::default();
        for one in [tally(3, &[]), tally(5, &[40, 60]), tally(0, &[500])] {
            sum.merge(&one);
        }
        assert_eq!((sum.packets, sum.retransmissions, sum.timeouts), (8, 2, 0));
        assert_eq!(sum.rtt_samples.count(), 3);
        assert_eq!(sum.rtt_samples.mean(), Some(Duration::from_millis(200)));
        assert_eq!(sum.rtt.series().values, [40.0, 60.0]);
    }
}
