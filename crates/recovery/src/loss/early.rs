//! Early Fast Retransmit of FreeBSD 6.2: data that could have been acknowledged by now, and was not, is
//! retransmitted while the window is not used up (Petlund 2009 §2).

use std::time::Duration;

use rexmit_core::Instant;

use crate::outstanding::{PacketNumber, SentPacket};
use crate::state::State;
use crate::{RttEstimator, SendCause};

/// The least time between a transmission and its early retransmission, as FreeBSD set it by default.
const LEAST_WAIT: Duration = Duration::from_millis(250);

/// How long after its first transmission a packet is waited for. FreeBSD 6.2 took its retransmission timeout
/// with a lower bound of its own instead of RTO.Min; that timeout was SRTT + 2 RTTVAR. `None` without an RTT sample.
fn wait(rtt: &RttEstimator) -> Option<Duration> {
    match *rtt {
        RttEstimator::Unmeasured => None,
        RttEstimator::Measured { srtt, rttvar, .. } => Some((srtt + 2 * rttvar).max(LEAST_WAIT)),
    }
}

/// The packets of `path` sent for the first time that could have been acknowledged by now.
pub(super) fn expired<P>(now: Instant, path: u8, state: &State<P>) -> Vec<PacketNumber> {
    let Some(wait) = wait(state.paths[path].timer.rtt()) else { return Vec::new() };
    let is_late = |(_, sent_at): &(PacketNumber, Instant)| *sent_at + wait <= now;
    first_sent_in_flight(state, path).take_while(is_late).map(|(number, _)| number).collect()
}

/// While cwnd exceeds data in flight, the timer of the oldest packet sent for the first time runs.
pub(super) fn deadline<P>(path: u8, state: &State<P>) -> Option<Instant> {
    let p = &state.paths[path];
    let has_room = p.window.cwnd() > state.outstanding.flight(path).bytes;
    let wait = wait(p.timer.rtt()).filter(|_| has_room)?;
    first_sent_in_flight(state, path).next().map(|(_, sent_at)| sent_at + wait)
}

/// The packets in flight on `path` that were sent with new data, oldest first, and when.
fn first_sent_in_flight<P>(
    state: &State<P>,
    path: u8,
) -> impl Iterator<Item = (PacketNumber, Instant)> {
    let is_first = |(_, packet): &(PacketNumber, &SentPacket)| packet.cause == SendCause::New;
    let in_flight = state.outstanding.packets().in_flight(path).filter(is_first);
    in_flight.map(|(number, packet)| (number, packet.sent_at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RtoConfig;

    #[test]
    fn waits_for_the_round_trip_and_its_variation() {
        let mut rtt = RttEstimator::default();
        assert_eq!(wait(&rtt), None);
        rtt.on_sample(Duration::from_millis(100), &RtoConfig::default());
        assert_eq!(wait(&rtt), Some(LEAST_WAIT));
        let mut rtt = RttEstimator::default();
        rtt.on_sample(Duration::from_millis(300), &RtoConfig::default());
        assert_eq!(wait(&rtt), Some(Duration::from_millis(600)));
    }
}
