//! The one place that reads the operating system's clock, and the ways to wait for a deadline.
//!
//! Time is `CLOCK_MONOTONIC` itself, with the kernel's origin: instants of two processes on one
//! machine compare, so a receiver can subtract the time that a sender wrote into its message. The
//! clock stands still while the machine sleeps.
//!
//! Two ways to wait, because tokio's timer wheel counts in milliseconds and rounds up:
//!
//! | | late by (median, p99, on an idle virtual machine of two cores) | costs |
//! |---|---|---|
//! | [`sleep_until`] | 1.1 ms, 1.9 ms | next to nothing: for any number of sleepers |
//! | [`Alarm`] | 0.02 ms, 0.09 ms | a file descriptor, a system call per earlier deadline |
//!
//! An endpoint and an emulator each have a single earliest deadline and therefore a single alarm.
//! The figures come from `cargo run --release -p rexmit --example clock`.

mod alarm;

use std::time::Duration;

use rexmit_core::Instant;
use rustix::time::{ClockId, clock_gettime};

pub use alarm::Alarm;
pub(crate) use alarm::TimerFd;

/// Nanoseconds of `CLOCK_MONOTONIC` since its origin.
///
/// ```
/// let before = rexmit::clock::now();
/// assert!(rexmit::clock::now() >= before);
/// ```
#[must_use]
pub fn now() -> Instant {
    Instant::from_nanos(nanos(ClockId::Monotonic))
}

/// How much later the wall clock (`CLOCK_REALTIME`, since 1970) stands than [`now`].
///
/// Kernel time stamps of packets are wall-clock time; subtracting this gives an [`Instant`]. It
/// changes when the clock is set, so it is read anew for every batch of packets.
pub(crate) fn wall_clock_offset() -> Duration {
    let monotonic = nanos(ClockId::Monotonic);
    Duration::from_nanos(nanos(ClockId::Realtime).saturating_sub(monotonic))
}

fn nanos(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    // Neither clock is negative: monotonic time starts at boot, wall-clock time in 1970.
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// Sleeps until `deadline`, up to about two milliseconds too long.
///
/// For application timers, of which there may be many. See the [module](self) for the alternative.
///
/// # Panics
/// Outside a tokio runtime with its timer enabled.
pub async fn sleep_until(deadline: Instant) {
    tokio::time::sleep(deadline - now()).await;
}
