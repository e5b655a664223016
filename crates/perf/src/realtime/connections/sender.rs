//! The sending program of one connection.

use std::future::Future;

use rexmit::clock::{self, Alarm};
use rexmit_core::Instant;
use rexmit_lab::connections::{Connections, Planned};
use rexmit_lab::measure::LatencyDistribution;
use rexmit_netsim::traffic::trace::Message;
use rexmit_sctp::recovery::RecoveryStatistics;

use super::arrivals::Arrivals;
use crate::realtime::error::RealtimeError;
use crate::realtime::flow::{LOOK_AGAIN, until};
use crate::realtime::records::content;

/// The sending end of an established connection.
pub(super) trait Sender: Send + 'static {
    /// Passes message `number` to the transport; returns whether it was accepted.
    fn send(&mut self, number: u32, message: Vec<u8>) -> impl Future<Output = bool> + Send;

    /// Whether the connection has ended.
    fn is_closed(&self) -> bool;

    /// The recovery statistics of the connection.
    fn recovery(&self) -> RecoveryStatistics;
}

/// One connection of a run.
pub(super) struct Course {
    /// The connection's index.
    pub(super) index: usize,
    pub(super) planned: Planned,
    pub(super) arrivals: Arrivals,
    /// Start and time limit of the run.
    pub(super) times: (Instant, Instant),
}

/// The time at which the first connection begins, and the time limit.
pub(super) fn times(connections: &Connections) -> (Instant, Instant) {
    let origin = clock::now();
    (origin, origin + connections.setup_timeout)
}

/// The result of one connection.
pub(super) struct Finished<S> {
    /// When the connection was established, if it was.
    pub(super) stands_since: Option<Instant>,
    /// How late its messages were passed to the transport.
    pub(super) lateness: LatencyDistribution,
    /// The sender, kept open so that its counters include the time in which others still send.
    pub(super) sender: Option<S>,
}

impl Course {
    /// Connects by `connect` at the connection's start time, and sends each message at its time.
    pub(super) async fn run<S: Sender>(
        self,
        connect: impl Future<Output = Option<S>>,
    ) -> Result<(usize, Finished<S>), RealtimeError> {
        let (origin, deadline) = self.times;
        let mut finished =
            Finished { stands_since: None, lateness: LatencyDistribution::new(), sender: None };
        clock::sleep_until(origin + self.planned.begin).await;
        let connected = tokio::select! {
            connected = connect => connected,
            () = clock::sleep_until(deadline) => None,
        };
        let Some(mut sender) = connected else { return Ok((self.index, finished)) };
        let start = clock::now();
        finished.stands_since = Some(start);
        tokio::select! {
            result = self.send(start, &mut sender, &mut finished.lateness) => result?,
            () = clock::sleep_until(deadline) => {}
        }
        finished.sender = Some(sender);
        Ok((self.index, finished))
    }

    /// Sends, and waits until everything has arrived or the connection has ended.
    async fn send(
        &self,
        start: Instant,
        sender: &mut impl Sender,
        lateness: &mut LatencyDistribution,
    ) -> Result<(), RealtimeError> {
        let mut alarm = Alarm::new()?;
        for (number, &Message { at, bytes }) in (0..).zip(&self.planned.messages) {
            let intended = start + at;
            until(&mut alarm, intended).await?;
            lateness.record(clock::now() - intended);
            if !sender.send(number, content(number, bytes)).await {
                return Ok(());
            }
        }
        while !self.arrivals.is_complete(self.index) && !sender.is_closed() {
            clock::sleep_until(clock::now() + LOOK_AGAIN).await;
        }
        Ok(())
    }
}
