//! The operating system's clock, which is read only here, and the ways to wait for a deadline.
//!
//! On Linux, time is `CLOCK_MONOTONIC` itself, with the kernel's origin: instants of two processes on
//! one machine compare, so a receiver can subtract the time that a sender wrote into its message. The
//! clock stands still while the machine sleeps. Elsewhere it is the standard library's, and starts with
//! the process.
//!
//! Two ways to wait, because tokio's timer wheel counts in milliseconds and rounds up:
//!
//! | | late by (median, p99, on an idle virtual machine of two cores) | costs |
//! |---|---|---|
//! | [`sleep_until`] | 1.1 ms, 1.9 ms | next to nothing: for any number of sleepers |
//! | [`Alarm`] | 0.02 ms, 0.09 ms | a file descriptor, a system call per earlier deadline |
//!
//! An endpoint and an emulator each have a single earliest deadline and therefore a single alarm.
//! The figures come from `cargo run --release -p rexmit --example clock` on Linux. Elsewhere an alarm
//! is a timer of tokio, and as late.

mod alarm;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(any(test, not(target_os = "linux")))]
mod portable;

#[cfg(target_os = "linux")]
use linux as system;
#[cfg(not(target_os = "linux"))]
use portable as system;

use rexmit_core::Instant;

pub use alarm::Alarm;
#[cfg(all(feature = "emulator", target_os = "linux"))]
pub(crate) use linux::TimerFd;

/// The time now: nanoseconds since the clock's origin.
///
/// ```
/// let before = rexmit::clock::now();
/// assert!(rexmit::clock::now() >= before);
/// ```
#[must_use]
pub fn now() -> Instant {
    Instant::from_nanos(system::monotonic_nanos())
}

/// The wall clock (`CLOCK_REALTIME`, since 1970) minus [`now`].
///
/// Kernel time stamps of packets are wall-clock time; subtracting this gives an [`Instant`]. It changes when
/// the clock is set, so it is read again for every batch of packets.
#[cfg(all(feature = "emulator", target_os = "linux"))]
pub(crate) fn wall_clock_offset() -> std::time::Duration {
    let monotonic = system::monotonic_nanos();
    std::time::Duration::from_nanos(linux::wall_clock_nanos().saturating_sub(monotonic))
}

/// Sleeps until `deadline`, or up to about two milliseconds longer.
///
/// For application timers, of which there may be many. For higher precision see [`Alarm`].
///
/// # Panics
/// Outside a tokio runtime with its timer enabled.
pub async fn sleep_until(deadline: Instant) {
    tokio::time::sleep(deadline - now()).await;
}
