//! The records of one association's messages, and the promises that each arrival is held to.

use std::time::Duration;

use rexmit_core::Instant;
use rexmit_netsim::traffic::trace::Message;

use rexmit_lab::measure::MessageRecord;

/// The planned messages of an association, and those that have arrived.
pub(super) struct Records {
    records: Vec<MessageRecord>,
    arrived: usize,
    unordered: bool,
}

impl Records {
    /// `messages` of a run that begins at `start`, before anything has become of them.
    pub(super) fn new(
        (connection, stream): (u32, u16),
        messages: &[Message],
        start: Instant,
        unordered: bool,
    ) -> Self {
        let record = |(sequence, message): (u64, &Message)| MessageRecord {
            connection,
            stream,
            sequence,
            payload_bytes: message.bytes,
            intended: start + message.at,
            delivered: None,
            transmissions: None,
        };
        let records = (0..).zip(messages).map(record).collect();
        Self { records, arrived: 0, unordered }
    }

    /// Whether every message has arrived.
    pub(super) fn is_complete(&self) -> bool {
        self.arrived == self.records.len()
    }

    /// Message `number` arrived with `payload`; returns what it waited.
    ///
    /// # Errors
    /// The promise that is broken, in words.
    pub(super) fn on_arrival(
        &mut self,
        now: Instant,
        number: u32,
        payload: &[u8],
    ) -> Result<Duration, String> {
        let Some(record) = self.records.get_mut(number as usize) else {
            return Err(format!("message {number} arrived, which was never sent"));
        };
        if record.delivered.is_some() {
            return Err(format!("message {number} was delivered twice"));
        }
        if !self.unordered && number as usize != self.arrived {
            return Err(format!("message {number} was delivered in the place of {}", self.arrived));
        }
        if payload != content(number, record.payload_bytes) {
            return Err(format!("message {number} arrived changed"));
        }
        record.delivered = Some(now);
        self.arrived += 1;
        Ok(now - record.intended)
    }

    /// The record of every message.
    pub(super) fn all(&self) -> &[MessageRecord] {
        &self.records
    }

    pub(super) fn into_inner(self) -> Vec<MessageRecord> {
        self.records
    }
}

/// Made-up bytes that differ from message to message and from place to place.
pub(super) fn content(number: u32, bytes: u32) -> Vec<u8> {
    let first = number.wrapping_mul(31);
    (0..bytes).map(|place| first.wrapping_add(place.wrapping_mul(7)) as u8).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Instant = Instant::from_millis(1000);

    fn records(unordered: bool) -> Records {
        let message = |ms| Message { at: Duration::from_millis(ms), bytes: 3 };
        Records::new((0, 0), &[message(0), message(10), message(20)], START, unordered)
    }

    fn arrive(records: &mut Records, number: u32) -> Result<Duration, String> {
        records.on_arrival(START + Duration::from_millis(70), number, &content(number, 3))
    }

    #[test]
    fn waits_count_from_the_time_in_the_trace() {
        let mut records = records(false);
        let waits: Vec<_> = (0..3).map(|n| arrive(&mut records, n).unwrap().as_millis()).collect();
        assert_eq!(waits, [70, 60, 50]);
        assert!(records.is_complete());
        assert!(records.into_inner().iter().all(|record| record.delivered.is_some()));
    }

    #[test]
    fn a_broken_promise_is_named() {
        let mut ordered = records(false);
        assert!(arrive(&mut ordered, 1).unwrap_err().contains("in the place of 0"));
        arrive(&mut ordered, 0).unwrap();
        assert!(arrive(&mut ordered, 0).unwrap_err().contains("twice"));
        assert!(arrive(&mut ordered, 3).unwrap_err().contains("never sent"));
        let changed = ordered.on_arrival(START, 1, &content(2, 3)).unwrap_err();
        assert!(changed.contains("changed"));
        let cut = ordered.on_arrival(START, 1, &content(1, 2)).unwrap_err();
        assert!(cut.contains("changed"));
        assert!(!ordered.is_complete());
    }

    #[test]
    fn unordered_messages_may_overtake_but_not_repeat() {
        let mut records = records(true);
        arrive(&mut records, 2).unwrap();
        arrive(&mut records, 0).unwrap();
        assert!(arrive(&mut records, 2).unwrap_err().contains("twice"));
        arrive(&mut records, 1).unwrap();
        assert!(records.is_complete());
    }
}
