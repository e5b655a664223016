//! The uncompleted messages of a receiver.

use std::collections::VecDeque;
use std::fmt;

use rexmit_core::Instant;

use super::plan::{PlannedMessage, ThinPlan};

/// The record of one message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ThinRecord {
    /// The message's number in the stream, from 0.
    pub number: u64,
    /// Size of its payload in bytes.
    pub bytes: u32,
    /// When the application intended to send it.
    pub intended: Instant,
    /// When all of it had arrived, though it may have had to wait for earlier messages.
    pub arrived: Option<Instant>,
    /// When it was delivered to the application.
    pub delivered: Option<Instant>,
}

/// The messages from the first one that is not delivered to the highest one of which anything has
/// arrived.
///
/// It contains at most [`Window::LIMIT`] messages; beyond that, which is possible with UDP only, the oldest counts as
/// lost. For an ordered stream, these are the messages that the transport buffers behind a gap.
#[derive(Clone)]
pub(super) struct Window {
    plan: ThinPlan,
    /// The number of the first uncompleted message.
    base: u64,
    open: VecDeque<Open>,
    given_up: u64,
}

/// An uncompleted message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Open {
    pub(super) message: PlannedMessage,
    /// Number of bytes that have not arrived.
    pub(super) missing: u32,
    pub(super) arrived: Option<Instant>,
    pub(super) delivered: Option<Instant>,
}

impl Window {
    pub(super) const LIMIT: usize = 1 << 16;

    pub(super) fn new(plan: ThinPlan) -> Self {
        Self { plan, base: 0, open: VecDeque::new(), given_up: 0 }
    }

    /// Message `number`, unless it is completed or not in the plan.
    pub(super) fn message(&mut self, number: u64) -> Option<&mut Open> {
        self.draw_until(|last| last.is_some_and(|(drawn, _)| drawn >= number));
        let place = number.checked_sub(self.base)?;
        self.open.get_mut(usize::try_from(place).ok()?)
    }

    /// The uncompleted messages with bytes of `first..=last` of the stream, with their numbers.
    pub(super) fn within(&mut self, first: u64, last: u64) -> impl Iterator<Item = &mut Open> {
        self.draw_until(|drawn| drawn.is_some_and(|(_, end)| end > last));
        let from = self.open.partition_point(|open| open.message.end <= first);
        self.open.range_mut(from..).take_while(move |open| open.message.begin() <= last)
    }

    /// Generates messages of the plan until `is_enough` holds for the last one's number and end, or
    /// the plan ends.
    fn draw_until(&mut self, is_enough: impl Fn(Option<(u64, u64)>) -> bool) {
        loop {
            let last = self.open.back().map(|open| open.message.end);
            let number = (self.base + self.open.len() as u64).wrapping_sub(1);
            if is_enough(last.map(|end| (number, end))) {
                return;
            }
            let Some(message) = self.plan.next() else { return };
            let missing = message.bytes;
            self.open.push_back(Open { message, missing, arrived: None, delivered: None });
            if self.open.len() > Self::LIMIT {
                self.given_up += u64::from(self.open[0].delivered.is_none());
                self.drop_first();
            }
        }
    }

    /// Removes completed messages.
    pub(super) fn advance(&mut self) {
        while self.open.front().is_some_and(|open| open.delivered.is_some()) {
            self.drop_first();
        }
    }

    fn drop_first(&mut self) {
        self.open.pop_front();
        self.base += 1;
    }

    /// The records of all uncompleted messages, including those of which nothing arrived.
    pub(super) fn rest(&self) -> impl Iterator<Item = ThinRecord> {
        let drawn = self.open.iter().copied();
        let unheard = self.plan.clone().map(|message| Open {
            message,
            missing: message.bytes,
            arrived: None,
            delivered: None,
        });
        (self.base..).zip(drawn.chain(unheard)).map(|(number, open)| open.record(number))
    }

    /// Number of messages counted as lost.
    pub(super) const fn given_up(&self) -> u64 {
        self.given_up
    }

    /// Number of messages in the window.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }
}

impl fmt::Debug for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Window").field("base", &self.base).finish_non_exhaustive()
    }
}

impl Open {
    pub(super) const fn record(&self, number: u64) -> ThinRecord {
        let Self { message, arrived, delivered, .. } = *self;
        let PlannedMessage { intended, bytes, .. } = message;
        ThinRecord { number, bytes, intended, arrived, delivered }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window() -> Window {
        let source = (0..).map(|n| (Instant::from_millis(n), 10));
        Window::new(ThinPlan::new(source, Instant::FAR_FUTURE))
    }

    #[test]
    fn only_undelivered_messages_are_stored() {
        let mut window = window();
        for number in 0..100_000 {
            let open = window.message(number).expect("it is open");
            open.delivered = Some(Instant::ZERO);
            window.advance();
            assert!(window.len() <= 1);
        }
        assert!(window.message(99_999).is_none(), "it is through");
    }

    #[test]
    fn missing_messages_are_given_up_beyond_a_limit() {
        let mut window = window();
        for number in (0..4 * Window::LIMIT as u64).filter(|number| number % 2 == 0) {
            let open = window.message(number).expect("it is open");
            open.delivered = Some(Instant::ZERO);
            window.advance();
            assert!(window.len() <= Window::LIMIT);
        }
        // All odd ones but those of the last full window.
        let expected = 3 * Window::LIMIT as u64 / 2;
        assert!(window.given_up().abs_diff(expected) <= 1, "{}", window.given_up());
    }

    #[test]
    fn the_messages_of_a_piece_of_the_stream() {
        let mut window = window();
        let begins = |window: &mut Window, first, last| -> Vec<_> {
            window.within(first, last).map(|open| open.message.begin()).collect()
        };
        assert_eq!(begins(&mut window, 5, 29), [0, 10, 20]);
        assert_eq!(begins(&mut window, 30, 30), [30]);
        assert_eq!(begins(&mut window, 10, 19), [10]);
    }
}
