//! Setting up an association (RFC 9260 §5): the initiator's side, creation from a cookie, and a cookie for an
//! existing association. The endpoint answers INIT, without state.

use std::net::IpAddr;
use std::sync::Arc;

use rexmit_core::{Instant, Route};
use rexmit_recovery::{PathChange, RttSource, SetupEvent, T3Event};

use super::ecn::CongestionNotification;
use super::identity::unwrapped_initial_tsn;
use super::replies::{Replies, ReportedError};
use super::setup::{Setup, T1Expiry};
use super::state::EchoedCookie;
use super::{
    AbortCause, Association, Auth, Context, Farewell, Identity, Inbound, InitError, Outbound,
    Paths, PeerParameters, State, StreamReset, read_init,
};
use crate::config::AssociationConfig;
use crate::event::{CloseReason, Event};
use crate::wire::Init;

impl Association {
    /// Begins an association: INIT is due (RFC 9260 §5.1 A).
    pub(crate) fn connect(
        cx: &mut Context<'_>,
        config: Arc<AssociationConfig>,
        identity: Identity,
        routes: &[Route],
    ) -> Self {
        let state = State::CookieWait(Box::new(Setup::new(None, false)));
        let paths = Paths::new(Arc::clone(&config), routes, cx.around);
        let recovery = cx.around.recovery_of(&config);
        let mut association = Self::new(config, recovery, identity, paths, state);
        let rtt = cx.known_round_trip(&association.config, association.primary_route().remote.ip());
        association.set_state(
            cx,
            State::CookieWait(Box::new(Setup::new(
                rtt,
                association.config.recovery.sctp.setup_by_rtt,
            ))),
        );
        association
    }

    /// Holds INIT back until it is released, or releases it. No effect once it was sent.
    pub(crate) fn hold_setup(&mut self, is_held: bool) {
        let State::CookieWait(setup) = &mut self.state else { return };
        if is_held { setup.hold() } else { setup.release() }
    }

    /// Creates an association from a valid state cookie: COOKIE ACK is due (RFC 9260 §5.1.5).
    pub(crate) fn accept(
        cx: &mut Context<'_>,
        config: Arc<AssociationConfig>,
        identity: Identity,
        route: Route,
        peer: &PeerParameters,
    ) -> Self {
        let paths = Paths::new(Arc::clone(&config), &[route], cx.around);
        let recovery = cx.around.recovery_of(&config);
        let mut association = Self::new(config, recovery, identity, paths, State::Established);
        association.adopt(cx, peer);
        association.replies.owe_cookie_ack();
        association.establish(cx, true);
        if let Some(rtt) =
            cx.known_round_trip(&association.config, association.primary_route().remote.ip())
        {
            let source = RttSource::Heartbeat;
            association.out.recovery.on_rtt_sample(cx.now, 0, rtt, source, &mut cx.tracer());
        } else {
            association.paths.ask_for_first_round_trip(&association.out.recovery);
        }
        association
    }

    /// Adopts the parameters of the peer's INIT or INIT ACK.
    fn adopt(&mut self, cx: &Context<'_>, peer: &PeerParameters) {
        let streams = self.config.streams.outbound.min(peer.inbound_streams);
        let is_interleaved = self.config.extensions.interleaving && peer.supports_i_data;
        let supports_forward = self.config.extensions.partial_reliability
            && if is_interleaved { peer.supports_i_forward_tsn } else { peer.supports_forward_tsn };
        self.out.on_peer_known(streams, peer.a_rwnd, is_interleaved, supports_forward);
        let inbound = peer.outbound_streams.min(self.config.streams.max_inbound);
        self.inbound.on_peer_known(peer.initial_tsn, inbound, is_interleaved, supports_forward);
        self.inbound.on_ack_copies_known(peer.wants_ack_copies);
        let supports_reset = self.config.extensions.stream_reset && peer.supports_re_config;
        self.reset.on_peer_known(peer.initial_tsn, supports_reset);
        self.note_addresses(cx, &peer.addresses);
        let offer = peer.auth.as_ref().filter(|_| self.config.offers_authentication());
        self.auth = offer.map(|offer| Auth::new(&self.config, offer));
        let changes_addresses =
            self.config.extensions.dynamic_addresses && peer.supports_asconf && self.auth.is_some();
        self.peer.adopt(peer, changes_addresses);
        self.asconf = None;
        let first = unwrapped_initial_tsn(self.identity.local_initial_tsn);
        self.ecn = peer.uses_ecn.then(|| Box::new(CongestionNotification::new(first)));
        let overhead = self.auth.as_ref().map_or(0, |auth| auth.overhead());
        self.out.limit_chunks(self.config.pmdcs() as usize - overhead);
    }

    /// Adds paths to further addresses of the peer. They have to be confirmed before data is sent to them.
    pub(crate) fn note_addresses(&mut self, cx: &Context<'_>, addresses: &[IpAddr]) {
        for _ in 0..self.paths.add(addresses, &cx.around.addresses) {
            self.out.recovery.open_path(None, self.config.pmdcs());
        }
    }

    fn establish(&mut self, cx: &mut Context<'_>, incoming: bool) {
        self.paths.errors.reset();
        self.set_state(cx, State::Established);
        // The path over which the peer answered.
        let (path, change) = (self.paths.control(), PathChange::Primary);
        self.out.recovery.change_path(cx.now, path, change, &mut cx.tracer());
        self.paths.start_watching(cx, &self.out.recovery);
        cx.note_round_trip(&self.config, self.primary_route(), &self.out.recovery);
        cx.event(Event::Connected {
            incoming,
            peer: self.primary_route().remote,
            outbound_streams: self.out.streams(),
            inbound_streams: self.inbound.streams(),
        });
    }

    /// Processes an INIT ACK (RFC 9260 §5.1 C, §5.2.3).
    pub(super) fn on_init_ack(
        &mut self,
        cx: &mut Context<'_>,
        source: IpAddr,
        init_ack: &Init<'_>,
    ) {
        let State::CookieWait(setup) = &self.state else { return };
        let setup = **setup;
        let (mut peer, extras) = match read_init(init_ack, source, &self.config) {
            Ok(read) => read,
            Err(error) => return self.on_bad_init_ack(cx, init_ack.initiate_tag, error),
        };
        let Route { local, remote } = self.primary_route();
        let route = Route { local, remote: (source, remote.port()).into() };
        cx.around.retain_usable(&mut peer.addresses, route);
        let Some(cookie) = extras.state_cookie else {
            self.peer.set_tag(peer.tag);
            return self.abort(cx, AbortCause::MissingStateCookie);
        };
        self.sample_setup(cx, setup);
        self.paths.set_control(self.paths.reply);
        cx.around.statistics.addresses_refused += extras.refused_addresses;
        self.adopt(cx, &peer);
        // Now, and not when it is established: messages travel with the COOKIE ECHO.
        self.out.fail_messages_to_missing_streams(cx);
        let echoed = EchoedCookie { cookie: cookie.to_vec(), unrecognized: extras.unrecognized };
        let measured = self.out.recovery.paths()[self.paths.control()].timer().rtt().srtt();
        let setup = setup.answered(measured, self.config.recovery.sctp.setup_by_rtt);
        self.set_state(cx, State::CookieEchoed(Box::new(setup), Box::new(echoed)));
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
        self.peer.set_tag(if t_bit { self.identity.local_tag } else { tag });
        self.close(cx, Some(Farewell::Abort { t_bit, cause }), reason);
    }

    /// Called when INIT or COOKIE ECHO was answered: takes the RTT sample, if there is one.
    fn sample_setup(&mut self, cx: &mut Context<'_>, setup: Setup) {
        if let Some(rtt) = setup.round_trip(cx.now) {
            let path = self.paths.control();
            let source = RttSource::Heartbeat;
            self.out.recovery.on_rtt_sample(cx.now, path, rtt, source, &mut cx.tracer());
        }
    }

    /// Processes a COOKIE ACK (RFC 9260 §5.1 E, §5.2.5).
    pub(super) fn on_cookie_ack(&mut self, cx: &mut Context<'_>) {
        if let State::CookieEchoed(setup, _) = &self.state {
            self.sample_setup(cx, **setup);
            self.establish(cx, false);
        }
    }

    /// Called when T1-init or T1-cookie expired (RFC 9260 §4 rules 2 and 3).
    pub(super) fn on_t1(&mut self, cx: &mut Context<'_>) {
        let path = self.paths.control();
        let rto = self.out.recovery.paths()[path].timer().rto();
        let Some(setup) = self.state.setup_mut() else { return };
        let expiry = setup.on_t1(rto, self.config.handshake.max_init_retransmits);
        if expiry == T1Expiry::GiveUp {
            return self.close(cx, None, CloseReason::ConnectTimedOut);
        }
        let event = SetupEvent::TimedOut;
        self.out.recovery.on_setup(cx.now, path, event, &mut cx.tracer());
        if expiry == T1Expiry::RepeatEarly {
            self.out.recovery.on_t3_event(cx.now, path, T3Event::BackoffOver);
        }
        self.paths.turn_control(&self.out.recovery);
    }

    /// Processes an ERROR with Stale Cookie: begins again with a new INIT (RFC 9260 §5.2.6).
    pub(super) fn on_stale_cookie(&mut self, cx: &mut Context<'_>) {
        let State::CookieEchoed(setup, _) = &self.state else { return };
        let setup = **setup;
        let Some(restarted) = setup.restarted() else {
            return self.close(cx, None, CloseReason::ConnectTimedOut);
        };
        self.sample_setup(cx, setup);
        self.peer.set_tag(0);
        let event = SetupEvent::Restarted;
        self.out.recovery.on_setup(cx.now, self.paths.control(), event, &mut cx.tracer());
        self.set_state(cx, State::CookieWait(Box::new(restarted)));
    }

    /// Processes a COOKIE ECHO whose tags are those of this association (RFC 9260 §5.2.4 D).
    pub(crate) fn on_cookie_echo_again(&mut self, cx: &mut Context<'_>) {
        if matches!(self.state, State::CookieEchoed(..)) {
            self.establish(cx, false);
        }
        self.replies.owe_cookie_ack();
    }

    /// Called when a valid cookie made at `created` was used for this association.
    pub(crate) fn on_cookie_used(&mut self, created: Instant) {
        self.peer.on_cookie_used(created);
    }

    /// Processes a COOKIE ECHO with our tag and a new one of the peer: both sides have begun at the same time
    /// (RFC 9260 §5.2.4 B).
    pub(crate) fn on_collision(&mut self, cx: &mut Context<'_>, peer: &PeerParameters) {
        if self.state.is_setting_up() {
            self.adopt(cx, peer);
            self.out.fail_messages_to_missing_streams(cx);
            let event = SetupEvent::Restarted;
            self.out.recovery.on_setup(cx.now, self.paths.control(), event, &mut cx.tracer());
            self.establish(cx, false);
        }
        self.peer.set_tag(peer.tag);
        self.replies.owe_cookie_ack();
    }

    /// Restarts the association after a COOKIE ECHO of a restarted peer (RFC 9260 §5.2.4 A): it begins again
    /// under the same id. Unacknowledged messages have failed; received ones can be read.
    pub(crate) fn restart(
        &mut self,
        cx: &mut Context<'_>,
        identity: Identity,
        route: Route,
        peer: &PeerParameters,
    ) {
        self.out.fail_everything(cx);
        cx.event(Event::PeerRestarted);
        self.identity = identity;
        self.replies = Replies::default();
        let paths = Paths::new(Arc::clone(&self.config), &[route], cx.around);
        self.paths = paths.succeeding(&mut self.paths);
        let recovery = cx.around.recovery_of(&self.config);
        let out = Outbound::new(Arc::clone(&self.config), recovery, identity.local_initial_tsn);
        self.out = out.continuing(&self.out);
        self.inbound = Inbound::new(Arc::clone(&self.config)).continuing(&mut self.inbound);
        self.reset = StreamReset::new(identity.local_initial_tsn);
        self.adopt(cx, peer);
        self.replies.owe_cookie_ack();
        self.establish(cx, true);
        self.out.emit_writable(cx);
    }

    /// Processes a COOKIE ECHO of a restarting peer in SHUTDOWN-ACK-SENT: sends SHUTDOWN ACK and an error
    /// (RFC 9260 §5.2.4).
    pub(crate) fn refuse_restart(&mut self) {
        self.repeat_shutdown();
        self.replies.report(ReportedError::CookieReceivedWhileShuttingDown);
    }
}
