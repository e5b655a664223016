//! One association of a lane: sends each message at its time, and checks and times what arrives.

use std::sync::Arc;
use std::time::Duration;

use rexmit::{Association, InboundMessage, OutboundMessage, SendError, clock};
use rexmit_core::Instant;
use rexmit_netsim::traffic::trace::Message;
use rexmit_sctp::recovery::RecoveryStatistics;

use super::{RealtimeError, Span};
use crate::measure::MessageRecord;

/// How often to look whether the last acknowledgements have come.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// All messages go over this stream, as a game's do over its one connection.
const STREAM: u16 = 0;

/// Is told what each message waited, when it is delivered.
pub(super) type OnDelivery = Arc<dyn Fn(Duration) + Send + Sync>;

/// An association, and what is to be sent over it.
pub(super) struct Flow {
    pub(super) profile: String,
    /// The server's end.
    pub(super) sender: Association,
    /// The client's end.
    pub(super) receiver: Association,
    pub(super) messages: Vec<Message>,
    pub(super) unordered: bool,
}

/// What became of a flow.
pub(super) struct Finished {
    pub(super) records: Vec<MessageRecord>,
    pub(super) recovery: RecoveryStatistics,
    /// Still open, so that no end of one flow is measured while another goes on.
    pub(super) ends: [Association; 2],
}

impl Flow {
    /// Sends and receives until everything is delivered and acknowledged, or patience is over.
    pub(super) async fn run(
        self,
        (start, deadline): Span,
        on_delivery: OnDelivery,
    ) -> Result<Finished, RealtimeError> {
        let mut records = self.records(start);
        let both = async {
            let sending = self.send(start);
            let receiving = self.receive(&mut records, &on_delivery);
            tokio::try_join!(sending, receiving)?;
            self.settle().await;
            Ok::<(), RealtimeError>(())
        };
        tokio::select! {
            result = both => result?,
            () = clock::sleep_until(deadline) => {}
        }
        let Some(statistics) = self.sender.statistics() else { return Err(self.ended_early()) };
        let ends = [self.sender, self.receiver];
        Ok(Finished { records, recovery: statistics.recovery, ends })
    }

    /// The messages as nothing has become of them yet.
    fn records(&self, start: Instant) -> Vec<MessageRecord> {
        let connection = self.sender.trace_number();
        let record = |(sequence, message): (u64, &Message)| MessageRecord {
            connection,
            stream: STREAM,
            sequence,
            payload_bytes: message.bytes,
            intended: start + message.at,
            delivered: None,
            transmissions: None,
        };
        (0..).zip(&self.messages).map(record).collect()
    }

    async fn send(&self, start: Instant) -> Result<(), RealtimeError> {
        let mut alarm = clock::Alarm::new()?;
        for (number, message) in self.messages.iter().enumerate() {
            let at = start + message.at;
            while clock::now() < at {
                alarm.arm(at);
                alarm.expired().await?;
            }
            let message = OutboundMessage {
                ppid: number as u32,
                unordered: self.unordered,
                ..OutboundMessage::new(STREAM, content(number, message.bytes))
            };
            match self.sender.send(message).await {
                Ok(_) => {}
                Err(SendError::Closing) => return Err(self.ended_early()),
                Err(source) => {
                    let profile = self.profile.clone();
                    return Err(RealtimeError::Send { profile, message: number, source });
                }
            }
        }
        Ok(())
    }

    async fn receive(
        &self,
        records: &mut [MessageRecord],
        on_delivery: &OnDelivery,
    ) -> Result<(), RealtimeError> {
        for count in 0..records.len() {
            let Some(message) = self.receiver.recv().await else { return Err(self.ended_early()) };
            let now = clock::now();
            let number = self.check(&message, count, records)?;
            let record = &mut records[number];
            record.delivered = Some(now);
            on_delivery(now - record.intended);
        }
        Ok(())
    }

    /// The number of a message that arrived as the `count`th, if it is one that may arrive now.
    fn check(
        &self,
        message: &InboundMessage,
        count: usize,
        records: &[MessageRecord],
    ) -> Result<usize, RealtimeError> {
        let number = message.ppid as usize;
        let broken = |what: String| RealtimeError::Broken { profile: self.profile.clone(), what };
        let Some(record) = records.get(number) else {
            return Err(broken(format!("message {number} arrived, which was never sent")));
        };
        if record.delivered.is_some() {
            return Err(broken(format!("message {number} was delivered twice")));
        }
        if !self.unordered && number != count {
            return Err(broken(format!("message {number} was delivered in the place of {count}")));
        }
        if message.payload != content(number, record.payload_bytes) {
            return Err(broken(format!("message {number} arrived changed")));
        }
        Ok(number)
    }

    /// Waits until everything is acknowledged, so that each end of a run is the same.
    async fn settle(&self) {
        while self.sender.statistics().is_some_and(|s| s.send_buffered_bytes > 0) {
            clock::sleep_until(clock::now() + LOOK_AGAIN).await;
        }
    }

    fn ended_early(&self) -> RealtimeError {
        let reason = self.sender.close_reason().or_else(|| self.receiver.close_reason());
        let reason = reason.unwrap_or(rexmit::CloseReason::Shutdown);
        RealtimeError::EndedEarly { profile: self.profile.clone(), reason }
    }
}

/// Made-up bytes that differ from message to message and from place to place.
fn content(number: usize, bytes: u32) -> Vec<u8> {
    let first = number.wrapping_mul(31);
    (0..bytes as usize).map(|place| first.wrapping_add(place.wrapping_mul(7)) as u8).collect()
}
