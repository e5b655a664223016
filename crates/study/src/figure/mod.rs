//! The figures of a study.
//!
//! | `kind` | horizontal | vertical | in one colour |
//! |---|---|---|---|
//! | `lines` | an axis, by its numbers if it has them | quantities | the other axes' points |
//! | `bars` | an axis, or named categories with a quantity each | quantities | the other axes' points |
//! | `stacked-bars` | the same, for every point of the other axes | quantities | the quantities |
//! | `scatter` | a quantity | another one, a point per run | the cells |
//! | `cdf`, `ccdf` | a distribution, pooled over the seeds | shares | the cells |
//! | `series` | seconds | values over time, of one seed | the cells |
//!
//! Axes that are neither horizontal nor fixed by `at` are distinguished in the legend. In lines and
//! bars, axes may be combined, and values may be gains over those at another point, as in claims.
//! Values that the source states are drawn as marks.

mod curve;
mod draw;
mod drawn;
mod group;
mod read;
mod sheet;
mod stated;

pub(crate) use group::Figure;
pub use group::MAX_GROUPS;
pub(crate) use read::read;

pub use drawn::{
    AxisPlace, DrawnAxis, DrawnFigure, DrawnGroup, DrawnPoint, FigureKind, StatedValue,
};
