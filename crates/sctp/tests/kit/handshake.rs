//! The handshake step by step, and shortcuts to an established association.

use rexmit_sctp::wire::{Chunk, Init, Param, Params, ParamsWriter, kind};
use rexmit_sctp::{AssociationConfig, EndpointConfig, Event};

use super::{CookieAck, CookieEcho, InitAck};
use super::{FIRST_TSN, PEER_PORT, PEER_RWND, PEER_TAG, PacketScript, Script};
use super::{expect_event, expect_packet};

/// The State Cookie of the peer.
pub const COOKIE: &[u8] = b"a cookie of the peer";

/// The parameters of the peer in INIT and INIT ACK: 10 streams either way.
pub fn peer_init(initiate_tag: u32) -> Init<'static> {
    Init {
        initiate_tag,
        a_rwnd: PEER_RWND,
        outbound_streams: 10,
        inbound_streams: 10,
        initial_tsn: FIRST_TSN,
        params: Params::default(),
    }
}

/// The peer speaks FORWARD-TSN and RE-CONFIG.
pub fn extensions(params: &mut ParamsWriter<'_, '_>) {
    params.push(&Param::ForwardTsnSupported);
    params.push(&Param::SupportedExtensions(&[kind::RE_CONFIG, kind::FORWARD_TSN]));
}

/// The parameters of the peer's INIT ACK: its cookie and [`extensions`].
pub fn answer_params(params: &mut ParamsWriter<'_, '_>) {
    params.push(&Param::StateCookie(COOKIE));
    extensions(params);
}

impl Script {
    /// An accepting endpoint with the defaults.
    pub fn server() -> Self {
        Self::with(|_, _| ())
    }

    /// An endpoint after `connect`, whose INIT is still to be polled.
    pub fn client() -> Self {
        Self::client_with(|_, _| ())
    }

    /// As [`Self::client`], with a changed configuration.
    pub fn client_with(change: impl FnOnce(&mut EndpointConfig, &mut AssociationConfig)) -> Self {
        let mut script = Self::with(change);
        script.connect();
        script
    }

    /// The application connects to the peer.
    pub fn connect(&mut self) {
        let connected = self.endpoint.connect(self.run.now, self.peer.route, PEER_PORT);
        self.run.id = Some(connected.expect("a new association"));
    }

    /// An association that we began; all packets and events of the handshake are consumed.
    pub fn established_client() -> Self {
        Self::established_client_with(|_, _| ())
    }

    /// As [`Self::established_client`], with a changed configuration.
    pub fn established_client_with(
        change: impl FnOnce(&mut EndpointConfig, &mut AssociationConfig),
    ) -> Self {
        let mut script = Self::client_with(change);
        script.take_init();
        script.peer_writes(|p| p.init_ack(&peer_init(PEER_TAG), answer_params));
        expect_packet!(script, [CookieEcho(_)]);
        script.peer_sends([CookieAck]);
        expect_event!(script, Event::Connected { incoming: false, .. });
        script
    }

    /// An association that the peer began; all packets and events of the handshake are consumed.
    pub fn established_server() -> Self {
        Self::established_server_with(|_, _| ())
    }

    /// As [`Self::established_server`], with a changed configuration.
    pub fn established_server_with(
        change: impl FnOnce(&mut EndpointConfig, &mut AssociationConfig),
    ) -> Self {
        let mut script = Self::with(change);
        let cookie = script.peer_begins();
        script.peer_sends([CookieEcho(&cookie)]);
        expect_packet!(script, [CookieAck]);
        expect_event!(script, Event::Connected { incoming: true, .. });
        script
    }

    /// Both sides speak SCTP directly over IP.
    pub fn over_ip(&mut self) -> &mut Self {
        self.peer.route.local.set_port(0);
        self.peer.route.remote.set_port(0);
        self
    }

    /// [`Self::established_server`] directly over IP.
    pub fn established_server_over_ip() -> Self {
        let mut script = Self::server();
        let cookie = script.over_ip().peer_begins();
        script.peer_sends([CookieEcho(&cookie)]);
        expect_packet!(script, [CookieAck]);
        expect_event!(script, Event::Connected { incoming: true, .. });
        script
    }

    /// Reads the endpoint's INIT, and stores its tag, with which the peer sends from now on.
    #[track_caller]
    pub fn take_init(&mut self) -> Vec<u8> {
        let sent = self.next_packet();
        let &[Chunk::Init(init)] = &sent.chunks()[..] else { panic!("no INIT: {sent:?}") };
        self.peer.endpoint_tag = init.initiate_tag;
        sent.bytes
    }

    /// INIT and INIT ACK of a peer that begins; returns the endpoint's cookie.
    #[track_caller]
    pub fn peer_begins(&mut self) -> Vec<u8> {
        let init = peer_init(self.peer.tag);
        self.peer_writes_under(0, |p| p.init(&init, extensions));
        self.take_init_ack()
    }

    /// Reads the endpoint's INIT ACK, and stores its tag, with which the peer sends from now on; returns the cookie.
    #[track_caller]
    pub fn take_init_ack(&mut self) -> Vec<u8> {
        let (tag, cookie) =
            expect_packet!(self, [InitAck(ack)] => (ack.initiate_tag, cookie_of(&ack)));
        self.peer.endpoint_tag = tag;
        cookie
    }
}

/// The State Cookie in an INIT ACK.
pub fn cookie_of(init_ack: &Init<'_>) -> Vec<u8> {
    let cookie = init_ack.params().flatten().find_map(|param| match param.decode() {
        Ok(Param::StateCookie(cookie)) => Some(cookie.to_vec()),
        _ => None,
    });
    cookie.expect("INIT ACK has a State Cookie")
}
