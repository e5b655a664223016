//! WebRTC data channels (RFC 8831) for servers and native clients, whose peers may be browsers.
//!
//! An [`Agent`] is one side of one connection, without I/O: ICE by the crate `is`, DTLS by [`rexmit_dtls`], SCTP with
//! this project's loss recovery by [`rexmit_sctp`]. [`Peers`] manages many agents behind one UDP port. With the feature
//! `tokio`, a default, [`Server`] runs them on a socket.
//!
//! # The contract
//! - **The peer is the one that its description names.** A peer whose certificate has another fingerprint is refused,
//!   and [`CloseReason::Dtls`] names that fingerprint. The description itself must be authenticated by the channel that
//!   transports it (HTTPS).
//! - **No state for unknown peers.** STUN messages that name no agent or are not authenticated by its
//!   password, and DTLS records from addresses that ICE has not validated, are dropped.
//! - **Nothing is sent to a peer without its consent** (RFC 7675), which expires
//!   [`AgentConfig::consent_timeout`] after its last check or answer.
//! - No datagram can make it panic, or use more memory than its limits allow: [`AgentConfig`],
//!   [`MAX_DESCRIPTION_BYTES`], [`MAX_CANDIDATES`], [`MAX_FINGERPRINTS`], [`MAX_PEER_ADDRESSES`],
//!   [`MAX_RELAYED_HOSTS`].
//!
//! # Not supported
//! - Audio and video; ICE over TCP, and TURN over TCP or TLS.

mod agent;
mod association;
mod channel;
mod channels;
mod config;
mod dcep;
mod error;
mod event;
mod ice;
mod message;
mod peers;
mod sdp;
#[cfg(feature = "tokio")]
mod server;
mod servers;

pub use agent::Agent;
pub use channel::{ChannelConfig, ChannelId};
pub use config::{AgentConfig, IceMode, MAX_DATAGRAM_BYTES, Settings};
pub use error::{CloseReason, OfferError, OpenError, SendError, Stage, TrySendError};
pub use event::Event;
pub use ice::MAX_PEER_ADDRESSES;
pub use message::Message;
pub use peers::{PeerId, Peers, ServeConfig, ServeStatistics};
pub use sdp::{
    Candidate, CandidateKind, Description, MAX_CANDIDATES, MAX_DESCRIPTION_BYTES, MAX_FINGERPRINTS,
    SdpError, SdpFault, Setup,
};
#[cfg(feature = "tokio")]
pub use server::{BindError, Connection, Sender, Server};
pub use servers::{GATHER_TIMEOUT, IceServer, MAX_ICE_SERVERS, MAX_RELAYED_HOSTS};

/// The code of the README and of the page about browsers, compiled by `cargo test --doc`.
#[cfg(all(doctest, feature = "tokio"))]
mod documents {
    #[doc = include_str!("../README.md")]
    struct Readme;
    #[doc = include_str!("../../../docs/browsers.md")]
    struct Browsers;
}
