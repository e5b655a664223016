//! Observers: informed of every packet when a host sends it, and of its fate.
//!
//! A network without observers does nothing for them but one comparison per step.

use std::net::SocketAddr;

use rexmit_core::Instant;

use super::ids::{Direction, HostId, LinkId, PacketId};
use super::packets::Packet;
use crate::path::LossCause;

/// A packet as it is when something happens to it.
#[derive(Clone, Copy, Debug)]
pub struct ObservedPacket<'a> {
    /// Which one.
    pub id: PacketId,
    /// Where it comes from; the ports are those of UDP, 0 without UDP.
    pub source: SocketAddr,
    /// Where it goes.
    pub destination: SocketAddr,
    /// The packet of the machine, without IP and UDP headers, perhaps damaged since.
    pub bytes: &'a [u8],
    /// Its size as an IP packet, in bytes.
    pub wire_bytes: usize,
    /// Whether a link has flipped a bit of it: an endpoint that looks at checksums drops it.
    pub is_damaged: bool,
}

/// What happens to a packet.
///
/// A packet that is sent may be doubled on links; each copy ends by being received or
/// dropped. So `Sent` and `Doubled` together equal `Received` and `Dropped`, once nothing is
/// under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PacketStep {
    /// A host sends it. What the host did to write it was the last thing that it did.
    Sent {
        /// Which host.
        host: HostId,
    },
    /// A link delivers it twice: from now on there is one more.
    Doubled {
        /// Which link.
        link: LinkId,
        /// In which direction.
        direction: Direction,
    },
    /// A host is about to take it.
    Received {
        /// Which host.
        host: HostId,
    },
    /// It ends on the way.
    Dropped(DropCause),
}

/// Why a packet ends on the way.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DropCause {
    /// The link lost it, told as it enters the link.
    Link {
        /// Which link.
        link: LinkId,
        /// In which direction.
        direction: Direction,
        /// Why.
        cause: LossCause,
    },
    /// Its host had no route for it, or it does not fit into an IP packet.
    Unsendable,
    /// A router had no route for it.
    NoRoute,
    /// It had passed too many links.
    HopLimit,
    /// It arrived at a host that does not have the address.
    Misdelivered,
}

/// Is told what happens to the packets of a network, in the order in which it happens.
pub trait PacketObserver: Send {
    /// `step` happens to `packet` at `now`.
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
            is_damaged: packet.is_damaged,
        };
        self.all.iter_mut().for_each(|observer| observer.observe(now, &observed, step));
    }
}
