//! Studies: what to run, what to measure, what to draw, and what the source claims.

mod document;
mod report;

pub use document::{Coordinate, DOCUMENT_SCHEMA, RunDocument, RunKey};
pub use report::{
    AxisHead, AxisPlace, Cell, DrawnAxis, DrawnFigure, DrawnGroup, DrawnPoint, Estimate,
    FigureKind, Instance, StudyHead, StudyReport, Verdict, VerdictKind,
};
