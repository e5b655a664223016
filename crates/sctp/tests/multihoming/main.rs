//! Several addresses (RFC 9260 §5.1.2, §5.4, §6.4, §8; RFC 7829). The peer has the addresses 192.0.2.2, with path
//! number 0, and 192.0.2.3, with path number 1.

#[path = "../kit/mod.rs"]
mod kit;

mod addresses;
mod all_paths;
mod confirmation;
mod failover;
mod potentially_failed;
mod replies;
mod setup;

use kit::*;
use rexmit_sctp::{AssociationConfig, EndpointConfig, PathState};

/// Two addresses of the peer, both confirmed, and no heartbeats.
fn two_paths() -> Script {
    two_paths_with(|_| ())
}

fn two_paths_with(change: impl FnOnce(&mut AssociationConfig)) -> Script {
    Script::with_addresses(&[3], |_: &mut EndpointConfig, association| {
        association.failure.heartbeat_interval = None;
        change(association);
    })
}

fn states(s: &Script) -> Vec<PathState> {
    s.statistics().paths.iter().map(|path| path.state).collect()
}

impl Script {
    /// As `at`, without advancing the clock, so that packets transmitted now can be polled.
    fn go_to(&mut self, ms: u64) {
        if ms > self.now_ms() {
            self.at(ms);
        }
    }

    fn set_primary(&mut self, path: u8) -> Result<(), rexmit_sctp::PrimaryError> {
        let (now, id) = (rexmit_core::Instant::from_millis(self.now_ms()), self.id());
        self.endpoint.set_primary(now, id, path)
    }
}
