//! The task that serves an endpoint's device and timer.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::{Served, Shared};

/// The most receive calls in a row before other tasks get their turn.
const RECEIVES_PER_TURN: usize = 8;

/// Serves the endpoint until it has ended. If it is dropped before, the endpoint ends, too.
pub(crate) struct Driver<S: Served> {
    shared: Arc<Shared<S>>,
    inbox: S::Inbox,
}

impl<S: Served> Driver<S> {
    pub(crate) fn new(shared: Arc<Shared<S>>, inbox: S::Inbox) -> Self {
        Self { shared, inbox }
    }

    pub(crate) async fn run(mut self) {
        poll_fn(|cx| self.poll(cx)).await;
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        for turn in 1..=RECEIVES_PER_TURN {
            // Registered first: what others ask for from here on is not missed.
            let Some(device) = self.shared.lock().register_driver(cx) else {
                return Poll::Ready(());
            };
            // Outside the lock: a concurrent sender need not wait for the system call.
            let received = S::poll_receive(&device, cx, &mut self.inbox);
            let is_pending = received.is_pending();
            self.shared.with(|state, now| {
                if let Poll::Ready(received) = received {
                    state.handle_received(now, &device, received.map(|()| &mut self.inbox));
                }
                // A timer may wait for an ACK that has arrived.
                if is_pending || turn == RECEIVES_PER_TURN {
                    state.poll_readiness(cx, now);
                }
            });
            if is_pending {
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl<S: Served> Drop for Driver<S> {
    fn drop(&mut self) {
        self.shared.with_on_drop(S::on_driver_gone);
    }
}
