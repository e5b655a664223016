//! Validation of scenarios.

use rexmit_core::{Instant, Seed};

use super::extent;
use super::flows::flows;
use super::kernel::{self, NoKernel};
use super::problem::{Problem, Problems};
use super::real;
use super::spec::{Clock, NETWORK, SECOND_NETWORK, Scenario, ThinFlow};
use super::words::{Time, Words};

/// Reports all problems of `scenario`.
pub(super) fn find(scenario: &Scenario) -> Result<(), Vec<Problem>> {
    let mut problems = Problems::default();
    if scenario.duration.is_zero() {
        problems.add("duration", "the duration must be above zero");
    }
    if scenario.bin.as_ref().is_some_and(|bin| bin.is_zero()) {
        problems.add("bin", "the length of a bin must be above zero");
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
            let what = format!("expected from 1 to {}", ThinFlow::MAX_CONNECTIONS);
            problems.add(&format!("thin.{name}.connections"), what);
            return Err(problems.found);
        }
    }
    if scenario.flows() == 0 {
        problems.add("thin", "there is no flow: add one of the kinds thin, bulk, web, udp");
    }
    extent::find(scenario, &mut problems);
    names(scenario, &mut problems);
    starts(scenario, &mut problems);
    if scenario.clock == Clock::Real {
        real::find(scenario, &mut problems);
    }
    kernel::find(scenario, &mut problems);
    flows(scenario, &Seed::from_u64(0), &mut NoKernel, None, &mut problems);
    if problems.found.is_empty() { Ok(()) } else { Err(problems.found) }
}

/// Checks the names of flows, which are parts of the names of quantities.
fn names(scenario: &Scenario, problems: &mut Problems) {
    let mut known = vec![NETWORK, SECOND_NETWORK];
    let thin = scenario.thin.keys().map(|name| ("thin", name));
    let bulk = scenario.bulk.keys().map(|name| ("bulk", name));
    let web = scenario.web.keys().map(|name| ("web", name));
    let udp = scenario.udp.keys().map(|name| ("udp", name));
    for (kind, name) in thin.chain(bulk).chain(web).chain(udp) {
        let field = format!("{kind}.{name}");
        if known.contains(&name.as_str()) {
            problems.add(&field, "this name is already used: choose another");
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || !name.chars().all(is_plain) {
            problems.add(&field, "a name of a flow has letters, digits, `-` and `_` only");
        }
        known.push(name);
    }
}

/// Checks that no flow begins at or after the end, where it would measure nothing.
fn starts(scenario: &Scenario, problems: &mut Problems) {
    let is_late = |start: &Option<Words<Time>>| {
        start.as_ref().is_some_and(|start| Instant::ZERO + ***start >= scenario.end())
    };
    let thin = scenario.thin.iter().map(|(name, flow)| ("thin", name, &flow.start));
    let bulk = scenario.bulk.iter().map(|(name, flow)| ("bulk", name, &flow.start));
    let web = scenario.web.iter().map(|(name, flow)| ("web", name, &flow.start));
    let udp = scenario.udp.iter().map(|(name, flow)| ("udp", name, &flow.start));
    for (kind, name, _) in thin.chain(bulk).chain(web).chain(udp).filter(|(.., at)| is_late(at)) {
        let what = format!("it must be before the end, {}", scenario.duration);
        problems.add(&format!("{kind}.{name}.start"), what);
    }
}
