//! Observers receive the events of all packets: sent, duplicated, received, dropped.
//!
//! Without observers, the cost is one comparison per step.

use std::net::SocketAddr;

use rexmit_core::{Ecn, Instant};

use super::ids::{Direction, HostId, LinkId, PacketId};
use super::packets::Packet;
use crate::path::LossCause;

/// A packet at the time of an event.
#[derive(Clone, Copy, Debug)]
pub struct ObservedPacket<'a> {
    /// The packet's identifier.
    pub id: PacketId,
    /// The source address; the port is that of UDP, 0 without UDP.
    pub source: SocketAddr,
    /// The destination address.
    pub destination: SocketAddr,
    /// The packet of the machine, without IP and UDP headers, possibly damaged.
    pub bytes: &'a [u8],
    /// The packet's size as an IP packet, in bytes.
    pub wire_bytes: usize,
    /// The ECN field of its IP header, at this point of the way.
    pub ecn: Ecn,
    /// Whether a link has flipped a bit of it; an endpoint that verifies checksums drops it.
    pub is_damaged: bool,
}

/// An event of a packet.
///
/// Links may duplicate a packet; each copy is finally received or dropped. Once no packet is in
/// flight, the number of `Sent` and `Duplicated` events equals that of `Received` and `Dropped`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PacketStep {
    /// A host sends the packet, immediately after its machine has written it.
    Sent {
        /// The sending host.
        host: HostId,
    },
    /// A link duplicates the packet.
    Duplicated {
        /// The link.
        link: LinkId,
        /// The direction of the link.
        direction: Direction,
    },
    /// The packet arrives at a host, whose machine has not processed it yet.
    Received {
        /// The receiving host.
        host: HostId,
    },
    /// The packet is dropped.
    Dropped(DropCause),
}

/// Why a packet is dropped.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum DropCause {
    /// The link lost it; reported when the packet enters the link or is dropped from a queue of FQ-CoDel.
    Link {
        /// The link.
        link: LinkId,
        /// The direction of the link.
        direction: Direction,
        /// The reason.
        cause: LossCause,
    },
    /// The sending host has no route for it, or it does not fit into an IP packet.
    Unsendable,
    /// A router has no route for the packet.
    NoRoute,
    /// The packet's hop limit is exceeded.
    HopLimit,
    /// The packet arrived at a host that does not have its destination address.
    Misdelivered,
}

/// Receives the events of all packets of a network in the order of time.
pub trait PacketObserver: Send {
    /// Called for each event `step` of `packet` at `now`.
    fn observe(&mut self, now: Instant, packet: &ObservedPacket<'_>, step: PacketStep);
}

/// All observers of a network.
#[derive(Default)]
pub(super) struct Observers {
    all: Vec<Box<dyn PacketObserver>>,
}

impl Observers {
    pub(super) fn add(&mut self, observer: impl PacketObserver + 'static) {
        self.all.push(Box::new(observer));
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    #[inline] // Usually empty.
    pub(super) fn tell(
        &mut self,
        now: Instant,
        packet: &Packet,
        step: impl FnOnce() -> PacketStep,
    ) {
        if !self.all.is_empty() {
            self.tell_all(now, packet, step());
        }
    }

    fn tell_all(&mut self, now: Instant, packet: &Packet, step: PacketStep) {
        let observed = ObservedPacket {
            id: packet.id,
            source: packet.source,
            destination: packet.destination,
            bytes: &packet.bytes,
            wire_bytes: packet.wire_len(),
            ecn: packet.ecn,
            is_damaged: packet.is_damaged,
        };
        self.all.iter_mut().for_each(|observer| observer.observe(now, &observed, step));
    }
}
