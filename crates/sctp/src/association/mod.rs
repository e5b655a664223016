//! One association: its state and the table of what each chunk does. The procedures of RFC 9260
//! have a file each.

mod addresses;
mod asconf;
mod auth;
mod context;
mod data_in;
mod data_out;
mod ending;
mod failure;
mod handshake;
mod heartbeat;
mod partial;
mod paths;
mod peer;
mod received;
mod reset;
mod shutdown;
mod state;
mod statistics;
mod thin;
mod timers;
mod transmit;
mod window_probe;

use std::net::IpAddr;
use std::sync::Arc;

use rexmit_core::trace::TraceEvent;
use rexmit_core::{Instant, Route, TimerTable};
use rexmit_recovery::{PathState, RecoveryConfig};

pub(crate) use addresses::ways_to;
pub(crate) use asconf::begins_with;
pub(crate) use auth::{Auth, AuthOffer, Ours, RANDOM_LEN, may_be_asked_for, push_offer};
pub use auth::{MAX_SHARED_KEYS, SharedKey};
pub(crate) use context::{Context, Surroundings};
pub(crate) use peer::{Extras, InitError, PeerParameters, read_init};
pub(crate) use transmit::{push_addresses, push_extensions};

use asconf::AddressChanges;
use data_in::Inbound;
use data_out::Outbound;
use paths::Paths;
use reset::StreamReset;
use state::{AbortCause, Farewell, State};
use timers::{TIMERS, Timer};
use transmit::Owed;

use crate::config::AssociationConfig;
use crate::statistics::Traffic;
use crate::wire::{Chunk, ChunkError, Header, Packet, RawChunk, kind};

/// The first unwrapped TSN of an association whose initial TSN is `tsn`.
pub(crate) const fn unwrapped_initial_tsn(tsn: u32) -> u64 {
    (1 << 32) + tsn as u64
}

/// What identifies an association on the wire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity {
    pub(crate) local_port: u16,
    pub(crate) remote_port: u16,
    pub(crate) local_tag: u32,
    pub(crate) local_initial_tsn: u32,
    /// Random numbers that stand for the two tags in a cookie (RFC 9260 §5.2.2).
    pub(crate) tie_tags: (u32, u32),
    /// What our INIT or INIT ACK has in RANDOM (RFC 4895 §3.1).
    pub(crate) random: [u8; RANDOM_LEN],
}

/// The state of one association (the TCB).
#[derive(Debug)]
pub(crate) struct Association {
    config: Arc<AssociationConfig>,
    identity: Identity,
    /// The peer's verification tag; 0 while it is not known.
    peer_tag: u32,
    /// The peer's initial TSN, once the tag is known.
    peer_initial_tsn: u32,
    /// When the newest cookie of ours was made that came back for this association.
    newest_cookie: Instant,
    supports_forward_tsn: bool,
    supports_re_config: bool,
    supports_asconf: bool,
    state: State,
    paths: Paths,
    /// The path of what belongs to none in particular: the setup, the shutdown, RE-CONFIG,
    /// FORWARD-TSN. That of new data, or while it does not answer another.
    control_path: u8,
    /// Of paths that are used at once, the one that is looked at first for new data.
    turn: u8,
    timers: TimerTable<TIMERS>,
    owed: Owed,
    out: Outbound,
    inbound: Inbound,
    reset: StreamReset,
    /// If both sides speak RFC 4895.
    auth: Option<Box<Auth>>,
    /// Once an address has changed (RFC 5061).
    asconf: Option<Box<AddressChanges>>,
    /// Consecutive timeouts and unanswered HEARTBEATs (RFC 9260 §8.1).
    error_count: u32,
    traffic: Traffic,
}

/// Whether the chunks that follow in the packet are looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Next {
    Continue,
    Stop,
}

impl Association {
    fn new(
        (config, recovery): (Arc<AssociationConfig>, Arc<RecoveryConfig>),
        identity: Identity,
        paths: Paths,
        state: State,
    ) -> Self {
        let mut out = Outbound::new(&config, recovery, identity.local_initial_tsn);
        for path in 1..paths.len() {
            // The application has named it (RFC 9260 §5.4 rule 1).
            out.recovery.add_path(config.pmdcs());
            out.recovery.on_path_probed(path);
        }
        Self {
            peer_tag: 0,
            peer_initial_tsn: 0,
            newest_cookie: Instant::ZERO,
            supports_forward_tsn: false,
            supports_re_config: false,
            supports_asconf: false,
            state,
            paths,
            control_path: 0,
            turn: 0,
            timers: TimerTable::default(),
            owed: Owed::default(),
            out,
            inbound: Inbound::new(&config),
            reset: StreamReset::new(identity.local_initial_tsn),
            auth: None,
            asconf: None,
            error_count: 0,
            traffic: Traffic::default(),
            config,
            identity,
        }
    }

    pub(crate) fn identity(&self) -> &Identity {
        &self.identity
    }

    pub(crate) const fn peer_tag(&self) -> u32 {
        self.peer_tag
    }

    pub(crate) fn primary_route(&self) -> Route {
        self.route_of(self.out.recovery.primary_path())
    }

    fn route_of(&self, path: u8) -> Route {
        self.paths.get(path).route
    }

    /// The peer's address on each path.
    pub(crate) fn peer_addresses(&self) -> impl Iterator<Item = IpAddr> + '_ {
        self.paths.live().map(|(_, path)| path.route.remote.ip())
    }

    pub(crate) const fn is_setting_up(&self) -> bool {
        self.state.is_setting_up()
    }

    /// Whether an INIT may bring addresses that are not known: only while nothing is known of the
    /// peer (RFC 9260 §5.2.1, §5.2.2).
    pub(crate) const fn may_learn_addresses(&self) -> bool {
        matches!(self.state, State::CookieWait(_))
    }

    pub(crate) const fn is_shutdown_ack_sent(&self) -> bool {
        matches!(self.state, State::ShutdownAckSent)
    }

    /// Whether it has ended and nothing is left to read or to send.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.state, State::Closed(None)) && !self.inbound.has_message()
    }

    pub(crate) const fn is_closed(&self) -> bool {
        self.state.is_closed()
    }

    /// Whether nothing is outstanding, queued, or owed to the peer.
    pub(crate) fn is_idle(&self) -> bool {
        let is_changing = self.asconf.as_ref().is_some_and(|changes| changes.is_busy());
        !is_changing
            && self.out.is_empty()
            && !self.owed.is_any()
            && !self.timers.is_armed(Timer::Sack)
    }

    /// A packet whose tag was found right.
    ///
    /// A `reflected` tag is the peer's own, which only ABORT and SHUTDOWN COMPLETE with the T bit
    /// may bear (RFC 9260 §8.5.1).
    pub(crate) fn on_packet(
        &mut self,
        cx: &mut Context<'_>,
        (route, reflected): (Route, bool),
        packet: &Packet<'_>,
    ) {
        let path = self.paths.on_packet(route);
        if path.is_none() && !self.may_be_from_elsewhere(packet) {
            return;
        }
        let is_confirmed =
            |path: &u8| self.out.recovery.reach(*path).state() != PathState::Unconfirmed;
        let data_path = self.out.recovery.data_path();
        self.inbound.reply_path = path.filter(is_confirmed).unwrap_or(data_path);
        if let Some(changes) = &mut self.asconf {
            changes.begin_packet();
        }
        self.hear_of_peer_while_shutdown_sent(cx);
        self.out.begin_opportunity();
        self.inbound.begin_packet();
        let mut is_authentic = false;
        let mut chunks = packet.chunks();
        // A chunk that is cut short is dropped, and nothing behind it can be found.
        while let Some(Ok(raw)) = chunks.next() {
            let next = if raw.kind == kind::AUTH && !is_authentic {
                is_authentic = true;
                self.on_auth(cx, &raw, chunks.rest())
            } else if !is_authentic && self.must_be_authentic(raw.kind) {
                self.on_unauthenticated(cx, raw.kind)
            } else {
                self.on_chunk(cx, (route, reflected), &raw)
            };
            if next == Next::Stop || self.state.is_closed() {
                break;
            }
        }
        self.end_packet(cx);
    }

    pub(crate) fn count_received(&mut self, bytes: usize) {
        self.traffic.packets_received += 1;
        self.traffic.bytes_received += bytes as u64;
    }

    /// What each chunk does.
    fn on_chunk(
        &mut self,
        cx: &mut Context<'_>,
        (route, reflected): (Route, bool),
        raw: &RawChunk<'_>,
    ) -> Next {
        let chunk = match raw.decode() {
            Ok(chunk) => chunk,
            Err(ChunkError::NoUserData { tsn }) => {
                if self.state.may_receive_data() {
                    self.abort(cx, AbortCause::NoUserData(tsn));
                }
                return Next::Stop;
            }
            Err(error) => {
                cx.tracer().emit(|| TraceEvent::Dropped { reason: malformed(error) });
                return Next::Continue;
            }
        };
        match chunk {
            Chunk::Abort { t_bit, causes } if t_bit == reflected => {
                if !self.is_abort_ignored(route) {
                    self.on_abort(cx, causes);
                }
            }
            Chunk::ShutdownComplete { t_bit } if t_bit == reflected => {
                self.on_shutdown_complete(cx);
            }
            Chunk::Abort { .. } | Chunk::ShutdownComplete { .. } => return Next::Stop,
            _ if reflected => return Next::Stop,
            Chunk::Data(data) => self.on_data(cx, &data),
            Chunk::Sack(sack) => self.on_sack(cx, &sack),
            Chunk::InitAck(init_ack) => {
                self.on_init_ack(cx, route.remote.ip(), &init_ack);
                // It stands alone (RFC 9260 §6.10).
                return Next::Stop;
            }
            Chunk::CookieAck => self.on_cookie_ack(cx),
            Chunk::Heartbeat(_) => self.on_heartbeat(route, raw.value),
            Chunk::HeartbeatAck(info) => self.on_heartbeat_ack(cx, info),
            Chunk::Error { causes } => self.on_error(cx, causes),
            Chunk::Shutdown { cumulative_tsn_ack } => self.on_shutdown(cx, cumulative_tsn_ack),
            Chunk::ShutdownAck => self.on_shutdown_ack(cx),
            Chunk::ForwardTsn(forward) if self.supports_forward_tsn => {
                self.on_forward_tsn(cx, &forward);
            }
            Chunk::ReConfig(request) if self.supports_re_config => self.on_re_config(cx, &request),
            // The endpoint has dealt with these before.
            Chunk::Init(_) | Chunk::CookieEcho(_) => {}
            Chunk::Asconf(asconf) if self.supports_asconf => self.on_asconf(cx, route, &asconf),
            Chunk::AsconfAck(ack) if self.supports_asconf => self.on_asconf_ack(cx, route, &ack),
            // One is enough; it covered this one.
            Chunk::Auth(_) if self.auth.is_some() => {}
            Chunk::Auth(_)
            | Chunk::Asconf(_)
            | Chunk::AsconfAck(_)
            | Chunk::ForwardTsn(_)
            | Chunk::ReConfig(_)
            | Chunk::Unknown => {
                return self.on_unknown_chunk(raw);
            }
        }
        Next::Continue
    }

    /// RFC 9260 §3.2: the two high bits of the type say what to do.
    fn on_unknown_chunk(&mut self, raw: &RawChunk<'_>) -> Next {
        let action = raw.unknown_action();
        if action.report {
            self.owed.error(transmit::OwedError::UnrecognizedChunk(raw.bytes.into()));
        }
        if action.stop { Next::Stop } else { Next::Continue }
    }

    /// The chunks of a packet are processed: acknowledge, and see what may happen next.
    fn end_packet(&mut self, cx: &mut Context<'_>) {
        if self.state.is_closed() {
            return;
        }
        self.after_data(cx);
        self.advance_shutdown(cx);
        // A reset that has ended may have let messages go that meet a closed window.
        self.watch_window(cx);
    }

    /// Gives back what a burst has left: memory that is not in use.
    fn release_memory(&mut self) {
        self.out.release_memory();
        self.inbound.reassembly.release_memory();
        self.owed.release_memory();
        self.release_keys();
    }

    /// Every timer that is due.
    pub(crate) fn on_timeout(&mut self, cx: &mut Context<'_>) {
        self.out.begin_opportunity();
        while let Some(timer) = self.timers.pop_expired(cx.now) {
            match timer {
                Timer::T1 => self.on_t1(cx),
                Timer::T2Shutdown => self.on_t2_shutdown(cx),
                Timer::T5ShutdownGuard => self.on_t5_shutdown_guard(cx),
                Timer::Sack => self.owed.sack = true,
                Timer::WindowProbe => self.out.probe_is_due = true,
                Timer::ReConfig => self.on_re_config_timeout(cx),
                Timer::T4 => self.on_t4(cx),
            }
        }
        self.on_early_retransmissions(cx);
        self.on_retransmission_timeouts(cx);
        self.on_heartbeat_timers(cx);
        self.expire_queued_messages(cx);
        self.advance_shutdown(cx);
    }

    /// When the earliest timer is due.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        if self.state.is_closed() {
            return None;
        }
        // T1-cookie stands for T3-rtx while DATA travel with COOKIE ECHO.
        let t3 = if self.state.is_setting_up() { None } else { self.out.recovery.next_timeout() };
        let heartbeats = self.paths.iter().map(|path| path.heartbeat.deadline());
        let others = [self.timers.next(), t3, self.out.queue.next_expiry(), self.rest_expiry()];
        // Asked with every packet: without a branch for each.
        let next = others
            .into_iter()
            .chain(heartbeats)
            .fold(Instant::FAR_FUTURE, |next, at| next.min(at.unwrap_or(Instant::FAR_FUTURE)));
        (next < Instant::FAR_FUTURE).then_some(next)
    }

    fn set_state(&mut self, cx: &mut Context<'_>, state: State) {
        self.state = state;
        let name = self.state.name();
        cx.tracer().emit(|| TraceEvent::State { state: name });
    }

    fn header(&self) -> Header {
        Header {
            source_port: self.identity.local_port,
            destination_port: self.identity.remote_port,
            verification_tag: self.peer_tag,
        }
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
