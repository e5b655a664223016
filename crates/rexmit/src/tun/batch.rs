//! Received packets, in one buffer that is reused.

use std::io;

/// Packets that a batch takes.
const PACKETS: usize = 32;

/// Several received packets: those that were available when it was filled. (The kernel returns one per system
/// call.)
#[derive(Debug)]
pub struct Batch {
    bytes: Box<[u8]>,
    slot_bytes: usize,
    lens: [usize; PACKETS],
    count: usize,
}

impl Batch {
    /// An empty batch for a device with this MTU.
    #[must_use]
    pub fn new(mtu: u16) -> Self {
        let slot_bytes = usize::from(mtu);
        let bytes = vec![0; slot_bytes * PACKETS].into_boxed_slice();
        Self { bytes, slot_bytes, lens: [0; PACKETS], count: 0 }
    }

    /// The packets, in order of arrival.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let slots = self.bytes.chunks(self.slot_bytes.max(1));
        slots.zip(self.lens).take(self.count).map(|(slot, len)| &slot[..len])
    }

    /// The number of packets.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Whether the batch has no packets.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether the batch has no room for another packet.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.count == PACKETS
    }

    /// Replaces the packets by new ones until `receive` fails or the batch is full. `receive` writes a packet and
    /// returns its length.
    ///
    /// # Errors
    /// The error of `receive`, if there is no packet. An error after the first packet is not reported; the next call
    /// gets it.
    pub fn fill(
        &mut self,
        mut receive: impl FnMut(&mut [u8]) -> io::Result<usize>,
    ) -> io::Result<()> {
        self.count = 0;
        for slot in self.bytes.chunks_mut(self.slot_bytes.max(1)) {
            match receive(slot) {
                Ok(len) => {
                    self.lens[self.count] = len.min(slot.len());
                    self.count += 1;
                }
                Err(error) if self.count == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_contains_the_packets_received_before_the_error() {
        let mut batch = Batch::new(4);
        let mut next = 0;
        batch
            .fill(|slot| {
                next += 1;
                slot[0] = next;
                if next < 4 { Ok(usize::from(next)) } else { Err(io::ErrorKind::WouldBlock.into()) }
            })
            .unwrap();
        assert!(batch.iter().map(|packet| (packet[0], packet.len())).eq([(1, 1), (2, 2), (3, 3)]));
        assert!(!batch.is_full());
        let error = batch.fill(|_| Err(io::ErrorKind::WouldBlock.into())).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        assert!(batch.is_empty());
        batch.fill(|slot| Ok(slot.len())).unwrap();
        assert!(batch.is_full() && batch.len() == PACKETS);
    }
}
