//! Deadlines (`thin.deadline`) where copies cannot help.

use serde_json::{Value, json};

use crate::run;

/// The share of messages that miss the deadline, and the median of the latency in milliseconds.
fn of(path: &str, traffic: &str, deadline: &Value) -> (f64, f64) {
    let outcome = run(
        json!({
            "duration": "200s",
            "network": { "forward": path },
            "thin": { "game": {
                "traffic": traffic,
                "unordered": true,
                "profile": "interactive",
                "recovery": { "thin": { "deadline": deadline } },
            } },
        }),
        1,
    );
    (outcome.quantities["game.deadline.late_share"], outcome.quantities["game.latency.p50"])
}

/// Messages take 93 % of the path. Copies fill it, and cause the losses that seem to require them: 47 % were late for good.
#[test]
fn copies_end_where_they_fill_the_path() {
    let deadline = json!({ "within": "110ms", "probability": 0.9999 });
    let (late, median) = of("delay 50ms rate 128kbit limit 20", "every 12ms size 100", &deadline);
    assert!(late < 0.03 && median < 65.0, "{late} late, median {median} ms");
}
