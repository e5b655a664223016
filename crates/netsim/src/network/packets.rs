//! The packets under way, in slots whose buffers are used again.

use std::net::SocketAddr;

use super::ids::PacketId;
use super::routing::Target;

/// A packet between two hosts.
#[derive(Clone, Debug)]
pub(super) struct Packet {
    /// Its number in the network.
    pub(super) id: PacketId,
    pub(super) bytes: Vec<u8>,
    pub(super) source: SocketAddr,
    pub(super) destination: SocketAddr,
    /// The number of the destination's address, if it had one when the packet was sent.
    pub(super) target: Option<Target>,
    /// Its number on the link it is on.
    pub(super) number: u64,
    /// What it is, if it is not in UDP.
    pub(super) ip_protocol: u8,
    /// Links it may still take.
    pub(super) hop_limit: u8,
    /// A bit of it was flipped on the way.
    pub(super) is_damaged: bool,
}

impl Packet {
    /// Its size as an IP packet, with the UDP header if it is encapsulated.
    pub(super) fn wire_len(&self) -> usize {
        let ip = if self.destination.is_ipv4() { 20 } else { 40 };
        let udp = if self.is_encapsulated() { 8 } else { 0 };
        ip + udp + self.bytes.len()
    }

    /// Whether it travels in UDP (RFC 6951) instead of directly over IP.
    pub(super) fn is_encapsulated(&self) -> bool {
        self.source.port() != 0 || self.destination.port() != 0
    }
}

/// The place of a packet in a [`PacketStore`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Slot(u32);

/// All packets under way.
#[derive(Debug, Default)]
pub(super) struct PacketStore {
    packets: Vec<Packet>,
    free: Vec<Slot>,
    /// Buffers that no packet uses.
    spare: Vec<Vec<u8>>,
    /// Packets that hosts have sent.
    numbered: u64,
}

impl PacketStore {
    /// The number of a packet that is sent now.
    #[inline]
    pub(super) fn next_id(&mut self) -> PacketId {
        self.numbered += 1;
        PacketId(self.numbered - 1)
    }

    /// An empty buffer.
    #[inline]
    pub(super) fn buffer(&mut self) -> Vec<u8> {
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer
    }

    /// Gives a buffer back.
    #[inline]
    pub(super) fn recycle(&mut self, buffer: Vec<u8>) {
        self.spare.push(buffer);
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

    /// A second packet like the one in `slot`.
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

    /// The packet ends here. Takes its bytes out, which are to be given back.
    #[inline]
    pub(super) fn take(&mut self, slot: Slot) -> Vec<u8> {
        self.free.push(slot);
        std::mem::take(&mut self.packets[slot.0 as usize].bytes)
    }

    /// The packet ends here.
    pub(super) fn discard(&mut self, slot: Slot) {
        let bytes = self.take(slot);
        self.recycle(bytes);
    }

    /// Packets under way, and slots ever needed at once.
    pub(super) fn usage(&self) -> (usize, usize) {
        (self.packets.len() - self.free.len(), self.packets.len())
    }
}
