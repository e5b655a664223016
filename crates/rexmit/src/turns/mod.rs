//! Runs any sans-I/O protocol in turns under one lock, taken by the handles and by one driver task.
//!
//! [`Served`] implements the steps for one protocol. Their order, which ensures that no wake-up is lost, is defined
//! here only.

mod call;
mod driver;
mod next;
mod promptness;
mod shared;

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use rexmit_core::Instant;
use tokio::sync::Notify;

pub(crate) use driver::Driver;
pub(crate) use next::NextTurn;
pub(crate) use shared::Shared;

/// The protocol state behind the lock of a [`Shared`].
pub(crate) trait Served: Send + Sized + 'static {
    /// The device from which packets are received and to which they are sent.
    type Device: Send + Sync + ?Sized;
    /// The packets received by one call.
    type Inbox: Send;
    /// The tasks to wake after a turn.
    type Wakes: Wakes;

    /// Sends the packets, reports the events and sets the timer that became due in this turn. Ends every turn.
    fn settle(&mut self, now: Instant) -> Self::Wakes;

    /// Called at the beginning of the driver's turn: registers its waker, which is called when there is work
    /// after the turn. `None` when the driver is no longer needed and ends.
    fn register_driver(&mut self, cx: &Context<'_>) -> Option<Arc<Self::Device>>;

    /// Receives the waiting packets in one call. Called without the lock, so that concurrent senders need not wait.
    fn poll_receive(
        device: &Self::Device,
        cx: &mut Context<'_>,
        inbox: &mut Self::Inbox,
    ) -> Poll<io::Result<()>>;

    /// Passes received packets to the protocol.
    fn handle_received(
        &mut self,
        now: Instant,
        device: &Self::Device,
        received: io::Result<&mut Self::Inbox>,
    );

    /// Polls the other sources of work for the driver: the alarm, and whether a full socket is writable again.
    fn poll_readiness(&mut self, cx: &mut Context<'_>, now: Instant);

    /// Called when the driver has ended: open connections end here.
    fn on_driver_gone(&mut self, now: Instant);
}

/// Wake-ups that are due.
pub(crate) trait Wakes {
    /// Wakes the tasks. Called once the lock is released, so that no task waits for it. `changed` notifies
    /// the tasks that wait for the endpoint itself.
    fn wake(self, changed: &Notify);
}
