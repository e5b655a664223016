//! Offers and answers of an agent (RFC 8829 §5.2, §5.3).

use rexmit_core::{Instant, Seed};
use rexmit_dtls::Trust;

use super::{Agent, Peer};
use crate::config::SCTP_PORT;
use crate::{Candidate, Description, IceMode, OfferError, Settings, Setup};

impl Agent {
    /// An agent that makes an offer; [`accept`](Self::accept) takes the peer's answer. The ICE credentials
    /// are drawn from `seed`, which must have full entropy on a real network. DTLS draws its keys from the
    /// system.
    #[must_use]
    pub fn offer(now: Instant, settings: Settings, seed: &Seed) -> (Self, Description) {
        let agent = Self::new(now, settings, seed, true);
        let offer = agent.describe("0".to_owned(), Setup::ActPass);
        (agent, offer)
    }

    /// An agent for the peer that made `offer`, and the answer.
    ///
    /// # Errors
    /// If the offer cannot lead to a connection.
    pub fn answer(
        now: Instant,
        settings: Settings,
        offer: &Description,
        seed: &Seed,
    ) -> Result<(Self, Description), OfferError> {
        if offer.is_lite && settings.config.ice == IceMode::Lite {
            return Err(OfferError::BothLite);
        }
        // RFC 8842 §5.3: active, so that the handshake begins as soon as there is a way.
        let setup = match offer.setup {
            Setup::ActPass | Setup::Passive => Setup::Active,
            Setup::Active => Setup::Passive,
        };
        let mut agent = Self::new(now, settings, seed, false);
        agent.set_peer(now, offer, setup == Setup::Active);
        let answer = agent.describe(offer.mid.clone(), setup);
        Ok((agent, answer))
    }

    /// Applies the peer's answer to the offer.
    ///
    /// # Errors
    /// If the answer does not fit the offer; the agent still waits for one.
    pub fn accept(&mut self, now: Instant, answer: &Description) -> Result<(), OfferError> {
        if self.peer.is_some() || self.is_closed() {
            return Err(OfferError::NotWaiting);
        } else if answer.is_lite && self.settings.config.ice == IceMode::Lite {
            return Err(OfferError::BothLite);
        }
        let is_client = match answer.setup {
            Setup::Active => false,
            Setup::Passive => true,
            Setup::ActPass => return Err(OfferError::Setup("actpass", "answer")),
        };
        self.set_peer(now, answer, is_client);
        Ok(())
    }

    /// Adds an address at which the peer may be reached (trickle ICE, RFC 8838).
    pub fn add_candidate(&mut self, now: Instant, candidate: &Candidate) {
        self.ice.add_candidate(candidate);
        self.ice.handle_timeout(now);
    }

    fn set_peer(&mut self, now: Instant, peer: &Description, is_client: bool) {
        self.peer = Some(Peer {
            trust: Trust::only(peer.fingerprints.iter().copied()),
            sctp_port: peer.sctp_port,
            max_message_bytes: peer.max_message_bytes,
            is_client,
        });
        self.channels.set_role(is_client);
        self.ice.set_remote(now, peer);
        self.advance(now);
    }

    fn describe(&self, mid: String, setup: Setup) -> Description {
        let config = &self.settings.config;
        let addresses = config.addresses.iter().enumerate();
        Description {
            session: self.session_number,
            mid,
            ufrag: self.credentials.ufrag.clone(),
            password: self.credentials.password.clone(),
            is_lite: config.ice == IceMode::Lite,
            fingerprints: vec![config.identity.fingerprint()],
            setup,
            sctp_port: SCTP_PORT,
            max_message_bytes: self.settings.endpoint.association.messages.max_bytes,
            candidates: addresses.map(|(n, &address)| Candidate::host(n, address)).collect(),
        }
    }
}
