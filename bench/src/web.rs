//! The speed of the simulator, relative to real time, in the standard experiment of the thin-stream studies: web
//! traffic fills a bottleneck, through which a thin stream is sent.

use std::net::SocketAddr;
use std::time::Duration;

use rexmit_core::{Instant, Seed};
use rexmit_lab::hosts::{
    Host, Layer, Thin, ThinPlan, ThinReceiver, ThinSender, WebClients, WebLoad, WebServer,
};
use rexmit_netsim::network::{Direction, Dumbbell, Network};
use rexmit_netsim::path::PathConfig;
use rexmit_netsim::source::{WebClient, WebClientSource};
use rexmit_sctp::Endpoint as Sctp;
use rexmit_tcp::Endpoint as Tcp;

use crate::report::{Row, Target};
use crate::sample::{cpu_time, median, median_ratio, monotonic};

const CLIENTS: u32 = 81;
const MINUTES: u64 = 10;
const BOTTLENECK: &str = "delay 45ms rate 10mbit limit 100";
const ACCESS: &str = "delay 2.5ms rate 100mbit limit 1000";
const INTERVAL: Duration = Duration::from_millis(250);
const MESSAGE_BYTES: usize = 100;
const PORT: u16 = 5000;
const LIMIT: f64 = 100.0;
/// How much faster two threads are to be.
const LEAST_SPEEDUP: f64 = 1.6;

/// The measurements of one run.
#[derive(PartialEq, Debug)]
pub struct Run {
    /// The number of files received, and of their bytes.
    pub files: (u64, u64),
    /// The number of messages of the thin stream, all of which arrived.
    pub messages: u64,
    /// Packets that entered the bottleneck towards the clients, and those dropped at its queue.
    pub packets: (u64, u64),
    /// Simulator events.
    pub events: u64,
}

fn tcp(seed: &Seed) -> Tcp {
    let mut endpoint = Tcp::new(
        {
            let connection = rexmit_tcp::ConnectionConfig::sack().into();
            rexmit_tcp::EndpointConfig::default().connection(connection)
        },
        seed,
    )
    .expect("valid");
    endpoint.listen(PORT, None).expect("a free port");
    endpoint
}

fn sctp(seed: &Seed) -> Sctp {
    let association = rexmit_sctp::AssociationConfig::rfc9260().into();
    let config =
        rexmit_sctp::EndpointConfig::default().port(PORT).accept(true).association(association);
    Sctp::new(config, seed).expect("valid")
}

/// The hosts: those on the left receive, those on the right send. The first pair is for the web, the second for the
/// thin stream.
fn hosts(seed: &Seed, end: Instant) -> [[Host; 2]; 2] {
    let left = |n| SocketAddr::new(Dumbbell::left_address(n), 0);
    let right = |n| SocketAddr::new(Dumbbell::right_address(n), 0);
    let listening = |address: SocketAddr| SocketAddr::new(address.ip(), PORT);
    let web = WebClient { stop: end, ..WebClient::default() };
    let client = |n| web.source(&seed.split(&format!("client {n}"))).expect("the default is valid");
    let load = WebLoad::new(left(0), listening(right(0)));
    let messages = (1..).map(|n| (Instant::ZERO + INTERVAL * n, MESSAGE_BYTES));
    let plan = ThinPlan::new(messages, end);
    let thin = Thin::new(right(1), listening(left(1)));
    let part = |name: &str| seed.split(name);
    [
        [
            Host::new(tcp(&part("clients")), WebClients::new(load, (0..CLIENTS).map(client))),
            Host::new(sctp(&part("receiver")), ThinReceiver::new(plan.clone())),
        ],
        [
            Host::new(tcp(&part("server")), WebServer::new()),
            Host::new(sctp(&part("sender")), ThinSender::new(thin, plan)),
        ],
    ]
}

/// Ten minutes in virtual time, on up to so many threads.
///
/// # Panics
/// If messages of the thin stream or files do not arrive, or if there are fewer threads.
#[must_use]
pub fn run(seed: u64, threads: usize) -> Run {
    let seed = Seed::from_u64(seed);
    let end = Instant::ZERO + Duration::from_secs(MINUTES * 60);
    let [left, right] = hosts(&seed, end);
    let path = |words: &str| words.parse::<PathConfig>().expect("the words of a path");
    let mut network = Network::for_threads(&seed);
    let dumbbell = Dumbbell::build(&mut network, left, right, &path(ACCESS), &path(BOTTLENECK))
        .expect("a new network");
    let used = network.run_on_threads(end, threads).expect("the network rests");
    assert_eq!(used, threads, "the bottleneck divides it");
    let clients = network.machine(dumbbell.left[0]).program::<WebClients<Tcp, WebClientSource>>();
    let web = clients.expect("they run there").stats();
    let receiver = network.machine(dumbbell.left[1]).program::<ThinReceiver<Sctp>>();
    let messages = receiver.expect("it runs there").latency(Layer::Application).count();
    let link = network.link_stats(dumbbell.bottleneck, Direction::Backward).path;
    let planned = MINUTES * 60 * 1000 / INTERVAL.as_millis() as u64;
    // Some of the last ones may still be under way.
    assert!(messages > planned - 100, "{messages} messages");
    assert!(web.completed > web.asked * 9 / 10, "{} of {} files", web.completed, web.asked);
    assert_eq!(web.failed + web.damaged_pieces, 0, "connections broke, or files did");
    Run {
        files: (web.completed, web.received_bytes),
        messages,
        packets: (link.offered, link.lost_queue),
        events: network.stats().events,
    }
}

/// The speed of the simulator, `repetitions` times.
#[must_use]
pub fn measure(repetitions: usize) -> Vec<Row> {
    let mut speeds = Vec::new();
    let mut runs = Vec::new();
    for seed in 0..repetitions as u64 {
        let (done, elapsed) = cpu_time(|| run(seed, 1));
        speeds.push((MINUTES * 60) as f64 / elapsed.as_secs_f64());
        runs.push(done);
    }
    let (speed, last) = (median(&speeds), &runs[runs.len() - 1]);
    let (files, bytes) = last.files;
    let (packets, lost) = last.packets;
    let one = Row {
        what: format!("{CLIENTS} web clients and a thin stream, {MINUTES} min in virtual time"),
        ours: format!("{speed:.0} × real time"),
        against: "limit".into(),
        theirs: format!("{LIMIT:.0} × real time"),
        ratio: Some(speed / LIMIT),
        target: Target::AtLeast(1.0),
        note: format!(
            "10 Mbit/s, RTT 100 ms, 100 packets of queue; Pareto files of 9.2 kB in the mean, a TCP \
             connection each; SCTP with 4 messages/s. The last run: {files} files of {:.1} MB \
             together, {} messages, {:.1} % of {packets} packets lost, {} events; one thread.",
            bytes as f64 / 1e6,
            last.messages,
            100.0 * lost as f64 / packets as f64,
            last.events
        ),
    };
    vec![one, on_two_threads(repetitions)]
}

/// The same run on two threads, against one: wall time.
fn on_two_threads(repetitions: usize) -> Row {
    let what = format!("{CLIENTS} web clients and a thin stream on two threads");
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return Row::not_run(&what, "one thread", "needs two processors");
    }
    let timed = |seed, threads| {
        let start = monotonic();
        (run(seed, threads), (monotonic() - start).as_secs_f64())
    };
    let mut times = [Vec::new(), Vec::new()];
    for seed in 0..repetitions as u64 {
        let ((alone, one), (divided, two)) = (timed(seed, 1), timed(seed, 2));
        assert_eq!(alone, divided, "the same on one thread and on two");
        times[0].push(one);
        times[1].push(two);
    }
    let in_words = |times: &[f64]| format!("{:.2} s", median(times));
    Row {
        what,
        ours: in_words(&times[1]),
        against: "one thread".into(),
        theirs: in_words(&times[0]),
        ratio: Some(median_ratio(&times[0], &times[1])),
        target: Target::AtLeast(LEAST_SPEEDUP),
        note: "The same run, divided at the bottleneck (45 ms); all counters are equal. Wall time, which other programs on \
               the machine disturb."
            .into(),
    }
}
