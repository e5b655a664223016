//! Building packets: what is owed to the peer, in the order in which it stands in a packet
//! (RFC 9260 §6.10), then DATA.

use std::collections::VecDeque;
use std::net::IpAddr;

use rexmit_core::{Instant, Route};

use super::addresses::is_in_scope;
use super::state::AbortCause;
use super::{Association, Context, Farewell, State, push_offer};
use crate::streams::Fragment;
use crate::wire::{
    Cause, CausesWriter, DATA_HEADER_LEN, Data, DataFlags, Header, Init, PacketWriter, Param,
    Params, ParamsWriter, U16List, kind, padded, param_kind,
};

/// HEARTBEATs that wait to be answered; more are not answered.
const MAX_HEARTBEAT_ACKS: usize = 4;
/// Errors that wait to be reported; more are not reported.
const MAX_ERRORS: usize = 4;
/// Bytes of a peer's chunk or heartbeat that are kept to be sent back.
const MAX_ECHOED_BYTES: usize = 1024;

/// Control chunks that have to leave.
#[derive(Debug, Default)]
pub(super) struct Owed {
    /// INIT or COOKIE ECHO, by the state.
    pub(super) setup: bool,
    pub(super) cookie_ack: bool,
    pub(super) sack: bool,
    pub(super) forward_tsn: bool,
    pub(super) shutdown: bool,
    pub(super) shutdown_ack: bool,
    /// Where each goes, and all that was in the HEARTBEAT.
    heartbeat_acks: VecDeque<(Route, Box<[u8]>)>,
    errors: VecDeque<OwedError>,
}

/// A cause to be reported in an ERROR.
#[derive(Debug)]
pub(super) enum OwedError {
    InvalidStream(u16),
    UnrecognizedChunk(Box<[u8]>),
    CookieReceivedWhileShuttingDown,
    UnsupportedHmac(u16),
}

impl Owed {
    pub(super) fn error(&mut self, error: OwedError) {
        let is_short = match &error {
            OwedError::UnrecognizedChunk(bytes) => bytes.len() <= MAX_ECHOED_BYTES,
            _ => true,
        };
        if is_short && self.errors.len() < MAX_ERRORS {
            self.errors.push_back(error);
        }
    }

    pub(super) fn heartbeat_ack(&mut self, route: Route, value: &[u8]) {
        if value.len() <= MAX_ECHOED_BYTES && self.heartbeat_acks.len() < MAX_HEARTBEAT_ACKS {
            self.heartbeat_acks.push_back((route, value.into()));
        }
    }

    /// What was to go from or to an address that was given up goes nowhere.
    pub(super) fn forget_replies_over(&mut self, is_gone: impl Fn(&Route) -> bool) {
        self.heartbeat_acks.retain(|(route, _)| !is_gone(route));
    }

    /// Gives back memory that is not in use.
    pub(super) fn release_memory(&mut self) {
        self.heartbeat_acks.shrink_to_fit();
        self.errors.shrink_to_fit();
    }

    pub(super) fn is_any(&self) -> bool {
        self.setup || self.is_reply() || self.is_control() || !self.heartbeat_acks.is_empty()
    }

    /// Whether something is to go to where a packet came from.
    fn is_reply(&self) -> bool {
        self.cookie_ack || self.sack || !self.errors.is_empty()
    }

    /// Whether something is to go that belongs to no path in particular.
    const fn is_control(&self) -> bool {
        self.forward_tsn || self.shutdown || self.shutdown_ack
    }
}

impl Association {
    /// Writes the next packet, if one may leave now.
    pub(crate) fn poll_transmit(
        &mut self,
        cx: &mut Context<'_>,
        packet: &mut Vec<u8>,
    ) -> Option<Route> {
        let route = match &self.state {
            State::Closed(_) => self.write_farewell(packet),
            State::CookieWait(_) => self.write_init(cx, packet),
            State::CookieEchoed(..) => self.write_cookie_echo(cx, packet),
            _ => self
                .write_heartbeat_ack(packet)
                .or_else(|| self.write_address_changes(cx, packet))
                .or_else(|| self.write_established(cx, packet)),
        }?;
        self.traffic.packets_sent += 1;
        self.traffic.bytes_sent += packet.len() as u64;
        Some(route)
    }

    /// ASCONF-ACK and ASCONF have packets of their own: they may go where nothing else may.
    fn write_address_changes(
        &mut self,
        cx: &mut Context<'_>,
        packet: &mut Vec<u8>,
    ) -> Option<Route> {
        self.asconf.as_ref()?;
        self.write_asconf_ack(packet).or_else(|| self.write_asconf(cx, packet))
    }

    pub(super) fn writer<'b>(&self, packet: &'b mut Vec<u8>) -> PacketWriter<'b> {
        PacketWriter::new(packet, self.config.max_packet_bytes, self.header())
    }

    /// ABORT or SHUTDOWN COMPLETE, which stand alone.
    fn write_farewell(&mut self, packet: &mut Vec<u8>) -> Option<Route> {
        let State::Closed(farewell) = &mut self.state else { return None };
        let farewell = farewell.take()?;
        let mut writer = self.writer(packet);
        self.begin_authentic(&mut writer);
        match farewell {
            Farewell::ShutdownComplete => {
                writer.shutdown_complete(false);
            }
            Farewell::Abort { t_bit, cause } => {
                writer.abort(t_bit, |causes| push_abort_cause(causes, &cause));
            }
        }
        self.finish_packet(writer);
        Some(self.route_of(self.control_path))
    }

    /// INIT stands alone, with a verification tag of zero (RFC 9260 §8.5.1 A).
    fn write_init(&mut self, cx: &mut Context<'_>, packet: &mut Vec<u8>) -> Option<Route> {
        if !self.owed.setup {
            return None;
        }
        let header = Header { verification_tag: 0, ..self.header() };
        let mut writer = PacketWriter::new(packet, self.config.max_packet_bytes, header);
        let preservative = self.cookie_preservative();
        let route = self.route_of(self.control_path);
        writer.init(&self.init_chunk(), |params| {
            push_extensions(params, &self.config);
            push_offer(params, &self.config, &self.identity.random);
            if let Some(life) = preservative {
                let ms = u32::try_from(life.as_millis()).unwrap_or(u32::MAX);
                params.push(&Param::CookiePreservative(ms));
            }
            push_addresses(params, &cx.around.addresses, route.remote.ip());
        });
        writer.finish();
        self.on_setup_sent(cx);
        Some(route)
    }

    fn init_chunk(&self) -> Init<'static> {
        Init {
            initiate_tag: self.identity.local_tag,
            a_rwnd: u32::try_from(self.config.receive_buffer_bytes).unwrap_or(u32::MAX),
            outbound_streams: self.config.outbound_streams,
            inbound_streams: self.config.max_inbound_streams,
            initial_tsn: self.identity.local_initial_tsn,
            params: Params::default(),
        }
    }

    /// COOKIE ECHO stands first; ERROR and DATA may follow it (RFC 9260 §5.1 C).
    fn write_cookie_echo(&mut self, cx: &mut Context<'_>, packet: &mut Vec<u8>) -> Option<Route> {
        if !self.owed.setup {
            return None;
        }
        let mut writer = self.writer(packet);
        self.begin_authentic(&mut writer);
        let State::CookieEchoed(_, echoed) = &self.state else { return None };
        if !writer.cookie_echo(&echoed.cookie) {
            // A cookie beyond our packet size goes out alone, and IP fragments it.
            drop(writer);
            let limit = self.config.max_packet_bytes + padded(echoed.cookie.len());
            writer = PacketWriter::new(packet, limit, self.header());
            self.begin_authentic(&mut writer);
            writer.cookie_echo(&echoed.cookie);
        } else {
            if !echoed.unrecognized.is_empty() {
                writer.error(|causes| {
                    causes.push(&Cause::UnrecognizedParameters(&echoed.unrecognized));
                });
            }
            self.write_data(cx, self.control_path, &mut writer);
        }
        self.finish_packet(writer);
        self.on_setup_sent(cx);
        Some(self.route_of(self.control_path))
    }

    /// HEARTBEAT ACK goes to where the HEARTBEAT came from.
    fn write_heartbeat_ack(&mut self, packet: &mut Vec<u8>) -> Option<Route> {
        while let Some((route, value)) = self.owed.heartbeat_acks.pop_front() {
            let mut writer = self.writer(packet);
            self.begin_authentic(&mut writer);
            if writer.plain(kind::HEARTBEAT_ACK, 0, &value) {
                self.finish_packet(writer);
                return Some(route);
            }
        }
        None
    }

    /// One packet: control chunks in their order, then DATA.
    fn write_established(&mut self, cx: &mut Context<'_>, packet: &mut Vec<u8>) -> Option<Route> {
        if self.paths.len() > 1 {
            let rng = &mut cx.around.rng;
            self.out.recovery.choose_destination(cx.now, |count| rng.below(count));
        }
        self.abandon_next(cx);
        let data = self.path_with_data();
        let heartbeat = self.paths.with_heartbeat_due();
        let heartbeat = heartbeat.filter(|&path| !self.is_silent(path));
        let path = self.path_of_control(heartbeat).or(data)?;
        let sends_data = data == Some(path) || (data.is_some() && self.may_send_data_over(path));
        let mut writer = self.writer(packet);
        self.begin_authentic(&mut writer);
        let is_held = self.is_held(path);
        if !is_held {
            if std::mem::take(&mut self.owed.cookie_ack) {
                writer.cookie_ack();
            }
            self.write_errors(&mut writer);
        }
        if heartbeat.is_some() {
            self.write_heartbeats(cx, path, &mut writer);
        }
        if is_held {
            return self.finish_established(path, writer);
        }
        if path == self.control_path && self.owes_re_config() {
            self.write_re_config(cx, &mut writer);
        }
        if self.owed.sack || (sends_data && self.has_room_for_sack(path, &writer)) {
            self.write_sack(&mut writer);
        }
        if path == self.control_path {
            if self.owed.forward_tsn {
                self.write_forward_tsn(cx.now, &mut writer);
            }
            self.write_shutdown(cx, &mut writer);
        }
        if sends_data {
            self.write_data(cx, path, &mut writer);
        }
        self.finish_established(path, writer)
    }

    fn finish_established(&mut self, path: u8, writer: PacketWriter<'_>) -> Option<Route> {
        if writer.is_only_auth() {
            return None;
        }
        self.finish_packet(writer);
        Some(self.route_of(path))
    }

    /// The path of the next packet, if there is something else than DATA to send. Replies go to where
    /// they were asked for (RFC 9260 §6.4) and come first; a HEARTBEAT is of its own path.
    fn path_of_control(&self, heartbeat: Option<u8>) -> Option<u8> {
        if self.owed.is_reply() && !self.is_held(self.inbound.reply_path) {
            return Some(self.inbound.reply_path);
        }
        heartbeat.or_else(|| {
            let is_owed = self.owed.is_control() || self.owes_re_config();
            (is_owed && !self.is_held(self.control_path)).then_some(self.control_path)
        })
    }

    /// Whether an acknowledgement that is still delayed can travel with the next DATA, without
    /// taking its room. It does not if that goes elsewhere: where SACKs go is not to vary
    /// (RFC 9260 §6.4).
    fn has_room_for_sack(&self, path: u8, writer: &PacketWriter<'_>) -> bool {
        let received = &self.inbound.received;
        let recovery = &self.out.recovery;
        let again = recovery.next_to_resend(path).and_then(|tsn| recovery.unit(tsn));
        let len = match again {
            Some(unit) => unit.payload.payload.len(),
            None => self.out.next_new_len().unwrap_or(0),
        };
        path == self.inbound.reply_path
            && received.is_unacknowledged()
            && writer.room() >= padded(DATA_HEADER_LEN + len) + crate::wire::sack_len(0, 0)
    }

    fn write_errors(&mut self, writer: &mut PacketWriter<'_>) {
        while let Some(error) = self.owed.errors.pop_front() {
            let is_written = writer.error(|causes| {
                let _ = match &error {
                    OwedError::InvalidStream(stream) => {
                        causes.push(&Cause::InvalidStreamIdentifier(*stream))
                    }
                    OwedError::UnrecognizedChunk(bytes) => {
                        causes.push(&Cause::UnrecognizedChunkType(bytes))
                    }
                    OwedError::UnsupportedHmac(id) => causes.push(&Cause::UnsupportedHmac(*id)),
                    OwedError::CookieReceivedWhileShuttingDown => {
                        causes.push(&Cause::CookieReceivedWhileShuttingDown)
                    }
                };
            });
            if !is_written && !writer.is_only_auth() {
                self.owed.errors.push_front(error);
                return;
            }
        }
    }

    fn write_shutdown(&mut self, cx: &Context<'_>, writer: &mut PacketWriter<'_>) {
        let cumulative = self.inbound.received.cumulative() as u32;
        if self.owed.shutdown && writer.shutdown(cumulative) {
            self.owed.shutdown = false;
            self.on_shutdown_sent(cx);
        }
        if self.owed.shutdown_ack && writer.shutdown_ack() {
            self.owed.shutdown_ack = false;
            self.on_shutdown_sent(cx);
        }
    }

    /// The path over which a packet with DATA may leave now: with what is to be sent again, before
    /// anything new (RFC 9260 §6.1 C).
    fn path_with_data(&self) -> Option<u8> {
        let (recovery, count) = (&self.out.recovery, self.paths.len());
        if count == 1 {
            return self.may_send_data_over(0).then_some(0);
        }
        let turn = if recovery.uses_all_paths() { self.turn } else { recovery.data_path() };
        (0..count).map(|n| (turn + n) % count).find(|&path| self.may_send_data_over(path))
    }

    fn may_send_data_over(&self, path: u8) -> bool {
        let recovery = &self.out.recovery;
        self.state.may_send_data()
            && !self.is_held(path)
            && (recovery.next_to_resend(path).is_some()
                || recovery.next_copy(path).is_some()
                || (recovery.takes_new(path) && self.out.next_new_len_over(path).is_some()))
    }

    /// Gives up what would leave next and may not, so that the packet can carry the FORWARD-TSN,
    /// and one without DATA is not taken for one with.
    fn abandon_next(&mut self, cx: &mut Context<'_>) {
        for path in 0..self.paths.len() {
            while let Some(tsn) = self.out.recovery.next_to_resend(path)
                && let Some(reason) = self.reason_to_abandon(cx.now, tsn)
            {
                self.abandon_message(cx, tsn, reason);
            }
        }
    }

    /// Fills the packet with DATA: what was judged lost first, then what the profile takes along,
    /// then new chunks (RFC 9260 §6.1 C, E).
    fn write_data(&mut self, cx: &mut Context<'_>, path: u8, writer: &mut PacketWriter<'_>) {
        self.out.recovery.begin_packet(path);
        if let Some(tsn) = self.out.recovery.next_to_resend(path) {
            self.resend_lost(cx, writer, tsn);
        }
        self.write_spaced_copies(cx.now, path, writer);
        let first_new = self.out.recovery.next_unit();
        if self.out.recovery.takes_new(path) {
            self.write_copies(cx.now, writer);
            self.send_new(cx, path, writer);
        }
        self.out.recovery.end_packet(cx.now, &mut cx.tracer());
        // What is sent again does not measure the path (RFC 9260 §8.3).
        if self.out.recovery.next_unit() > first_new {
            self.paths.get_mut(path).last_used = cx.now;
            self.turn = path + 1;
        }
        self.watch_window(cx);
    }

    fn resend_lost(&mut self, cx: &mut Context<'_>, writer: &mut PacketWriter<'_>, first: u64) {
        let mut next = Some(first);
        let mut last_resent = None;
        while let Some(tsn) = next {
            if let Some(reason) = self.reason_to_abandon(cx.now, tsn) {
                self.abandon_message(cx, tsn, reason);
            } else if self.resend(cx.now, writer, tsn) {
                last_resent = Some(tsn);
            } else {
                break;
            }
            next = self.out.recovery.next_lost_after(tsn);
        }
        // With more to be sent again than fits, there is no room, and no need to look for more.
        while !self.out.recovery.has_lost()
            && let Some(tsn) = last_resent.and_then(|tsn| self.out.recovery.next_to_bundle(tsn))
            && self.reason_to_abandon(cx.now, tsn).is_none()
            && self.resend(cx.now, writer, tsn)
        {
            last_resent = Some(tsn);
        }
    }

    /// Repeats one chunk, if it fits.
    fn resend(&mut self, now: Instant, writer: &mut PacketWriter<'_>, tsn: u64) -> bool {
        let Some(unit) = self.out.recovery.unit(tsn) else { return false };
        if padded(DATA_HEADER_LEN + unit.payload.payload.len()) > writer.room() {
            return false;
        }
        let wants_ack = self.out.recovery.wants_immediate_ack(unit.group());
        match self.out.recovery.resend(now, tsn) {
            Some(fragment) => writer.data(&data_chunk(tsn, fragment, wants_ack)),
            None => false,
        }
    }

    fn send_new(&mut self, cx: &mut Context<'_>, path: u8, writer: &mut PacketWriter<'_>) {
        let wants_sack = matches!(self.state, State::ShutdownPending);
        while let Some(len) = self.out.next_new_len_over(path) {
            if padded(DATA_HEADER_LEN + len) > writer.room() {
                break;
            }
            let wants_ack = self.out.recovery.wants_immediate_ack(self.out.next_group());
            let Some(tsn) = self.out.cut_next(cx.now, wants_sack) else { break };
            if let Some(unit) = self.out.recovery.unit(tsn) {
                writer.data(&data_chunk(tsn, &unit.payload, wants_ack));
            }
            self.on_first_sent(cx, tsn);
        }
    }
}

pub(super) fn data_chunk(tsn: u64, fragment: &Fragment, wants_ack: bool) -> Data<'_> {
    Data {
        flags: DataFlags {
            immediate: fragment.immediate || wants_ack,
            unordered: fragment.unordered,
            beginning: fragment.beginning,
            ending: fragment.ending,
        },
        tsn: tsn as u32,
        stream: fragment.stream,
        ssn: fragment.ssn,
        ppid: fragment.ppid,
        payload: &fragment.payload,
    }
}

fn push_abort_cause(causes: &mut CausesWriter<'_, '_>, cause: &AbortCause) {
    let state_cookie = [param_kind::STATE_COOKIE];
    let _ = match cause {
        AbortCause::User(reason) => {
            causes.push(&Cause::UserInitiatedAbort(&reason[..reason.len().min(400)]))
        }
        AbortCause::Violation(what) => causes.push(&Cause::ProtocolViolation(what.as_bytes())),
        AbortCause::NoUserData(tsn) => causes.push(&Cause::NoUserData { tsn: *tsn }),
        AbortCause::MissingStateCookie => {
            causes.push(&Cause::MissingMandatoryParameter(U16List::from(state_cookie.as_slice())))
        }
        AbortCause::InvalidMandatoryParameter => causes.push(&Cause::InvalidMandatoryParameter),
        AbortCause::IllegalAsconfAck => causes.push(&Cause::IllegalAsconfAck),
        AbortCause::UnresolvableAddress(param) => causes.push(&Cause::UnresolvableAddress(param)),
    };
}

/// Announces the extensions that are switched on (RFC 5061 §4.2.7, RFC 3758 §3.1).
pub(crate) fn push_extensions(
    params: &mut ParamsWriter<'_, '_>,
    config: &crate::config::AssociationConfig,
) {
    if config.partial_reliability {
        params.push(&Param::ForwardTsnSupported);
    }
    let mut kinds = Vec::with_capacity(5);
    kinds.extend(config.stream_reset.then_some(kind::RE_CONFIG));
    kinds.extend(config.partial_reliability.then_some(kind::FORWARD_TSN));
    kinds.extend(config.offers_authentication().then_some(kind::AUTH));
    if config.dynamic_addresses {
        kinds.extend([kind::ASCONF, kind::ASCONF_ACK]);
    }
    if !kinds.is_empty() {
        params.push(&Param::SupportedExtensions(&kinds));
    }
}

/// Tells a peer that is at `peer` our addresses, those that mean the same to it.
pub(crate) fn push_addresses(params: &mut ParamsWriter<'_, '_>, own: &[IpAddr], peer: IpAddr) {
    for &address in own.iter().filter(|&&address| is_in_scope(address, peer)) {
        params.push(&Param::from(address));
    }
}
