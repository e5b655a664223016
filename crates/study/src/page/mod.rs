//! Pages, each one self-contained HTML file: a comparison, a study, and the index of studies.

mod build;
pub mod comparison;
pub mod explore;
mod notes;
mod shown;
pub mod study;
mod template;
pub mod trace;

pub use shown::{AxisHead, Cell, StudyHead, StudyPage};
