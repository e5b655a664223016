//! Decides whether the comparisons of a claim hold.

use std::borrow::Cow;

use rexmit_lab::scenario::{Distribution, Unit};

use super::comparison::{Claim, Comparison, Relation, Right};
use super::words;
use crate::agreement::{Pairing, agreement, rounded};
use crate::estimate::Estimate;
use crate::gather::Operand;
use crate::outcomes::Outcomes;
use crate::pooled::{Bootstrap, MIN_RUNS};
use crate::verdict::{Instance, Verdict, VerdictKind};

/// Significance level: a larger p-value shows no difference.
const P_LIMIT: f64 = 0.05;

impl Claim {
    /// The verdict on the claim, given `outcomes`.
    pub(crate) fn judge(&self, outcomes: &Outcomes) -> Verdict {
        let judged = self.comparisons.iter().map(|one| one.judge(outcomes, self.unit));
        let instances: Vec<Instance> = judged.collect();
        Verdict {
            says: self.says.clone(),
            means: self.means.clone(),
            source_value: self.source_value.clone(),
            verdict: all(instances.iter().map(|instance| instance.verdict)),
            instances,
        }
    }
}

/// The verdict on a conjunction: one comparison that does not hold decides, then one that is
/// undecided. Without comparisons the result is undecided.
fn all(verdicts: impl Iterator<Item = VerdictKind>) -> VerdictKind {
    // In the order of the variants: holds, does not hold, undecided.
    let verdicts: Vec<VerdictKind> = verdicts.collect();
    if verdicts.contains(&VerdictKind::DoesNotHold) {
        VerdictKind::DoesNotHold
    } else if verdicts.contains(&VerdictKind::Undecided) || verdicts.is_empty() {
        VerdictKind::Undecided
    } else {
        VerdictKind::Holds
    }
}

impl Comparison {
    fn judge(&self, outcomes: &Outcomes, unit: Unit) -> Instance {
        let mut instance = self.without_tolerance(outcomes, unit);
        if instance.left.is_some() {
            instance.finding += &words::allowed(self.relation);
        }
        instance
    }

    fn without_tolerance(&self, outcomes: &Outcomes, unit: Unit) -> Instance {
        if self.is_pooled {
            return self.pooled(outcomes, unit);
        }
        let left = self.left.estimate(outcomes);
        let (verdict, right, finding) = match (self.relation, &self.right) {
            (Relation::Like { distance, grain }, Right::Measured(right)) => {
                let (verdict, finding) = like(outcomes, [&self.left, right], distance, grain);
                (verdict, right.estimate(outcomes), finding)
            }
            _ => self.difference(outcomes, left.as_ref(), unit),
        };
        Instance { point: self.point.clone(), verdict, left, right, finding }
    }

    /// Decides by the bootstrap over the values of all seeds together.
    fn pooled(&self, outcomes: &Outcomes, unit: Unit) -> Instance {
        let (point, seeds) = (self.point.clone(), outcomes.seeds());
        let sides = match &self.right {
            Right::Measured(right) => vec![&self.left, right],
            Right::Number(_) => vec![&self.left],
        };
        let pools: Option<Vec<_>> = sides.into_iter().map(|side| side.pool(outcomes)).collect();
        let bootstrap = pools.and_then(|pools| Bootstrap::of(&pools, seeds));
        let Some(bootstrap) = bootstrap else {
            let (verdict, finding) =
                (VerdictKind::Undecided, "nothing measured on one side".into());
            return Instance { point, verdict, left: None, right: None, finding };
        };
        let other = |values: &[f64]| match self.right {
            Right::Number(number) => number,
            Right::Measured(_) => values[1],
        };
        let verdict =
            judge(self.relation, |of| bootstrap.interval(&|values| of(values[0], other(values))));
        let left = bootstrap.estimate(&|values| values[0]);
        let right = match self.right {
            Right::Number(number) => Estimate::exactly(number),
            Right::Measured(_) => bootstrap.estimate(&other),
        };
        let [on_left, on_right] = [&left, &right].map(|side| words::estimate(side, unit));
        let mut finding = format!("{on_left} against {on_right}");
        if let Right::Measured(_) = self.right {
            let difference = bootstrap.estimate(&|values| values[0] - other(values));
            finding += &format!(", difference {}", words::estimate(&difference, unit));
        }
        finding += &format!(", of the values of {seeds} seeds together");
        if seeds < MIN_RUNS {
            finding += &format!("; fewer than {MIN_RUNS} have no interval");
        }
        Instance { point, verdict, left: Some(left), right: Some(right), finding }
    }

    /// Decides by the confidence interval of the differences.
    fn difference(
        &self,
        outcomes: &Outcomes,
        left: Option<&Estimate>,
        unit: Unit,
    ) -> (VerdictKind, Option<Estimate>, String) {
        let left_values = self.left.values(outcomes);
        let (right_values, right) = match &self.right {
            Right::Number(number) => {
                (vec![*number; left_values.len()], Some(Estimate::exactly(*number)))
            }
            Right::Measured(right) => (right.values(outcomes), right.estimate(outcomes)),
        };
        let pairs: Vec<(f64, f64)> = left_values
            .into_iter()
            .zip(right_values)
            .filter(|(left, right)| left.is_finite() && right.is_finite())
            .collect();
        let verdict = judge_pairs(self.relation, &pairs);
        let side = |side: Option<&Estimate>| {
            side.map_or_else(|| "nothing measured".into(), |side| words::estimate(side, unit))
        };
        let mut finding = format!("{} against {}", side(left), side(right.as_ref()));
        let difference = Estimate::of(pairs.iter().map(|(left, right)| left - right));
        if let (Some(difference), Right::Measured(_)) = (difference, &self.right) {
            finding += &format!(", difference {}", words::estimate(&difference, unit));
        }
        finding += &match (pairs.len(), &self.right) {
            (0, _) => "; no seed has both".into(),
            (1, _) => "; one seed has no interval".into(),
            (seeds, Right::Number(_)) => format!(", over {seeds} seeds"),
            (seeds, Right::Measured(_)) => format!(", paired over {seeds} seeds"),
        };
        (verdict, right, finding)
    }
}

/// The verdict from a pair of values per seed.
fn judge_pairs(relation: Relation, pairs: &[(f64, f64)]) -> VerdictKind {
    judge(relation, |of| Estimate::of(pairs.iter().map(|&(left, right)| of(left, right)))?.interval)
}

/// The verdict by the table in the module's documentation, given the confidence interval of a
/// function of both sides.
fn judge(
    relation: Relation,
    interval: impl Fn(&dyn Fn(f64, f64) -> f64) -> Option<(f64, f64)>,
) -> VerdictKind {
    let negative = |of: &dyn Fn(f64, f64) -> f64| {
        decide(interval(of), |(_, to)| to < 0.0, |(from, _)| from >= 0.0)
    };
    let not_positive = |of: &dyn Fn(f64, f64) -> f64| {
        decide(interval(of), |(_, to)| to <= 0.0, |(from, _)| from > 0.0)
    };
    // The excess over the upper limit, and the shortfall below the lower one.
    let over = |times: f64, tolerance: f64| {
        not_positive(&|left, right| left - times * right - tolerance * (times * right).abs())
    };
    let under = |times: f64, tolerance: f64| {
        not_positive(&|left, right| times * right - left - tolerance * (times * right).abs())
    };
    match relation {
        Relation::Below { times, by } => negative(&|left, right| left - times * right + by),
        Relation::Above { times, by } => negative(&|left, right| times * right - left + by),
        Relation::AtMost { times, tolerance } => over(times, tolerance),
        Relation::AtLeast { times, tolerance } => under(times, tolerance),
        Relation::Within { times, tolerance } => {
            all([over(times, tolerance), under(times, tolerance)].into_iter())
        }
        Relation::Like { .. } => VerdictKind::Undecided, // Of distributions, see `like`.
    }
}

fn decide(
    interval: Option<(f64, f64)>,
    holds: impl Fn((f64, f64)) -> bool,
    fails: impl Fn((f64, f64)) -> bool,
) -> VerdictKind {
    match interval {
        Some(interval) if holds(interval) => VerdictKind::Holds,
        Some(interval) if fails(interval) => VerdictKind::DoesNotHold,
        _ => VerdictKind::Undecided,
    }
}

/// Decides whether two distributions agree.
fn like(
    outcomes: &Outcomes,
    sides: [&Operand; 2],
    limit: f64,
    grain: Option<f64>,
) -> (VerdictKind, String) {
    let [left, right] = sides.map(|side| side.distributions(outcomes));
    let both = left.into_iter().zip(right).filter_map(|(left, right)| Some((left?, right?)));
    let (left, right): (Vec<_>, Vec<_>) = match grain {
        None => both.map(|(left, right)| (Cow::Borrowed(left), Cow::Borrowed(right))).unzip(),
        Some(grain) => {
            let coarse = |side: &Distribution| Cow::Owned(rounded(side, grain));
            both.map(|(left, right)| (coarse(left), coarse(right))).unzip()
        }
    };
    let left: Vec<&Distribution> = left.iter().map(AsRef::as_ref).collect();
    let right: Vec<&Distribution> = right.iter().map(AsRef::as_ref).collect();
    let Some(found) = agreement(&left, &right, Pairing::Paired) else {
        return (VerdictKind::Undecided, "nothing measured on one side".into());
    };
    let verdict = match (found.p > P_LIMIT, found.distance <= limit) {
        (false, _) => VerdictKind::DoesNotHold,
        (true, true) if found.has_power => VerdictKind::Holds,
        (true, _) => VerdictKind::Undecided,
    };
    let mut finding = format!(
        "distance {:.4} (at most {limit}), p = {:.3} by exchanging the runs of {} seeds",
        found.distance, found.p, found.runs.0
    );
    if !found.has_power {
        finding += "; so few could show no difference";
    }
    (verdict, finding)
}

#[cfg(test)]
mod tests {
    use VerdictKind::{DoesNotHold, Holds, Undecided};

    use super::*;

    const BELOW: Relation = Relation::Below { times: 1.0, by: 0.0 };
    const ABOVE: Relation = Relation::Above { times: 1.0, by: 0.0 };

    /// The mean of the differences is 10, its interval 10 ± 12.706 · 1 (two seeds): undecided; with
    /// four seeds 10 ± 3.182 · 0.577.
    #[test]
    fn verdicts_follow_the_interval_of_the_paired_differences() {
        let two = [(109.0, 100.0), (211.0, 200.0)];
        assert_eq!(judge_pairs(ABOVE, &two), Undecided);
        let four = [two, two].concat();
        assert_eq!(judge_pairs(ABOVE, &four), Holds);
        assert_eq!(judge_pairs(BELOW, &four), DoesNotHold);
        assert_eq!(judge_pairs(ABOVE, &four[..1]), Undecided);
        assert_eq!(judge_pairs(ABOVE, &[]), Undecided);
        // Unpaired, the spread over the seeds would hide the difference: 100, 200 against 109, 211.
        let by = |by| judge_pairs(Relation::Above { times: 1.0, by }, &four);
        // The interval is 8.16 to 11.84.
        assert_eq!(
            [by(8.0), by(9.0), by(11.0), by(12.0)],
            [Holds, Undecided, Undecided, DoesNotHold]
        );
    }

    #[test]
    fn equal_sides_are_neither_below_nor_above_but_within_and_at_most() {
        let equal = [(5.0, 5.0), (7.0, 7.0)].repeat(3);
        let at_most = Relation::AtMost { times: 1.0, tolerance: 0.0 };
        let at_least = Relation::AtLeast { times: 1.0, tolerance: 0.0 };
        let within = Relation::Within { times: 1.0, tolerance: 0.01 };
        let verdicts = [BELOW, ABOVE, at_most, at_least, within].map(|r| judge_pairs(r, &equal));
        assert_eq!(verdicts, [DoesNotHold, DoesNotHold, Holds, Holds, Holds]);
    }

    #[test]
    fn factors_and_tolerances_are_of_the_right_side() {
        let pairs: Vec<(f64, f64)> = (0..5).map(|n| (310.0 + f64::from(n), 100.0)).collect();
        let above = |times| judge_pairs(Relation::Above { times, by: 0.0 }, &pairs);
        // 312 ± 1.96 against 100.
        assert_eq!([above(3.0), above(3.11), above(3.2)], [Holds, Undecided, DoesNotHold]);
        let within = |tolerance| judge_pairs(Relation::Within { times: 3.0, tolerance }, &pairs);
        assert_eq!([within(0.05), within(0.04), within(0.03)], [Holds, Undecided, DoesNotHold]);
        let at_most = |tolerance| judge_pairs(Relation::AtMost { times: 3.0, tolerance }, &pairs);
        assert_eq!([at_most(0.05), at_most(0.04), at_most(0.03)], [Holds, Undecided, DoesNotHold]);
        let at_least = |tolerance| judge_pairs(Relation::AtLeast { times: 3.2, tolerance }, &pairs);
        assert_eq!(
            [at_least(0.035), at_least(0.025), at_least(0.01)],
            [Holds, Undecided, DoesNotHold]
        );
        let negative: Vec<_> = pairs.iter().map(|&(left, right)| (-left, -right)).collect();
        assert_eq!(judge_pairs(Relation::Within { times: 3.0, tolerance: 0.05 }, &negative), Holds);
    }

    #[test]
    fn one_that_does_not_hold_decides() {
        assert_eq!(all([Holds, Holds].into_iter()), Holds);
        assert_eq!(all([Holds, Undecided].into_iter()), Undecided);
        assert_eq!(all([Undecided, DoesNotHold, Holds].into_iter()), DoesNotHold);
        assert_eq!(all([].into_iter()), Undecided);
    }
}
