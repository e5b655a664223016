//! Reduction of curves of many values to few points.

use std::collections::BTreeMap;

use rexmit_lab::scenario::{Distribution, Series};

use crate::figure::drawn::DrawnPoint;

/// Number of largest values of a distribution that are all drawn.
const TAIL: usize = 500;
/// Number of points below the tail, at equal steps of the share.
const BODY: usize = 1000;
/// The number of intervals into which a series with more than twice as many points is divided. The least and the
/// largest value of each are drawn.
const SPANS: usize = 750;

/// Which tail probability is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Side {
    /// The share of values that are at most x.
    AtMost,
    /// The share of values that are at least x.
    AtLeast,
}

/// The curve of all `parts` pooled, with at most 1500 points; the 500 largest values are all
/// included.
pub(super) fn shares<'a>(
    parts: impl Iterator<Item = &'a Distribution>,
    side: Side,
) -> Vec<DrawnPoint> {
    let pooled = pool(parts);
    let total: u64 = pooled.iter().map(|(_, count)| count).sum();
    let body = pooled.len().saturating_sub(TAIL);
    let thin_out = pooled.len() > TAIL + BODY;
    let (mut below, mut last) = (0, None);
    let mut points = Vec::new();
    for (index, (value, count)) in pooled.into_iter().enumerate() {
        let share = match side {
            Side::AtMost => (below + count) as f64 / total as f64,
            Side::AtLeast => (total - below) as f64 / total as f64,
        };
        below += count;
        let step = (share * (BODY - 1) as f64) as usize;
        if !thin_out || index >= body || last != Some(step) {
            points.push(DrawnPoint { x: value, y: share, interval: None });
        }
        last = Some(step);
    }
    points
}

/// The pooled values of all parts, ascending, with their counts; values that never occurred are
/// left out.
fn pool<'a>(parts: impl Iterator<Item = &'a Distribution>) -> Vec<(f64, u64)> {
    // Non-negative bits, in the order of the values.
    let ordered = |value: f64| {
        let bits = value.to_bits();
        if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
    };
    let mut pooled: BTreeMap<u64, (f64, u64)> = BTreeMap::new();
    for part in parts {
        for (&value, &count) in part.values.iter().zip(&part.counts) {
            if value.is_finite() && count > 0 {
                pooled.entry(ordered(value)).or_insert((value, 0)).1 += count;
            }
        }
    }
    pooled.into_values().collect()
}

/// A series reduced to at most 1500 points: the least and the largest value of each time interval,
/// so that no peak is lost.
pub(super) fn over_time(series: &Series) -> Vec<DrawnPoint> {
    let times = series.seconds.iter().zip(&series.values);
    let points: Vec<DrawnPoint> = times
        .filter(|(x, y)| x.is_finite() && y.is_finite())
        .map(|(&x, &y)| DrawnPoint { x, y, interval: None })
        .collect();
    if points.len() <= 2 * SPANS {
        return points;
    }
    let span = points.len().div_ceil(SPANS);
    points.chunks(span).flat_map(extremes).collect()
}

fn extremes(span: &[DrawnPoint]) -> Vec<DrawnPoint> {
    let by = |sign: f64| {
        let values = span.iter().map(|point| point.y * sign).enumerate();
        values.max_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(index, _)| index)
    };
    let (least, largest) = (by(-1.0), by(1.0));
    let (first, second) = (least.min(largest), least.max(largest));
    let all = [span[first], span[second]];
    all[..if first == second { 1 } else { 2 }].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn xy(points: &[DrawnPoint]) -> Vec<(f64, f64)> {
        points.iter().map(|point| (point.x, point.y)).collect()
    }

    #[test]
    fn shares_are_of_all_parts_together() {
        let parts = [
            Distribution { values: vec![1.0, 3.0], counts: vec![3, 1] },
            Distribution { values: vec![-2.0, 3.0, 9.0], counts: vec![1, 3, 0] },
        ];
        let at_most = xy(&shares(parts.iter(), Side::AtMost));
        assert_eq!(at_most, [(-2.0, 0.125), (1.0, 0.5), (3.0, 1.0)]);
        let at_least = xy(&shares(parts.iter(), Side::AtLeast));
        assert_eq!(at_least, [(-2.0, 1.0), (1.0, 0.875), (3.0, 0.5)]);
        assert!(shares([].iter(), Side::AtMost).is_empty());
    }

    #[test]
    fn many_values_are_thinned_out_but_for_the_tail() {
        let values: Vec<f64> = (0..20_000).map(f64::from).collect();
        let whole = Distribution { counts: vec![1; values.len()], values };
        for side in [Side::AtMost, Side::AtLeast] {
            let points = shares([whole.clone()].iter(), side);
            assert!((1400..=TAIL + BODY).contains(&points.len()), "{}", points.len());
            let tail: Vec<f64> =
                points[points.len() - TAIL..].iter().map(|point| point.x).collect();
            assert_eq!(tail, (19_500..20_000).map(f64::from).collect::<Vec<_>>());
            let steps = points.windows(2).map(|pair| (pair[1].y - pair[0].y).abs());
            assert!(steps.fold(0.0, f64::max) < 1.2 / BODY as f64);
        }
    }

    #[test]
    fn no_peak_of_a_series_is_lost() {
        let seconds: Vec<f64> = (0..100_000).map(f64::from).collect();
        let mut values = vec![1.0; seconds.len()];
        (values[31_415], values[92_653]) = (7.0, -7.0);
        let points = over_time(&Series { seconds, values });
        assert!(points.len() <= 2 * SPANS);
        assert!(points.iter().any(|point| (point.x, point.y) == (31_415.0, 7.0)));
        assert!(points.iter().any(|point| (point.x, point.y) == (92_653.0, -7.0)));
        assert!(points.windows(2).all(|pair| pair[0].x < pair[1].x));
    }
}
