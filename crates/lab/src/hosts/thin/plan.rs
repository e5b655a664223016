//! The planned messages of a thin stream.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rexmit_core::Instant;
use rexmit_core::serial::{unwrap_u16, unwrap_u32};
use rexmit_netsim::source::Source;

/// One message of a plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlannedMessage {
    /// When the application intends to send it.
    pub intended: Instant,
    /// Size of its payload; at least one byte.
    pub bytes: u32,
    /// The number of bytes of all messages up to and including this one.
    pub(super) end: u64,
}

/// The messages of a thin stream, generated one after the other. Sender and receiver have a copy
/// each, and neither stores messages that are completed.
///
/// The first four bytes of a message, or fewer if it is shorter, contain the low bits of its
/// number, by which the receiver looks up the intended time in the plan. Messages have exactly the
/// sizes of the source, however small.
#[derive(Clone)]
pub struct ThinPlan {
    source: Box<dyn Repeatable>,
    until: Instant,
    end: u64,
    /// Delay of all copies of the plan, in nanoseconds.
    delay: Arc<AtomicU64>,
}

/// A source that can be cloned, so that both ends can follow it.
trait Repeatable: Source + Send {
    fn again(&self) -> Box<dyn Repeatable>;
}

impl<S: Source + Clone + Send + 'static> Repeatable for S {
    fn again(&self) -> Box<dyn Repeatable> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn Repeatable> {
    fn clone(&self) -> Self {
        (**self).again()
    }
}

impl ThinPlan {
    /// The messages of `source` that are due before `until`. Empty messages are left out, because a
    /// byte stream cannot carry them; messages above 4 GiB are truncated.
    #[must_use]
    pub fn new(source: impl Source + Clone + Send + 'static, until: Instant) -> Self {
        Self { source: Box::new(source), until, end: 0, delay: Arc::default() }
    }

    /// Delays the messages of this plan and of all its copies by `delay` from now on.
    pub(super) fn delay_by(&self, delay: Duration) {
        let nanos = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
        self.delay.store(nanos, Ordering::Relaxed);
    }
}

impl Iterator for ThinPlan {
    type Item = PlannedMessage;

    fn next(&mut self) -> Option<PlannedMessage> {
        loop {
            let (intended, bytes) = self.source.next().filter(|&(at, _)| at < self.until)?;
            let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
            if bytes > 0 {
                self.end += u64::from(bytes);
                let delay = Duration::from_nanos(self.delay.load(Ordering::Relaxed));
                let intended = intended + delay;
                return Some(PlannedMessage { intended, bytes, end: self.end });
            }
        }
    }
}

impl fmt::Debug for ThinPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThinPlan").field("until", &self.until).finish_non_exhaustive()
    }
}

impl PlannedMessage {
    /// The offset of its first byte in the stream of all messages.
    pub(super) const fn begin(&self) -> u64 {
        self.end - self.bytes as u64
    }
}

/// Number of bytes that contain a message's number, if the message is long enough.
const NUMBER_BYTES: usize = 4;

/// Writes the number of a message into its first bytes.
pub(super) fn write_number(number: usize, message: &mut [u8]) {
    let bytes = (number as u32).to_be_bytes();
    let len = message.len().min(NUMBER_BYTES);
    message[..len].copy_from_slice(&bytes[NUMBER_BYTES - len..]);
}

/// The message number nearest to `near`, given the first bytes of a message of `len` bytes.
pub(super) fn read_number(head: &[u8], len: usize, near: usize) -> Option<usize> {
    // High enough for numbers below `near` to be found without falling below zero.
    const BASE: u64 = 1 << 32;
    let head = head.get(..len.min(NUMBER_BYTES)).filter(|head| !head.is_empty())?;
    let wire = head.iter().fold(0_u32, |number, &byte| number << 8 | u32::from(byte));
    let reference = BASE + near as u64;
    let found = match head.len() {
        1 => unwrap_bits(reference, wire, 8),
        2 => unwrap_u16(reference, wire as u16),
        3 => unwrap_bits(reference, wire, 24),
        _ => unwrap_u32(reference, wire),
    };
    usize::try_from(found.checked_sub(BASE)?).ok()
}

/// The number congruent to `wire` modulo 2^`bits` that is nearest to `reference`.
const fn unwrap_bits(reference: u64, wire: u32, bits: u32) -> u64 {
    // As the highest bits of a 32-bit number, so that its sign is the right one.
    let delta = (wire.wrapping_sub(reference as u32) << (32 - bits)) as i32 >> (32 - bits);
    reference.wrapping_add_signed(delta as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_found_near_what_is_expected() {
        for len in 1..=6 {
            let reach: usize = [0, 127, 32_767, 1 << 20][len.min(3)];
            for number in [0, 1, 127, 128, 255, 256, 70_000, 20_000_000] {
                let mut message = vec![7; len];
                write_number(number, &mut message);
                for away in [0, 1, 100, reach] {
                    for near in [number + away, number.saturating_sub(away)] {
                        let found = read_number(&message, len, near);
                        assert_eq!(found, Some(number), "{len} bytes near {near}");
                    }
                }
            }
        }
        assert_eq!(read_number(&[], 0, 5), None);
        assert_eq!(read_number(&[1, 2], 4, 5), None);
        assert_eq!(read_number(&[255], 1, 0), None, "there is no number below 0");
    }

    #[test]
    fn a_plan_knows_where_its_messages_are_in_the_stream() {
        let source = [(0, 10), (5, 0), (7, 3), (20, 1)];
        let source = source.map(|(ms, bytes)| (Instant::from_millis(ms), bytes));
        let mut plan = ThinPlan::new(source.into_iter(), Instant::from_millis(20));
        let places = |plan: ThinPlan| -> Vec<_> { plan.map(|m| (m.begin(), m.end)).collect() };
        assert_eq!(places(plan.clone()), [(0, 10), (10, 13)]);
        assert_eq!(plan.next().map(|message| message.bytes), Some(10));
        assert_eq!(places(plan), [(10, 13)], "a copy goes on where the plan was");
    }
}
