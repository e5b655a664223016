//! When the next turn takes place, and which task takes it.

use std::task::{Context, Poll};

use rexmit_core::{Instant, Machine};

use super::call::DriverCall;
use super::promptness::Promptness;
use crate::clock::Alarm;

/// How long timers wait for a device that is full. A longer time, as on a link that is down, would hide a dead peer.
#[cfg(feature = "udp")]
const MOST_HELD: std::time::Duration = std::time::Duration::from_secs(1);

/// When the driver runs next: at once because there is work, at a deadline, or when the application sends.
pub(crate) struct NextTurn {
    pub(crate) driver: DriverCall,
    /// Whether packets are sent at once.
    pub(crate) promptness: Promptness,
    alarm: Alarm,
    /// Timers that expire earlier wait until then, because packets sent before wait for the device.
    held_until: Option<Instant>,
}

impl NextTurn {
    pub(crate) fn new(alarm: Alarm) -> Self {
        Self {
            driver: DriverCall::default(),
            promptness: Promptness::default(),
            alarm,
            held_until: None,
        }
    }

    /// Arms the alarm for `deadline`, or for the end of the hold if that is later.
    pub(crate) fn arm(&mut self, deadline: Instant) {
        self.alarm.arm(self.held_until.map_or(deadline, |end| end.max(deadline)));
    }

    /// Delays timers while the device `is_full`, for at most [`MOST_HELD`]: the packet of a timer, or the one that it
    /// would retransmit, may still wait for the device.
    #[cfg(feature = "udp")]
    pub(crate) fn hold_timers(&mut self, now: Instant, is_full: bool) {
        self.held_until = is_full.then(|| self.held_until.unwrap_or(now + MOST_HELD));
    }

    /// Calls `handle_timeout` of `machine` if the alarm has expired and timers are not held, and registers the driver
    /// to be woken by the alarm.
    pub(crate) fn poll_alarm(
        &mut self,
        machine: &mut impl Machine,
        cx: &mut Context<'_>,
        now: Instant,
    ) {
        while let Poll::Ready(Ok(())) = self.alarm.poll_expired(cx) {
            // Timers that are held: the end of the turn arms the alarm again.
            let is_held = self.held_until.is_some_and(|end| now < end);
            if !is_held && machine.poll_timeout().is_some_and(|deadline| deadline <= now) {
                machine.handle_timeout(now);
            }
        }
    }
}
