//! Reliable transport that recovers from loss before its users notice: SCTP (RFC 9260) and TCP
//! (RFC 9293) in user space, with an async API on tokio.
//!
//! An [`Endpoint`] is a socket that serves associations. An [`Association`] connects two endpoints: it carries
//! messages, not bytes, over many streams, so that a loss on one delays no other, and reports each message that was not
//! delivered. A [`Stream`] is a handle of one of its outgoing streams. TCP is in [`tcp`]: a stack over a TUN device,
//! listeners and byte streams.
//!
//! An echo server and its client:
//!
#![cfg_attr(feature = "dtls", doc = "```")]
#![cfg_attr(not(feature = "dtls"), doc = "```ignore")]
//! use rexmit::{Association, Endpoint, Identity, Trust};
//!
//! # type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;
//! async fn serve(server: Endpoint) {
//!     while let Some(association) = server.accept().await {
//!         tokio::spawn(async move {
//!             while let Some(message) = association.recv().await {
//!                 if association.stream(message.stream).send(message.payload).await.is_err() {
//!                     break; // The client is closing.
//!                 }
//!             }
//!         });
//!     }
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<()> {
//!     // Clients know the server by the fingerprint of its certificate; the server accepts any client.
//!     let identity = Identity::generate()?;
//!     let trust = Trust::only([identity.fingerprint()]);
//!     let server = Endpoint::listen("127.0.0.1:0", identity).await?;
//!     let address = server.local_addr();
//!     tokio::spawn(serve(server));
//!
//!     let association = Association::connect(address, trust).await?;
//!     association.stream(3).send("hello").await?;
//!     let echo = association.recv().await.ok_or("the server closed")?;
//!     assert_eq!((echo.stream, &echo.payload[..]), (3, &b"hello"[..]));
//!     association.shutdown().await;
//!     Ok(())
//! }
//! ```
//!
//! # Recovery profiles
//!
//! Loss recovery of an association is configured by [`AssociationConfig::recovery`], which has named profiles:
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use rexmit::{Association, AssociationConfig, Endpoint};
//!
//! let profile = AssociationConfig::interactive_redundant();
//! let server = Endpoint::listen_unencrypted("127.0.0.1:0", profile.clone()).await?;
//! let association = Association::connect_unencrypted(server.local_addr(), profile).await?;
//! # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
//! ```
//!
//! # Delivery
//!
//! A message is delivered in the order of its stream, and retransmitted until the association ends, unless
//! its [`Delivery`] says otherwise:
//!
//! ```
//! # async fn example(association: rexmit::Association) -> Result<(), rexmit::SendError> {
//! use rexmit::Delivery;
//! use std::time::Duration;
//!
//! let position = Delivery::unordered().lifetime(Duration::from_millis(100));
//! association.stream(1).send_with("x=1 y=2", position).await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Time limits
//!
//! | call | default | where to change it |
//! |---|---|---|
//! | [`Association::connect`], [`Endpoint::connect`], [`tcp::Stack::connect`] | 10 s, then [`ConnectError::NoAnswer`] or [`ConnectError::Handshake`] | [`TimeLimits::connect`] of an [`Endpoint`] |
//! | [`Association::shutdown`], [`Endpoint::shutdown`] | 5 s without progress, then the association is aborted | [`TimeLimits::shutdown`] |
//! | [`tcp::Stack::shutdown`] | 5 s, then connections are reset | [`TimeLimits::shutdown`] |
//! | a peer that is silent while data, or SHUTDOWN, is sent to it | 15 s with `interactive`, then [`CloseReason::Unreachable`] | [`AssociationConfig::dead_after`] |
//! | a message with a lifetime | none: [`Event::MessageFailed`] once it is over | [`Delivery::lifetime`] |
//!
//! A game that notices a dead server after 4 s, and an upload that is to end completely, however long
//! that takes:
//!
//! ```
//! use rexmit::{AssociationConfig, Endpoint, EndpointConfig, TimeLimits};
//! use std::time::Duration;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let game = AssociationConfig::interactive().dead_after(Some(Duration::from_secs(4)));
//! let player = Endpoint::bind_unencrypted("127.0.0.1:0".parse()?, game.into())?;
//!
//! let upload = Endpoint::bind_unencrypted("127.0.0.1:0".parse()?, EndpointConfig::default())?
//!     .with_time_limits(TimeLimits::default().shutdown(None));
//! # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
//! ```
//!
//! An idle association sends only HEARTBEATs, so that a dead peer is detected after minutes. To detect it
//! sooner, the application sends a message from time to time, to which `dead_after` applies.
//!
//! # The parts
//!
//! | module | what |
//! |---|---|
//! | [`endpoint`] | sockets and their associations; threads and locks |
//! | [`association`] | sending, receiving, ending |
//! | [`event`] | events for the application, and the limits of unread ones |
//! | [`metrics`] | counters in Prometheus' text format, over HTTP |
//! | [`tcp`] | TCP over TUN devices: stacks, listeners, streams |
//! | [`emulator`] | an emulated link for tests and demonstrations, in real time |
//! | [`proxy`] | our TCP in front of a service that uses the kernel's |
//! | [`tun`] | IP packets exchanged with the kernel; network namespaces |
//! | [`clock`] | the monotonic clock, and precise waiting |
//!
//! SCTP is sent in DTLS records ([`Endpoint::listen`], [`Association::connect`], [`Endpoint::bind`]), in UDP
//! ([`Endpoint::bind_unencrypted`] and others of this name) or directly over IP ([`Endpoint::bind_raw`]). The protocols themselves are `rexmit-sctp`, `rexmit-dtls` and `rexmit-tcp`.
//!
//! # Features
//!
//! | feature | what it adds | systems |
//! |---|---|---|
//! | `dtls`, a default | encryption: [`Endpoint::listen`], [`Association::connect`], [`Endpoint::bind`]; includes `udp` | as `udp` |
//! | `udp`, a default | [`Endpoint`]: SCTP in UDP | written for Linux, macOS, Windows and FreeBSD; compiled and run on Linux only: the workflow for the others has not been run |
//! | `tracing` | events for the crate `tracing`, target `rexmit`: an association is established, ends or changes its path (info), loss recovery acts (debug, if enabled when the endpoint is bound) | all |
//! | `metrics` | [`metrics`]: counters in Prometheus' text format, over HTTP | all |
//! | `qlog` | [`qlog`]: traces as qlog files, which qvis opens | all |
//! | `serde` | the crate `serde` can write configurations and statistics, and also read a `RecoveryConfig` | all |
//! | `raw` | [`Endpoint::bind_raw`]: SCTP directly over IP | Linux |
//! | `netlink` | [`Endpoint::follow_addresses`]: associations follow the addresses of their host | Linux |
//! | `tun` | [`tun`]: TUN devices and network namespaces | Linux |
//! | `tcp` | [`tcp`]: TCP over TUN devices; includes `tun` | Linux |
//! | `proxy` | [`proxy`]; includes `tcp` | Linux |
//! | `emulator` | [`emulator`]; with `tun`, also between TUN devices | Linux |
//!
//! A feature that needs Linux adds nothing on other systems. The default features have 95 dependencies, `udp` alone 39: the
//! cryptography of DTLS, in Rust, is made of many small crates.
//!
//! # Decisions of this API
//!
//! The C and Python APIs have the same endpoints, associations, streams, deliveries and events, with three differences. A
//! profile is a constructor of a configuration ([`AssociationConfig::interactive`]) and not a type, because a configuration
//! can be changed further and a name cannot. There is no `Trust::roots()`: peers are known by fingerprints of certificates,
//! because certificates of the web's authorities are for names, and most peers of games and terminals have none.
//! [`Association::recv`] returns an `Option` and not a `Result`, because an association that ends has delivered all that it
//! received, whatever the reason; [`Association::close_reason`] distinguishes a graceful end from an error.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    not(all(
        target_os = "linux",
        feature = "dtls",
        feature = "emulator",
        feature = "metrics",
        feature = "netlink",
        feature = "proxy",
        feature = "qlog",
        feature = "raw",
        feature = "udp"
    )),
    allow(
        rustdoc::broken_intra_doc_links,
        reason = "these pages link to what other features have"
    )
)]

#[cfg(feature = "udp")]
pub mod association;
pub mod clock;
#[cfg(all(feature = "emulator", target_os = "linux"))]
pub mod emulator;
#[cfg(feature = "udp")]
pub mod endpoint;
#[cfg(any(feature = "udp", all(feature = "emulator", target_os = "linux")))]
mod error;
#[cfg(feature = "udp")]
pub mod event;
#[cfg(any(feature = "udp", all(feature = "tcp", target_os = "linux")))]
mod limits;
#[cfg(feature = "udp")]
mod log;
#[cfg(feature = "metrics")]
pub mod metrics;
#[cfg(all(feature = "netlink", target_os = "linux"))]
mod netlink;
#[cfg(all(feature = "proxy", target_os = "linux"))]
pub mod proxy;
#[cfg(feature = "udp")]
mod socket;
#[cfg(all(feature = "tcp", target_os = "linux"))]
pub mod tcp;
#[cfg(all(feature = "tun", target_os = "linux"))]
pub mod tun;
#[cfg(any(feature = "udp", all(feature = "tcp", target_os = "linux")))]
mod turns;

#[cfg(feature = "udp")]
pub use association::{
    Association, Delivery, Stream,
    bytes::{ByteReader, ByteWriter},
};
pub use bytes::Bytes;
#[cfg(feature = "udp")]
pub use endpoint::{ENCAPSULATION_PORT, Endpoint, EndpointStatistics};
#[cfg(any(feature = "udp", all(feature = "emulator", target_os = "linux")))]
pub use error::BindError;
#[cfg(feature = "udp")]
pub use error::{ConnectError, SendError, TrySendError};
#[cfg(feature = "udp")]
pub use event::{DroppedEvents, Event};
#[cfg(any(feature = "udp", all(feature = "tcp", target_os = "linux")))]
pub use limits::TimeLimits;
pub use rexmit_core::{Instant, trace};
#[cfg(feature = "dtls")]
pub use rexmit_dtls::{
    Encryption, Fingerprint, FingerprintError, HandshakeError, Identity, IdentityError, Trust,
};
#[cfg(all(feature = "emulator", target_os = "linux"))]
pub use rexmit_netsim::path;
#[cfg(feature = "qlog")]
pub use rexmit_qlog as qlog;
pub use rexmit_sctp::recovery::{CopyBudget, Deadline, PROFILES, RecoveryConfig, ThinConfig};
pub use rexmit_sctp::{
    AckCopies, AckCopyConfig, AddressChange, AddressError, AssociationConfig,
    AssociationStatistics, AuthenticationConfig, BufferConfig, CloseReason, ConfigError,
    DEFAULT_PRIORITY, EndpointConfig, ExtensionConfig, FailReason, FailureConfig, HandshakeConfig,
    InboundMessage, MAX_SHARDS, MessageConfig, MessageId, MultihomingConfig, OutboundMessage,
    OversizedMessages, PathMtuConfig, PathMtuState, PathState, PathStatistics, PrimaryError,
    PriorityError, Reliability, ResetError, SackConfig, Scheduling, SharedKey, SourceAddresses,
    StreamConfig, ThinError, Traffic, recovery,
};

/// Types of the protocol crates that statistics and errors here contain, under names that this crate has for its own.
#[cfg(feature = "udp")]
pub mod protocol {
    #[cfg(feature = "dtls")]
    pub use rexmit_dtls::Statistics as DtlsStatistics;
    pub use rexmit_sctp::{ConnectError, EndpointStatistics};
}

/// The code of the README is compiled and run.
#[cfg(all(doctest, feature = "dtls"))]
#[doc = include_str!("../README.md")]
struct Readme;
