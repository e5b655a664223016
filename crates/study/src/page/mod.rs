//! Pages: each one HTML file that needs nothing else. One of a comparison, one of a study, and an
//! index of studies.

mod build;
pub mod comparison;
mod shown;
pub mod study;
mod template;

pub use shown::{AxisHead, Cell, StudyHead, StudyPage};
