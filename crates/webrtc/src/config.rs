//! Parameters of agents.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rexmit_core::config;
use rexmit_dtls::{Identity, SESSION_OVERHEAD_BYTES, SessionSettings};
use rexmit_sctp::{AssociationConfig, ConfigError, EndpointConfig};

use crate::{Candidate, CandidateKind};

/// The largest DTLS datagram in bytes, without UDP and IP headers: the value of RFC 8831 §5 without path MTU
/// discovery.
pub const MAX_DATAGRAM_BYTES: usize = 1200;
/// The SCTP port of both sides. Any would do, because each pair of peers has its own association.
pub(crate) const SCTP_PORT: u16 = 5000;

/// The ICE role of this side (RFC 8445 §2.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum IceMode {
    /// Sends checks of its own, and sends data only to an address that has answered one.
    #[default]
    Full,
    /// Only answers checks: for servers that peers can reach at their [addresses](AgentConfig::addresses).
    /// Connecting takes a round trip less, and there are no timers. An attacker who captures a check of the
    /// peer and sends it from elsewhere can direct data there. Two lite agents cannot connect.
    Lite,
}

config! {
    /// The configuration of an agent.
    ///
    /// ```
    /// use rexmit_dtls::Identity;
    /// use rexmit_sctp::AssociationConfig;
    /// use rexmit_webrtc::AgentConfig;
    ///
    /// let config = AgentConfig::new(Identity::generate()?)
    ///     .addresses(vec!["192.0.2.1:4000".parse()?])
    ///     .association(AssociationConfig::interactive_redundant());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[derive(Clone, Debug)]
    pub struct AgentConfig {
        /// The certificate, whose fingerprint is in offers and answers.
        pub identity: Identity,
        /// The addresses of this host as peers see them, which are its ICE candidates. Default none, which suffices for
        /// a client.
        pub addresses: Vec<SocketAddr>,
        /// The ICE role. Default full.
        pub ice: IceMode,
        /// The configuration of the SCTP association: its recovery profile and limits. The agent sets
        /// addresses, packet sizes and reports. Default `interactive`, with 1024 streams each way.
        pub association: AssociationConfig,
        /// The most channels at one time; further ones that the peer opens are closed. Default 1024.
        pub max_channels: usize,
        /// The most bytes of a channel's label and protocol together. Default 1024.
        pub max_label_bytes: usize,
        /// The time limit for setting up a connection. Default 30 s.
        pub setup_timeout: Duration,
        /// The connection ends if the peer's consent (RFC 7675 §5.1) is older than this: since its last
        /// answer to a check of ours or, with ICE-lite, since its last check. Default 30 s.
        pub consent_timeout: Duration,
        /// The time until a DTLS flight is retransmitted first; it doubles with each retransmission. Default
        /// 250 ms.
        pub handshake_retransmit_after: Duration,
    }
}

impl AgentConfig {
    /// The default configuration, with this identity.
    #[must_use]
    pub fn new(identity: Identity) -> Self {
        let association =
            AssociationConfig::interactive().outbound_streams(1024).max_inbound_streams(1024);
        Self {
            identity,
            addresses: Vec::new(),
            ice: IceMode::Full,
            association,
            max_channels: 1024,
            max_label_bytes: 1024,
            setup_timeout: Duration::from_secs(30),
            consent_timeout: Duration::from_secs(30),
            handshake_retransmit_after: Duration::from_millis(250),
        }
    }
}

/// A validated configuration, with the state that all its agents share.
#[derive(Clone, Debug)]
pub struct Settings {
    pub(crate) config: Arc<AgentConfig>,
    pub(crate) sessions: SessionSettings,
    pub(crate) endpoint: EndpointConfig,
    /// Of this side.
    pub(crate) candidates: Arc<[Candidate]>,
    /// Whether data is sent by TURN servers only.
    pub(crate) is_relay_only: bool,
}

impl Settings {
    /// Validates a configuration.
    ///
    /// # Errors
    /// If a value of the association's configuration is out of range.
    pub fn new(config: AgentConfig) -> Result<Self, ConfigError> {
        let room = (MAX_DATAGRAM_BYTES - SESSION_OVERHEAD_BYTES) & !3;
        let packet = config.association.max_packet_bytes.min(room);
        // The path is ICE's: it neither fails nor changes for SCTP.
        let association = config.association.clone();
        let association = association
            .max_packet_bytes(packet)
            .path_mtu(None) // A TURN server or another candidate pair may have a smaller one at any time.
            .dynamic_addresses(false)
            .report_sent(true)
            .zero_checksum(true);
        association.validate()?;
        let endpoint = EndpointConfig::default()
            .port(SCTP_PORT)
            .accept(true)
            .max_associations(1)
            .association(Arc::new(association));
        let sessions = SessionSettings::new(
            config.identity.clone(),
            MAX_DATAGRAM_BYTES,
            config.handshake_retransmit_after,
            config.setup_timeout,
        );
        let addresses = config.addresses.iter().enumerate();
        let candidates = addresses.map(|(n, &address)| Candidate::host(n, address)).collect();
        Ok(Self { config: Arc::new(config), sessions, endpoint, candidates, is_relay_only: false })
    }

    /// The addresses of this side at TURN servers. An ICE-lite agent has none (RFC 8445 §2.5).
    pub(crate) fn relayed(&self) -> Vec<SocketAddr> {
        let is_full = self.config.ice == IceMode::Full;
        let relayed = |it: &&Candidate| is_full && it.kind == CandidateKind::Relayed;
        self.candidates.iter().filter(relayed).map(|it| it.address).collect()
    }
}
