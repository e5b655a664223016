//! A server endpoint with one shard and with two: the share of each, its processor time per message, and the messages that it
//! receives at most.
//!
//! The server is a process of its own, with as many threads as shards. Its clients are in this process: a state machine for
//! thousands of associations, each of which has an address of its own, behind one UDP socket.

mod client;
mod server;

use std::io::{BufRead, BufReader, Lines, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, ChildStdout, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::{Deserialize, Serialize};

use crate::report::{Row, Target};
use crate::sample::{median, median_ratio, process_cpu_time, sleep};
use client::Client;

/// Associations, and messages per second on each.
pub const ASSOCIATIONS: u32 = 10_000;
/// Loads in messages per second on each association. The largest is measured that the server carries with one shard and with two.
const RATES: [f64; 5] = [20.0, 10.0, 5.0, 2.5, 1.0];
/// Loads that are offered to find out how much is received at most.
const OVERLOADS: [f64; 3] = [20.0, 40.0, 80.0];
const MESSAGE_BYTES: usize = 100;
const SCTP_PORT: u16 = 5000;
/// A load is carried if at least this share of it is received within its time.
const CARRIED: f64 = 0.98;
/// How much faster two shards have to be on two processors.
const SPEED_UP: f64 = 1.8;
/// The most processor time that a message may take with two shards, relative to one: two processors are then 1.8 times as fast
/// as one, as 2 / 1.8 = 1.11.
const MOST_PER_MESSAGE: f64 = 1.11;
/// The processors that are needed to compare speeds, half of them for the server.
const PROCESSORS: usize = 4;
const WARM_UP: Duration = Duration::from_secs(1);
const DURATION: Duration = Duration::from_secs(4);
const WHAT: &str = "a server with two shards";

/// The counters of the server at one time.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Snapshot {
    messages: u64,
    /// Monotonic time.
    at: f64,
    cpu_seconds: f64,
    /// Processor time of each thread.
    thread_seconds: Vec<f64>,
    /// Associations of each shard.
    associations: Vec<usize>,
    /// Packets that arrived at the wrong shard.
    redirected: u64,
}

/// The measurements of a server.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// Messages received per second.
    received_per_second: f64,
    /// The share of the messages that were due and were received within the time.
    carried: f64,
    /// Processor time of the server per message received, in microseconds.
    cpu_per_message_us: f64,
    /// Of that of its threads, the share of each.
    thread_shares: Vec<f64>,
    /// The share of the associations that each shard has.
    association_shares: Vec<f64>,
    redirected: u64,
    /// Processor time of the clients per message received, in microseconds.
    client_cpu_per_message_us: f64,
}

/// A server in another process.
struct Server {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Server {
    /// Starts a server. Returns it with its address.
    fn start(shards: usize) -> Result<(Self, SocketAddr), String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut process = Command::new(program)
            .args(["shards-server", &shards.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        let output = process.stdout.take().ok_or("no standard output")?;
        let mut server = Self { process, lines: BufReader::new(output).lines() };
        let port: u16 = server.line()?.parse().map_err(|_| "no port")?;
        Ok((server, (Ipv4Addr::LOCALHOST, port).into()))
    }

    fn line(&mut self) -> Result<String, String> {
        match self.lines.next() {
            Some(Ok(line)) => Ok(line),
            _ => Err("the server has ended early".into()),
        }
    }

    fn snapshot(&mut self) -> Result<Snapshot, String> {
        let input = self.process.stdin.as_mut().ok_or("no standard input")?;
        writeln!(input).map_err(|error| error.to_string())?;
        serde_json::from_str(&self.line()?).map_err(|error| error.to_string())
    }
}

/// One run with its own server, and this load.
///
/// # Errors
/// If an association cannot be set up or ends early.
///
/// # Panics
/// If a thread of the clients panics.
pub fn run(shards: usize, associations: u32, rate: f64) -> Result<Run, String> {
    let (mut server, to) = Server::start(shards)?;
    // With so many processors clients use those that the server does not.
    let threads = if processors() >= PROCESSORS { 2 } else { 1 };
    let (ready, is_over) = (Arc::new(Barrier::new(threads + 1)), Arc::new(AtomicBool::new(false)));
    let clients: Vec<_> = (0..threads as u32)
        .map(|n| {
            let (ready, is_over) = (Arc::clone(&ready), Arc::clone(&is_over));
            let share = associations / threads as u32;
            std::thread::spawn(move || {
                pin(Half::Last);
                let client = Client::connected(to, n * share..(n + 1) * share);
                ready.wait();
                client?.send_until(&is_over, rate)
            })
        })
        .collect();
    ready.wait();
    let measured = measure_load(&mut server);
    is_over.store(true, Ordering::Relaxed);
    for client in clients {
        client.join().expect("no panic")?;
    }
    let (before, after, client_cpu_seconds) = measured?;
    let messages = (after.messages - before.messages) as f64;
    let seconds = after.at - before.at;
    let shares = |parts: Vec<f64>| {
        let sum: f64 = parts.iter().sum();
        parts.into_iter().map(|part| part / sum).collect()
    };
    let threads = after.thread_seconds.iter().zip(&before.thread_seconds).map(|(a, b)| a - b);
    Ok(Run {
        received_per_second: messages / seconds,
        carried: messages / (f64::from(associations) * rate * seconds),
        cpu_per_message_us: (after.cpu_seconds - before.cpu_seconds) * 1e6 / messages,
        thread_shares: shares(threads.collect()),
        association_shares: shares(after.associations.iter().map(|&it| it as f64).collect()),
        redirected: after.redirected,
        client_cpu_per_message_us: client_cpu_seconds * 1e6 / messages,
    })
}

/// The counters of the server before and after the time that is measured, and the processor time of the clients in it.
fn measure_load(server: &mut Server) -> Result<(Snapshot, Snapshot, f64), String> {
    sleep(WARM_UP);
    let (before, cpu_before) = (server.snapshot()?, process_cpu_time());
    sleep(DURATION);
    let (after, cpu_after) = (server.snapshot()?, process_cpu_time());
    Ok((before, after, (cpu_after - cpu_before).as_secs_f64()))
}

/// Which of the processors a thread uses.
#[derive(Clone, Copy)]
enum Half {
    First,
    Last,
}

/// The processors that this process may use.
fn allowed() -> Vec<usize> {
    let set = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
    (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect()
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Pins this thread, and those that it starts, to two processors, if there are enough for both sides.
fn pin(half: Half) {
    let allowed = allowed();
    if allowed.len() < PROCESSORS {
        return;
    }
    let own = match half {
        Half::First => &allowed[..PROCESSORS / 2],
        Half::Last => &allowed[allowed.len() - PROCESSORS / 2..],
    };
    let mut set = CpuSet::new();
    own.iter().for_each(|&cpu| set.set(cpu));
    // Where it is not allowed, the scheduler decides.
    let _ = sched_setaffinity(None, &set);
}

/// The rows, of `repetitions` runs with one shard and with two in turn.
#[must_use]
pub fn measure(repetitions: usize) -> Vec<Row> {
    let mut rows =
        match largest_load().and_then(|rate| pairs(rate, repetitions).map(|it| (rate, it))) {
            Ok((rate, runs)) => rows_of_load(rate, &runs),
            Err(why) => vec![Row::not_run(WHAT, "one shard", &why)],
        };
    rows.push(speed_row(repetitions));
    rows
}

/// The largest of [`RATES`] that is carried with one shard and with two.
fn largest_load() -> Result<f64, String> {
    for rate in RATES {
        let mut is_carried = true;
        for shards in [1, 2] {
            is_carried &= run(shards, ASSOCIATIONS, rate)?.carried >= CARRIED;
        }
        if is_carried {
            return Ok(rate);
        }
    }
    Err("this machine does not carry the smallest load".into())
}

/// Runs with one shard and with two.
type Pairs = [Vec<Run>; 2];

/// As many pairs of runs that carry the load; one that other programs have disturbed is made again.
fn pairs(rate: f64, repetitions: usize) -> Result<Pairs, String> {
    let mut runs = [Vec::new(), Vec::new()];
    for _ in 0..3 * repetitions {
        let pair = [run(1, ASSOCIATIONS, rate)?, run(2, ASSOCIATIONS, rate)?];
        if pair.iter().all(|run| run.carried >= CARRIED) {
            runs.iter_mut().zip(pair).for_each(|(runs, run)| runs.push(run));
        }
        if runs[0].len() == repetitions {
            return Ok(runs);
        }
    }
    Err(format!("{rate} messages per second on each association were carried only at times"))
}

fn values(runs: &[Run], value: impl Fn(&Run) -> f64) -> Vec<f64> {
    runs.iter().map(value).collect()
}

fn rows_of_load(rate: f64, [one, two]: &Pairs) -> Vec<Row> {
    let both = || one.iter().chain(two);
    let redirected: u64 = both().map(|run| run.redirected).sum();
    let client = median(&values(two, |run| run.client_cpu_per_message_us));
    let note = format!(
        "A process with as many threads as shards; {ASSOCIATIONS} associations of interactive, {MESSAGE_BYTES} bytes {rate} \
         times a second on each: the largest of {RATES:?} of which {:.0} % are received within the time, in all runs that count. \
         Each message is a packet. Processor time includes system calls and SACKs; on loopback the kernel delivers a packet in \
         the time of its sender. The clients use {client:.1} µs per message. {redirected} packets arrived at the wrong shard.",
        CARRIED * 100.0,
    );
    let per_message = [one, two].map(|runs| values(runs, |run| run.cpu_per_message_us));
    let [of_one, of_two] = per_message.each_ref().map(|values| {
        let us = median(values);
        format!("{us:.1} µs, {:.0} k messages per CPU second", 1e3 / us)
    });
    let largest = |shares: &[f64]| shares.iter().copied().fold(0.0, f64::max);
    let busier = median(&values(two, |run| largest(&run.thread_shares)));
    let fuller = median(&values(two, |run| largest(&run.association_shares)));
    let parts = |share: f64| format!("{:.1} + {:.1} %", share * 100.0, (1.0 - share) * 100.0);
    vec![
        Row {
            what: format!("{WHAT}: processor time per message received"),
            ours: of_two,
            against: "one shard".into(),
            theirs: of_one,
            ratio: Some(median_ratio(&per_message[1], &per_message[0])),
            target: Target::AtMost(MOST_PER_MESSAGE),
            note: note.clone(),
        },
        Row {
            what: format!("{WHAT}: processor time of the busier of its two threads"),
            ours: format!("{}; associations {}", parts(busier), parts(fuller)),
            against: "half".into(),
            theirs: parts(0.5),
            ratio: Some(busier * 2.0),
            target: Target::None,
            note,
        },
    ]
}

/// The most that is received per second of wall time. Each side needs two processors for it.
fn speed_row(repetitions: usize) -> Row {
    let what = format!("{WHAT}: messages received at most");
    if processors() < PROCESSORS {
        let why = format!("needs {PROCESSORS} processors, two of them for the clients");
        return Row::not_run(&what, "one shard", &why);
    }
    let mut most = [Vec::new(), Vec::new()];
    for _ in 0..repetitions {
        for (shards, most) in (1..).zip(&mut most) {
            let mut received = 0.0_f64;
            for rate in OVERLOADS {
                match run(shards, ASSOCIATIONS, rate) {
                    Ok(run) => received = received.max(run.received_per_second),
                    Err(why) => return Row::not_run(&what, "one shard", &why),
                }
            }
            most.push(received);
        }
    }
    let in_words = |rates: &[f64]| format!("{:.0} k messages/s", median(rates) / 1e3);
    let [one, two] = &most;
    Row {
        what,
        ours: in_words(two),
        against: "one shard".into(),
        theirs: in_words(one),
        ratio: Some(median_ratio(two, one)),
        target: Target::AtLeast(SPEED_UP),
        note: format!(
            "{ASSOCIATIONS} associations, {MESSAGE_BYTES} bytes; the most that is received per second of wall time with \
             {OVERLOADS:?} messages per second on each. An association sends nothing while {} messages of it are not \
             acknowledged. The server has two processors, and the clients have two others.",
            client::OUTSTANDING
        ),
    }
}

/// Runs a server in this process: a line of standard input asks for its counters. It ends with its standard input.
#[must_use]
pub fn be_server(shards: usize) -> ExitCode {
    pin(Half::First);
    server::run(shards)
}
