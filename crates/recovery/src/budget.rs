//! How much may leave on purpose beyond what is needed: a share of what leaves for the first time.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Packets that leave for the first time after which what was counted before weighs half.
const WINDOW: u32 = 256;
/// What counts as sent before the first packet, so that the first losses find something to spend.
const HEAD_START: Amount = Amount { packets: 16, bytes: 4096 };
/// Of the bytes allowed, one part in so many is kept for what had no answer for a round trip.
const KEPT_BYTES: u64 = 16;

/// What the copies that a stream sends on purpose may cost, over a window of some hundred packets. The
/// window is the association's: streams with budgets of their own draw on the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CopyBudget {
    /// Packets that carry nothing but copies, in percent of those with new data; zero is no limit.
    pub packets_percent: u16,
    /// Bytes of units copied, in percent of those of new units; zero is no limit. The last sixteenth is
    /// for what had no answer for a round trip.
    pub bytes_percent: u16,
}

impl CopyBudget {
    /// No limit.
    pub const UNLIMITED: Self = Self { packets_percent: 0, bytes_percent: 0 };
}

/// How much of a budget there is beside a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share(u16);

impl Share {
    /// All of it.
    pub(crate) const ALL: Self = Self(1024);
    /// Nothing.
    pub(crate) const NONE: Self = Self(0);

    /// All without a queue, nothing beside one that delays by `limit`, in between what is left to it; all
    /// if the limit is zero.
    pub(crate) fn beside(queueing: Duration, limit: Duration) -> Self {
        let left = limit.saturating_sub(queueing).as_nanos() * u128::from(Self::ALL.0);
        let share = left.checked_div(limit.as_nanos()).map(u16::try_from);
        share.map_or(Self::ALL, |share| Self(share.unwrap_or(Self::ALL.0)))
    }

    /// Whether it is nothing.
    pub(crate) const fn is_none(self) -> bool {
        self.0 == 0
    }

    fn of(self, amount: u64) -> u64 {
        amount * u64::from(self.0) / u64::from(Self::ALL.0)
    }
}

/// What was spent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spending {
    /// Packets that left for the first time.
    first_packets: u32,
    /// What budgets are a share of: all that left for the first time, or less of it beside a queue. Packets
    /// count as many times as [`Share::ALL`] has parts.
    first: Amount,
    copied: Amount,
}

#[derive(Clone, Copy, Debug, Default)]
struct Amount {
    packets: u32,
    bytes: u64,
}

impl Default for Spending {
    fn default() -> Self {
        let packets = HEAD_START.packets * u32::from(Share::ALL.0);
        Self {
            first_packets: HEAD_START.packets,
            first: Amount { packets, ..HEAD_START },
            copied: Amount::default(),
        }
    }
}

impl Spending {
    /// A packet left with so many bytes of new units, and so much of the budget beside it.
    pub(crate) fn on_first_sent(&mut self, bytes: u32, share: Share) {
        if self.first_packets >= WINDOW {
            self.first_packets /= 2;
            for Amount { packets, bytes } in [&mut self.first, &mut self.copied] {
                (*packets, *bytes) = (packets.div_ceil(2), bytes.div_ceil(2));
            }
        }
        self.first_packets += 1;
        self.first.packets += u32::from(share.0);
        self.first.bytes += share.of(bytes.into());
    }

    /// So many bytes of units left as copies.
    pub(crate) fn on_copied(&mut self, bytes: u32) {
        self.copied.bytes += u64::from(bytes);
    }

    /// A packet left with nothing but copies.
    pub(crate) fn on_packet_of_copies(&mut self) {
        self.copied.packets = self.copied.packets.saturating_add(1);
    }

    /// Whether a packet of copies may leave.
    pub(crate) fn has_packet(&self, budget: CopyBudget) -> bool {
        let wanted = (u64::from(self.copied.packets) + 1) * 100 * u64::from(Share::ALL.0);
        let percent = u64::from(budget.packets_percent);
        percent == 0 || wanted <= u64::from(self.first.packets) * percent
    }

    /// How many bytes may be copied now.
    pub(crate) fn bytes_left(&self, budget: CopyBudget) -> u64 {
        if budget.bytes_percent == 0 {
            return u64::MAX;
        }
        self.bytes_allowed(budget).saturating_sub(self.copied.bytes)
    }

    /// How many of what left so lately that no answer can have come: it probably arrived, so that it is
    /// left out first.
    pub(crate) fn bytes_left_for_recent(&self, budget: CopyBudget) -> u64 {
        let kept = self.bytes_allowed(budget) / KEPT_BYTES;
        self.bytes_left(budget).saturating_sub(kept)
    }

    fn bytes_allowed(&self, budget: CopyBudget) -> u64 {
        self.first.bytes * u64::from(budget.bytes_percent) / 100
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: CopyBudget = CopyBudget { packets_percent: 20, bytes_percent: 50 };

    /// Copies whatever it may, for so many packets of 100 bytes.
    fn spend(packets: u32) -> (u64, u64) {
        let (mut spending, mut alone, mut bytes) = (Spending::default(), 0, 0);
        for _ in 0..packets {
            spending.on_first_sent(100, Share::ALL);
            let may_leave = spending.has_packet(BUDGET) && spending.bytes_left(BUDGET) >= 50;
            if may_leave {
                spending.on_copied(50);
                spending.on_packet_of_copies();
                alone += 1;
                bytes += 50;
            }
        }
        (alone, bytes)
    }

    #[test]
    fn the_share_is_kept_from_the_first_packet_on() {
        assert_eq!(spend(1), (1, 50));
        for packets in [10, 100, 1000, 100_000] {
            let (alone, bytes) = spend(packets);
            let most = (packets + HEAD_START.packets) * 20 / 100;
            let least = most - 1 - most / 25;
            assert!((least..=most).contains(&(alone as u32)), "{alone} of {packets}");
            assert!(bytes <= u64::from(packets) * 50 + HEAD_START.bytes / 2);
        }
    }

    #[test]
    fn what_was_saved_long_ago_is_not_spent_at_once() {
        let mut spending = Spending::default();
        (0..1_000_000).for_each(|_| spending.on_first_sent(100, Share::ALL));
        let copies = (0..1000)
            .take_while(|_| {
                let may_leave = spending.has_packet(BUDGET);
                spending.on_packet_of_copies();
                may_leave
            })
            .count();
        assert!((40..=54).contains(&copies), "{copies}");
    }

    #[test]
    fn bytes_are_a_limit_of_their_own_and_zero_is_none() {
        let mut spending = Spending::default();
        spending.on_first_sent(100, Share::ALL);
        assert_eq!(spending.bytes_left(BUDGET), (100 + HEAD_START.bytes) / 2);
        spending.on_copied(1900);
        assert_eq!(spending.bytes_left_for_recent(BUDGET), 198 - (100 + HEAD_START.bytes) / 32);
        spending.on_copied(100);
        assert_eq!(spending.bytes_left_for_recent(BUDGET), 0);
        assert_eq!(spending.bytes_left(BUDGET), 98);
        spending.on_copied(1_000_000);
        assert_eq!(spending.bytes_left(BUDGET), 0);
        assert_eq!(spending.bytes_left(CopyBudget::UNLIMITED), u64::MAX);
        assert_eq!(spending.bytes_left_for_recent(CopyBudget::UNLIMITED), u64::MAX);
        assert!(spending.has_packet(CopyBudget::UNLIMITED));
    }
}
