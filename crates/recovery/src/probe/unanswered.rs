//! The ACKs of all connections of an endpoint, seen together: losses are independent, late ACKs are not.
//!
//! A packet is unanswered when its probe timer has expired and nothing was acknowledged since. Where losses are the
//! reason, most connections still have their answers in time. Where most are unanswered at once, the peers or this host have
//! no time to answer, or a link that all share is down: a probe would only be one more packet to be processed, or be
//! lost. The connections that are unanswered first probe for all; the others put their probes off, for
//! [`PUT_OFF`](super::PUT_OFF) at a time and [`MOST_PUT_OFF`](super::MOST_PUT_OFF) at most. Silent paths put nothing off.

use std::time::Duration;

use rexmit_core::Instant;

/// With fewer connections unanswered, none puts its probes off.
const LEAST_CONNECTIONS: usize = 8;
/// An ACK counts for one to two periods.
const PERIOD: Duration = Duration::from_millis(50);

/// The unanswered connections of an endpoint, and the answers that came in time lately.
#[derive(Clone, Debug, Default)]
pub struct Unanswered {
    connections: usize,
    /// Answers in time in the period that began last, and in the one before.
    answers: [usize; 2],
    began_at: Instant,
}

/// The contribution of a connection to an [`Unanswered`]: whether it is one of the unanswered connections. It
/// outlasts the [`LossRecovery`](crate::LossRecovery) of the connection, which a restart replaces.
#[derive(Clone, Copy, Debug, Default)]
pub struct Share(bool);

impl Unanswered {
    /// Whether more connections are unanswered than were answered in time lately.
    #[must_use]
    pub fn is_common(&self, now: Instant) -> bool {
        let recent = match (now - self.began_at).as_nanos() / PERIOD.as_nanos() {
            0 => self.answers[0] + self.answers[1],
            1 => self.answers[0],
            _ => 0,
        };
        self.connections >= LEAST_CONNECTIONS && self.connections > recent
    }

    /// Enters whether a connection is unanswered, and how often it was answered in time since the last call.
    pub(crate) fn update(
        &mut self,
        now: Instant,
        share: &mut Share,
        (is_unanswered, answers): (bool, u32),
    ) {
        if share.0 != is_unanswered {
            share.0 = is_unanswered;
            let connections = self.connections;
            self.connections =
                if is_unanswered { connections + 1 } else { connections.saturating_sub(1) };
        }
        if answers == 0 {
            return;
        }
        if now - self.began_at >= PERIOD {
            let is_next = now - self.began_at < 2 * PERIOD;
            self.answers = [0, if is_next { self.answers[0] } else { 0 }];
            self.began_at = now;
        }
        self.answers[0] += answers as usize;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: fn(u64) -> Instant = Instant::from_millis;

    fn enter(
        unanswered: &mut Unanswered,
        now: Instant,
        is_unanswered: bool,
        answers: u32,
    ) -> Share {
        let mut share = Share::default();
        unanswered.update(now, &mut share, (is_unanswered, answers));
        share
    }

    #[test]
    fn most_of_at_least_eight_connections_have_to_be_unanswered() {
        let mut unanswered = Unanswered::default();
        let mut shares: Vec<_> = (0..7).map(|_| enter(&mut unanswered, AT(1), true, 0)).collect();
        assert!(!unanswered.is_common(AT(1)), "seven");
        shares.push(enter(&mut unanswered, AT(1), true, 0));
        assert!(unanswered.is_common(AT(1)));
        enter(&mut unanswered, AT(1), false, 8);
        assert!(!unanswered.is_common(AT(1)), "as many were answered");
        shares.push(enter(&mut unanswered, AT(1), true, 0));
        assert!(unanswered.is_common(AT(1)));
        for share in &mut shares {
            unanswered.update(AT(2), share, (true, 0));
        }
        assert_eq!(unanswered.connections, 9, "each counts once");
        for share in &mut shares {
            unanswered.update(AT(3), share, (false, 0));
        }
        assert_eq!(unanswered.connections, 0);
    }

    #[test]
    fn acks_count_for_one_to_two_periods() {
        let mut unanswered = Unanswered::default();
        (0..8).for_each(|_| _ = enter(&mut unanswered, AT(1000), true, 0));
        enter(&mut unanswered, AT(1000), false, 5);
        enter(&mut unanswered, AT(1060), false, 5);
        assert!(!unanswered.is_common(AT(1109)), "five and five");
        assert!(unanswered.is_common(AT(1110)), "five");
        enter(&mut unanswered, AT(1500), false, 7);
        assert!(unanswered.is_common(AT(1500)), "those before are long past");
        enter(&mut unanswered, AT(1501), false, 1);
        assert!(!unanswered.is_common(AT(1501)));
    }
}
