//! The contents of a study's page, without the runs.

use std::collections::BTreeMap;

use rexmit_lab::scenario::Described;
use serde::{Deserialize, Serialize};

use crate::document::Coordinate;
use crate::estimate::Estimate;
use crate::figure::DrawnFigure;
use crate::verdict::Verdict;

/// The contents of a study's page.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StudyPage {
    /// The head of the page.
    pub study: StudyHead,
    /// The axes of the study.
    pub axes: Vec<AxisHead>,
    /// One cell per point of the sweep; the last axis changes fastest.
    pub cells: Vec<Cell>,
    /// The quantities of the cells.
    pub quantities: Vec<Described>,
    /// The names of the quantities used by claims and figures: the gains, shown next to the costs.
    #[serde(default)]
    pub gains: Vec<String>,
    /// The names of the quantities that are shown as the costs, next to the gains.
    pub costs: Vec<String>,
    /// The figures.
    pub figures: Vec<DrawnFigure>,
    /// The claims of the source, and their verdicts.
    pub claims: Vec<Verdict>,
    /// What no number shows, such as messages that were never delivered.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// The head of a study.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StudyHead {
    /// The name of the study, which is that of its file.
    pub name: String,
    /// The title of the study.
    pub title: String,
    /// The figure or table that it reproduces: `Petlund 2009, Fig. 8a`.
    pub source: String,
    /// The method, and the differences from the source.
    pub about: String,
    /// The version of rexmit that ran it.
    pub version: String,
    /// The fields of the scenario before the axes are applied, one per line.
    pub setting: Vec<Coordinate>,
    /// Number of runs.
    pub runs: u64,
    /// Simulated time of all runs together, in seconds.
    pub simulated_s: f64,
    /// The seeds with which each point of the sweep was run.
    #[serde(default)]
    pub seeds: Vec<u64>,
    /// The arguments of `rexmit study run` that run it again; empty in reports of versions that did not record them.
    #[serde(default)]
    pub arguments: String,
    /// The text of the study's file as it was run; empty if there was none.
    #[serde(default)]
    pub file: String,
}

/// An axis.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AxisHead {
    /// The name of the axis.
    pub name: String,
    /// The labels of its points.
    pub labels: Vec<String>,
}

/// All seeds of one point of the sweep.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Cell {
    /// The position of the point.
    pub point: Vec<Coordinate>,
    /// The estimates of its quantities over the seeds.
    pub quantities: BTreeMap<String, Estimate>,
}
