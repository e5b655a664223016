//! One association of a lane: sends each message at its time, and checks and times the arrivals.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rexmit::{Association, OutboundMessage, SendError, clock};
use rexmit_core::Instant;
use rexmit_lab::measure::{LatencyDistribution, MessageRecord};
use rexmit_netsim::traffic::trace::Message;
use rexmit_sctp::recovery::RecoveryStatistics;

use super::error::RealtimeError;
use super::records::{Records, content};
use super::replay::Span;

/// Interval of the checks for outstanding acknowledgements.
pub(super) const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// All messages use this stream, as a game uses one connection.
const STREAM: u16 = 0;

/// A callback with the latency of each message, called on delivery.
pub(super) type OnDelivery = Arc<dyn Fn(Duration) + Send + Sync>;

/// An association and its planned messages.
pub(super) struct Flow {
    pub(super) profile: String,
    /// The server's end.
    pub(super) sender: Association,
    /// The client's end.
    pub(super) receiver: Association,
    pub(super) messages: Vec<Message>,
    pub(super) unordered: bool,
}

/// The result of a flow.
pub(super) struct Finished {
    pub(super) records: Vec<MessageRecord>,
    pub(super) recovery: RecoveryStatistics,
    /// How late the application sent; empty if the time limit came first.
    pub(super) lateness: LatencyDistribution,
    /// Both ends, kept open so that the end of one flow does not disturb the measurement of
    /// another.
    pub(super) ends: [Association; 2],
}

/// Waits until `at`.
pub(super) async fn until(alarm: &mut clock::Alarm, at: Instant) -> io::Result<()> {
    while clock::now() < at {
        alarm.arm(at);
        alarm.expired().await?;
    }
    Ok(())
}

impl Flow {
    /// Sends and receives until everything is delivered and acknowledged, or the time limit is reached.
    pub(super) async fn run(
        self,
        (start, deadline): Span,
        on_delivery: OnDelivery,
    ) -> Result<Finished, RealtimeError> {
        let connection = self.sender.trace_number();
        let place = (connection, STREAM);
        let mut records = Records::new(place, &self.messages, start, self.unordered);
        let both = async {
            let sending = self.send(start);
            let receiving = self.receive(&mut records, &on_delivery);
            let (lateness, ()) = tokio::try_join!(sending, receiving)?;
            self.settle().await;
            Ok::<_, RealtimeError>(lateness)
        };
        let lateness = tokio::select! {
            result = both => result?,
            () = clock::sleep_until(deadline) => LatencyDistribution::new(),
        };
        let statistics = self.sender.statistics();
        let ends = [self.sender, self.receiver];
        let records = records.into_inner();
        Ok(Finished { records, recovery: statistics.recovery, lateness, ends })
    }

    /// Sends each message at its time; returns the delays of the sending task.
    async fn send(&self, start: Instant) -> Result<LatencyDistribution, RealtimeError> {
        let mut lateness = LatencyDistribution::new();
        let mut alarm = clock::Alarm::new()?;
        for (number, message) in (0..).zip(&self.messages) {
            let at = start + message.at;
            until(&mut alarm, at).await?;
            lateness.record(clock::now() - at);
            let message = OutboundMessage::new(STREAM, content(number, message.bytes))
                .ppid(number)
                .unordered(self.unordered);
            match self.sender.send(message).await {
                Ok(_) => {}
                Err(SendError::Closing) => return Err(self.ended_early()),
                Err(source) => {
                    let profile = self.profile.clone();
                    return Err(RealtimeError::Send { profile, message: number, source });
                }
            }
        }
        Ok(lateness)
    }

    async fn receive(
        &self,
        records: &mut Records,
        on_delivery: &OnDelivery,
    ) -> Result<(), RealtimeError> {
        while !records.is_complete() {
            let Some(message) = self.receiver.recv().await else { return Err(self.ended_early()) };
            let arrival = records.on_arrival(clock::now(), message.ppid, &message.payload);
            let broken = |what| RealtimeError::Broken { profile: self.profile.clone(), what };
            on_delivery(arrival.map_err(broken)?);
        }
        Ok(())
    }

    /// Waits until everything is acknowledged, so that all runs end in the same state.
    async fn settle(&self) {
        while self.sender.statistics().send_buffered_bytes > 0
            && self.sender.close_reason().is_none()
        {
            clock::sleep_until(clock::now() + LOOK_AGAIN).await;
        }
    }

    fn ended_early(&self) -> RealtimeError {
        let reason = self.sender.close_reason().or_else(|| self.receiver.close_reason());
        let reason = reason.unwrap_or(rexmit::CloseReason::Shutdown);
        RealtimeError::EndedEarly { profile: self.profile.clone(), reason }
    }
}
