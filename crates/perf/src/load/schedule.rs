//! The times at which each connection sends: a pure function of the load and its seed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use rexmit_core::{Instant, Rng, Seed};

/// Thin streams: one message per interval on each connection.
#[derive(Clone, Debug)]
pub struct ThinLoad {
    /// Connections.
    pub connections: u32,
    /// Number of the first connection in its stamps; the others follow.
    pub first_connection: u32,
    /// Time between two messages of a connection, or the mean of that time; not zero.
    pub interval: Duration,
    /// Bytes of a message.
    pub message_bytes: usize,
    /// Length of the sending phase.
    pub duration: Duration,
    /// Whether intervals are independent and exponentially distributed instead of constant.
    pub poisson: bool,
    /// Whether messages may be delivered out of order.
    pub unordered: bool,
    /// Seed of the exponential intervals.
    pub seed: u64,
    /// Messages are sent once in this time, all that are due together, and so are late by up to this time. Zero: each
    /// is sent when it is due.
    pub batch: Duration,
}

/// The messages of all connections in ascending order of time.
///
/// Connection `i` of `n` sends its first message after `i / n` of an interval, or after an
/// exponentially distributed time. No message is due after the end of the load.
#[derive(Debug)]
pub struct Schedule {
    interval: Duration,
    end: Instant,
    /// A random source per connection, if intervals are random.
    random: Vec<Rng>,
    due: BinaryHeap<Reverse<(Instant, u32)>>,
}

impl Schedule {
    /// The schedule of a load that begins at `start`.
    #[must_use]
    pub fn new(load: &ThinLoad, start: Instant) -> Self {
        let seed = Seed::from_u64(load.seed);
        let mut random: Vec<Rng> = if load.poisson {
            (0..load.connections).map(|i| seed.split(&format!("connection {i}")).rng()).collect()
        } else {
            Vec::new()
        };
        let first = |connection: u32| match random.get_mut(connection as usize) {
            Some(rng) => exponential(rng, load.interval),
            None => load.interval.mul_f64(f64::from(connection) / f64::from(load.connections)),
        };
        let offsets: Vec<Duration> = (0..load.connections).map(first).collect();
        let mut schedule = Self {
            interval: load.interval,
            end: start + load.duration,
            random,
            due: BinaryHeap::new(),
        };
        for (connection, offset) in (0..).zip(offsets) {
            schedule.enter(start + offset, connection);
        }
        schedule
    }

    /// The time of the next message; `None` at the end.
    #[must_use]
    pub fn next_due(&self) -> Option<Instant> {
        self.due.peek().map(|Reverse((at, _))| *at)
    }

    /// The next message if it is due at `now`: its time and its connection.
    pub fn poll(&mut self, now: Instant) -> Option<(Instant, u32)> {
        let Reverse((at, connection)) = *self.due.peek().filter(|due| due.0.0 <= now)?;
        self.due.pop();
        let gap = match self.random.get_mut(connection as usize) {
            Some(rng) => exponential(rng, self.interval),
            None => self.interval,
        };
        self.enter(at + gap, connection);
        Some((at, connection))
    }

    fn enter(&mut self, at: Instant, connection: u32) {
        if at < self.end {
            self.due.push(Reverse((at, connection)));
        }
    }
}

/// A random duration with the mean `mean`, at least one nanosecond.
fn exponential(rng: &mut Rng, mean: Duration) -> Duration {
    mean.mul_f64(-(1.0 - rng.unit()).ln()).max(Duration::from_nanos(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(poisson: bool) -> ThinLoad {
        ThinLoad {
            connections: 5,
            first_connection: 0,
            interval: Duration::from_millis(250),
            message_bytes: 100,
            duration: Duration::from_secs(2),
            poisson,
            unordered: false,
            seed: 1,
            batch: Duration::ZERO,
        }
    }

    fn all(load: &ThinLoad) -> Vec<(u64, u32)> {
        let mut schedule = Schedule::new(load, Instant::ZERO);
        std::iter::from_fn(|| schedule.poll(Instant::FAR_FUTURE))
            .map(|(at, connection)| (at.as_nanos() / 1_000_000, connection))
            .collect()
    }

    #[test]
    fn connections_begin_spread_over_one_interval_and_keep_their_pace() {
        let messages = all(&load(false));
        assert_eq!(messages.len(), 5 * 8);
        assert_eq!(messages[..6], [(0, 0), (50, 1), (100, 2), (150, 3), (200, 4), (250, 0)]);
        assert_eq!(messages.last(), Some(&(1950, 4)));
    }

    #[test]
    fn nothing_is_due_early() {
        let mut schedule = Schedule::new(&load(false), Instant::from_millis(1000));
        assert_eq!(schedule.next_due(), Some(Instant::from_millis(1000)));
        assert_eq!(schedule.poll(Instant::from_millis(999)), None);
        assert_eq!(
            schedule.poll(Instant::from_millis(1000)),
            Some((Instant::from_millis(1000), 0))
        );
        assert_eq!(schedule.next_due(), Some(Instant::from_millis(1050)));
    }

    #[test]
    fn poisson_intervals_have_their_mean_and_come_from_the_seed() {
        let long = ThinLoad { duration: Duration::from_secs(1000), ..load(true) };
        let messages = all(&long);
        // 20,000 expected, standard deviation 141.
        assert!(messages.len().abs_diff(20_000) < 600, "{}", messages.len());
        assert!(messages.is_sorted_by_key(|(at, _)| *at));
        assert_eq!(all(&long), messages);
        assert_ne!(all(&ThinLoad { seed: 2, ..long }), messages);
        let short = messages.windows(2).filter(|pair| pair[1].0 - pair[0].0 < 50).count();
        // Of exponential gaps with mean 50 ms, 63 % are below it; of equal ones none.
        assert!((0.58..0.68).contains(&(short as f64 / messages.len() as f64)), "{short}");
    }
}
