//! The messages of a plan in the order in which they are passed to the transport.

use crate::{Fault, FaultKind, Plan};

/// One message to be passed to the transport.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The stream to send on.
    pub stream: u16,
    /// Whether to send it unordered.
    pub is_unordered: bool,
    /// The bytes of the message.
    pub payload: Vec<u8>,
}

/// Yields the messages of a plan by number, with at most one deliberate fault.
#[derive(Debug)]
pub struct Sender {
    plan: Plan,
    fault: Option<Fault>,
    numbers: std::vec::IntoIter<u32>,
    streams: u16,
}

impl Sender {
    /// A sender of all messages of `plan`.
    #[must_use]
    pub fn new(plan: Plan, fault: Option<Fault>) -> Self {
        let mut numbers: Vec<u32> = (0..plan.len()).collect();
        if let Some(fault) = fault.filter(|fault| fault.number < plan.len()) {
            reorder(&mut numbers, &plan, fault);
        }
        let streams = (0..plan.len()).map(|n| plan.message(n).stream + 1).max().unwrap_or(1);
        Self { plan, fault, numbers: numbers.into_iter(), streams }
    }

    /// The number of messages that are not sent yet.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.numbers.len()
    }
}

fn reorder(numbers: &mut Vec<u32>, plan: &Plan, fault: Fault) {
    let place = fault.number as usize;
    match fault.kind {
        FaultKind::Lose => drop(numbers.remove(place)),
        FaultKind::Duplicate => numbers.insert(place, fault.number),
        FaultKind::Swap => {
            let ordered: Vec<u32> = (fault.number..plan.len())
                .filter(|&n| plan.message(n).sequence.is_some())
                .collect();
            let stream = |n: u32| plan.message(n).stream;
            let pair = ordered.first().and_then(|&first| {
                let next = ordered[1..].iter().find(|&&n| stream(n) == stream(first))?;
                Some((first as usize, *next as usize))
            });
            if let Some((first, next)) = pair {
                numbers.swap(first, next);
            }
        }
        FaultKind::Corrupt | FaultKind::Misplace => {}
    }
}

impl Iterator for Sender {
    type Item = Outgoing;

    fn next(&mut self) -> Option<Outgoing> {
        let number = self.numbers.next()?;
        let message = self.plan.message(number);
        let mut payload = Vec::with_capacity(message.size.next_multiple_of(8).max(16));
        self.plan.write_payload(number, &mut payload);
        let mut stream = message.stream;
        match self.fault {
            Some(Fault { kind: FaultKind::Corrupt, number: n }) if n == number => {
                // The high bits, so that a message of one byte rarely becomes another one.
                *payload.last_mut()? ^= 0xe0;
            }
            Some(Fault { kind: FaultKind::Misplace, number: n }) if n == number => {
                stream = (stream + 1) % self.streams;
            }
            _ => {}
        }
        Some(Outgoing { stream, is_unordered: message.sequence.is_none(), payload })
    }
}
