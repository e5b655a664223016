//! When the next turn takes place, and which task takes it.

use std::task::{Context, Poll};

use rexmit_core::{Instant, Machine};

use super::call::DriverCall;
use super::promptness::Promptness;
use crate::clock::Alarm;

/// When the driver runs next: at once because there is work, at a deadline, or when the application sends.
pub(crate) struct NextTurn {
    pub(crate) driver: DriverCall,
    /// Whether packets are sent at once.
    pub(crate) promptness: Promptness,
    pub(crate) alarm: Alarm,
}

impl NextTurn {
    pub(crate) fn new(alarm: Alarm) -> Self {
        Self { driver: DriverCall::default(), promptness: Promptness::default(), alarm }
    }

    /// Calls `handle_timeout` of `machine` if the alarm has expired, and registers the driver to be woken by
    /// the alarm.
    pub(crate) fn poll_alarm(
        &mut self,
        machine: &mut impl Machine,
        cx: &mut Context<'_>,
        now: Instant,
    ) {
        while let Poll::Ready(Ok(())) = self.alarm.poll_expired(cx) {
            if machine.poll_timeout().is_some_and(|deadline| deadline <= now) {
                machine.handle_timeout(now);
            }
        }
    }
}
