//! Parameters of encryption.

use std::time::Duration;

use crate::{Identity, Trust};

/// Overhead of a record per SCTP packet: header, content type and tag (RFC 9147 §4, AES-GCM).
pub const RECORD_OVERHEAD_BYTES: usize = 5 + 1 + 16;
/// The largest SCTP packet in a record (RFC 8446 §5.1), a multiple of four.
pub const MAX_PACKET_BYTES: usize = 1 << 14;

/// The longest datagram with one record, and some room.
pub(crate) const BUFFER_BYTES: usize = MAX_PACKET_BYTES + 512;

rexmit_core::config! {
    /// How an endpoint encrypts: who it is, whom it trusts, and limits.
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
        /// Who this host is.
        pub identity: Identity,
        /// The peers it talks to, whichever side began.
        pub trust: Trust,
        /// Handshakes that peers began and that are in progress, at most; a further one takes the place of the
        /// oldest if that has lasted a second, and else waits for its client to try again. Only peers that have
        /// returned a cookie count. Default 256.
        pub max_handshakes: usize,
        /// Connections at one time, handshakes included. Default 200,000.
        pub max_connections: usize,
        /// Time of the first retransmission of a handshake flight; doubled with each further one. Default 250 ms.
        pub retransmit_after: Duration,
        /// A handshake that takes longer has failed. Default 10 s.
        pub handshake_limit: Duration,
        /// A connection that no association uses is ended after this time. Default 10 s.
        pub idle_limit: Duration,
    }
}

impl Encryption {
    /// The defaults, for this host and these peers.
    #[must_use]
    pub const fn new(identity: Identity, trust: Trust) -> Self {
        Self {
            identity,
            trust,
            max_handshakes: 256,
            max_connections: 200_000,
            retransmit_after: Duration::from_millis(250),
            handshake_limit: Duration::from_secs(10),
            idle_limit: Duration::from_secs(10),
        }
    }
}
