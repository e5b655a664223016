//! Building packets: what is owed to the peer, in the order in which it stands in a packet
//! (RFC 9260 §6.10), then DATA.

mod data;
mod owed;
mod setup;

use rexmit_core::Route;

use super::state::AbortCause;
use super::{Association, Context, Farewell, State};
use crate::wire::{
    Cause, CausesWriter, DATA_HEADER_LEN, PacketWriter, U16List, kind, padded, param_kind,
};

pub(super) use data::data_chunk;
pub(super) use owed::{Owed, OwedError};
pub(crate) use setup::{push_addresses, push_extensions};

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
    /// and one without DATA is not taken for one with. Copies of such are dropped.
    fn abandon_next(&mut self, cx: &mut Context<'_>) {
        for path in 0..self.paths.len() {
            while let Some(tsn) = self.out.recovery.next_to_resend(path)
                && let Some(reason) = self.reason_to_abandon(cx.now, tsn)
            {
                self.abandon_message(cx, tsn, reason);
            }
            self.next_spaced_copy(cx.now, path);
        }
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
