//! Everything that a study can measure, for people who write one.
//!
//! The names, units and meanings are those of the [catalogues](Scenario::catalogue) of scenarios that together have every
//! kind of flow: there is no list beside the code that measures.

use std::collections::BTreeSet;

use rexmit_lab::scenario::{Catalogue, Scenario, Unit};
use serde::Serialize;

/// A scenario that has certain quantities, and the flows of which it is.
struct Example {
    /// The beginnings of names, each with what it stands for. What begins otherwise is not listed.
    of: &'static [(&'static str, &'static str)],
    /// The scenario as JSON.
    scenario: &'static str,
}

const EXAMPLES: [Example; 5] = [
    Example {
        of: &[
            ("game.", "a thin flow, here called `game` ([scenario.thin.game])"),
            ("greedy.", "a bulk flow, here called `greedy` ([scenario.bulk.greedy])"),
            ("web.", "web clients, here called `web` ([scenario.web.web])"),
            ("cross.", "a UDP flow, here called `cross` ([scenario.udp.cross])"),
            ("network.", "the shared path ([scenario.network])"),
        ],
        scenario: r#"{"duration": "1min", "network": {"forward": "delay 50ms loss 1%"},
            "thin": {"game": {"traffic": "every 250ms size 100", "late": ["100ms"],
                "bounds": ["reactive", "doubled", "bundled", "bundled_once"], "profile": "interactive",
                "recovery": {"thin": {"deadline": {"within": "200ms", "probability": 0.99}}}}},
            "bulk": {"greedy": {}}, "web": {"web": {}},
            "udp": {"cross": {"traffic": "rate 100kbit size 1000"}}}"#,
    },
    Example {
        of: &[("game.transfer.", "a thin flow with `transfer = true`")],
        scenario: r#"{"duration": "1min", "network": {"forward": "delay 50ms"},
            "thin": {"game": {"traffic": "every 250ms size 100", "transfer": true}}}"#,
    },
    Example {
        of: &[
            ("game.path", "a flow over both networks"),
            ("second_network.", "the shared path of [scenario.second_network]"),
        ],
        scenario: r#"{"duration": "1min", "network": {"forward": "delay 50ms"},
            "second_network": {"forward": "delay 50ms"},
            "thin": {"game": {"traffic": "every 250ms size 100"}}}"#,
    },
    Example {
        of: &[("game.", "a flow whose loss threshold adapts, as with profile `rr`")],
        scenario: r#"{"duration": "1min", "network": {"forward": "delay 50ms"},
            "thin": {"game": {"traffic": "every 250ms size 100", "profile": "rr"}}}"#,
    },
    Example {
        of: &[
            ("game.", "a thin flow on real sockets (clock = \"real\")"),
            ("network.", "the emulator on real sockets (clock = \"real\")"),
        ],
        scenario: r#"{"duration": "1min", "clock": "real", "network": {"forward": "delay 50ms"},
            "thin": {"game": {"traffic": "every 250ms size 100", "transport": "sctp"}}}"#,
    },
];

/// Something that is measured.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Measurable {
    /// What it is of.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub of: String,
    /// The name in claims and figures.
    pub name: String,
    /// What kind of value it is.
    pub kind: MeasurableKind,
    /// The unit of the value, or of its values.
    pub unit: Unit,
    /// A description in one line.
    pub about: String,
}

/// The kind of a measured value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MeasurableKind {
    /// A number per run: for claims, and for lines, bars and scatter plots.
    Quantity,
    /// The values of a run: for `like`, and for figures of kind `cdf` and `ccdf`.
    Distribution,
    /// Values over time: for figures of kind `series`.
    Series,
}

/// What runs can measure, by the kind of flow.
///
/// # Panics
/// Never: the examples are valid.
#[must_use]
pub fn quantities() -> Vec<Measurable> {
    let mut known = BTreeSet::new();
    let mut all = Vec::new();
    for Example { of, scenario } in EXAMPLES {
        let scenario: Scenario = serde_json::from_str(scenario).expect("the examples are valid");
        for one in measurables(&scenario.catalogue(), "") {
            let place = of.iter().find(|(beginning, _)| one.name.starts_with(beginning));
            if let Some((_, of)) = place
                && known.insert((one.kind, one.name.clone()))
            {
                all.push(Measurable { of: (*of).into(), ..one });
            }
        }
    }
    all
}

/// The entries of a catalogue, which are of `of`.
#[must_use]
pub fn measurables(catalogue: &Catalogue, of: &str) -> Vec<Measurable> {
    let kinds = [
        (MeasurableKind::Quantity, &catalogue.quantities),
        (MeasurableKind::Distribution, &catalogue.distributions),
        (MeasurableKind::Series, &catalogue.series),
    ];
    let entries = kinds.into_iter().flat_map(|(kind, all)| all.iter().map(move |one| (kind, one)));
    let measurable = |(kind, one): (_, &rexmit_lab::scenario::Described)| Measurable {
        of: of.into(),
        name: one.name.clone(),
        kind,
        unit: one.unit,
        about: one.about.clone(),
    };
    entries.map(measurable).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Study;
    use crate::studies::BUILT_IN;

    #[test]
    fn the_examples_are_valid_scenarios() {
        for Example { scenario, of } in EXAMPLES {
            let scenario: Scenario = serde_json::from_str(scenario).unwrap();
            assert_eq!(scenario.validate(), Ok(()), "{of:?}");
        }
    }

    /// The name without that of its flow and the values that studies choose.
    fn general(name: &str) -> String {
        let (flow, rest) = name.split_once('.').unwrap();
        let networks = ["network", "second_network"];
        let flow = if networks.contains(&flow) { flow } else { "" };
        let chosen = ["late_share.", "transport_late_share.", "had_late."];
        let rest = chosen.iter().find(|one| rest.starts_with(**one)).map_or(rest, |one| one);
        format!("{flow}.{rest}")
    }

    #[test]
    fn all_that_studies_measure_is_listed() {
        let listed: BTreeSet<_> =
            quantities().into_iter().map(|one| (one.kind, general(&one.name))).collect();
        assert!(listed.len() > 300, "{}", listed.len());
        let mut missing = BTreeSet::new();
        for study in BUILT_IN {
            let catalogue = Study::parse(study.name, study.text).unwrap().catalogue();
            let measured = measurables(&catalogue, "").into_iter();
            let measured = measured.map(|one| (one.kind, general(&one.name)));
            missing.extend(measured.filter(|one| !listed.contains(one)));
        }
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn each_name_is_listed_once_with_its_meaning() {
        let all = quantities();
        let names: BTreeSet<_> = all.iter().map(|one| (one.kind, &one.name)).collect();
        assert_eq!(names.len(), all.len());
        assert!(all.iter().all(|one| !one.about.is_empty() && !one.of.is_empty()));
        let latency = all.iter().find(|one| one.name == "game.latency.p99").unwrap();
        assert_eq!((latency.unit, latency.kind), (Unit::Milliseconds, MeasurableKind::Quantity));
    }
}
