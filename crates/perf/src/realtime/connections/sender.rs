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

/// The sending end of a connection that stands.
pub(super) trait Sender: Send + 'static {
    /// Gives message `number` to the transport; whether it took it.
    fn send(&mut self, number: u32, message: Vec<u8>) -> impl Future<Output = bool> + Send;

    /// Whether it has ended.
    fn is_closed(&self) -> bool;

    /// What it has counted.
    fn recovery(&self) -> RecoveryStatistics;
}

/// One connection of a run.
pub(super) struct Course {
    /// Its place among the others.
    pub(super) index: usize,
    pub(super) planned: Planned,
    pub(super) arrivals: Arrivals,
    /// Begin and time limit of the run.
    pub(super) times: (Instant, Instant),
}

/// When connections begin, from now on, and the time limit.
pub(super) fn times(connections: &Connections) -> (Instant, Instant) {
    let origin = clock::now();
    (origin, origin + connections.patience)
}

/// What became of it.
pub(super) struct Finished<S> {
    /// From when on it stood, if it ever did.
    pub(super) stands_since: Option<Instant>,
    /// How late its messages were given to the transport.
    pub(super) lateness: LatencyDistribution,
    /// Still there: what it counts goes on while others send.
    pub(super) sender: Option<S>,
}

impl Course {
    /// Connects by `connect` when it is time, and sends each message at its own.
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
