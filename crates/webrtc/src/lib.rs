//! WebRTC data channels (RFC 8831) for servers and native clients: every browser is a peer.
//!
//! An [`Agent`] is one side of one connection, without I/O: ICE by the crate `is`, DTLS by [`rexmit_dtls`], SCTP with
//! this project's loss recovery by [`rexmit_sctp`]. [`Peers`] are many of them behind one UDP port. With the feature
//! `tokio`, a default, [`Server`] runs them on a socket.
//!
//! # The contract
//! - **The peer is who its description says.** A peer whose certificate has another fingerprint is refused, and
//!   [`CloseReason::Dtls`] names the fingerprint that it has. Who the author of the description is, is for the way by
//!   which it came (HTTPS).
//! - **No state for strangers.** A STUN message that names no agent, or is not authenticated by its password, and a
//!   DTLS record from an address that ICE has not validated are dropped.
//! - **Nothing is sent to a peer without its consent** (RFC 7675), which ends [`AgentConfig::consent_limit`] after it
//!   was last heard.
//! - Nothing that arrives can make it panic or grow beyond its limits: [`AgentConfig`], [`MAX_DESCRIPTION_BYTES`],
//!   [`MAX_CANDIDATES`], [`MAX_FINGERPRINTS`], [`MAX_PEER_ADDRESSES`].
//!
//! # What there is not
//! - Audio and video; candidates from STUN and TURN servers; ICE over TCP; ICE restarts.
//! - Priorities of channels are carried, but do not change the order of sending.

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

pub use agent::Agent;
pub use channel::{ChannelConfig, ChannelId};
pub use config::{AgentConfig, IceMode, MAX_DATAGRAM_BYTES, Settings};
pub use error::{CloseReason, OfferError, OpenError, SendError, Stage};
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

/// The code of the README is compiled.
#[cfg(all(doctest, feature = "tokio"))]
#[doc = include_str!("../README.md")]
struct Readme;
