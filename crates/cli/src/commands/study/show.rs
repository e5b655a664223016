//! `rexmit study show`.

use clap::Args;
use rexmit_study::RunDocument;
use rexmit_study::page::StudyPage;
use rexmit_study::store::{Found, Store};
use serde::Serialize;

use super::select::{Chosen, Seeds, Selection};
use super::work::Cache;
use crate::commands::examples::examples;
use crate::failure::Outcome;
use crate::output::Format;

/// Show the runs of a study, their cost, and its claims.
#[derive(Debug, Args)]
#[command(after_help = examples!(
    "  rexmit study show petlund2009-fig8a\n  rexmit study show ./my-study.toml --json"))]
pub(super) struct Arguments {
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    seeds: Seeds,
    #[command(flatten)]
    cache: Cache,
    #[command(flatten)]
    format: Format,
}

#[derive(Serialize)]
struct Shown {
    name: String,
    title: String,
    source: String,
    about: String,
    /// The scenario before the axes are applied: field and value.
    setting: Vec<(String, String)>,
    axes: Vec<(String, Vec<String>)>,
    seeds: Vec<u64>,
    runs: usize,
    /// Runs whose results are in the cache.
    found: usize,
    /// Simulated time of all runs together, in seconds.
    simulated_s: f64,
    /// The claims: as text, and as comparisons of quantities.
    claims: Vec<(String, String)>,
    costs: Vec<String>,
}

pub(super) fn run(arguments: &Arguments) -> Outcome {
    let Arguments { selection, seeds, cache, format } = arguments;
    let mut chosen = selection.named()?;
    seeds.apply(&mut chosen);
    let store = cache.open()?;
    let shown: Vec<Shown> = chosen.into_iter().map(|chosen| Shown::new(chosen, &store)).collect();
    format.print(&shown, |shown| shown.iter().map(Shown::text).collect::<Vec<_>>().join("\n"))
}

impl Shown {
    fn new(chosen: Chosen, store: &Store) -> Self {
        let study = chosen.study;
        // Without results, the page has the claims and axes only.
        let StudyPage { claims, axes, .. } = study.page(|_| None);
        let runs = study.plan();
        let is_found = |run: &RunDocument| matches!(store.look_up(&run.key()), Found::Result);
        Self {
            setting: study.setting.iter().map(|c| (c.axis.clone(), c.label.clone())).collect(),
            axes: axes.into_iter().map(|axis| (axis.name, axis.labels)).collect(),
            runs: runs.len(),
            found: runs.iter().filter(|run| is_found(run)).count(),
            simulated_s: runs.iter().map(|run| run.scenario.duration.as_secs_f64()).sum(),
            claims: claims.into_iter().map(|claim| (claim.says, claim.means)).collect(),
            name: study.name,
            title: study.title,
            source: study.source,
            about: study.about,
            seeds: study.seeds,
            costs: study.costs,
        }
    }

    fn text(&self) -> String {
        let mut text = format!("{}: {}\n", self.name, self.title);
        if !self.source.is_empty() {
            text += &format!("{}\n", self.source);
        }
        if !self.about.is_empty() {
            text += &format!("\n{}\n", self.about);
        }
        text += &section(
            "Setting",
            self.setting.iter().map(|(field, value)| format!("{field} = {value}")),
        );
        text += &section(
            "Axes",
            self.axes.iter().map(|(name, labels)| format!("{name}: {}", labels.join(" | "))),
        );
        text += &section("Runs", [self.runs()]);
        text += &section(
            "Claims",
            self.claims.iter().map(|(says, means)| format!("{says}\n    {means}")),
        );
        text + &section("Costs shown beside the gains", self.costs.iter().cloned())
    }

    /// Counts such as `6 × 5 points, 10 seeds: 300 runs, 600 hours of simulated time; 120 of them
    /// are in the cache`.
    fn runs(&self) -> String {
        let points: Vec<_> = self.axes.iter().map(|(_, labels)| labels.len().to_string()).collect();
        let points = if points.is_empty() { "1".into() } else { points.join(" × ") };
        let seeds = self.seeds.len();
        let hours = self.simulated_s / 3600.0;
        let mut words = format!(
            "{points} points with {seeds} seeds each: {} runs, {hours:.1} h of simulated time",
            self.runs
        );
        if self.found > 0 {
            words += &format!("; {} of them are in the cache", self.found);
        }
        words
    }
}

/// A heading and its lines; empty without lines.
fn section(heading: &str, lines: impl IntoIterator<Item = String>) -> String {
    let lines: String = lines.into_iter().map(|line| format!("  {line}\n")).collect();
    if lines.is_empty() { lines } else { format!("\n{heading}:\n{lines}") }
}
