//! Limits on the number of peers, and on offers per second.

use std::time::Duration;

use rexmit_core::{Instant, config};

use crate::{AgentConfig, IceMode, IceServer};

config! {
    /// The configuration of a server: that of its agents, and limits on their number.
    #[derive(Clone, Debug)]
    pub struct ServeConfig {
        /// The configuration of each peer's agent.
        pub agent: AgentConfig,
        /// The most peers at one time; offers of further ones are refused. Default 10,000.
        pub max_peers: usize,
        /// The most peers whose connection is being set up. A further offer ends the oldest setup if that has taken 2 s,
        /// and is refused otherwise. Default 1000.
        pub max_setups: usize,
        /// The most offers answered per second, and in a burst; further ones are refused. Default 200.
        pub offers_per_second: u32,
        /// STUN and TURN servers, [`MAX_ICE_SERVERS`](crate::MAX_ICE_SERVERS) at most, for hosts that peers cannot
        /// reach directly; [`Peers::is_gathering`](crate::Peers::is_gathering) is true until they have answered. If
        /// there are any, agents are full ones, because an ICE-lite agent cannot use such addresses (RFC 8445 §2.5).
        /// Default none.
        pub servers: Vec<IceServer>,
        /// Whether peers are reached by TURN servers only, which hides the addresses of this host from them. Default
        /// false.
        pub relay_only: bool,
    }
}

impl ServeConfig {
    /// The default limits with this agent configuration, changed to ICE-lite because peers can reach a server
    /// at its addresses.
    #[must_use]
    pub fn new(agent: AgentConfig) -> Self {
        Self {
            agent: agent.ice(IceMode::Lite),
            max_peers: 10_000,
            max_setups: 1000,
            offers_per_second: 200,
            servers: Vec::new(),
            relay_only: false,
        }
    }
}

/// A rate limit: the number per second, which is also the largest burst.
#[derive(Debug)]
pub(super) struct Allowance {
    /// The time that one offer costs; `None` if none is allowed.
    cost: Option<Duration>,
    /// The unused time, at most a second, from which offers are paid.
    saved: Duration,
    at: Instant,
}

impl Allowance {
    pub(super) const fn new(per_second: u32) -> Self {
        let cost = Duration::from_secs(1).checked_div(per_second);
        Self { cost, saved: Duration::from_secs(1), at: Instant::ZERO }
    }

    pub(super) fn take(&mut self, now: Instant) -> bool {
        let earned = now - self.at;
        self.saved = self.saved.saturating_add(earned).min(Duration::from_secs(1));
        self.at = now;
        match self.cost.and_then(|cost| self.saved.checked_sub(cost)) {
            Some(left) => {
                self.saved = left;
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_allowance_refills_per_second() {
        let mut now = Instant::from_millis(5000);
        let mut allowance = Allowance::new(10);
        let taken =
            |allowance: &mut Allowance, now| (0..50).filter(|_| allowance.take(now)).count();
        assert_eq!(taken(&mut allowance, now), 10);
        now += Duration::from_millis(250);
        assert_eq!(taken(&mut allowance, now), 2);
        now += Duration::from_millis(50);
        assert_eq!(taken(&mut allowance, now), 1);
        now += Duration::from_secs(60);
        assert_eq!(taken(&mut allowance, now), 10);
        assert_eq!(taken(&mut Allowance::new(0), now), 0);
    }
}
