//! One generation of ICE (RFC 8445) of one peer: the ICE agent with one pair of credentials, implemented by the crate
//! `is`. This module adds limits of its state, and consent (RFC 7675).
//!
//! There is one socket, whose own address does not matter to ICE: a placeholder address per IP version stands
//! for it. A relayed candidate is a second local address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use is::stun::{StunMessage, StunPacket};
use is::{Candidate, IceAgent, IceAgentEvent, IceCreds, Protocol};
use rexmit_core::{Instant, Rng, Route};

use crate::config::IceMode;
use crate::sdp::Description;

/// The most addresses from which a peer may send checks; checks from others are dropped.
pub const MAX_PEER_ADDRESSES: usize = 32;
/// The largest number of our own addresses, as the peer reports them, that is stored.
const MAX_MAPPED: usize = 8;
/// The longest STUN message that is read.
const MAX_STUN_BYTES: usize = 1280;
/// Bytes of random text in a user name fragment and a password: 6 bits each (RFC 8445 §5.3).
const UFRAG_LEN: usize = 12;
const PASSWORD_LEN: usize = 24;
/// The names of our socket.
const LOCAL_V4: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 9);
const LOCAL_V6: SocketAddr =
    SocketAddr::new(IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)), 9);

/// The name of our socket for a peer at `remote`.
const fn local_for(remote: SocketAddr) -> SocketAddr {
    if remote.is_ipv4() { LOCAL_V4 } else { LOCAL_V6 }
}

/// The route to `remote` from the local address `source` of ICE: a relayed address, or any address of this host.
fn route(source: SocketAddr, remote: SocketAddr) -> Route {
    let unspecified: IpAddr =
        if remote.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let is_relayed = source != local_for(remote);
    Route { local: if is_relayed { source } else { SocketAddr::new(unspecified, 0) }, remote }
}

/// The credentials with which both sides authenticate their checks.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Credentials {
    pub(crate) ufrag: String,
    pub(crate) password: String,
}

impl Credentials {
    pub(crate) fn of(description: &Description) -> Self {
        Self { ufrag: description.ufrag.clone(), password: description.password.clone() }
    }

    pub(crate) fn new(rng: &mut Rng) -> Self {
        const ICE_CHARS: &[u8; 64] =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut text = |len: usize| -> String {
            let mut bytes = vec![0; len];
            rng.fill(&mut bytes);
            bytes.iter().map(|byte| char::from(ICE_CHARS[usize::from(byte & 63)])).collect()
        };
        Self { ufrag: text(UFRAG_LEN), password: text(PASSWORD_LEN) }
    }
}

/// The user name fragment of ours in a check; `None` if the message is not a check.
pub(crate) fn local_ufrag(datagram: &[u8]) -> Option<String> {
    let message = parse(datagram).filter(StunMessage::is_binding_request)?;
    message.split_username().map(|(local, _)| local.to_owned())
}

fn parse(datagram: &[u8]) -> Option<StunMessage<'_>> {
    let datagram = Some(datagram).filter(|datagram| datagram.len() <= MAX_STUN_BYTES)?;
    StunMessage::parse(datagram).ok()
}

/// The properties that an ICE restart does not change (RFC 8445 §9).
#[derive(Clone)]
pub(crate) struct Role {
    pub(crate) mode: IceMode,
    pub(crate) is_controlling: bool,
    /// The addresses of this side at TURN servers.
    pub(crate) relayed: Vec<SocketAddr>,
    /// Whether data is sent and received by TURN servers only.
    pub(crate) is_relay_only: bool,
}

/// The ICE agent of one peer, with one pair of credentials.
pub(crate) struct Generation {
    agent: IceAgent,
    credentials: Credentials,
    origin: std::time::Instant,
    is_lite: bool,
    relayed: Vec<SocketAddr>,
    is_relay_only: bool,
    /// The peer's credentials.
    remote: Option<Credentials>,
    /// The route to the peer, once a pair is nominated.
    nominated: Option<Route>,
    /// The addresses from which the peer has sent authenticated STUN messages.
    sources: Vec<SocketAddr>,
    /// Our addresses as the peer sees them, beyond NATs.
    mapped: Vec<SocketAddr>,
    /// The time at which the peer last consented (RFC 7675).
    consent_at: Option<Instant>,
    timeout: Option<Instant>,
}

impl Generation {
    #[expect(clippy::disallowed_methods, reason = "an origin, of which only differences are used")]
    pub(crate) fn new(role: &Role, rng: &mut Rng) -> Self {
        let &Role { mode, is_controlling, ref relayed, is_relay_only } = role;
        let credentials = Credentials::new(rng);
        let Credentials { ufrag, password } = credentials.clone();
        let mut agent = IceAgent::new(IceCreds { ufrag, pass: password });
        let is_lite = mode == IceMode::Lite;
        agent.set_control_tie_breaker(rng.u64());
        agent.set_ice_lite(is_lite);
        // A lite agent is the controlled one (RFC 8445 §6.1.1).
        agent.set_controlling(is_controlling && !is_lite);
        for local in [LOCAL_V4, LOCAL_V6].into_iter().filter(|_| !is_relay_only) {
            let candidate = Candidate::host(local, "udp").expect("an address of one host");
            agent.add_local_candidate(candidate);
        }
        for &address in relayed {
            if let Ok(candidate) = Candidate::relayed(address, local_for(address), "udp") {
                agent.add_local_candidate(candidate);
            }
        }
        let origin = std::time::Instant::now();
        Self {
            agent,
            credentials,
            origin,
            is_lite,
            relayed: relayed.clone(),
            is_relay_only,
            remote: None,
            nominated: None,
            sources: Vec::new(),
            mapped: Vec::new(),
            consent_at: None,
            timeout: None,
        }
    }

    /// The credentials of this side.
    pub(crate) const fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// The peer's credentials; `None` before its description is known.
    pub(crate) const fn remote(&self) -> Option<&Credentials> {
        self.remote.as_ref()
    }

    pub(crate) const fn has_remote(&self) -> bool {
        self.remote.is_some()
    }

    pub(crate) fn set_remote(&mut self, now: Instant, remote: &Description) {
        let credentials = Credentials::of(remote);
        let Credentials { ufrag, password } = credentials.clone();
        self.remote = Some(credentials);
        self.agent.set_remote_credentials(IceCreds { ufrag, pass: password });
        if remote.is_lite && !self.is_lite {
            self.agent.set_controlling(true);
        }
        if !self.is_lite {
            for candidate in &remote.candidates {
                self.add_candidate(candidate);
            }
        }
        self.handle_timeout(now);
    }

    /// Adds a candidate address of the peer. A lite agent, which sends no checks, ignores it.
    pub(crate) fn add_candidate(&mut self, candidate: &crate::Candidate) {
        let is_known = self.agent.remote_candidates().count() >= MAX_PEER_ADDRESSES;
        if !self.is_lite
            && !is_known
            && let Ok(candidate) = Candidate::from_sdp_string(&candidate.to_string())
        {
            self.agent.add_remote_candidate(candidate);
        }
    }

    fn at(&self, now: Instant) -> std::time::Instant {
        self.origin + Duration::from_nanos(now.as_nanos())
    }

    /// Handles a STUN message. Returns whether it is the peer's.
    pub(crate) fn handle_input(&mut self, now: Instant, route: Route, datagram: &[u8]) -> bool {
        let source = route.remote;
        let is_new = !self.sources.contains(&source);
        let Some(message) = parse(datagram).filter(|_| self.has_remote()) else { return false };
        let is_response = message.is_successful_binding_response();
        if is_new && self.sources.len() >= MAX_PEER_ADDRESSES {
            return false;
        }
        let mapped = message.mapped_address().filter(|_| is_response);
        let is_new_mapped = mapped.is_some_and(|mapped| !self.mapped.contains(&mapped));
        if is_new_mapped && self.mapped.len() >= MAX_MAPPED {
            return false;
        }
        let is_relayed = self.relayed.contains(&route.local);
        if self.is_relay_only && !is_relayed {
            return false;
        }
        let destination = if is_relayed { route.local } else { local_for(source) };
        let packet = StunPacket { proto: Protocol::Udp, source, destination, message };
        if !self.agent.handle_packet(self.at(now), packet) {
            return false;
        }
        if is_new {
            self.sources.push(source);
        }
        if is_new_mapped {
            self.mapped.extend(mapped);
        }
        self.handle_timeout(now);
        // Consent is of one address (RFC 7675 §5.1): checks from elsewhere must not keep data flowing there.
        let is_there = self.nominated.is_none_or(|nominated| nominated.remote == source);
        if is_response || self.is_lite && is_there {
            self.consent_at = Some(now);
        }
        true
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if !self.has_remote() {
            return;
        }
        self.agent.handle_timeout(self.at(now));
        while let Some(event) = self.agent.poll_event() {
            if let IceAgentEvent::NominatedSend { source, destination, .. } = event {
                self.nominated = Some(route(source, destination));
            }
        }
        self.schedule();
    }

    fn schedule(&mut self) {
        let at = self.agent.poll_timeout().filter(|_| !self.is_lite || self.nominated.is_none());
        self.timeout = at.map(|at| Instant::ZERO + at.saturating_duration_since(self.origin));
    }

    pub(crate) fn poll_transmit(&mut self) -> Option<(Route, Vec<u8>)> {
        let transmit = self.agent.poll_transmit()?;
        let datagram: Vec<u8> = transmit.contents.into();
        Some((route(transmit.source, transmit.destination), datagram))
    }

    pub(crate) const fn poll_timeout(&self) -> Option<Instant> {
        self.timeout
    }

    /// An address to which the handshake may be sent already. A browser nominates a pair to a lite agent only with its
    /// second check, a round trip after the one that reveals its address.
    pub(crate) fn destination(&self) -> Option<Route> {
        let shown = self.sources.last().filter(|_| self.is_lite);
        self.nominated.or(shown.map(|&remote| route(local_for(remote), remote)))
    }

    /// The route of data; `None` before a pair is nominated.
    pub(crate) const fn nominated(&self) -> Option<Route> {
        self.nominated
    }

    /// The addresses from which the peer has sent authenticated STUN messages.
    pub(crate) fn sources(&self) -> &[SocketAddr] {
        &self.sources
    }

    pub(crate) const fn consent_at(&self) -> Option<Instant> {
        self.consent_at
    }

    /// The round-trip time of the last check that was answered.
    pub(crate) fn round_trip(&self) -> Option<Duration> {
        self.agent.nominated_pair_rtt()
    }
}

#[cfg(test)]
mod tests {
    use is::{DefaultSha1HmacProvider, Sha1HmacProvider as _};
    use rexmit_core::Seed;

    use super::*;
    use crate::Setup;

    const PEER: &str = "198.51.100.1:4000";

    /// A full agent that knows the peer's description; also returns the peer's password.
    fn checking() -> (Generation, String) {
        let mut rng = Seed::from_u64(1).rng();
        let peers = Credentials::new(&mut rng);
        let role = Role {
            mode: IceMode::Full,
            is_controlling: true,
            relayed: Vec::new(),
            is_relay_only: false,
        };
        let mut ice = Generation::new(&role, &mut rng);
        let remote = Description {
            session: 1,
            version: 1,
            mid: "0".to_owned(),
            ufrag: peers.ufrag,
            password: peers.password.clone(),
            is_lite: false,
            fingerprints: Vec::new(),
            setup: Setup::Active,
            sctp_port: 5000,
            max_message_bytes: 1,
            candidates: vec![crate::Candidate::host(0, PEER.parse().unwrap())],
        };
        ice.set_remote(Instant::from_millis(1), &remote);
        (ice, peers.password)
    }

    #[test]
    fn a_peer_that_sees_us_at_ever_other_addresses_is_not_believed_without_limit() {
        let (mut ice, password) = checking();
        let (_, check) = ice.poll_transmit().expect("a check");
        let number = parse(&check).expect("STUN").trans_id();
        let hmac = |key: &[u8], parts: &[&[u8]]| DefaultSha1HmacProvider.sha1_hmac(key, parts);
        let route = route(LOCAL_V4, PEER.parse().unwrap());
        let mut accepted = 0;
        for n in 0..100 {
            let mapped = SocketAddr::new([203, 0, 113, n].into(), 9);
            let mut response = vec![0; 256];
            let reply = StunMessage::binding_reply(number, mapped);
            let len = reply.to_bytes(Some(password.as_bytes()), &mut response, hmac).unwrap();
            let now = Instant::from_millis(2);
            accepted += usize::from(ice.handle_input(now, route, &response[..len]));
        }
        assert_eq!((accepted, ice.mapped.len()), (MAX_MAPPED, MAX_MAPPED));
    }

    #[test]
    fn credentials_are_of_ice_characters_and_differ() {
        let mut rng = Seed::from_u64(1).rng();
        let all = [(); 50].map(|()| Credentials::new(&mut rng));
        for Credentials { ufrag, password } in &all {
            assert_eq!((ufrag.len(), password.len()), (UFRAG_LEN, PASSWORD_LEN));
            let is_ice_char = |b: u8| b.is_ascii_alphanumeric() || b == b'+' || b == b'/';
            assert!(ufrag.bytes().chain(password.bytes()).all(is_ice_char));
        }
        let ufrags: std::collections::BTreeSet<_> = all.iter().map(|it| &it.ufrag).collect();
        assert_eq!(ufrags.len(), all.len());
    }
}
