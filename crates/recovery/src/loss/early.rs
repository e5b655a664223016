//! Early Fast Retransmit of FreeBSD: data that could have been acknowledged by now, and was not, is retransmitted while the
//! window is not used up (Petlund 2009 §2).
//!
//! The paper has three sentences on it; the rest is what FreeBSD's SCTP of 2007, which came from KAME, did. Each path has
//! one timer. New data, and each SACK after which data is outstanding, restart it while cwnd exceeds data in flight, and stop
//! it otherwise; retransmissions do neither. When it expires, every chunk in flight that was last sent at least one wait ago
//! is retransmitted, newest first, until data in flight and these exceed cwnd. So a retransmission that is lost, too, is
//! repeated after another wait. T3-rtx runs on as if nothing was retransmitted.

use crate::outstanding::PacketNumber;
use crate::state::State;
use crate::{RtoConfig, RttEstimator};
use rexmit_core::Instant;
use std::time::Duration;

/// The least time between a transmission and its early retransmission, as FreeBSD set it by default.
pub(super) const LEAST_WAIT: Duration = Duration::from_millis(250);

/// The timeout of the timer: SRTT + 2 RTTVAR, or a quarter of RTO.Initial without an RTT sample; at least [`LEAST_WAIT`].
pub(super) fn early_wait(rtt: &RttEstimator, config: &RtoConfig) -> Duration {
    let wait = match *rtt {
        RttEstimator::Unmeasured => config.initial / 4,
        RttEstimator::Measured { srtt, rttvar, .. } => srtt + 2 * rttvar,
    };
    wait.max(LEAST_WAIT)
}

/// The packets in flight on `path` that could have been acknowledged by now, newest first, until they and the data
/// in flight exceed cwnd.
pub(crate) fn expired_early<P>(now: Instant, path: u8, state: &State<P>) -> Vec<PacketNumber> {
    let p = &state.paths[path];
    let wait = early_wait(p.timer.rtt(), &state.config.rto);
    let in_flight = state.outstanding.packets().in_flight(path);
    let late = in_flight.filter(|(_, packet)| packet.sent_at + wait <= now);
    let late: Vec<_> = late.map(|(number, packet)| (number, u64::from(packet.bytes))).collect();
    let mut bytes = state.outstanding.flight(path).bytes;
    let fits = |&(_, size): &(PacketNumber, u64)| {
        let has_room = bytes <= p.window.cwnd();
        bytes += size;
        has_room
    };
    late.into_iter().rev().take_while(fits).map(|(number, _)| number).collect()
}
