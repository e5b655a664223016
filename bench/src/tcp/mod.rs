//! Two TCP endpoints in memory, one sending to the other as fast as it can: ours and smoltcp's,
//! driven by the same loop.
//!
//! Packets are transferred in bursts, as by a driver: the sender writes up to a limit of packets, which the receiver
//! then processes, reads and answers. Every byte is written by the application and checked when it arrives. Time is
//! virtual; nothing waits.

mod rexmit;
mod smoltcp;

use std::collections::VecDeque;
use std::process::Command;
use std::time::Duration;

use rexmit_core::Instant;
use rexmit_tcp::recovery::RecoveryConfig;
use serde::{Deserialize, Serialize};

use crate::report::{Row, Target};
use crate::sample::{cpu_time, median, median_ratio};

/// Payload of a full segment.
const MSS: usize = 1460;
/// The send buffer and the receive buffer of each endpoint.
const BUFFER_BYTES: usize = 1 << 20;
/// The server's port.
const PORT: u16 = 5000;
/// The packets of a burst, few enough to stay in the processor's cache.
const BURST: usize = 64;
/// The duration of one round of the loop.
const TURN: Duration = Duration::from_micros(100);
/// Rounds without a byte after which a stack counts as stopped.
const MAX_QUIET_TURNS: u32 = 100_000;
/// The sent data: this block, repeated.
const BLOCK_BYTES: usize = 65_521;

/// Packets in transit in one direction, and buffers for reuse.
#[derive(Default)]
struct Way {
    packets: VecDeque<Vec<u8>>,
    spare: Vec<Vec<u8>>,
    carried: u64,
}

/// One endpoint with at most one connection.
trait Stack: Sized {
    const NAME: &'static str;

    fn new(is_client: bool) -> Self;
    fn connect(&mut self, now: Instant);
    fn is_connected(&mut self) -> bool;
    /// Accepts as many of `bytes` as there is room for.
    fn send(&mut self, now: Instant, bytes: &[u8]) -> usize;
    /// Passes all received data to `check`.
    fn receive(&mut self, now: Instant, check: &mut impl FnMut(&[u8]));
    /// Processes all packets in `way`.
    fn take(&mut self, now: Instant, way: &mut Way);
    /// Writes packets, until there are [`BURST`].
    fn give(&mut self, now: Instant, way: &mut Way);
    fn handle_timeout(&mut self, now: Instant);
}

struct Pair<S> {
    now: Instant,
    client: S,
    server: S,
    to_server: Way,
    to_client: Way,
}

impl<S: Stack> Pair<S> {
    fn connected(client: S, server: S) -> Self {
        let mut pair = Self {
            now: Instant::from_millis(1000),
            client,
            server,
            to_server: Way::default(),
            to_client: Way::default(),
        };
        pair.client.connect(pair.now);
        for _ in 0..MAX_QUIET_TURNS {
            pair.turn(&mut |_| {});
            if pair.client.is_connected() && pair.server.is_connected() {
                return pair;
            }
        }
        panic!("{} does not connect", S::NAME);
    }

    /// Delivers packets to the server, passes their data to `check`, and delivers packets back.
    fn turn(&mut self, check: &mut impl FnMut(&[u8])) {
        let now = self.now;
        self.client.give(now, &mut self.to_server);
        self.server.take(now, &mut self.to_server);
        self.server.receive(now, check);
        self.server.give(now, &mut self.to_client);
        self.client.take(now, &mut self.to_client);
        self.now += TURN;
        self.client.handle_timeout(self.now);
        self.server.handle_timeout(self.now);
    }

    /// Carries `total` bytes from client to server.
    fn carry(&mut self, total: u64) {
        let block: Vec<u8> = (0..BLOCK_BYTES).map(|n| (n * 7 + n / 251) as u8).collect();
        let (mut sent, mut arrived, mut quiet) = (0, 0, 0);
        while arrived < total {
            while sent < total {
                let at = (sent % BLOCK_BYTES as u64) as usize;
                let len = (BLOCK_BYTES - at).min((total - sent) as usize);
                let taken = self.client.send(self.now, &block[at..at + len]);
                sent += taken as u64;
                if taken < len {
                    break;
                }
            }
            let before = arrived;
            self.turn(&mut |mut bytes| {
                while !bytes.is_empty() {
                    let at = (arrived % BLOCK_BYTES as u64) as usize;
                    let len = bytes.len().min(BLOCK_BYTES - at);
                    assert_eq!(bytes[..len], block[at..at + len], "{}", S::NAME);
                    arrived += len as u64;
                    bytes = &bytes[len..];
                }
            });
            quiet = if arrived > before { 0 } else { quiet + 1 };
            assert!(quiet < MAX_QUIET_TURNS, "{} stopped at {arrived} of {total}", S::NAME);
        }
    }
}

/// The measurements of one stack in one run.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct Run {
    bytes_per_second: f64,
    packets: [u64; 2],
    megabytes: u64,
}

fn run<S: Stack>(megabytes: u64) -> Run {
    let mut pair = Pair::connected(S::new(true), S::new(false));
    pair.carry((megabytes << 20) / 10);
    let before = [&pair.to_server, &pair.to_client].map(|way| way.carried);
    let total = megabytes << 20;
    let ((), elapsed) = cpu_time(|| pair.carry(total));
    let packets = [pair.to_server.carried - before[0], pair.to_client.carried - before[1]];
    Run { bytes_per_second: total as f64 / elapsed.as_secs_f64(), packets, megabytes }
}

/// One run of the stack called `name`, `rexmit` or `smoltcp`.
#[must_use]
pub fn run_of(name: &str, megabytes: u64) -> Option<Run> {
    match name {
        "rexmit" => Some(run::<rexmit::Rexmit>(megabytes)),
        "smoltcp" => Some(run::<smoltcp::Smoltcp>(megabytes)),
        _ => None,
    }
}

/// Two connected endpoints of ours with this recovery configuration. Each call of the returned function transfers so
/// many bytes.
pub fn ours_with(recovery: &RecoveryConfig) -> impl FnMut(u64) + use<> {
    let end = |is_client| rexmit::Rexmit::with(is_client, recovery.clone());
    let mut pair = Pair::connected(end(true), end(false));
    move |bytes| pair.carry(bytes)
}

/// The data of one run.
const MEGABYTES: u64 = 2048;
const WHAT: &str = "bulk over TCP in memory";
const NOTE: &str = "Same loop, 1460-byte segments, buffers of 1 MiB, TCP checksums made and verified \
    on both sides, no timestamps; processor time of one thread, each run in a process of its own. \
    smoltcp writes and reads IPv4 headers besides (their checksum is off), has neither congestion \
    control nor SACK's scoreboard. Both lend what has arrived to the reader.";

/// One run in a separate process, so that no stack uses the memory of another one.
fn run_apart(stack: &str) -> Result<Run, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new(own)
        .args(["tcp-of", stack, &MEGABYTES.to_string()])
        .output()
        .map_err(|error| error.to_string())?;
    serde_json::from_slice(&output.stdout)
        .map_err(|_| String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Bulk transfer in memory, `repetitions` times each.
#[must_use]
pub fn measure(repetitions: usize) -> Vec<Row> {
    let mut runs = [Vec::new(), Vec::new()];
    for _ in 0..repetitions {
        for (runs, stack) in runs.iter_mut().zip(["rexmit", "smoltcp"]) {
            match run_apart(stack) {
                Ok(run) => runs.push(run),
                Err(why) => return vec![Row::not_run(WHAT, smoltcp::Smoltcp::NAME, &why)],
            }
        }
    }
    let speed = |runs: &[Run]| runs.iter().map(|run| run.bytes_per_second).collect::<Vec<_>>();
    let figures = |runs: &[Run]| {
        let Run { packets: [there, back], megabytes, .. } = runs[0];
        let per_megabyte = |packets: u64| packets as f64 / megabytes as f64;
        format!(
            "{:.0} MB/s, {:.0} + {:.0} packets/MiB",
            median(&speed(runs)) / 1e6,
            per_megabyte(there),
            per_megabyte(back)
        )
    };
    let [ours, theirs] = runs;
    vec![Row {
        what: WHAT.into(),
        ours: figures(&ours),
        against: smoltcp::Smoltcp::NAME.into(),
        theirs: figures(&theirs),
        ratio: Some(median_ratio(&speed(&ours), &speed(&theirs))),
        target: Target::AtLeast(1.5),
        note: NOTE.into(),
    }]
}
