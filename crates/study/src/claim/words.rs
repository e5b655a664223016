//! Formatting of numbers and comparisons.

use rexmit_lab::scenario::Unit;

use super::comparison::Relation;
use crate::estimate::Estimate;

/// A number with its unit: four digits, in the unit's usual multiple.
pub(super) fn number(value: f64, unit: Unit) -> String {
    let (factor, name) = scale(value, unit);
    format!("{}{name}", digits(value * factor))
}

/// An estimate such as `312.4 ± 3.1 ms`; without an interval the mean alone.
pub(super) fn estimate(estimate: &Estimate, unit: Unit) -> String {
    let (factor, name) = scale(estimate.mean, unit);
    let mean = digits(estimate.mean * factor);
    match estimate.interval {
        Some((from, to)) => format!("{mean} ± {}{name}", digits((to - from) / 2.0 * factor)),
        None => format!("{mean}{name}"),
    }
}

/// The factor by which a number is multiplied for display, and the unit's symbol.
fn scale(value: f64, unit: Unit) -> (f64, &'static str) {
    match unit {
        Unit::Milliseconds => (1.0, " ms"),
        Unit::Seconds => (1.0, " s"),
        Unit::Bytes => (1.0, " bytes"),
        Unit::BitsPerSecond if value.abs() >= 1e6 => (1e-6, " Mbit/s"),
        Unit::BitsPerSecond => (1e-3, " kbit/s"),
        Unit::Share => (100.0, " %"),
        Unit::Count | Unit::Ratio => (1.0, ""),
    }
}

/// A number with four significant digits, and all digits before the decimal point.
fn digits(value: f64) -> String {
    let value = if value == 0.0 { 0.0 } else { value }; // No −0.
    let before = if value.abs() < 1.0 { 0.0 } else { value.abs().log10().floor() + 1.0 };
    let places = (4.0 - before).clamp(0.0, 4.0) as usize;
    let text = format!("{value:.places$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text }
}

/// A relation such as `is below 0.5 times`, to be followed by the right side.
pub(super) fn relation(relation: Relation, unit: Unit) -> String {
    let factor = |times: f64| if times == 1.0 { String::new() } else { format!(" {times} times") };
    let by = |by: f64| if by == 0.0 { String::new() } else { format!(" by {}", number(by, unit)) };
    match relation {
        Relation::Below { times, by: margin } => format!("is{} below{}", by(margin), factor(times)),
        Relation::Above { times, by: margin } => format!("is{} above{}", by(margin), factor(times)),
        Relation::AtMost { times, tolerance } => {
            format!("is at most{}{}", factor(times), self::tolerance(tolerance))
        }
        Relation::AtLeast { times, tolerance } => {
            format!("is at least{}{}", factor(times), self::tolerance(tolerance))
        }
        Relation::Within { times, tolerance } => {
            format!("is within {} % of{}", digits(tolerance * 100.0), factor(times))
        }
        Relation::Like { distance, grain: None } => {
            format!("is distributed (distance at most {distance}) like")
        }
        Relation::Like { distance, grain: Some(grain) } => {
            let grain = number(grain, unit);
            format!("is distributed (distance at most {distance}, to the nearest {grain}) like")
        }
    }
}

/// A tolerance such as ` (tolerance 2 %)`; empty for zero.
pub(super) fn tolerance(share: f64) -> String {
    if share == 0.0 { String::new() } else { format!(" (tolerance {} %)", digits(share * 100.0)) }
}

/// The tolerance of a comparison, to be shown after its numbers: ` (tolerance 2 %)`. Empty without one.
pub(super) fn allowed(relation: Relation) -> String {
    match relation {
        Relation::AtMost { tolerance, .. }
        | Relation::AtLeast { tolerance, .. }
        | Relation::Within { tolerance, .. } => self::tolerance(tolerance),
        Relation::Below { .. } | Relation::Above { .. } | Relation::Like { .. } => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_tolerance_is_shown() {
        let (times, by) = (1.0, 0.0);
        let two = Relation::AtLeast { times, tolerance: 0.02 };
        assert_eq!(allowed(two), " (tolerance 2 %)");
        assert_eq!(allowed(Relation::Within { times, tolerance: 0.25 }), " (tolerance 25 %)");
        assert_eq!(allowed(Relation::AtMost { times, tolerance: 0.0 }), "");
        assert_eq!(allowed(Relation::Below { times, by }), "");
    }

    #[test]
    fn numbers_have_four_digits_and_the_unit_that_fits() {
        let table = [
            (312.44, Unit::Milliseconds, "312.4 ms"),
            (12345.6, Unit::Milliseconds, "12346 ms"),
            (0.05, Unit::Share, "5 %"),
            (0.000_312, Unit::Share, "0.0312 %"),
            (2_500_000.0, Unit::BitsPerSecond, "2.5 Mbit/s"),
            (640.0, Unit::BitsPerSecond, "0.64 kbit/s"),
            (-0.0, Unit::Count, "0"),
            (100.0, Unit::Count, "100"),
            (9.9996, Unit::Ratio, "10"),
        ];
        for (value, unit, words) in table {
            assert_eq!(number(value, unit), words);
        }
        let wide =
            Estimate { seeds: 2, mean: 312.4, interval: Some((309.3, 315.5)), range: (1.0, 2.0) };
        assert_eq!(estimate(&wide, Unit::Milliseconds), "312.4 ± 3.1 ms");
        assert_eq!(estimate(&Estimate::exactly(0.5), Unit::Share), "50 %");
    }
}
