//! Observers: told of every packet when it leaves a host, and of what becomes of it.
//!
//! A network without observers does nothing for them but one comparison per step.

use std::net::SocketAddr;

use rexmit_core::{Instant, Machine};

use super::packets::Packet;
use super::{Direction, HostId, LinkId, Network};
use crate::path::LossCause;

/// Names a packet from when a host sends it until it ends, over all links: they are counted from 0
/// through the whole network. A second one that a link makes of a packet has the same number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PacketId(pub u64);

/// A packet as it is when something happens to it.
#[derive(Clone, Copy, Debug)]
pub struct ObservedPacket<'a> {
    /// Which one.
    pub id: PacketId,
    /// Where it comes from; the ports are those of UDP, 0 without UDP.
    pub source: SocketAddr,
    /// Where it goes.
    pub destination: SocketAddr,
    /// What the machine sent, without IP and UDP headers, perhaps damaged since.
    pub bytes: &'a [u8],
    /// Its size as an IP packet, in bytes.
    pub wire_bytes: usize,
    /// Whether a link has flipped a bit of it: an endpoint that looks at checksums drops it.
    pub is_damaged: bool,
}

/// What happens to a packet.
///
/// What is sent is one packet and may be doubled on links; each one ends by being received or
/// dropped. So `Sent` and `Doubled` together are as many as `Received` and `Dropped`, once nothing is
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
    #[inline] // Mostly there are none.
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

impl<M: Machine> Network<M> {
    /// Tells `observer` from now on of all packets. Of those that are under way already it hears
    /// only the rest.
    pub fn add_observer(&mut self, observer: impl PacketObserver + 'static) {
        self.observers.all.push(Box::new(observer));
    }
}
