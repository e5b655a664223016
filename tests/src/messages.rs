//! The fate of every message, as seen by the two applications.
//!
//! Each message of a run has a unique number, which is its payload protocol identifier and determines its content. The
//! records of all messages are then checked against the contract: each is delivered at most once, unaltered and, if it
//! is ordered, in the order of its stream; each accepted one ends with exactly one event; an acknowledged one was
//! delivered, and a failed one that was never sent was not.

use std::collections::BTreeMap;

use bytes::Bytes;
use rexmit_core::Instant;
use rexmit_sctp::{
    AssociationId, FailReason, InboundMessage, MessageId, OutboundMessage, Reliability,
};

/// The identifier of the first message: far from those for which Wireshark has dissectors.
const FIRST_PPID: u32 = 1_000_000_000;

/// An association at one host: the host, its number of restarts, and the id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Side {
    /// The host: 0 or 1.
    pub host: usize,
    /// How often the host was restarted before.
    pub life: u32,
    /// The association.
    pub id: AssociationId,
}

/// The last event of the sending application.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The message was acknowledged.
    Acknowledged,
    /// The message failed; `true` if a part of it was sent.
    Failed(FailReason, bool),
    /// The sender of the message does not exist any more.
    Vanished,
}

/// One message that an endpoint has accepted.
#[derive(Clone, Debug)]
pub struct Sent {
    /// The sender.
    pub from: Side,
    /// The id that its sender uses.
    pub id: MessageId,
    /// The message as passed to the endpoint.
    pub message: OutboundMessage,
    /// When it was accepted.
    pub at: Instant,
    is_sent_told: bool,
    end: Option<End>,
    /// The receiving side, and whether the sender knew by then that the association was established.
    delivered_to: Option<(Side, bool)>,
}

/// The records of all messages of a run.
#[derive(Debug, Default)]
pub struct Messages {
    sent: Vec<Sent>,
    numbers: BTreeMap<(Side, MessageId), usize>,
    /// The last ordered message delivered, for each stream between two associations.
    last_in_order: BTreeMap<(Side, Side, u16), usize>,
    /// The senders whose messages each association has delivered: several, one after the other, if peers restart.
    sources: BTreeMap<Side, Vec<Side>>,
    /// When each host was last restarted.
    restarted: [Option<Instant>; 2],
}

/// The content of message `number`.
#[must_use]
pub fn payload(number: u32, len: usize) -> Bytes {
    let mut state = u64::from(number).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..len).map(|_| next()).collect()
}

impl Messages {
    /// The payload protocol identifier of the next message.
    #[must_use]
    pub fn next_ppid(&self) -> u32 {
        FIRST_PPID + self.sent.len() as u32
    }

    /// Records that `message`, with [`Self::next_ppid`], was accepted.
    pub fn on_accepted(
        &mut self,
        at: Instant,
        from: Side,
        id: MessageId,
        message: OutboundMessage,
    ) {
        let number = self.sent.len();
        assert!(
            self.numbers.insert((from, id), number).is_none(),
            "{from:?} gave the name {id:?} twice"
        );
        let (is_sent_told, end, delivered_to) = (false, None, None);
        self.sent.push(Sent { from, id, message, at, is_sent_told, end, delivered_to });
    }

    fn find(&mut self, from: Side, id: MessageId) -> &mut Sent {
        let number = self.numbers.get(&(from, id));
        let number = *number.unwrap_or_else(|| panic!("{from:?} reports unknown {id:?}"));
        &mut self.sent[number]
    }

    /// Records the event that the message was sent completely.
    pub fn on_sent_told(&mut self, from: Side, id: MessageId) {
        let sent = self.find(from, id);
        assert!(!sent.is_sent_told, "told twice that it was sent: {sent:?}");
        assert_eq!(sent.end, None, "told that it was sent after its end: {sent:?}");
        sent.is_sent_told = true;
    }

    /// Records the event that the message was acknowledged.
    pub fn on_acknowledged(&mut self, from: Side, id: MessageId) {
        let sent = self.find(from, id);
        assert_eq!(sent.end, None, "a second end, acknowledged: {sent:?}");
        sent.end = Some(End::Acknowledged);
    }

    /// Records the event that the message failed, which returns it to the sender.
    pub fn on_failed(
        &mut self,
        from: Side,
        id: MessageId,
        (reason, was_begun): (FailReason, bool),
        message: &OutboundMessage,
    ) {
        let sent = self.find(from, id);
        assert_eq!(sent.end, None, "a second end, failed because {reason:?}: {sent:?}");
        assert_eq!(sent.message.payload, message.payload, "altered when given back");
        assert_eq!(sent.message.ppid, message.ppid, "altered when given back");
        assert_eq!(sent.message.stream, message.stream, "altered when given back");
        assert_eq!(sent.message.unordered, message.unordered, "altered when given back");
        let may_be = match reason {
            FailReason::Expired => matches!(sent.message.reliability, Reliability::Timed(_)),
            FailReason::RetransmissionLimit => {
                matches!(sent.message.reliability, Reliability::MaxRetransmissions(_))
            }
            FailReason::NoSuchStream => !was_begun,
            FailReason::AssociationEnded => true,
            _ => false,
        };
        assert!(may_be, "cannot have failed because {reason:?}: {sent:?}");
        assert!(was_begun || !sent.is_sent_told, "it was sent, but not begun: {sent:?}");
        sent.end = Some(End::Failed(reason, was_begun));
    }

    /// Called when the association of `from` has ended: every message must have ended. Returns how many failed because
    /// of that.
    pub fn on_closed(&mut self, from: Side) -> usize {
        let mut failed = 0;
        for sent in self.sent.iter().filter(|sent| sent.from == from) {
            assert!(sent.end.is_some(), "disappeared when the association closed: {sent:?}");
            failed +=
                usize::from(matches!(sent.end, Some(End::Failed(FailReason::AssociationEnded, _))));
        }
        failed
    }

    /// Every association of the host is lost.
    pub fn on_restart(&mut self, at: Instant, host: usize) {
        self.restarted[host] = Some(at);
        for sent in self.sent.iter_mut().filter(|sent| sent.from.host == host) {
            sent.end.get_or_insert(End::Vanished);
        }
    }

    /// The sender of the message with `ppid`.
    #[must_use]
    pub fn sender(&self, ppid: u32) -> Option<Side> {
        self.sent.get(ppid.wrapping_sub(FIRST_PPID) as usize).map(|sent| sent.from)
    }

    /// Called when the application at `to` has read `message`. `is_established`: whether its sender learned, before it
    /// ended, that the association was established.
    pub fn on_delivered(&mut self, to: Side, message: &InboundMessage, is_established: bool) {
        let number = message.ppid.wrapping_sub(FIRST_PPID) as usize;
        let sent = self.sent.get_mut(number).expect("a message that was never sent");
        // A receiver that began anew knows nothing of what it had; nor does a sender that was still
        // setting up know that it sends to another association.
        let is_first = sent.delivered_to.is_none_or(|(before, was_established)| {
            before.life < to.life || (before != to && !(was_established && is_established))
        });
        assert!(is_first, "delivered twice, now to {to:?}: {sent:?}");
        assert_eq!(sent.from.host, 1 - to.host, "delivered to its own host");
        assert_eq!(sent.message.payload, message.payload, "altered on the way: {:?}", sent.id);
        assert_eq!(sent.message.stream, message.stream, "on another stream: {:?}", sent.id);
        assert_eq!(sent.message.unordered, message.unordered, "ordering changed: {:?}", sent.id);
        if let Some(End::Failed(reason, false)) = sent.end {
            panic!("delivered, though it failed ({reason:?}) before it began: {sent:?}");
        }
        sent.delivered_to = Some((to, is_established));
        let from = sent.from;
        let sources = self.sources.entry(to).or_default();
        if sources.last() != Some(&from) {
            assert!(!sources.contains(&from), "{to:?} delivers of {from:?} again: {sources:?}");
            sources.push(from);
        }
        if !message.unordered {
            let last = self.last_in_order.insert((from, to, message.stream), number);
            assert!(
                last.is_none_or(|last| last < number),
                "out of order: {number} after {last:?} on stream {}, {from:?} to {to:?}",
                message.stream
            );
        }
    }

    /// Messages that have not ended with an event.
    pub fn open(&self) -> impl Iterator<Item = &Sent> {
        self.sent.iter().filter(|sent| sent.end.is_none())
    }

    /// Called at the end of the run: checks that acknowledged messages were delivered.
    pub fn check_at_end(&self) {
        for sent in &self.sent {
            assert!(sent.end.is_some(), "no end: {sent:?}");
            // A receiver that was restarted has forgotten what it had acknowledged.
            let is_receiver_same = self.restarted[1 - sent.from.host].is_none_or(|at| at < sent.at);
            if sent.end == Some(End::Acknowledged) && is_receiver_same {
                assert!(sent.delivered_to.is_some(), "acknowledged but not delivered: {sent:?}");
            }
        }
    }

    /// Messages accepted, delivered and failed.
    #[must_use]
    pub fn counts(&self) -> (usize, usize, usize) {
        let delivered = self.sent.iter().filter(|sent| sent.delivered_to.is_some()).count();
        let failed = |sent: &&Sent| matches!(sent.end, Some(End::Failed(..)));
        (self.sent.len(), delivered, self.sent.iter().filter(failed).count())
    }
}
