//! Offers and answers of an agent (RFC 8829 §5.2, §5.3).

use rexmit_core::{Instant, Seed};

use super::{Agent, Peer};
use crate::config::SCTP_PORT;
use crate::{Candidate, Description, IceMode, OfferError, Settings, Setup};

impl Agent {
    /// An agent that makes an offer; [`accept`](Self::accept) takes the peer's answer. The ICE credentials
    /// are drawn from `seed`, which must have full entropy on a real network. DTLS draws its keys from the
    /// system.
    #[must_use]
    pub fn offer(now: Instant, settings: Settings, seed: &Seed) -> (Self, Description) {
        let mut agent = Self::new(now, settings, seed, true);
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

    /// Applies the peer's answer to the offer, or to the one of [`restart_ice`](Self::restart_ice).
    ///
    /// # Errors
    /// If the answer does not fit the offer; the agent still waits for one.
    pub fn accept(&mut self, now: Instant, answer: &Description) -> Result<(), OfferError> {
        if !self.ice.is_waiting() || self.is_closed() {
            return Err(OfferError::NotWaiting);
        } else if answer.is_lite && self.settings.config.ice == IceMode::Lite {
            return Err(OfferError::BothLite);
        }
        let is_client = match answer.setup {
            Setup::Active => false,
            Setup::Passive => true,
            Setup::ActPass => return Err(OfferError::Setup("actpass", "answer")),
        };
        if let Some(peer) = &self.peer {
            // Firefox answers `active` whatever its role in the association is, which goes on.
            peer.is_same(answer, None)?;
            self.ice.set_remote(now, answer);
            self.advance(now);
        } else {
            self.set_peer(now, answer, is_client);
        }
        Ok(())
    }

    /// Restarts ICE (RFC 8445 §9), for example after a change of networks: draws new credentials, and returns the
    /// offer; [`accept`](Self::accept) takes the peer's answer. Encryption, association and channels continue, and data
    /// uses the present pair of addresses until there is a new one, which
    /// [`Event::IceRestarted`](crate::Event::IceRestarted) reports. Without a new pair within
    /// [`setup_timeout`](crate::AgentConfig::setup_timeout) the restart is abandoned. An earlier restart that has not
    /// found a pair is replaced.
    ///
    /// # Errors
    /// If there is no connection: the peer's answer to the first offer is missing, or the connection has ended.
    pub fn restart_ice(&mut self, now: Instant) -> Result<Description, OfferError> {
        let Some(peer) = self.peer.as_ref().filter(|_| !self.is_closed()) else {
            return Err(OfferError::NoConnection);
        };
        let mid = peer.mid.clone();
        self.ice.restart(now + self.settings.config.setup_timeout);
        Ok(self.describe(mid, Setup::ActPass))
    }

    /// Answers an offer for the existing connection: an ICE restart if its credentials are new, see
    /// [`restart_ice`](Self::restart_ice). A restart of this side that waits for its answer is abandoned; if both sides
    /// restart at the same time, one of them must therefore ignore the other's offer.
    ///
    /// # Errors
    /// If there is no connection, or the offer is for a new one: by other fingerprints, DTLS roles or SCTP ports.
    pub fn answer_again(
        &mut self,
        now: Instant,
        offer: &Description,
    ) -> Result<Description, OfferError> {
        let Some(peer) = self.peer.as_ref().filter(|_| !self.is_closed()) else {
            return Err(OfferError::NoConnection);
        };
        if offer.is_lite && self.settings.config.ice == IceMode::Lite {
            return Err(OfferError::BothLite);
        }
        let is_client = match offer.setup {
            Setup::ActPass => None,
            Setup::Active => Some(false),
            Setup::Passive => Some(true),
        };
        peer.is_same(offer, is_client)?;
        let setup = if peer.is_client { Setup::Active } else { Setup::Passive };
        if self.ice.is_restart(offer) {
            self.ice.restart(now + self.settings.config.setup_timeout);
            self.ice.set_remote(now, offer);
        }
        let answer = self.describe(offer.mid.clone(), setup);
        self.advance(now);
        Ok(answer)
    }

    /// Adds an address at which the peer may be reached (trickle ICE, RFC 8838).
    pub fn add_candidate(&mut self, now: Instant, candidate: &Candidate) {
        self.ice.add_candidate(now, candidate);
    }

    fn set_peer(&mut self, now: Instant, peer: &Description, is_client: bool) {
        self.peer = Some(Peer {
            fingerprints: peer.fingerprints.clone(),
            mid: peer.mid.clone(),
            sctp_port: peer.sctp_port,
            max_message_bytes: peer.max_message_bytes,
            is_client,
        });
        self.channels.set_role(is_client);
        self.ice.set_remote(now, peer);
        self.advance(now);
    }

    fn describe(&mut self, mid: String, setup: Setup) -> Description {
        self.version += 1;
        let config = &self.settings.config;
        let credentials = self.ice.credentials().clone();
        Description {
            session: self.session_number,
            version: self.version,
            mid,
            ufrag: credentials.ufrag,
            password: credentials.password,
            is_lite: config.ice == IceMode::Lite,
            fingerprints: vec![config.identity.fingerprint()],
            setup,
            sctp_port: SCTP_PORT,
            max_message_bytes: self.settings.endpoint.association.messages.max_bytes,
            candidates: self.settings.candidates.to_vec(),
        }
    }
}

impl Peer {
    /// Checks that a later description is for the same DTLS and SCTP associations (RFC 8842 §5.5, RFC 8841 §9.3).
    fn is_same(
        &self,
        description: &Description,
        is_client: Option<bool>,
    ) -> Result<(), OfferError> {
        let is_known = description.fingerprints.iter().all(|it| self.fingerprints.contains(it));
        let is_same_role = is_client.is_none_or(|is_client| is_client == self.is_client);
        if is_known && is_same_role && description.sctp_port == self.sctp_port {
            Ok(())
        } else {
            Err(OfferError::OtherConnection)
        }
    }
}
