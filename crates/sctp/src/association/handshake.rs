//! Setting up an association (RFC 9260 §5): what the initiator does, what a cookie makes, and what
//! a second cookie does to an association that exists. Answering INIT keeps no state and is the
//! endpoint's business.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use rexmit_core::{Instant, Route};

use super::state::{EchoedCookie, Setup};
use super::transmit::Owed;
use super::{
    AbortCause, Association, Auth, Context, Farewell, Identity, Inbound, InitError, Outbound,
    Paths, PeerParameters, State, StreamReset, Timer, read_init,
};
use crate::config::AssociationConfig;
use crate::event::{CloseReason, Event, FailReason};
use crate::wire::Init;

/// New INITs sent after a stale cookie before giving up.
const MAX_STALE_COOKIES: u32 = 3;

impl Association {
    /// Begins an association: INIT is owed (RFC 9260 §5.1 A).
    pub(crate) fn connect(
        cx: &mut Context<'_>,
        config: Arc<AssociationConfig>,
        identity: Identity,
        routes: &[Route],
    ) -> Self {
        let state = State::CookieWait(Setup::default());
        let paths = Paths::new(routes, &cx.around.addresses);
        let recovery = cx.around.recovery_of(&config);
        let mut association = Self::new((config, recovery), identity, paths, state);
        association.owed.setup = true;
        let setup = Setup { rtt: association.known_rtt(cx), ..Setup::default() };
        association.set_state(cx, State::CookieWait(setup));
        association
    }

    /// An association out of a state cookie that was found good: COOKIE ACK is owed
    /// (RFC 9260 §5.1.5).
    pub(crate) fn accept(
        cx: &mut Context<'_>,
        config: Arc<AssociationConfig>,
        identity: Identity,
        (route, peer): (Route, &PeerParameters),
    ) -> Self {
        let paths = Paths::new(&[route], &cx.around.addresses);
        let recovery = cx.around.recovery_of(&config);
        let mut association = Self::new((config, recovery), identity, paths, State::Established);
        association.adopt(cx, peer);
        association.owed.cookie_ack = true;
        association.establish(cx, true);
        if let Some(rtt) = association.known_rtt(cx) {
            association.out.recovery.on_rtt_sample(cx.now, 0, rtt, &mut cx.tracer());
        } else {
            association.ask_for_first_round_trip();
        }
        association
    }

    /// The round-trip time to the peer, from the application or from an association before, if the
    /// setup is to go by it.
    fn known_rtt(&self, cx: &Context<'_>) -> Option<Duration> {
        let peer = self.primary_route().remote.ip();
        let remembered = || cx.around.round_trips.of(peer);
        self.config
            .initial_rtt
            .or_else(|| if self.config.recovery.setup_by_rtt { remembered() } else { None })
    }

    /// Remembers how far away the peer is.
    pub(super) fn note_round_trip(&self, cx: &mut Context<'_>) {
        let path = self.out.recovery.primary_path();
        let srtt = self.out.recovery.timer(path).rtt().srtt();
        if let Some(srtt) = srtt.filter(|_| self.config.recovery.setup_by_rtt) {
            cx.around.round_trips.note(self.route_of(path).remote.ip(), srtt);
        }
    }

    /// Takes over what the peer said of itself.
    fn adopt(&mut self, cx: &Context<'_>, peer: &PeerParameters) {
        self.peer_tag = peer.tag;
        self.peer_initial_tsn = peer.initial_tsn;
        self.supports_forward_tsn = self.config.partial_reliability && peer.supports_forward_tsn;
        self.supports_re_config = self.config.stream_reset && peer.supports_re_config;
        let streams = self.config.outbound_streams.min(peer.inbound_streams);
        self.out.on_peer_known(streams, peer.a_rwnd);
        let inbound = peer.outbound_streams.min(self.config.max_inbound_streams);
        self.inbound.on_peer_known(peer.initial_tsn, inbound);
        self.reset.on_peer_known(peer.initial_tsn);
        self.note_addresses(cx, &peer.addresses);
        let offer = peer.auth.as_ref().filter(|_| self.config.offers_authentication());
        self.auth = offer.map(|offer| Auth::new(&self.config, offer));
        self.supports_asconf =
            self.config.dynamic_addresses && peer.supports_asconf && self.auth.is_some();
        self.asconf = None;
        self.out.max_fragment = self.out.max_fragment.min(self.max_fragment());
    }

    /// The peer can also be reached at `addresses`, once they are confirmed.
    pub(crate) fn note_addresses(&mut self, cx: &Context<'_>, addresses: &[IpAddr]) {
        for _ in 0..self.paths.add(addresses, &cx.around.addresses) {
            self.out.recovery.add_path(self.config.pmdcs());
        }
    }

    fn establish(&mut self, cx: &mut Context<'_>, incoming: bool) {
        self.timers.stop(Timer::T1);
        self.owed.setup = false;
        self.error_count = 0;
        self.set_state(cx, State::Established);
        // The path over which the peer answered.
        self.out.recovery.set_primary_path(self.control_path);
        self.start_heartbeats(cx);
        self.note_round_trip(cx);
        cx.event(Event::Connected {
            incoming,
            peer: self.primary_route().remote,
            outbound_streams: self.out.streams(),
            inbound_streams: self.inbound.streams(),
        });
    }

    /// INIT or COOKIE ECHO has just left.
    pub(super) fn on_setup_sent(&mut self, cx: &Context<'_>) {
        let (State::CookieWait(setup) | State::CookieEchoed(setup, _)) = &mut self.state else {
            return;
        };
        setup.sent_at.get_or_insert(cx.now);
        self.owed.setup = false;
        let timeout = setup.timeout(self.out.recovery.timer(self.control_path).rto());
        self.timers.arm(Timer::T1, cx.now + timeout);
    }

    /// INIT ACK (RFC 9260 §5.1 C, §5.2.3).
    pub(super) fn on_init_ack(
        &mut self,
        cx: &mut Context<'_>,
        source: IpAddr,
        init_ack: &Init<'_>,
    ) {
        let State::CookieWait(setup) = self.state else { return };
        let (peer, extras) = match read_init(init_ack, source) {
            Ok(read) => read,
            Err(error) => return self.on_bad_init_ack(cx, init_ack.initiate_tag, error),
        };
        let Some(cookie) = extras.state_cookie else {
            self.peer_tag = peer.tag;
            return self.abort(cx, AbortCause::MissingStateCookie);
        };
        self.sample_setup(cx, setup);
        self.control_path = self.inbound.reply_path;
        cx.around.statistics.addresses_refused += extras.refused_addresses;
        self.adopt(cx, &peer);
        // Now, and not when it is established: messages travel with the COOKIE ECHO.
        self.fail_messages_to_missing_streams(cx);
        let echoed = EchoedCookie { cookie: cookie.to_vec(), unrecognized: extras.unrecognized };
        let measured = self.out.recovery.timer(self.control_path).rtt().srtt();
        let by_rtt = self.config.recovery.setup_by_rtt || setup.rtt.is_some();
        let rtt = measured.filter(|_| by_rtt).or(setup.rtt);
        let setup = Setup { rtt, stale_cookies: setup.stale_cookies, ..Setup::default() };
        self.timers.stop(Timer::T1);
        self.owed.setup = true;
        self.set_state(cx, State::CookieEchoed(setup, Box::new(echoed)));
    }

    fn on_bad_init_ack(&mut self, cx: &mut Context<'_>, tag: u32, error: InitError) {
        let cause = match error {
            InitError::HostName(param) => AbortCause::UnresolvableAddress(param),
            InitError::TagZero | InitError::NoStreams | InitError::Malformed => {
                AbortCause::InvalidMandatoryParameter
            }
            InitError::Random => AbortCause::Violation("RANDOM has not 32 bytes"),
            // It changes no state (RFC 9260 §3.3.3), so another INIT ACK may still come.
            InitError::WindowTooSmall => return,
        };
        let reason = CloseReason::Aborted { reason: cause.words() };
        // With a tag of zero ours is reflected (RFC 9260 §3.3.3).
        let t_bit = tag == 0;
        self.peer_tag = if t_bit { self.identity.local_tag } else { tag };
        self.close(cx, Some(Farewell::Abort { t_bit, cause }), reason);
    }

    /// A round trip of a chunk that was sent once measures the path; after another, what was known
    /// before holds, and the backoff of the setup is over.
    fn sample_setup(&mut self, cx: &mut Context<'_>, setup: Setup) {
        let once = setup.sent_at.filter(|_| !setup.was_repeated());
        let measured = once.map(|sent_at| cx.now - sent_at);
        if let Some(rtt) = measured.or(setup.rtt) {
            let path = self.control_path;
            self.out.recovery.on_rtt_sample(cx.now, path, rtt, &mut cx.tracer());
        }
    }

    /// COOKIE ACK (RFC 9260 §5.1 E, §5.2.5).
    pub(super) fn on_cookie_ack(&mut self, cx: &mut Context<'_>) {
        if let State::CookieEchoed(setup, _) = self.state {
            self.sample_setup(cx, setup);
            self.establish(cx, false);
        }
    }

    /// T1-init or T1-cookie expired (RFC 9260 §4 rules 2 and 3).
    pub(super) fn on_t1(&mut self, cx: &mut Context<'_>) {
        let (State::CookieWait(setup) | State::CookieEchoed(setup, _)) = &mut self.state else {
            return;
        };
        let path = self.control_path;
        let is_early = setup.early_timeout(self.out.recovery.timer(path).rto()).is_some();
        if is_early {
            setup.early_attempts += 1;
        } else {
            setup.attempts += 1;
        }
        if setup.attempts > self.config.max_init_retransmits {
            return self.close(cx, None, CloseReason::ConnectTimedOut);
        }
        self.owed.setup = true;
        if self.out.recovery.flight(path).packets > 0 {
            // DATA left with the COOKIE ECHO, and shares its fate.
            let kind = rexmit_recovery::TimeoutKind::Loss;
            self.out.recovery.on_timeout(path, kind, &mut cx.tracer());
        } else {
            self.out.recovery.back_off(path);
        }
        if is_early {
            self.out.recovery.forget_backoff(path);
        }
        self.turn_control_path();
    }

    /// ERROR with Stale Cookie (RFC 9260 §5.2.6): begin again with a new INIT.
    pub(super) fn on_stale_cookie(&mut self, cx: &mut Context<'_>) {
        let State::CookieEchoed(setup, _) = self.state else { return };
        let stale_cookies = setup.stale_cookies + 1;
        if stale_cookies > MAX_STALE_COOKIES {
            return self.close(cx, None, CloseReason::ConnectTimedOut);
        }
        self.sample_setup(cx, setup);
        self.peer_tag = 0;
        self.out.recovery.on_setup_again(self.control_path, &mut cx.tracer());
        self.timers.stop(Timer::T1);
        self.owed.setup = true;
        let setup = Setup { stale_cookies, rtt: setup.rtt, ..Setup::default() };
        self.set_state(cx, State::CookieWait(setup));
    }

    /// The life to ask for in INIT beyond the usual, after a stale cookie.
    pub(super) fn cookie_preservative(&self) -> Option<Duration> {
        match self.state {
            State::CookieWait(setup) if setup.stale_cookies > 0 => {
                let rtt =
                    self.out.recovery.timer(self.control_path).rtt().srtt().unwrap_or_default();
                Some(rtt + Duration::from_secs(1))
            }
            _ => None,
        }
    }

    /// COOKIE ECHO whose tags are those of this association (RFC 9260 §5.2.4 D).
    pub(crate) fn on_cookie_echo_again(&mut self, cx: &mut Context<'_>) {
        if matches!(self.state, State::CookieEchoed(..)) {
            self.establish(cx, false);
        }
        self.owed.cookie_ack = true;
    }

    /// Whether `peer`, under our tag and a new one of its own, lives again: a peer that began once
    /// and answered us under another tag did so with the same TSNs (RFC 9260 §5.2.1).
    pub(crate) fn is_another_life(&self, peer: &PeerParameters) -> bool {
        !self.state.is_setting_up() && peer.initial_tsn != self.peer_initial_tsn
    }

    /// A cookie that was made at `created` came back, and was good for this association.
    pub(crate) fn on_cookie_used(&mut self, created: Instant) {
        self.newest_cookie = self.newest_cookie.max(created);
    }

    /// Whether a cookie made at `created` is older than what is known of the peer by another.
    pub(crate) fn is_older(&self, created: Instant) -> bool {
        created < self.newest_cookie
    }

    /// COOKIE ECHO with our tag and a new one of the peer: both sides have begun at the same time
    /// (RFC 9260 §5.2.4 B).
    pub(crate) fn on_collision(&mut self, cx: &mut Context<'_>, peer: &PeerParameters) {
        if self.state.is_setting_up() {
            self.adopt(cx, peer);
            self.fail_messages_to_missing_streams(cx);
            self.out.recovery.on_setup_again(self.control_path, &mut cx.tracer());
            self.establish(cx, false);
        }
        self.peer_tag = peer.tag;
        self.owed.cookie_ack = true;
    }

    /// COOKIE ECHO of a peer that has started anew (RFC 9260 §5.2.4 A): the association begins
    /// again under the same id; what was unacknowledged has failed, what had arrived can be read.
    pub(crate) fn restart(
        &mut self,
        cx: &mut Context<'_>,
        identity: Identity,
        (route, peer): (Route, &PeerParameters),
    ) {
        self.fail_everything(cx, FailReason::AssociationEnded);
        cx.event(Event::PeerRestarted);
        self.identity = identity;
        self.timers.stop_all();
        self.owed = Owed::default();
        self.paths = Paths::new(&[route], &cx.around.addresses);
        self.control_path = 0;
        let recovery = cx.around.recovery_of(&self.config);
        let out = Outbound::new(&self.config, recovery, identity.local_initial_tsn);
        self.out = out.continuing(&self.out);
        self.inbound = Inbound::new(&self.config).continuing(&mut self.inbound);
        self.reset = StreamReset::new(identity.local_initial_tsn);
        self.adopt(cx, peer);
        self.owed.cookie_ack = true;
        self.establish(cx, true);
        self.tell_writable(cx);
    }

    /// COOKIE ECHO of a restarting peer while we wait for its SHUTDOWN COMPLETE (RFC 9260 §5.2.4).
    pub(crate) fn refuse_restart(&mut self) {
        self.owed.shutdown_ack = true;
        self.owed.error(super::transmit::OwedError::CookieReceivedWhileShuttingDown);
    }

    /// INIT of a restarting peer while we wait for its SHUTDOWN COMPLETE (RFC 9260 §9.2).
    pub(crate) fn repeat_shutdown_ack(&mut self) {
        self.owed.shutdown_ack = true;
    }
}
