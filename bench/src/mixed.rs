//! Small messages during a large transfer, in virtual time: 60 bytes every 50 ms, and a transfer that fills 10 Mbit/s, 10 ms each
//! way, with a queue of 100 packets at the link.
//!
//! Both use one association or connection of each contestant; if the contestant has priorities, the messages have the
//! higher one.

use rexmit_lab::scenario::{Scenario, execute};

use crate::report::{Row, Target};

const WHAT: &str = "inputs beside a transfer, 10 Mbit/s";
/// The limit of the latency at the 90th percentile, which a player should not notice.
const LIMIT_MS: f64 = 40.0;
const NOTE: &str = "60 bytes every 50 ms on one stream, a greedy transfer on another, 10 ms each way, a queue of 100 packets, one \
                    minute in virtual time: the 90th and 99th percentile of the messages, and the goodput of the transfer; \
                    the ratio is that of the 90th percentiles";

/// Name, transport, profile, and whether messages are unordered.
const RIVALS: [(&str, &str, &str, bool); 5] = [
    ("quinn, priorities", "quinn", "default", true),
    ("quinn, priorities, BBR", "quinn", "bbr", true),
    ("dcsctp, priorities", "dcsctp", "default", true),
    ("dcsctp, I-DATA", "dcsctp", "interleaved", true),
    ("KCP, turbo", "kcp", "turbo", false),
];

/// The measurements of one contestant.
struct Measured {
    p90_ms: f64,
    p99_ms: f64,
    goodput: f64,
}

impl Measured {
    fn in_words(&self) -> String {
        let Self { p90_ms, p99_ms, goodput } = self;
        format!("{p90_ms:.0} / {p99_ms:.0} ms, {:.1} Mbit/s", goodput / 1e6)
    }
}

fn run(transport: &str, profile: &str, is_unordered: bool) -> Result<Measured, String> {
    let scenario = serde_json::json!({
        "duration": "60s",
        "drain": "20s",
        "network": { "forward": "delay 10ms rate 10mbit limit 100", "backward": "delay 10ms" },
        "thin": { "game": {
            "traffic": "every 50.0025ms size 60",
            "transfer": true,
            "transport": transport,
            "profile": profile,
            "unordered": is_unordered,
        } },
    });
    let scenario: Scenario = serde_json::from_value(scenario).map_err(|error| error.to_string())?;
    let outcome = execute(&scenario, 1).map_err(|error| error.to_string())?;
    let of = |name: &str| {
        outcome.quantities.get(name).copied().ok_or_else(|| format!("{name} was not measured"))
    };
    let [p90_ms, p99_ms] = [of("game.latency.p90")?, of("game.latency.p99")?];
    Ok(Measured { p90_ms, p99_ms, goodput: of("game.transfer.goodput")? })
}

/// A row for the limit, and one for each rival.
#[must_use]
pub fn measure() -> Vec<Row> {
    let ours = match run("sctp", "mixed", true) {
        Ok(ours) => ours,
        Err(why) => return vec![Row::not_run(WHAT, "40 ms", &why)],
    };
    let row = |against: &str, theirs: String, p90_ms: f64| Row {
        what: format!("{WHAT}: mixed"),
        ours: ours.in_words(),
        against: against.into(),
        theirs,
        ratio: Some(ours.p90_ms / p90_ms),
        target: Target::AtMost(1.0),
        note: NOTE.into(),
    };
    let mut rows = vec![row("limit", format!("{LIMIT_MS:.0} ms"), LIMIT_MS)];
    for (name, transport, profile, is_unordered) in RIVALS {
        rows.push(match run(transport, profile, is_unordered) {
            Ok(theirs) => row(name, theirs.in_words(), theirs.p90_ms),
            Err(why) => Row::not_run(WHAT, name, &why),
        });
    }
    rows
}
