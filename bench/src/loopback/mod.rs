//! Transfers over UDP on loopback between two processes. Bulk: ours against usrsctp, the stack of FreeBSD in user space,
//! over its own UDP encapsulation, and against quinn without protection; and ours over DTLS against quinn. Small messages, in
//! one direction and in both: ours against all of these, and against datagrams of quinn.
//!
//! Messages, packets, and buffers of both protocol and sockets have the same sizes. A receiver measures the time from
//! its first message to its last.

mod messages;
mod quinn;
mod rexmit;
mod usrsctp;

use std::io::{BufRead, BufReader, Lines};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, ExitCode, Stdio};

use serde::{Deserialize, Serialize};

use crate::report::{Row, Target};
use crate::sample::{median, median_ratio};

/// The largest SCTP packet, common header included.
const PACKET_BYTES: usize = 1232;
/// The largest UDP datagram with encryption: what quinn finds on a path of 1500 bytes.
const DATAGRAM_BYTES: usize = 1452;
/// Send and receive buffer of each association.
const BUFFER_BYTES: usize = 1 << 20;
/// UDP ports of the process that accepts the connection, and of the one that connects.
const PORTS: [u16; 2] = [29_899, 29_900];

/// Which processes send.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    /// The one that connects.
    OneWay,
    /// Both, at the same time.
    BothWays,
}

impl Direction {
    /// The arguments of the process that accepts the connection, and of the one that connects.
    const fn roles(self) -> [&'static str; 2] {
        match self {
            Self::OneWay => ["receive", "send"],
            Self::BothWays => ["accept", "connect"],
        }
    }
}

/// One transfer, as both ends are configured.
#[derive(Clone, Copy)]
struct Transfer {
    direction: Direction,
    /// Messages of each end that sends.
    messages: u64,
    size: usize,
    /// The largest packet: of SCTP, or the UDP datagram with encryption.
    packet_bytes: usize,
}

/// The output of an end of a transfer.
#[derive(Serialize, Deserialize)]
struct Ending {
    /// Messages received; none if this end only sends.
    messages: u64,
    /// From the first of them to the last.
    seconds: f64,
    cpu_seconds: f64,
}

impl Ending {
    fn messages_per_second(&self) -> f64 {
        self.messages as f64 / self.seconds
    }
}

/// The result of a transfer: the ends that have received, and the processor time of both.
struct Run {
    receivers: Vec<Ending>,
    cpu_seconds: f64,
    /// The share of the messages that arrived.
    arrived: f64,
}

impl Run {
    /// The sum of the receivers.
    fn messages_per_second(&self) -> f64 {
        self.receivers.iter().map(Ending::messages_per_second).sum()
    }

    /// Messages received per second of processor time, of both ends together.
    fn messages_per_cpu_second(&self) -> f64 {
        let messages: u64 = self.receivers.iter().map(|it| it.messages).sum();
        messages as f64 / self.cpu_seconds
    }
}

/// A program that is one end of a transfer, with the arguments before the common ones.
struct Peer {
    program: PathBuf,
    first_arguments: Vec<String>,
    /// Whether every message arrives.
    is_reliable: bool,
}

/// A process that is killed if it is not waited for: its peer has failed.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // It has ended, or does now.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Process {
    fn lines(&mut self) -> Result<Lines<BufReader<ChildStdout>>, String> {
        Ok(BufReader::new(self.0.stdout.take().ok_or("no output")?).lines())
    }

    fn wait(mut self) -> Result<(), String> {
        self.0.wait().map(drop).map_err(|error| error.to_string())
    }
}

impl Peer {
    fn start(&self, end: usize, transfer: Transfer) -> Result<Process, String> {
        let numbers = [
            PORTS[end].to_string(),
            PORTS[1 - end].to_string(),
            transfer.messages.to_string(),
            transfer.size.to_string(),
            transfer.packet_bytes.to_string(),
        ];
        Command::new(&self.program)
            .args(&self.first_arguments)
            .arg(transfer.direction.roles()[end])
            .args(numbers)
            .stdout(Stdio::piped())
            .spawn()
            .map(Process)
            .map_err(|error| format!("{}: {error}", self.program.display()))
    }

    fn run(&self, transfer: Transfer) -> Result<Run, String> {
        let next_line = |lines: &mut Lines<BufReader<ChildStdout>>| match lines.next() {
            Some(Ok(line)) => Ok(line),
            _ => Err("an end of the transfer ended early".to_string()),
        };
        let mut accepting = self.start(0, transfer)?;
        let mut accepted = accepting.lines()?;
        next_line(&mut accepted)?; // "ready"
        let mut connecting = self.start(1, transfer)?;
        let mut connected = connecting.lines()?;
        let there = parse(&next_line(&mut connected)?)?;
        let here = parse(&next_line(&mut accepted)?)?;
        connecting.wait()?;
        accepting.wait()?;
        let cpu_seconds = here.cpu_seconds + there.cpu_seconds;
        let receivers = match transfer.direction {
            Direction::OneWay => vec![here],
            Direction::BothWays => vec![here, there],
        };
        let arrived: u64 = receivers.iter().map(|it| it.messages).sum();
        let sent = transfer.messages * receivers.len() as u64;
        if self.is_reliable && arrived != sent {
            return Err(format!("{arrived} of {sent} arrived"));
        }
        Ok(Run { receivers, cpu_seconds, arrived: arrived as f64 / sent as f64 })
    }
}

fn parse(line: &str) -> Result<Ending, String> {
    serde_json::from_str(line).map_err(|error| format!("{error}: {line}"))
}

/// Bulk transfers over loopback, `repetitions` times each.
#[must_use]
pub fn measure(repetitions: usize) -> Vec<Row> {
    let comparisons = [
        (&PLAIN, rexmit::peer(false), usrsctp::peer()),
        (&UNPROTECTED, rexmit::peer(false), quinn::peer(&[quinn::PLAIN])),
        (&OVER_DTLS, rexmit::peer(true), quinn::peer(&[])),
    ];
    let rows = comparisons.into_iter().flat_map(|(comparison, ours, theirs)| {
        let peers = ours.and_then(|ours| Ok((ours, theirs?)));
        measure_pair(comparison, peers, repetitions)
    });
    rows.collect()
}

/// Small messages over loopback, `repetitions` times each.
#[must_use]
pub fn measure_messages(repetitions: usize) -> Vec<Row> {
    messages::measure(repetitions)
}

/// Ours against a rival.
struct Comparison {
    what: &'static str,
    rival: &'static str,
    packet_bytes: usize,
    least: f64,
    note: &'static str,
}

const PLAIN: Comparison = Comparison {
    what: "bulk over UDP on loopback",
    rival: "usrsctp",
    packet_bytes: PACKET_BYTES,
    least: 1.0,
    note: "Two processes; wall time at the receiver; packets of 1232 bytes, CRC32c on, buffers \
           of 1 MiB per association and 4 MiB asked for per socket. Ours sends and receives \
           batches (GSO, GRO); usrsctp has one system call per packet.",
};
const UNPROTECTED: Comparison = Comparison {
    what: "bulk over UDP on loopback",
    rival: "quinn without protection",
    packet_bytes: DATAGRAM_BYTES,
    least: 1.2,
    note: "Two processes of one thread each; wall time at the receiver; datagrams of at most 1452 bytes. Ours: CRC32c, \
           ordered messages. quinn: one stream, its default windows, packets neither encrypted nor authenticated.",
};
const OVER_DTLS: Comparison = Comparison {
    what: "encrypted bulk over UDP on loopback",
    rival: "quinn",
    packet_bytes: DATAGRAM_BYTES,
    least: 1.0,
    note: "Two processes of one thread each; wall time at the receiver; datagrams of at most 1452 bytes, \
           AES-GCM. Ours: DTLS 1.3, ordered messages. quinn: one stream, its default windows, ring. Both \
           send and receive batches (GSO, GRO).",
};

fn measure_pair(
    comparison: &Comparison,
    peers: Result<(Peer, Peer), String>,
    repetitions: usize,
) -> Vec<Row> {
    let &Comparison { what, rival, packet_bytes, .. } = comparison;
    let (ours, theirs) = match peers {
        Ok(peers) => peers,
        Err(why) => return vec![Row::not_run(what, rival, &why)],
    };
    let sizes = [(1024, "1 KiB", 64u64), (64 * 1024, "64 KiB", 96)];
    let rows = sizes.into_iter().map(|(size, label, megabytes)| {
        let messages = (megabytes << 20) / size as u64;
        let transfer = Transfer { direction: Direction::OneWay, messages, size, packet_bytes };
        match compare([&ours, &theirs], rival, transfer, repetitions) {
            Ok(runs) => row(comparison, (label, size), &runs),
            Err(why) => Row::not_run(&format!("{what}, messages of {label}"), rival, &why),
        }
    });
    rows.collect()
}

fn compare(
    peers: [&Peer; 2],
    rival: &str,
    transfer: Transfer,
    repetitions: usize,
) -> Result<[Vec<Run>; 2], String> {
    let mut runs = [Vec::new(), Vec::new()];
    for _ in 0..repetitions {
        for (peer, (name, runs)) in
            peers.into_iter().zip(["rexmit", rival].into_iter().zip(&mut runs))
        {
            runs.push(peer.run(transfer).map_err(|why| format!("{name}: {why}"))?);
        }
    }
    Ok(runs)
}

fn row(comparison: &Comparison, (label, size): (&str, usize), runs: &[Vec<Run>; 2]) -> Row {
    let of = |runs: &[Run], rate: fn(&Run) -> f64| -> Vec<f64> {
        runs.iter().map(|run| rate(run) * size as f64).collect()
    };
    let speeds = [0, 1].map(|n| of(&runs[n], Run::messages_per_second));
    let cpu = [0, 1].map(|n| of(&runs[n], Run::messages_per_cpu_second));
    let [ours, theirs] = [0, 1].map(|n| {
        let (speed, cpu) = (median(&speeds[n]) / 1e6, median(&cpu[n]) / 1e6);
        format!("{speed:.0} MB/s, {cpu:.0} MB per CPU second")
    });
    Row {
        what: format!("{}, messages of {label}", comparison.what),
        ours,
        against: comparison.rival.into(),
        theirs,
        ratio: Some(median_ratio(&speeds[0], &speeds[1])),
        target: Target::AtLeast(comparison.least),
        note: comparison.note.into(),
    }
}

/// Runs one end of a transfer of ours, in this process.
#[must_use]
pub fn be_peer(arguments: &[&str]) -> ExitCode {
    rexmit::run(arguments)
}
