//! Processor time of a server of data channels: many peers that get snapshots, over UDP sockets on loopback, with DTLS.
//!
//! The server is a separate process on one core; its processor time is measured, including system calls. The peers are
//! agents in this process, each with its own socket. Offers and answers are lines of JSON in the server's pipes.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rexmit_dtls::Identity;
use rexmit_webrtc::{
    AgentConfig, ChannelConfig, ChannelId, Connection, Event, IceMode, Message, Sender,
    ServeConfig, Server,
};
use rustix::process::{Resource, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::{Deserialize, Serialize};
use tokio::sync::{Barrier, mpsc, oneshot};
use tokio::task::JoinSet;

use crate::report::{Row, Target};
use crate::sample::{median, process_cpu_time};

/// Peers, and snapshots to each per second.
pub const PEERS: usize = 1000;
const RATE: f64 = 20.0;
/// The largest share of a processor that the server may use.
const MOST: f64 = 0.6;
const SNAPSHOT_BYTES: usize = 200;
/// Rounds of snapshots that are measured.
const ROUNDS: u32 = 100;
/// The most peers that are set up at the same time.
const SETUPS: usize = 20;
/// On a busy machine, peers may be silent for long.
const PATIENCE: Duration = Duration::from_secs(120);
const WHAT: &str = "data channels";

/// The processor time of the server in one run.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Cost {
    /// The share of the processor while snapshots were sent.
    pub share: f64,
    /// Processor time of a setup, in seconds.
    pub setup_seconds: f64,
}

/// One run with its own server.
///
/// # Errors
/// If the server does not start, or ends early.
///
/// # Panics
/// If connections on loopback fail.
pub fn run(peers: usize) -> Result<Cost, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut server = Command::new(program)
        .args(["webrtc-server", &peers.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    let mut input = server.stdin.take().ok_or("no standard input")?;
    let mut lines = BufReader::new(server.stdout.take().ok_or("no standard output")?).lines();
    let mut next_line = move || match lines.next() {
        Some(Ok(line)) => Ok(line),
        _ => Err("the server has ended early".to_owned()),
    };
    let (offers, mut offered) = mpsc::unbounded_channel::<(String, oneshot::Sender<String>)>();
    let signalling = std::thread::spawn(move || {
        while let Some((offer, answer)) = offered.blocking_recv() {
            writeln!(input, "{}", serde_json::Value::from(offer)).map_err(|it| it.to_string())?;
            let line: String = serde_json::from_str(&next_line()?).map_err(|it| it.to_string())?;
            // The peer waits for it.
            let _ = answer.send(line);
        }
        serde_json::from_str(&next_line()?).map_err(|error| error.to_string())
    });
    allow_sockets(peers);
    runtime().block_on(be_peers(peers, offers));
    let cost = signalling.join().expect("no panic");
    let _ = server.wait();
    cost
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// Raises the limit of open files, as every peer has a socket.
fn allow_sockets(peers: usize) {
    let mut limit = getrlimit(Resource::Nofile);
    let needed = peers as u64 + 100;
    if limit.current.is_some_and(|current| current < needed) {
        limit.current = Some(limit.maximum.map_or(needed, |maximum| maximum.min(needed)));
        // With too few, binding a socket fails, and says so.
        let _ = setrlimit(Resource::Nofile, limit);
    }
}

/// Connects all peers, and returns when they have all snapshots.
async fn be_peers(peers: usize, offers: mpsc::UnboundedSender<(String, oneshot::Sender<String>)>) {
    let identity = Identity::generate().expect("entropy");
    let mut setups = JoinSet::new();
    let mut connected = JoinSet::new();
    for n in 0..peers {
        let (identity, offers) = (identity.clone(), offers.clone());
        setups.spawn(async move {
            let socket = Server::bind(loopback(), config(identity, IceMode::Full)).await;
            let socket = socket.expect("a socket");
            let (offer, mut connection) = socket.offer().expect("no limit is reached");
            let (answer, answered) = oneshot::channel();
            offers.send((offer, answer)).expect("signalling");
            connection.accept(&answered.await.expect("an answer")).expect("an answer that fits");
            while connection.event().await.expect("a connection") != Event::Connected {}
            (socket, connection)
        });
        if n + 1 >= SETUPS {
            connected.spawn(drain(setups.join_next().await.expect("one").expect("no panic")));
        }
    }
    drop(offers);
    while let Some(one) = setups.join_next().await {
        connected.spawn(drain(one.expect("no panic")));
    }
    connected.join_all().await;
}

fn loopback() -> std::net::SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

fn config(identity: Identity, mode: IceMode) -> ServeConfig {
    let agent = AgentConfig::new(identity).setup_timeout(PATIENCE).consent_timeout(PATIENCE);
    let mut config = ServeConfig::new(agent).offers_per_second(u32::MAX);
    config.agent.ice = mode;
    let association = config.agent.association;
    config.agent.association =
        association.association_max_retrans(u32::MAX).path_max_retrans(u32::MAX);
    config
}

/// Receives all snapshots, and closes the connection.
async fn drain((socket, mut connection): (Server, Connection)) {
    let mut snapshots = 0;
    while snapshots < ROUNDS {
        match connection.event().await.expect("an event before the last one") {
            Event::Message { .. } => snapshots += 1,
            Event::Closed(reason) => panic!("{reason}, after {snapshots} snapshots"),
            _ => {}
        }
    }
    drop(connection);
    // The server is notified.
    tokio::time::sleep(Duration::from_millis(500)).await;
    drop(socket);
}

/// Runs the server in this process: reads offers from standard input, and writes answers and the cost to standard
/// output.
#[must_use]
pub fn be_server(peers: usize) -> ExitCode {
    pin();
    let (offers, offered) = mpsc::unbounded_channel();
    // Detached: it waits for the next line until the process ends.
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            let Ok(offer) = serde_json::from_str::<String>(&line) else { return };
            if offers.send(offer).is_err() {
                return;
            }
        }
    });
    let cost = runtime().block_on(serve(peers, offered));
    println!("{}", serde_json::to_string(&cost).expect("a plain value"));
    ExitCode::SUCCESS
}

/// Pins this process to one core, the last of those that it may use.
fn pin() {
    let Ok(allowed) = sched_getaffinity(None) else { return };
    let last = (0..CpuSet::MAX_CPU).rev().find(|&cpu| allowed.is_set(cpu));
    let mut one = CpuSet::new();
    if let Some(last) = last {
        one.set(last);
        // Where it is not allowed, the figure is that of a thread that moves between cores.
        let _ = sched_setaffinity(None, &one);
    }
}

async fn serve(peers: usize, mut offered: mpsc::UnboundedReceiver<String>) -> Cost {
    let identity = Identity::generate().expect("entropy");
    let server = Server::bind(loopback(), config(identity, IceMode::Lite)).await;
    let server = server.expect("a socket");
    let begun = process_cpu_time();
    let mut setups = JoinSet::new();
    for _ in 0..peers {
        let offer = offered.recv().await.expect("an offer");
        let (answer, connection) = server.answer(&offer).expect("an offer that fits");
        println!("{}", serde_json::Value::from(answer));
        setups.spawn(open(connection));
    }
    let connections = setups.join_all().await;
    let setup_seconds = (process_cpu_time() - begun).as_secs_f64() / peers as f64;
    let mut readers = JoinSet::new();
    let mut senders = Vec::new();
    for (mut connection, channel) in connections {
        senders.push((connection.sender(), channel));
        // As an application does; until the peer closes the connection.
        readers.spawn(async move { while connection.event().await.is_some() {} });
    }
    let share = send_rounds(senders).await;
    readers.join_all().await;
    Cost { share, setup_seconds }
}

/// Opens the channel for snapshots.
async fn open(mut connection: Connection) -> (Connection, ChannelId) {
    while connection.event().await.expect("a connection") != Event::Connected {}
    let config = ChannelConfig::new("snapshots").ordered(false);
    let channel = connection.open(config).expect("a channel");
    loop {
        if let Event::ChannelOpened { .. } = connection.event().await.expect("a connection") {
            return (connection, channel);
        }
    }
}

/// The share of the processor in all rounds: its time per time that the rounds are to take, so that it is above 1 for
/// a server that cannot keep the rate. Peers get their snapshots at different times of a round, as if each had joined
/// at a time of its own.
async fn send_rounds(senders: Vec<(Sender, ChannelId)>) -> f64 {
    let interval = Duration::from_secs_f64(1.0 / RATE);
    let peers = senders.len();
    let barrier = Arc::new(Barrier::new(peers + 1));
    let mut tasks = JoinSet::new();
    for (n, (sender, channel)) in senders.into_iter().enumerate() {
        let barrier = Arc::clone(&barrier);
        let offset = interval.mul_f64(n as f64 / peers as f64);
        tasks.spawn(async move {
            barrier.wait().await;
            tokio::time::sleep(offset).await;
            let mut ticks = tokio::time::interval(interval);
            for _ in 0..ROUNDS {
                ticks.tick().await;
                let snapshot = Message::binary(vec![7; SNAPSHOT_BYTES]);
                sender.send(channel, snapshot).await.expect("a connection");
            }
        });
    }
    barrier.wait().await;
    let begun = process_cpu_time();
    tasks.join_all().await;
    // The acknowledgements of the last round.
    tokio::time::sleep(interval).await;
    (process_cpu_time() - begun).as_secs_f64() / (interval * ROUNDS).as_secs_f64()
}

/// The row, of `repetitions` runs.
#[must_use]
pub fn measure(repetitions: usize) -> Vec<Row> {
    let runs: Result<Vec<Cost>, String> = (0..repetitions).map(|_| run(PEERS)).collect();
    let runs = match runs {
        Ok(runs) => runs,
        Err(why) => return vec![Row::not_run(WHAT, "the share of one processor", &why)],
    };
    let share = median(&runs.iter().map(|it| it.share).collect::<Vec<_>>());
    let setup = median(&runs.iter().map(|it| it.setup_seconds).collect::<Vec<_>>());
    vec![Row {
        what: format!("{WHAT}: {PEERS} peers at {RATE} Hz, {SNAPSHOT_BYTES} bytes"),
        ours: format!("{:.0} % of a processor", share * 100.0),
        against: "the share of one processor".into(),
        theirs: format!("{:.0} %", MOST * 100.0),
        ratio: Some(share / MOST),
        target: Target::AtMost(1.0),
        note: format!(
            "Processor time of the server's process, on one core: system calls, DTLS and \
             acknowledgements included. A setup: {:.2} ms.",
            setup * 1e3
        ),
    }]
}
