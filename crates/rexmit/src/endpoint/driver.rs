//! The task that serves an endpoint's socket and timer.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::Shared;
use crate::socket::Inbox;

/// Receive calls in a row before other tasks get their turn.
const RECEIVES_PER_TURN: usize = 8;

/// Serves the endpoint until it has ended. Ends it when dropped before that.
pub(super) struct Driver {
    shared: Arc<Shared>,
    inbox: Inbox,
}

impl Driver {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, inbox: Inbox::new() }
    }

    pub(super) async fn run(mut self) {
        poll_fn(|cx| self.poll(cx)).await;
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        for _ in 0..RECEIVES_PER_TURN {
            // Registered first: what others ask for from here on is not missed.
            let socket = {
                let mut state = self.shared.lock();
                state.register_driver(cx);
                state.socket.clone()
            };
            let Some(socket) = socket else { return Poll::Ready(()) };
            // Outside the lock: who sends meanwhile need not wait for the system call.
            let received = socket.poll_receive(cx, &mut self.inbox);
            self.shared.with(|state, now| {
                match &received {
                    Poll::Ready(Ok(())) => state.handle_packets(now, &socket, &self.inbox),
                    Poll::Ready(Err(_)) => state.counts.receive_failures += 1,
                    Poll::Pending => {}
                }
                state.poll_readiness(cx, now);
            });
            if received.is_pending() {
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.shared.with_on_drop(super::state::State::on_driver_gone);
    }
}
