//! `rexmit-bench`: prints the table of ratios; with `--json` the same as JSON.

use std::process::{Command, ExitCode};

use rexmit_bench::report::{Row, in_words};
use rexmit_bench::{REPETITIONS, bulk, loopback, simulation};

const USAGE: &str = "\
usage: rexmit-bench [--json] [PART]...
       rexmit-bench bulk-alone BYTES MEGABYTES    ours alone, for a profiler
       rexmit-bench simulation-alone RUNS
parts: bulk simulation idle loopback; all of them if none is named

example: rexmit-bench bulk simulation";

const PARTS: [(&str, fn() -> Vec<Row>); 4] = [
    ("bulk", || bulk::measure(REPETITIONS)),
    ("loopback", || loopback::measure(REPETITIONS)),
    ("simulation", || simulation::measure(REPETITIONS)),
    ("idle", idle),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["loopback-peer", ..] => return loopback::be_peer(&words[1..]),
        ["bulk-alone", size, megabytes] => {
            let numbers = (size.parse(), megabytes.parse());
            let (Ok(size), Ok(megabytes)) = numbers else { return refuse() };
            println!("{:.0} MB/s", bulk::ours_alone(megabytes, size) / 1e6);
            return ExitCode::SUCCESS;
        }
        ["simulation-alone", runs] => {
            let Ok(runs) = runs.parse() else { return refuse() };
            println!("{}", (0..runs).map(|seed| simulation::run(seed).events).sum::<u64>());
            return ExitCode::SUCCESS;
        }
        _ => {}
    }
    let is_json = words.contains(&"--json");
    let wanted: Vec<&str> = words.into_iter().filter(|&word| word != "--json").collect();
    if wanted.iter().any(|word| PARTS.iter().all(|(name, _)| name != word)) {
        return refuse();
    }
    let mut rows = Vec::new();
    for (name, measure) in PARTS {
        if wanted.is_empty() || wanted.contains(&name) {
            eprintln!("measuring: {name}");
            rows.extend(measure());
        }
    }
    if is_json {
        println!("{}", serde_json::to_string_pretty(&rows).expect("rows are plain values"));
    } else {
        println!("{}", in_words(&rows));
    }
    ExitCode::SUCCESS
}

fn refuse() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::from(2)
}

/// Runs the program beside this one that counts allocations.
fn idle() -> Vec<Row> {
    let program = std::env::current_exe().map(|own| own.with_file_name("rexmit-bench-idle"));
    let output = program.and_then(|program| Command::new(program).output());
    let why = match output {
        Ok(output) if output.status.success() => match serde_json::from_slice(&output.stdout) {
            Ok(rows) => return rows,
            Err(error) => error.to_string(),
        },
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(_) => "rexmit-bench-idle is not there: cargo build --release -p rexmit-bench".into(),
    };
    vec![Row::not_run("idle associations", "limits", &why)]
}
