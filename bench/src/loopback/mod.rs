//! Bulk transfer over UDP on loopback between two processes: ours against usrsctp, the stack of
//! FreeBSD in user space, over its own UDP encapsulation, and against quinn without protection; and ours over DTLS against
//! quinn. Small messages are counted per second of the receiver.
//!
//! Messages, packets, and buffers of both protocol and sockets have the same sizes. The receiver measures the time from
//! the first message to the last.

mod quinn;
mod rexmit;
mod usrsctp;

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};

use serde::{Deserialize, Serialize};

use crate::report::{Row, Target};
use crate::sample::{median, median_ratio};

/// The largest SCTP packet, common header included.
const PACKET_BYTES: usize = 1232;
/// The largest UDP datagram with encryption: what quinn finds on a path of 1500 bytes.
const DATAGRAM_BYTES: usize = 1452;
/// Send and receive buffer of each association.
const BUFFER_BYTES: usize = 1 << 20;
/// UDP ports of the receiver and the sender.
const PORTS: [u16; 2] = [29_899, 29_900];

/// One transfer, as both ends are configured.
#[derive(Clone, Copy)]
struct Transfer {
    messages: u64,
    size: usize,
    /// The largest packet: of SCTP, or the UDP datagram with encryption.
    packet_bytes: usize,
}

/// The output of an end of a transfer.
#[derive(Serialize, Deserialize)]
struct Ending {
    messages: u64,
    /// From the first message to the last; only the receiver measures it.
    seconds: f64,
    cpu_seconds: f64,
}

/// The result of a transfer.
struct Run {
    bytes_per_second: f64,
    /// Bytes per second of processor time, of both ends together.
    bytes_per_cpu_second: f64,
}

/// A program that is one end of a transfer, with the arguments before the common ones.
struct Peer {
    program: PathBuf,
    first_arguments: Vec<String>,
}

impl Peer {
    fn start(&self, role: &str, transfer: Transfer) -> Result<Child, String> {
        let [receiver, sender] = PORTS;
        let (own, other) = if role == "receive" { (receiver, sender) } else { (sender, receiver) };
        let numbers = [
            own.to_string(),
            other.to_string(),
            transfer.messages.to_string(),
            transfer.size.to_string(),
            transfer.packet_bytes.to_string(),
        ];
        Command::new(&self.program)
            .args(&self.first_arguments)
            .arg(role)
            .args(numbers)
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{}: {error}", self.program.display()))
    }

    fn run(&self, transfer: Transfer) -> Result<Run, String> {
        let mut receiver = self.start("receive", transfer)?;
        let mut lines = BufReader::new(receiver.stdout.take().ok_or("no output")?).lines();
        let mut next_line = || match lines.next() {
            Some(Ok(line)) => Ok(line),
            _ => Err("the receiver ended early".to_string()),
        };
        next_line()?; // "ready"
        let sender = self.start("send", transfer)?.wait_with_output();
        let received = parse(&next_line()?)?;
        let sent = sender.map_err(|error| error.to_string())?;
        let sent = parse(&String::from_utf8_lossy(&sent.stdout))?;
        receiver.wait().map_err(|error| error.to_string())?;
        if received.messages != transfer.messages {
            return Err(format!("{} of {} arrived", received.messages, transfer.messages));
        }
        let bytes = transfer.messages as f64 * transfer.size as f64;
        Ok(Run {
            bytes_per_second: bytes / received.seconds,
            bytes_per_cpu_second: bytes / (received.cpu_seconds + sent.cpu_seconds),
        })
    }
}

fn parse(line: &str) -> Result<Ending, String> {
    serde_json::from_str(line).map_err(|error| format!("{error}: {line}"))
}

/// Transfers over loopback, `repetitions` times each.
#[must_use]
pub fn measure(repetitions: usize) -> Vec<Row> {
    let comparisons = [
        (&PLAIN, rexmit::peer(false), usrsctp::peer()),
        (&UNPROTECTED, rexmit::peer(false), quinn::peer(false)),
        (&OVER_DTLS, rexmit::peer(true), quinn::peer(true)),
    ];
    let rows = comparisons.into_iter().flat_map(|(comparison, ours, theirs)| {
        let peers = ours.and_then(|ours| Ok((ours, theirs?)));
        measure_pair(comparison, peers, repetitions)
    });
    let mut rows: Vec<Row> = rows.collect();
    rows.extend(measure_messages(repetitions));
    rows
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
        let transfer = Transfer { messages: (megabytes << 20) / size as u64, size, packet_bytes };
        match compare([&ours, &theirs], rival, transfer, repetitions) {
            Ok(runs) => row(comparison, label, &runs),
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

fn row(comparison: &Comparison, label: &str, runs: &[Vec<Run>; 2]) -> Row {
    let speeds = [0, 1].map(|n| runs[n].iter().map(|run| run.bytes_per_second).collect::<Vec<_>>());
    let cpu =
        [0, 1].map(|n| runs[n].iter().map(|run| run.bytes_per_cpu_second).collect::<Vec<_>>());
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

/// Messages of 100 bytes per second that a receiver with one thread gets: ours against a limit, then beside the others.
fn measure_messages(repetitions: usize) -> Vec<Row> {
    const SIZE: usize = 100;
    const LIMIT: f64 = 400_000.0;
    const WHAT: &str = "messages of 100 bytes over UDP on loopback";
    let transfer = Transfer { messages: 2_000_000, size: SIZE, packet_bytes: PACKET_BYTES };
    let rates = |peer: &Peer| -> Result<Vec<f64>, String> {
        (0..repetitions).map(|_| Ok(peer.run(transfer)?.bytes_per_second / SIZE as f64)).collect()
    };
    let ours = match rexmit::peer(false).and_then(|ours| rates(&ours)) {
        Ok(ours) => ours,
        Err(why) => return vec![Row::not_run(WHAT, "limit", &why)],
    };
    let in_words = |rate: f64| format!("{:.0} k messages/s", rate / 1e3);
    let row = |against: &str, theirs: f64, target| {
        Row {
        what: WHAT.into(),
        ours: in_words(median(&ours)),
        against: against.into(),
        theirs: in_words(theirs),
        ratio: Some(median(&ours) / theirs),
        target,
        note: "Two processes of one thread each; one association, ordered messages, as fast as the receiver gets them; wall \
               time at the receiver. quinn has no messages: as many bytes, written 100 at a time to one stream."
            .into(),
    }
    };
    let mut rows = vec![row("limit", LIMIT, Target::AtLeast(1.0))];
    for (name, peer) in
        [("usrsctp", usrsctp::peer()), ("quinn without protection", quinn::peer(false))]
    {
        rows.push(match peer.and_then(|peer| rates(&peer)) {
            Ok(rates) => row(name, median(&rates), Target::None),
            Err(why) => Row::not_run(WHAT, name, &why),
        });
    }
    rows
}

/// Runs one end of a transfer of ours, in this process.
#[must_use]
pub fn be_peer(arguments: &[&str]) -> ExitCode {
    rexmit::run(arguments)
}
