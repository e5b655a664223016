//! The claims of a source, and whether they hold.
//!
//! # The test
//! A claim stands for one or more *comparisons* of a left side with a right one: a quantity in a
//! cell, and the same or another one in another cell, or a number. All of them have to hold.
//!
//! Every cell has been run with the same seeds, so the two sides are paired by seed: for every seed
//! that has both, the difference of the two values is taken, and of these differences the 95 %
//! confidence interval of the mean (Student's t). A comparison *holds* if the whole interval lies on
//! the claimed side, *does not hold* if all of it lies on the other one, and is *undecided*
//! otherwise: more seeds would tell, or the two are equal. It is undecided, too, if fewer than two
//! seeds have both values; the finding says which.
//!
//! | `is` | holds if the interval lies wholly … | of |
//! |---|---|---|
//! | `below` | below 0 | left − `times` · right + `by` |
//! | `above` | above 0 | left − `times` · right − `by` |
//! | `at most` | at or below 0 | left − `times` · right − `tolerance` · \|`times` · right\| |
//! | `at least` | at or above 0 | left − `times` · right + `tolerance` · \|`times` · right\| |
//! | `within` | as `at most` and as `at least` (equivalence by two one-sided tests) | |
//! | `like` | no interval: [`agreement`](super::agreement) of two distributions, their values rounded to the nearest multiple of `grain` if there is one: p > 5 %, and a distance of at most `distance` | |
//!
//! Along an axis, every label against the one before it:
//!
//! | `is` | stands for |
//! |---|---|
//! | `not falling`, `not rising` | every step `at least`, `at most` the one before |
//! | `rising`, `falling` | the same, and the last label `above`, `below` the first |
//! | `level` | every label `within` of the first |
//!
//! `like` does not hold if p is 5 % or less; with a higher p but too large a distance, or with too few
//! runs to show any difference, it is undecided.
//!
//! With `averaged` or `largest`, the points of some axes are taken together: each side is then, for
//! every seed, the mean or the largest of the values at all of them, and nothing if one has none. With
//! `gain_over` or `loss_against` each side is, for every seed, by what share that is more or less than
//! the same at another point.
//!
//! # The verdict
//! A claim holds if every comparison does, does not hold if one of them does not, else it is
//! undecided. To say falsely that it holds, every comparison that is not true would have to come out
//! wrong, so that this is no more probable with many of them (2.5 % at most). To say falsely that it
//! does not hold, one is enough: of a hundred true comparisons two or three are expected on the
//! wrong side if they are close. The verdict is of every single one for the reader to see.

mod comparison;
mod judge;
mod read;
mod trend;
mod words;

pub(crate) use comparison::Claim;
pub use comparison::MAX_COMPARISONS;
pub(crate) use read::read;
