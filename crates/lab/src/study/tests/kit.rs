//! Studies for tests. All that they know of scenarios is here.

use crate::scenario::{Catalogue, Described, Problem, Scenario, Unit};
use crate::study::file::{Rules, read};
use crate::study::{Mistakes, Study};

/// A scenario with a flow `game`.
pub(super) const SCENARIO: &str = r#"[scenario]
duration = "1h"
[scenario.network]
forward = "delay 50ms loss 5%"
[scenario.thin.game]
traffic = "every 250ms size 100"
profile = "lksctp"
"#;

/// Reads a study with this scenario; the first line of `text` is its first.
pub(super) fn study(text: &str) -> Result<Study, Mistakes> {
    read("test", "test.toml", text, &RULES)
}

/// `text` between a head and the scenario: three lines come before it.
pub(super) fn with(text: &str) -> Result<Study, Mistakes> {
    study(&format!("title = \"A test\"\nseeds = 4\n\n{text}\n{SCENARIO}"))
}

const RULES: Rules = Rules { validate, catalogue };

/// Refuses the profile `none`.
fn validate(scenario: &Scenario) -> Result<(), Vec<Problem>> {
    let flows = scenario.thin.iter().filter(|(_, flow)| flow.profile == "none");
    let problems: Vec<Problem> = flows
        .map(|(name, flow)| Problem {
            path: format!("thin.{name}.profile"),
            what: format!("there is no profile `{}`", flow.profile),
        })
        .collect();
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

/// The same few names of every flow; a flow with the profile `rfc9260` has no `extra`.
fn catalogue(scenario: &Scenario) -> Catalogue {
    let mut catalogue = Catalogue::default();
    for (flow, spec) in &scenario.thin {
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
        if spec.profile != "rfc9260" {
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
