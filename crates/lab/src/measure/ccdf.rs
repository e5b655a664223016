//! The complementary cumulative distribution of latency: the share of messages with at least a
//! given latency. On a logarithmic scale it shows the tail.

use serde::{Deserialize, Serialize};

/// Number of largest latencies that are all points of the curve.
const EXACT_TAIL: usize = 1000;
/// Number of points for the rest, at equal steps of the logarithm of the share.
const BODY_POINTS: i32 = 2000;

/// A falling step function: between two points it has the value of the later one.
///
/// Messages that were never delivered count as longer than any latency, so that the curve of a run
/// with undelivered messages ends above zero.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Ccdf {
    /// Latencies in milliseconds, strictly ascending.
    pub latency_ms: Vec<f64>,
    /// The share (0 to 1) of all messages with at least that latency.
    pub share: Vec<f64>,
}

impl Ccdf {
    /// The curve of the latencies `nanos`, which are sorted in place, and of `undelivered` further
    /// messages.
    ///
    /// Reduced to about three thousand points: the thousand largest distinct latencies are exact;
    /// below them, the error of a share is at most the ratio of two neighbouring points.
    #[must_use]
    pub fn new(nanos: &mut [u64], undelivered: u64) -> Self {
        nanos.sort_unstable();
        let total = nanos.len() as f64 + undelivered as f64;
        let exact_from = nanos.len().saturating_sub(EXACT_TAIL);
        let tail_share = (EXACT_TAIL as f64 / total).min(1.0);
        let step = tail_share.powf(1.0 / f64::from(BODY_POINTS));
        let mut curve = Self::default();
        let mut below = 0;
        for run in nanos.chunk_by(|a, b| a == b) {
            let share = (total - below as f64) / total;
            let last = curve.share.last().copied();
            if below >= exact_from || last.is_none_or(|last| share <= last * step) {
                curve.latency_ms.push(run[0] as f64 / 1e6);
                curve.share.push(share);
            }
            below += run.len();
        }
        curve
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn shares_count_the_messages_that_waited_at_least_so_long() {
        let curve = Ccdf::new(&mut [30 * MS, 10 * MS, 10 * MS, 20 * MS], 0);
        assert_eq!(curve.latency_ms, [10.0, 20.0, 30.0]);
        assert_eq!(curve.share, [1.0, 0.5, 0.25]);
    }

    #[test]
    fn undelivered_messages_wait_longer_than_all_others() {
        let curve = Ccdf::new(&mut [10 * MS, 20 * MS], 2);
        assert_eq!(curve.share, [1.0, 0.75]);
        assert_eq!(Ccdf::new(&mut [], 2), Ccdf::default());
    }

    #[test]
    fn a_long_run_is_thinned_and_keeps_its_tail_exact() {
        const MESSAGES: u64 = 1_000_000;
        let mut nanos: Vec<u64> = (1..=MESSAGES).collect();
        let curve = Ccdf::new(&mut nanos, 0);
        let points = curve.share.len();
        assert!((EXACT_TAIL..=EXACT_TAIL + BODY_POINTS as usize + 2).contains(&points), "{points}");
        let tail: Vec<f64> =
            (MESSAGES - EXACT_TAIL as u64 + 1..=MESSAGES).map(|n| n as f64 / 1e6).collect();
        assert_eq!(curve.latency_ms[points - EXACT_TAIL..], tail);
        for (latency_ms, share) in curve.latency_ms.iter().zip(&curve.share) {
            let exact = (MESSAGES as f64 - latency_ms * 1e6 + 1.0) / MESSAGES as f64;
            assert!((share / exact - 1.0).abs() < 1e-6, "{latency_ms}: {share} {exact}");
        }
        let steps = curve.share.windows(2).map(|pair| pair[1] / pair[0]);
        let widest = steps.take(points - EXACT_TAIL).fold(1.0, f64::min);
        assert!(widest > 0.99, "a gap in the body: {widest}");
    }
}
