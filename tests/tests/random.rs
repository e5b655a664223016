//! Random runs by seed. See the crate's documentation for how many, and how to repeat one.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rexmit_tests::{Plan, run};

/// Seeds as part of `cargo test`.
const SEEDS: u64 = 200;

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is no number")))
}

#[test]
fn random_runs_keep_every_promise() {
    let count = number("REXMIT_SEEDS").unwrap_or(SEEDS);
    let first = number("REXMIT_FIRST_SEED").unwrap_or(0);
    let mut failed = Vec::new();
    for seed in first..first + count {
        let result = catch_unwind(AssertUnwindSafe(|| run(&Plan::draw(seed), false, false)));
        if let Ok(o) = &result {
            eprintln!("OUT {seed} {:?} {} {:?} {:?}", o.counts, o.events, o.chunks, o.closed);
        }
        if result.is_err() {
            eprintln!(
                "seed {seed} failed; REXMIT_SEED={seed} cargo test -p rexmit-tests replay -- \
                 --nocapture tells the story"
            );
            failed.push(seed);
        }
    }
    assert!(failed.is_empty(), "{} of {count} seeds failed: {failed:?}", failed.len());
}

#[test]
fn replay() {
    let Some(seed) = number("REXMIT_SEED") else { return };
    let plan = Plan::draw(seed);
    eprintln!("{plan:#?}");
    let outcome = run(&plan, true, std::env::var("REXMIT_CAPTURE").is_ok());
    eprintln!("{outcome:#?}");
}
