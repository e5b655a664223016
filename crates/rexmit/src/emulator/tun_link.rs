//! The link between two TUN devices.

use std::io::{self, Write};
use std::os::fd::AsRawFd;

use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};

use super::capture::{Output, Shown};
use super::config::LinkConfig;
use super::direction::{Bound, Packet};
use super::error::EmulatorError;
use super::relay::{FIRST_TOKEN, Link, Relay};
use super::running::Running;
use super::statistics::EmulatorStatistics;
use super::two_way::TwoWay;
use crate::clock;
use crate::tun::{Batch, Tun};

const NEAR: Token = Token(FIRST_TOKEN);
const FAR: Token = Token(FIRST_TOKEN + 1);

/// The names of the capture's interfaces.
const INTERFACES: [&str; 2] = ["to the far end", "to the near end"];

/// A running emulator of a link for IP packets: packets from one TUN device are sent to the other as the
/// paths say. Dropping it stops it, and removes the devices.
///
/// Usually the near device is in a [namespace](crate::tun::NetNamespace) of its own, so that the kernel does
/// not route around the link; the command `rexmit emulate --tun` does all of this.
///
/// ```no_run
/// use rexmit::emulator::{LinkConfig, TunEmulator};
/// use rexmit::tun::{NetNamespace, Tun, TunConfig};
///
/// let near = NetNamespace::new()?;
/// let end = |address| TunConfig::default().ipv4(Some((address, 24)));
/// let near_tun = Tun::open_in(&near, &end("10.90.0.2".parse()?))?;
/// let far_tun = Tun::open(&end("10.90.0.1".parse()?))?;
/// let path: rexmit::path::PathConfig = "delay 50ms loss 1%".parse()?;
/// let link = LinkConfig::default().forward(path.clone()).backward(path);
/// let emulator = TunEmulator::start(&link, near_tun, far_tun)?;
/// near.command("ping").args(["-c", "1", "10.90.0.1"]).status()?;
/// println!("{:?}", emulator.stop()?.forward.arrivals);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TunEmulator(Running);

impl TunEmulator {
    /// Starts the relay in a thread of its own.
    ///
    /// # Errors
    /// If the configuration of a path is invalid.
    pub fn start(config: &LinkConfig, near: Tun, far: Tun) -> Result<Self, EmulatorError> {
        Running::start(relay(config, near, far)?).map(Self)
    }

    /// As [`start`](Self::start), and writes a capture as
    /// [`Emulator::start_capturing`](super::Emulator::start_capturing) does, but with the unmodified packets,
    /// headers included.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_capturing(
        config: &LinkConfig,
        (near, far): (Tun, Tun),
        out: impl Write + Send + 'static,
    ) -> Result<Self, EmulatorError> {
        let output = Output::Pcapng(INTERFACES, Box::new(out));
        Running::start_capturing(relay(config, near, far)?, output).map(Self)
    }

    /// Starts the relay and writes a qlog file to `log`: each packet with its length, and dropped packets as lost. Packets
    /// from the near device count as sent.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    #[cfg(feature = "qlog")]
    pub fn start_logging(
        config: &LinkConfig,
        (near, far): (Tun, Tun),
        log: rexmit_qlog::Log,
    ) -> Result<Self, EmulatorError> {
        Running::start_capturing(relay(config, near, far)?, Output::Qlog(log)).map(Self)
    }

    /// The counts so far.
    #[must_use]
    pub fn statistics(&self) -> EmulatorStatistics {
        self.0.statistics()
    }

    /// As [`Emulator::finish_capture`](super::Emulator::finish_capture).
    ///
    /// # Errors
    /// As `Emulator::finish_capture`.
    pub fn finish_capture(&mut self) -> io::Result<()> {
        self.0.finish_capture()
    }

    /// As [`Emulator::stop`](super::Emulator::stop).
    ///
    /// # Errors
    /// As `Emulator::stop`.
    pub fn stop(self) -> io::Result<EmulatorStatistics> {
        self.0.stop()
    }
}

fn relay(config: &LinkConfig, near: Tun, far: Tun) -> Result<Relay<TunLink>, EmulatorError> {
    Relay::new(config, |registry| Ok(TunLink::open(registry, near, far)?))
}

/// The devices.
#[derive(Debug)]
struct TunLink {
    near: Tun,
    far: Tun,
    batch: Batch,
}

impl TunLink {
    fn open(registry: &Registry, near: Tun, far: Tun) -> io::Result<Self> {
        for (device, token) in [(&near, NEAR), (&far, FAR)] {
            registry.register(&mut SourceFd(&device.as_raw_fd()), token, Interest::READABLE)?;
        }
        let batch = Batch::new(near.mtu().max(far.mtu()));
        Ok(Self { near, far, batch })
    }
}

impl Link for TunLink {
    type Tag = ();

    fn receive(&mut self, token: Token, paths: &mut TwoWay<()>) -> bool {
        let (device, bound) =
            if token == NEAR { (&self.near, Bound::Forward) } else { (&self.far, Bound::Backward) };
        // No packet, or the device was switched off: that is reported anew.
        let _ = device.receive_batch(&mut self.batch);
        let now = clock::now();
        for packet in self.batch.iter() {
            paths.offer(now, (bound, Shown::AsItIs), (), packet);
        }
        self.batch.is_full()
    }

    fn send(&mut self, bound: Bound, packet: &Packet<()>) -> io::Result<()> {
        match bound {
            Bound::Forward => self.far.send(&packet.bytes),
            Bound::Backward => self.near.send(&packet.bytes),
        }
    }

    fn shown(&self, _: Bound, (): &()) -> Option<Shown> {
        Some(Shown::AsItIs)
    }
}
