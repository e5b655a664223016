//! SCTP over DTLS 1.3 (RFC 8261, RFC 9147) as a state machine: datagrams and time in, datagrams and events out.
//!
//! [`Endpoint`] is an SCTP endpoint with a DTLS connection for each peer, and driven by the same five calls. Each
//! SCTP packet is one record. DTLS itself is the crate `dimpl`.
//!
//! [`Session`] is one connection by itself, without cookies and with DTLS 1.2 too, where ICE has validated the peer's
//! address (WebRTC).
//!
//! # The contract
//! - **Both sides prove who they are.** Each shows a certificate and that it has its key; [`Trust`] says which
//!   certificates are good, by their [`Fingerprint`]s. Nothing of SCTP is sent or taken before.
//! - **No state for an address that does not answer.** A ClientHello is answered by a cookie (HelloRetryRequest),
//!   with fewer bytes than it has itself, and forgotten. Handshakes in progress are limited
//!   ([`Encryption::max_handshakes`]).
//! - **A connection ends with its associations, and they with it.** One that no association uses is ended after
//!   [`Encryption::idle_limit`]. When the peer ends it, or begins anew, its associations are aborted.
//! - **A NAT may change the peer's UDP port**, as without encryption: a record that belongs to a peer of the same
//!   IP address is found, and SCTP validates the new port. Other changes of addresses (RFC 5061) are not offered.
//! - Nothing that arrives can make it panic or grow beyond these limits.
//!
//! # What there is not
//! - DTLS 1.2 but in a [`Session`]; raw public keys; resumption and early data.
//! - Certificates are compared by fingerprint only: no authorities, no names, no dates. There are no server name
//!   (SNI) and no ALPN.
//! - Connection IDs (RFC 9146), which the library does not have.
//! - Two endpoints that begin a connection with each other at the same time: neither succeeds. One of them begins.
//!
//! # The library
//! `dimpl` 0.9 (MIT or Apache-2.0, the author of `str0m`, no unsafe code) is the only DTLS in Rust that is sans-IO,
//! has 1.3, and takes no part in sockets; `webrtc-dtls` has 1.2 over its own sockets, OpenSSL and wolfSSL are C.
//! Its cryptography is either RustCrypto or aws-lc-rs. Measured with records of 1172 bytes, AES-128-GCM, on a shared
//! virtual machine of two cores:
//!
//! | | RustCrypto | aws-lc-rs |
//! |---|---|---|
//! | CPU time of its release build | 85 s | 136 s |
//! | a handshake, both sides | 4.0 ms | 1.1 ms |
//! | encrypting a record, decrypting | 4.6 µs, 4.2 µs | 5.1 µs, 5.5 µs |
//! | needs a C compiler | no | yes, also for other systems |
//!
//! RustCrypto is used: data cost the same, and a build for another system needs nothing but Rust. A server
//! with hundreds of new peers a second would choose otherwise.
//!
//! Two things are done ahead of the library. It keeps state for each ClientHello that it answers, which is replaced
//! by cookies of our own (`cookie.rs`). And records in the clear are kept from it where they could do harm
//! (`record.rs`).
//!
//! The library draws keys from the system's random source, so that a run over DTLS is not a function of its seed
//! alone, unlike everything else below the drivers.

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
mod trials;

pub use config::{Encryption, MAX_PACKET_BYTES, RECORD_OVERHEAD_BYTES};
pub use endpoint::{Endpoint, Event, Statistics, within_records};
pub use error::{HandshakeError, IdentityError};
pub use identity::{Fingerprint, FingerprintError, Identity, Trust};
pub use maybe::MaybeEncrypted;
pub use session::{SESSION_OVERHEAD_BYTES, Session, SessionOutput, SessionSettings, Version};
