//! Two programs, each in a network namespace, with an emulated link in between.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rexmit::emulator::{EmulatorStatistics, LinkConfig, Seed, TunEmulator};
use rexmit::path::PathConfig;
use rexmit::tun::{NetNamespace, Tun, TunConfig};
use rustix::process::{Pid, Signal, kill_process_group};
use rustix::thread::{ClockId, clock_nanosleep_absolute};
use rustix::time::Timespec;

use super::super::programs::{CLIENT, Carry, Programs, ProgramsOutcome, SERVER, STAMPS};
use super::now;
use crate::listening::is_anybody_listening;

/// The most packets that wait in the kernel until they are read.
const QUEUE_PACKETS: u32 = 10_000;
/// The time that a client has for connecting, before the first message.
const LEAD: Duration = Duration::from_secs(1);
/// The time limit for a server to listen; some never do.
const UNTIL_LISTENING: Duration = Duration::from_secs(3);
/// The interval of the checks whether the server is listening.
const LOOK: Duration = Duration::from_millis(1);
/// The first word of each line that this program writes.
const MARK: &str = "rexmit";
/// The longest line that is read: a message, and the text that a program may put before it.
const MOST_LINE: u64 = 1 << 20;
/// The most bytes of the standard error output that are reported.
const ERROR_BYTES: usize = 2000;
/// Runs of a client at once.
const MOST_RUNS: usize = 256;

/// An observed event, with its time.
struct Seen {
    what: What,
    at: Duration,
}

enum What {
    Sent(u64),
    Received(u64),
    /// A client of [`Carry::Runs`] has ended without success.
    Failed,
}

/// Runs the programs.
pub(super) fn run(plan: &Programs, seed: u64) -> io::Result<ProgramsOutcome> {
    let other = |error: &dyn std::fmt::Display| io::Error::other(error.to_string());
    let path: PathConfig = plan.link.parse().map_err(|error| other(&error))?;
    let far = NetNamespace::new().map_err(|error| other(&error))?;
    let near = NetNamespace::new().map_err(|error| other(&error))?;
    let device = |namespace: &NetNamespace, address: &str| {
        let address: Ipv4Addr = address.parse().map_err(|error| other(&error))?;
        let config = TunConfig::default().ipv4(Some((address, 24)));
        let config = config.queue_packets(QUEUE_PACKETS).is_default_route(true);
        Tun::open_in(namespace, &config).map_err(|error| other(&error))
    };
    let link = LinkConfig::default().forward(path.clone()).backward(path);
    let link = link.seed(Seed::from_u64(seed)).raise_priority(false);
    let devices = (device(&near, CLIENT)?, device(&far, SERVER)?);
    let emulator =
        TunEmulator::start(&link, devices.0, devices.1).map_err(|error| other(&error))?;
    let said = [Said::new()?, Said::new()?];
    let ends = Ends { plan, near, far, said: &said };
    let mut outcome = ends.measure().map_err(|error| {
        io::Error::other(format!("{error} {}", errors(&said)).trim_end().to_owned())
    })?;
    let EmulatorStatistics { forward, backward, .. } = emulator.stop()?;
    outcome.packets = forward.path.offered + backward.path.offered;
    outcome.bytes = forward.path.offered_bytes + backward.path.offered_bytes;
    outcome.errors = errors(&said);
    Ok(outcome)
}

struct Ends<'a> {
    plan: &'a Programs,
    near: NetNamespace,
    far: NetNamespace,
    /// The standard error output of the server and of the client.
    said: &'a [Said; 2],
}

impl Ends<'_> {
    fn measure(&self) -> io::Result<ProgramsOutcome> {
        let (seen, receiver) = channel();
        let stamps = match self.plan.carry {
            Carry::Stamps => Some(Stamps::new(&seen)?),
            Carry::Lines | Carry::Runs => None,
        };
        let mut server =
            self.command(&self.far, &self.plan.server, &self.said[0], stamps.as_ref())?;
        let mut server = Program::start(server.stdin(Stdio::null()).stdout(Stdio::piped()))?;
        let output = server.0.stdout.take();
        let carry = self.plan.carry;
        let from_server = seen.clone();
        thread::spawn(move || read_output(output, carry, &from_server));
        self.wait_until_it_listens(&mut server)?;
        let mut outcome = match carry {
            Carry::Lines => self.lines(&receiver),
            Carry::Stamps => self.stamps(stamps.as_ref(), &receiver),
            Carry::Runs => self.runs(&seen, &receiver),
        }?;
        if let Some(status) = server.0.try_wait()?.filter(|status| !status.success()) {
            outcome.failed = Some(format!("the server ended: {status}"));
        }
        Ok(outcome)
    }

    /// A program of the shell in a namespace.
    fn command(
        &self,
        namespace: &NetNamespace,
        line: &str,
        said: &Said,
        stamps: Option<&Stamps>,
    ) -> io::Result<Command> {
        let mut command = namespace.command("/bin/sh");
        command.arg("-c").arg(line).current_dir(&self.plan.folder).env_clear();
        command.env("PATH", &self.plan.path).env("HOME", "/run").env("TMPDIR", "/run");
        command.env("LANG", "C.UTF-8").env("REXMIT_SERVER", SERVER).env("REXMIT_CLIENT", CLIENT);
        if let Some(stamps) = stamps {
            command.env(STAMPS, &stamps.0);
        }
        command.stderr(said.writer.try_clone()?).process_group(0);
        Ok(command)
    }

    fn wait_until_it_listens(&self, server: &mut Program) -> io::Result<()> {
        let deadline = now() + UNTIL_LISTENING;
        while now() < deadline {
            if self.far.run(is_anybody_listening).map_err(io::Error::other)? {
                return Ok(());
            }
            if let Some(status) = server.0.try_wait()? {
                return Err(io::Error::other(format!("the server ended at once ({status}):")));
            }
            wait_until(now() + LOOK)?;
        }
        Ok(())
    }

    fn client(&self, stamps: Option<&Stamps>) -> io::Result<Command> {
        self.command(&self.near, &self.plan.client, &self.said[1], stamps)
    }

    /// Writes each message as a line to the client, and waits until the server prints it.
    fn lines(&self, receiver: &Receiver<Seen>) -> io::Result<ProgramsOutcome> {
        let mut client =
            Program::start(self.client(None)?.stdin(Stdio::piped()).stdout(Stdio::null()))?;
        let start = now() + LEAD;
        let input = client.0.stdin.take().map(OwnedFd::from);
        // It stays open until the client is ended, which cuts nothing off.
        let _open = input.as_ref().map(OwnedFd::try_clone).transpose()?;
        let messages = self.plan.messages.clone();
        // A client that does not read makes it wait.
        thread::spawn(move || write_lines(input.map(File::from), start, &messages));
        let mut measured = Measured::new(&self.plan.messages, start);
        let deadline = self.deadline(start);
        while measured.missing > 0
            && let Ok(one) = receiver.recv_timeout(deadline.saturating_sub(now()))
        {
            measured.add(&one);
        }
        Ok(ProgramsOutcome { failed: client.failed()?, ..measured.outcome() })
    }

    /// Runs the client until it ends, or until the time limit.
    fn stamps(
        &self,
        stamps: Option<&Stamps>,
        receiver: &Receiver<Seen>,
    ) -> io::Result<ProgramsOutcome> {
        let mut client =
            Program::start(self.client(stamps)?.stdin(Stdio::null()).stdout(Stdio::null()))?;
        let last = now() + self.length();
        let end = last + self.plan.drain;
        // The client may end before the last message is delivered.
        let mut ended = None;
        while now() < end && ended.is_none_or(|ended| now() < ended + self.plan.drain) {
            if ended.is_none() && client.0.try_wait()?.is_some() {
                ended = Some(now());
            }
            wait_until(now() + LOOK)?;
        }
        let mut sent = HashMap::new();
        let mut outcome = ProgramsOutcome::default();
        let mut received = HashMap::new();
        for Seen { what, at } in receiver.try_iter() {
            match what {
                // Later messages may be on their way when the run ends.
                What::Sent(id) if at <= last => drop(sent.entry(id).or_insert(at)),
                What::Received(id) => drop(received.entry(id).or_insert(at)),
                What::Sent(_) | What::Failed => {}
            }
        }
        outcome.sent = sent.len() as u64;
        let latency =
            |(id, at): (&u64, &Duration)| Some(nanos(received.get(id)?.saturating_sub(*at)));
        outcome.latencies = sent.iter().filter_map(latency).collect();
        outcome.latencies.sort_unstable();
        outcome.failed = client.failed()?;
        Ok(outcome)
    }

    /// Runs the client once for each message.
    fn runs(&self, seen: &Sender<Seen>, receiver: &Receiver<Seen>) -> io::Result<ProgramsOutcome> {
        let start = now();
        let mut measured = Measured::new(&self.plan.messages, start);
        let deadline = self.deadline(start);
        let mut running = 0;
        let wait_for_one = |measured: &mut Measured<'_>| {
            let one = receiver.recv_timeout(deadline.saturating_sub(now()));
            one.map(|one| measured.add(&one)).is_ok()
        };
        for (id, &(micros, _)) in self.plan.messages.iter().enumerate() {
            wait_until(start + Duration::from_micros(micros))?;
            if running == MOST_RUNS {
                if !wait_for_one(&mut measured) {
                    break;
                }
                running -= 1;
            }
            let mut command = self.client(None)?;
            let mut client = Program::start(command.stdin(Stdio::null()).stdout(Stdio::null()))?;
            let seen = seen.clone();
            running += 1;
            thread::spawn(move || {
                let is_done = client.0.wait().is_ok_and(|status| status.success());
                let what = if is_done { What::Received(id as u64) } else { What::Failed };
                // The receiving end is closed once the run is over.
                let _ = seen.send(Seen { what, at: now() });
            });
        }
        while running > 0 && wait_for_one(&mut measured) {
            running -= 1;
        }
        Ok(measured.outcome())
    }

    fn length(&self) -> Duration {
        Duration::from_micros(self.plan.messages.last().map_or(0, |last| last.0))
    }

    fn deadline(&self, start: Duration) -> Duration {
        start + self.length() + self.plan.drain
    }
}

/// The latency of each received message, from its intended sending.
struct Measured<'a> {
    messages: &'a [(u64, u32)],
    start: Duration,
    latencies: Vec<Option<Duration>>,
    missing: usize,
}

impl<'a> Measured<'a> {
    fn new(messages: &'a [(u64, u32)], start: Duration) -> Self {
        let latencies = vec![None; messages.len()];
        Self { messages, start, latencies, missing: messages.len() }
    }

    fn add(&mut self, seen: &Seen) {
        let What::Received(id) = seen.what else { return };
        let Ok(id) = usize::try_from(id) else { return };
        // Data that the programs generate themselves is not counted, nor are repetitions.
        let (Some(latency @ None), Some(message)) =
            (self.latencies.get_mut(id), self.messages.get(id))
        else {
            return;
        };
        *latency = Some(seen.at.saturating_sub(self.start + Duration::from_micros(message.0)));
        self.missing -= 1;
    }

    fn outcome(self) -> ProgramsOutcome {
        let latencies = self.latencies.into_iter().flatten().map(nanos).collect();
        ProgramsOutcome { sent: self.messages.len() as u64, latencies, ..Default::default() }
    }
}

fn write_lines(mut input: Option<File>, start: Duration, messages: &[(u64, u32)]) {
    let Some(pipe) = &mut input else { return };
    for (id, &(micros, bytes)) in messages.iter().enumerate() {
        // A client that has ended loses the rest.
        let is_written = wait_until(start + Duration::from_micros(micros))
            .and_then(|()| write_line(pipe, id, bytes))
            .is_ok();
        if !is_written {
            return;
        }
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn wait_until(at: Duration) -> io::Result<()> {
    let at = Timespec {
        tv_sec: i64::try_from(at.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: at.subsec_nanos().into(),
    };
    Ok(clock_nanosleep_absolute(ClockId::Monotonic, &at)?)
}

/// A line of `bytes` bytes: `rexmit`, the message's number, and dots.
fn write_line(pipe: &mut File, id: usize, bytes: u32) -> io::Result<()> {
    let mut line = format!("{MARK} {id} ");
    let dots = (bytes as usize).saturating_sub(line.len() + 1);
    line.extend(std::iter::repeat_n('.', dots));
    line.push('\n');
    pipe.write_all(line.as_bytes())
}

/// Reads the server's output until its end.
fn read_output(output: Option<impl Read>, carry: Carry, seen: &Sender<Seen>) {
    let Some(output) = output else { return };
    each_line(
        output,
        |line| match carry {
            Carry::Lines => {
                let mut words =
                    line.split_ascii_whitespace().skip_while(|word| *word != MARK).skip(1);
                Some(What::Received(words.next()?.parse().ok()?))
            }
            Carry::Stamps | Carry::Runs => None,
        },
        seen,
    );
}

fn each_line(from: impl Read, meaning: impl Fn(&str) -> Option<What>, seen: &Sender<Seen>) {
    let mut reader = BufReader::new(from);
    let mut line = Vec::new();
    loop {
        line.clear();
        match reader.by_ref().take(MOST_LINE).read_until(b'\n', &mut line) {
            Ok(1..) => {}
            Ok(0) | Err(_) => return,
        }
        let at = now();
        if let Some(what) = meaning(&String::from_utf8_lossy(&line)) {
            // The receiving end is closed once the run is over.
            let _ = seen.send(Seen { what, at });
        }
    }
}

/// The file to which the programs write when they send and receive messages.
struct Stamps(String);

impl Stamps {
    fn new(seen: &Sender<Seen>) -> io::Result<Self> {
        let path = "/run/rexmit-stamps".to_owned();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )?;
        // Opened for reading and writing, it never ends, and opening it does not block.
        let pipe =
            OpenOptions::new().read(true).write(true).custom_flags(libc::O_CLOEXEC).open(&path)?;
        let seen = seen.clone();
        thread::spawn(move || each_line(pipe, stamp, &seen));
        Ok(Self(path))
    }
}

fn stamp(line: &str) -> Option<What> {
    let (word, id) = line.trim().split_once(' ')?;
    let id = id.parse().ok()?;
    match word {
        "sent" => Some(What::Sent(id)),
        "received" => Some(What::Received(id)),
        _ => None,
    }
}

/// A program, with all processes that its shell starts; killed when dropped.
struct Program(Child);

impl Program {
    fn start(command: &mut Command) -> io::Result<Self> {
        command.spawn().map(Self)
    }

    /// How the client ended, if it ended by itself without success.
    fn failed(&mut self) -> io::Result<Option<String>> {
        let status = self.0.try_wait()?.filter(|status| !status.success());
        Ok(status.map(|status| format!("the client ended: {status}")))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if let Some(group) = Pid::from_raw(self.0.id().cast_signed()) {
            // They may all have ended.
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.0.wait();
    }
}

/// The end of a program's standard error output.
struct Said {
    writer: OwnedFd,
    tail: Arc<Mutex<Vec<u8>>>,
}

impl Said {
    fn new() -> io::Result<Self> {
        let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let said = Self { writer, tail: Arc::default() };
        let tail = Arc::clone(&said.tail);
        thread::spawn(move || {
            let (mut reader, mut bytes) = (File::from(reader), [0; 4096]);
            while let Ok(read @ 1..) = reader.read(&mut bytes) {
                let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
                tail.extend_from_slice(&bytes[..read]);
                let excess = tail.len().saturating_sub(ERROR_BYTES);
                tail.drain(..excess);
            }
        });
        Ok(said)
    }
}

/// The end of the programs' error output, without control characters.
fn errors(said: &[Said; 2]) -> String {
    let of = |(name, said): (&str, &Said)| {
        // The reader has read everything: it runs as soon as this thread waits.
        let tail = said.tail.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&tail);
        let plain = |c: char| if c.is_control() && c != '\n' && c != '\t' { '\u{fffd}' } else { c };
        let text: String = text.trim().chars().map(plain).collect();
        (!text.is_empty()).then(|| format!("{name}: {text}"))
    };
    ["server", "client"].into_iter().zip(said).filter_map(of).collect::<Vec<_>>().join("\n")
}
