//! Ten thousand thin streams through one bottleneck in the simulator: the processor time of ten minutes, and the memory.

use std::process::{Command, ExitCode};

use rexmit_lab::scenario::{Scenario, execute};
use serde::{Deserialize, Serialize};

use crate::report::{Row, Target};
use crate::sample::process_cpu_time;

/// Flows, and the connections of each, which have their own pairs of hosts.
const FLOWS: u32 = 10;
const CONNECTIONS: u32 = 1000;
const SECONDS: u32 = 600;
const LIMIT_SECONDS: f64 = 60.0;
const LIMIT_GIB: f64 = 2.0;
const WHAT: &str = "10,000 thin streams through one bottleneck, 10 min in virtual time";

/// The output of a run.
#[derive(Serialize, Deserialize)]
struct Run {
    cpu_s: f64,
    peak_gib: f64,
    messages: f64,
    p99_ms: f64,
}

fn scenario(seconds: u32) -> Result<Scenario, serde_json::Error> {
    let flow = serde_json::json!({
        "traffic": "every 1s size 100",
        "connections": CONNECTIONS,
        "profile": "interactive",
    });
    let flows: serde_json::Map<_, _> =
        (0..FLOWS).map(|n| (format!("game{n}"), flow.clone())).collect();
    serde_json::from_value(serde_json::json!({
        "duration": format!("{seconds}s"),
        "network": { "forward": "delay 50ms rate 20mbit limit 200", "backward": "delay 50ms" },
        "thin": flows,
    }))
}

fn run(seconds: u32) -> Result<Run, String> {
    let scenario = scenario(seconds).map_err(|error| error.to_string())?;
    let outcome = execute(&scenario, 1).map_err(|error| error.to_string())?;
    let of = |name: String| outcome.quantities.get(&name).copied().ok_or(format!("no {name}"));
    let mut messages = 0.0;
    for n in 0..FLOWS {
        messages += of(format!("game{n}.messages"))?;
    }
    Ok(Run {
        cpu_s: process_cpu_time().as_secs_f64(),
        peak_gib: peak_bytes().ok_or("no peak of memory")? / f64::from(1 << 30),
        messages,
        p99_ms: of("game0.latency.p99".to_owned())?,
    })
}

/// The most memory that this process has had at any time.
fn peak_bytes() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024.0)
}

/// One run of this many seconds, in this process: prints its result as JSON.
#[must_use]
pub fn be_run(seconds: u32) -> ExitCode {
    match run(seconds) {
        Ok(run) => {
            println!("{}", serde_json::to_string(&run).expect("a plain value"));
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

/// One run, in a process of its own, whose memory is counted.
#[must_use]
pub fn measure() -> Vec<Row> {
    let program = std::env::current_exe();
    let output =
        program.and_then(|own| Command::new(own).args(["many-of", &SECONDS.to_string()]).output());
    let run: Run = match output {
        Ok(output) => match serde_json::from_slice(&output.stdout) {
            Ok(run) => run,
            Err(_) => {
                let why = String::from_utf8_lossy(&output.stderr);
                return vec![Row::not_run(WHAT, "limits", why.trim())];
            }
        },
        Err(error) => return vec![Row::not_run(WHAT, "limits", &error.to_string())],
    };
    let row = |figure: f64, limit: f64, unit: &str| Row {
        what: WHAT.into(),
        ours: format!("{figure:.1} {unit}"),
        against: "limit".into(),
        theirs: format!("{limit:.0} {unit}"),
        ratio: Some(figure / limit),
        target: Target::AtMost(1.0),
        note: format!(
            "{FLOWS} flows of {CONNECTIONS} associations of interactive, each between two hosts of its own, 100 bytes per second on each, \
             20 Mbit/s, RTT 100 ms; {:.0} messages, 99 % of them within {:.0} ms; one thread, meters included.",
            run.messages, run.p99_ms
        ),
    };
    vec![row(run.cpu_s, LIMIT_SECONDS, "s of processor time"), row(run.peak_gib, LIMIT_GIB, "GiB")]
}
