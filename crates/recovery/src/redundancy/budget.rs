//! The budget of redundant copies: a share of the data sent for the first time.

use std::num::NonZeroU16;
use std::time::Duration;

use crate::CopyBudget;

/// Packets with new data after which all counts are halved.
const WINDOW: u32 = 256;
/// The counts begin as if this much new data had been sent, so that copies are allowed at the first losses.
const HEAD_START: Amount = Amount { packets: 16, bytes: 4096 };
/// The reciprocal of the share of the allowed bytes that is reserved for data sent more than a round trip ago.
const KEPT_BYTES: u64 = 16;

/// The share of a budget that a queue leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share(u16);

impl Share {
    /// The whole budget.
    pub(crate) const ALL: Self = Self(1024);
    /// No budget.
    pub(crate) const NONE: Self = Self(0);

    /// The share that a queueing delay of `queueing` leaves: the whole budget without delay, nothing from
    /// `limit` on, proportional in between. The whole budget if `limit` is zero.
    pub(crate) fn beside(queueing: Duration, limit: Duration) -> Self {
        let left = limit.saturating_sub(queueing).as_nanos() * u128::from(Self::ALL.0);
        let share = left.checked_div(limit.as_nanos()).map(u16::try_from);
        share.map_or(Self::ALL, |share| Self(share.unwrap_or(Self::ALL.0)))
    }

    /// Whether no budget is left.
    pub(crate) const fn is_none(self) -> bool {
        self.0 == 0
    }

    fn of(self, amount: u64) -> u64 {
        amount * u64::from(self.0) / u64::from(Self::ALL.0)
    }
}

/// What associations that share their budget of copies, as they have one destination, have sent and copied.
#[derive(Debug, Default)]
pub struct SharedSpending(pub(crate) Spending);

/// New data and copies sent, of which the budget is a share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spending {
    /// Packets sent with new data.
    first_packets: u32,
    /// New data sent, reduced by the [`Share`] that a queue left at that time. Packets are counted in units
    /// of 1/[`Share::ALL`].
    first: Amount,
    copied: Amount,
}

#[derive(Clone, Copy, Debug, Default)]
struct Amount {
    packets: u32,
    /// Of a window of packets: it saturates.
    bytes: u32,
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
    /// Called when a packet with `bytes` of new units was sent; `share` is the part of the budget that a
    /// queue on the path leaves.
    pub(super) fn on_first_sent(&mut self, bytes: u32, share: Share) {
        if self.first_packets >= WINDOW {
            self.first_packets /= 2;
            for Amount { packets, bytes } in [&mut self.first, &mut self.copied] {
                (*packets, *bytes) = (packets.div_ceil(2), bytes.div_ceil(2));
            }
        }
        self.first_packets += 1;
        self.first.packets += u32::from(share.0);
        let counted = u32::try_from(share.of(bytes.into())).unwrap_or(u32::MAX);
        self.first.bytes = self.first.bytes.saturating_add(counted);
    }

    /// Called when `bytes` of units were sent as copies.
    pub(crate) fn on_copied(&mut self, bytes: u32) {
        self.copied.bytes = self.copied.bytes.saturating_add(bytes);
    }

    /// Called when a packet was sent with nothing but copies.
    pub(crate) fn on_packet_of_copies(&mut self) {
        self.copied.packets = self.copied.packets.saturating_add(1);
    }

    /// Whether a packet of copies may be sent.
    pub(super) fn has_packet(&self, budget: CopyBudget) -> bool {
        let wanted = (u64::from(self.copied.packets) + 1) * 100 * u64::from(Share::ALL.0);
        let allowed =
            |percent: NonZeroU16| u64::from(self.first.packets) * u64::from(percent.get());
        budget.packets_percent.is_none_or(|percent| wanted <= allowed(percent))
    }

    /// How many bytes may be copied now.
    pub(super) fn bytes_left(&self, budget: CopyBudget) -> u64 {
        let left = |percent| self.bytes_allowed(percent).saturating_sub(self.copied.bytes.into());
        budget.bytes_percent.map_or(u64::MAX, left)
    }

    /// How many bytes of data that was sent less than a round trip ago may be copied. It has probably
    /// arrived, so it is the first to get no copies.
    pub(super) fn bytes_left_for_recent(&self, budget: CopyBudget) -> u64 {
        let kept =
            budget.bytes_percent.map_or(0, |percent| self.bytes_allowed(percent) / KEPT_BYTES);
        self.bytes_left(budget).saturating_sub(kept)
    }

    fn bytes_allowed(&self, percent: NonZeroU16) -> u64 {
        u64::from(self.first.bytes) * u64::from(percent.get()) / 100
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: CopyBudget = crate::state::tests::budget(20, 50);

    /// Sends all copies that the budget allows while `packets` packets of 100 bytes are sent. Returns the packets
    /// and bytes copied.
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
            assert!(bytes <= u64::from(packets) * 50 + u64::from(HEAD_START.bytes) / 2);
        }
    }

    #[test]
    fn budget_saved_long_ago_is_not_spent_at_once() {
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
        let first = u64::from(100 + HEAD_START.bytes);
        assert_eq!(spending.bytes_left(BUDGET), first / 2);
        spending.on_copied(1900);
        assert_eq!(spending.bytes_left_for_recent(BUDGET), 198 - first / 32);
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
