//! Studies for tests, with a minimal model of scenarios.

use rexmit_lab::scenario::{
    Catalogue, Described, Distribution, Problem, RunOutcome, Scenario, Series, Unit,
};

use crate::cells::Rules;
use crate::file::read;
use crate::page::StudyPage;
use crate::{Mistakes, Study};

/// A scenario with a flow `game`.
pub(super) const SCENARIO: &str = r#"[scenario]
duration = "1h"
[scenario.network]
forward = "delay 50ms loss 5%"
[scenario.thin.game]
traffic = "every 250ms size 100"
profile = "lksctp"
"#;

/// Two systems at three rates.
pub(super) const TWO_AXES: &str = r#"
[[axis]]
name = "system"
[[axis.point]]
label = "lksctp"
[[axis.point]]
label = "thin"
set.thin.game.profile = "thin"
[[axis]]
name = "interarrival"
unit = "ms"
values = [50, 100, 150]
set.thin.game.traffic = "every {}ms size 100"
"#;

/// Reads a study with this scenario; the first line of `text` is its first.
pub(super) fn study(text: &str) -> Result<Study, Mistakes> {
    read("test", "test.toml", text, &RULES)
}

/// `text` after a head and before the scenario: three lines precede it.
pub(super) fn with(text: &str) -> Result<Study, Mistakes> {
    study(&format!("title = \"A test\"\nseeds = 4\n\n{text}\n{SCENARIO}"))
}

/// The thin flows of a scenario, and their profiles.
fn flows(scenario: &Scenario) -> Vec<(String, String)> {
    let scenario = serde_json::to_value(scenario).unwrap();
    let flows = scenario["thin"].as_object().unwrap().iter();
    flows.map(|(name, flow)| (name.clone(), flow["profile"].as_str().unwrap().to_owned())).collect()
}

const RULES: Rules = Rules { validate, catalogue };

/// Refuses the profile `none`.
fn validate(scenario: &Scenario) -> Result<(), Vec<Problem>> {
    let flows = flows(scenario).into_iter().filter(|(_, profile)| profile == "none");
    let problems: Vec<Problem> = flows
        .map(|(name, profile)| Problem {
            path: format!("thin.{name}.profile"),
            what: format!("there is no profile `{profile}`"),
        })
        .collect();
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

/// The same few names of every flow; a flow with the profile `rfc9260` has no `extra`.
fn catalogue(scenario: &Scenario) -> Catalogue {
    let mut catalogue = Catalogue::default();
    for (flow, profile) in flows(scenario) {
        let mut quantity = |name: &str, unit| {
            let described = described(&format!("{flow}.{name}"), unit);
            catalogue.quantities.push(described);
        };
        for name in
            ["latency.mean", "latency.max", "rtx1.mean", "rtx1.p99", "rtx2.mean", "rtx2.p99"]
        {
            quantity(name, Unit::Milliseconds);
        }
        quantity("loss_share", Unit::Share);
        quantity("spurious_share", Unit::Share);
        if profile != "rfc9260" {
            quantity("extra", Unit::Count);
        }
        catalogue.distributions.push(described(&format!("{flow}.latency"), Unit::Milliseconds));
        catalogue.series.push(described(&format!("{flow}.rto"), Unit::Milliseconds));
    }
    catalogue
}

fn described(name: &str, unit: Unit) -> Described {
    Described { name: name.into(), unit, about: format!("what {name} is") }
}

/// Outcomes for all runs of `study`: each name has the value that `value` returns for the system, the
/// interarrival time and the seed.
pub(super) fn page(
    study: &Study,
    value: impl Fn(&str, &str, f64, f64) -> Option<f64>,
) -> StudyPage {
    study.page(|run| {
        let label = |axis: &str| {
            run.point.iter().find(|one| one.axis == axis).map_or("", |one| one.label.as_str())
        };
        let interarrival = label("interarrival").trim_end_matches(" ms").parse().unwrap_or(0.0);
        let known = catalogue(&run.scenario).quantities.into_iter();
        let quantity = |known: Described| {
            let value = value(&known.name, label("system"), interarrival, run.seed as f64)?;
            Some((known.name, value))
        };
        let (system, seed) = (label("system"), run.seed as f64);
        // A hundred messages, later for one system than for the other.
        let late = if system == "thin" { 0.0 } else { 100.0 };
        let values = (0..100).map(|n| f64::from(n) + late + seed).collect();
        let latency = Distribution { values, counts: vec![1; 100] };
        let rto = Series { seconds: vec![0.0, 1.0], values: vec![1000.0, 1000.0 + seed] };
        Some(RunOutcome {
            quantities: known.filter_map(quantity).collect(),
            distributions: [("game.latency".to_owned(), latency)].into(),
            series: [("game.rto".to_owned(), rto)].into(),
            ..RunOutcome::default()
        })
    })
}
