//! Builds the page of a study from the outcomes of its runs.

use std::collections::BTreeSet;

use rexmit_core::words::parse_duration;
use rexmit_lab::scenario::{Catalogue, Described, RunOutcome};

use crate::cells::coordinates;
use crate::claim::Claim;
use crate::document::RunDocument;
use crate::figure::Figure;
use crate::file::Study;
use crate::outcomes::{Outcomes, Wanted};
use crate::page::notes;
use crate::page::shown::{AxisHead, Cell, StudyHead, StudyPage};

impl Study {
    /// The results of the study. `outcome` is called once for every run, in the order of the plan,
    /// and returns `None` for runs without a result. Each outcome is dropped before the next call.
    #[must_use]
    pub fn page(&self, mut outcome: impl FnMut(&RunDocument) -> Option<RunOutcome>) -> StudyPage {
        let mut outcomes = Outcomes::new(self.cells.len(), &self.seeds, self.wanted());
        let mut simulated_s = 0.0;
        for (index, cell) in self.cells.iter().enumerate() {
            for (seed, &number) in self.seeds.iter().enumerate() {
                if let Some(outcome) = outcome(&self.document(cell, number)) {
                    let duration = parse_duration(&cell.scenario.duration.to_string());
                    simulated_s += duration.map_or(0.0, |duration| duration.as_secs_f64());
                    outcomes.add(index, seed, outcome);
                }
            }
        }
        self.tell(&outcomes, simulated_s)
    }

    /// `outcome` with only those distributions and series that [`page`](Self::page) needs, for callers that keep many.
    #[must_use]
    pub fn needed(&self, mut outcome: RunOutcome) -> RunOutcome {
        let wanted = self.wanted();
        let is_wanted = |name: &str| wanted.distributions.iter().any(|term| term.name == name);
        outcome.distributions.retain(|name, _| is_wanted(name));
        let is_wanted = |name: &str| wanted.series.iter().any(|(term, _)| term.name == name);
        outcome.series.retain(|name, _| is_wanted(name));
        outcome.messages = Vec::new();
        outcome
    }

    /// The distributions and series that claims and figures need.
    fn wanted(&self) -> Wanted {
        let mut wanted = Wanted::default();
        self.figures.iter().for_each(|figure| figure.want(&mut wanted));
        let terms = self.claims.iter().flat_map(Claim::distributions);
        wanted.distributions.extend(terms);
        wanted
    }

    fn tell(&self, outcomes: &Outcomes, simulated_s: f64) -> StudyPage {
        let cells = self.cells.iter().enumerate().map(|(index, cell)| Cell {
            point: coordinates(&self.axes, &cell.point),
            quantities: outcomes.estimates(index),
        });
        let cells: Vec<Cell> = cells.collect();
        let axes = self.axes.iter().map(|axis| AxisHead {
            name: axis.name.clone(),
            labels: axis.points.iter().map(|point| point.label.clone()).collect(),
        });
        StudyPage {
            study: StudyHead {
                name: self.name.clone(),
                title: self.title.clone(),
                source: self.source.clone(),
                about: self.about.clone(),
                version: env!("CARGO_PKG_VERSION").into(),
                setting: self.setting.clone(),
                runs: outcomes.runs,
                simulated_s,
                seeds: self.seeds.clone(),
                arguments: self.arguments.clone(),
                file: self.text.clone(),
            },
            axes: axes.collect(),
            notes: notes::of_undelivered(&cells),
            cells,
            quantities: self.catalogue().quantities,
            gains: self.gains(),
            costs: self.costs.clone(),
            figures: self.figures.iter().map(|figure| figure.draw(outcomes)).collect(),
            claims: self.claims.iter().map(|claim| claim.judge(outcomes)).collect(),
        }
    }

    /// The quantities that claims and figures use, without the costs.
    fn gains(&self) -> Vec<String> {
        let claims = self.claims.iter().flat_map(Claim::quantities);
        let figures = self.figures.iter().flat_map(Figure::quantities);
        let mut known: BTreeSet<&str> = self.costs.iter().map(String::as_str).collect();
        claims.chain(figures).filter(|name| known.insert(name)).map(str::to_owned).collect()
    }

    /// Everything that any of the cells measures, each name once.
    #[must_use]
    pub fn catalogue(&self) -> Catalogue {
        let each = |of: fn(&Catalogue) -> &[Described]| -> Vec<Described> {
            let mut known = BTreeSet::new();
            let all = self.catalogues.iter().flat_map(of);
            all.filter(|described| known.insert(&described.name)).cloned().collect()
        };
        Catalogue {
            quantities: each(|catalogue| &catalogue.quantities),
            distributions: each(|catalogue| &catalogue.distributions),
            series: each(|catalogue| &catalogue.series),
        }
    }
}
