//! ICE (RFC 8445) of one peer, by the crate `is`: with bounded state, and with consent (RFC 7675).
//!
//! There is one socket, whose own address does not matter to ICE: a placeholder address per IP version stands
//! for it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use is::stun::{StunMessage, StunPacket};
use is::{Candidate, IceAgent, IceAgentEvent, IceCreds, Protocol};
use rexmit_core::{Instant, Rng};

use crate::config::IceMode;
use crate::sdp::Description;

/// The most addresses from which a peer may send checks; checks from others are dropped.
pub const MAX_PEER_ADDRESSES: usize = 32;
/// Addresses of ours that a peer has seen, at most.
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

/// The credentials with which both sides authenticate their checks.
#[derive(Clone)]
pub(crate) struct Credentials {
    pub(crate) ufrag: String,
    pub(crate) password: String,
}

impl Credentials {
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

/// The user name fragment of ours that a check names, whatever else is in it; `None` if it is no check.
pub(crate) fn local_ufrag(datagram: &[u8]) -> Option<String> {
    let message = parse(datagram).filter(StunMessage::is_binding_request)?;
    message.split_username().map(|(local, _)| local.to_owned())
}

fn parse(datagram: &[u8]) -> Option<StunMessage<'_>> {
    let datagram = Some(datagram).filter(|datagram| datagram.len() <= MAX_STUN_BYTES)?;
    StunMessage::parse(datagram).ok()
}

/// The ICE agent of one peer.
pub(crate) struct Ice {
    agent: IceAgent,
    origin: std::time::Instant,
    is_lite: bool,
    has_remote: bool,
    /// The peer's address, once a pair is nominated.
    nominated: Option<SocketAddr>,
    /// The addresses from which the peer has sent authenticated STUN messages.
    sources: Vec<SocketAddr>,
    /// Our addresses as the peer sees them, beyond NATs.
    mapped: Vec<SocketAddr>,
    /// The time at which the peer last consented (RFC 7675).
    consent_at: Option<Instant>,
    timeout: Option<Instant>,
}

impl Ice {
    #[expect(clippy::disallowed_methods, reason = "an origin, of which only differences are used")]
    pub(crate) fn new(
        credentials: &Credentials,
        mode: IceMode,
        is_controlling: bool,
        rng: &mut Rng,
    ) -> Self {
        let Credentials { ufrag, password } = credentials.clone();
        let mut agent = IceAgent::new(IceCreds { ufrag, pass: password });
        let is_lite = mode == IceMode::Lite;
        agent.set_control_tie_breaker(rng.u64());
        agent.set_ice_lite(is_lite);
        // A lite agent is the controlled one (RFC 8445 §6.1.1).
        agent.set_controlling(is_controlling && !is_lite);
        for local in [LOCAL_V4, LOCAL_V6] {
            let candidate = Candidate::host(local, "udp").expect("an address of one host");
            agent.add_local_candidate(candidate);
        }
        let origin = std::time::Instant::now();
        Self {
            agent,
            origin,
            is_lite,
            has_remote: false,
            nominated: None,
            sources: Vec::new(),
            mapped: Vec::new(),
            consent_at: None,
            timeout: None,
        }
    }

    pub(crate) fn set_remote(&mut self, now: Instant, remote: &Description) {
        self.has_remote = true;
        let credentials = IceCreds { ufrag: remote.ufrag.clone(), pass: remote.password.clone() };
        self.agent.set_remote_credentials(credentials);
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
    pub(crate) fn handle_input(
        &mut self,
        now: Instant,
        source: SocketAddr,
        datagram: &[u8],
    ) -> bool {
        let is_new = !self.sources.contains(&source);
        let Some(message) = parse(datagram).filter(|_| self.has_remote) else { return false };
        let is_response = message.is_successful_binding_response();
        if is_new && self.sources.len() >= MAX_PEER_ADDRESSES {
            return false;
        }
        let mapped = message.mapped_address().filter(|_| is_response);
        let is_new_mapped = mapped.is_some_and(|mapped| !self.mapped.contains(&mapped));
        if is_new_mapped && self.mapped.len() >= MAX_MAPPED {
            return false;
        }
        let packet =
            StunPacket { proto: Protocol::Udp, source, destination: local_for(source), message };
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
        let is_there = self.nominated.is_none_or(|nominated| nominated == source);
        if is_response || self.is_lite && is_there {
            self.consent_at = Some(now);
        }
        true
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if !self.has_remote {
            return;
        }
        self.agent.handle_timeout(self.at(now));
        while let Some(event) = self.agent.poll_event() {
            if let IceAgentEvent::NominatedSend { destination, .. } = event {
                self.nominated = Some(destination);
            }
        }
        self.schedule();
    }

    fn schedule(&mut self) {
        let at = self.agent.poll_timeout().filter(|_| !self.is_lite || self.nominated.is_none());
        self.timeout = at.map(|at| Instant::ZERO + at.saturating_duration_since(self.origin));
    }

    pub(crate) fn poll_transmit(&mut self) -> Option<(SocketAddr, Vec<u8>)> {
        let transmit = self.agent.poll_transmit()?;
        let datagram: Vec<u8> = transmit.contents.into();
        Some((transmit.destination, datagram))
    }

    pub(crate) const fn poll_timeout(&self) -> Option<Instant> {
        self.timeout
    }

    /// Where the handshake may be sent already: a browser nominates a pair to a lite agent only with its second check, a
    /// round trip after the one that shows where it is.
    pub(crate) fn destination(&self) -> Option<SocketAddr> {
        let shown = self.sources.last().copied().filter(|_| self.is_lite);
        self.nominated.or(shown)
    }

    /// The address to which data is sent; `None` before a pair is nominated.
    pub(crate) const fn nominated(&self) -> Option<SocketAddr> {
        self.nominated
    }

    /// Whether the peer has sent an authenticated check from there; other datagrams are dropped.
    pub(crate) fn is_source(&self, address: SocketAddr) -> bool {
        self.sources.contains(&address)
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

    /// A full agent, and its peer's password.
    fn checking() -> (Ice, String) {
        let mut rng = Seed::from_u64(1).rng();
        let [own, peers] = [(); 2].map(|()| Credentials::new(&mut rng));
        let mut ice = Ice::new(&own, IceMode::Full, true, &mut rng);
        let remote = Description {
            session: 1,
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
        let source = PEER.parse().unwrap();
        let mut accepted = 0;
        for n in 0..100 {
            let mapped = SocketAddr::new([203, 0, 113, n].into(), 9);
            let mut response = vec![0; 256];
            let reply = StunMessage::binding_reply(number, mapped);
            let len = reply.to_bytes(Some(password.as_bytes()), &mut response, hmac).unwrap();
            let now = Instant::from_millis(2);
            accepted += usize::from(ice.handle_input(now, source, &response[..len]));
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
