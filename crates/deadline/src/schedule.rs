//! When a unit is transmitted, and how likely all transmissions are lost.

use std::time::Duration;

use super::losses::Losses;
use super::{Budget, RoundTrip, rounds_in};

/// Transmissions of a unit in time at most.
pub(super) const MOST_TRANSMISSIONS: u8 = 8;
/// Another transmission is worth its cost if it reduces the probability of being late to less than this part.
const WORTH: f64 = 0.9;

/// The times at which a unit may be transmitted again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schedule<'a> {
    /// The time for copies: after the first transmission, or the last retransmission.
    spare: Duration,
    /// Retransmissions by the probe timer, and the time before each.
    pub(super) rounds: u8,
    timeout: Duration,
    losses: &'a Losses,
}

/// The transmissions that leave what may be late.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Wanted {
    pub(super) transmissions: u8,
    /// Of the units, the share that has one more.
    pub(super) share_of_one_more: f64,
    /// The probability that all are lost.
    pub(super) late: f64,
}

impl Wanted {
    /// Nothing is known.
    pub(super) const ONE: Self = Self { transmissions: 1, share_of_one_more: 0.0, late: 1.0 };

    pub(super) fn mean(self) -> f64 {
        f64::from(self.transmissions) + self.share_of_one_more
    }
}

impl<'a> Schedule<'a> {
    pub(super) fn of(slack: Duration, rtt: RoundTrip, losses: &'a Losses) -> Self {
        let rounds = rounds_in(slack, rtt);
        Self { spare: slack - rtt.timeout * rounds.into(), rounds, timeout: rtt.timeout, losses }
    }

    /// The probability that this number of transmissions is lost.
    pub(super) fn late_after(&self, transmissions: u8) -> f64 {
        let again = transmissions.saturating_sub(1);
        let alone = again.min(self.rounds);
        let copies = again - alone;
        let mut late = self.losses.share();
        if alone > 0 {
            late *= self.losses.share_after_loss(self.timeout).powi(alone.into());
        }
        if copies > 0 {
            let apart = self.spare * 15 / 16 / u32::from(copies);
            late *= self.losses.share_after_loss(apart).powi(copies.into());
        }
        late
    }

    /// The number of transmissions with which the share `late` is late; fewer if the last ones are not worth their cost.
    pub(super) fn wanted(&self, late: f64) -> Wanted {
        let (mut transmissions, mut left) = (1, self.late_after(1));
        while left > late && transmissions < MOST_TRANSMISSIONS {
            let next = self.late_after(transmissions + 1);
            if next > WORTH * left {
                break;
            } else if next <= late {
                let share_of_one_more = (left - late) / (left - next);
                return Wanted { transmissions, share_of_one_more, late };
            }
            (transmissions, left) = (transmissions + 1, next);
        }
        Wanted { transmissions, share_of_one_more: 0.0, late: left }
    }

    /// The probability of being late that is wanted, or the least that the budget allows if so many copies are bundled.
    pub(super) fn least_late(&self, wanted: &Wanted, bundled: f64, budget: Budget) -> f64 {
        let Budget { packets, bytes } = budget;
        // Retransmissions are no copies, and copies beside them are needed for as many units as are lost.
        let (sure, weight, bundled) = if self.rounds > 0 {
            (1.0 + f64::from(self.rounds), self.losses.share().max(f64::MIN_POSITIVE), 0.0)
        } else {
            (1.0, 1.0, bundled)
        };
        let missing = (wanted.mean() - sure).max(0.0);
        let alone = (missing - bundled).max(0.0).min(packets / weight);
        let copies = (missing.min(bundled) + alone).min(bytes / weight);
        if copies >= missing - 1e-9 {
            return wanted.late;
        }
        let transmissions = sure + copies;
        let [fewer, more] = [transmissions.floor(), transmissions.ceil()];
        let [left, next] = [fewer, more].map(|n| self.late_after(n as u8).ln());
        (left + (transmissions - fewer) * (next - left)).exp()
    }
}
