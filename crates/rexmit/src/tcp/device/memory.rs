//! A link between two stacks of one process, for tests and examples, which then need no privileges.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use super::PacketDevice;
use crate::tun::Batch;

/// The most packets in transit in one direction; further ones are refused, as by a full device.
pub const QUEUE_PACKETS: usize = 1000;

/// One end of a link in memory.
///
/// ```
/// use rexmit::tcp::{MemoryDevice, PacketDevice};
/// let (left, _right) = MemoryDevice::pair(1500);
/// assert_eq!(left.mtu(), 1500);
/// ```
#[derive(Debug)]
pub struct MemoryDevice {
    mtu: u16,
    incoming: Arc<Mutex<Queue>>,
    outgoing: Arc<Mutex<Queue>>,
}

/// Packets in one direction.
#[derive(Debug, Default)]
struct Queue {
    packets: VecDeque<Vec<u8>>,
    spare: Vec<Vec<u8>>,
    receiver: Option<Waker>,
}

impl MemoryDevice {
    /// Both ends of a link for packets of up to `mtu` bytes.
    #[must_use]
    pub fn pair(mtu: u16) -> (Self, Self) {
        let (there, back) = (Arc::default(), Arc::default());
        let left = Self { mtu, incoming: Arc::clone(&back), outgoing: Arc::clone(&there) };
        (left, Self { mtu, incoming: there, outgoing: back })
    }
}

/// Locks the queue, also after a panic of another holder, which cannot leave it inconsistent.
fn lock(queue: &Mutex<Queue>) -> std::sync::MutexGuard<'_, Queue> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PacketDevice for MemoryDevice {
    fn mtu(&self) -> u16 {
        self.mtu
    }

    fn poll_receive(&self, cx: &mut Context<'_>, batch: &mut Batch) -> Poll<io::Result<()>> {
        let mut queue = lock(&self.incoming);
        let received = batch.fill(|slot| {
            let packet = queue.packets.pop_front().ok_or(io::ErrorKind::WouldBlock)?;
            slot[..packet.len()].copy_from_slice(&packet);
            let len = packet.len();
            queue.spare.push(packet);
            Ok(len)
        });
        match received {
            Ok(()) => Poll::Ready(Ok(())),
            Err(_nothing_there) => {
                queue.receiver = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    fn try_send(&self, header: &[u8], segment: &[u8]) -> io::Result<()> {
        if header.len() + segment.len() > usize::from(self.mtu) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "longer than the MTU"));
        }
        let mut queue = lock(&self.outgoing);
        if queue.packets.len() >= QUEUE_PACKETS {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let mut packet = queue.spare.pop().unwrap_or_default();
        packet.clear();
        packet.extend_from_slice(header);
        packet.extend_from_slice(segment);
        queue.packets.push_back(packet);
        let receiver = queue.receiver.take();
        drop(queue);
        if let Some(receiver) = receiver {
            receiver.wake();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    #[tokio::test]
    async fn packets_arrive_in_order_and_wake_the_receiver() {
        let (left, right) = MemoryDevice::pair(100);
        let receiver = tokio::spawn(async move {
            let mut batch = Batch::new(100);
            poll_fn(|cx| right.poll_receive(cx, &mut batch)).await.unwrap();
            batch.iter().map(<[u8]>::to_vec).collect::<Vec<_>>()
        });
        tokio::task::yield_now().await;
        left.try_send(b"he", b"llo").unwrap();
        left.try_send(b"", b"there").unwrap();
        assert_eq!(receiver.await.unwrap(), [b"hello", b"there"]);
    }

    #[tokio::test]
    async fn too_long_and_too_many_packets_are_refused() {
        let (left, right) = MemoryDevice::pair(10);
        assert_eq!(
            left.try_send(&[0; 5], &[0; 6]).unwrap_err().kind(),
            io::ErrorKind::InvalidInput
        );
        for _ in 0..QUEUE_PACKETS {
            left.try_send(&[0; 5], &[0; 5]).unwrap();
        }
        assert_eq!(left.try_send(&[], &[]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        let mut batch = Batch::new(10);
        poll_fn(|cx| right.poll_receive(cx, &mut batch)).await.unwrap();
        left.try_send(&[], &[]).unwrap();
        // The other direction is one of its own.
        right.try_send(&[], &[]).unwrap();
    }
}
