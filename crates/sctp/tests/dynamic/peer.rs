//! A peer that authenticates chunks: its keys and MACs are computed from the text of RFC 4895, not by the code under
//! test.

#![allow(unreachable_pub, reason = "as the kit")]

use hmac::{Hmac, KeyInit, Mac};
use rexmit_sctp::wire::{AsconfChange, AsconfRequest, PacketWriter, Params, kind, param_kind};
use rexmit_sctp::{AssociationConfig, EndpointConfig, Event};
use sha1::Sha1;
use sha2::Sha256;

use crate::kit::*;

/// RANDOM of the peer.
pub const RANDOM: [u8; 32] = [0x5A; 32];

/// The peer's authentication parameters, and its state about the endpoint.
#[derive(Clone)]
pub struct Keys {
    /// The chunk types that it requires to be authenticated.
    pub chunks: Vec<u8>,
    /// The HMAC identifiers that it supports.
    pub hmacs: Vec<u16>,
    /// The endpoint's RANDOM, CHUNKS and HMAC-ALGO.
    pub theirs: Vec<u8>,
    /// The endpoint pair shared key, under its number.
    pub shared: (u16, Vec<u8>),
    /// The HMAC identifier that it uses.
    pub hmac: u16,
}

impl Default for Keys {
    fn default() -> Self {
        Self {
            chunks: vec![kind::ASCONF, kind::ASCONF_ACK],
            hmacs: vec![3, 1],
            theirs: Vec::new(),
            shared: (0, Vec::new()),
            hmac: 3,
        }
    }
}

fn parameter(kind: u16, value: &[u8]) -> Vec<u8> {
    let len = (value.len() + 4) as u16;
    [&kind.to_be_bytes()[..], &len.to_be_bytes(), value].concat()
}

impl Keys {
    /// The peer's own key vector (RFC 4895 §6.1).
    fn ours(&self) -> Vec<u8> {
        let hmacs: Vec<u8> = self.hmacs.iter().flat_map(|id| id.to_be_bytes()).collect();
        [
            parameter(param_kind::RANDOM, &RANDOM),
            parameter(param_kind::CHUNKS, &self.chunks),
            parameter(param_kind::HMAC_ALGO, &hmacs),
        ]
        .concat()
    }

    /// The parameters of the peer's INIT or INIT ACK.
    pub fn offer(&self, params: &mut ParamsWriter<'_, '_>) {
        let extensions = [kind::AUTH, kind::ASCONF, kind::ASCONF_ACK, kind::RE_CONFIG];
        params.push(&Param::SupportedExtensions(&extensions));
        params.push(&Param::Random(&RANDOM));
        params.push(&Param::Chunks(&self.chunks));
        params.push(&Param::HmacAlgo(wire::U16List::from(&self.hmacs[..])));
    }

    /// Records the endpoint's parameters.
    pub fn learn(&mut self, params: Params<'_>) {
        self.theirs.clear();
        for wanted in [param_kind::RANDOM, param_kind::CHUNKS, param_kind::HMAC_ALGO] {
            let found = params.flatten().find(|param| param.kind == wanted);
            self.theirs.extend(found.into_iter().flat_map(|param| param.bytes));
        }
    }

    fn mac(&self, bytes: &[u8]) -> Vec<u8> {
        // Both vectors begin with 0x80, so that the longer one is the larger number.
        let ours = self.ours();
        let order = (ours.len(), &ours) < (self.theirs.len(), &self.theirs);
        let (small, large) = if order { (&ours, &self.theirs) } else { (&self.theirs, &ours) };
        let key = [&self.shared.1[..], small, large].concat();
        match self.hmac {
            1 => Hmac::<Sha1>::new_from_slice(&key)
                .unwrap()
                .chain_update(bytes)
                .finalize()
                .into_bytes()
                .to_vec(),
            _ => Hmac::<Sha256>::new_from_slice(&key)
                .unwrap()
                .chain_update(bytes)
                .finalize()
                .into_bytes()
                .to_vec(),
        }
    }

    pub fn mac_len(&self) -> usize {
        if self.hmac == 1 { 20 } else { 32 }
    }

    /// Checks that `sent` begins with an AUTH that is correct for the chunks after it.
    #[track_caller]
    pub fn check(&self, sent: &Sent) {
        let &[wire::Chunk::Auth(auth), ..] = &sent.chunks()[..] else {
            panic!("no AUTH: {sent:?}")
        };
        assert_eq!((auth.key_id, auth.hmac_id), (self.shared.0, self.hmac));
        let mut covered = sent.bytes[wire::COMMON_HEADER_LEN..].to_vec();
        covered[8..8 + self.mac_len()].fill(0);
        assert_eq!(auth.mac, self.mac(&covered), "MAC of {sent:?}");
    }
}

/// A script with a peer that authenticates.
pub struct Dynamic {
    pub s: Script,
    pub keys: Keys,
}

impl std::ops::Deref for Dynamic {
    type Target = Script;
    fn deref(&self) -> &Script {
        &self.s
    }
}

impl std::ops::DerefMut for Dynamic {
    fn deref_mut(&mut self) -> &mut Script {
        &mut self.s
    }
}

impl Dynamic {
    /// Established by the peer at 192.0.2.2, which speaks RFC 5061; no heartbeats.
    pub fn server() -> Self {
        Self::server_with(Keys::default(), |_, _| ())
    }

    pub fn server_with(
        mut keys: Keys,
        change: impl FnOnce(&mut EndpointConfig, &mut AssociationConfig),
    ) -> Self {
        let mut s = Script::with(|endpoint, association| {
            association.failure.heartbeat_interval = None;
            change(endpoint, association);
        });
        s.peer_writes_under(0, |p| p.init(&peer_init(PEER_TAG), |params| keys.offer(params)));
        let cookie = expect_packet!(s, [InitAck(ack)] => {
            s.peer.endpoint_tag = ack.initiate_tag;
            keys.learn(ack.params());
            cookie_of(&ack)
        });
        let mut this = Self { s, keys };
        this.s.peer_sends([CookieEcho(&cookie)]);
        this.take_any([|chunk| matches!(chunk, CookieAck)]);
        expect_event!(this.s, Event::Connected { incoming: true, .. });
        this
    }

    /// An association that the endpoint has initiated, with the peer at 192.0.2.2.
    pub fn client() -> Self {
        Self::client_with(Keys::default(), |_, _| ())
    }

    pub fn client_with(
        mut keys: Keys,
        change: impl FnOnce(&mut EndpointConfig, &mut AssociationConfig),
    ) -> Self {
        let mut s = Script::with(|endpoint, association| {
            association.failure.heartbeat_interval = None;
            change(endpoint, association);
        });
        s.connect();
        let sent = s.next_packet();
        let &[wire::Chunk::Init(init)] = &sent.chunks()[..] else { panic!("no INIT: {sent:?}") };
        s.peer.endpoint_tag = init.initiate_tag;
        keys.learn(init.params());
        s.peer_writes(|p| {
            p.init_ack(&peer_init(PEER_TAG), |params| {
                params.push(&Param::StateCookie(COOKIE));
                keys.offer(params);
            })
        });
        let mut this = Self { s, keys };
        this.take_any([|chunk| matches!(chunk, CookieEcho(_))]);
        this.s.peer_sends([CookieAck]);
        expect_event!(this.s, Event::Connected { incoming: false, .. });
        this
    }

    /// As [`Script::at`].
    #[track_caller]
    pub fn at(&mut self, ms: u64) -> &mut Self {
        self.s.at(ms);
        self
    }

    /// As [`Script::from`].
    pub fn from(&mut self, host: u8) -> &mut Self {
        self.s.from(host);
        self
    }

    /// Reads the next packet, which must have these chunks, with or without an AUTH before them.
    #[track_caller]
    pub fn take_any<const N: usize>(&mut self, is: [fn(&Chunk<'_>) -> bool; N]) -> Sent {
        let sent = self.s.next_packet();
        let chunks = sent.chunks();
        let rest = &chunks[usize::from(matches!(chunks[0], Chunk::Auth(_)))..];
        let is_it = rest.len() == N && rest.iter().zip(is).all(|(chunk, is)| is(chunk));
        assert!(is_it, "{sent:?}");
        sent
    }

    /// The packet of the peer with these chunks under an AUTH.
    pub fn signed<T>(&self, build: impl FnOnce(&mut PacketWriter<'_>) -> T) -> Vec<u8> {
        let header = wire::Header {
            source_port: self.peer.port,
            destination_port: PORT,
            verification_tag: self.peer.endpoint_tag,
        };
        let mut bytes = Vec::new();
        let mut packet = PacketWriter::new(&mut bytes, 65_000, header);
        packet.auth(self.keys.shared.0, self.keys.hmac, self.keys.mac_len());
        build(&mut packet);
        packet.finish_authenticated(|bytes| self.keys.mac(bytes));
        bytes
    }

    /// Delivers a packet of the peer with authenticated chunks.
    pub fn peer_signs<T>(&mut self, build: impl FnOnce(&mut PacketWriter<'_>) -> T) {
        let packet = self.signed(build);
        self.s.deliver(&packet);
    }

    /// The `n`th ASCONF of the peer, from 0, with `known` as its Address Parameter.
    pub fn asconf(&self, n: u32, changes: &[AsconfChange<'static>]) -> Vec<u8> {
        self.signed(|p| p.asconf(tsn(n), address(2, 0).ip(), requests(changes)))
    }

    /// Delivers an ASCONF of the peer with these changes.
    pub fn peer_asks(&mut self, n: u32, changes: &[AsconfChange<'static>]) {
        let packet = self.asconf(n, changes);
        self.s.deliver(&packet);
    }

    /// Reads the ASCONF-ACK for the peer's `n`th ASCONF, sent to 192.0.2.`host`. Returns the cause for which each
    /// request was refused, or 0 if it was performed.
    #[track_caller]
    pub fn take_answer(&mut self, n: u32, host: u8) -> Vec<(u32, u16)> {
        let sent = self.s.next_packet();
        self.keys.check(&sent);
        assert_eq!(Script::host_of(&sent), host, "{sent:?}");
        let &[_, wire::Chunk::AsconfAck(ack)] = &sent.chunks()[..] else { panic!("{sent:?}") };
        assert_eq!(ack.serial, tsn(n));
        ack.answers()
            .map(|answer| match answer.unwrap() {
                wire::AsconfAnswer::Refused { correlation, mut causes } => {
                    (correlation, causes.next().unwrap().unwrap().code())
                }
                wire::AsconfAnswer::Done { correlation } => (correlation, 0),
                wire::AsconfAnswer::Unknown(raw) => panic!("{raw:?}"),
            })
            .collect()
    }

    /// Takes an ASCONF of the endpoint: its route, serial number, Address Parameter, and changes.
    #[track_caller]
    pub fn take_asconf(&mut self) -> Asked {
        let sent = self.s.next_packet();
        self.keys.check(&sent);
        let &[_, wire::Chunk::Asconf(asconf)] = &sent.chunks()[..] else { panic!("{sent:?}") };
        let changes = asconf.requests().map(|request| {
            let request = request.unwrap();
            let change = match request.change {
                AsconfChange::Add(address) => AsconfChange::Add(address),
                AsconfChange::Delete(address) => AsconfChange::Delete(address),
                AsconfChange::SetPrimary(address) => AsconfChange::SetPrimary(address),
                AsconfChange::Unknown(_) => panic!("{sent:?}"),
            };
            (request.correlation, change)
        });
        let changes = changes.collect();
        Asked { route: sent.route, serial: asconf.serial, address: asconf.address, changes }
    }

    /// The peer acknowledges all requests of the endpoint's ASCONF.
    pub fn peer_grants(&mut self, asked: &Asked) {
        let serial = asked.serial;
        self.peer_signs(|p| p.asconf_ack(serial, |_| ()));
    }
}

/// An ASCONF of the endpoint.
#[derive(Debug)]
pub struct Asked {
    pub route: rexmit_core::Route,
    pub serial: u32,
    pub address: std::net::IpAddr,
    pub changes: Vec<(u32, AsconfChange<'static>)>,
}

/// Requests with the Correlation IDs 1, 2, 3, …
pub fn requests(changes: &[AsconfChange<'static>]) -> Vec<AsconfRequest<'static>> {
    let of = |(correlation, &change)| AsconfRequest { correlation, change, bytes: &[] };
    (1..).zip(changes).map(of).collect()
}
