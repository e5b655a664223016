//! Building packets: due chunks, in the order of a packet
//! (RFC 9260 §6.10), then DATA.

mod setup;

use rexmit_core::trace::TraceEvent;
use rexmit_core::{Ecn, Route};

use super::ecn::DataSent;
use super::state::AbortCause;
use super::{Association, Context, Farewell, Ours, State};
use crate::wire::{Cause, CausesWriter, PacketWriter, U16List, kind, param_kind};

impl Association {
    /// Writes the next packet, if one may be sent now, and returns its route and its ECN field.
    pub(crate) fn poll_transmit(
        &mut self,
        cx: &mut Context<'_>,
        packet: &mut Vec<u8>,
    ) -> Option<(Route, Ecn)> {
        let control = |route| (route, Ecn::NotEct);
        let sent = match &self.state {
            State::Closed(_) => self.write_farewell(packet).map(control),
            State::CookieWait(_) => self.write_init(cx, packet).map(control),
            State::CookieEchoed(..) => self.write_cookie_echo(cx, packet).map(control),
            _ => self
                .write_heartbeat_ack(packet)
                .or_else(|| self.write_probe(cx, packet))
                .or_else(|| self.write_address_changes(cx, packet))
                .map(control)
                .or_else(|| self.write_established(cx, packet)),
        }?;
        self.packets.sent += 1;
        self.packets.bytes_sent += packet.len() as u64;
        cx.tracer().emit(|| TraceEvent::Transmitted { bytes: packet.len() as u32 });
        Some(sent)
    }

    /// Whether [`Self::poll_transmit`] would find nothing to send and change nothing. Only an established association with
    /// one path and nothing queued is known to have nothing to send; others have to be polled.
    pub(crate) fn is_certain_to_be_silent(&self) -> bool {
        matches!(self.state, State::Established)
            && self.paths.len() == 1
            && self.asconf.is_none()
            && !self.inbound.is_sack_owed()
            && self.out.queue.is_empty()
            && self.out.recovery.next_due(0).is_none()
            && !self.replies.is_any()
            && !self.out.owes_forward_tsn()
            && self.paths.with_heartbeat_due().is_none()
            && self.paths.with_port_probe_due().is_none()
            && self.paths.sizes.due_probe(&self.out.recovery).is_none()
            && !self.reset.is_owed(&self.out.queue)
    }

    /// Writes the probe of a port that the peer may have, or of a path's MTU: nothing else is in its packet.
    fn write_probe(&mut self, cx: &mut Context<'_>, packet: &mut Vec<u8>) -> Option<Route> {
        let of_port = self.paths.with_port_probe_due().filter(|&path| !self.is_silent(path));
        let of_mtu = || self.paths.sizes.due_probe(&self.out.recovery);
        let of_mtu = if of_port.is_some() { None } else { of_mtu() };
        let of_mtu = of_mtu.filter(|&(path, _)| !self.is_held(path));
        of_port.or(of_mtu.map(|(path, _)| path))?;
        let mut writer = self.begin_packet(packet);
        let (paths, recovery) = (&mut self.paths, &self.out.recovery);
        let route = if let Some((path, size)) = of_mtu {
            paths.sizes.write_probe(cx, recovery, path, size, &mut writer);
            Some(paths.get(path).route)
        } else {
            paths.write_port_probe(cx, recovery, &mut writer)
        };
        self.finish_packet(writer);
        route
    }

    /// Whether not even HEARTBEATs may be sent over `path` now.
    fn is_silent(&self, path: u8) -> bool {
        self.asconf.as_ref().is_some_and(|changes| changes.is_silent(&self.paths, path))
    }

    /// Writes a packet with ASCONF-ACK or ASCONF. They have packets of their own, because they may be sent
    /// over paths on which nothing else may.
    fn write_address_changes(
        &mut self,
        cx: &mut Context<'_>,
        packet: &mut Vec<u8>,
    ) -> Option<Route> {
        let changes = self.asconf.as_ref()?;
        let path = if changes.owes_answers() {
            None
        } else if self.state.may_change_addresses() {
            Some(changes.path_to_ask(&self.paths, &self.out.recovery)?)
        } else {
            return None;
        };
        let mut writer = self.new_packet(packet);
        self.auth.as_ref()?.put(&mut writer);
        let changes = self.asconf.as_mut()?;
        let route = if let Some(path) = path {
            let route = self.paths.get(path).route;
            let t4 = cx.now + self.out.recovery.paths()[path].timer().rto();
            changes.write_asconf(t4, path, route.remote.ip(), &mut writer);
            route
        } else {
            changes.write_answers(&mut writer)?
        };
        self.finish_packet(writer);
        Some(route)
    }

    fn new_packet<'b>(&self, packet: &'b mut Vec<u8>) -> PacketWriter<'b> {
        let header = self.identity.header(self.peer.tag());
        PacketWriter::new(packet, self.config.max_packet_bytes, header)
    }

    /// Begins a packet, with AUTH if the peer wants all chunks to be authenticated.
    fn begin_packet<'b>(&self, packet: &'b mut Vec<u8>) -> PacketWriter<'b> {
        let mut writer = self.new_packet(packet);
        // Not if the peer accepts packets without a checksum, which it may if DTLS protects them; COOKIE ECHO and ASCONF
        // have one even then (RFC 9653 §5.2). So has SHUTDOWN ACK: a peer whose SHUTDOWN COMPLETE was lost has forgotten
        // the association, and with it that it accepts such packets.
        let accepts_zero = self.peer.accepts_zero_checksum() && !self.state.is_shutdown_ack_sent();
        writer.set_checksum(!accepts_zero);
        if let Some(auth) = &self.auth {
            auth.begin(&mut writer);
        }
        writer
    }

    /// Ends a packet: signs it if it begins with AUTH.
    fn finish_packet(&mut self, writer: PacketWriter<'_>) {
        let ours = Ours { config: &self.config, random: &self.identity.random };
        match &mut self.auth {
            Some(auth) => auth.finish(ours, writer),
            None => _ = writer.finish(),
        }
    }

    /// Writes ABORT or SHUTDOWN COMPLETE, in a packet of its own.
    fn write_farewell(&mut self, packet: &mut Vec<u8>) -> Option<Route> {
        let State::Closed(farewell) = &mut self.state else { return None };
        let farewell = farewell.take()?;
        let mut writer = self.begin_packet(packet);
        match *farewell {
            Farewell::ShutdownComplete => {
                writer.shutdown_complete(false);
            }
            Farewell::Abort { t_bit, cause } => {
                writer.abort(t_bit, |causes| push_abort_cause(causes, &cause));
            }
        }
        self.finish_packet(writer);
        Some(self.paths.get(self.paths.control()).route)
    }

    /// Writes HEARTBEAT ACK, to the address that the HEARTBEAT came from.
    fn write_heartbeat_ack(&mut self, packet: &mut Vec<u8>) -> Option<Route> {
        while let Some((route, value)) = self.replies.next_heartbeat_ack() {
            let mut writer = self.begin_packet(packet);
            if writer.plain(kind::HEARTBEAT_ACK, 0, &value) {
                self.finish_packet(writer);
                return Some(route);
            }
        }
        None
    }

    /// Writes one packet: control chunks in their order, then DATA.
    fn write_established(
        &mut self,
        cx: &mut Context<'_>,
        packet: &mut Vec<u8>,
    ) -> Option<(Route, Ecn)> {
        if self.paths.len() > 1 {
            let rng = &mut cx.around.rng;
            self.out.recovery.choose_destination(cx.now, |count| rng.below(count));
        }
        let (control, may_send) = (self.paths.control(), self.state.may_send_data());
        self.out.abandon_next(cx, control);
        let with_data = || self.out.path_with_data(|path| self.is_held(path));
        let data = may_send.then(with_data).flatten();
        let heartbeat = self.paths.with_heartbeat_due();
        let heartbeat = heartbeat.filter(|&path| !self.is_silent(path));
        let path = self.path_of_control(heartbeat).or(data)?;
        let sends_data = data == Some(path)
            || (data.is_some() && !self.is_held(path) && self.out.has_data_for(path));
        let mut writer = self.begin_packet(packet);
        let is_held = self.is_held(path);
        if !is_held {
            self.replies.write(&mut writer);
        }
        if heartbeat.is_some() {
            self.paths.write_heartbeats(cx, &self.out.recovery, path, &mut writer);
        }
        if is_held {
            return self.finish_established(path, Ecn::NotEct, writer);
        }
        if path == self.paths.control() && self.reset.is_owed(&self.out.queue) {
            let rto = self.out.recovery.paths()[control].timer().rto();
            self.reset.write(cx.now, rto, &self.out, &mut writer);
        }
        if self.inbound.is_sack_owed() || (sends_data && self.has_room_for_sack(path, &writer)) {
            if let Some(ecn) = &self.ecn {
                ecn.write_echo(&mut writer);
            }
            self.inbound.write_sack(cx.now, self.paths.has_dac(), &mut writer);
        }
        if path == self.paths.control() {
            let last = self.reset.last_before_reset();
            self.out.write_forward_tsn(cx.now, control, last, &mut writer);
            if self.state.write_shutdown(self.inbound.cumulative() as u32, &mut writer) {
                self.on_chunk_sent(cx);
                self.silence.on_sent(cx.now, cx.around.starved);
            }
        }
        let mut ecn = Ecn::NotEct;
        if sends_data {
            if let Some(ecn) = &mut self.ecn {
                ecn.write_cwr(cx.now, &mut writer);
            }
            let data = self.write_data(cx, path, &mut writer);
            if let (Some(own), Some(data)) = (&mut self.ecn, data) {
                ecn = own.field_of(data);
            }
            self.silence.on_sent(cx.now, cx.around.starved);
        }
        self.finish_established(path, ecn, writer)
    }

    fn finish_established(
        &mut self,
        path: u8,
        ecn: Ecn,
        writer: PacketWriter<'_>,
    ) -> Option<(Route, Ecn)> {
        if writer.is_only_auth() {
            return None;
        }
        self.finish_packet(writer);
        Some((self.paths.get(path).route, ecn))
    }

    /// The path of the next packet, if there are control chunks to send. Replies take the path of their
    /// request (RFC 9260 §6.4) and come first; a HEARTBEAT takes its own path.
    fn path_of_control(&self, heartbeat: Option<u8>) -> Option<u8> {
        if (self.replies.is_bundled() || self.inbound.is_sack_owed())
            && !self.is_held(self.paths.reply)
        {
            return Some(self.paths.reply);
        }
        heartbeat.or_else(|| {
            let is_owed = self.out.owes_forward_tsn()
                || self.state.is_chunk_owed()
                || self.reset.is_owed(&self.out.queue);
            (is_owed && !self.is_held(self.paths.control())).then_some(self.paths.control())
        })
    }

    /// Whether a delayed SACK can be bundled with the next DATA without reducing its size. Not if that DATA is sent
    /// over another path: the destination of SACKs should not vary (RFC 9260 §6.4).
    fn has_room_for_sack(&self, path: u8, writer: &PacketWriter<'_>) -> bool {
        if path != self.paths.reply || !self.inbound.is_unacknowledged() {
            return false;
        }
        let echo = self.ecn.as_ref().map_or(0, |ecn| ecn.echo_len() + ecn.answer_len());
        let acknowledgement = echo + crate::wire::sack_len(0, 0);
        writer.room() >= self.out.chunk_len(self.out.next_len(path)) + acknowledgement
    }

    /// Called when INIT, COOKIE ECHO, SHUTDOWN or SHUTDOWN ACK was sent: starts its timer.
    fn on_chunk_sent(&mut self, cx: &Context<'_>) {
        let rto = self.out.recovery.paths()[self.paths.control()].timer().rto();
        self.state.on_chunk_sent(cx.now, rto);
    }

    /// Fills the packet with DATA. Returns what was written; `None` if nothing was.
    fn write_data(
        &mut self,
        cx: &mut Context<'_>,
        path: u8,
        writer: &mut PacketWriter<'_>,
    ) -> Option<DataSent> {
        let (control_len, first) = (writer.len(), self.out.recovery.outstanding().next_unit());
        let most = self.paths.sizes.packet_bytes(&self.config, path);
        let filled = self.out.write_data(cx, path, most, self.standing(), writer);
        if filled.has_new {
            self.paths.on_used(cx.now, path, &mut self.out.recovery);
        }
        if filled.is_full {
            self.paths.sizes.want_larger(cx.now, path);
        }
        if let Some(tsn) = filled.last_of_large {
            self.paths.sizes.on_large_sent(path, tsn);
        }
        let recovery = &self.out.recovery;
        let new = filled.has_new.then(|| (first, recovery.outstanding().next_unit() - 1));
        let errors = recovery.paths()[path].reach().errors();
        (writer.len() > control_len).then_some(DataSent { path, errors, new })
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
