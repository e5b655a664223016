//! The claims of a source, and whether they hold.
//!
//! # The test
//! A claim consists of one or more *comparisons* of a left side with a right one: a quantity in a
//! cell, and the same or another one in another cell, or a number. The claim requires all of them
//! to hold.
//!
//! Every cell has been run with the same seeds, so the two sides are paired by seed: for every seed
//! that has both, the difference of the two values is taken, and of these differences the 95 %
//! confidence interval of the mean (Student's t). A comparison *holds* if the whole interval lies
//! on the claimed side, *does not hold* if all of it lies on the other one, and is *undecided*
//! otherwise: more seeds are needed, or the two sides are equal. It is also undecided if fewer than
//! two seeds have both values; the finding gives the reason.
//!
//! | `is` | holds if the interval lies wholly … | of |
//! |---|---|---|
//! | `below` | below 0 | left − `times` · right + `by` |
//! | `above` | above 0 | left − `times` · right − `by` |
//! | `at most` | at or below 0 | left − `times` · right − `tolerance` · \|`times` · right\| |
//! | `at least` | at or above 0 | left − `times` · right + `tolerance` · \|`times` · right\| |
//! | `within` | as `at most` and as `at least` (equivalence by two one-sided tests) | |
//! | `like` | no interval, but [`agreement`](super::agreement) of two distributions, their values rounded to the nearest multiple of `grain` if there is one: p > 5 %, and a distance of at most `distance` | |
//!
//! Along an axis, every label against the one before it:
//!
//! | `is` | meaning |
//! |---|---|
//! | `not falling`, `not rising` | every step `at least`, `at most` the one before |
//! | `rising`, `falling` | the same, and the last label `above`, `below` the first |
//! | `level` | every label `within` of the first |
//!
//! `like` does not hold if p is 5 % or less; with a higher p but too large a distance, or with too
//! few runs to show any difference, it is undecided.
//!
//! With `averaged` or `largest`, the points of some axes are combined: each side is then, for every
//! seed, the mean or the maximum of the values at all of them, and missing if one of them is. With
//! `gain_over` or `loss_against`, each side is, for every seed, its relative increase or decrease
//! from the value at another point.
//!
//! # The verdict
//! A claim holds if every comparison does, does not hold if one of them does not, else it is
//! undecided. "Holds" is wrong only if every false comparison is judged wrongly, so its error
//! probability does not grow with the number of comparisons (at most 2.5 %). "Does not hold" is
//! wrong if a single true comparison is judged wrongly: two or three of a hundred true but close
//! comparisons are. The report therefore shows the verdict on each comparison.

mod comparison;
mod judge;
mod read;
mod trend;
mod words;

pub(crate) use comparison::Claim;
pub use comparison::MAX_COMPARISONS;
pub(crate) use read::read;
