//! The packets in flight, in slots whose buffers are reused.

use std::net::SocketAddr;

use rexmit_core::Ecn;

use super::ids::PacketId;
use super::routing::Target;
use crate::path::{flow_key, header_ports};

/// UDP's IP protocol number.
const UDP: u8 = 17;

/// A packet between two hosts.
#[derive(Clone, Debug)]
pub(super) struct Packet {
    /// The packet's identifier in the network.
    pub(super) id: PacketId,
    pub(super) bytes: Vec<u8>,
    pub(super) source: SocketAddr,
    pub(super) destination: SocketAddr,
    /// The number of the destination address, if the address was known when the packet was sent.
    pub(super) target: Option<Target>,
    /// The packet's number on the current link.
    pub(super) number: u64,
    /// The packet's IP protocol, if it is not encapsulated in UDP.
    pub(super) ip_protocol: u8,
    /// Remaining hop limit.
    pub(super) hop_limit: u8,
    /// The ECN field of the IP header.
    pub(super) ecn: Ecn,
    /// Whether a bit was flipped on the way.
    pub(super) is_damaged: bool,
}

impl Packet {
    /// The packet's size as an IP packet, with the UDP header if it is encapsulated.
    pub(super) fn wire_len(&self) -> usize {
        let ip = if self.destination.is_ipv4() { 20 } else { 40 };
        let udp = if self.is_encapsulated() { 8 } else { 0 };
        ip + udp + self.bytes.len()
    }

    /// Whether it is encapsulated in UDP (RFC 6951) instead of sent directly over IP.
    pub(super) fn is_encapsulated(&self) -> bool {
        self.source.port() != 0 || self.destination.port() != 0
    }

    /// The number of its flow: that of the addresses, the protocol, and the ports of UDP or, without it, of the packet.
    pub(super) fn flow(&self) -> u64 {
        let Self { mut source, mut destination, ip_protocol, .. } = *self;
        if self.is_encapsulated() {
            return flow_key(source, destination, UDP);
        }
        if let Some([from, to]) = header_ports(ip_protocol, &self.bytes) {
            source.set_port(from);
            destination.set_port(to);
        }
        flow_key(source, destination, ip_protocol)
    }
}

/// The slot of a packet in a [`PacketStore`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Slot(u32);

/// All packets in flight.
#[derive(Debug)]
pub(super) struct PacketStore {
    packets: Vec<Packet>,
    free: Vec<Slot>,
    /// Unused buffers.
    spare: Vec<Vec<u8>>,
    /// The next packet's identifier, and by how much the identifiers of two packets differ.
    next_id: u64,
    step: u64,
}

impl Default for PacketStore {
    fn default() -> Self {
        Self { packets: Vec::new(), free: Vec::new(), spare: Vec::new(), next_id: 0, step: 1 }
    }
}

impl PacketStore {
    /// The identifier for the next packet.
    #[inline]
    pub(super) fn next_id(&mut self) -> PacketId {
        let id = PacketId(self.next_id);
        self.next_id += self.step;
        id
    }

    /// An empty store for part `own` of so many, which numbers packets as no other part does.
    pub(super) fn part(&self, own: usize, parts: usize) -> Self {
        let next_id = self.next_id + own as u64;
        Self { next_id, step: parts as u64, ..Self::default() }
    }

    /// Numbers packets from now on as neither this store nor `part` has done.
    pub(super) fn continue_after(&mut self, part: &Self) {
        self.next_id = self.next_id.max(part.next_id);
    }

    /// An empty buffer.
    #[inline]
    pub(super) fn buffer(&mut self) -> Vec<u8> {
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer
    }

    /// Returns a buffer for reuse. No more are kept than were in use at once: a thread that receives the packets of
    /// another one gets all of its buffers.
    #[inline]
    pub(super) fn recycle(&mut self, buffer: Vec<u8>) {
        if self.spare.len() <= self.packets.len() {
            self.spare.push(buffer);
        }
    }

    #[inline]
    pub(super) fn insert(&mut self, packet: Packet) -> Slot {
        if let Some(slot) = self.free.pop() {
            self.packets[slot.0 as usize] = packet;
            return slot;
        }
        let slot = Slot(u32::try_from(self.packets.len()).expect("under 2³² packets under way"));
        self.packets.push(packet);
        slot
    }

    /// Duplicates the packet in `slot`.
    pub(super) fn copy(&mut self, slot: Slot) -> Slot {
        let mut bytes = self.buffer();
        let original = &self.packets[slot.0 as usize];
        bytes.extend_from_slice(&original.bytes);
        let packet = Packet { bytes, ..*original };
        self.insert(packet)
    }

    #[inline]
    pub(super) fn packet(&self, slot: Slot) -> &Packet {
        &self.packets[slot.0 as usize]
    }

    #[inline]
    pub(super) fn packet_mut(&mut self, slot: Slot) -> &mut Packet {
        &mut self.packets[slot.0 as usize]
    }

    /// Removes a packet, with its buffer.
    pub(super) fn remove(&mut self, slot: Slot) -> Packet {
        let bytes = self.take(slot);
        Packet { bytes, ..self.packets[slot.0 as usize] }
    }

    /// Removes a packet and returns its bytes; the caller passes the buffer to `recycle`.
    #[inline]
    pub(super) fn take(&mut self, slot: Slot) -> Vec<u8> {
        self.free.push(slot);
        std::mem::take(&mut self.packets[slot.0 as usize].bytes)
    }

    /// Removes a packet.
    pub(super) fn discard(&mut self, slot: Slot) {
        let bytes = self.take(slot);
        self.recycle(bytes);
    }

    /// The number of packets in flight, and the largest number of slots used at once.
    pub(super) fn usage(&self) -> (usize, usize) {
        (self.packets.len() - self.free.len(), self.packets.len())
    }
}
