//! Early Fast Retransmit of FreeBSD 6.2: data that could have been acknowledged by now, and was not, is
//! retransmitted while the window is not used up (Petlund 2009 §2).

use crate::outstanding::{PacketNumber, SentPacket};
use crate::state::State;
use crate::{RttEstimator, SendCause};
use rexmit_core::Instant;
use std::time::Duration;

/// The least time between a transmission and its early retransmission, as FreeBSD set it by default.
pub(super) const LEAST_WAIT: Duration = Duration::from_millis(250);

/// How long Early Fast Retransmit waits for a packet after its first transmission. FreeBSD 6.2 used its
/// retransmission timeout, SRTT + 2 RTTVAR, with a lower bound other than RTO.Min. `None` without an RTT
/// sample.
pub(super) fn early_wait(rtt: &RttEstimator) -> Option<Duration> {
    match *rtt {
        RttEstimator::Unmeasured => None,
        RttEstimator::Measured { srtt, rttvar, .. } => Some((srtt + 2 * rttvar).max(LEAST_WAIT)),
    }
}

/// The packets of `path` sent for the first time that could have been acknowledged by now.
pub(crate) fn expired_early<P>(now: Instant, path: u8, state: &State<P>) -> Vec<PacketNumber> {
    let Some(wait) = early_wait(state.paths[path].timer.rtt()) else { return Vec::new() };
    let is_late = |(_, sent_at): &(PacketNumber, Instant)| *sent_at + wait <= now;
    first_sent_in_flight(state, path).take_while(is_late).map(|(number, _)| number).collect()
}

/// The deadline of the timer, which runs for the oldest packet sent for the first time while cwnd exceeds
/// data in flight.
pub(super) fn early_deadline<P>(path: u8, state: &State<P>) -> Option<Instant> {
    let p = &state.paths[path];
    let has_room = p.window.cwnd() > state.outstanding.flight(path).bytes;
    let wait = early_wait(p.timer.rtt()).filter(|_| has_room)?;
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
