//! Parameters of encryption.

use std::time::Duration;

use crate::{Identity, Trust};

/// Bytes that a record adds to an SCTP packet: header, content type and tag (RFC 9147 §4, AES-GCM).
pub const RECORD_OVERHEAD_BYTES: usize = 5 + 1 + 16;
/// The largest SCTP packet in a record, in bytes (RFC 8446 §5.1), a multiple of four.
pub const MAX_PACKET_BYTES: usize = 1 << 14;

/// The size of the buffer for a datagram with one record, with a margin.
pub(crate) const BUFFER_BYTES: usize = MAX_PACKET_BYTES + 512;

rexmit_core::config! {
    /// The encryption of an endpoint: its identity, the peers that it trusts, and limits.
    ///
    /// ```
    /// use rexmit_dtls::{Encryption, Identity, Trust};
    ///
    /// let server = Identity::generate()?;
    /// let client = Encryption::new(Identity::generate()?, Trust::only([server.fingerprint()]));
    /// let server = Encryption::new(server, Trust::anyone());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[derive(Clone, Debug)]
    pub struct Encryption {
        /// The certificate and private key of this host.
        pub identity: Identity,
        /// The peers that are trusted, whichever side initiates the connection.
        pub trust: Trust,
        /// The most handshakes in progress that peers initiated; only peers that have returned a cookie count. A
        /// further handshake replaces the oldest if that has lasted a second; otherwise it is dropped, and its client
        /// retries. Default 256.
        pub max_handshakes: usize,
        /// The most connections at one time, including handshakes. Default 200,000.
        pub max_connections: usize,
        /// The time until a handshake flight is retransmitted first; it doubles with each retransmission.
        /// Default 250 ms.
        pub retransmit_after: Duration,
        /// The time limit of a handshake. Default 10 s.
        pub handshake_timeout: Duration,
        /// The time after which a connection that no association uses is removed. Default 10 s.
        pub idle_timeout: Duration,
    }
}

impl Encryption {
    /// The default limits, with this identity and trust.
    #[must_use]
    pub const fn new(identity: Identity, trust: Trust) -> Self {
        Self {
            identity,
            trust,
            max_handshakes: 256,
            max_connections: 200_000,
            retransmit_after: Duration::from_millis(250),
            handshake_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(10),
        }
    }
}
