//! Greedy TCP flows over a dumbbell, in our simulator with real packets, and in ns-2 and ns-3.
//!
//! The programs for the other simulators are in `simulators/`; topology and flows are the same. The speed of a
//! simulator is reported as virtual time and as delivered segments per processor time; the ratio uses the latter, so
//! that delivering less is no advantage.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use rexmit_core::{Instant, Seed};
use rexmit_lab::hosts::{Bulk, BulkSender, Host, Sink};
use rexmit_netsim::network::{Dumbbell, Network};
use rexmit_netsim::path::PathConfig;
use rexmit_tcp::recovery::RecoveryConfig;
use rexmit_tcp::{ConnectionConfig, Endpoint, EndpointConfig};
use serde::Deserialize;

use crate::report::{Row, Target};
use crate::sample::{cpu_time, median, median_ratio};

const FLOWS: [u32; 2] = [10, 50];
const VIRTUAL_SECONDS: u64 = 300;
const BOTTLENECK: &str = "delay 45ms rate 10mbit limit 100";
const ACCESS: &str = "delay 5ms rate 100mbit limit 100";
const MSS: u64 = 1460;
const BUFFER_BYTES: usize = 128 * 1024;
const PORT: u16 = 5000;

/// Another simulator, and the required speed-up over it.
struct Rival {
    name: &'static str,
    least: f64,
    virtual_seconds: &'static str,
    note: &'static str,
}

const RIVALS: [Rival; 2] = [
    Rival {
        name: "ns-2",
        least: 2.0,
        virtual_seconds: "1800",
        note: "ns-2 moves headers only, and of these the ones it needs.",
    },
    Rival {
        name: "ns-3",
        least: 3.0,
        virtual_seconds: "60",
        note: "ns-3 moves real packets; Debian's build has its log compiled in, though off.",
    },
];

/// The result of a simulator, in the format that `simulators/run` prints.
#[derive(Clone, Debug, Deserialize)]
pub struct Run {
    simulator: String,
    flows: u32,
    virtual_s: f64,
    cpu_s: f64,
    delivered_packets: f64,
}

impl Run {
    fn real_time(&self) -> f64 {
        self.virtual_s / self.cpu_s
    }

    fn packets_per_second(&self) -> f64 {
        self.delivered_packets / self.cpu_s
    }
}

fn endpoint(seed: &Seed) -> Endpoint {
    let connection = ConnectionConfig::sack()
        .recovery(RecoveryConfig::tcp_profile("tcp-sack").expect("a known profile"))
        .send_buffer_bytes(BUFFER_BYTES)
        .receive_buffer_bytes(BUFFER_BYTES)
        // As the others have it.
        .ack_delay(Duration::from_millis(100));
    let config = EndpointConfig::default().connection(connection.into());
    let mut endpoint = Endpoint::new(config, seed).expect("valid");
    endpoint.listen(PORT, None).expect("a free port");
    endpoint
}

/// A run of this many greedy flows for this time.
///
/// # Panics
/// If the received data differs from the sent data.
#[must_use]
pub fn run(flows: u32, virtual_seconds: u64, seed: u64) -> Run {
    let seed = Seed::from_u64(seed);
    let mut starts = seed.split("starts").rng();
    let address = |ip, port| SocketAddr::new(ip, port);
    let senders: Vec<Host> = (0..flows)
        .map(|n| {
            let remote = address(Dumbbell::right_address(n), PORT);
            // Within the first second, so that no two begin together.
            let start = Instant::from_nanos(starts.below(1_000_000_000));
            let bulk = Bulk { start, ..Bulk::new(address(Dumbbell::left_address(n), 0), remote) };
            Host::new(endpoint(&seed.split(&format!("left {n}"))), BulkSender::new(bulk))
        })
        .collect();
    let sinks: Vec<Host> = (0..flows)
        .map(|n| Host::new(endpoint(&seed.split(&format!("right {n}"))), Sink::new(Duration::ZERO)))
        .collect();
    let path = |words: &str| words.parse::<PathConfig>().expect("the words of a path");
    let mut network = Network::new(&seed);
    let dumbbell = Dumbbell::build(&mut network, senders, sinks, &path(ACCESS), &path(BOTTLENECK))
        .expect("a new network");
    let end = Instant::ZERO + Duration::from_secs(virtual_seconds);
    let (rested, elapsed) = cpu_time(|| network.run_until(end, |_, _| {}));
    rested.expect("the network rests");
    let bytes: u64 = dumbbell
        .right
        .iter()
        .map(|&host| network.machine(host).program::<Sink<Endpoint>>().expect("a sink"))
        .inspect(|sink| assert_eq!(sink.damaged_pieces(), 0, "what arrives is what was sent"))
        .map(|sink| sink.goodput().total_bytes())
        .sum();
    Run {
        simulator: "rexmit".into(),
        flows,
        virtual_s: virtual_seconds as f64,
        cpu_s: elapsed.as_secs_f64(),
        delivered_packets: bytes as f64 / MSS as f64,
    }
}

/// One run of each other simulator with this many flows; the errors of those that did not run.
fn run_rivals(flows: u32) -> (Vec<Run>, String) {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("simulators/run");
    let output = Command::new(&script)
        .arg(flows.to_string())
        .env("SECONDS2", RIVALS[0].virtual_seconds)
        .env("SECONDS3", RIVALS[1].virtual_seconds)
        .output();
    match output {
        Ok(output) => {
            let lines = String::from_utf8_lossy(&output.stdout);
            let runs = lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
            (runs, String::from_utf8_lossy(&output.stderr).into_owned())
        }
        Err(error) => (Vec::new(), format!("{}: {error}", script.display())),
    }
}

/// Measures every simulator in turn, `repetitions` times.
#[must_use]
pub fn measure(repetitions: usize) -> Vec<Row> {
    FLOWS.into_iter().flat_map(|flows| compare(flows, repetitions)).collect()
}

fn compare(flows: u32, repetitions: usize) -> Vec<Row> {
    let what = format!("{flows} greedy TCP flows over a dumbbell");
    let (mut ours, mut theirs, mut complaint) = (Vec::new(), Vec::new(), String::new());
    for seed in 0..repetitions as u64 {
        ours.push(run(flows, VIRTUAL_SECONDS, seed));
        let (runs, said) = run_rivals(flows);
        theirs.extend(runs);
        complaint = said;
    }
    let row = |rival: &Rival| {
        let theirs: Vec<Run> =
            theirs.iter().filter(|run| run.simulator == rival.name).cloned().collect();
        if theirs.len() == ours.len() {
            row(&what, &ours, rival, &theirs)
        } else {
            let of_rival = |line: &&str| line.starts_with(rival.name);
            let why = complaint.lines().find(of_rival).unwrap_or(complaint.trim());
            Row::not_run(&what, rival.name, why)
        }
    };
    RIVALS.iter().map(row).collect()
}

fn row(what: &str, ours: &[Run], rival: &Rival, theirs: &[Run]) -> Row {
    let all = |runs: &[Run], figure: fn(&Run) -> f64| runs.iter().map(figure).collect::<Vec<_>>();
    let figures = |runs: &[Run]| {
        format!(
            "{:.0} × real time, {:.0} k packets/s",
            median(&all(runs, Run::real_time)),
            median(&all(runs, Run::packets_per_second)) / 1e3
        )
    };
    let packets = |runs: &[Run]| all(runs, Run::packets_per_second);
    debug_assert!(theirs.iter().all(|run| run.flows == ours[0].flows));
    Row {
        what: what.into(),
        ours: figures(ours),
        against: rival.name.into(),
        theirs: figures(theirs),
        ratio: Some(median_ratio(&packets(ours), &packets(theirs))),
        target: Target::AtLeast(rival.least),
        note: format!(
            "SACK and NewReno, 10 Mbit/s, RTT 110 ms; segments delivered per second of processor \
             time, with real packets, checksums and all on our side. {}",
            rival.note
        ),
    }
}
