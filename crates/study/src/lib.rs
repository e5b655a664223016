//! Studies: the definition of runs, measurements and figures, and of the claims of a source.
//!
//! A [`Study`] is read from a file and [planned](Study::plan): a [`RunDocument`] per point and
//! seed. A [`runner`] runs them and a [`store`] keeps the result of each run, its *outcome*
//! ([`RunOutcome`](rexmit_lab::scenario::RunOutcome)). All outcomes together form the
//! [`StudyPage`](page::StudyPage): estimates, figures, and a [`Verdict`] on each claim. [`results`]
//! writes it as files, [`page`] as HTML, [`verdict_table`] for a terminal.
//!
//! This crate executes no run itself: the caller of the runner passes the function that executes
//! one.

pub mod advice;
pub mod agreement;
mod axis;
mod cells;
mod claim;
pub mod comparison;
mod document;
mod estimate;
pub mod explore;
mod fields;
mod figure;
mod file;
mod gather;
mod merge;
mod mistake;
mod names;
mod outcomes;
pub mod page;
mod plan;
mod pooled;
pub mod quantities;
pub mod results;
pub mod runner;
pub mod statements;
pub mod store;
pub mod studies;
mod sweep;
mod verdict;
mod verdict_page;
mod verdict_table;

pub use axis::{Axis, Point};
pub use cells::MAX_RUNS;
pub use claim::MAX_COMPARISONS;
pub use document::{Coordinate, DOCUMENT_SCHEMA, RunDocument, RunKey};
pub use estimate::Estimate;
pub use figure::{
    AxisPlace, DrawnAxis, DrawnFigure, DrawnGroup, DrawnPoint, FigureKind, MAX_GROUPS, StatedValue,
};
pub use file::{MAX_BYTES, MAX_SEEDS, Outline, Study};
pub use mistake::{MAX_MISTAKES, Mistake, Mistakes, StudyError};
pub use verdict::{Instance, Verdict, VerdictKind};
pub use verdict_page::{check_rows, renewed};
pub use verdict_table::{verdict_markdown, verdict_table};

#[cfg(test)]
mod tests;
