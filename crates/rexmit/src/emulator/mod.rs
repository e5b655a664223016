//! The link emulator: a relay in real time that delays, drops and reorders packets as a path model says.
//!
//! [`Emulator`] relays UDP between sockets; [`TunEmulator`] relays IP packets between two TUN devices, so
//! that any program runs over the modelled path.
//!
//! [`Emulator`] needs no privileges, and no change to client or server: clients send to the emulator instead
//! of the server, and the server sees the emulator instead of the clients. Each client gets a socket of its
//! own towards the server, as behind a NAT, so that answers find their way back. The two directions have a
//! path each, which all clients share.
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
//! let emulator = Emulator::start(
//!     &EmulatorConfig::new("127.0.0.1:0".parse()?, server.local_addr()?)
//!         .forward(path.clone())
//!         .backward(path),
//! )?;
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
//! ([`clock`](crate::clock) says why) and for the end; it never spins. A packet enters the path at the time
//! at which the kernel received it, not at which the relay read it: a relay that is scheduled late does no
//! harm as long as the path's delay is longer. A packet's lateness is the time from when it was due until the
//! system call that sent it returned; [`Lateness`] reports it.
//!
//! The remaining lateness is due to the scheduler of a busy machine, for which the thread requests a better
//! [`Priority`]. Measured by `cargo run --release -p rexmit --example emulator` with 1000 packets per second
//! over 50 ms ± 5 ms, on a virtual machine of two cores, 99th percentiles:
//!
//! | | with four busy loops and compilers besides |
//! |---|---|
//! | [`Priority::RealTime`] | 0.06 ms |
//! | [`Priority::ShortSlice`] | 1.6 ms to 4 ms |
//! | [`Priority::Normal`] | 17 ms to 71 ms |
//!
//! # Captures
//!
//! [`Emulator::start_capturing`] writes packets that arrive at either end of the link, and dropped ones,
//! as a file for Wireshark. It shows the packets under the addresses of the clients and of the
//! server, as if they spoke to each other without an emulator between them.
//!
//! # IP packets
//!
//! [`TunEmulator`] does the same with the packets that the kernel routes to two TUN devices: TCP, ICMP, UDP
//! with its real addresses. It is a cable, not a router: packets keep their TTL and ECN field. They enter the
//! path when they are read, as TUN devices have no time stamps. See its example.
//!
//! # Marks
//!
//! Random early detection with `ecn` and FQ-CoDel (`fq_codel`) set the ECN field of ECN-capable packets: of a UDP packet when
//! it is sent, of an IP packet in its header. A flow of FQ-CoDel is a client of [`Emulator`] (with one server), or addresses,
//! ports and protocol of an IP packet in [`TunEmulator`]. With such a path [`Emulator`] receives packets one by one, and not in the batches in
//! which a sender of this host may pass them to the kernel (GSO): that takes more processor time.
//!
//! # Limits
//!
//! [`EmulatorConfig`] limits clients, their idle time, and packets on the path per direction. Packets beyond
//! a limit are dropped and counted.

mod capture;
mod clients;
mod config;
mod direction;
mod error;
#[cfg(feature = "tun")]
mod ip_fields;
mod lateness;
mod priority;
mod relay;
mod running;
mod socket;
mod statistics;
#[cfg(feature = "tun")]
mod tun_link;
mod two_way;
mod udp_link;

use std::io::{self, Write};
use std::net::SocketAddr;

pub use rexmit_core::Seed;

pub use config::{EmulatorConfig, LinkConfig};
pub use error::EmulatorError;
pub use lateness::Lateness;
/// Parsers for values and paths as text, such as "delay 50ms loss 1%".
pub mod netem {
    pub use rexmit_netsim::netem::NetemError;
    pub use rexmit_netsim::units::{
        UnitError, format_duration, parse_duration, parse_probability, parse_rate, parse_size,
    };
}
use capture::Output;
pub use priority::Priority;
use relay::Relay;
/// The properties of a path.
pub use rexmit_netsim::path;
use running::Running;
pub use statistics::{DirectionStatistics, EmulatorStatistics};
#[cfg(feature = "tun")]
pub use tun_link::TunEmulator;
use udp_link::UdpLink;

/// A running emulator of a link for UDP. Dropping it stops it.
#[derive(Debug)]
pub struct Emulator {
    local_addr: SocketAddr,
    running: Running,
}

impl Emulator {
    /// Binds the address and starts the relay in a thread of its own.
    ///
    /// # Errors
    /// If the address cannot be bound, or the configuration of a path is invalid.
    pub fn start(config: &EmulatorConfig) -> Result<Self, EmulatorError> {
        let relay = Self::relay(config)?;
        let local_addr = relay.link().local_addr()?;
        Ok(Self { local_addr, running: Running::start(relay)? })
    }

    /// As [`start`](Self::start), and writes a capture (pcapng, nanosecond time stamps).
    ///
    /// It contains the packets of both directions: delivered ones at the time of delivery, and dropped ones
    /// at the time at which they entered the link, with a comment that says why; `frame.comment contains
    /// "lost"` is a display filter for them. Headers of IP and UDP are synthesized; TTL and ECN are not the
    /// real ones.
    ///
    /// Another thread writes, so that `out` may block without delaying packets; packets that it had to leave
    /// out are counted as [`uncaptured`](EmulatorStatistics::uncaptured). Its errors are reported by
    /// [`finish_capture`](Self::finish_capture).
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_capturing(
        config: &EmulatorConfig,
        out: impl Write + Send + 'static,
    ) -> Result<Self, EmulatorError> {
        let relay = Self::relay(config)?;
        let local_addr = relay.link().local_addr()?;
        let output = Output::Pcapng(udp_link::INTERFACES, Box::new(out));
        Ok(Self { local_addr, running: Running::start_capturing(relay, output)? })
    }

    /// As [`start_capturing`](Self::start_capturing), but writes a qlog file: the packets with their lengths, and dropped
    /// ones as lost. Packets from clients count as sent.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    #[cfg(feature = "qlog")]
    pub fn start_logging(
        config: &EmulatorConfig,
        log: rexmit_qlog::Log,
    ) -> Result<Self, EmulatorError> {
        let relay = Self::relay(config)?;
        let local_addr = relay.link().local_addr()?;
        let running = Running::start_capturing(relay, Output::Qlog(log))?;
        Ok(Self { local_addr, running })
    }

    fn relay(config: &EmulatorConfig) -> Result<Relay<UdpLink>, EmulatorError> {
        if config.keep_destination {
            if config.listen.port() == config.to.port() {
                return Err(EmulatorError::SamePort(config.to.port()));
            }
            if config.listen.is_ipv4() != config.to.is_ipv4() {
                return Err(EmulatorError::OtherFamily);
            }
        }
        Relay::new(&config.link(), |registry| UdpLink::open(registry, config))
    }

    /// The address on which clients are served.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// The present counters.
    #[must_use]
    pub fn statistics(&self) -> EmulatorStatistics {
        self.running.statistics()
    }

    /// Stops the relay, and waits until the capture is written; packets still on the path are not in it. Has
    /// no effect without a capture, or after the first call.
    ///
    /// # Errors
    /// The first error of writing the capture, which ends before it.
    pub fn finish_capture(&mut self) -> io::Result<()> {
        self.running.finish_capture()
    }

    /// Stops the relay, drops the packets on the path, and returns the final counters.
    ///
    /// # Errors
    /// If the relay had ended before, which only a failure of the system's polling causes, or if the capture
    /// could not be written and [`finish_capture`](Self::finish_capture) did not report it.
    pub fn stop(self) -> io::Result<EmulatorStatistics> {
        self.running.stop()
    }
}
