//! Measures what arrives.

use std::sync::Arc;

use rexmit_core::{Instant, RangeSet, Route};

use super::plan::{ThinPlan, read_number};
use crate::hosts::running::Program;
use crate::hosts::transport::{Arrival, News, Taken, Transport, Watch};
use crate::measure::{LatencyDistribution, MessageRecord};

/// At which layer a message counts as there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Layer {
    /// All of it has arrived, though it may have to wait for earlier messages.
    Transport,
    /// The application has it.
    Application,
}

/// Receives the messages of a plan over one connection, the first that is made to it, and knows of
/// each when it arrived and when it was delivered.
///
/// It believes every packet with a right checksum that arrives at its host to be of this connection.
#[derive(Debug)]
pub struct ThinReceiver<T: Transport> {
    plan: Arc<ThinPlan>,
    id: Option<T::Id>,
    watch: T::Watch,
    /// When each message was there, at either layer; [`Instant::FAR_FUTURE`] if it was not.
    arrived: Vec<Instant>,
    delivered: Vec<Instant>,
    /// Of a stream: what has arrived, and how much of each message is missing.
    stream: RangeSet,
    missing: Vec<u32>,
    /// Of a stream: what the application has read.
    read: u64,
    /// The message after the highest one that was delivered.
    expected: usize,
    out_of_order: u64,
    duplicates: u64,
    damaged: u64,
    is_closed: Option<bool>,
}

impl<T: Transport> ThinReceiver<T> {
    /// The receiver of `plan`.
    #[must_use]
    pub fn new(plan: Arc<ThinPlan>) -> Self {
        let never = vec![Instant::FAR_FUTURE; plan.messages().len()];
        let missing = plan.messages().iter().map(|message| message.bytes).collect();
        Self {
            plan,
            id: None,
            watch: T::Watch::default(),
            arrived: never.clone(),
            delivered: never,
            stream: RangeSet::new(),
            missing,
            read: 0,
            expected: 0,
            out_of_order: 0,
            duplicates: 0,
            damaged: 0,
            is_closed: None,
        }
    }

    /// Messages that were delivered.
    #[must_use]
    pub fn delivered(&self) -> u64 {
        self.delivered.iter().filter(|&&at| at < Instant::FAR_FUTURE).count() as u64
    }

    /// Messages that were delivered after a later one.
    #[must_use]
    pub fn out_of_order(&self) -> u64 {
        self.out_of_order
    }

    /// Messages that were delivered again.
    #[must_use]
    pub fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Messages that are not in the plan or do not have the size that it says.
    #[must_use]
    pub fn damaged(&self) -> u64 {
        self.damaged
    }

    /// Whether the connection ended in order; `None` if it has not ended.
    #[must_use]
    pub fn ended_in_order(&self) -> Option<bool> {
        self.is_closed
    }

    /// A record of every planned message; `delivered` in it is when it was there at `layer`.
    /// `connection` is how the records name the connection.
    #[must_use]
    pub fn records(&self, layer: Layer, connection: u32) -> Vec<MessageRecord> {
        let times = self.times(layer);
        let records = self.plan.messages().iter().zip(times).zip(0..);
        let records = records.map(|((message, &at), sequence)| MessageRecord {
            connection,
            stream: 0,
            sequence,
            payload_bytes: message.bytes,
            intended: message.intended,
            delivered: Some(at).filter(|&at| at < Instant::FAR_FUTURE),
            transmissions: None,
        });
        records.collect()
    }

    /// How long the messages took that were there at `layer`.
    #[must_use]
    pub fn latency(&self, layer: Layer) -> LatencyDistribution {
        let mut latency = LatencyDistribution::new();
        let times = self.plan.messages().iter().zip(self.times(layer));
        times
            .filter(|&(_, &at)| at < Instant::FAR_FUTURE)
            .for_each(|(message, &at)| latency.record(at - message.intended));
        latency
    }

    fn times(&self, layer: Layer) -> &[Instant] {
        match layer {
            Layer::Transport => &self.arrived,
            Layer::Application => &self.delivered,
        }
    }

    /// The application has message `number`.
    fn on_delivery(&mut self, now: Instant, number: usize) {
        let Some(delivered) = self.delivered.get_mut(number) else {
            self.damaged += 1;
            return;
        };
        if *delivered < Instant::FAR_FUTURE {
            self.duplicates += 1;
            return;
        }
        *delivered = now;
        self.arrived[number] = self.arrived[number].min(now);
        self.out_of_order += u64::from(number < self.expected);
        self.expected = self.expected.max(number + 1);
    }

    fn on_message(&mut self, now: Instant, message: &[u8]) {
        let number = read_number(message, message.len(), self.expected);
        let known = number.and_then(|number| Some((number, self.plan.messages().get(number)?)));
        match known {
            Some((number, planned)) if planned.bytes as usize == message.len() => {
                self.on_delivery(now, number);
            }
            _ => self.damaged += 1,
        }
    }

    /// The application has the next bytes of the stream.
    fn on_stream(&mut self, now: Instant, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let number = self.expected;
            let Some((start, end)) = self.plan.place(number) else {
                self.damaged += 1;
                return;
            };
            let len = bytes.len().min((end - self.read) as usize);
            // The number, unless a segment ended within it.
            if self.read == start {
                let message_len = (end - start) as usize;
                let head = read_number(&bytes[..len], message_len, number);
                self.damaged += u64::from(head.is_some_and(|head| head != number));
            }
            self.read += len as u64;
            bytes = &bytes[len..];
            if self.read == end {
                self.on_delivery(now, number);
            }
        }
    }

    /// Bytes of the stream have arrived, in order or not.
    fn on_arrival(&mut self, now: Instant, start: u64, end: u64) {
        let Self { plan, stream, missing, arrived, .. } = self;
        let end = end.min(plan.total_bytes());
        if start >= end {
            return;
        }
        stream.insert_range(start, end - 1, |first, last| {
            let mut number = plan.at_offset(first);
            while let Some((begins, ends)) = plan.place(number).filter(|place| place.0 <= last) {
                let new = ends.min(last + 1) - begins.max(first);
                missing[number] -= new as u32;
                if missing[number] == 0 {
                    arrived[number] = now;
                }
                number += 1;
            }
        });
    }
}

impl<T: Transport> Program<T> for ThinReceiver<T> {
    fn next_at(&self) -> Option<Instant> {
        None
    }

    fn on_time(&mut self, _: Instant, _: &mut T) {}

    fn on_packet(&mut self, now: Instant, route: Route, packet: &[u8]) {
        let mut watch = std::mem::take(&mut self.watch);
        watch.on_packet(route, packet, &mut |arrival| match arrival {
            Arrival::Bytes { start, end } => self.on_arrival(now, start, end),
            Arrival::Message(head) => {
                let number = read_number(head, head.len(), self.expected);
                let arrived = number.and_then(|number| self.arrived.get_mut(number));
                arrived.into_iter().for_each(|arrived| *arrived = now.min(*arrived));
            }
        });
        self.watch = watch;
    }

    fn on_news(&mut self, now: Instant, transport: &mut T, id: T::Id, news: News) {
        if matches!(news, News::Connected { .. }) {
            self.id.get_or_insert(id);
        }
        if self.id != Some(id) {
            return;
        }
        match news {
            News::Readable => {
                let taken = transport.take(now, id, &mut |bytes| {
                    if T::KEEPS_BOUNDARIES {
                        self.on_message(now, bytes);
                    } else {
                        self.on_stream(now, bytes);
                    }
                });
                if taken == Taken::End {
                    transport.finish(now, id);
                }
            }
            News::Closed { is_orderly } => self.is_closed = Some(is_orderly),
            News::Connected { .. } | News::Writable => {}
        }
    }
}
