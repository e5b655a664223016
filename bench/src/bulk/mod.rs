//! Two endpoints in memory, one sending to the other as fast as it can: ours and the rivals, all
//! driven by the same loop.
//!
//! The loop is what a driver over sockets does: packets wait in a queue in each direction, and after
//! each one that is handed in, whatever is to be sent is taken out. Every message is made anew, as
//! an application would, and checked when it arrives. Time is virtual.

mod dcsctp;
mod rexmit;
mod sctp_proto;

use std::collections::VecDeque;
use std::time::Duration;

use rexmit_core::Instant;

use crate::report::{Row, Target};
use crate::sample::{cpu_time, median, median_ratio};

/// The largest SCTP packet, common header included.
const MAX_PACKET_BYTES: usize = 1232;
/// The receive buffer of each endpoint.
const RECEIVE_BUFFER_BYTES: usize = 1 << 20;
/// What the application has under way at most: sent and not arrived.
const WINDOW_BYTES: usize = 256 * 1024;
/// The SCTP port of either endpoint.
const PORT: u16 = 5000;
/// How long one turn of the loop takes.
const TURN: Duration = Duration::from_micros(100);
/// Turns without a packet after which a stack is taken to have stopped.
const MAX_QUIET_TURNS: u32 = 1000;

/// One endpoint with at most one association.
trait Stack: Sized {
    const NAME: &'static str;
    /// A packet in the form in which the stack gives and takes it.
    type Packet;

    fn new(is_client: bool) -> Self;
    fn connect(&mut self, now: Instant);
    fn is_connected(&mut self) -> bool;
    fn send(&mut self, now: Instant, message: Vec<u8>);
    /// The next message that has arrived, handed to `check`; whether there was one.
    fn receive(&mut self, now: Instant, check: &mut impl FnMut(&[u8])) -> bool;
    /// Takes a packet; what can be used again goes to `spare`.
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
    fn connected() -> Self {
        let mut pair = Self {
            now: Instant::from_millis(1000),
            client: S::new(true),
            server: S::new(false),
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

    /// Sends what is due, then hands over what was under way. Whether anything was.
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

/// What one stack did in one run.
struct Run {
    bytes_per_second: f64,
    packets_per_message: f64,
}

fn run<S: Stack>(total: u64, size: usize) -> Run {
    let mut pair = Pair::<S>::connected();
    pair.carry(total / 10, size);
    let before = pair.packets;
    let ((), elapsed) = cpu_time(|| pair.carry(total, size));
    Run {
        bytes_per_second: (total * size as u64) as f64 / elapsed.as_secs_f64(),
        packets_per_message: (pair.packets - before) as f64 / total as f64,
    }
}

/// Only ours, for a profiler: carries `megabytes` in messages of `size` bytes.
pub fn ours_alone(megabytes: u64, size: usize) -> f64 {
    run::<rexmit::Rexmit>((megabytes << 20) / size as u64, size).bytes_per_second
}

const DCSCTP_NOTE: &str = "In memory: same loop, packet and buffer sizes, and checksums; processor \
    time of one thread. dcsctp formats every packet for its log even when the log is off.";
const SCTP_PROTO_NOTE: &str = "As above. sctp-proto has a table-driven CRC32c and no Max.Burst.";

/// Bulk transfer in memory, `repetitions` times each.
#[must_use]
pub fn measure(repetitions: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    for (size, label, megabytes) in [(1024, "1 KiB", 48u64), (64 * 1024, "64 KiB", 96)] {
        let total = (megabytes << 20) / size as u64;
        let mut runs: [Vec<Run>; 3] = Default::default();
        for _ in 0..repetitions {
            runs[0].push(run::<rexmit::Rexmit>(total, size));
            runs[1].push(run::<dcsctp::DcSctp>(total, size));
            runs[2].push(run::<sctp_proto::SctpProto>(total, size));
        }
        let names = [dcsctp::DcSctp::NAME, sctp_proto::SctpProto::NAME];
        for (theirs, (name, note)) in
            runs[1..].iter().zip(names.into_iter().zip([DCSCTP_NOTE, SCTP_PROTO_NOTE]))
        {
            rows.push(row(label, &runs[0], (name, theirs), note));
        }
    }
    rows
}

fn row(label: &str, ours: &[Run], (name, theirs): (&str, &[Run]), note: &str) -> Row {
    let speed = |runs: &[Run]| runs.iter().map(|run| run.bytes_per_second).collect::<Vec<_>>();
    let (a, b) = (speed(ours), speed(theirs));
    let in_words = |speed: &[f64], runs: &[Run]| {
        let packets = runs[0].packets_per_message;
        format!("{:.0} MB/s, {packets:.1} packets", median(speed) / 1e6)
    };
    Row {
        what: format!("bulk in memory, messages of {label}"),
        ours: in_words(&a, ours),
        against: name.into(),
        theirs: in_words(&b, theirs),
        ratio: Some(median_ratio(&a, &b)),
        target: Target::AtLeast(1.5),
        note: note.into(),
    }
}
