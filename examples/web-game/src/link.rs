//! The emulated link: a TUN device of this machine, one in a network namespace, and the emulator between them.

use std::error::Error;
use std::net::Ipv4Addr;
use std::process::Command;

use rexmit::emulator::netem::{parse_duration, parse_probability};
use rexmit::emulator::{LinkConfig, TunEmulator};
use rexmit::path::{Delay, Loss, PathConfig};
use rexmit::tun::{NetNamespace, Tun, TunConfig};

/// The addresses of the two ends, in a network that no other run of this program on the machine uses.
fn addresses() -> [Ipv4Addr; 2] {
    let network = (std::process::id() % 250) as u8;
    [1, 2].map(|end| Ipv4Addr::new(10, 93, network, end))
}

/// A running link. Dropping it ends it.
pub(crate) struct Link {
    namespace: NetNamespace,
    /// The address of the far end.
    pub(crate) far: Ipv4Addr,
    _emulator: TunEmulator,
}

impl Link {
    pub(crate) fn start(delay: &str, loss: &str) -> Result<Self, Box<dyn Error>> {
        let path = PathConfig {
            delay: Delay::constant(parse_duration(delay)?),
            loss: Loss { uniform: parse_probability(loss)?, ..Loss::default() },
            ..PathConfig::default()
        };
        let namespace = NetNamespace::new()?;
        let end = |address| TunConfig::default().ipv4(Some((address, 24)));
        let addresses = addresses();
        let near = Tun::open(&end(addresses[0]))?;
        let far = Tun::open_in(&namespace, &end(addresses[1]).is_default_route(true))?;
        let config = LinkConfig::default().forward(path.clone()).backward(path);
        let _emulator = TunEmulator::start(&config, near, far)?;
        Ok(Self { namespace, far: addresses[1], _emulator })
    }

    /// A command to be run at the other end.
    pub(crate) fn command(&self, program: &str) -> Command {
        self.namespace.command(program)
    }

    /// Runs a function at the other end.
    pub(crate) fn beyond<R: Send>(
        &self,
        act: impl FnOnce() -> R + Send,
    ) -> Result<R, Box<dyn Error>> {
        Ok(self.namespace.run(act)?)
    }
}
