//! The peer's addresses: its ASCONFs, and our answers (RFC 5061 §5.2, §5.3).

use std::net::{IpAddr, SocketAddr};

use rexmit_core::Route;
use rexmit_core::serial::unwrap_u32;

use super::answering::MAX_ANSWERS;
use super::{AddressChanges, Addressing};
use crate::association::addresses::is_in_scope;
use crate::association::context::Context;
use crate::config::MAX_ADDRESSES;
use crate::event::Event;
use crate::wire::{
    Asconf, AsconfChange, AsconfRequest, COMMON_HEADER_LEN, Cause, Chunks, Header, PacketWriter,
};

/// The bytes of a packet reserved for AUTH when an answer is sized.
const MAX_AUTH_LEN: usize = 40;

/// The result of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    Done,
    LastAddress,
    SourceAddress,
    Shortage,
    Unresolvable,
    Unrecognized,
}

impl AddressChanges {
    /// Processes an authenticated ASCONF (RFC 5061 §5.2).
    pub(in crate::association) fn on_asconf(
        &mut self,
        cx: &mut Context<'_>,
        addressing: &mut Addressing<'_>,
        route: Route,
        asconf: &Asconf<'_>,
    ) {
        let answering = &mut self.answering;
        let serial = unwrap_u32(answering.last, asconf.serial);
        if serial <= answering.last {
            // E2: a retransmitted request gets the same answer, if that is still stored.
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
        let outcomes = self.perform(cx, addressing, route, asconf);
        let answer = answer(asconf.serial, &outcomes, addressing.config.max_packet_bytes);
        self.answering.last = serial;
        self.answering.answers.push_back((asconf.serial, answer));
        self.answering.owe(asconf.serial, route);
    }

    /// Performs the requests in their order (V1). After a refused request to add or delete an address, all further ones
    /// in the same ASCONF are refused, too (F11).
    fn perform<'a>(
        &mut self,
        cx: &mut Context<'_>,
        addressing: &mut Addressing<'_>,
        route: Route,
        asconf: &Asconf<'a>,
    ) -> Vec<(AsconfRequest<'a>, Outcome)> {
        let mut outcomes = Vec::new();
        let mut has_refused = false;
        for request in asconf.requests().flatten() {
            let outcome = match request.change {
                AsconfChange::Add(_) | AsconfChange::Delete(_) if has_refused => Outcome::Shortage,
                AsconfChange::Add(address) => self.add_of_peer(cx, addressing, route, address),
                AsconfChange::Delete(address) => {
                    self.delete_of_peer(cx, addressing, route, address)
                }
                AsconfChange::SetPrimary(address) => {
                    self.prefer_of_peer(cx, addressing, route, address)
                }
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

    fn add_of_peer(
        &mut self,
        cx: &mut Context<'_>,
        addressing: &mut Addressing<'_>,
        route: Route,
        address: IpAddr,
    ) -> Outcome {
        let address = if address.is_unspecified() { route.remote.ip() } else { address };
        if addressing.paths.has_remote(address) {
            cx.around.statistics.addresses_refused += 1;
            return Outcome::Done;
        } else if !is_in_scope(address, addressing.primary_route().remote.ip()) {
            return Outcome::Unresolvable;
        } else if addressing.paths.address_count() >= MAX_ADDRESSES {
            return Outcome::Shortage;
        }
        // The encapsulation port of the address is known only if the packet came from it; otherwise that of the primary
        // path is used.
        let is_source = address == route.remote.ip();
        let port =
            if is_source { route.remote.port() } else { addressing.primary_route().remote.port() };
        let remote = SocketAddr::new(address, port);
        let Some(path) = self.begin_path_to(cx, addressing, remote) else {
            return Outcome::Unresolvable;
        };
        cx.event(Event::PeerAddressAdded { path, address: remote });
        Outcome::Done
    }

    fn delete_of_peer(
        &mut self,
        cx: &mut Context<'_>,
        addressing: &mut Addressing<'_>,
        route: Route,
        address: IpAddr,
    ) -> Outcome {
        let source = route.remote.ip();
        if address.is_unspecified() {
            if !addressing.paths.has_remote(source) {
                return Outcome::LastAddress;
            }
            let others: Vec<_> =
                addressing.paths.remotes().filter(|&other| other != source).collect();
            others.into_iter().for_each(|other| self.end_paths_to(cx, addressing, other));
            return Outcome::Done;
        }
        if !addressing.paths.has_remote(address) {
            return Outcome::Unresolvable;
        } else if addressing.paths.address_count() == 1 {
            return Outcome::LastAddress;
        } else if address == source {
            return Outcome::SourceAddress;
        }
        self.end_paths_to(cx, addressing, address);
        Outcome::Done
    }

    /// Processes the peer's request to send data to one of its addresses while that works (RFC 5061 §5.4).
    fn prefer_of_peer(
        &mut self,
        cx: &mut Context<'_>,
        addressing: &mut Addressing<'_>,
        route: Route,
        address: IpAddr,
    ) -> Outcome {
        let address = if address.is_unspecified() { route.remote.ip() } else { address };
        if !addressing.paths.has_remote(address) {
            return Outcome::Unresolvable;
        }
        self.requested_primary = Some(address);
        self.grant_requested_primary(cx, addressing);
        Outcome::Done
    }
}

/// The value of the ASCONF-ACK. Success is reported only after a refusal (A7); answers that do not fit one
/// packet are left out.
fn answer(
    serial: u32,
    outcomes: &[(AsconfRequest<'_>, Outcome)],
    max_packet_bytes: usize,
) -> Box<[u8]> {
    let mut scratch = Vec::new();
    let limit = max_packet_bytes.saturating_sub(MAX_AUTH_LEN);
    // The header is a dummy: only the chunk is kept.
    let header = Header { source_port: 0, destination_port: 0, verification_tag: 0 };
    let mut writer = PacketWriter::new(&mut scratch, limit, header);
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
