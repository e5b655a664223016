//! The recovery episodes of one path: the latest, the state before it, and the evidence about it so far.

use super::Acknowledged;
use crate::Echo;
use crate::{CongestionWindow, RttEstimator};
use rexmit_core::Instant;
use rexmit_core::trace::SendCause;

/// The state just before an episode.
#[derive(Clone, Debug)]
pub(crate) struct Before {
    pub(crate) window: CongestionWindow,
    pub(crate) rtt: RttEstimator,
}

/// A recovery episode of which it is not known whether it was spurious.
#[derive(Clone, Debug)]
pub(crate) struct Episode {
    number: u32,
    /// [`SendCause::Timeout`] or [`SendCause::FastRetransmit`].
    pub(crate) kind: SendCause,
    pub(crate) before: Before,
    /// When the first retransmission of the episode was sent.
    pub(crate) retransmitted_at: Option<Instant>,
    /// Retransmissions sent in the episode.
    pub(super) copies: u32,
    /// Retransmissions of the episode that were not reported as duplicates.
    unreported: u32,
    /// Whether duplicate reports can prove the episode spurious.
    is_provable: bool,
    pub(super) eifel: Eifel,
    earlier: Option<Earlier>,
}

/// The undecided episodes right before the latest, taken together. A transmission whose episode is forgotten
/// is never reported for it, so such episodes can no longer be proven spurious.
#[derive(Clone, Debug)]
struct Earlier {
    /// The number of the first of these episodes.
    first: u32,
    unreported: u32,
    before: Before,
}

/// The latest episode of a path, unless it is decided or there was none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Episodes {
    pub(super) latest: Option<Box<Episode>>,
    next: u32,
}

impl Episodes {
    /// Begins an episode. `is_provable`: whether duplicate reports are trusted.
    pub(crate) fn begin(&mut self, kind: SendCause, before: Before, is_provable: bool) {
        let earlier = self.latest.take().and_then(|episode| episode.into_earlier());
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        self.latest = Some(Box::new(Episode {
            number,
            kind,
            before,
            retransmitted_at: None,
            copies: 0,
            unreported: 0,
            is_provable,
            eifel: Eifel::default(),
            earlier,
        }));
    }

    pub(crate) fn on_retransmitted(&mut self, now: Instant) -> Option<u32> {
        let episode = self.latest.as_mut()?;
        episode.retransmitted_at.get_or_insert(now);
        episode.copies += 1;
        episode.unreported += 1;
        Some(episode.number)
    }

    /// Called when a retransmission of episode `number` is reported as a duplicate. Returns whether that is the latest.
    pub(crate) fn on_reported(&mut self, number: u32) -> bool {
        let Some(episode) = &mut self.latest else { return false };
        if episode.number == number {
            episode.unreported -= 1;
            return true;
        }
        if let Some(earlier) = episode.earlier.as_mut().filter(|earlier| earlier.first <= number) {
            earlier.unreported -= 1;
        }
        false
    }

    /// Makes undecided episodes up to `number` unprovable by duplicate reports.
    pub(crate) fn mark_unprovable_through(&mut self, number: u32) {
        let Some(episode) = &mut self.latest else { return };
        episode.is_provable &= number < episode.number;
        episode.earlier = episode.earlier.take().filter(|earlier| number < earlier.first);
    }

    /// Makes all undecided episodes unprovable by duplicate reports.
    pub(crate) fn mark_unprovable(&mut self) {
        self.mark_unprovable_through(u32::MAX);
    }

    /// Whether every retransmission of the latest episode was reported as a duplicate, or none was needed.
    pub(crate) fn is_reported(&self) -> bool {
        self.latest.as_ref().is_some_and(|episode| episode.is_provable && episode.unreported == 0)
    }

    /// Ends the latest episode as spurious. Returns it with the state before it, or before the earlier
    /// episodes if those were spurious, too.
    pub(crate) fn settle(&mut self) -> Option<Box<Episode>> {
        let mut episode = self.latest.take()?;
        let earlier = episode.earlier.take().filter(|earlier| earlier.unreported == 0);
        if let Some(Earlier { before, .. }) = earlier
            && before.window.cwnd() > episode.before.window.cwnd()
        {
            episode.before = before;
        }
        Some(episode)
    }

    /// Forgets all episodes, because nothing is to be undone any more. Numbering goes on, because
    /// transmissions of earlier episodes are remembered.
    pub(crate) fn clear(&mut self) {
        self.latest = None;
    }
}

impl Episode {
    fn into_earlier(self) -> Option<Earlier> {
        let Self { number, unreported, before, earlier, is_provable, .. } = self;
        is_provable.then(|| match earlier {
            Some(earlier) => Earlier { unreported: earlier.unreported + unreported, ..earlier },
            None => Earlier { first: number, unreported, before },
        })
    }
}

/// The Eifel detection algorithm (RFC 3522 §3.2): the first acknowledgement that moves the
/// cumulative point after a retransmission echoes the timestamp of what it answers, and if that is
/// older than the retransmission, the original had arrived.
///
/// This is its result for one episode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Eifel {
    /// The ACK has not arrived yet.
    #[default]
    Waiting,
    /// The ACK has arrived, and did not show the episode to be spurious.
    Done,
}

/// The inputs of the algorithm from an ACK that moves the cumulative point.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EifelAck {
    pub(crate) echo: Echo,
    /// Whether the ACK reports a duplicate.
    pub(crate) has_duplicate: bool,
    /// Whether the peer has reported a duplicate before.
    pub(crate) peer_reports_duplicates: bool,
    /// Whether the ACK covers all outstanding data.
    pub(crate) is_last: bool,
}

impl Eifel {
    /// Called when an acceptable acknowledgement arrives (steps 3 to 5). `retransmitted_at`: when the first retransmission of
    /// the episode was sent; without one nothing is decided. Returns whether it shows the episode to be spurious.
    pub(crate) fn on_ack(&mut self, retransmitted_at: Option<Instant>, ack: EifelAck) -> bool {
        let Some(retransmitted_at) = retransmitted_at.filter(|_| *self == Self::Waiting) else {
            return false;
        };
        *self = Self::Done;
        let ticks = |at: Instant| u128::from(at.as_nanos()) / ack.echo.tick.as_nanos().max(1);
        let is_older = ticks(ack.echo.sent_at) < ticks(retransmitted_at);
        is_older && !ack.has_duplicate && (ack.peer_reports_duplicates || !ack.is_last)
    }
}

/// F-RTO, as enhanced by SACK (RFC 5682 §3.1): after a timeout one packet is retransmitted. If its acknowledgement leaves data
/// outstanding, up to two packets of new data are sent before more is retransmitted, and the next acknowledgement decides: if
/// it covers data that was sent before the timeout and not retransmitted, the timeout was spurious.
///
/// This is its step on one path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FRto {
    /// No timeout is under examination.
    #[default]
    Off,
    /// Step 2: the first packet was retransmitted, or is about to be.
    Repeating,
    /// Step 3: new data may be sent, and nothing is retransmitted.
    Probing {
        /// Packets of new data that may still be sent.
        packets_left: u8,
        /// `RecoveryPoint`: the highest unit sent when step 3 began.
        highest: u64,
    },
}

/// The number of packets of new data that step 2 b may send.
const PROBES: u8 = 2;

impl FRto {
    /// Called when an acknowledgement arrives, with units up to `highest_sent` sent; `has_acked_original`: it covers a
    /// unit that was sent once, before the timeout. Returns whether it shows the timeout to be spurious.
    pub(super) fn on_ack(
        &mut self,
        ack: &Acknowledged,
        has_acked_original: bool,
        highest_sent: u64,
    ) -> bool {
        match *self {
            Self::Off => false,
            Self::Repeating => {
                if let Some(cumulative) = ack.advanced_to {
                    let is_open = cumulative < highest_sent && ack.has_new;
                    let probing = Self::Probing { packets_left: PROBES, highest: highest_sent };
                    *self = if is_open { probing } else { Self::Off };
                }
                false
            }
            Self::Probing { highest, .. } => {
                *self = Self::Off;
                let covers_new = ack.highest_newly_acked.is_some_and(|unit| unit > highest);
                has_acked_original && !covers_new
            }
        }
    }

    pub(crate) const fn on_sent_new(&mut self) {
        if let Self::Probing { packets_left, .. } = self {
            *packets_left = packets_left.saturating_sub(1);
        }
    }

    pub(crate) const fn prefers_new(self) -> bool {
        matches!(self, Self::Probing { .. })
    }

    /// Whether step 3 has sent all the new data that it may.
    pub(crate) const fn is_waiting(self) -> bool {
        matches!(self, Self::Probing { packets_left: 0, .. })
    }
}
