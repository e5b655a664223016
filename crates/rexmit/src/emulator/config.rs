//! The configuration of an emulator.

use std::net::SocketAddr;
use std::time::Duration;

use rexmit_core::{Seed, config};
use rexmit_netsim::path::PathConfig;

#[cfg(doc)]
use super::priority::Priority;

config! {
    /// The configuration of the emulator.
    #[derive(Clone, Debug)]
    pub struct EmulatorConfig {
        /// The address on which clients are served. Port 0 lets the system choose.
        pub listen: SocketAddr,
        /// The server their packets are forwarded to.
        pub to: SocketAddr,
        /// Whether packets are forwarded to the IP address that the client sent them to, with the port of
        /// [`to`](Self::to): one emulator for a server with several addresses. Packets from that port
        /// are a server's, whatever their address. Default false.
        pub keep_destination: bool,
        /// The path from the clients to the server.
        pub forward: PathConfig,
        /// The path from the server to the clients.
        pub backward: PathConfig,
        /// The most clients at a time; packets of further ones are dropped. Default 1024.
        pub max_clients: usize,
        /// A client that neither sends nor receives anything for this time is removed. Default 60 s.
        pub client_idle_timeout: Duration,
        /// The most packets on the path in each direction; further ones are dropped. Default 100,000.
        pub max_packets_in_flight: usize,
        /// The relay wakes up at most once in this time, and handles all packets that have arrived or are due then. With
        /// many packets this takes a fraction of the processor time, and packets are late by up to this time.
        /// Default zero: each packet is handled at once. At most [`LinkConfig::MAX_BATCH`].
        pub batch: Duration,
        /// Whether the relay's thread requests the best [`Priority`] that the system grants. Default true:
        /// otherwise other load of the machine adds to the delays.
        pub raise_priority: bool,
        /// The seed of the paths' randomness: with the same seed, the same packets in the same order have the
        /// same fate. Default `Seed::from_u64(1)`.
        pub seed: Seed,
    }
}

impl EmulatorConfig {
    /// Two perfect paths and the default limits.
    #[must_use]
    pub fn new(listen: SocketAddr, to: SocketAddr) -> Self {
        let link = LinkConfig::default();
        Self {
            listen,
            to,
            keep_destination: false,
            forward: link.forward,
            backward: link.backward,
            max_clients: 1024,
            client_idle_timeout: Duration::from_secs(60),
            max_packets_in_flight: link.max_packets_in_flight,
            batch: link.batch,
            raise_priority: link.raise_priority,
            seed: link.seed,
        }
    }

    pub(super) fn link(&self) -> LinkConfig {
        LinkConfig {
            forward: self.forward.clone(),
            backward: self.backward.clone(),
            max_packets_in_flight: self.max_packets_in_flight,
            batch: self.batch,
            raise_priority: self.raise_priority,
            seed: self.seed.clone(),
        }
    }
}

config! {
    /// The part of the configuration that both emulators share.
    #[derive(Clone, Debug)]
    pub struct LinkConfig {
        /// The path from the near end to the far one.
        pub forward: PathConfig,
        /// The path back.
        pub backward: PathConfig,
        /// As [`EmulatorConfig::max_packets_in_flight`].
        pub max_packets_in_flight: usize,
        /// As [`EmulatorConfig::batch`].
        pub batch: Duration,
        /// As [`EmulatorConfig::raise_priority`].
        pub raise_priority: bool,
        /// As [`EmulatorConfig::seed`].
        pub seed: Seed,
    }
}

impl LinkConfig {
    /// The longest [`batch`](Self::batch): the relay cannot be stopped during one.
    pub const MAX_BATCH: Duration = Duration::from_millis(100);
}

impl Default for LinkConfig {
    fn default() -> Self {
        Self {
            forward: PathConfig::default(),
            backward: PathConfig::default(),
            max_packets_in_flight: 100_000,
            batch: Duration::ZERO,
            raise_priority: true,
            seed: Seed::from_u64(1),
        }
    }
}
