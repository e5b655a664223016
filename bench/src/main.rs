//! `rexmit-bench`: prints the table of ratios; with `--json` the same as JSON.

use std::process::{Command, ExitCode};

use rexmit_bench::report::{Row, in_words};
use rexmit_bench::{
    REPETITIONS, bulk, cmt, cost, dumbbell, idle, latency, loopback, many, mixed, shards,
    simulation, tcp, web, webrtc,
};

const USAGE: &str = "\
usage: rexmit-bench [--json] [--strict] [PART]...
       rexmit-bench bulk-of STACK MESSAGES BYTES   one run, for a profiler
       rexmit-bench tcp-of TCP_STACK MEGABYTES     one run, for a profiler
       rexmit-bench cost-of PROFILE on|off MEGABYTES   one run, for a profiler
       rexmit-bench simulation-of RUNS             some runs, for a profiler
       rexmit-bench web-of RUNS THREADS            some runs, for a profiler
       rexmit-bench dumbbell-of FLOWS SECONDS      one run, for a profiler
       rexmit-bench cmt-of RUNS                    some runs, for a profiler
       rexmit-bench many-of SECONDS                one run, for a profiler
       rexmit-bench webrtc-of PEERS                one run, for a profiler
       rexmit-bench shards-of SHARDS ASSOCIATIONS RATE   one run
--strict: fails if what has to come to the same does not; how fast that is never fails
parts: bulk tcp cost loopback messages latency mixed simulation web many dumbbell cmt idle webrtc shards; all of them if none is
       named
stacks: rexmit dcsctp sctp-proto; for TCP rexmit smoltcp

example: rexmit-bench bulk simulation";

type Part = (&'static str, fn() -> Vec<Row>);

const PARTS: [Part; 15] = [
    ("bulk", || bulk::measure(REPETITIONS)),
    ("tcp", || tcp::measure(REPETITIONS)),
    ("cost", || cost::measure(REPETITIONS)),
    ("loopback", || loopback::measure(REPETITIONS)),
    ("messages", || loopback::measure_messages(REPETITIONS)),
    ("latency", latency::measure),
    ("mixed", mixed::measure),
    ("simulation", || simulation::measure(REPETITIONS)),
    ("web", || web::measure(REPETITIONS)),
    ("many", many::measure),
    ("dumbbell", || dumbbell::measure(REPETITIONS)),
    ("cmt", || cmt::measure(REPETITIONS)),
    ("idle", idle),
    ("webrtc", || webrtc::measure(3)),
    ("shards", || shards::measure(5)),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    run(&words)
}

/// A single run, a process that another part starts, or the tables.
fn run(words: &[&str]) -> ExitCode {
    match *words {
        ["loopback-peer", ..] => loopback::be_peer(&words[1..]),
        ["bulk-of", stack, messages, size] => {
            let numbers = (messages.parse(), size.parse());
            let (Ok(messages), Ok(size)) = numbers else { return refuse() };
            let Some(run) = bulk::run_of(stack, messages, size) else { return refuse() };
            println!("{}", serde_json::to_string(&run).expect("a plain value"));
            ExitCode::SUCCESS
        }
        ["tcp-of", stack, megabytes] => {
            let Ok(megabytes) = megabytes.parse() else { return refuse() };
            let Some(run) = tcp::run_of(stack, megabytes) else { return refuse() };
            println!("{}", serde_json::to_string(&run).expect("a plain value"));
            ExitCode::SUCCESS
        }
        ["cost-of", profile, mechanisms @ ("on" | "off"), megabytes] => {
            let Ok(megabytes) = megabytes.parse::<u64>() else { return refuse() };
            let Some(mut carry) = cost::carry(profile, mechanisms == "on") else {
                return refuse();
            };
            carry(megabytes << 20);
            ExitCode::SUCCESS
        }
        ["simulation-of", runs] => {
            let Ok(runs) = runs.parse() else { return refuse() };
            println!("{}", (0..runs).map(|seed| simulation::run(seed).events).sum::<u64>());
            ExitCode::SUCCESS
        }
        ["web-of", runs, threads] => {
            let (Ok(runs), Ok(threads)) = (runs.parse(), threads.parse()) else { return refuse() };
            println!("{}", (0..runs).map(|seed| web::run(seed, threads).events).sum::<u64>());
            ExitCode::SUCCESS
        }
        ["many-of", seconds] => {
            let Ok(seconds) = seconds.parse() else { return refuse() };
            many::be_run(seconds)
        }
        ["dumbbell-of", flows, seconds] => {
            let numbers = (flows.parse(), seconds.parse());
            let (Ok(flows), Ok(seconds)) = numbers else { return refuse() };
            println!("{:?}", dumbbell::run(flows, seconds, 1));
            ExitCode::SUCCESS
        }
        ["cmt-of", runs] => {
            let Ok(runs) = runs.parse() else { return refuse() };
            (0..runs).for_each(|seed| println!("{:?}", cmt::run(256, seed)));
            ExitCode::SUCCESS
        }
        ["webrtc-of", peers] => {
            let Ok(peers) = peers.parse() else { return refuse() };
            println!("{:?}", webrtc::run(peers));
            ExitCode::SUCCESS
        }
        // The server of the part `webrtc`, which that starts.
        ["webrtc-server", peers] => {
            let Ok(peers) = peers.parse() else { return refuse() };
            webrtc::be_server(peers)
        }
        ["shards-of", shards, associations, rate] => {
            let numbers = (shards.parse(), associations.parse(), rate.parse());
            let (Ok(shards), Ok(associations), Ok(rate)) = numbers else { return refuse() };
            println!("{:?}", shards::run(shards, associations, rate));
            ExitCode::SUCCESS
        }
        // The server of the part `shards`, which that starts.
        ["shards-server", shards] => {
            let Ok(shards) = shards.parse() else { return refuse() };
            shards::be_server(shards)
        }
        _ => tables(words),
    }
}

/// The tables of the parts that are named, of all if none is.
fn tables(words: &[&str]) -> ExitCode {
    const FLAGS: [&str; 2] = ["--json", "--strict"];
    let [is_json, is_strict] = FLAGS.map(|flag| words.contains(&flag));
    let wanted: Vec<&str> = words.iter().copied().filter(|word| !FLAGS.contains(word)).collect();
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
    if is_strict && rows.iter().any(Row::is_wrong) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn refuse() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::from(2)
}

fn idle() -> Vec<Row> {
    let mut rows = idle_memory();
    rows.extend(idle::measure_time(REPETITIONS));
    rows
}

/// Runs the companion program that counts allocations.
fn idle_memory() -> Vec<Row> {
    let program = std::env::current_exe().map(|own| own.with_file_name("rexmit-bench-memory"));
    let output = program.and_then(|program| Command::new(program).output());
    let why = match output {
        Ok(output) if output.status.success() => match serde_json::from_slice(&output.stdout) {
            Ok(rows) => return rows,
            Err(error) => error.to_string(),
        },
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(_) => "rexmit-bench-memory is not there: bench/run builds it".into(),
    };
    vec![Row::not_run("memory of an idle association", "limits", &why)]
}
