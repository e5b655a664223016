//! The share of packets that are lost, recently and for longer.

/// A new packet weighs one part in this many in the recent share, and in the long one.
const RECENT: f64 = 32.0;
const LONG: f64 = 192.0;
/// The first packets weigh more, as if so many had been sent before the first one, of which [`AT_FIRST`] were lost.
const HEAD_START: u32 = 12;
const AT_FIRST: f64 = 0.03;
/// With more than this, copies do not help.
const MOST: f64 = 0.5;

/// Losses of packets with new data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Losses {
    recent: f64,
    long: f64,
    /// Packets sent, up to [`LONG`].
    sent: u32,
}

impl Default for Losses {
    fn default() -> Self {
        Self { recent: AT_FIRST, long: AT_FIRST, sent: HEAD_START }
    }
}

impl Losses {
    /// The weights of a packet in both shares.
    fn weights(&self) -> [f64; 2] {
        [RECENT, LONG].map(|most| 1.0 / most.min(self.sent.into()))
    }

    /// A packet with new data is sent.
    pub(super) fn on_sent(&mut self) {
        self.sent = (self.sent + 1).min(LONG as u32);
        let [recent, long] = self.weights();
        self.recent -= self.recent * recent;
        self.long -= self.long * long;
    }

    /// One of them was lost.
    pub(super) fn on_lost(&mut self) {
        let [recent, long] = self.weights();
        self.recent = (self.recent + recent).min(1.0);
        self.long = (self.long + long).min(1.0);
    }

    /// One that was taken for lost had arrived.
    pub(super) fn on_not_lost(&mut self) {
        let [recent, long] = self.weights();
        self.recent = (self.recent - recent).max(0.0);
        self.long = (self.long - long).max(0.0);
    }

    /// The probability that the next packet is lost: the larger share, so that a rise shows soon, and a lucky while
    /// does not count for much.
    pub(super) fn share(&self) -> f64 {
        self.recent.max(self.long).min(MOST)
    }
}

#[cfg(test)]
mod tests {
    use rexmit_core::Seed;

    use super::*;

    /// The share after so many packets, of which one in `every` is lost.
    fn send(losses: &mut Losses, packets: u32, every: u32) -> f64 {
        for n in 0..packets {
            losses.on_sent();
            if n % every == every - 1 {
                losses.on_lost();
            }
        }
        losses.share()
    }

    #[test]
    fn a_rise_shows_within_fifty_packets_and_a_fall_within_some_hundred() {
        let mut losses = Losses::default();
        assert!(send(&mut losses, 2000, u32::MAX) < 1e-4);
        let risen = send(&mut losses, 50, 20);
        assert!((0.03..0.08).contains(&risen), "{risen}");
        send(&mut losses, 1000, 20);
        let fallen = send(&mut losses, 400, u32::MAX);
        assert!(fallen < 0.01, "{fallen}");
    }

    /// It is above the true share, because the larger of two is taken, but not by much.
    #[test]
    fn is_near_the_true_share() {
        for share in [0.01, 0.05, 0.1] {
            let mut rng = Seed::from_u64(1).rng();
            let (mut losses, mut sum) = (Losses::default(), 0.0);
            const SENT: u32 = 100_000;
            for _ in 0..SENT {
                losses.on_sent();
                if rng.chance(share) {
                    losses.on_lost();
                }
                sum += losses.share();
            }
            let mean = sum / f64::from(SENT);
            assert!((share..1.5 * share).contains(&mean), "{mean} at {share}");
        }
    }

    #[test]
    fn what_had_arrived_does_not_count() {
        let mut losses = Losses::default();
        for _ in 0..1000 {
            losses.on_sent();
            losses.on_lost();
            losses.on_not_lost();
        }
        assert!(losses.share() < 1e-4);
        losses.on_not_lost();
        assert!(losses.share() >= 0.0);
        for _ in 0..1000 {
            losses.on_sent();
            losses.on_lost();
        }
        assert_eq!(losses.share(), MOST);
    }
}
