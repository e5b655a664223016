//! One connection of a lane: sends each message at its time, finds the messages in the received
//! byte stream, and checks and times them.

use std::io;

use rexmit::clock;
use rexmit::tcp::{ConnectionStatistics, TcpStream};
use rexmit_lab::measure::{LatencyDistribution, MessageRecord};
use rexmit_netsim::traffic::trace::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::framing::Framing;
use crate::realtime::error::RealtimeError;
use crate::realtime::flow::{LOOK_AGAIN, OnDelivery, until};
use crate::realtime::records::{Records, content};
use crate::realtime::replay::Span;

/// Bytes read from the kernel at once.
pub(in crate::realtime) const READ_BYTES: usize = 64 * 1024;

/// A connection and its planned messages.
pub(super) struct Flow {
    pub(super) profile: String,
    /// The server's end: rexmit's TCP.
    pub(super) sender: TcpStream,
    /// The client's end: the kernel's TCP.
    pub(super) receiver: tokio::net::TcpStream,
    pub(super) messages: Vec<Message>,
}

/// The result of a flow.
pub(super) struct Finished {
    pub(super) records: Vec<MessageRecord>,
    pub(super) statistics: ConnectionStatistics,
    /// How late the application sent; empty if the time limit came first.
    pub(super) lateness: LatencyDistribution,
    /// Both ends, kept open so that the end of one flow does not disturb the measurement of
    /// another.
    pub(super) ends: (TcpStream, tokio::net::TcpStream),
}

impl Flow {
    /// Sends and receives until everything is delivered and acknowledged, or the time limit is reached.
    pub(super) async fn run(
        mut self,
        (start, deadline): Span,
        on_delivery: OnDelivery,
    ) -> Result<Finished, RealtimeError> {
        let place = (self.sender.trace_number(), 0);
        let mut records = Records::new(place, &self.messages, start, false);
        let Self { profile, sender, receiver, messages } = &mut self;
        let ended = |source| RealtimeError::ConnectionLost { profile: profile.clone(), source };
        let both = async {
            let sending = async { send(sender, messages, start).await.map_err(ended) };
            let receiving = receive((&*profile, receiver), messages, &mut records, &on_delivery);
            let (lateness, ()) = tokio::try_join!(sending, receiving)?;
            settle(sender).await;
            Ok::<_, RealtimeError>(lateness)
        };
        let lateness = tokio::select! {
            result = both => result?,
            () = clock::sleep_until(deadline) => LatencyDistribution::new(),
        };
        let statistics = self.sender.statistics();
        let ends = (self.sender, self.receiver);
        Ok(Finished { records: records.into_inner(), statistics, lateness, ends })
    }
}

/// Sends each message at its time; returns the delays of the sending task.
async fn send(
    sender: &mut TcpStream,
    messages: &[Message],
    start: rexmit_core::Instant,
) -> io::Result<LatencyDistribution> {
    let mut lateness = LatencyDistribution::new();
    let mut alarm = clock::Alarm::new()?;
    for (number, message) in (0..).zip(messages) {
        let at = start + message.at;
        until(&mut alarm, at).await?;
        lateness.record(clock::now() - at);
        sender.write_all(&content(number, message.bytes)).await?;
    }
    Ok(lateness)
}

async fn receive(
    (profile, receiver): (&str, &mut tokio::net::TcpStream),
    messages: &[Message],
    records: &mut Records,
    on_delivery: &OnDelivery,
) -> Result<(), RealtimeError> {
    let mut framing = Framing::new(messages);
    let mut bytes = vec![0; READ_BYTES];
    while !records.is_complete() {
        let read = receiver.read(&mut bytes).await;
        let now = clock::now();
        let read = read.and_then(|len| match len {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            len => Ok(len),
        });
        let lost = |source| RealtimeError::ConnectionLost { profile: profile.to_owned(), source };
        framing.take(&bytes[..read.map_err(lost)?], |number, message| {
            let broken = |what| RealtimeError::Broken { profile: profile.to_owned(), what };
            on_delivery(records.on_arrival(now, number, message).map_err(broken)?);
            Ok::<_, RealtimeError>(())
        })?;
    }
    Ok(())
}

/// Waits until everything is acknowledged, so that all runs end in the same state.
async fn settle(sender: &TcpStream) {
    while sender.statistics().send_buffered_bytes > 0 && sender.close_reason().is_none() {
        clock::sleep_until(clock::now() + LOOK_AGAIN).await;
    }
}
