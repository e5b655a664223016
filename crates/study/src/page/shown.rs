//! Everything that the page of a study shows, without the runs.

use std::collections::BTreeMap;

use rexmit_lab::scenario::Described;
use serde::{Deserialize, Serialize};

use crate::document::Coordinate;
use crate::estimate::Estimate;
use crate::figure::DrawnFigure;
use crate::verdict::Verdict;

/// Everything that a page shows of a study.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StudyPage {
    /// What it is.
    pub study: StudyHead,
    /// Its axes.
    pub axes: Vec<AxisHead>,
    /// One per point of the sweep, in the order of the axes, the last one fastest.
    pub cells: Vec<Cell>,
    /// The quantities of the cells.
    pub quantities: Vec<Described>,
    /// The names of the quantities that the claims and figures are about: the gains, shown beside
    /// the costs.
    #[serde(default)]
    pub gains: Vec<String>,
    /// The names of the quantities that are shown as the costs, beside the gains.
    pub costs: Vec<String>,
    /// The figures.
    pub figures: Vec<DrawnFigure>,
    /// The claims of the source, and their verdicts.
    pub claims: Vec<Verdict>,
}

/// The head of a study.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StudyHead {
    /// Its name, that of its file.
    pub name: String,
    /// Its title.
    pub title: String,
    /// The figure or table it redoes: `Petlund 2009, Fig. 8a`.
    pub source: String,
    /// The method, and differences from the source.
    pub about: String,
    /// The version of rexmit that ran it.
    pub version: String,
    /// The scenario that the axes vary, in words, a line each.
    pub setting: Vec<Coordinate>,
    /// Runs in it.
    pub runs: u64,
    /// Seconds of simulated time, all runs together.
    pub simulated_s: f64,
    /// The seeds with which each point of the sweep was run.
    #[serde(default)]
    pub seeds: Vec<u64>,
    /// The file of the study as it was run, word for word; empty if it came from none.
    #[serde(default)]
    pub file: String,
}

/// An axis.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AxisHead {
    /// Its name.
    pub name: String,
    /// The labels of its points.
    pub labels: Vec<String>,
}

/// All seeds of one point of the sweep.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Cell {
    /// Where it is.
    pub point: Vec<Coordinate>,
    /// The measurements, over the seeds.
    pub quantities: BTreeMap<String, Estimate>,
}
