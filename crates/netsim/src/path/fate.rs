//! The outcome for a packet that is offered to a path.

use std::ops::Deref;

use rexmit_core::Instant;
use smallvec::SmallVec;

/// The outcome for an offered packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// The packet's number: 0 for the first packet offered to this path.
    pub packet: u64,
    /// The packet's fate.
    pub fate: Fate,
    /// Whether the driver must set the packet's ECN field to [`Ce`](rexmit_core::Ecn::Ce).
    pub is_marked: bool,
    /// The deliveries that are certain from now on, with deliveries at the same time in their
    /// order. Besides those of this packet, they may include packets that were [`Fate::Held`] and
    /// that this packet releases.
    pub deliveries: Deliveries,
}

impl Outcome {
    /// The outcome for packet number `packet`, as long as nothing is known of its deliveries.
    pub(super) fn of(packet: u64, fate: Fate) -> Self {
        Self { packet, fate, is_marked: false, deliveries: Deliveries::default() }
    }
}

/// The decision on an offered packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fate {
    /// The packet is delivered, at the times in [`deliveries`](Outcome::deliveries).
    Passed,
    /// The packet is held back: the driver keeps it until it is among the deliveries of a later packet.
    Held,
    /// The packet waits in a queue of FQ-CoDel: the driver keeps it until
    /// [`PathModel::poll_departure`](super::PathModel::poll_departure) returns its outcome.
    Queued,
    /// The packet is never delivered.
    Lost(LossCause),
}

/// Why a packet was lost: the first of these causes that applies.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum LossCause {
    /// The packet's number is on the list.
    Listed,
    /// The burst process.
    Burst,
    /// Uniform loss.
    Uniform,
    /// Random early detection.
    Red,
    /// The queue was full; with FQ-CoDel, this packet was in the longest queue.
    Queue,
    /// The packet had been in the queue for too long (CoDel).
    Codel,
    /// The packet was larger than the MTU.
    Mtu,
}

/// One arrival of one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Delivery {
    /// The packet's number.
    pub packet: u64,
    /// When the packet arrives.
    pub at: Instant,
    /// The bit that the driver must flip, if any.
    pub corruption: Option<Corruption>,
    /// Whether this is the copy of a duplicated packet.
    pub is_copy: bool,
}

/// A bit to be flipped, at a random position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Corruption(pub(super) u64);

impl Corruption {
    /// Flips the bit; no effect on an empty packet.
    pub fn apply(self, bytes: &mut [u8]) {
        let bits = bytes.len() as u128 * 8;
        let bit = ((u128::from(self.0) * bits) >> 64) as usize;
        if let Some(byte) = bytes.get_mut(bit / 8) {
            *byte ^= 1 << (bit % 8);
        }
    }
}

/// A list of deliveries, stored inline: a packet seldom causes more than its own delivery and that
/// of its copy.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Deliveries(pub(super) SmallVec<[Delivery; 2]>);

impl Deref for Deliveries {
    type Target = [Delivery];
    fn deref(&self) -> &[Delivery] {
        &self.0
    }
}

impl<'a> IntoIterator for &'a Deliveries {
    type Item = &'a Delivery;
    type IntoIter = std::slice::Iter<'a, Delivery>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}
