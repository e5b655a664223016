//! Advice for traffic of the user's own: which profile to choose, what it gains and what it costs.
//!
//! A [`Question`] becomes a [`Study`](crate::Study) whose axis has the candidates; [`Advice`] reads the page of its results.

mod answer;
mod candidate;
mod path;
mod question;

pub use answer::{Advice, AdviceRow, DEFAULT_MAX_COST};
pub use candidate::{Candidate, STANDARD, candidates, every_candidate};
pub use path::{DEFAULT_LOSS, DEFAULT_RTT, PathGiven};
pub use question::{DEFAULT_SEEDS, MAX_DURATION, Question, QuestionError};
