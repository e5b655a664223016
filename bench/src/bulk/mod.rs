//! Two endpoints in memory, one sending to the other as fast as it can: ours and the rivals, all
//! driven by the same loop.
//!
//! The loop does the same as a driver over sockets: packets wait in a queue in each direction, and after each packet
//! that an endpoint receives, all packets that it has to send are transmitted. Every message is newly generated, and
//! checked when it arrives. Time is virtual.

mod dcsctp;
mod rexmit;
mod sctp_proto;

use std::collections::VecDeque;
use std::process::Command;
use std::time::Duration;

use rexmit_core::Instant;
use rexmit_sctp::recovery::RecoveryConfig;
use serde::{Deserialize, Serialize};

use crate::report::{Row, Target};
use crate::sample::{cpu_time, median, median_ratio};

/// The largest SCTP packet, common header included.
const MAX_PACKET_BYTES: usize = 1232;
/// The receive buffer of each endpoint.
const RECEIVE_BUFFER_BYTES: usize = 1 << 20;
/// The most data in flight: sent and not yet received.
const WINDOW_BYTES: usize = 256 * 1024;
/// The SCTP port of both endpoints.
const PORT: u16 = 5000;
/// The name of this program.
const OWN_PROGRAM: &str = "rexmit-bench";
/// The duration of one round of the loop.
const TURN: Duration = Duration::from_micros(100);
/// Rounds without a packet after which a stack counts as stopped.
const MAX_QUIET_TURNS: u32 = 1000;

/// One endpoint with at most one association.
trait Stack: Sized {
    const NAME: &'static str;
    /// A packet in the form that the stack uses.
    type Packet;

    fn new(is_client: bool) -> Self;
    fn connect(&mut self, now: Instant);
    fn is_connected(&mut self) -> bool;
    fn send(&mut self, now: Instant, message: Vec<u8>);
    /// Passes the next message that has arrived to `check`. Returns whether there was one.
    fn receive(&mut self, now: Instant, check: &mut impl FnMut(&[u8])) -> bool;
    /// Processes a received packet; its memory is put into `spare` for reuse.
    fn handle_input(&mut self, now: Instant, packet: Self::Packet, spare: &mut Vec<Self::Packet>);
    fn poll_transmit(
        &mut self,
        now: Instant,
        spare: &mut Vec<Self::Packet>,
    ) -> Option<Self::Packet>;
    fn poll_timeout(&mut self) -> Option<Instant>;
    fn handle_timeout(&mut self, now: Instant);
}

struct Pair<S: Stack> {
    now: Instant,
    client: S,
    server: S,
    to_server: VecDeque<S::Packet>,
    to_client: VecDeque<S::Packet>,
    spare: Vec<S::Packet>,
    packets: u64,
}

impl<S: Stack> Pair<S> {
    fn connected(client: S, server: S) -> Self {
        let mut pair = Self {
            now: Instant::from_millis(1000),
            client,
            server,
            to_server: VecDeque::new(),
            to_client: VecDeque::new(),
            spare: Vec::new(),
            packets: 0,
        };
        pair.client.connect(pair.now);
        for _ in 0..MAX_QUIET_TURNS {
            pair.turn();
            if pair.client.is_connected() && pair.server.is_connected() {
                return pair;
            }
        }
        panic!("{} does not connect", S::NAME);
    }

    /// Sends due packets, then delivers those in flight. Returns whether there were any.
    fn turn(&mut self) -> bool {
        let (now, before) = (self.now, self.packets);
        let spare = &mut self.spare;
        drain(now, &mut self.client, &mut self.to_server, spare);
        while let Some(packet) = self.to_server.pop_front() {
            self.packets += 1;
            self.server.handle_input(now, packet, spare);
            drain(now, &mut self.server, &mut self.to_client, spare);
        }
        while let Some(packet) = self.to_client.pop_front() {
            self.packets += 1;
            self.client.handle_input(now, packet, spare);
            drain(now, &mut self.client, &mut self.to_server, spare);
        }
        self.now += TURN;
        for stack in [&mut self.client, &mut self.server] {
            if stack.poll_timeout().is_some_and(|at| at <= self.now) {
                stack.handle_timeout(self.now);
            }
        }
        self.packets != before
    }

    /// Carries `total` messages of `size` bytes, and checks each.
    fn carry(&mut self, total: u64, size: usize) {
        let template = vec![0x5a; size];
        let (mut sent, mut arrived, mut quiet) = (0u64, 0u64, 0);
        let most_under_way = (WINDOW_BYTES / size).max(2) as u64;
        while arrived < total {
            while sent < total && sent - arrived < most_under_way {
                let mut message = template.clone();
                message[..8].copy_from_slice(&sent.to_be_bytes());
                self.client.send(self.now, message);
                sent += 1;
            }
            quiet = if self.turn() { 0 } else { quiet + 1 };
            assert!(quiet < MAX_QUIET_TURNS, "{} stopped at {arrived} of {total}", S::NAME);
            let mut check = |message: &[u8]| {
                assert_eq!(message.len(), size, "{}", S::NAME);
                assert_eq!(message[..8], arrived.to_be_bytes(), "{}", S::NAME);
                arrived += 1;
            };
            while self.server.receive(self.now, &mut check) {}
            drain(self.now, &mut self.server, &mut self.to_client, &mut self.spare);
        }
    }
}

fn drain<S: Stack>(
    now: Instant,
    stack: &mut S,
    queue: &mut VecDeque<S::Packet>,
    spare: &mut Vec<S::Packet>,
) {
    while let Some(packet) = stack.poll_transmit(now, spare) {
        queue.push_back(packet);
    }
}

/// The measurements of one stack in one run.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct Run {
    bytes_per_second: f64,
    packets_per_message: f64,
}

fn run<S: Stack>(total: u64, size: usize) -> Run {
    let mut pair = Pair::connected(S::new(true), S::new(false));
    pair.carry(total / 10, size);
    let before = pair.packets;
    let ((), elapsed) = cpu_time(|| pair.carry(total, size));
    Run {
        bytes_per_second: (total * size as u64) as f64 / elapsed.as_secs_f64(),
        packets_per_message: (pair.packets - before) as f64 / total as f64,
    }
}

/// One run of the stack called `name`: `rexmit`, `dcsctp` or `sctp-proto`.
#[must_use]
pub fn run_of(name: &str, total: u64, size: usize) -> Option<Run> {
    match name {
        "rexmit" => Some(run::<rexmit::Rexmit>(total, size)),
        "dcsctp" => Some(run::<dcsctp::DcSctp>(total, size)),
        "sctp-proto" => Some(run::<sctp_proto::SctpProto>(total, size)),
        _ => None,
    }
}

/// Two connected endpoints of ours with this recovery configuration. Each call of the returned function transfers so
/// many messages of `size` bytes.
pub fn ours_with(recovery: &RecoveryConfig, size: usize) -> impl FnMut(u64) + use<> {
    let end = |is_client| rexmit::Rexmit::with(is_client, recovery.clone());
    let mut pair = Pair::connected(end(true), end(false));
    move |messages| pair.carry(messages, size)
}

const DCSCTP_NOTE: &str = "Same loop, packet and buffer sizes, checksums on; processor time of one \
    thread, each run in a process of its own. It formats every packet for its log even when the log is off.";
const QUIET_NOTE: &str = "The same, but for a line without that formatting: see bench/run. \
    Its CRC32c works by tables.";
const SCTP_PROTO_NOTE: &str = "As above. Its CRC32c works by tables.";

/// One stack in the comparison.
struct Contestant {
    name: &'static str,
    /// The program that contains the stack, and the stack's name there.
    program: &'static str,
    stack: &'static str,
    /// The megabytes that it transfers in one run, chosen so that all runs take about equally long.
    megabytes: u64,
    note: &'static str,
}

const OURS: Contestant =
    Contestant { name: "rexmit", program: OWN_PROGRAM, stack: "rexmit", megabytes: 384, note: "" };

const RIVALS: [Contestant; 3] = [
    Contestant {
        name: dcsctp::DcSctp::NAME,
        program: OWN_PROGRAM,
        stack: "dcsctp",
        megabytes: 8,
        note: DCSCTP_NOTE,
    },
    Contestant {
        name: "dcsctp less its log",
        program: "rexmit-bench-quiet-dcsctp",
        stack: "dcsctp",
        megabytes: 128,
        note: QUIET_NOTE,
    },
    Contestant {
        name: sctp_proto::SctpProto::NAME,
        program: OWN_PROGRAM,
        stack: "sctp-proto",
        megabytes: 64,
        note: SCTP_PROTO_NOTE,
    },
];

impl Contestant {
    /// One run in a separate process, so that no stack uses the memory of another one.
    fn run(&self, size: usize) -> Result<Run, String> {
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        let total = (self.megabytes << 20) / size as u64;
        let output = Command::new(own.with_file_name(self.program))
            .args(["bulk-of", self.stack, &total.to_string(), &size.to_string()])
            .output()
            .map_err(|_| format!("{} is not there; bench/run builds it", self.program))?;
        serde_json::from_slice(&output.stdout)
            .map_err(|_| String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// Bulk transfer in memory, `repetitions` times each.
#[must_use]
pub fn measure(repetitions: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    for (size, label) in [(1024, "1 KiB"), (64 * 1024, "64 KiB")] {
        let mut runs: [Vec<Result<Run, String>>; 4] = Default::default();
        for _ in 0..repetitions {
            let contestants = std::iter::once(&OURS).chain(&RIVALS);
            for (runs, contestant) in runs.iter_mut().zip(contestants) {
                runs.push(contestant.run(size));
            }
        }
        let [ours, theirs @ ..] = runs.map(|runs| runs.into_iter().collect::<Result<Vec<_>, _>>());
        for (theirs, rival) in theirs.into_iter().zip(&RIVALS) {
            rows.push(match ours.clone().and_then(|ours| Ok((ours, theirs?))) {
                Ok((ours, theirs)) => row(label, &ours, rival, &theirs),
                Err(why) => Row::not_run(&in_words(label), rival.name, &why),
            });
        }
    }
    rows
}

fn in_words(label: &str) -> String {
    format!("bulk in memory, messages of {label}")
}

fn row(label: &str, ours: &[Run], rival: &Contestant, theirs: &[Run]) -> Row {
    let speed = |runs: &[Run]| runs.iter().map(|run| run.bytes_per_second).collect::<Vec<_>>();
    let (a, b) = (speed(ours), speed(theirs));
    let figures = |speed: &[f64], runs: &[Run]| {
        let packets = runs[0].packets_per_message;
        format!("{:.0} MB/s, {packets:.1} packets", median(speed) / 1e6)
    };
    Row {
        what: in_words(label),
        ours: figures(&a, ours),
        against: rival.name.into(),
        theirs: figures(&b, theirs),
        ratio: Some(median_ratio(&a, &b)),
        target: Target::AtLeast(1.5),
        note: rival.note.into(),
    }
}
