//! How long messages take over UDP sockets of this machine and the real-time emulator: ours against
//! what others would use, each behind the same loop, with the same programs at both ends.
//!
//! All contestants run at once, each over an emulator of its own with the same seed: the n-th packet of
//! either way meets the same fate.

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rexmit::clock;
use rexmit::emulator::{Emulator, EmulatorConfig};
use rexmit_core::{Instant, Machine, Route, Seed};
use rexmit_lab::hosts::{Host, Layer, Thin, ThinPlan, ThinReceiver, ThinSender, Transport};
use rexmit_lab::rivals::{Rival, RivalEndpoint, Role};
use rexmit_netsim::network::PointToPoint;
use rexmit_sctp::recovery::RecoveryConfig;
use rexmit_sctp::{AssociationConfig, Endpoint, EndpointConfig};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::report::{Row, Target};

const WHAT: &str = "latency over UDP, 5 % lost: p99";
const PATH: &str = "delay 50ms loss 5%";
const PORT: u16 = 7000;
const INTERVAL_MS: u64 = 50;
const MESSAGES: u64 = 1200;
/// For the connection before, and what is under way after.
const MARGIN: Duration = Duration::from_secs(15);
const NOTE: &str = "1200 messages of 100 bytes, 50 ms apart, in order, through the emulator; ours with \
                    the profile interactive; bytes are those on the wire per byte of payload";

const RIVALS: [(&str, Rival); 5] = [
    ("dcsctp", Rival::DcSctp { is_tuned: false }),
    ("dcsctp, tuned", Rival::DcSctp { is_tuned: true }),
    ("sctp-proto", Rival::SctpProto),
    ("KCP, turbo", Rival::Kcp),
    ("quinn", Rival::Quinn),
];

/// What came of a contestant.
struct Measured {
    p99: Duration,
    /// On the wire, per byte of payload.
    bytes: f64,
}

impl Measured {
    fn in_words(&self) -> String {
        format!("{:.0} ms, {:.2} bytes", self.p99.as_secs_f64() * 1e3, self.bytes)
    }
}

/// A row for each rival.
#[must_use]
pub fn measure() -> Vec<Row> {
    let ours = thread::spawn(|| carry(0, |role, seed| Ok(ours(role, seed))));
    let theirs = RIVALS.map(|(name, rival)| {
        let port = if rival.is_over_udp() { PORT } else { 0 };
        let make = move |role, seed: &Seed| RivalEndpoint::new(rival, role, false, seed);
        (name, thread::spawn(move || carry(port, make)))
    });
    let finished =
        |run: thread::JoinHandle<_>| run.join().unwrap_or_else(|_| Err("it broke".into()));
    let ours = finished(ours);
    theirs.map(|(name, run)| row(name, &ours, &finished(run))).into()
}

fn row(name: &str, ours: &Result<Measured, String>, theirs: &Result<Measured, String>) -> Row {
    match (ours, theirs) {
        (Ok(ours), Ok(theirs)) => Row {
            what: WHAT.into(),
            ours: ours.in_words(),
            against: name.into(),
            theirs: theirs.in_words(),
            ratio: Some(ours.p99.as_secs_f64() / theirs.p99.as_secs_f64()),
            target: Target::AtMost(1.0),
            note: NOTE.into(),
        },
        (Err(why), _) | (_, Err(why)) => Row::not_run(WHAT, name, why),
    }
}

fn ours(role: Role, seed: &Seed) -> Endpoint {
    let recovery = RecoveryConfig::profile("interactive").expect("a known profile");
    let association = Arc::new(AssociationConfig { recovery, ..AssociationConfig::default() });
    let accept = role == Role::Accepts;
    let config = EndpointConfig { port: PORT, accept, association, ..EndpointConfig::default() };
    Endpoint::new(config, seed).expect("a valid configuration")
}

/// Carries the messages from one end to another, which `make` makes on the threads where they run.
/// `port` is that of the ways that they are told.
fn carry<T: Transport>(
    port: u16,
    make: impl Fn(Role, &Seed) -> Result<T, String> + Copy + Send + 'static,
) -> Result<Measured, String> {
    let in_words = |error: io::Error| error.to_string();
    let any: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    let [near, far] = [UdpSocket::bind(any), UdpSocket::bind(any)].map(|one| one.map_err(in_words));
    let (near, far) = (near?, far?);
    let path: rexmit_netsim::path::PathConfig = PATH.parse().expect("the words of a path");
    let mut config = EmulatorConfig::new(any, far.local_addr().map_err(in_words)?);
    (config.forward, config.backward) = (path.clone(), path);
    let emulator = Emulator::start(&config).map_err(|error| error.to_string())?;
    near.connect(emulator.local_addr()).map_err(in_words)?;
    let source = (0..MESSAGES).map(|n| (Instant::from_millis(n * INTERVAL_MS), 100));
    let plan = ThinPlan::new(source, Instant::FAR_FUTURE);
    let seed = Seed::from_u64(1);
    let [from, to] = PointToPoint::ADDRESSES.map(|address| SocketAddr::new(address, port));
    let begin = clock::now();
    let until = begin + Duration::from_millis(MESSAGES * INTERVAL_MS) + MARGIN;
    let (own_plan, own_seed) = (plan.clone(), seed.split("receiver"));
    let receiver = thread::spawn(move || {
        let program = ThinReceiver::<T>::new(own_plan);
        let mut host = Host::new(make(Role::Accepts, &own_seed)?, program);
        drive(&mut host, &far, Route { local: to, remote: from }, until).map_err(in_words)?;
        let receiver = host.program::<ThinReceiver<T>>().expect("it runs there");
        let missing = MESSAGES - receiver.delivered();
        let p99 = receiver.latency(Layer::Application).quantile(0.99);
        if missing > 0 { Err(format!("{missing} messages did not arrive")) } else { Ok(p99) }
    });
    let to = SocketAddr::new(to.ip(), PORT);
    let thin = Thin {
        start: begin,
        stays_open: true,
        waits_for_connection: true,
        ..Thin::new(SocketAddr::new(from.ip(), 0), to)
    };
    let sender = ThinSender::<T>::new(thin, plan);
    let mut host = Host::new(make(Role::Connects, &seed.split("sender"))?, sender);
    let route = Route { local: from, remote: SocketAddr::new(to.ip(), port) };
    let bytes = drive(&mut host, &near, route, until).map_err(in_words)?;
    let p99 = receiver.join().map_err(|_| "the receiver broke".to_owned())??;
    drop(emulator.stop());
    Ok(Measured { p99, bytes: bytes as f64 / (100 * MESSAGES) as f64 })
}

/// IP and UDP headers.
const HEADER_BYTES: u64 = 28;
/// The largest packet that any of them sends.
const MAX_PACKET_BYTES: usize = 2048;

/// Runs `machine` over `socket` until the time has come; returns the bytes that it sent. Who has not
/// been heard of cannot be sent to: a socket without a peer waits for its first packet.
fn drive(
    machine: &mut impl Machine<Event = Infallible>,
    socket: &UdpSocket,
    route: Route,
    until: Instant,
) -> io::Result<u64> {
    let (mut sent_bytes, mut packet, mut buffer) = (0, Vec::new(), [0; MAX_PACKET_BYTES]);
    loop {
        let now = clock::now();
        if now >= until {
            return Ok(sent_bytes);
        }
        if machine.poll_timeout().is_some_and(|at| at <= now) {
            machine.handle_timeout(now);
        }
        while machine.poll_transmit(now, &mut packet).is_some() {
            socket.send(&packet)?;
            sent_bytes += packet.len() as u64 + HEADER_BYTES;
        }
        let due = machine.poll_timeout().map_or(until, |at| at.clamp(now, until));
        if !is_readable(socket, due - now)? {
            continue;
        }
        let (len, from) = socket.recv_from(&mut buffer)?;
        if socket.peer_addr().is_err() {
            socket.connect(from)?;
        }
        machine.handle_input(clock::now(), route, &buffer[..len]);
    }
}

/// Waits for a packet, to the microsecond: a socket's own timeout counts in milliseconds.
fn is_readable(socket: &UdpSocket, wait: Duration) -> io::Result<bool> {
    let wait = Timespec::try_from(wait).map_err(io::Error::other)?;
    let mut sockets = [PollFd::new(socket, PollFlags::IN)];
    Ok(poll(&mut sockets, Some(&wait))? > 0)
}
