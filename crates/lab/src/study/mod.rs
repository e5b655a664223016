//! Studies: what to run, what to measure, what to draw, and what the source claims.

mod axis;
mod document;
mod fields;
mod file;
mod merge;
mod mistake;
mod plan;
mod report;

pub use axis::{Axis, Point};
pub use document::{Coordinate, DOCUMENT_SCHEMA, RunDocument, RunKey};
pub use file::{MAX_BYTES, MAX_SEEDS, Study};
pub use mistake::{MAX_MISTAKES, Mistake, Mistakes, StudyError};
pub use plan::MAX_RUNS;
pub use report::{
    AxisHead, AxisPlace, Cell, DrawnAxis, DrawnFigure, DrawnGroup, DrawnPoint, Estimate,
    FigureKind, Instance, StudyHead, StudyReport, Verdict, VerdictKind,
};

#[cfg(test)]
mod tests;
