//! How a protocol that does no I/O is served, whichever protocol it is: turns under one lock, taken
//! by the handles and by one task that drives.
//!
//! What is served says by [`Served`] how its part of each step is done; the order of the steps, and
//! with it that no wake-up is lost, is here alone.

mod call;
mod driver;
mod promptness;
mod shared;

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use rexmit_core::{Instant, Machine};
use tokio::sync::Notify;

use crate::clock::Alarm;
pub(crate) use call::DriverCall;
pub(crate) use driver::Driver;
pub(crate) use promptness::Promptness;
pub(crate) use shared::Shared;

/// What stands behind the lock of a [`Shared`].
pub(crate) trait Served: Send + Sized + 'static {
    /// Where packets come from and go to.
    type Device: Send + Sync + ?Sized;
    /// Packets that one call received.
    type Inbox: Send;
    /// Who is to be woken up after a turn.
    type Wakes: Wakes;

    /// Does what the last change made due: sends, tells, sets the timer. Ends every turn.
    fn settle(&mut self, now: Instant) -> Self::Wakes;

    /// The driver's turn begins: whom to wake up when there is work after it. `None` when it is no
    /// longer needed.
    fn register_driver(&mut self, cx: &Context<'_>) -> Option<Arc<Self::Device>>;

    /// Receives what is there, in one call. Not under the lock: who sends meanwhile need not wait
    /// for it.
    fn poll_receive(
        device: &Self::Device,
        cx: &mut Context<'_>,
        inbox: &mut Self::Inbox,
    ) -> Poll<io::Result<()>>;

    /// Hands what was received to the protocol.
    fn handle_received(
        &mut self,
        now: Instant,
        device: &Self::Device,
        received: io::Result<&Self::Inbox>,
    );

    /// Looks at what else the driver waits for, and registers it there.
    fn poll_readiness(&mut self, cx: &mut Context<'_>, now: Instant);

    /// Nobody drives any more: what is open ends here.
    fn on_driver_gone(&mut self, now: Instant);
}

/// Wake-ups that are due.
pub(crate) trait Wakes {
    /// Once the lock is released, so that nobody wakes up in front of it. `changed` is the waiting
    /// room of the whole endpoint.
    fn wake(self, changed: &Notify);
}

/// Lets `machine` handle its timers if the alarm went off; registers the driver for that.
pub(crate) fn poll_alarm(
    alarm: &mut Alarm,
    machine: &mut impl Machine,
    cx: &mut Context<'_>,
    now: Instant,
) {
    while let Poll::Ready(Ok(())) = alarm.poll_expired(cx) {
        if machine.poll_timeout().is_some_and(|deadline| deadline <= now) {
            machine.handle_timeout(now);
        }
    }
}
