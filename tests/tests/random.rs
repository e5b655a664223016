//! Random runs by seed. The crate's documentation describes how to run more of them, and how to repeat one.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rexmit_sctp::wire::kind;
use rexmit_tests::seeds::{MOST_BELOW_WRAP, NEAR_WRAP};
use rexmit_tests::{Outcome, Plan, run};

/// The number of seeds in `cargo test`.
const SEEDS: u64 = 1000;

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is no number")))
}

/// Executes the plan of each seed and returns the outcomes; fails at the end if any seed failed.
fn run_seeds(test: &str, plan: impl Fn(u64) -> Plan, mut see: impl FnMut(&Outcome)) {
    let count = number("REXMIT_SEEDS").unwrap_or(SEEDS);
    let first = number("REXMIT_FIRST_SEED").unwrap_or(0);
    let only = number("REXMIT_SEED");
    let seeds = only.map_or(first..first + count, |seed| seed..seed + 1);
    let mut failed = Vec::new();
    for seed in seeds {
        let tells = only.is_some();
        match catch_unwind(AssertUnwindSafe(|| run(&plan(seed), tells, false))) {
            Ok(outcome) => see(&outcome),
            Err(_) => {
                eprintln!(
                    "seed {seed} failed; its story: REXMIT_SEED={seed} cargo test -p rexmit-tests \
                     {test} -- --nocapture"
                );
                failed.push(seed);
            }
        }
    }
    assert!(failed.is_empty(), "{} seeds failed: {failed:?}", failed.len());
}

/// Two links that fail and recover; each host has an address on both.
#[test]
fn random_runs_over_two_paths_keep_every_invariant() {
    let (mut sent, mut delivered, mut over_second) = (0, 0, 0);
    run_seeds("over_two_paths", Plan::draw_two_homes, |outcome| {
        sent += outcome.counts.0;
        delivered += outcome.counts.1;
        let paths = outcome.statistics.iter().filter_map(|(_, statistics)| statistics.paths.get(1));
        over_second += paths.map(|path| path.counters.packets).sum::<u64>();
    });
    eprintln!("{sent} messages sent, {delivered} delivered, {over_second} packets over the second");
    if number("REXMIT_SEED").is_none() {
        assert!(delivered * 2 > sent && over_second > 1000);
    }
}

#[test]
fn random_runs_with_copies_of_sacks_keep_every_invariant() {
    let (mut sent, mut delivered, mut copies) = (0, 0, 0);
    run_seeds("with_copies_of_sacks", Plan::draw_ack_copies, |outcome| {
        sent += outcome.counts.0;
        delivered += outcome.counts.1;
        let all = outcome.statistics.iter();
        copies += all.map(|(_, statistics)| statistics.traffic.ack_copies_sent).sum::<u64>();
    });
    eprintln!("{sent} messages sent, {delivered} delivered, {copies} copies of SACKs");
    if number("REXMIT_SEED").is_none() {
        assert!(delivered * 2 > sent && copies > 1000);
    }
}

/// The paths' MTUs grow, and shrink again.
#[test]
fn random_runs_with_path_mtu_discovery_keep_every_invariant() {
    let (mut sent, mut delivered, mut larger) = (0, 0, 0);
    run_seeds("with_path_mtu", Plan::draw_path_mtus, |outcome| {
        sent += outcome.counts.0;
        delivered += outcome.counts.1;
        let paths =
            outcome.statistics.iter().filter_map(|(_, statistics)| statistics.paths.first());
        larger += paths.filter(|path| path.max_packet_bytes > 1232).count();
    });
    eprintln!("{sent} messages sent, {delivered} delivered, {larger} paths with larger packets");
    if number("REXMIT_SEED").is_none() {
        assert!(delivered * 2 > sent && larger > 100);
    }
}

#[test]
fn random_runs_keep_every_invariant() {
    let (mut sent, mut delivered) = (0, 0);
    let mut chunks = BTreeMap::new();
    run_seeds("keep_every_promise", Plan::draw, |outcome| {
        sent += outcome.counts.0;
        delivered += outcome.counts.1;
        for (&kind, &count) in &outcome.chunks {
            *chunks.entry(kind).or_insert(0) += count;
        }
    });
    eprintln!("{sent} messages sent, {delivered} delivered; chunks by type: {chunks:?}");
    if number("REXMIT_SEED").is_none() {
        // Runs in which nothing happens would keep every promise, too.
        assert!(delivered * 2 > sent);
        let expected = (kind::DATA..=kind::COOKIE_ACK).filter(|&kind| kind != kind::ERROR);
        let more = [kind::SHUTDOWN_COMPLETE, kind::RE_CONFIG, kind::FORWARD_TSN];
        for kind in expected.chain(more) {
            assert!(chunks.contains_key(&kind), "no chunk of type {kind} was ever sent");
        }
    }
}

#[test]
fn random_runs_across_the_wrap_of_tsns() {
    let plan = |seed: u64| {
        let count = NEAR_WRAP.len() as u64;
        let seeds = [seed % count, (seed / count + 1) % count];
        Plan::draw(seed).with_endpoint_seeds(seeds.map(|index| NEAR_WRAP[index as usize]))
    };
    let mut below = Vec::new();
    run_seeds("across_the_wrap", plan, |outcome| {
        below.extend(outcome.first_tsns.iter().flatten().map(|tsn| tsn.wrapping_neg()));
    });
    let is_near = |&&below: &&u32| (1..=MOST_BELOW_WRAP).contains(&below);
    let near = below.iter().filter(is_near).count();
    // A restart makes an endpoint with another seed; one that only answers INITs of a collision
    // draws several.
    assert!(near * 10 > below.len() * 8, "{near} of {} begin below the wrap", below.len());
}
