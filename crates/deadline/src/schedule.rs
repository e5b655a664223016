//! When a unit is transmitted, and how likely all transmissions are lost.

use std::time::Duration;

use rexmit_core::Instant;

use super::losses::Losses;
use super::{Budget, Copies, Due, Ways, slack, times};

/// Transmissions of a unit in time at most.
pub(super) const MOST_TRANSMISSIONS: u8 = 8;
/// Another transmission is worth its cost if it reduces the probability of being late to less than this part.
const WORTH: f64 = 0.9;

/// The time that a deadline leaves for sending a unit again.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct TimeLeft {
    /// Retransmissions by the probe timer that are in time, and the time between two.
    pub(super) rounds: u8,
    timeout: Duration,
    /// The time for copies: after the first transmission, or the last retransmission.
    pub(super) spare: Duration,
    /// The loss rate of retransmissions and copies over another path, if they take one.
    pub(super) other_loss: Option<f64>,
}

impl TimeLeft {
    /// The time left when a unit is sent `now`, to be sent again after a timeout at the soonest; `None` if it is late already, or
    /// the round trip is not known.
    pub(super) fn of(now: Instant, due: Due, ways: Option<Ways>) -> Option<Self> {
        let Ways { rtt, other } = ways?;
        let slack_here = slack(now, due, Some(rtt))?;
        let elsewhere =
            other.and_then(|other| slack(now, due, Some(other.rtt)).map(|left| (other, left)));
        let timeout = rtt.timeout;
        Some(match (elsewhere, other) {
            (Some((other, slack)), _) => {
                let next = other.rtt.timeout;
                let later = slack.checked_sub(timeout).map(|rest| (rest, times(rest, next)));
                let rounds = later.map_or(0, |(_, rounds)| rounds.saturating_add(1));
                let spare = later.map_or(slack, |(rest, rounds)| rest - next * rounds.into());
                let other_loss = Some(other.loss_after_loss);
                Self { rounds, timeout: next, spare, other_loss }
            }
            // Retransmissions take the other path, and would be late.
            (None, Some(_)) => Self { rounds: 0, timeout, spare: slack_here, other_loss: None },
            (None, None) => {
                let rounds = times(slack_here, timeout);
                let spare = slack_here - timeout * rounds.into();
                Self { rounds, timeout, spare, other_loss: None }
            }
        })
    }

    /// `count` copies, spread over most of the time for them, as timers are late. In bursts, none is sent early.
    pub(super) fn copies(&self, count: u8, are_bursty: bool) -> Copies {
        if count == 0 {
            return Copies::default();
        }
        let spacing = self.spacing(count);
        let early = if are_bursty { Duration::ZERO } else { spacing / 2 };
        Copies { count, spacing, early, is_elsewhere: self.other_loss.is_some() }
    }

    fn spacing(&self, copies: u8) -> Duration {
        self.spare * 15 / 16 / u32::from(copies)
    }
}

/// The times at which a unit may be transmitted again, and how likely it is lost then.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schedule<'a> {
    pub(super) left: TimeLeft,
    pub(super) losses: &'a Losses,
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

impl Schedule<'_> {
    /// The probability that this number of transmissions is lost.
    pub(super) fn late_after(&self, transmissions: u8) -> f64 {
        let again = transmissions.saturating_sub(1);
        let alone = again.min(self.left.rounds);
        let copies = again - alone;
        let mut late = self.losses.share();
        if alone > 0 {
            late *= self.lost_again(alone, self.left.timeout);
        }
        if copies > 0 {
            late *= self.lost_again(copies, self.left.spacing(copies));
        }
        late
    }

    /// The probability that `count` transmissions, so far `apart`, are lost after one that was: the first of them over the other
    /// path, if there is one.
    fn lost_again(&self, count: u8, apart: Duration) -> f64 {
        let after_loss = self.losses.share_after_loss(apart);
        let first = self.left.other_loss.unwrap_or(after_loss);
        first * after_loss.powi(i32::from(count) - 1)
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
        let rounds = self.left.rounds;
        let (sure, weight, bundled) = if rounds > 0 {
            (1.0 + f64::from(rounds), self.losses.share().max(f64::MIN_POSITIVE), 0.0)
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
