//! Measurement on a machine with other load: processor time instead of wall time if one thread does all the work,
//! contestants in turn, and the median of paired ratios.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Returns the result of `work`, and the processor time that this thread spent on it.
pub fn cpu_time<R>(work: impl FnOnce() -> R) -> (R, Duration) {
    let start = read(ClockId::ThreadCPUTime);
    let result = work();
    (result, read(ClockId::ThreadCPUTime).saturating_sub(start))
}

/// The processor time that this process has spent so far, in all threads.
#[must_use]
pub fn process_cpu_time() -> Duration {
    read(ClockId::ProcessCPUTime)
}

/// Monotonic time since some origin.
#[must_use]
pub fn monotonic() -> Duration {
    read(ClockId::Monotonic)
}

/// Blocks this thread.
#[expect(clippy::disallowed_methods, reason = "a load is offered in real time to another process")]
pub fn sleep(duration: Duration) {
    std::thread::sleep(duration);
}

fn read(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// The middle value; the mean of the middle two of an even number.
///
/// # Panics
/// If `values` is empty.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { sorted[middle - 1].midpoint(sorted[middle]) }
}

/// The median of `a[n] / b[n]`, whose values were measured directly after each other.
#[must_use]
pub fn median_ratio(a: &[f64], b: &[f64]) -> f64 {
    let ratios: Vec<f64> = a.iter().zip(b).map(|(a, b)| a / b).collect();
    median(&ratios)
}
