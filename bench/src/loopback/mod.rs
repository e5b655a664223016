//! Bulk transfer over UDP on loopback between two processes: ours compared with usrsctp, the stack of FreeBSD in user
//! space, over its own UDP encapsulation.
//!
//! Messages, packets, and buffers of both protocol and sockets have the same sizes. The receiver measures the time from
//! the first message to the last.

mod rexmit;
mod usrsctp;

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};

use serde::{Deserialize, Serialize};

use crate::report::{Row, Target};
use crate::sample::{median, median_ratio};

const WHAT: &str = "bulk over UDP on loopback";
const RIVAL: &str = "usrsctp";
/// The largest SCTP packet, common header included.
const PACKET_BYTES: usize = 1232;
/// Send and receive buffer of each association.
const BUFFER_BYTES: usize = 1 << 20;
/// UDP ports of the receiver and the sender.
const PORTS: [u16; 2] = [29_899, 29_900];

/// One transfer, as both ends are configured.
#[derive(Clone, Copy)]
struct Transfer {
    messages: u64,
    size: usize,
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
            PACKET_BYTES.to_string(),
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

/// Bulk transfer over loopback, `repetitions` times each.
#[must_use]
pub fn measure(repetitions: usize) -> Vec<Row> {
    let peers = rexmit::peer().and_then(|ours| Ok((ours, usrsctp::peer()?)));
    let (ours, theirs) = match peers {
        Ok(peers) => peers,
        Err(why) => return vec![Row::not_run(WHAT, RIVAL, &why)],
    };
    let sizes = [(1024, "1 KiB", 64u64), (64 * 1024, "64 KiB", 96)];
    let rows = sizes.into_iter().map(|(size, label, megabytes)| {
        let transfer = Transfer { messages: (megabytes << 20) / size as u64, size };
        compare(&ours, &theirs, transfer, repetitions).map(|runs| row(label, &runs)).unwrap_or_else(
            |why| Row::not_run(&format!("{WHAT}, messages of {label}"), RIVAL, &why),
        )
    });
    rows.collect()
}

fn compare(
    ours: &Peer,
    theirs: &Peer,
    transfer: Transfer,
    repetitions: usize,
) -> Result<[Vec<Run>; 2], String> {
    let mut runs = [Vec::new(), Vec::new()];
    for _ in 0..repetitions {
        runs[0].push(ours.run(transfer).map_err(|why| format!("rexmit: {why}"))?);
        runs[1].push(theirs.run(transfer).map_err(|why| format!("usrsctp: {why}"))?);
    }
    Ok(runs)
}

fn row(label: &str, runs: &[Vec<Run>; 2]) -> Row {
    let speeds = [0, 1].map(|n| runs[n].iter().map(|run| run.bytes_per_second).collect::<Vec<_>>());
    let cpu =
        [0, 1].map(|n| runs[n].iter().map(|run| run.bytes_per_cpu_second).collect::<Vec<_>>());
    let [ours, theirs] = [0, 1].map(|n| {
        let (speed, cpu) = (median(&speeds[n]) / 1e6, median(&cpu[n]) / 1e6);
        format!("{speed:.0} MB/s, {cpu:.0} MB per CPU second")
    });
    Row {
        what: format!("{WHAT}, messages of {label}"),
        ours,
        against: RIVAL.into(),
        theirs,
        ratio: Some(median_ratio(&speeds[0], &speeds[1])),
        target: Target::AtLeast(1.0),
        note:
            "Two processes; wall time at the receiver; packets of 1232 bytes, CRC32c on, buffers \
               of 1 MiB per association and 4 MiB asked for per socket. Ours sends and receives \
               batches (GSO, GRO); usrsctp has one system call per packet."
                .into(),
    }
}

/// Runs one end of a transfer of ours, in this process.
#[must_use]
pub fn be_peer(arguments: &[&str]) -> ExitCode {
    rexmit::run(arguments)
}
