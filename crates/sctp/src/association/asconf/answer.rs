//! The peer's addresses: its ASCONFs, and our answers (RFC 5061 §5.2, §5.3).

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

use rexmit_core::Route;
use rexmit_core::serial::unwrap_u32;

use super::super::addresses::is_in_scope;
use super::super::{Association, Context, unwrapped_initial_tsn};
use crate::config::MAX_ADDRESSES;
use crate::event::Event;
use crate::wire::{
    Asconf, AsconfChange, AsconfRequest, COMMON_HEADER_LEN, Cause, Chunks, PacketWriter, kind,
};

/// Answers that are kept to be given again: as many ASCONFs of one packet are answered.
const MAX_ANSWERS: usize = 4;
/// The least that must be left of a packet for an answer, beside AUTH.
const MAX_AUTH_LEN: usize = 40;

/// What the peer asked, and what it was answered.
#[derive(Debug)]
pub(super) struct Answering {
    /// Peer-Sequence-Number, unwrapped: that of the last ASCONF that was performed.
    last: u64,
    /// The answers to those of the last packet: serial number, and value of the chunk.
    answers: VecDeque<(u32, Box<[u8]>)>,
    /// Which of them are to leave, and where to.
    owed: Option<(Vec<u32>, Route)>,
    /// No ASCONF of the packet at hand was performed yet.
    is_first: bool,
}

impl Answering {
    pub(super) const fn new(peer_initial_tsn: u32) -> Self {
        Self {
            last: unwrapped_initial_tsn(peer_initial_tsn) - 1,
            answers: VecDeque::new(),
            owed: None,
            is_first: true,
        }
    }

    pub(super) const fn begin_packet(&mut self) {
        self.is_first = true;
    }

    pub(super) const fn is_owed(&self) -> bool {
        self.owed.is_some()
    }

    fn owe(&mut self, serial: u32, route: Route) {
        let (serials, to) = self.owed.get_or_insert_with(|| (Vec::new(), route));
        if *to != route {
            // The peer waits where it asked last.
            (*to, _) = (route, serials.clear());
        }
        if !serials.contains(&serial) {
            serials.push(serial);
        }
    }
}

/// What became of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    Done,
    LastAddress,
    SourceAddress,
    Shortage,
    Unresolvable,
    Unrecognized,
}

impl Association {
    /// ASCONF, which was found authentic (RFC 5061 §5.2).
    pub(in super::super) fn on_asconf(
        &mut self,
        cx: &mut Context<'_>,
        route: Route,
        asconf: &Asconf<'_>,
    ) {
        if !self.state.may_change_addresses() {
            return;
        }
        let Some(changes) = self.address_changes() else { return };
        let answering = &mut changes.answering;
        let serial = unwrap_u32(answering.last, asconf.serial);
        if serial <= answering.last {
            // E2: what was answered is answered again, if the answer is still there.
            if answering.answers.iter().any(|&(answered, _)| answered == asconf.serial) {
                answering.owe(asconf.serial, route);
            } else {
                cx.around.statistics.asconfs_refused += 1;
            }
            return;
        }
        let is_whole = asconf.requests().all(|request| request.is_ok());
        let is_full = !answering.is_first && answering.answers.len() == MAX_ANSWERS;
        if serial != answering.last + 1 || !is_whole || is_full {
            cx.around.statistics.asconfs_refused += 1; // E5
            return;
        }
        if std::mem::take(&mut answering.is_first) {
            answering.answers.clear();
        }
        let outcomes = self.perform(cx, route, asconf);
        let answer = self.answer(asconf.serial, &outcomes);
        let Some(changes) = &mut self.asconf else { return };
        changes.answering.last = serial;
        changes.answering.answers.push_back((asconf.serial, answer));
        changes.answering.owe(asconf.serial, route);
    }

    /// Performs the requests in their order (V1). After one to add or delete was refused, so is every
    /// other of that ASCONF (F11).
    fn perform<'a>(
        &mut self,
        cx: &mut Context<'_>,
        route: Route,
        asconf: &Asconf<'a>,
    ) -> Vec<(AsconfRequest<'a>, Outcome)> {
        let mut outcomes = Vec::new();
        let mut has_refused = false;
        for request in asconf.requests().flatten() {
            let outcome = match request.change {
                AsconfChange::Add(_) | AsconfChange::Delete(_) if has_refused => Outcome::Shortage,
                AsconfChange::Add(address) => self.add_of_peer(cx, route, address),
                AsconfChange::Delete(address) => self.delete_of_peer(cx, route, address),
                AsconfChange::SetPrimary(address) => self.prefer_of_peer(cx, route, address),
                AsconfChange::Unknown(raw) if raw.unknown_action().report => Outcome::Unrecognized,
                AsconfChange::Unknown(_) => continue,
            };
            let is_address =
                matches!(request.change, AsconfChange::Add(_) | AsconfChange::Delete(_));
            has_refused |= is_address && outcome != Outcome::Done;
            if outcome != Outcome::Done {
                cx.around.statistics.addresses_refused += 1;
            }
            outcomes.push((request, outcome));
            if matches!(request.change, AsconfChange::Unknown(raw) if raw.unknown_action().stop) {
                break;
            }
        }
        outcomes
    }

    fn add_of_peer(&mut self, cx: &mut Context<'_>, route: Route, address: IpAddr) -> Outcome {
        let address = if address.is_unspecified() { route.remote.ip() } else { address };
        if self.has_peer_address(address) {
            cx.around.statistics.addresses_refused += 1;
            return Outcome::Done;
        } else if !is_in_scope(address, self.primary_route().remote.ip()) {
            return Outcome::Unresolvable;
        } else if self.peer_address_count() >= MAX_ADDRESSES {
            return Outcome::Shortage;
        }
        // Its own encapsulation port is known where it is the one that the packet came from.
        let is_source = address == route.remote.ip();
        let port = if is_source { route.remote.port() } else { self.primary_route().remote.port() };
        let remote = SocketAddr::new(address, port);
        let Some(path) = self.begin_path_to(cx, remote) else { return Outcome::Unresolvable };
        cx.event(Event::PeerAddressAdded { path, address: remote });
        Outcome::Done
    }

    fn delete_of_peer(&mut self, cx: &mut Context<'_>, route: Route, address: IpAddr) -> Outcome {
        let source = route.remote.ip();
        if address.is_unspecified() {
            if !self.has_peer_address(source) {
                return Outcome::LastAddress;
            }
            let others: Vec<_> = self.peer_addresses().filter(|&other| other != source).collect();
            others.into_iter().for_each(|other| self.end_paths_to(cx, other));
            return Outcome::Done;
        }
        if !self.has_peer_address(address) {
            return Outcome::Unresolvable;
        } else if self.peer_address_count() == 1 {
            return Outcome::LastAddress;
        } else if address == source {
            return Outcome::SourceAddress;
        }
        self.end_paths_to(cx, address);
        Outcome::Done
    }

    /// The peer says where it likes data best (RFC 5061 §5.4).
    fn prefer_of_peer(&mut self, cx: &mut Context<'_>, route: Route, address: IpAddr) -> Outcome {
        let address = if address.is_unspecified() { route.remote.ip() } else { address };
        if !self.has_peer_address(address) {
            return Outcome::Unresolvable;
        }
        if let Some(changes) = &mut self.asconf {
            changes.wished_primary = Some(address);
        }
        self.grant_wished_primary(cx);
        Outcome::Done
    }

    /// The value of the ASCONF-ACK. Success is told only where something was refused before (A7); what
    /// does not fit one packet is left out.
    fn answer(&self, serial: u32, outcomes: &[(AsconfRequest<'_>, Outcome)]) -> Box<[u8]> {
        let mut scratch = Vec::new();
        let limit = self.config.max_packet_bytes.saturating_sub(MAX_AUTH_LEN);
        let mut writer = PacketWriter::new(&mut scratch, limit, self.header());
        writer.asconf_ack(serial, |answers| {
            let mut has_refused = false;
            for (request, outcome) in outcomes {
                let quoted = request.bytes;
                let address = quoted.get(8..).unwrap_or_default();
                let cause = match outcome {
                    Outcome::Done if has_refused => {
                        answers.done(request.correlation);
                        continue;
                    }
                    Outcome::Done => continue,
                    Outcome::LastAddress => Cause::DeleteLastAddress(quoted),
                    Outcome::SourceAddress => Cause::DeleteSourceAddress(quoted),
                    Outcome::Shortage => Cause::ResourceShortage(quoted),
                    Outcome::Unresolvable => Cause::UnresolvableAddress(address),
                    Outcome::Unrecognized => Cause::UnrecognizedParameters(quoted),
                };
                has_refused = true;
                answers.refused(request.correlation, &cause);
            }
        });
        drop(writer);
        let mut chunks = Chunks::new(&scratch[COMMON_HEADER_LEN..]);
        chunks.next().and_then(Result::ok).map_or_else(Box::default, |chunk| chunk.value.into())
    }

    /// Writes the answers that are owed, to where they were asked for (E6).
    pub(in super::super) fn write_asconf_ack(&mut self, packet: &mut Vec<u8>) -> Option<Route> {
        let answering = &mut self.asconf.as_mut()?.answering;
        let (serials, route) = answering.owed.take()?;
        let mut writer = self.writer(packet);
        self.put_auth(&mut writer);
        let answers = self.asconf.iter().flat_map(|changes| &changes.answering.answers);
        for (serial, value) in answers {
            // What does not fit is asked for again (E7).
            if serials.contains(serial) {
                writer.plain(kind::ASCONF_ACK, 0, value);
            }
        }
        self.finish_packet(writer);
        Some(route)
    }
}
