//! Studies: what to run, what to measure, what to draw, and what the source claims.

pub mod agreement;
mod axis;
mod claim;
mod document;
mod estimate;
mod fields;
mod figure;
mod file;
mod gather;
mod merge;
mod mistake;
mod names;
mod plan;
mod report;
mod reporting;
mod results;
mod sweep;
mod verdicts;

pub use axis::{Axis, Point};
pub use claim::MAX_COMPARISONS;
pub use document::{Coordinate, DOCUMENT_SCHEMA, RunDocument, RunKey};
pub use figure::MAX_GROUPS;
pub use file::{MAX_BYTES, MAX_SEEDS, Study};
pub use mistake::{MAX_MISTAKES, Mistake, Mistakes, StudyError};
pub use plan::MAX_RUNS;
pub use report::{
    AxisHead, AxisPlace, Cell, DrawnAxis, DrawnFigure, DrawnGroup, DrawnPoint, Estimate,
    FigureKind, Instance, StudyHead, StudyReport, Verdict, VerdictKind,
};
pub use verdicts::{verdict_markdown, verdict_table};

#[cfg(test)]
mod tests;
