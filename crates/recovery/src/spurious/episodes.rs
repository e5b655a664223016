//! The recovery episodes of one path: the latest, the state before it, and the evidence about it so far.

use std::time::Duration;

use rexmit_core::Instant;
use rexmit_core::trace::SendCause;

use super::eifel::Eifel;
use crate::CongestionWindow;

/// The state just before an episode.
#[derive(Clone, Debug)]
pub(crate) struct Before {
    pub(crate) window: CongestionWindow,
    /// SRTT and RTTVAR, if measured.
    pub(crate) rtt: Option<(Duration, Duration)>,
}

/// A recovery episode of which it is not known whether it was spurious.
#[derive(Clone, Debug)]
pub(crate) struct Episode {
    number: u32,
    /// [`SendCause::Timeout`] or [`SendCause::FastRetransmit`].
    pub(crate) kind: SendCause,
    pub(crate) before: Before,
    /// When the first retransmission was sent in it.
    pub(crate) resent_at: Option<Instant>,
    /// Retransmissions sent in it.
    pub(super) copies: u32,
    /// Those of them that were not reported as duplicates.
    unreported: u32,
    /// Duplicate reports may prove that it was spurious.
    is_provable: bool,
    pub(super) eifel: Eifel,
    earlier: Option<Earlier>,
}

/// The undecided episodes right before the latest, as one. A transmission whose episode is forgotten is never
/// reported for it, so that these are not found spurious any more.
#[derive(Clone, Debug)]
struct Earlier {
    /// The number of the first.
    first: u32,
    unreported: u32,
    before: Before,
}

/// The latest episode of a path, unless it is decided or there was none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Episodes {
    latest: Option<Box<Episode>>,
    next: u32,
}

impl Episodes {
    pub(crate) fn latest(&self) -> Option<&Episode> {
        self.latest.as_deref()
    }

    pub(crate) fn latest_mut(&mut self) -> Option<&mut Episode> {
        self.latest.as_deref_mut()
    }

    /// An episode begins. `is_provable`: duplicate reports are believed.
    pub(crate) fn begin(&mut self, kind: SendCause, before: Before, is_provable: bool) {
        let earlier = self.latest.take().and_then(|episode| episode.into_earlier());
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        self.latest = Some(Box::new(Episode {
            number,
            kind,
            before,
            resent_at: None,
            copies: 0,
            unreported: 0,
            is_provable,
            eifel: Eifel::default(),
            earlier,
        }));
    }

    /// A retransmission is sent. Returns the number of the episode that it belongs to.
    pub(crate) fn on_resent(&mut self, now: Instant) -> Option<u32> {
        let episode = self.latest.as_mut()?;
        episode.resent_at.get_or_insert(now);
        episode.copies += 1;
        episode.unreported += 1;
        Some(episode.number)
    }

    /// A retransmission of episode `number` is reported as a duplicate. Returns whether that is the latest.
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

    /// Duplicate reports can no longer prove what is open up to episode `number`.
    pub(crate) fn doubt_through(&mut self, number: u32) {
        let Some(episode) = &mut self.latest else { return };
        episode.is_provable &= number < episode.number;
        episode.earlier = episode.earlier.take().filter(|earlier| number < earlier.first);
    }

    /// Duplicate reports can no longer prove anything that is open.
    pub(crate) fn doubt(&mut self) {
        self.doubt_through(u32::MAX);
    }

    /// Every retransmission of the latest episode is reported, or none had to be sent.
    pub(crate) fn is_reported(&self) -> bool {
        self.latest.as_ref().is_some_and(|episode| episode.is_provable && episode.unreported == 0)
    }

    /// The latest episode is decided: it was spurious. Returns it, with what was the case before it,
    /// or before the earlier ones if they were spurious, too.
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

    /// Nothing is to be undone any more. The numbers go on, because transmissions of earlier episodes are
    /// remembered.
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
