//! The memory of a run does not grow with its length.

use rexmit_lab::scenario::{RunOutcome, execute};
use serde_json::json;

use crate::scenario;

/// The peak memory in bytes of a run of this many hours, and its measurements.
fn peak(hours: u32, rows: bool) -> (u64, RunOutcome) {
    let scenario = scenario(json!({
        "duration": format!("{hours}h"),
        "rows": rows,
        "network": { "forward": "delay 50ms loss 5%" },
        "thin": { "game": { "traffic": "every 500ms size 100", "profile": "thin" } },
    }));
    let mut outcome = None;
    let memory = allocation_counter::measure(|| outcome = execute(&scenario, 1).ok());
    (memory.bytes_max, outcome.expect("it runs"))
}

#[test]
fn a_long_run_needs_no_more_memory_than_a_short_one() {
    // The largest distribution. A few of them, of rare events, have so few latencies in the short run that they need less.
    const MAX_DISTRIBUTION: u64 = 236 << 10;
    let (short, _) = peak(16, false);
    let (long, outcome) = peak(64, false);
    assert!(long < short + 4 * MAX_DISTRIBUTION, "{short} and {long} bytes");
    assert!(outcome.messages.is_empty());
    assert!(outcome.series.values().all(|series| series.values.len() <= 4096));
    let (with_rows, outcome) = peak(2, true);
    assert_eq!(outcome.messages.len(), 2 * 7200);
    let (short, _) = peak(2, false);
    assert!(with_rows > short + 500_000, "rows are kept: {with_rows}");
}
