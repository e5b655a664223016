//! Our ASCONF requests: the outstanding one, and changes that wait for the next (RFC 5061 §5.1).

use std::net::IpAddr;

use crate::event::AddressChange;
use crate::wire::{AsconfAck, AsconfAnswer, AsconfChange, AsconfRequest, PacketWriter};

/// The most changes queued behind an outstanding ASCONF. The smallest packet has room for them.
pub(super) const MAX_WAITING: usize = 12;

/// Our ASCONF requests: the one that waits for an answer, and those still to be sent.
#[derive(Debug)]
pub(super) struct Asking {
    /// The serial number of our next ASCONF.
    pub(super) next_serial: u32,
    next_correlation: u32,
    pub(super) waiting: Vec<AddressChange>,
    pub(super) outstanding: Option<Outstanding>,
    /// Whether the peer answered that it does not know ASCONF, or one of its parameters, although it had
    /// announced support (RFC 5061 §5.1 A9, §5.3 F3a). Every later change fails at once.
    pub(super) is_refused: bool,
}

/// The ASCONF that the peer has not answered; it is repeated as it is.
#[derive(Debug)]
pub(super) struct Outstanding {
    pub(super) serial: u32,
    /// The Address Parameter.
    address: IpAddr,
    pub(super) changes: Vec<(u32, AddressChange)>,
    is_due: bool,
    /// The path of its last transmission.
    pub(super) path: u8,
}

impl Asking {
    pub(super) const fn new(local_initial_tsn: u32) -> Self {
        Self {
            next_serial: local_initial_tsn,
            next_correlation: 1,
            waiting: Vec::new(),
            outstanding: None,
            is_refused: false,
        }
    }

    pub(super) const fn is_busy(&self) -> bool {
        self.outstanding.is_some() || !self.waiting.is_empty()
    }

    /// Whether an ASCONF in progress adds `address`, and the peer will certainly have it afterwards. If the ASCONF
    /// deletes all other addresses, the peer keeps the one that it was sent from, which may be any of ours, because the
    /// ASCONF is retransmitted from the present address of this host.
    pub(super) fn is_adding(&self, address: IpAddr) -> bool {
        let is_it = |(_, change): &(u32, AddressChange)| *change == AddressChange::Added(address);
        let deletes_others = |(_, change): &(u32, AddressChange)| matches!(change, AddressChange::Deleted(others) if others.is_unspecified());
        let outstanding = self.outstanding.as_ref();
        outstanding.is_some_and(|it| {
            it.changes.iter().any(is_it) && !it.changes.iter().any(deletes_others)
        })
    }

    /// Makes an ASCONF of the waiting changes, unless one is in progress.
    fn begin(&mut self, address: IpAddr) {
        if self.outstanding.is_some() || self.waiting.is_empty() {
            return;
        }
        let first = self.next_correlation;
        let changes: Vec<_> = (first..).zip(self.waiting.drain(..)).collect();
        self.next_correlation = first.wrapping_add(changes.len() as u32);
        let serial = self.next_serial;
        self.next_serial = serial.wrapping_add(1);
        self.outstanding = Some(Outstanding { serial, address, changes, is_due: true, path: 0 });
    }

    /// Appends a change to the queue.
    pub(super) fn add(&mut self, change: AddressChange) {
        self.waiting.push(change);
    }

    /// Whether an ASCONF is to be sent now.
    pub(super) fn is_owed(&self) -> bool {
        self.outstanding.as_ref().map_or(!self.waiting.is_empty(), |it| it.is_due)
    }

    /// Writes the ASCONF for `path`. `address` becomes its Address Parameter on the first transmission. Only
    /// one is in progress at a time (C1).
    pub(super) fn write(&mut self, path: u8, address: IpAddr, writer: &mut PacketWriter<'_>) {
        self.begin(address);
        let Some(outstanding) = &mut self.outstanding else { return };
        (outstanding.is_due, outstanding.path) = (false, path);
        let requests = outstanding.changes.iter().map(|&(correlation, change)| AsconfRequest {
            correlation,
            change: match change {
                AddressChange::Added(address) => AsconfChange::Add(address),
                AddressChange::Deleted(address) => AsconfChange::Delete(address),
                AddressChange::Preferred(address) => AsconfChange::SetPrimary(address),
            },
            bytes: &[],
        });
        writer.asconf(outstanding.serial, outstanding.address, requests);
    }

    /// Called when T-4 expired: schedules a retransmission. Returns the path of the last transmission.
    pub(super) fn repeat(&mut self) -> Option<u8> {
        let outstanding = self.outstanding.as_mut()?;
        outstanding.is_due = true;
        Some(outstanding.path)
    }

    /// Called when the peer answered that it does not know ASCONF. Returns the changes that failed by this:
    /// those of the outstanding ASCONF, and the queued ones.
    pub(super) fn refuse_all(&mut self) -> Vec<AddressChange> {
        self.is_refused = true;
        let outstanding = self.outstanding.take();
        let failed = outstanding.into_iter().flat_map(|it| it.changes).map(|(_, change)| change);
        failed.chain(self.waiting.drain(..)).collect()
    }
}

/// The result of each of `changes`: the cause for which it was refused, if any. Those after the first refused
/// one are refused, too, unless reported as performed (RFC 5061 §5.1 A7).
pub(super) fn outcomes(changes: &[(u32, AddressChange)], ack: &AsconfAck<'_>) -> Vec<Option<u16>> {
    let mut last_cause = None;
    let outcome = |&(correlation, _): &(u32, AddressChange)| {
        let answer = ack.answers().flatten().find_map(|answer| match answer {
            AsconfAnswer::Refused { correlation: of, causes } if of == correlation => {
                Some(causes.flatten().next().map_or(Some(0), |cause| Some(cause.code())))
            }
            AsconfAnswer::Done { correlation: of } if of == correlation => Some(None),
            _ => None,
        });
        match answer {
            Some(outcome) => {
                last_cause = outcome.or(last_cause);
                outcome
            }
            None => last_cause,
        }
    };
    changes.iter().map(outcome).collect()
}
