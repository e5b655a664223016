//! The intended traffic of an application: the sizes of its messages, and the times between them.

use std::time::Duration;

use rexmit_core::Instant;
use rexmit_netsim::traffic::stats::HEADER_BYTES;

use crate::measure::LatencyDistribution;

/// Measures the planned messages of a thin flow, whatever their outcome.
#[derive(Clone, Debug, Default)]
pub(in crate::scenario) struct TrafficMeter {
    messages: u64,
    bytes: u64,
    /// The smallest and the largest message.
    range: Option<(u32, u32)>,
    last: Option<Instant>,
    gaps: LatencyDistribution,
    shortest: Option<Duration>,
    sum: Duration,
}

impl TrafficMeter {
    /// Measures the messages of a flow's connections, each given by the intended times and the
    /// sizes in the order of its plan. Interarrival times are those between messages of the same
    /// connection.
    pub(in crate::scenario) fn of<P>(plans: impl IntoIterator<Item = P>) -> Self
    where
        P: Iterator<Item = (Instant, u32)>,
    {
        let mut meter = Self::default();
        for plan in plans {
            meter.last = None;
            plan.for_each(|(intended, bytes)| meter.add(intended, bytes));
        }
        meter
    }

    fn add(&mut self, intended: Instant, bytes: u32) {
        self.messages += 1;
        self.bytes += u64::from(bytes);
        let (least, most) = self.range.unwrap_or((bytes, bytes));
        self.range = Some((least.min(bytes), most.max(bytes)));
        if let Some(last) = self.last.replace(intended) {
            let gap = intended - last;
            self.gaps.record(gap);
            self.shortest = Some(self.shortest.map_or(gap, |shortest| shortest.min(gap)));
            self.sum += gap;
        }
    }

    /// Mean, minimum and maximum of the payload; `None` without messages.
    pub(in crate::scenario) fn payload(&self) -> Option<[f64; 3]> {
        let (least, most) = self.range?;
        Some([self.bytes as f64 / self.messages as f64, f64::from(least), f64::from(most)])
    }

    /// The times between messages: mean, shortest, 1st percentile, median, 99th percentile,
    /// longest; `None` with fewer than two messages. Percentiles are exact to one part in a
    /// thousand.
    pub(in crate::scenario) fn interarrival(&self) -> Option<[Duration; 6]> {
        let at = |quantile| self.gaps.quantile(quantile);
        let longest = self.gaps.summary()?.max;
        Some([self.gaps.mean()?, self.shortest?, at(0.01), at(0.5), at(0.99), longest])
    }

    /// The inverse of the mean time between messages; `None` if that is zero or undefined.
    pub(in crate::scenario) fn per_second(&self) -> Option<f64> {
        let rate = self.gaps.count() as f64 / self.sum.as_secs_f64();
        rate.is_finite().then_some(rate)
    }

    /// Bits per second with [`HEADER_BYTES`] for every message; `None` where the rate is.
    pub(in crate::scenario) fn bits_per_second(&self) -> Option<f64> {
        let [payload, ..] = self.payload()?;
        Some((payload + f64::from(HEADER_BYTES)) * 8.0 * self.per_second()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meter(messages: &[(u64, u32)]) -> TrafficMeter {
        let mut meter = TrafficMeter::default();
        messages.iter().for_each(|&(ms, bytes)| meter.add(Instant::from_millis(ms), bytes));
        meter
    }

    #[test]
    fn sizes_and_times_by_hand() {
        let meter = meter(&[(1000, 10), (1020, 40), (1030, 5), (1100, 25)]);
        assert_eq!(meter.payload(), Some([20.0, 5.0, 40.0]));
        let ms = meter.interarrival().unwrap().map(|gap| gap.as_secs_f64() * 1e3);
        // 20, 10 and 70 ms.
        for (value, expected) in ms.into_iter().zip([100.0 / 3.0, 10.0, 10.0, 20.0, 70.0, 70.0]) {
            assert!((value / expected - 1.0).abs() < 1e-3, "{value}, not {expected}");
        }
        assert_eq!(meter.per_second(), Some(30.0));
        // (20 + 66) bytes, 30 times per second.
        assert_eq!(meter.bits_per_second(), Some(86.0 * 8.0 * 30.0));
    }

    #[test]
    fn connections_do_not_wait_for_each_other() {
        let plan = |times: [u64; 2]| times.into_iter().map(|ms| (Instant::from_millis(ms), 8));
        let meter = TrafficMeter::of([plan([0, 900]), plan([100, 1000])]);
        assert_eq!(meter.interarrival().map(|gaps| gaps[1].as_millis()), Some(900));
        assert_eq!((meter.messages, meter.gaps.count()), (4, 2));
    }

    #[test]
    fn of_few_messages_only_some_quantities_are_measured() {
        let none = meter(&[]);
        assert_eq!((none.payload(), none.interarrival(), none.per_second()), (None, None, None));
        let one = meter(&[(5, 7)]);
        assert_eq!(one.payload(), Some([7.0; 3]));
        assert_eq!((one.interarrival(), one.per_second()), (None, None));
        let at_once = meter(&[(5, 7), (5, 7)]);
        assert_eq!(at_once.interarrival(), Some([Duration::ZERO; 6]));
        assert_eq!((at_once.per_second(), at_once.bits_per_second()), (None, None));
    }
}
