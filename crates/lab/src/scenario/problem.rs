//! What is wrong with a scenario.

use std::fmt::Display;

use rexmit_core::{Instant, Seed};
use thiserror::Error;

use super::flows::flows;
use super::real;
use super::spec::{Clock, NETWORK, SECOND_NETWORK, Scenario, ThinFlow};
use super::words::{Time, Words};

/// What is wrong with a scenario, and where.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{path}: {what}")]
pub struct Problem {
    /// The field, with dots: `thin.game.traffic`.
    pub path: String,
    /// What is wrong with it, and what may stand there.
    pub what: String,
}

impl Problem {
    /// `what` is wrong with `path`.
    pub(super) fn of(path: &str, what: impl Display) -> Self {
        Self { path: path.to_owned(), what: what.to_string() }
    }
}

/// Problems as they are found.
#[derive(Debug, Default)]
pub(super) struct Problems {
    found: Vec<Problem>,
    place: String,
}

impl Problems {
    /// From now on fields are those of `place`.
    pub(super) fn set_place(&mut self, place: String) {
        self.place = place;
    }

    /// `what` is wrong with `field`, which may be empty.
    pub(super) fn add(&mut self, field: &str, what: impl Display) {
        self.push(Problem::of(field, what));
    }

    /// A problem whose path begins at the present place.
    pub(super) fn push(&mut self, problem: Problem) {
        let parts = [self.place.as_str(), problem.path.as_str()];
        let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let problem = Problem { path: parts.join("."), what: problem.what };
        if !self.found.contains(&problem) {
            self.found.push(problem);
        }
    }

    /// What `field` says is wrong if there is an error.
    pub(super) fn check<T, E: Display>(&mut self, field: &str, result: Result<T, E>) {
        if let Err(error) = result {
            self.add(field, error);
        }
    }

    /// As [`check`](Self::check), of the two ends of a connection; what both have in common is said
    /// of the flow.
    pub(super) fn check_ends<E: Display + PartialEq>(
        &mut self,
        sender: Result<(), E>,
        receiver: Result<(), E>,
    ) {
        if sender != receiver {
            self.check("receiver", receiver);
        }
        self.check("", sender);
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.found.len()
    }

    pub(super) fn into_first(self) -> Option<Problem> {
        self.found.into_iter().next()
    }
}

/// Everything that is wrong with `scenario`.
pub(super) fn find(scenario: &Scenario) -> Result<(), Vec<Problem>> {
    let mut problems = Problems::default();
    if scenario.duration.is_zero() {
        problems.add("duration", "nothing can happen in no time");
    }
    if scenario.bin.as_ref().is_some_and(|bin| bin.is_zero()) {
        problems.add("bin", "a bin of no time holds nothing");
    }
    for (name, network) in scenario.networks() {
        for (n, change) in network.changes.iter().enumerate() {
            if change.forward.is_none() && change.backward.is_none() {
                let what = "nothing changes: give `forward`, `backward` or both";
                problems.add(&format!("{name}.changes.{n}"), what);
            }
        }
    }
    for (name, flow) in &scenario.thin {
        if !(1..=ThinFlow::MAX_CONNECTIONS).contains(&flow.connections()) {
            let what = format!("from 1 to {} can be made", ThinFlow::MAX_CONNECTIONS);
            problems.add(&format!("thin.{name}.connections"), what);
            return Err(problems.found);
        }
    }
    if scenario.flows() == 0 {
        problems.add("thin", "there is no flow: name one of the kinds thin, bulk, web, udp");
    }
    names(scenario, &mut problems);
    starts(scenario, &mut problems);
    if scenario.clock == Clock::Real {
        real::find(scenario, &mut problems);
    }
    flows(scenario, &Seed::from_u64(0), &mut problems);
    if problems.found.is_empty() { Ok(()) } else { Err(problems.found) }
}

/// Names of flows are parts of the names of what is measured.
fn names(scenario: &Scenario, problems: &mut Problems) {
    let mut known = vec![NETWORK, SECOND_NETWORK];
    let thin = scenario.thin.keys().map(|name| ("thin", name));
    let bulk = scenario.bulk.keys().map(|name| ("bulk", name));
    let web = scenario.web.keys().map(|name| ("web", name));
    let udp = scenario.udp.keys().map(|name| ("udp", name));
    for (kind, name) in thin.chain(bulk).chain(web).chain(udp) {
        let field = format!("{kind}.{name}");
        if known.contains(&name.as_str()) {
            problems.add(&field, "there is something of this name already: choose another");
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || !name.chars().all(is_plain) {
            problems.add(&field, "a name of a flow has letters, digits, `-` and `_` only");
        }
        known.push(name);
    }
}

/// A flow that begins at the end measures nothing.
fn starts(scenario: &Scenario, problems: &mut Problems) {
    let is_late = |start: &Option<Words<Time>>| {
        start.as_ref().is_some_and(|start| Instant::ZERO + ***start >= scenario.end())
    };
    let thin = scenario.thin.iter().map(|(name, flow)| ("thin", name, &flow.start));
    let bulk = scenario.bulk.iter().map(|(name, flow)| ("bulk", name, &flow.start));
    let web = scenario.web.iter().map(|(name, flow)| ("web", name, &flow.start));
    let udp = scenario.udp.iter().map(|(name, flow)| ("udp", name, &flow.start));
    for (kind, name, _) in thin.chain(bulk).chain(web).chain(udp).filter(|(.., at)| is_late(at)) {
        let what = format!("it must lie before the end, {}", scenario.duration);
        problems.add(&format!("{kind}.{name}.start"), what);
    }
}
