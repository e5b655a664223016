//! The link: a rate, with a drop-tail queue in front of it.

use std::collections::VecDeque;
use std::time::Duration;

use rexmit_core::{BitRate, Instant};

use super::QueueLimit;

/// The queued packets, represented by the times at which their transmission begins.
#[derive(Clone, Debug, Default)]
pub(super) struct DropTailQueue {
    /// Begin of transmission and length of each packet that was queued at the last offer.
    waiting: VecDeque<(Instant, usize)>,
    waiting_bytes: usize,
    /// When the link has sent all accepted packets.
    free_at: Instant,
    /// The last transmission time, cached because most packets have the same length.
    last_time: Option<(usize, BitRate, Duration)>,
}

impl DropTailQueue {
    /// Moves on to `now`: packets whose transmission has begun leave the queue. Returns how long the link has been idle.
    pub(super) fn advance(&mut self, now: Instant) -> Duration {
        self.forget_sent(now);
        now - self.free_at
    }

    /// The time at which a packet offered at `now`, to which the queue was advanced, has been sent; `None` if the queue
    /// is full.
    #[inline] // For drop-tail paths, which need little else.
    pub(super) fn accept(
        &mut self,
        now: Instant,
        len: usize,
        rate: Option<BitRate>,
        limit: QueueLimit,
    ) -> Option<Instant> {
        let Some(rate) = rate else {
            // Packets queued while the link had a rate are still ahead of this packet.
            return Some(now.max(self.free_at));
        };
        let begin = now.max(self.free_at);
        if begin > now {
            if !self.has_room(len, limit) {
                return None;
            }
            self.waiting.push_back((begin, len));
            self.waiting_bytes += len;
        }
        self.free_at = begin + self.transmission_time(rate, len);
        Some(self.free_at)
    }

    /// [`BitRate::transmission_time`] with a cache, because it divides.
    pub(super) fn transmission_time(&mut self, rate: BitRate, len: usize) -> Duration {
        match self.last_time {
            Some((last_len, last_rate, time)) if (last_len, last_rate) == (len, rate) => time,
            _ => {
                let time = rate.transmission_time(len);
                self.last_time = Some((len, rate, time));
                time
            }
        }
    }

    /// When the link has sent all accepted packets.
    pub(super) const fn free_at(&self) -> Instant {
        self.free_at
    }

    /// Packets and bytes in the queue as of the last offer.
    pub(super) fn depth(&self) -> (usize, usize) {
        (self.waiting.len(), self.waiting_bytes)
    }

    fn forget_sent(&mut self, now: Instant) {
        while let Some(&(begin, len)) = self.waiting.front()
            && begin <= now
        {
            self.waiting.pop_front();
            self.waiting_bytes -= len;
        }
    }

    fn has_room(&self, len: usize, limit: QueueLimit) -> bool {
        match limit {
            QueueLimit::Packets(most) => self.waiting.len() < most,
            QueueLimit::Bytes(most) => self.waiting_bytes + len <= most,
        }
    }
}
