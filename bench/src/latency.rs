//! The latency of messages over UDP sockets of this machine and the real-time emulator: ours compared with other
//! implementations, each driven by the same loop, with the same programs at both ends.
//!
//! All contestants run at the same time, each on its own thread with several connections. Each connection has its own
//! emulator. The emulators of the n-th connection of all contestants have the same seed, so that the n-th packet of a
//! direction is lost for all of them or for none.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rexmit::clock;
use rexmit::emulator::{Emulator, EmulatorConfig};
use rexmit_core::{Instant, Machine, Route, Seed};
use rexmit_lab::bound::{Bound, LossModel, Strategy};
use rexmit_lab::hosts::{Host, Layer, Thin, ThinPlan, ThinReceiver, ThinSender, Transport};
use rexmit_lab::measure::LatencyDistribution;
use rexmit_lab::rivals::{DcSctpProfile, QuinnProfile, Rival, RivalEndpoint, Role};
use rexmit_netsim::network::PointToPoint;
use rexmit_netsim::path::PathConfig;
use rexmit_sctp::recovery::{Deadline, RecoveryConfig};
use rexmit_sctp::{AssociationConfig, Endpoint, EndpointConfig};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::report::{Row, Target};

const DELAY: Duration = Duration::from_millis(50);
const LOSS: f64 = 0.05;
const PORT: u16 = 7000;
const INTERVAL: Duration = Duration::from_millis(50);
/// Of each connection.
const MESSAGES: u64 = 1200;
const MESSAGE_BYTES: usize = 100;
/// Of each contestant: enough for a hundred messages beyond the 99th percentile, and ten beyond
/// the 99.9th.
const CONNECTIONS: u32 = 8;
/// Extra time: for the connection setup before, and for data in flight after the load.
const MARGIN: Duration = Duration::from_secs(15);
const NOTE: &str = "8 connections with 1200 messages of 100 bytes, 50 ms apart, in order, through the emulator: \
                    the 99th and the 99.9th percentile, and bytes on the wire per byte of payload; the ratio \
                    is that of the 99th percentiles";
const IDEAL_NOTE: &str = "the best possible if a copy is sent a round trip after a lost one (interactive), \
                          or copies in all later messages (interactive-redundant)";

/// The deadline of one contestant, and the share of messages that should meet it.
const DEADLINE: (Duration, f64) = (Duration::from_millis(150), 0.999);

/// A profile of ours, and whether its messages have a deadline.
#[derive(Clone, Copy)]
struct Ours {
    name: &'static str,
    profile: &'static str,
    has_deadline: bool,
}

const OURS: [Ours; 3] = [
    Ours { name: "interactive", profile: "interactive", has_deadline: false },
    Ours { name: "interactive-redundant", profile: "interactive-redundant", has_deadline: false },
    Ours { name: "interactive, 99.9 % within 150 ms", profile: "interactive", has_deadline: true },
];

const RIVALS: [(&str, Rival); 5] = [
    ("dcsctp", Rival::DcSctp(DcSctpProfile::Default)),
    ("dcsctp, tuned", Rival::DcSctp(DcSctpProfile::Tuned)),
    ("sctp-proto", Rival::SctpProto),
    ("KCP, turbo", Rival::Kcp { is_tuned: false }),
    ("quinn", Rival::Quinn(QuinnProfile::Default)),
];

/// The measurements of one contestant.
struct Measured {
    latency: LatencyDistribution,
    /// On the wire, per byte of payload.
    bytes: f64,
}

impl Measured {
    fn in_words(&self) -> String {
        format!("{}, {:.2} bytes", in_words(|at| self.latency.quantile(at)), self.bytes)
    }

    fn p99(&self) -> f64 {
        self.latency.quantile(0.99).as_secs_f64()
    }
}

fn in_words(quantile: impl Fn(f64) -> Duration) -> String {
    let [p99, p999] = [0.99, 0.999].map(|at| quantile(at).as_secs_f64() * 1e3);
    format!("{p99:.0} / {p999:.0} ms")
}

/// For each of our profiles, a row for each rival, and one for the theoretical bound.
#[must_use]
pub fn measure() -> Vec<Row> {
    let ours = OURS.map(|which| {
        thread::spawn(move || carry(0, move |role, seed| Ok(ours(which, role, seed))))
    });
    let theirs = RIVALS.map(|(name, rival)| {
        let port = if rival.is_over_udp() { PORT } else { 0 };
        let make = move |role, seed: &Seed| RivalEndpoint::new(rival, role, false, seed);
        (name, thread::spawn(move || carry(port, make)))
    });
    let finished =
        |run: thread::JoinHandle<_>| run.join().unwrap_or_else(|_| Err("it broke".into()));
    let ours = ours.map(finished);
    let theirs = theirs.map(|(name, run)| (name, finished(run)));
    let mut rows = Vec::new();
    for (which, ours) in OURS.iter().zip(&ours) {
        let what = format!("latency over UDP, 5 % lost: {}", which.name);
        rows.extend(theirs.iter().map(|(name, theirs)| row(&what, ours, name, theirs)));
        let ideal = ours.as_ref().ok().zip(ideal(*which));
        rows.extend(ideal.map(|(ours, ideal)| row_of_ideal(&what, ours, &ideal)));
    }
    rows
}

fn row(
    what: &str,
    ours: &Result<Measured, String>,
    name: &str,
    theirs: &Result<Measured, String>,
) -> Row {
    match (ours, theirs) {
        (Ok(ours), Ok(theirs)) => Row {
            what: what.into(),
            ours: ours.in_words(),
            against: name.into(),
            theirs: theirs.in_words(),
            ratio: Some(ours.p99() / theirs.p99()),
            target: Target::AtMost(1.0),
            note: NOTE.into(),
        },
        (Err(why), _) | (_, Err(why)) => Row::not_run(what, name, why),
    }
}

/// The theoretical bound of a profile; `None` with a deadline, which is the target itself.
fn ideal(which: Ours) -> Option<Bound> {
    let of = |strategy| Bound::new(strategy, DELAY, LossModel::Uniform(LOSS));
    match which {
        Ours { has_deadline: true, .. } => None,
        Ours { profile: "interactive", .. } => Some(of(Strategy::Reactive).in_order(INTERVAL)),
        // A packet that arrives brings all that is missing before it: in order nothing waits longer.
        _ => Some(of(Strategy::Bundled { interval: INTERVAL })),
    }
}

fn row_of_ideal(what: &str, ours: &Measured, ideal: &Bound) -> Row {
    Row {
        what: what.into(),
        ours: ours.in_words(),
        against: "ideal, in order".into(),
        theirs: in_words(|at| ideal.quantile(at)),
        ratio: Some(ours.p99() / ideal.quantile(0.99).as_secs_f64()),
        target: Target::None,
        note: IDEAL_NOTE.into(),
    }
}

fn ours(which: Ours, role: Role, seed: &Seed) -> Endpoint {
    let mut recovery = RecoveryConfig::profile(which.profile).expect("a known profile");
    let (within, probability) = DEADLINE;
    recovery.thin.deadline = which.has_deadline.then(|| Deadline::new(within, probability));
    let association = Arc::new(AssociationConfig::rfc9260().recovery(recovery));
    let accept = role == Role::Accepts;
    let config = EndpointConfig::default().port(PORT).accept(accept).association(association);
    Endpoint::new(config, seed).expect("a valid configuration")
}

/// Carries the messages of all connections, whose ends are created by `make`. `port` is the UDP port in their routes.
fn carry<T: Transport>(
    port: u16,
    make: impl Fn(Role, &Seed) -> Result<T, String>,
) -> Result<Measured, String> {
    let begin = clock::now();
    let open = |n| Connection::open(n, begin + INTERVAL * n / CONNECTIONS, port, &make);
    let mut connections = (0..CONNECTIONS).map(open).collect::<Result<Vec<_>, _>>()?;
    let until = begin + INTERVAL * MESSAGES as u32 + MARGIN;
    drive::<T>(&mut connections, until).map_err(|error| error.to_string())?;
    let (mut latency, mut sent_bytes) = (LatencyDistribution::new(), 0);
    for connection in &connections {
        latency.merge(&connection.receiver::<T>().latency(Layer::Application));
        sent_bytes += connection.ends[0].sent_bytes;
    }
    let messages = MESSAGES * u64::from(CONNECTIONS);
    let missing = messages - latency.count();
    if missing > 0 {
        return Err(format!("{missing} messages did not arrive"));
    }
    let bytes = sent_bytes as f64 / (messages as f64 * MESSAGE_BYTES as f64);
    Ok(Measured { latency, bytes })
}

/// A thin stream over its own emulator.
struct Connection {
    /// The sender's and the receiver's.
    ends: [End; 2],
    /// Stops when it is dropped.
    _emulator: Emulator,
}

/// A host behind a socket.
struct End {
    host: Host,
    socket: UdpSocket,
    route: Route,
    sent_bytes: u64,
}

impl Connection {
    /// Connection `n`, which begins at `start`.
    fn open<T: Transport>(
        n: u32,
        start: Instant,
        port: u16,
        make: impl Fn(Role, &Seed) -> Result<T, String>,
    ) -> Result<Self, String> {
        let seed = Seed::from_u64(u64::from(n) + 1);
        let in_words = |error: io::Error| error.to_string();
        let any: SocketAddr = "127.0.0.1:0".parse().expect("an address");
        let [near, far] =
            [UdpSocket::bind(any), UdpSocket::bind(any)].map(|one| one.map_err(in_words));
        let (near, far) = (near?, far?);
        let mut config = EmulatorConfig::new(any, far.local_addr().map_err(in_words)?);
        let path = format!("delay {}ms loss {}%", DELAY.as_millis(), LOSS * 100.0);
        let path: PathConfig = path.parse().expect("the words of a path");
        (config.forward, config.backward) = (path.clone(), path);
        config.seed = seed.split("emulator");
        let emulator = Emulator::start(&config).map_err(|error| error.to_string())?;
        near.connect(emulator.local_addr()).map_err(in_words)?;
        let source = (0..MESSAGES).map(|n| (Instant::ZERO + INTERVAL * n as u32, MESSAGE_BYTES));
        let plan = ThinPlan::new(source, Instant::FAR_FUTURE);
        let [from, to] = PointToPoint::ADDRESSES.map(|address| SocketAddr::new(address, port));
        let thin = Thin {
            start,
            stays_open: true,
            waits_for_connection: true,
            ..Thin::new(SocketAddr::new(from.ip(), 0), SocketAddr::new(to.ip(), PORT))
        };
        let receiver = ThinReceiver::<T>::new(plan.clone());
        let receiver = Host::new(make(Role::Accepts, &seed.split("receiver"))?, receiver);
        let sender = ThinSender::<T>::new(thin, plan);
        let sender = Host::new(make(Role::Connects, &seed.split("sender"))?, sender);
        let end = |host, socket, [local, remote]: [SocketAddr; 2]| End {
            host,
            socket,
            route: Route { local, remote },
            sent_bytes: 0,
        };
        let ends = [end(sender, near, [from, to]), end(receiver, far, [to, from])];
        Ok(Self { ends, _emulator: emulator })
    }

    fn receiver<T: Transport>(&self) -> &ThinReceiver<T> {
        self.ends[1].host.program().expect("it runs there")
    }
}

/// IP and UDP headers.
const HEADER_BYTES: u64 = 28;
/// The largest packet of any contestant.
const MAX_PACKET_BYTES: usize = 2048;

/// Drives both ends of all connections until all messages have arrived, or the time limit is reached.
fn drive<T: Transport>(connections: &mut [Connection], until: Instant) -> io::Result<()> {
    let is_through = |one: &Connection| one.receiver::<T>().delivered() >= MESSAGES;
    let mut buffer = Vec::new();
    while clock::now() < until && !connections.iter().all(is_through) {
        let mut due = until;
        for end in connections.iter_mut().flat_map(|one| &mut one.ends) {
            due = due.min(end.send(&mut buffer)?.unwrap_or(until));
        }
        let ends = || connections.iter().flat_map(|one| &one.ends);
        let readable = readable(ends().map(|end| &end.socket), due)?;
        let ends = connections.iter_mut().flat_map(|one| &mut one.ends);
        for (end, _) in ends.zip(readable).filter(|(_, is_readable)| *is_readable) {
            end.receive()?;
        }
    }
    Ok(())
}

impl End {
    /// Handles the timers that are due, and sends packets. Returns the time of the next timer.
    fn send(&mut self, packet: &mut Vec<u8>) -> io::Result<Option<Instant>> {
        let now = clock::now();
        let Self { host, socket, sent_bytes, .. } = self;
        if host.poll_timeout().is_some_and(|at| at <= now) {
            host.handle_timeout(now);
        }
        while host.poll_transmit(now, packet).is_some() {
            socket.send(packet)?;
            *sent_bytes += packet.len() as u64 + HEADER_BYTES;
        }
        Ok(host.poll_timeout())
    }

    /// Processes a packet. A socket without a peer answers to the source of its first packet.
    fn receive(&mut self) -> io::Result<()> {
        let mut buffer = [0; MAX_PACKET_BYTES];
        let (len, from) = self.socket.recv_from(&mut buffer)?;
        if self.socket.peer_addr().is_err() {
            self.socket.connect(from)?;
        }
        self.host.handle_input(clock::now(), self.route, &buffer[..len]);
        Ok(())
    }
}

/// Waits until `due` for a packet, with microsecond precision: a socket's own timeout counts in milliseconds. Returns
/// which of the sockets have one.
fn readable<'a>(
    sockets: impl Iterator<Item = &'a UdpSocket>,
    due: Instant,
) -> io::Result<Vec<bool>> {
    let now = clock::now();
    let wait = Timespec::try_from(due.max(now) - now).map_err(io::Error::other)?;
    let mut sockets: Vec<_> = sockets.map(|socket| PollFd::new(socket, PollFlags::IN)).collect();
    poll(&mut sockets, Some(&wait))?;
    Ok(sockets.iter().map(|socket| socket.revents().contains(PollFlags::IN)).collect())
}
