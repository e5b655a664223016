//! SCTP over DTLS 1.3 (RFC 8261, RFC 9147) as a state machine: datagrams and time in, datagrams and events out.
//!
//! [`Endpoint`] is an SCTP endpoint with a DTLS connection for each peer, driven by the five calls of
//! [`Machine`](rexmit_core::Machine). Each SCTP packet is one record. DTLS itself is the crate `dimpl`.
//!
//! [`Session`] is a single connection, without cookies and also with DTLS 1.2, for peers whose address ICE
//! has validated (WebRTC).
//!
//! # The contract
//! - **Both sides are authenticated.** Each shows a certificate and proves that it has its key; [`Trust`] says which
//!   certificates are trusted, by their [`Fingerprint`]s. No SCTP packet is sent or accepted before that.
//! - **No state for an address that does not answer.** A ClientHello is answered by a cookie (HelloRetryRequest),
//!   with fewer bytes than it has itself, and forgotten. Handshakes in progress are limited
//!   ([`Encryption::max_handshakes`]).
//! - **A connection ends with its associations, and they with it.** A connection that no association uses is
//!   ended after [`Encryption::idle_timeout`]. When the peer ends a connection, or begins a new one, its
//!   associations are aborted.
//! - **A NAT may change the peer's UDP port**, as without encryption: a record from a new port is matched to
//!   a connection of the same IP address, and SCTP validates the port. Other changes of addresses (RFC 5061)
//!   are not offered.
//! - No datagram can make an endpoint panic, or use more memory than these limits allow.
//!
//! # Not supported
//! - DTLS 1.2, except in a [`Session`]; raw public keys; resumption and early data.
//! - Certificate authorities, names and dates: certificates are compared by fingerprint only. Server names
//!   (SNI) and ALPN.
//! - Connection IDs (RFC 9146), which the DTLS library does not have.
//! - Simultaneous opening: if two endpoints begin a connection with each other at the same time, neither
//!   succeeds.
//!
//! # The library
//! `dimpl` 0.9 (MIT or Apache-2.0, by the author of `str0m`, without unsafe code) is the only DTLS library in Rust that
//! is sans-IO and has DTLS 1.3; `webrtc-dtls` has 1.2 over its own sockets, OpenSSL and wolfSSL are written in C. Its
//! cryptography is either RustCrypto or aws-lc-rs. Measured with records of 1172 bytes, AES-128-GCM, on a shared
//! virtual machine of two cores:
//!
//! | | RustCrypto | aws-lc-rs |
//! |---|---|---|
//! | CPU time of its release build | 85 s | 136 s |
//! | a handshake, both sides | 4.0 ms | 1.1 ms |
//! | encrypting a record, decrypting | 4.6 µs, 4.2 µs | 5.1 µs, 5.5 µs |
//! | needs a C compiler | no | yes, also for other systems |
//!
//! RustCrypto is used: the cost of data is about the same, and cross-compiling needs nothing but Rust. Later, on another
//! machine, a handshake took 1.4 ms with RustCrypto, both sides; aws-lc-rs was not measured again.
//!
//! The library parses the private key for each connection, also for those that answer a first ClientHello only; here it is parsed when it
//! signs (`signing.rs`).
//!
//! A datagram is checked twice before it reaches the library. Cookies of our own (`cookie.rs`) replace the
//! state that it would keep for each ClientHello. And plaintext records that could do harm are dropped
//! (`record.rs`).
//!
//! The library draws keys from the system's random source, so that a run over DTLS is not a function of its seed
//! alone, unlike everything else below the drivers.
//!
//! # Features
//! `serde`: the crate `serde` can write [`Statistics`].

mod config;
mod connection;
mod cookie;
mod endpoint;
mod error;
mod identity;
mod maybe;
mod record;
mod self_signed;
mod session;
mod signing;
mod trials;

pub use config::{Encryption, MAX_PACKET_BYTES, RECORD_OVERHEAD_BYTES};
pub use endpoint::{Endpoint, Event, Statistics, within_records};
pub use error::{HandshakeError, IdentityError};
pub use identity::{Fingerprint, FingerprintError, Identity, Trust};
pub use maybe::MaybeEncrypted;
pub use session::{SESSION_OVERHEAD_BYTES, Session, SessionOutput, SessionSettings, Version};
