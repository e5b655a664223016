//! Measures the messages that arrive.

use rexmit_core::{Instant, RangeSet, Route};

use super::plan::{ThinPlan, read_number};
use super::window::{ThinRecord, Window};
use crate::hosts::running::Program;
use crate::hosts::transport::{Arrival, ConnectionEvent, ReadResult, Transport, Watch};
use crate::measure::{LatencyDistribution, MessageRecord};

/// The layer at which a message counts as received.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Layer {
    /// All of it has arrived, though it may have to wait for earlier messages.
    Transport,
    /// The message was delivered to the application.
    Application,
}

impl ThinRecord {
    /// When it was received at `layer`.
    #[must_use]
    pub const fn received_at(&self, layer: Layer) -> Option<Instant> {
        match layer {
            Layer::Transport => self.arrived,
            Layer::Application => self.delivered,
        }
    }
}

/// Receives the record of every message on delivery.
///
/// A `Vec` stores them all. For long runs, use an implementation that aggregates.
pub trait Gauge: Send + 'static {
    /// Called when the message is delivered to the application.
    fn on_delivered(&mut self, message: &ThinRecord);
}

impl Gauge for Vec<ThinRecord> {
    fn on_delivered(&mut self, message: &ThinRecord) {
        self.push(*message);
    }
}

/// Receives the messages of a plan over the first connection that is opened to it, and passes the
/// times of arrival and delivery of each to its gauge.
///
/// It assumes that every arriving packet with a correct checksum belongs to this connection. It
/// stores the uncompleted messages, at most 65,536: more can be missing with UDP only, and the
/// oldest then count as lost.
#[derive(Debug)]
pub struct ThinReceiver<T: Transport, G = Vec<ThinRecord>> {
    window: Window,
    gauge: G,
    id: Option<T::Id>,
    watch: T::Watch,
    /// For a stream: the ranges that have arrived.
    stream: RangeSet,
    /// For a stream: the number of bytes that the application has read.
    read: u64,
    /// The number after the highest one delivered.
    expected: u64,
    delivered: u64,
    out_of_order: u64,
    duplicates: u64,
    damaged: u64,
    is_closed: Option<bool>,
}

impl<T: Transport> ThinReceiver<T> {
    /// A receiver of `plan` that stores the record of every message.
    #[must_use]
    pub fn new(plan: ThinPlan) -> Self {
        Self::with_gauge(plan, Vec::new())
    }

    /// A record of every planned message, whose field `delivered` is the time of reception at
    /// `layer`. `connection` is the connection's number in the records.
    #[must_use]
    pub fn records(&self, layer: Layer, connection: u32) -> Vec<MessageRecord> {
        let mut records: Vec<_> = self.gauge.iter().copied().chain(self.undelivered()).collect();
        records.sort_unstable_by_key(|record| record.number);
        let records = records.iter().map(|record| MessageRecord {
            connection,
            stream: 0,
            sequence: record.number,
            payload_bytes: record.bytes,
            intended: record.intended,
            delivered: record.received_at(layer),
            transmissions: None,
        });
        records.collect()
    }

    /// The latency of the messages received at `layer`.
    #[must_use]
    pub fn latency(&self, layer: Layer) -> LatencyDistribution {
        let mut latency = LatencyDistribution::new();
        for record in self.gauge.iter().copied().chain(self.undelivered()) {
            let there = record.received_at(layer);
            there.into_iter().for_each(|at| latency.record(at - record.intended));
        }
        latency
    }
}

impl<T: Transport, G: Gauge> ThinReceiver<T, G> {
    /// A receiver of `plan` with the gauge `gauge`.
    #[must_use]
    pub fn with_gauge(plan: ThinPlan, gauge: G) -> Self {
        Self {
            window: Window::new(plan),
            gauge,
            id: None,
            watch: T::Watch::default(),
            stream: RangeSet::new(),
            read: 0,
            expected: 0,
            delivered: 0,
            out_of_order: 0,
            duplicates: 0,
            damaged: 0,
            is_closed: None,
        }
    }

    /// The gauge.
    #[must_use]
    pub fn gauge(&self) -> &G {
        &self.gauge
    }

    /// The planned messages that were not delivered, in order, without those already counted as
    /// lost.
    pub fn undelivered(&self) -> impl Iterator<Item = ThinRecord> {
        self.window.rest().filter(|record| record.delivered.is_none())
    }

    /// Number of messages delivered.
    #[must_use]
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Number of messages counted as lost because too many were missing.
    #[must_use]
    pub fn given_up(&self) -> u64 {
        self.window.given_up()
    }

    /// Number of messages delivered after a later one.
    #[must_use]
    pub fn out_of_order(&self) -> u64 {
        self.out_of_order
    }

    /// Number of messages delivered again.
    #[must_use]
    pub fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Number of messages that are not in the plan, or have another size.
    #[must_use]
    pub fn damaged(&self) -> u64 {
        self.damaged
    }

    /// Whether the connection ended gracefully; `None` if it has not ended.
    #[must_use]
    pub fn ended_gracefully(&self) -> Option<bool> {
        self.is_closed
    }

    /// Handles the delivery of message `number`, whose size is `bytes` if known.
    fn on_delivery(&mut self, now: Instant, number: u64, bytes: Option<usize>) {
        let Some(open) = self.window.message(number) else {
            let is_known = number < self.expected;
            *(if is_known { &mut self.duplicates } else { &mut self.damaged }) += 1;
            return;
        };
        if bytes.is_some_and(|bytes| bytes != open.message.bytes as usize) {
            self.damaged += 1;
            return;
        }
        if open.delivered.is_some() {
            self.duplicates += 1;
            return;
        }
        open.delivered = Some(now);
        open.arrived.get_or_insert(now);
        let record = open.record(number);
        self.gauge.on_delivered(&record);
        self.window.advance();
        self.delivered += 1;
        self.out_of_order += u64::from(number < self.expected);
        self.expected = self.expected.max(number + 1);
    }

    fn on_message(&mut self, now: Instant, message: &[u8]) {
        match read_number(message, message.len(), self.expected as usize) {
            Some(number) => self.on_delivery(now, number as u64, Some(message.len())),
            None => self.damaged += 1,
        }
    }

    /// Handles the delivery of the next bytes of the stream.
    fn on_stream(&mut self, now: Instant, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let number = self.expected;
            let Some(open) = self.window.message(number) else {
                self.damaged += 1;
                return;
            };
            let (start, end) = (open.message.begin(), open.message.end);
            let len = bytes.len().min((end - self.read) as usize);
            // The number, unless a segment ended within it.
            if self.read == start {
                let message_len = (end - start) as usize;
                let head = read_number(&bytes[..len], message_len, number as usize);
                self.damaged += u64::from(head.is_some_and(|head| head as u64 != number));
            }
            self.read += len as u64;
            bytes = &bytes[len..];
            if self.read == end {
                self.on_delivery(now, number, None);
            }
        }
    }

    /// Handles the arrival of bytes of the stream, in order or not.
    fn on_arrival(&mut self, now: Instant, start: u64, end: u64) {
        if start >= end {
            return;
        }
        let Self { window, stream, .. } = self;
        stream.insert_range(start, end - 1, |first, last| {
            for open in window.within(first, last) {
                let message = open.message;
                open.missing -= (message.end.min(last + 1) - message.begin().max(first)) as u32;
                if open.missing == 0 {
                    open.arrived = Some(now);
                }
            }
        });
    }

    /// Handles the arrival of the last missing fragment of the message that begins with `head`.
    fn on_whole(&mut self, now: Instant, head: &[u8]) {
        let Some(number) = read_number(head, head.len(), self.expected as usize) else { return };
        if let Some(open) = self.window.message(number as u64) {
            open.arrived.get_or_insert(now);
        }
    }
}

impl<T: Transport, G: Gauge> Program<T> for ThinReceiver<T, G> {
    fn next_at(&self) -> Option<Instant> {
        None
    }

    fn on_time(&mut self, _: Instant, _: &mut T) {}

    fn on_packet(&mut self, now: Instant, route: Route, packet: &[u8]) {
        let mut watch = std::mem::take(&mut self.watch);
        watch.on_packet(route, packet, &mut |arrival| match arrival {
            Arrival::Bytes { start, end } => self.on_arrival(now, start, end),
            Arrival::Message(head) => self.on_whole(now, head),
        });
        self.watch = watch;
    }

    fn on_event(&mut self, now: Instant, transport: &mut T, id: T::Id, event: ConnectionEvent) {
        if matches!(event, ConnectionEvent::Connected { .. }) {
            self.id.get_or_insert(id);
        }
        if self.id != Some(id) {
            return;
        }
        match event {
            ConnectionEvent::Readable => {
                let taken = transport.read(now, id, &mut |bytes| {
                    if T::KEEPS_BOUNDARIES {
                        self.on_message(now, bytes);
                    } else {
                        self.on_stream(now, bytes);
                    }
                });
                if taken == ReadResult::End {
                    transport.finish(now, id);
                }
            }
            ConnectionEvent::Closed { is_graceful } => self.is_closed = Some(is_graceful),
            ConnectionEvent::Connected { .. }
            | ConnectionEvent::Writable
            | ConnectionEvent::Infeasible => {}
        }
    }
}
