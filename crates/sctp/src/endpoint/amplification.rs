//! What answers to unverified INITs send beyond three times the bytes received: the endpoint's address list and, where
//! the headers are short, some bytes of an answer to an INIT without parameters. A budget limits the rate of that, so that
//! INITs with a forged source are of no use to flood its owner (compare RFC 9000 §8).

use std::time::Duration;

use rexmit_core::{Instant, Route};

/// An answer of at most so many times the received bytes needs no budget.
const FREE_FACTOR: usize = 3;
/// Bytes per second beyond that.
const EXCESS_PER_SECOND: u32 = 64 * 1024;
/// The time for which a budget that was not used accumulates: 256 KiB.
const MOST_ACCUMULATED: Duration = Duration::from_secs(4);

/// The bytes by which answers may exceed [`FREE_FACTOR`]: a token bucket.
#[derive(Debug)]
pub(super) struct ExcessBudget {
    /// When the bytes sent so far are paid for.
    paid_at: Instant,
    /// The endpoints of an address, which share the budget: each has an equal part.
    shares: u32,
}

impl Default for ExcessBudget {
    fn default() -> Self {
        Self { paid_at: Instant::ZERO, shares: 1 }
    }
}

impl ExcessBudget {
    /// Sets the number of endpoints that share the budget.
    pub(super) const fn set_shares(&mut self, shares: u32) {
        self.shares = shares;
    }

    /// Whether a packet of `received` bytes may be answered with `sent` bytes over `route`; the excess is taken from
    /// the budget.
    pub(super) fn allows(
        &mut self,
        now: Instant,
        route: Route,
        received: usize,
        sent: usize,
    ) -> bool {
        let headers = headers(route);
        let excess = (sent + headers).saturating_sub(FREE_FACTOR * (received + headers));
        let cost = Duration::from_secs(excess as u64) / EXCESS_PER_SECOND * self.shares;
        let paid_at = self.paid_at.max(now) + cost;
        let is_allowed = excess == 0 || paid_at - now <= MOST_ACCUMULATED;
        if is_allowed && excess > 0 {
            self.paid_at = paid_at;
        }
        is_allowed
    }
}

/// Bytes of the IP and UDP headers of a packet over `route`.
const fn headers(route: Route) -> usize {
    let ip = if route.remote.is_ipv4() { 20 } else { 40 };
    if route.remote.port() == 0 { ip } else { ip + 8 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(remote: &str) -> Route {
        Route { local: "192.0.2.1:9899".parse().unwrap(), remote: remote.parse().unwrap() }
    }

    #[test]
    fn three_times_the_bytes_with_their_headers_are_free() {
        let mut budget =
            ExcessBudget { paid_at: Instant::ZERO + MOST_ACCUMULATED, ..ExcessBudget::default() };
        for (remote, headers) in
            [("192.0.2.2:1", 28), ("192.0.2.2:0", 20), ("[::1]:1", 48), ("[::1]:0", 40)]
        {
            let most = 3 * (32 + headers) - headers;
            assert!(budget.allows(Instant::ZERO, route(remote), 32, most));
            assert!(!budget.allows(Instant::ZERO, route(remote), 32, most + 1));
        }
    }

    #[test]
    fn endpoints_that_share_the_budget_have_equal_parts() {
        let route = route("192.0.2.2:1");
        let most = |shares| {
            let mut budget = ExcessBudget::default();
            budget.set_shares(shares);
            let now = Instant::from_millis(10_000);
            (0..10_000).take_while(|_| budget.allows(now, route, 32, 180 - 28 + 100)).count()
        };
        assert_eq!((most(1), most(4)), (2621, 655));
    }

    #[test]
    fn the_excess_is_limited_in_the_long_run_and_at_once() {
        let mut budget = ExcessBudget::default();
        let route = route("192.0.2.2:1");
        let mut sent_in_second = |second: u64| {
            let answers = (0..10_000).filter(|n| {
                let now = Instant::from_millis(1000 * second) + Duration::from_micros(100 * n);
                // 100 bytes more than three times 60.
                budget.allows(now, route, 32, 180 - 28 + 100)
            });
            100 * answers.count() as u64
        };
        let per_second = u64::from(EXCESS_PER_SECOND);
        let first = sent_in_second(10);
        assert!((5 * per_second - 200..=5 * per_second).contains(&first), "{first}");
        let later = sent_in_second(11);
        assert!((per_second - 200..=per_second + 200).contains(&later), "{later}");
    }
}
