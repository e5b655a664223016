//! The retransmission events of one path: the latest, what was the case before it, and what is known
//! of it by now.

use std::time::Duration;

use rexmit_core::Instant;
use rexmit_core::trace::SendCause;

use super::eifel::Eifel;
use crate::CongestionWindow;

/// Names an event: those of a path in their order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct EventId {
    /// The path whose window the event reduced.
    pub(crate) path: u8,
    pub(crate) number: u32,
}

/// What was the case just before an event.
#[derive(Clone, Debug)]
pub(crate) struct Before {
    pub(crate) window: CongestionWindow,
    /// SRTT and RTTVAR, if measured.
    pub(crate) rtt: Option<(Duration, Duration)>,
}

/// A retransmission event of which it is not known whether it was spurious.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) number: u32,
    /// [`SendCause::Timeout`] or [`SendCause::FastRetransmit`].
    pub(crate) kind: SendCause,
    pub(crate) before: Before,
    /// When the first copy left in it.
    pub(crate) resent_at: Option<Instant>,
    /// Copies that left in it.
    pub(crate) copies: u32,
    /// Those of them that were not reported as duplicates.
    unreported: u32,
    /// Duplicate reports may prove it.
    is_provable: bool,
    pub(crate) eifel: Eifel,
    earlier: Option<Earlier>,
}

/// The events right before the latest that are not decided either, as one. A copy that the log no
/// longer knows the event of is never reported, so that these are not found spurious any more.
#[derive(Clone, Debug)]
struct Earlier {
    /// The number of the first.
    first: u32,
    unreported: u32,
    before: Before,
}

/// The latest event of a path, unless it is decided, or there was none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Events {
    latest: Option<Box<Event>>,
    next: u32,
}

impl Events {
    pub(crate) fn latest(&self) -> Option<&Event> {
        self.latest.as_deref()
    }

    pub(crate) fn latest_mut(&mut self) -> Option<&mut Event> {
        self.latest.as_deref_mut()
    }

    /// An event begins. `is_provable`: duplicate reports are believed.
    pub(crate) fn begin(&mut self, kind: SendCause, before: Before, is_provable: bool) {
        let earlier = self.latest.take().and_then(|event| event.into_earlier());
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        self.latest = Some(Box::new(Event {
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

    /// A copy leaves. Returns the event that it belongs to.
    pub(crate) fn on_resent(&mut self, now: Instant) -> Option<u32> {
        let event = self.latest.as_mut()?;
        event.resent_at.get_or_insert(now);
        event.copies += 1;
        event.unreported += 1;
        Some(event.number)
    }

    /// A copy that left in event `number` is reported as a duplicate. Returns whether that is the
    /// latest.
    pub(crate) fn on_reported(&mut self, number: u32) -> bool {
        let Some(event) = &mut self.latest else { return false };
        if event.number == number {
            event.unreported -= 1;
            return true;
        }
        if let Some(earlier) = event.earlier.as_mut().filter(|earlier| earlier.first <= number) {
            earlier.unreported -= 1;
        }
        false
    }

    /// Duplicate reports can no longer prove what is open up to event `number`.
    pub(crate) fn doubt_through(&mut self, number: u32) {
        let Some(event) = &mut self.latest else { return };
        event.is_provable &= number < event.number;
        event.earlier = event.earlier.take().filter(|earlier| number < earlier.first);
    }

    /// The same of everything that is open.
    pub(crate) fn doubt(&mut self) {
        self.doubt_through(u32::MAX);
    }

    /// Every copy that left in the latest event is reported, or none had to leave.
    pub(crate) fn is_reported(&self) -> bool {
        self.latest.as_ref().is_some_and(|event| event.is_provable && event.unreported == 0)
    }

    /// The latest event is decided: it was spurious. Returns it, with what was the case before it,
    /// or before the earlier ones if they were spurious, too.
    pub(crate) fn settle(&mut self) -> Option<Box<Event>> {
        let mut event = self.latest.take()?;
        let earlier = event.earlier.take().filter(|earlier| earlier.unreported == 0);
        if let Some(Earlier { before, .. }) = earlier
            && before.window.cwnd() > event.before.window.cwnd()
        {
            event.before = before;
        }
        Some(event)
    }

    /// Nothing is to be undone any more.
    pub(crate) fn clear(&mut self) {
        self.latest = None;
    }
}

impl Event {
    fn into_earlier(self) -> Option<Earlier> {
        let Self { number, unreported, before, earlier, is_provable, .. } = self;
        is_provable.then(|| match earlier {
            Some(earlier) => Earlier { unreported: earlier.unreported + unreported, ..earlier },
            None => Earlier { first: number, unreported, before },
        })
    }
}
