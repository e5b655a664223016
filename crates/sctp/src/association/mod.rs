//! One association: its state and the table of what each chunk does. The procedures of RFC 9260
//! have a file each.

mod address_changes;
mod addresses;
mod asconf;
mod auth;
mod context;
mod ecn;
mod ending;
mod handshake;
mod identity;
mod inbound;
mod init;
mod outbound;
mod paths;
mod peer;
mod received;
mod replies;
mod reset;
mod round_trips;
mod setup;
mod shutdown;
mod silence;
mod state;
mod statistics;
mod timers;
mod transmit;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use rexmit_core::trace::TraceEvent;
use rexmit_core::{Ecn, Instant, Route};
use rexmit_recovery::{AckError, AckOutcome, PathEvent, PathState, RecoveryConfig, Share, T3Event};

pub(crate) use addresses::routes_to;
pub(crate) use asconf::{OwnAddress, begins_with};
pub(crate) use auth::{Auth, AuthOffer, MAX_VECTOR_BYTES, Ours, RANDOM_LEN, push_offer};
pub use auth::{MAX_SHARED_KEYS, SharedKey};
pub(crate) use context::{Context, Surroundings};
pub(crate) use identity::Identity;
pub(crate) use init::{init_chunk, push_addresses, push_extensions};
pub(crate) use peer::{Extras, InitError, PeerParameters, read_init};
pub(crate) use round_trips::RoundTrips;
pub(crate) use state::State;

use asconf::AddressChanges;
use auth::{AuthError, must_be_authentic};
use ecn::CongestionNotification;
use inbound::{DataError, Forwarding, Inbound, UserData};
use outbound::{Outbound, Standing};
use paths::{PathEntry, Paths};
use peer::Peer;
use replies::{Replies, ReportedError};
use reset::{Halves, StreamReset, max_streams};
use silence::Silence;
use state::{AbortCause, Farewell};
use timers::{Deadline, Timer, first_due};

use crate::config::AssociationConfig;
use crate::error::{KeyError, PrimaryError, ResetError, SendError};
use crate::event::CloseReason;
use crate::message::{InboundMessage, MessageId, OutboundMessage};
use crate::wire::{Chunk, ChunkError, Packet, RawChunk, ReConfig, kind};

/// The state of one association (the TCB).
#[derive(Debug)]
pub(crate) struct Association {
    config: Arc<AssociationConfig>,
    identity: Identity,
    peer: Peer,
    state: State,
    paths: Paths,
    silence: Silence,
    replies: Replies,
    out: Outbound,
    /// The receiving side, whose room the endpoint limits.
    pub(crate) inbound: Inbound,
    reset: StreamReset,
    /// Authentication; `None` unless both sides support RFC 4895.
    auth: Option<Box<Auth>>,
    /// The state of address changes (RFC 5061); `None` before the first one.
    asconf: Option<Box<AddressChanges>>,
    /// ECN; `None` unless both sides use it.
    ecn: Option<Box<CongestionNotification>>,
    packets: PacketCounters,
}

/// The packets of an association.
#[derive(Clone, Copy, Debug, Default)]
struct PacketCounters {
    sent: u64,
    bytes_sent: u64,
    received: u64,
    bytes_received: u64,
}

/// Properties of a received packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Incoming {
    pub(crate) route: Route,
    /// Whether the packet has the peer's own tag, as only ABORT and SHUTDOWN COMPLETE with the T bit may (RFC
    /// 9260 §8.5.1).
    pub(crate) is_reflected: bool,
    /// The length of the packet in bytes.
    pub(crate) bytes: usize,
    /// The ECN field of its IP header.
    pub(crate) ecn: Ecn,
}

/// Whether the following chunks of the packet are processed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Next {
    Continue,
    Stop,
}

impl Association {
    fn new(
        config: Arc<AssociationConfig>,
        recovery: Arc<RecoveryConfig>,
        identity: Identity,
        paths: Paths,
        state: State,
    ) -> Self {
        let mut out = Outbound::new(Arc::clone(&config), recovery, identity.local_initial_tsn);
        for path in 1..paths.len() {
            // Confirmed, because the application has named it (RFC 9260 §5.4 rule 1).
            out.recovery.open_path(None, config.pmdcs());
            out.recovery.on_path_event(path, PathEvent::Probed);
        }
        Self {
            peer: Peer::UNKNOWN,
            state,
            paths,
            silence: Silence::default(),
            replies: Replies::default(),
            out,
            inbound: Inbound::new(Arc::clone(&config)),
            reset: StreamReset::new(identity.local_initial_tsn),
            auth: None,
            asconf: None,
            ecn: None,
            packets: PacketCounters::default(),
            config,
            identity,
        }
    }

    pub(crate) const fn config(&self) -> &Arc<AssociationConfig> {
        &self.config
    }

    pub(crate) fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The tag and the other parameters of the peer.
    pub(crate) const fn peer(&self) -> &Peer {
        &self.peer
    }

    pub(crate) const fn state(&self) -> &State {
        &self.state
    }

    pub(crate) fn primary_route(&self) -> Route {
        self.paths.get(self.out.recovery.paths().primary()).route
    }

    /// The transport addresses of the peer that are confirmed, or that the application named.
    pub(crate) fn confirmed_transports(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        let is_confirmed =
            |path: u8| self.out.recovery.paths()[path].reach().state() != PathState::Unconfirmed;
        self.paths
            .live()
            .filter(move |&(path, _)| is_confirmed(path))
            .map(|(_, entry)| entry.route.remote)
    }

    /// The peer's transport addresses, confirmed or not.
    pub(crate) fn all_transports(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        self.paths.live().map(|(_, path)| path.route.remote)
    }

    /// The peer's transport addresses no longer used, which the endpoint does not know yet.
    pub(crate) fn take_departed(&mut self) -> Vec<SocketAddr> {
        self.paths.transports.take_departed()
    }

    /// A number that changes whenever [`Self::confirmed_transports`] may have changed.
    pub(crate) const fn transports_version(&self) -> u32 {
        self.paths.transports.version()
    }

    /// The peer's address on each path.
    pub(crate) fn peer_addresses(&self) -> impl Iterator<Item = IpAddr> + '_ {
        self.paths.remotes()
    }

    /// Whether the association has ended, with nothing left to read or to send.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.state, State::Closed(None)) && !self.inbound.has_message()
    }

    /// Whether nothing is outstanding, queued, or owed to the peer.
    pub(crate) fn is_idle(&self) -> bool {
        let is_changing = self.asconf.as_ref().is_some_and(|changes| changes.is_busy());
        let owes_nothing = || {
            !self.replies.is_any()
                && !self.state.is_chunk_owed()
                && !self.inbound.is_sack_owed()
                && !self.inbound.sack_timer().is_armed()
                && !self.out.owes_forward_tsn()
        };
        !is_changing && self.out.is_empty() && (self.state.is_closed() || owes_nothing())
    }

    /// Processes a packet whose tag was verified.
    pub(crate) fn on_packet(
        &mut self,
        cx: &mut Context<'_>,
        incoming: Incoming,
        packet: &Packet<'_>,
    ) {
        self.packets.received += 1;
        self.packets.bytes_received += incoming.bytes as u64;
        cx.tracer().emit(|| TraceEvent::Arrived { bytes: incoming.bytes as u32 });
        let route = incoming.route;
        let path = self.paths.on_packet(route);
        if path.is_none() && !self.may_be_from_elsewhere(packet) {
            return;
        }
        let is_confirmed =
            |path: &u8| self.out.recovery.paths()[*path].reach().state() != PathState::Unconfirmed;
        let data_path = self.out.recovery.paths().data_path();
        self.paths.reply = path.filter(is_confirmed).unwrap_or(data_path);
        if let Some(changes) = &mut self.asconf {
            changes.begin_packet();
        }
        self.silence.end();
        self.on_packet_while_shutdown_sent(cx, packet);
        self.out.begin_opportunity();
        self.inbound.begin_packet();
        self.replies.begin_packet();
        if let Some(ecn) = &mut self.ecn {
            ecn.begin_packet(incoming.ecn == Ecn::Ce);
        }
        let mut is_authentic = false;
        let mut chunks = packet.chunks();
        // A chunk that is cut short is dropped, and nothing behind it can be found.
        while let Some(Ok(raw)) = chunks.next() {
            let next = if raw.kind == kind::AUTH && !is_authentic {
                is_authentic = true;
                self.on_auth(cx, &raw, chunks.rest())
            } else if !is_authentic
                && must_be_authentic(&self.config, self.peer.changes_addresses(), raw.kind)
            {
                // With an unauthenticated ASCONF, the rest of its packet is dropped, too (RFC 5061 §5.2 D5).
                cx.around.statistics.unauthenticated += 1;
                if raw.kind == kind::ASCONF { Next::Stop } else { Next::Continue }
            } else {
                self.on_chunk(cx, incoming, &raw)
            };
            if next == Next::Stop || self.state.is_closed() {
                break;
            }
        }
        self.end_packet(cx, incoming.bytes);
    }

    /// Dispatches a chunk to its procedure.
    fn on_chunk(
        &mut self,
        cx: &mut Context<'_>,
        Incoming { route, is_reflected, .. }: Incoming,
        raw: &RawChunk<'_>,
    ) -> Next {
        let chunk = match raw.decode() {
            Ok(chunk) => chunk,
            Err(error) => return self.on_malformed_chunk(cx, error),
        };
        match chunk {
            Chunk::Abort { t_bit, causes } if t_bit == is_reflected => {
                let changes = self.asconf.as_ref();
                if !changes.is_some_and(|changes| changes.is_abort_ignored(route)) {
                    self.on_abort(cx, is_reflected, causes);
                }
            }
            Chunk::ShutdownComplete { t_bit } if t_bit == is_reflected => {
                if self.state.is_shutdown_ack_sent() {
                    self.close(cx, None, CloseReason::Shutdown);
                }
            }
            Chunk::Abort { .. } | Chunk::ShutdownComplete { .. } => return Next::Stop,
            _ if is_reflected => return Next::Stop,
            Chunk::Data(data) if self.state.may_receive_data() => {
                self.on_data(cx, data.stream, &data.into());
            }
            Chunk::IData(data) if self.state.may_receive_data() => {
                self.on_data(cx, data.stream, &data.into());
            }
            Chunk::Data(_) | Chunk::IData(_) => {}
            Chunk::Sack(sack) if self.state.may_process_sack() => {
                // Before the SACK removes chunks: a retransmitted chunk does not show the fate of a large packet.
                self.paths.sizes.review(cx, &mut self.out.recovery);
                let acknowledged = self.out.on_sack(cx, &sack);
                self.on_acknowledged(cx, acknowledged, true);
            }
            Chunk::Sack(_) => {}
            Chunk::InitAck(init_ack) => {
                self.on_init_ack(cx, route.remote.ip(), &init_ack);
                // It stands alone (RFC 9260 §6.10).
                return Next::Stop;
            }
            Chunk::CookieAck => self.on_cookie_ack(cx),
            Chunk::Heartbeat(_) => {
                if self.state.may_answer_heartbeat()
                    && !self.asconf.as_ref().is_some_and(|changes| changes.has_left(route))
                {
                    self.replies.owe_heartbeat_ack(route, raw.value);
                }
            }
            Chunk::HeartbeatAck(info) => {
                if self.paths.on_heartbeat_ack(cx, &mut self.out.recovery, route, info)
                    && let Some((changes, mut addressing)) = self.changes()
                {
                    changes.grant_requested_primary(cx, &mut addressing);
                }
            }
            Chunk::Error { causes } => self.on_error(cx, causes),
            Chunk::Shutdown { cumulative_tsn_ack } => self.on_shutdown(cx, cumulative_tsn_ack),
            // During the setup, a SHUTDOWN ACK is for an earlier association, and the endpoint answers it (RFC 9260
            // §8.5.1 E).
            Chunk::ShutdownAck if self.state.is_shutting_down() => {
                self.close(cx, Some(Farewell::ShutdownComplete), CloseReason::Shutdown);
            }
            Chunk::ShutdownAck => {}
            // The endpoint has dealt with these before.
            Chunk::Init(_) | Chunk::CookieEcho(_) => {}
            Chunk::ForwardTsn(_)
            | Chunk::IForwardTsn(_)
            | Chunk::ReConfig(_)
            | Chunk::Ecne { .. }
            | Chunk::Cwr { .. }
            | Chunk::Auth(_)
            | Chunk::Asconf(_)
            | Chunk::AsconfAck(_)
            | Chunk::Pad(_)
            | Chunk::Unknown => return self.on_extension_chunk(cx, route, raw, chunk),
        }
        Next::Continue
    }

    /// Dispatches a chunk of an extension, if both sides support it.
    fn on_extension_chunk(
        &mut self,
        cx: &mut Context<'_>,
        route: Route,
        raw: &RawChunk<'_>,
        chunk: Chunk<'_>,
    ) -> Next {
        match chunk {
            Chunk::ForwardTsn(forward) if self.out.supports_forward_tsn() => {
                self.on_forward_tsn(cx, &Forwarding::Ssns(forward));
            }
            Chunk::IForwardTsn(forward) if self.out.supports_forward_tsn() => {
                self.on_forward_tsn(cx, &Forwarding::Mids(forward));
            }
            Chunk::IForwardTsn(_) if self.state.may_receive_data() => {
                let what = "I-FORWARD-TSN that was not negotiated";
                self.abort(cx, AbortCause::Violation(what));
            }
            Chunk::ReConfig(request) if self.reset.is_supported() => {
                self.on_re_config(cx, &request);
            }
            Chunk::Asconf(asconf) if self.peer.changes_addresses() => {
                if self.state.may_change_addresses() {
                    self.begin_changes();
                    if let Some((changes, mut addressing)) = self.changes() {
                        changes.on_asconf(cx, &mut addressing, route, &asconf);
                    }
                }
            }
            Chunk::AsconfAck(ack) if self.peer.changes_addresses() => {
                if self.state.may_change_addresses()
                    && let Some((changes, mut addressing)) = self.changes()
                    && changes.on_asconf_ack(cx, &mut addressing, route, &ack).is_err()
                {
                    self.abort(cx, AbortCause::IllegalAsconfAck);
                }
            }
            Chunk::Ecne { lowest_tsn } if let Some(ecn) = &mut self.ecn => {
                ecn.on_ecne(cx, &mut self.out.recovery, lowest_tsn);
            }
            Chunk::Cwr { lowest_tsn } if let Some(ecn) = &mut self.ecn => ecn.on_cwr(lowest_tsn),
            // The first AUTH has covered the rest of the packet, this one included.
            Chunk::Auth(_) if self.auth.is_some() => {}
            // PAD is ignored, and counts as unknown chunks do: a packet may have few of them.
            _ => return self.on_unknown_chunk(raw),
        }
        Next::Continue
    }

    fn on_malformed_chunk(&mut self, cx: &mut Context<'_>, error: ChunkError) -> Next {
        let ChunkError::NoUserData { tsn } = error else {
            cx.trace_dropped(malformed(error));
            return Next::Continue;
        };
        if self.state.may_receive_data() {
            self.abort(cx, AbortCause::NoUserData(tsn));
        }
        Next::Stop
    }

    /// Handles a chunk of unknown type according to the two high bits of its type (RFC 9260 §3.2).
    fn on_unknown_chunk(&mut self, raw: &RawChunk<'_>) -> Next {
        if self.replies.pass_unknown() {
            return Next::Stop;
        }
        let action = raw.unknown_action();
        if action.report {
            self.replies.report_unrecognized(raw.bytes);
        }
        if action.stop { Next::Stop } else { Next::Continue }
    }

    /// The state that decides what may be sent.
    const fn standing(&self) -> Standing {
        Standing {
            may_send: self.state.may_send_data(),
            is_ending: matches!(self.state, State::ShutdownPending),
            control: self.paths.control(),
        }
    }

    /// Makes `path` the primary path, as the application requests: data is sent over it while it works.
    pub(crate) fn set_primary(
        &mut self,
        cx: &mut Context<'_>,
        path: u8,
    ) -> Result<(), PrimaryError> {
        self.paths.choose_primary(cx, &mut self.out.recovery, path)
    }

    /// Accepts a message from the application.
    pub(crate) fn send(
        &mut self,
        cx: &mut Context<'_>,
        message: OutboundMessage,
    ) -> Result<MessageId, SendError> {
        if !self.state.may_accept_messages() {
            return Err(SendError::Closing);
        }
        self.out.send(cx.now, self.standing(), message)
    }

    /// The sending side, whose thin-stream configuration is to be changed.
    pub(crate) const fn outbound(&mut self) -> &mut Outbound {
        &mut self.out
    }

    /// Called when the peer has acknowledged data, which shows which paths work and frees buffer space.
    /// `has_window` if it was a SACK, which also has a window.
    fn on_acknowledged(
        &mut self,
        cx: &mut Context<'_>,
        acknowledged: Result<AckOutcome, AckError>,
        has_window: bool,
    ) {
        self.paths.sizes.review(cx, &mut self.out.recovery);
        let Ok(outcome) = acknowledged else {
            let what = "a TSN was acknowledged that was never sent";
            return self.abort(cx, AbortCause::Violation(what));
        };
        // The peer has processed a FORWARD-TSN, which also shows that it is reachable.
        if outcome.has_advanced && outcome.newly_acked == 0 {
            let (path, is_only) = (self.paths.control(), self.paths.len() == 1);
            self.paths.on_answered(cx, &mut self.out.recovery, path, is_only);
        }
        let mut paths = outcome.paths;
        while paths != 0 {
            let path = paths.trailing_zeros();
            paths &= paths - 1;
            let is_certain = outcome.certain_paths & (1 << path) != 0;
            self.paths.on_answered(cx, &mut self.out.recovery, path as u8, is_certain);
        }
        self.out.after_ack(cx, self.standing(), has_window && !outcome.is_stale);
        let is_ambiguous = outcome.has_acked_retransmitted || outcome.has_passed_abandoned;
        if let Some(ecn) = &mut self.ecn {
            let paths = if is_ambiguous { 0 } else { outcome.certain_paths };
            ecn.on_acknowledged(self.out.recovery.outstanding().cumulative(), paths);
        }
        if has_window && is_ambiguous && !outcome.has_sampled {
            let has_abandoned = outcome.has_passed_abandoned;
            self.paths.ask_for_round_trip(cx.now, has_abandoned, &self.out.recovery);
        }
    }

    /// Handles the timers of loss recovery that are due (RFC 9260 §6.3.3).
    fn on_retransmission_timeouts(&mut self, cx: &mut Context<'_>) {
        cx.around.unanswered.put_off(cx.now, &mut self.out.recovery);
        while !self.state.is_setting_up() && !self.state.is_closed() {
            let Some(expired) = self.out.on_timeout(cx) else { return };
            self.paths.sizes.on_data_timeout(cx, &mut self.out.recovery, expired.path);
            if expired.repeats_forward {
                self.paths.turn_control(&self.out.recovery);
            }
            if expired.is_error && self.on_unanswered(cx, expired.path) {
                return;
            }
        }
    }

    /// Called when a router reports that a packet over `route` did not fit its next link. Returns whether
    /// that can be true.
    pub(crate) fn on_too_big(&mut self, cx: &mut Context<'_>, route: Route, mtu: usize) -> bool {
        let is_from = |ip: IpAddr| {
            let given = route.local.ip();
            ip == given || ip.is_unspecified() || given.is_unspecified()
        };
        let is_it =
            |it: &PathEntry| it.route.remote == route.remote && is_from(it.route.local.ip());
        let path = self.paths.live().find(|(_, entry)| is_it(entry)).map(|(path, _)| path);
        let (sizes, recovery) = (&mut self.paths.sizes, &mut self.out.recovery);
        path.is_some_and(|path| sizes.on_too_big(cx, recovery, path, mtu))
    }

    fn on_data(&mut self, cx: &mut Context<'_>, stream: u16, data: &UserData<'_>) {
        let reset = &self.reset;
        if let Some(ecn) = &mut self.ecn {
            ecn.on_data(data.tsn());
        }
        let taken = self.inbound.on_data(cx, data, |tsn| reset.holds_back(tsn, stream));
        if let Err(error) = taken {
            self.on_bad_data(cx, error);
        }
    }

    fn on_forward_tsn(&mut self, cx: &mut Context<'_>, forward: &Forwarding<'_>) {
        if self.state.may_receive_data()
            && let Err(error) = self.inbound.on_forward_tsn(forward)
        {
            self.on_bad_data(cx, error);
        }
    }

    fn on_bad_data(&mut self, cx: &mut Context<'_>, error: DataError) {
        match error {
            DataError::InvalidStream(stream) => {
                self.replies.report(ReportedError::InvalidStream(stream));
            }
            DataError::Violation(what) => self.abort(cx, AbortCause::Violation(what)),
        }
    }

    /// Called after the DATA chunks of a packet: contradictory ones abort the association; others are
    /// acknowledged and reported to the application.
    fn after_data(&mut self, cx: &mut Context<'_>, bytes: usize) {
        let is_shutdown_sent = matches!(self.state, State::ShutdownSent(_));
        let rtt = self.out.recovery.paths()[self.paths.control()].timer().rtt().srtt();
        let has_dac = self.paths.has_dac();
        let is_marked = self.ecn.as_mut().is_some_and(|ecn| ecn.end_packet());
        let is_urgent = is_shutdown_sent || is_marked;
        match self.inbound.end_packet(cx.now, is_urgent, has_dac, bytes, rtt) {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => return self.on_bad_data(cx, error),
        }
        if let Err(error) = self.reset.perform_deferred(cx, &mut self.inbound) {
            return self.on_bad_data(cx, error);
        }
        if is_shutdown_sent {
            // Each packet with DATA is answered with SHUTDOWN (RFC 9260 §9.2).
            self.repeat_shutdown();
        }
        self.inbound.emit_readable(cx);
    }

    /// The next message for the application.
    pub(crate) fn receive(&mut self) -> Option<InboundMessage> {
        self.inbound.receive(self.state.may_receive_data())
    }

    /// Resets outgoing streams, as the application requests; an empty list means all.
    pub(crate) fn reset_streams(&mut self, streams: &[u16]) -> Result<(), ResetError> {
        if !matches!(self.state, State::Established) {
            return Err(ResetError::NotEstablished);
        }
        self.reset.begin(streams, self.config.max_packet_bytes, &mut self.out)
    }

    fn on_re_config(&mut self, cx: &mut Context<'_>, request: &ReConfig<'_>) {
        if self.state.is_setting_up() {
            return;
        }
        let is_established = matches!(self.state, State::Established);
        let rto = self.out.recovery.paths()[self.paths.control()].timer().rto();
        let mut halves = Halves {
            inbound: &mut self.inbound,
            out: &mut self.out,
            rto,
            max_packet_bytes: self.config.max_packet_bytes,
            max_streams: is_established.then(|| max_streams(self.config.max_packet_bytes)),
        };
        if let Err(error) = self.reset.on_re_config(cx, request, &mut halves) {
            self.on_bad_data(cx, error);
        }
    }

    fn on_re_config_timeout(&mut self, cx: &mut Context<'_>) {
        let Some(is_error) = self.reset.on_timeout() else { return };
        let path = self.paths.control();
        if is_error && self.on_unanswered(cx, path) {
            return;
        }
        self.out.recovery.on_t3_event(cx.now, path, T3Event::Unanswered);
        self.paths.set_control(self.out.recovery.paths().alternate_to(path));
    }

    /// Called after all chunks of a packet: acknowledges data, and continues procedures that waited.
    fn end_packet(&mut self, cx: &mut Context<'_>, bytes: usize) {
        if self.state.is_closed() {
            return;
        }
        self.after_data(cx, bytes);
        if let Some(to_reset) = self.inbound.take_streams_to_reset()
            && matches!(self.state, State::Established)
        {
            self.reset.ask(to_reset.into_iter(), self.config.max_packet_bytes);
        }
        self.advance_shutdown(cx);
        // A completed stream reset releases messages, which may meet a closed window.
        self.out.watch_window(cx.now, self.standing());
    }

    /// Frees unused memory of a past burst.
    fn release_memory(&mut self) {
        self.out.release_memory();
        self.inbound.release_memory();
        self.replies.release_memory();
        if let Some(auth) = &mut self.auth {
            auth.release_memory();
        }
    }

    /// Handles every timer that is due.
    pub(crate) fn on_timeout(&mut self, cx: &mut Context<'_>) {
        self.silence.on_timeout(cx.now, cx.around.starved);
        self.out.begin_opportunity();
        while let Some(timer) = first_due(cx.now, &self.timers())
            && !self.state.is_closed()
        {
            match timer {
                Timer::T1 => self.on_t1(cx),
                Timer::T2Shutdown => self.on_t2_shutdown(cx),
                Timer::T5ShutdownGuard => self.abort(
                    cx,
                    AbortCause::Violation("the shutdown took longer than its guard allows"),
                ),
                Timer::Sack => self.inbound.on_sack_timer(cx.now),
                Timer::WindowProbe => self.out.on_window_probe_timer(),
                Timer::ReConfig => self.on_re_config_timeout(cx),
                Timer::DeadPeer => self.end_unreachable(cx),
                Timer::T4 => self.on_t4(cx),
            }
        }
        self.on_retransmission_timeouts(cx);
        self.paths.sizes.review(cx, &mut self.out.recovery);
        let watched = self.paths.on_heartbeat_timers(cx, &mut self.out.recovery);
        if watched.is_idle {
            // An idle association is small, whatever it did before.
            self.release_memory();
        }
        if watched.is_unreachable {
            self.end_unreachable(cx);
        }
        self.out.expire_messages(cx, self.standing());
        self.advance_shutdown(cx);
    }

    /// Reports to the endpoint whether packets are unanswered, and how many ACKs came in time; to the application that
    /// new data takes another path. Called after each call of the association.
    #[inline]
    pub(crate) fn report_unanswered(&mut self, cx: &mut Context<'_>, share: &mut Share) {
        cx.around.unanswered.enter(cx.now, &mut self.out.recovery, share);
        self.paths.follow_data_path(cx, &self.out.recovery);
    }

    /// The timers of the procedures.
    fn timers(&self) -> [(Timer, Deadline); 8] {
        let [t1, t2, t5] = self.state.timers();
        let t4 = self.asconf.as_ref().map_or(Deadline::OFF, |changes| changes.t4());
        [
            t1,
            t2,
            t5,
            (Timer::Sack, self.inbound.sack_timer()),
            (Timer::WindowProbe, self.out.window_probe_timer()),
            (Timer::ReConfig, self.reset.timer()),
            (
                Timer::DeadPeer,
                self.silence.deadline(self.config.failure.dead_after, self.paths.errors.count()),
            ),
            (Timer::T4, t4),
        ]
    }

    /// When the earliest timer is due.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        if self.state.is_closed() {
            return None;
        }
        // T1-cookie stands for T3-rtx while DATA travel with COOKIE ECHO.
        let t3 = if self.state.is_setting_up() { None } else { self.out.recovery.next_timeout() };
        // Asked with every packet: those of the setup and the shutdown only while there is one.
        let timers = match self.state {
            State::Established => {
                let t4 = self.asconf.as_ref().map_or(Deadline::OFF, |changes| changes.t4());
                let [sack, probe] = [self.inbound.sack_timer(), self.out.window_probe_timer()];
                let death = self
                    .silence
                    .deadline(self.config.failure.dead_after, self.paths.errors.count());
                sack.min(probe).min(self.reset.timer()).min(t4).min(death).instant()
            }
            _ => self
                .timers()
                .into_iter()
                .fold(Instant::FAR_FUTURE, |next, (_, deadline)| next.min(deadline.instant())),
        };
        let [expiry, rest] = self.out.next_expiry();
        let or_never = |at: Option<Instant>| at.unwrap_or(Instant::FAR_FUTURE);
        let next = timers.min(self.paths.next_heartbeat());
        let next = next.min(or_never(t3)).min(or_never(expiry)).min(or_never(rest));
        (next < Instant::FAR_FUTURE).then_some(next)
    }

    fn set_state(&mut self, cx: &mut Context<'_>, state: State) {
        self.state = state;
        let name = self.state.name();
        cx.tracer().emit(|| TraceEvent::State { state: name });
    }

    /// Processes AUTH, given all chunks that follow it in its packet (RFC 4895 §6.3).
    fn on_auth(&mut self, cx: &mut Context<'_>, raw: &RawChunk<'_>, rest: &[u8]) -> Next {
        let ours = Ours { config: &self.config, random: &self.identity.random };
        let Some(auth) = &mut self.auth else { return self.on_unknown_chunk(raw) };
        match auth.verify(ours, raw, rest) {
            Ok(()) => return Next::Continue,
            Err(AuthError::UnsupportedHmac(id)) => {
                self.replies.report(ReportedError::UnsupportedHmac(id));
            }
            Err(AuthError::Forged) => {}
        }
        cx.around.statistics.unauthenticated += 1;
        Next::Stop
    }

    /// Verifies the AUTH at the beginning of a packet for the rest of it; used for chunks that the endpoint handles
    /// before the association. Returns whether it is valid.
    pub(crate) fn authenticate(&mut self, auth: &RawChunk<'_>, rest: &[u8]) -> bool {
        let ours = Ours { config: &self.config, random: &self.identity.random };
        self.auth.as_mut().is_some_and(|own| own.verify(ours, auth, rest).is_ok())
    }

    /// The authentication state, for the application to change keys.
    pub(crate) fn auth(&mut self) -> Result<&mut Auth, KeyError> {
        self.auth.as_deref_mut().ok_or(KeyError::NotSupported)
    }
}

const fn malformed(error: ChunkError) -> &'static str {
    match error {
        ChunkError::Framing => "a chunk's length does not fit the packet",
        ChunkError::Length { .. } => "a chunk's length does not fit its layout",
        ChunkError::NoHeartbeatInfo => "a heartbeat without Heartbeat Info",
        ChunkError::NoAddress => "an ASCONF without an address parameter",
        ChunkError::NoUserData { .. } => "DATA without user data",
    }
}
