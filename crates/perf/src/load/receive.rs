//! The receiving program: accepts connections, records messages, and reports when all connections
//! have ended.

use std::collections::BTreeMap;
use std::future::Future;
use std::io::Write;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rexmit::clock::{now, sleep_until};
use rexmit::{Association, Endpoint, InboundMessage};
use rexmit_core::Instant;
use rexmit_lab::measure::LatencyDistribution;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::LoadError;
use super::result::{BulkReceived, Progress, Received, rate};
use super::stamp::Stamp;

/// The receiver ends if no connection was open for this long, after the first one.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(1);
/// How often the record is flushed and progress is reported.
const FLUSH: Duration = Duration::from_secs(1);

/// Receives a thin load on `endpoints` until all connections have ended, or `stop` is ready;
/// connections still open are then aborted. Writes a line `conn,seq,send_ns,recv_ns` per message to
/// `out`, in the order of delivery, after a header line. `progress` is called once a second and at the end.
///
/// # Errors
/// If the record cannot be written.
///
/// # Panics
/// Outside a tokio runtime with I/O and time enabled.
pub async fn thin<W: Write + Send + 'static>(
    endpoints: &[Endpoint],
    mut out: W,
    progress: impl FnMut(&Progress) + Send + 'static,
    stop: impl Future<Output = ()>,
) -> Result<Received, LoadError> {
    out.write_all(b"conn,seq,send_ns,recv_ns\n")?;
    out.flush()?;
    let record = serve(endpoints, Record::new(out, Box::new(progress)), stop).await?;
    Ok(record.received())
}

/// Receives a bulk load; otherwise as [`thin`].
///
/// # Errors
/// None at present.
///
/// # Panics
/// As [`thin`].
pub async fn bulk(
    endpoints: &[Endpoint],
    stop: impl Future<Output = ()>,
) -> Result<BulkReceived, LoadError> {
    let count = serve(endpoints, Count::default(), stop).await?;
    let mut packets = (0, 0);
    for statistics in endpoints.iter().map(Endpoint::statistics) {
        packets.0 += statistics.packets_received;
        packets.1 += statistics.packets_sent;
    }
    let duration = count.last - count.first.unwrap_or(count.last);
    Ok(BulkReceived {
        duration,
        goodput_bits_per_second: rate(count.received.payload_bytes, duration),
        packets_received: packets.0,
        packets_sent: packets.1,
        ..count.received
    })
}

/// A receiver's handling of received data.
trait Log: Send + 'static {
    fn on_connection(&mut self);
    fn on_message(&mut self, at: Instant, message: &InboundMessage) -> std::io::Result<()>;
    /// Called once a second and at the end, with the number of open connections.
    fn flush(&mut self, open: usize) -> std::io::Result<()>;
}

async fn serve<L: Log>(
    endpoints: &[Endpoint],
    log: L,
    stop: impl Future<Output = ()>,
) -> Result<L, LoadError> {
    let mut stop = pin!(stop);
    let log = Arc::new(Mutex::new(log));
    let (accepted, mut accepting) = mpsc::channel(1);
    let mut acceptors = JoinSet::new();
    for endpoint in endpoints {
        acceptors.spawn(accept_all(endpoint.clone(), accepted.clone()));
    }
    let mut open = JoinSet::new();
    let mut quiet_since = None;
    let mut next_flush = now() + FLUSH;
    loop {
        let quiet_end = quiet_since.map_or(Instant::FAR_FUTURE, |since| since + IDLE_TIMEOUT);
        tokio::select! {
            () = stop.as_mut() => {
                break endpoints.iter().for_each(|it| it.abort(b"the receiver was stopped"));
            }
            () = sleep_until(quiet_end.min(next_flush)) => {
                if now() >= quiet_end {
                    break;
                }
                lock(&log).flush(open.len())?;
                next_flush = now() + FLUSH;
            }
            Some(association) = accepting.recv() => {
                quiet_since = None;
                lock(&log).on_connection();
                open.spawn(receive(association, Arc::clone(&log)));
            }
            Some(ended) = open.join_next() => {
                ended.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))?;
                quiet_since = open.is_empty().then(now);
            }
        }
    }
    while let Some(ended) = open.join_next().await {
        ended.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))?;
    }
    lock(&log).flush(0)?;
    // Every task that had a handle has ended.
    let log = Arc::into_inner(log).expect("one handle is left");
    Ok(log.into_inner().unwrap_or_else(PoisonError::into_inner))
}

async fn accept_all(endpoint: Endpoint, accepted: mpsc::Sender<Association>) {
    while let Some(association) = endpoint.accept().await {
        if accepted.send(association).await.is_err() {
            return;
        }
    }
}

async fn receive<L: Log>(association: Association, log: Arc<Mutex<L>>) -> std::io::Result<()> {
    while let Some(message) = association.recv().await {
        let mut log = lock(&log);
        log.on_message(now(), &message)?;
    }
    Ok(())
}

fn lock<L>(log: &Mutex<L>) -> MutexGuard<'_, L> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The record of a thin load.
struct Record<W: Write> {
    out: std::io::BufWriter<W>,
    received: Received,
    latency: LatencyDistribution,
    first: Option<Instant>,
    last: Instant,
    /// Per connection: number of messages, and one more than the highest sequence number.
    connections: BTreeMap<u32, (u64, u64)>,
    progress: Box<dyn FnMut(&Progress) + Send>,
}

impl<W: Write> Record<W> {
    fn new(out: W, progress: Box<dyn FnMut(&Progress) + Send>) -> Self {
        Self {
            out: std::io::BufWriter::with_capacity(1 << 16, out),
            received: Received::default(),
            latency: LatencyDistribution::new(),
            first: None,
            last: Instant::ZERO,
            connections: BTreeMap::new(),
            progress,
        }
    }

    fn received(&self) -> Received {
        let missing = self.connections.values().map(|(count, end)| end.saturating_sub(*count));
        Received {
            missing: missing.sum(),
            duration: self.last - self.first.unwrap_or(self.last),
            latency: self.latency.summary(),
            ..self.received
        }
    }
}

impl<W: Write + Send + 'static> Log for Record<W> {
    fn on_connection(&mut self) {
        self.received.connections += 1;
    }

    fn on_message(&mut self, at: Instant, message: &InboundMessage) -> std::io::Result<()> {
        let Some(stamp) = Stamp::read(&message.payload) else {
            self.received.foreign += 1;
            return Ok(());
        };
        let Stamp { connection, sequence, sent } = stamp;
        self.first.get_or_insert(at);
        self.last = at;
        self.received.messages += 1;
        self.received.payload_bytes += message.payload.len() as u64;
        self.latency.record(at - sent);
        if self.connections.len() < MAX_CONNECTIONS || self.connections.contains_key(&connection) {
            let (count, end) = self.connections.entry(connection).or_default();
            *count += 1;
            self.received.overtaken += u64::from(sequence < *end);
            *end = (*end).max(sequence.saturating_add(1));
        }
        writeln!(self.out, "{connection},{sequence},{},{}", sent.as_nanos(), at.as_nanos())
    }

    fn flush(&mut self, open: usize) -> std::io::Result<()> {
        let progress = Progress { open, received: self.received() };
        (self.progress)(&progress);
        self.out.flush()
    }
}

/// Number of connections for which messages are counted individually; it bounds the memory that a
/// peer can make the receiver use. Missing and overtaken messages of further connections are not
/// counted.
const MAX_CONNECTIONS: usize = 1 << 20;

/// The counters of a bulk load.
#[derive(Default)]
struct Count {
    received: BulkReceived,
    first: Option<Instant>,
    last: Instant,
}

impl Log for Count {
    fn on_connection(&mut self) {
        self.received.connections += 1;
    }

    fn on_message(&mut self, at: Instant, message: &InboundMessage) -> std::io::Result<()> {
        self.first.get_or_insert(at);
        self.last = at;
        self.received.messages += 1;
        self.received.payload_bytes += message.payload.len() as u64;
        Ok(())
    }

    fn flush(&mut self, _open: usize) -> std::io::Result<()> {
        Ok(())
    }
}
