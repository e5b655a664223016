//! A path model together with the packets in flight.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use rexmit_core::Instant;

use super::{ArrivalStats, Corruption, Fate, LossCause, Offered, Outcome, PathModel};

/// A path that stores the packets offered to it until they arrive, for drivers without an event
/// queue of their own, such as the real-time emulator.
///
/// `T` is the packet, or a handle to it; a duplicated packet is cloned.
///
/// ```
/// use rexmit_core::{Instant, Seed};
/// use rexmit_netsim::path::{PathConfig, PathModel, Pipe};
/// let mut pipe = Pipe::new(PathModel::new(PathConfig::default(), &Seed::from_u64(1))?);
/// pipe.offer(Instant::ZERO, 5, "hello");
/// assert_eq!(pipe.next_arrival(), Some(Instant::ZERO));
/// assert_eq!(pipe.poll_arrival(Instant::ZERO).unwrap().packet, "hello");
/// # Ok::<(), rexmit_netsim::path::ConfigError>(())
/// ```
#[derive(Debug)]
pub struct Pipe<T> {
    model: PathModel,
    under_way: BinaryHeap<UnderWay<T>>,
    held: Vec<(u64, Stored<T>)>,
    /// Packets in queues of FQ-CoDel.
    queued: BTreeMap<u64, Stored<T>>,
    /// Packets dropped from these queues by the last call.
    dropped: VecDeque<(T, LossCause)>,
    next_order: u64,
    arrivals: ArrivalStats,
}

/// A packet that arrives.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Arrival<T> {
    /// The offered packet.
    pub packet: T,
    /// When the packet was due.
    pub at: Instant,
    /// The bit that the driver must flip, if any.
    pub corruption: Option<Corruption>,
    /// Whether the driver must set the ECN field to [`Ce`](rexmit_core::Ecn::Ce).
    pub is_marked: bool,
}

/// A packet that the path has not yet decided to deliver.
#[derive(Clone, Debug)]
struct Stored<T> {
    len: usize,
    is_marked: bool,
    packet: T,
}

#[derive(Debug)]
struct UnderWay<T> {
    /// The order of arrivals: by time, then by the order in which they were decided.
    key: Reverse<(Instant, u64)>,
    number: u64,
    len: usize,
    corruption: Option<Corruption>,
    is_marked: bool,
    packet: T,
}

impl<T: Clone> Pipe<T> {
    /// A pipe with the path `model`.
    #[must_use]
    pub fn new(model: PathModel) -> Self {
        Self {
            model,
            under_way: BinaryHeap::new(),
            held: Vec::new(),
            queued: BTreeMap::new(),
            dropped: VecDeque::new(),
            next_order: 0,
            arrivals: ArrivalStats::default(),
        }
    }

    /// Offers `packet` of `len` bytes, without ECN, to the path at `now`, which must not decrease.
    pub fn offer(&mut self, now: Instant, len: usize, packet: T) -> Fate {
        self.offer_packet(now, Offered::new(len), packet)
    }

    /// Offers `packet`, with the properties `offered`, to the path at `now`, which must not decrease.
    pub fn offer_packet(&mut self, now: Instant, offered: Offered, packet: T) -> Fate {
        self.advance(now);
        let outcome = self.model.offer_packet(now, offered);
        let own = Stored { len: offered.len, is_marked: outcome.is_marked, packet };
        self.settle(&outcome, own);
        self.depart(now);
        outcome.fate
    }

    /// A packet that was dropped from a queue of FQ-CoDel by the last call of [`offer_packet`](Self::offer_packet) or
    /// [`poll_arrival`](Self::poll_arrival), after it had been [`Fate::Queued`]; the next call forgets it.
    pub fn poll_dropped(&mut self) -> Option<(T, LossCause)> {
        self.dropped.pop_front()
    }

    /// Lets the link send what it could send by `now`.
    fn advance(&mut self, now: Instant) {
        self.dropped.clear();
        self.depart(now);
    }

    fn depart(&mut self, now: Instant) {
        while let Some(outcome) = self.model.poll_departure(now) {
            let Some(mut stored) = self.queued.remove(&outcome.packet) else { continue };
            stored.is_marked = outcome.is_marked;
            if let Fate::Lost(cause) = outcome.fate {
                self.dropped.push_back((stored.packet, cause));
            } else {
                self.settle(&outcome, stored);
            }
        }
    }

    /// Stores a packet until its deliveries, together with those that it releases.
    fn settle(&mut self, outcome: &Outcome, own: Stored<T>) {
        let mut own = Some(own);
        for (place, delivery) in outcome.deliveries.iter().enumerate() {
            // A copy follows right after its original.
            let keep = outcome.deliveries.get(place + 1).is_some_and(|next| next.is_copy);
            let stored = if delivery.packet == outcome.packet {
                if keep { own.clone() } else { own.take() }
            } else {
                self.held_packet(delivery.packet, keep)
            };
            let Some(Stored { len, is_marked, packet }) = stored else { continue };
            self.under_way.push(UnderWay {
                key: Reverse((delivery.at, self.next_order)),
                number: delivery.packet,
                len,
                corruption: delivery.corruption,
                is_marked,
                packet,
            });
            self.next_order += 1;
        }
        match (outcome.fate, own) {
            (Fate::Held, Some(own)) => self.held.push((outcome.packet, own)),
            (Fate::Queued, Some(own)) => _ = self.queued.insert(outcome.packet, own),
            _ => {}
        }
    }

    /// The earliest known arrival, or an earlier time at which a packet leaves a queue of FQ-CoDel: when
    /// [`poll_arrival`](Self::poll_arrival) is to be called.
    #[must_use]
    pub fn next_arrival(&self) -> Option<Instant> {
        let arrival = self.under_way.peek().map(|next| next.key.0.0);
        arrival.into_iter().chain(self.model.next_departure()).min()
    }

    /// Returns the earliest packet that has arrived by `now`.
    pub fn poll_arrival(&mut self, now: Instant) -> Option<Arrival<T>> {
        self.advance(now);
        if self.under_way.peek()?.key.0.0 > now {
            return None;
        }
        let next = self.under_way.pop()?;
        self.arrivals.on_delivery(next.number, next.len);
        let UnderWay { corruption, is_marked, packet, .. } = next;
        Some(Arrival { packet, at: next.key.0.0, corruption, is_marked })
    }

    /// The number of packets in flight, including those held back or in a queue.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.under_way.len() + self.held.len() + self.queued.len()
    }

    /// The model, for its counters.
    #[must_use]
    pub fn model(&self) -> &PathModel {
        &self.model
    }

    /// The model, to change its configuration.
    pub fn model_mut(&mut self) -> &mut PathModel {
        &mut self.model
    }

    /// The counters of arrivals.
    #[must_use]
    pub fn arrivals(&self) -> &ArrivalStats {
        &self.arrivals
    }

    fn held_packet(&mut self, number: u64, keep: bool) -> Option<Stored<T>> {
        let place = self.held.iter().position(|held| held.0 == number)?;
        Some(if keep { self.held[place].1.clone() } else { self.held.remove(place).1 })
    }
}

impl<T> PartialEq for UnderWay<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl<T> Eq for UnderWay<T> {}

impl<T> PartialOrd for UnderWay<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for UnderWay<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}
