//! One DTLS connection, with our instants translated to those of the library.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use dimpl::{Dtls, Error, Output};
use rexmit_core::{Instant, Route};

use crate::record::records;
use crate::trials::Trials;
use crate::{Encryption, Fingerprint};

/// A deadline further away than this counts as none: the library reports one ten years away if it has no timer.
pub(crate) const FAR: Duration = Duration::from_secs(365 * 24 * 3600);
/// The shortest time between retransmissions, between acknowledgements of an incomplete flight, and between checks of a
/// connection.
pub(crate) const LEAST: Duration = Duration::from_millis(1);
/// The most retransmissions of a flight; in practice, the time limit of the whole handshake is reached first.
pub(crate) const FLIGHT_RETRIES: usize = 6;
/// The most addresses of one peer: its present one, and those that a NAT has given it before.
pub(crate) const MAX_ADDRESSES: usize = 4;
/// The most bytes that a peer may send in one handshake, because the library stores those that it cannot use yet. They
/// suffice for a certificate of some kilobytes, with each flight sent several times. Further bytes are dropped.
pub(crate) const MAX_HANDSHAKE_BYTES: usize = 1 << 16;
/// The most datagrams of a refused peer that are answered by the last record, which may have been lost.
const MAX_FAREWELLS: u8 = 8;

/// Converts between our instants and those of the library, `std::time::Instant`. The latter can only be created by
/// reading the clock, so one that was read serves as the origin.
#[derive(Clone, Copy)]
pub(crate) struct Clock {
    origin: std::time::Instant,
}

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "an origin, of which only differences are used")]
    pub(crate) fn new() -> Self {
        Self { origin: std::time::Instant::now() }
    }

    pub(crate) fn for_library(self, now: Instant) -> std::time::Instant {
        self.origin + Duration::from_nanos(now.as_nanos())
    }

    pub(crate) fn for_us(self, at: std::time::Instant) -> Instant {
        Instant::ZERO + at.saturating_duration_since(self.origin)
    }
}

/// The library's settings, for all connections of an endpoint.
pub(crate) fn library_config(encryption: &Encryption, mtu: usize) -> Arc<dimpl::Config> {
    let config = dimpl::Config::builder()
        .with_crypto_provider(crate::cookie::provider())
        .dtls12_cipher_suites(&[])
        .mtu(mtu)
        .flight_start_rto(encryption.retransmit_after.clamp(LEAST, FAR))
        .flight_retries(FLIGHT_RETRIES)
        .handshake_timeout(encryption.handshake_timeout.clamp(LEAST, FAR))
        .build();
    Arc::new(config.expect("settings within the library's limits"))
}

/// The state of a connection.
#[derive(Debug)]
pub(crate) enum State {
    Handshaking,
    /// Both sides are authenticated and trusted.
    Secured {
        /// The next time at which it is checked whether an association uses the connection.
        check_at: Instant,
        /// Whether no association used the connection at the last check.
        is_unused: bool,
    },
    /// Refused after the handshake: every further datagram is answered by the last record.
    Refused {
        farewell: Vec<u8>,
        until: Instant,
        left: u8,
    },
}

/// One connection.
pub(crate) struct Connection {
    dtls: Dtls,
    clock: Clock,
    /// Where handshakes and alerts are sent.
    pub(crate) route: Route,
    /// The peer's addresses, the oldest first.
    pub(crate) addresses: Vec<SocketAddr>,
    /// The random of the ClientHello that began the handshake; `None` if this side began it.
    pub(crate) random: Option<[u8; 32]>,
    pub(crate) peer: Option<Fingerprint>,
    pub(crate) state: State,
    pub(crate) begun: Instant,
    /// Bytes received from the peer during the handshake.
    received: usize,
    /// The budget of records from unknown ports that may be tried.
    pub(crate) trials: Trials,
    /// The library's next deadline.
    timeout: Instant,
    /// The deadline under which the endpoint has listed this connection.
    pub(crate) deadline: Instant,
}

impl Connection {
    /// A connection that this side initiates or, given the peer's random, that the peer initiates.
    pub(crate) fn new(
        now: Instant,
        clock: Clock,
        route: Route,
        (encryption, library): (&Encryption, &Arc<dimpl::Config>),
        random: Option<[u8; 32]>,
    ) -> Self {
        let certificate = encryption.identity.for_library();
        let mut dtls = Dtls::new_13(Arc::clone(library), certificate, clock.for_library(now));
        dtls.set_active(random.is_none());
        Self {
            dtls,
            clock,
            route,
            addresses: vec![route.remote],
            random,
            peer: None,
            state: State::Handshaking,
            begun: now,
            received: 0,
            trials: Trials::new(now),
            timeout: Instant::FAR_FUTURE,
            deadline: Instant::FAR_FUTURE,
        }
    }

    pub(crate) const fn is_client(&self) -> bool {
        self.random.is_none()
    }

    pub(crate) const fn is_handshaking(&self) -> bool {
        matches!(self.state, State::Handshaking)
    }

    /// Whether the connection is a handshake that the peer initiated.
    pub(crate) const fn counts_as_in_progress(&self) -> bool {
        self.is_handshaking() && !self.is_client()
    }

    pub(crate) const fn is_secured(&self) -> bool {
        matches!(self.state, State::Secured { .. })
    }

    /// Whether a datagram of this size is within [`MAX_HANDSHAKE_BYTES`]; if so, counts it.
    pub(crate) fn charge(&mut self, bytes: usize) -> bool {
        if self.is_handshaking() {
            self.received = self.received.saturating_add(bytes);
        }
        self.received <= MAX_HANDSHAKE_BYTES || !self.is_handshaking()
    }

    pub(crate) fn handle_packet(&mut self, now: Instant, datagram: &[u8]) -> Result<(), Error> {
        self.dtls.handle_timeout(self.clock.for_library(now))?;
        // Records are passed one by one: if the first record of a datagram is a duplicate, the library would drop the
        // others, too, although a retransmitted flight may be divided into datagrams in another way.
        records(datagram).try_for_each(|record| self.dtls.handle_packet(record))
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) -> Result<(), Error> {
        self.dtls.handle_timeout(self.clock.for_library(now))
    }

    /// The library's next output; `None` if there is no more.
    pub(crate) fn poll_output<'b>(&mut self, buffer: &'b mut Vec<u8>) -> Option<Output<'b>> {
        // Every record and every packet fits: the library's longest one is a bit above 16 KiB.
        if buffer.len() < crate::config::BUFFER_BYTES {
            buffer.resize(crate::config::BUFFER_BYTES, 0);
        }
        match self.dtls.poll_output(buffer) {
            Output::Timeout(at) => {
                self.timeout = self.clock.for_us(at);
                None
            }
            // Only for a record that is too long, which was dropped before. The library would return this again and
            // again.
            Output::BufferTooSmall { .. } => None,
            output => Some(output),
        }
    }

    /// Encrypts an SCTP packet; [`Self::poll_output`] returns the record.
    pub(crate) fn seal(&mut self, now: Instant, packet: &[u8]) -> Result<(), Error> {
        self.dtls.handle_timeout(self.clock.for_library(now))?;
        self.dtls.send_application_data(packet).map(drop)
    }

    /// Closes the connection in the library, and returns the datagram with its close alert.
    pub(crate) fn close(&mut self, buffer: &mut Vec<u8>) -> Vec<u8> {
        let mut farewell = Vec::new();
        if self.dtls.close().is_ok() {
            while let Some(output) = self.poll_output(buffer) {
                if let Output::Packet(datagram) = output {
                    farewell = datagram.to_vec();
                }
            }
        }
        farewell
    }

    /// Refuses a peer that is not trusted: until `until`, its datagrams are answered by `farewell`, at most
    /// `MAX_FAREWELLS` times.
    pub(crate) fn refuse(&mut self, until: Instant, farewell: Vec<u8>) {
        self.state = State::Refused { farewell, until, left: MAX_FAREWELLS };
    }

    /// The datagram that is sent again in answer to a refused peer, at most `MAX_FAREWELLS` times.
    pub(crate) fn farewell(&mut self) -> Option<Vec<u8>> {
        let State::Refused { farewell, left, .. } = &mut self.state else { return None };
        *left = left.checked_sub(1)?;
        Some(farewell.clone())
    }

    /// The earlier of its own deadline and the time limit of the handshake.
    pub(crate) fn next_timeout(&self, now: Instant, encryption: &Encryption) -> Instant {
        let timeout = match self.timeout {
            // With a gap in the peer's flight the library acknowledges the rest, and at once is due to do so again.
            timeout if timeout <= now => now + (encryption.retransmit_after / 4).max(LEAST),
            timeout if timeout > now + FAR => Instant::FAR_FUTURE,
            timeout => timeout,
        };
        match &self.state {
            State::Handshaking => timeout.min(self.begun + encryption.handshake_timeout),
            State::Secured { check_at, .. } => timeout.min(*check_at),
            State::Refused { until, .. } => *until,
        }
    }
}
