//! Verifies the received messages: none is lost, duplicated, damaged, or out of order in its stream.

use crate::plan::{NUMBER_BYTES, Plan};

/// The observations of a [`Verifier`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Messages of the plan that arrived intact, each counted once.
    pub received: u32,
    /// Messages of the plan that did not arrive (yet).
    pub lost: u32,
    /// Repeated deliveries of messages.
    pub duplicated: u32,
    /// Ordered messages that arrived after a later one of their stream.
    pub out_of_order: u32,
    /// Deliveries that do not match a message of the plan: altered, truncated, merged, or on the wrong stream.
    pub corrupted: u32,
}

impl Counts {
    /// Whether all messages arrived once, intact and in order.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.lost == 0 && self.duplicated == 0 && self.out_of_order == 0 && self.corrupted == 0
    }
}

/// Checks deliveries against the plan of the other side.
#[derive(Debug)]
pub struct Verifier {
    plan: Plan,
    is_received: Vec<bool>,
    /// For each stream, the index after the highest ordered message delivered.
    next_sequence: Vec<u32>,
    /// Per stream: the messages too short to carry their whole number, by number.
    short: Vec<Vec<u32>>,
    counts: Counts,
    expected: Vec<u8>,
}

impl Verifier {
    /// A verifier of the messages of `plan`, none of which has arrived.
    #[must_use]
    pub fn new(plan: Plan) -> Self {
        let streams = (0..plan.len()).map(|n| usize::from(plan.message(n).stream) + 1).max();
        let mut short = vec![Vec::new(); streams.unwrap_or(0)];
        for number in 0..plan.len() {
            let message = plan.message(number);
            if message.size < NUMBER_BYTES {
                short[usize::from(message.stream)].push(number);
            }
        }
        Self {
            is_received: vec![false; plan.len() as usize],
            next_sequence: vec![0; short.len()],
            short,
            counts: Counts { lost: plan.len(), ..Counts::default() },
            expected: Vec::new(),
            plan,
        }
    }

    /// The observations so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Whether every message of the plan has arrived.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.counts.lost == 0
    }

    /// Checks the next delivery of the transport.
    pub fn on_delivery(&mut self, stream: u16, payload: &[u8]) {
        let Some(number) = self.identify(stream, payload) else {
            self.counts.corrupted += 1;
            return;
        };
        if std::mem::replace(&mut self.is_received[number as usize], true) {
            self.counts.duplicated += 1;
            return;
        }
        self.counts.received += 1;
        self.counts.lost -= 1;
        if let Some(sequence) = self.plan.message(number).sequence {
            let next = &mut self.next_sequence[usize::from(stream)];
            self.counts.out_of_order += u32::from(sequence < *next);
            *next = (*next).max(sequence + 1);
        }
    }

    /// The number of the message with these bytes on this stream, if there is one.
    fn identify(&mut self, stream: u16, payload: &[u8]) -> Option<u32> {
        if let Some(word) = payload.first_chunk::<NUMBER_BYTES>() {
            let number = u32::from_le_bytes(*word) >> 1;
            return self.is_message(number, stream, payload).then_some(number);
        }
        // Several short messages may have the same bytes: the first not yet seen is meant, and if
        // all were seen, it is a duplicate of any of them.
        let mut seen = None;
        for index in 0..self.short.get(usize::from(stream))?.len() {
            let number = self.short[usize::from(stream)][index];
            if self.is_message(number, stream, payload) {
                if !self.is_received[number as usize] {
                    return Some(number);
                }
                seen = Some(number);
            }
        }
        seen
    }

    fn is_message(&mut self, number: u32, stream: u16, payload: &[u8]) -> bool {
        if number >= self.plan.len() || self.plan.message(number).stream != stream {
            return false;
        }
        self.plan.write_payload(number, &mut self.expected);
        self.expected == payload
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Direction, Fault, FaultKind, Sender};

    const COUNT: u32 = 500;

    fn counts_with(fault: Option<Fault>) -> Counts {
        let plan = Plan::new(3, Direction::ServerToClient, COUNT, 8);
        let mut verifier = Verifier::new(plan.clone());
        for outgoing in Sender::new(plan, fault) {
            verifier.on_delivery(outgoing.stream, &outgoing.payload);
        }
        assert_eq!(verifier.is_complete(), verifier.counts().lost == 0);
        verifier.counts()
    }

    #[test]
    fn a_perfect_transport_is_clean() {
        let counts = counts_with(None);
        assert_eq!(counts, Counts { received: COUNT, ..Counts::default() });
        assert!(counts.is_clean());
    }

    #[test]
    fn each_fault_is_seen_as_what_it_is() {
        let clean = Counts { received: COUNT, ..Counts::default() };
        // One of the shortest and one of several fragments, too.
        for number in [0, 10, 33] {
            let counts = |kind| counts_with(Some(Fault { kind, number }));
            assert_eq!(counts(FaultKind::Duplicate), Counts { duplicated: 1, ..clean });
            let lost = Counts { received: COUNT - 1, lost: 1, ..clean };
            assert_eq!(counts(FaultKind::Lose), lost, "{number}");
            assert_eq!(counts(FaultKind::Swap), Counts { out_of_order: 1, ..clean });
            assert_eq!(counts(FaultKind::Corrupt), Counts { corrupted: 1, ..lost });
            assert_eq!(counts(FaultKind::Misplace), Counts { corrupted: 1, ..lost });
        }
    }

    #[test]
    fn arbitrary_bytes_are_corruption() {
        let mut verifier = Verifier::new(Plan::new(3, Direction::ClientToServer, 10, 2));
        for payload in [&[][..], &[0xff], &[0xff; 3], &[0xff; 4], &[0; 70_000]] {
            verifier.on_delivery(0, payload);
            verifier.on_delivery(u16::MAX, payload);
        }
        assert_eq!(verifier.counts(), Counts { lost: 10, corrupted: 10, ..Counts::default() });
    }
}
