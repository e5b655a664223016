//! What answers to unverified INITs send beyond three times the bytes received: the endpoint's address list and, where
//! the headers are short, some bytes of an answer to an INIT without parameters. A budget limits the rate of that, so that
//! INITs with a forged source are of no use to flood its owner (compare RFC 9000 §8).

use rexmit_core::{Instant, Route};

/// An answer of at most so many times the received bytes needs no budget.
const FREE_FACTOR: usize = 3;
/// Bytes per second beyond that, and the most that accumulate while none are used.
pub(super) const EXCESS_PER_SECOND: u64 = 64 * 1024;
pub(super) const MOST_EXCESS: u64 = 256 * 1024;

/// The bytes by which answers may exceed [`FREE_FACTOR`] now: a token bucket.
#[derive(Debug)]
pub(super) struct ExcessBudget {
    left: u64,
    counted_at: Instant,
}

impl Default for ExcessBudget {
    fn default() -> Self {
        Self { left: MOST_EXCESS, counted_at: Instant::ZERO }
    }
}

impl ExcessBudget {
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
        let free = FREE_FACTOR * (received + headers);
        let excess = (sent + headers).saturating_sub(free) as u64;
        if excess == 0 {
            return true;
        }
        let grown = (now - self.counted_at).as_nanos() * u128::from(EXCESS_PER_SECOND);
        // What is less than a byte is not lost: the time does not advance for it.
        let grown = u64::try_from(grown / 1_000_000_000).unwrap_or(u64::MAX);
        if grown > 0 {
            self.left = self.left.saturating_add(grown).min(MOST_EXCESS);
            self.counted_at = now;
        }
        let rest = self.left.checked_sub(excess);
        self.left = rest.unwrap_or(self.left);
        rest.is_some()
    }
}

/// Bytes of the IP and UDP headers of a packet over `route`.
const fn headers(route: Route) -> usize {
    let ip = if route.remote.is_ipv4() { 20 } else { 40 };
    if route.remote.port() == 0 { ip } else { ip + 8 }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn route(remote: &str) -> Route {
        Route { local: "192.0.2.1:9899".parse().unwrap(), remote: remote.parse().unwrap() }
    }

    #[test]
    fn three_times_the_bytes_with_their_headers_are_free() {
        let mut budget = ExcessBudget { left: 0, counted_at: Instant::ZERO };
        for (remote, headers) in
            [("192.0.2.2:1", 28), ("192.0.2.2:0", 20), ("[::1]:1", 48), ("[::1]:0", 40)]
        {
            let most = 3 * (32 + headers) - headers;
            assert!(budget.allows(Instant::ZERO, route(remote), 32, most));
            assert!(!budget.allows(Instant::ZERO, route(remote), 32, most + 1));
        }
    }

    #[test]
    fn the_excess_is_limited_in_the_long_run_and_at_once() {
        let mut budget = ExcessBudget::default();
        let route = route("192.0.2.2:1");
        let mut sent_from = |begin: u64, end: u64| {
            let answers = (begin..end).filter(|&ms| {
                let now = Instant::ZERO + Duration::from_micros(100 * ms);
                // 100 bytes more than three times 60.
                budget.allows(now, route, 32, 180 - 28 + 100)
            });
            100 * answers.count() as u64
        };
        let first = sent_from(0, 10_000);
        assert!(
            (MOST_EXCESS..=MOST_EXCESS + EXCESS_PER_SECOND).contains(&(first + 100)),
            "{first}"
        );
        let later = sent_from(10_000, 20_000);
        assert!((EXCESS_PER_SECOND - 200..=EXCESS_PER_SECOND + 100).contains(&later), "{later}");
    }
}
