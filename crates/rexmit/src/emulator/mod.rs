//! The link emulator: a relay in real time that treats packets as a path model says.
//!
//! There are two. [`Emulator`] relays UDP between sockets, and is described first; [`TunEmulator`]
//! relays IP packets between two TUN devices, so that any program runs over the modelled path.
//!
//! [`Emulator`] needs no privileges and nobody's cooperation: clients send to the emulator instead of the
//! server, and the server sees the emulator instead of the clients. Each client gets a socket of
//! its own towards the server, as behind a NAT, so that answers find their way back. The two
//! directions have a path each, which all clients share.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use rexmit::emulator::{Emulator, EmulatorConfig};
//! use rexmit::path::{Delay, PathConfig};
//! use std::time::Duration;
//! use tokio::net::UdpSocket;
//!
//! let server = UdpSocket::bind("127.0.0.1:0").await?;
//! let path = PathConfig {
//!     delay: Delay::constant(Duration::from_millis(5)),
//!     ..PathConfig::default()
//! };
//! let emulator = Emulator::start(&EmulatorConfig {
//!     forward: path.clone(),
//!     backward: path,
//!     ..EmulatorConfig::new("127.0.0.1:0".parse()?, server.local_addr()?)
//! })?;
//!
//! let client = UdpSocket::bind("127.0.0.1:0").await?;
//! client.send_to(b"ping", emulator.local_addr()).await?;
//! let mut packet = [0; 10];
//! let (len, from) = server.recv_from(&mut packet).await?;
//! assert_eq!(&packet[..len], b"ping");
//! server.send_to(b"pong", from).await?;
//! client.recv_from(&mut packet).await?;
//!
//! let statistics = emulator.stop()?;
//! assert_eq!(statistics.backward.arrivals.delivered, 1);
//! println!("late by {:?} at the 99th percentile", statistics.lateness.p99);
//! # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
//! ```
//!
//! # Precision
//!
//! The relay is a thread of its own that waits in `epoll` for packets, for a kernel timer
//! ([`clock`](crate::clock) says why) and for the end; it never spins. A packet enters the path at
//! the time at which the kernel received it, not when the relay got round to reading it, so what
//! the relay loses by being scheduled late it makes up for as long as the delay is longer. The
//! difference between the time at which a packet was to leave and the time at which the system call
//! that sent it returned is the packet's lateness, and is reported as [`Lateness`].
//!
//! What remains is the scheduler of a busy machine, against which the thread asks for a better
//! [`Priority`]. Measured by `cargo run --release -p rexmit --example emulator` with 1000 packets
//! per second over 50 ms ± 5 ms, on a virtual machine of two cores, 99th percentiles:
//!
//! | | with four busy loops and compilers besides |
//! |---|---|
//! | [`Priority::RealTime`] | 0.06 ms |
//! | [`Priority::ShortSlice`] | 1.6 ms to 4 ms |
//! | [`Priority::Normal`] | 17 ms to 71 ms |
//!
//! # Captures
//!
//! [`Emulator::start_capturing`] writes what leaves the link at either end, and what was dropped,
//! as a file for Wireshark. It shows the packets under the addresses of the clients and of the
//! server, as if they spoke to each other without an emulator between them.
//!
//! # IP packets
//!
//! [`TunEmulator`] does the same to whatever the kernel routes to two TUN devices: TCP, ICMP, UDP
//! with its real addresses. It is a cable, not a router: packets leave as they came, with the same
//! TTL and the same ECN field. They enter the path when they are read, as TUN devices have no time
//! stamps. See its example.
//!
//! # Limits
//!
//! [`EmulatorConfig`] names them: clients, their idle time, packets under way per direction. What
//! exceeds them is dropped and counted.

mod capture;
mod clients;
mod direction;
mod lateness;
mod priority;
mod relay;
mod running;
mod socket;
mod tun_link;
mod two_way;
mod udp_link;

use std::io::{self, Write};
use std::net::SocketAddr;
use std::time::Duration;

pub use rexmit_core::Seed;
use rexmit_netsim::path::{ArrivalStats, ConfigError, PathConfig, PathStats};
use serde::Serialize;
use thiserror::Error;

use crate::BindError;
pub use lateness::Lateness;
/// Values and whole paths as people write them.
pub mod netem {
    pub use rexmit_netsim::netem::NetemError;
    pub use rexmit_netsim::units::{
        UnitError, format_duration, parse_duration, parse_probability, parse_rate, parse_size,
    };
}
pub use priority::Priority;
use relay::Relay;
/// What a path does to packets.
pub use rexmit_netsim::path;
use running::Running;
pub use tun_link::TunEmulator;
use udp_link::UdpLink;

/// What the emulator is to do.
#[derive(Clone, Debug)]
pub struct EmulatorConfig {
    /// Where clients send to. Port 0 lets the system choose.
    pub listen: SocketAddr,
    /// The server their packets are forwarded to.
    pub to: SocketAddr,
    /// The path from the clients to the server.
    pub forward: PathConfig,
    /// The path from the server to the clients.
    pub backward: PathConfig,
    /// Most clients at a time; packets of others are dropped. Default 1024.
    pub max_clients: usize,
    /// A client that neither sent nor received for so long is forgotten. Default 60 s.
    pub client_idle_timeout: Duration,
    /// Most packets under way in each direction; more are dropped. Default 100,000.
    pub max_packets_under_way: usize,
    /// Whether the relay's thread asks for the best [`Priority`] that the system grants it. Default
    /// true: without it, a busy machine shows in the delays.
    pub raise_priority: bool,
    /// Where the paths' randomness comes from. Default `Seed::from_u64(1)`: the same packets in the
    /// same order meet the same fate in each run.
    pub seed: Seed,
}

impl EmulatorConfig {
    /// Two perfect paths and the default limits.
    #[must_use]
    pub fn new(listen: SocketAddr, to: SocketAddr) -> Self {
        let link = LinkConfig::default();
        Self {
            listen,
            to,
            forward: link.forward,
            backward: link.backward,
            max_clients: 1024,
            client_idle_timeout: Duration::from_secs(60),
            max_packets_under_way: link.max_packets_under_way,
            raise_priority: link.raise_priority,
            seed: link.seed,
        }
    }

    fn link(&self) -> LinkConfig {
        LinkConfig {
            forward: self.forward.clone(),
            backward: self.backward.clone(),
            max_packets_under_way: self.max_packets_under_way,
            raise_priority: self.raise_priority,
            seed: self.seed.clone(),
        }
    }
}

/// What every emulator is to do, whatever its packets come from.
#[derive(Clone, Debug)]
pub struct LinkConfig {
    /// The path from the near end to the far one.
    pub forward: PathConfig,
    /// The path back.
    pub backward: PathConfig,
    /// As [`EmulatorConfig::max_packets_under_way`].
    pub max_packets_under_way: usize,
    /// As [`EmulatorConfig::raise_priority`].
    pub raise_priority: bool,
    /// As [`EmulatorConfig::seed`].
    pub seed: Seed,
}

impl Default for LinkConfig {
    fn default() -> Self {
        Self {
            forward: PathConfig::default(),
            backward: PathConfig::default(),
            max_packets_under_way: 100_000,
            raise_priority: true,
            seed: Seed::from_u64(1),
        }
    }
}

/// Why the emulator did not start.
#[derive(Debug, Error)]
pub enum EmulatorError {
    /// The address to listen on cannot be had.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// A path that cannot be.
    #[error("the {direction} path: {source}")]
    Path {
        /// `forward` or `backward`.
        direction: &'static str,
        /// What is wrong with it.
        source: ConfigError,
    },
    /// The system refused something that it normally grants.
    #[error("the emulator could not be set up: {0}")]
    Io(#[from] io::Error),
}

/// What the emulator has done so far.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct EmulatorStatistics {
    /// Packets from the clients to the server.
    pub forward: DirectionStatistics,
    /// Packets from the server to the clients.
    pub backward: DirectionStatistics,
    /// Clients known now.
    pub clients: usize,
    /// Packets dropped because they came from one client too many.
    pub refused: u64,
    /// Packets that are missing in the capture, because its writer failed or did not keep up.
    pub uncaptured: u64,
    /// How late packets left, both directions together.
    pub lateness: Lateness,
    /// How the relay's thread is scheduled.
    pub priority: Priority,
}

/// What became of the packets of one direction.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct DirectionStatistics {
    /// What the path decided.
    pub path: PathStats,
    /// What came out of it.
    pub arrivals: ArrivalStats,
    /// Dropped because too many packets were under way.
    pub overflowed: u64,
    /// Came out of the path but could not be sent: the client is forgotten, the socket's buffer is
    /// full, or the system refused.
    pub unsent: u64,
}

/// A running emulator of a link for UDP. Dropping it stops it.
#[derive(Debug)]
pub struct Emulator {
    local_addr: SocketAddr,
    running: Running,
}

impl Emulator {
    /// Listens, and relays from now on, in a thread of its own.
    ///
    /// # Errors
    /// When the address cannot be had or a path cannot be.
    pub fn start(config: &EmulatorConfig) -> Result<Self, EmulatorError> {
        let relay = Self::relay(config)?;
        let local_addr = relay.link().local_addr()?;
        Ok(Self { local_addr, running: Running::start(relay)? })
    }

    /// As [`start`](Self::start), and writes a capture (pcapng, nanosecond time stamps).
    ///
    /// Of both directions it has what leaves the link, when it left, and what was dropped, when it
    /// arrived; the latter with a comment that says why, so that `frame.comment contains "lost"` is
    /// a display filter for it. Headers of IP and UDP are made up; TTL and ECN are not the real ones.
    ///
    /// A thread of its own writes, so that `out` may block without delaying packets; what it cannot
    /// keep up with is counted as [`uncaptured`](EmulatorStatistics::uncaptured). Its errors are
    /// told by [`finish_capture`](Self::finish_capture).
    ///
    /// # Errors
    /// When the address cannot be had or a path cannot be.
    pub fn start_capturing(
        config: &EmulatorConfig,
        out: impl Write + Send + 'static,
    ) -> Result<Self, EmulatorError> {
        let relay = Self::relay(config)?;
        let local_addr = relay.link().local_addr()?;
        let running = Running::start_capturing(relay, udp_link::INTERFACES, out)?;
        Ok(Self { local_addr, running })
    }

    fn relay(config: &EmulatorConfig) -> Result<Relay<UdpLink>, EmulatorError> {
        Relay::new(&config.link(), |registry| UdpLink::open(registry, config))
    }

    /// Where clients send to.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// The counts so far.
    #[must_use]
    pub fn statistics(&self) -> EmulatorStatistics {
        self.running.statistics()
    }

    /// Stops relaying, and waits until the capture is written; it says nothing of what was still
    /// under way. No effect if there is none, or if it has ended.
    ///
    /// # Errors
    /// The first error of writing the capture, which ends before it.
    pub fn finish_capture(&mut self) -> io::Result<()> {
        self.running.finish_capture()
    }

    /// Stops relaying, drops what is under way and returns the final counts.
    ///
    /// # Errors
    /// When the relay had ended before, which only a failure of the system's polling causes, or
    /// when the capture could not be written and [`finish_capture`](Self::finish_capture) did not
    /// say so before.
    pub fn stop(self) -> io::Result<EmulatorStatistics> {
        self.running.stop()
    }
}
