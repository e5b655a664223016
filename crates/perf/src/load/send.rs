//! The sending program: connects, sends the load, waits until everything is acknowledged, and
//! counts.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::{Pin, pin};
use std::time::Duration;

use bytes::Bytes;
use rexmit::clock::{Alarm, now};
use rexmit::{Association, Endpoint, OutboundMessage, TrySendError};
use rexmit_core::Instant;
use tokio::task::JoinSet;

use super::connections::{Ended, Lingering, SetUp};
use super::result::Sent;
use super::schedule::{Schedule, ThinLoad};
use super::stamp::Stamp;
use super::{LoadError, Target};

/// Bulk data on several connections.
#[derive(Clone, Debug)]
pub struct BulkLoad {
    /// Connections.
    pub connections: u32,
    /// Bytes of a message; at least one.
    pub message_bytes: usize,
    /// Length of the sending phase.
    pub duration: Duration,
    /// Whether messages may be delivered out of order.
    pub unordered: bool,
}

/// Sends a thin load to `target`. Sending stops once `stop` is ready or all connections have
/// failed; accepted messages are still delivered. `started` is called with the endpoints
/// and the number of connections when all are set up that can be.
///
/// A message that does not fit into the send buffer is queued and keeps the time at which it was
/// due.
///
/// # Errors
/// If no connection can be set up, or a system call fails. A connection that fails, or cannot be set up beside others,
/// is counted in the result and is no error.
///
/// # Panics
/// Outside a tokio runtime with I/O and time enabled.
pub async fn thin(
    target: &Target,
    load: &ThinLoad,
    stop: impl Future<Output = ()>,
    started: impl FnOnce(&[Endpoint], usize),
) -> Result<(Sent, Lingering), LoadError> {
    let mut stop = pin!(stop);
    let SetUp { connections, endpoints, failed } =
        set_up(target, load.connections, stop.as_mut()).await?;
    started(&endpoints, connections.len());
    let start = now();
    let load = &ThinLoad { connections: connections.len() as u32, ..load.clone() };
    let mut schedule = Schedule::new(load, start);
    let numbered = (load.first_connection..).zip(connections);
    let mut lines: Vec<Line> = numbered.map(|(i, c)| Line::new(i, c, load)).collect();
    let mut alarm = Alarm::new()?;
    while let Some(due) = schedule.next_due() {
        alarm.arm(due.max(now() + load.batch));
        tokio::select! {
            result = alarm.expired() => result?,
            () = stop.as_mut() => break,
        }
        while let Some((at, connection)) = schedule.poll(now()) {
            lines[connection as usize].send(at);
        }
        if lines.iter().all(|line| line.is_broken) {
            break;
        }
    }
    let mut finishing = JoinSet::new();
    lines.into_iter().for_each(|line| drop(finishing.spawn(line.finish())));
    let sent = gather(finishing, Sent::new(target, failed.count), start).await;
    Ok((sent, Lingering::new(endpoints)))
}

/// Sends bulk data to `target`; otherwise like [`thin`].
///
/// # Errors
/// As [`thin`].
///
/// # Panics
/// As [`thin`].
pub async fn bulk(
    target: &Target,
    load: &BulkLoad,
    stop: impl Future<Output = ()>,
    started: impl FnOnce(&[Endpoint], usize),
) -> Result<(Sent, Lingering), LoadError> {
    let mut stop = pin!(stop);
    let SetUp { connections, endpoints, failed } =
        set_up(target, load.connections, stop.as_mut()).await?;
    started(&endpoints, connections.len());
    let start = now();
    let (stopped, _) = tokio::sync::watch::channel(());
    let mut finishing = JoinSet::new();
    for connection in connections {
        let (load, mut stopped) = (load.clone(), stopped.subscribe());
        finishing.spawn(async move {
            let mut sent = 0;
            tokio::select! {
                () = fill(&connection, &load, start, &mut sent) => {}
                _ = stopped.changed() => {}
            }
            (sent, Ended::by_shutdown(connection).await)
        });
    }
    let mut gathering = pin!(gather(finishing, Sent::new(target, failed.count), start));
    let sent = tokio::select! {
        sent = gathering.as_mut() => sent,
        () = stop => {
            stopped.send_replace(());
            gathering.await
        }
    };
    Ok((sent, Lingering::new(endpoints)))
}

async fn set_up(
    target: &Target,
    connections: u32,
    stop: Pin<&mut impl Future<Output = ()>>,
) -> Result<SetUp, LoadError> {
    tokio::select! {
        connections = target.connect_all(connections) => connections,
        () = stop => Err(LoadError::Stopped),
    }
}

/// Sends until the load is over or the connection fails.
async fn fill(association: &Association, load: &BulkLoad, start: Instant, sent: &mut u64) {
    let payload = Bytes::from(vec![0; load.message_bytes]);
    let message = OutboundMessage::new(0, payload).unordered(load.unordered);
    while now() - start < load.duration && association.send(message.clone()).await.is_ok() {
        *sent += 1;
    }
}

/// One connection of a thin load.
struct Line {
    number: u32,
    association: Association,
    message_bytes: usize,
    unordered: bool,
    /// Messages that have been due so far.
    due: u64,
    /// Due times of the messages that did not fit into the send buffer yet.
    waiting: VecDeque<Instant>,
    /// Whether the connection has failed.
    is_broken: bool,
}

impl Line {
    fn new(number: u32, association: Association, load: &ThinLoad) -> Self {
        Self {
            number,
            association,
            message_bytes: load.message_bytes,
            unordered: load.unordered,
            due: 0,
            waiting: VecDeque::new(),
            is_broken: false,
        }
    }

    /// Sends the message that was due at `at`, or queues it.
    fn send(&mut self, at: Instant) {
        self.due += 1;
        self.waiting.push_back(at);
        while let Some(message) = self.next_message() {
            match self.association.try_send(message) {
                Ok(_) => drop(self.waiting.pop_front()),
                Err(error) => {
                    self.is_broken = error != TrySendError::Full;
                    return;
                }
            }
        }
    }

    fn next_message(&self) -> Option<OutboundMessage> {
        let sent = *self.waiting.front()?;
        let sequence = self.due - self.waiting.len() as u64;
        let stamp = Stamp { connection: self.number, sequence, sent };
        let payload = stamp.message(self.message_bytes);
        Some(OutboundMessage::new(0, payload).unordered(self.unordered))
    }

    /// Sends the queued messages and shuts the association down. Returns how many messages were
    /// due.
    async fn finish(mut self) -> (u64, Ended) {
        while let Some(message) = self.next_message() {
            match self.association.send(message).await {
                Ok(_) => drop(self.waiting.pop_front()),
                Err(_) => break, // The others would fare no better.
            }
        }
        (self.due, Ended::by_shutdown(self.association).await)
    }
}

async fn gather(mut finishing: JoinSet<(u64, Ended)>, mut sent: Sent, start: Instant) -> Sent {
    while let Some(finished) = finishing.join_next().await {
        // A task ends early only by a panic, which is propagated here.
        let (due, ended) =
            finished.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
        sent.add(due, &ended);
    }
    sent.ended(now() - start)
}
