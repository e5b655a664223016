//! The processing cost of packets of a malicious peer, compared with that of ordinary ones: the tables of docs/security.md.

use std::time::{Duration, Instant};

/// Packets of each kind; the median counts.
pub const PACKETS: u32 = 41;
/// The largest ratio that is promised.
const MOST: f64 = 20.0;

/// The result of `act`, and the time that it took.
#[expect(clippy::disallowed_methods, reason = "it measures")]
pub fn timed<R>(act: impl FnOnce() -> R) -> (Duration, R) {
    let begun = Instant::now();
    let result = act();
    (begun.elapsed(), result)
}

/// The median of times.
///
/// # Panics
/// If there are none.
#[must_use]
pub fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// A table that is printed row by row.
pub struct Table {
    exceptions: &'static [(&'static str, f64)],
    above: Vec<String>,
}

impl Table {
    /// Prints the head of a table of `packets`. Those in `exceptions` may have larger ratios.
    #[must_use]
    pub fn new(packets: &str, exceptions: &'static [(&'static str, f64)]) -> Self {
        println!("| {packets} | bytes | µs | ordinary one, µs | ratio |\n|---|---|---|---|---|");
        Self { exceptions, above: Vec::new() }
    }

    /// Prints the row of packets of this time and size; `ordinary` is the time of an ordinary packet of the same size.
    pub fn row(&mut self, name: &str, (time, bytes): (Duration, usize), ordinary: Duration) {
        let ratio = time.as_secs_f64() / ordinary.as_secs_f64();
        let micros = |time: Duration| time.as_secs_f64() * 1e6;
        println!(
            "| {name} | {bytes} | {:.1} | {:.1} | {ratio:.1} |",
            micros(time),
            micros(ordinary)
        );
        let exception = self.exceptions.iter().find(|(excepted, _)| *excepted == name);
        if ratio > exception.map_or(MOST, |&(_, most)| most) {
            self.above.push(name.to_owned());
        }
    }

    /// Ends the table.
    ///
    /// # Panics
    /// If a ratio is larger than allowed.
    pub fn end(self) {
        assert!(self.above.is_empty(), "more than {MOST} times an ordinary one: {:?}", self.above);
    }
}
