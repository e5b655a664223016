//! A single DTLS connection, for a peer whose address was validated by other means: by ICE, in WebRTC.
//!
//! Unlike [`Endpoint`](crate::Endpoint) there is no cookie, as the address is known to be the peer's, and DTLS 1.2 is
//! used with peers that do not support 1.3 (RFC 8831 §5 requires DTLS 1.2). The caller must not pass datagrams from
//! other addresses.

use std::sync::Arc;
use std::time::Duration;

use dimpl::{Dtls, Error, Output, UnexpectedMessageError};
use rexmit_core::Instant;

use crate::config::BUFFER_BYTES;
use crate::connection::{Clock, FAR, FLIGHT_RETRIES, LEAST, MAX_HANDSHAKE_BYTES};
use crate::record::{Admission, ClearNumbers, admissible_in_session, records};
use crate::{Fingerprint, HandshakeError, Identity, Trust};

/// The most bytes that a record adds to an SCTP packet: DTLS 1.2 with AES-GCM (RFC 6347 §4.1, RFC 5288 §3).
pub const SESSION_OVERHEAD_BYTES: usize = 13 + 8 + 16;

/// The settings that all sessions of a host share.
#[derive(Clone)]
pub struct SessionSettings {
    identity: Identity,
    library: Arc<dimpl::Config>,
    handshake_timeout: Duration,
    clock: Clock,
}

impl std::fmt::Debug for SessionSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionSettings").field("identity", &self.identity).finish_non_exhaustive()
    }
}

impl SessionSettings {
    /// Settings of sessions with datagrams of at most `mtu` bytes. A flight is retransmitted after
    /// `retransmit_after`, which doubles each time; a handshake fails after `handshake_timeout`.
    #[must_use]
    pub fn new(
        identity: Identity,
        mtu: usize,
        retransmit_after: Duration,
        handshake_timeout: Duration,
    ) -> Self {
        let handshake_timeout = handshake_timeout.clamp(LEAST, FAR);
        let library = dimpl::Config::builder()
            .with_crypto_provider(crate::signing::provider())
            .use_server_cookie(false)
            .mtu(mtu)
            .flight_start_rto(retransmit_after.clamp(LEAST, FAR))
            .flight_retries(FLIGHT_RETRIES)
            .handshake_timeout(handshake_timeout)
            .build();
        let library = Arc::new(library.expect("settings within the library's limits"));
        Self { identity, library, handshake_timeout, clock: Clock::new() }
    }

    /// The fingerprint of this host's certificate.
    #[must_use]
    pub const fn fingerprint(&self) -> Fingerprint {
        self.identity.fingerprint()
    }
}

/// The version of DTLS that a session speaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Version {
    /// DTLS 1.2 (RFC 6347).
    Dtls12,
    /// DTLS 1.3 (RFC 9147).
    Dtls13,
}

/// An output of a session.
#[derive(Debug)]
#[non_exhaustive]
pub enum SessionOutput<'a> {
    /// A datagram for the peer.
    Transmit(&'a [u8]),
    /// The peer has proved that it owns this trusted certificate.
    Secured(Fingerprint),
    /// A decrypted SCTP packet of the peer.
    Packet(&'a [u8]),
    /// The connection has failed or ended; this is the last output.
    Ended(HandshakeError),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Handshaking,
    Secured {
        /// The time until which retransmitted flights of the peer are answered.
        flights_until: Instant,
    },
    Ended,
}

/// A DTLS connection with one peer, as client or server, without I/O.
///
/// Each call that changes the state gets a sink, which is called for each output.
pub struct Session {
    dtls: Dtls,
    clock: Clock,
    trust: Trust,
    ours: Fingerprint,
    is_client: bool,
    numbers: ClearNumbers,
    handshake_timeout: Duration,
    begun: Instant,
    /// Bytes of the peer's in the handshake.
    received: usize,
    peer: Option<Fingerprint>,
    state: State,
    timeout: Instant,
    buffer: Vec<u8>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("peer", &self.peer).finish_non_exhaustive()
    }
}

impl Session {
    /// A session with a peer that `trust` includes. A client begins at once: call [`handle_timeout`] for its first
    /// flight.
    ///
    /// [`handle_timeout`]: Self::handle_timeout
    #[must_use]
    pub fn new(now: Instant, settings: &SessionSettings, is_client: bool, trust: Trust) -> Self {
        let (library, certificate) =
            (Arc::clone(&settings.library), settings.identity.for_library());
        let mut dtls = Dtls::new_auto(library, certificate, settings.clock.for_library(now));
        dtls.set_active(is_client);
        Self {
            dtls,
            clock: settings.clock,
            trust,
            ours: settings.fingerprint(),
            is_client,
            numbers: ClearNumbers::default(),
            handshake_timeout: settings.handshake_timeout,
            begun: now,
            received: 0,
            peer: None,
            state: State::Handshaking,
            timeout: now,
            buffer: Vec::new(),
        }
    }

    /// Whether the connection is established, so that packets can be [sealed](Self::seal).
    #[must_use]
    pub const fn is_secured(&self) -> bool {
        matches!(self.state, State::Secured { .. })
    }

    /// The negotiated version; `None` before it is known.
    #[must_use]
    pub fn version(&self) -> Option<Version> {
        match self.dtls.protocol_version()? {
            dimpl::ProtocolVersion::DTLS1_3 => Some(Version::Dtls13),
            _ => Some(Version::Dtls12),
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) is to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Handshaking => Some(self.timeout.min(self.begun + self.handshake_timeout)),
            State::Secured { .. } => Some(self.timeout).filter(|&at| at < Instant::FAR_FUTURE),
            State::Ended => None,
        }
    }

    /// Handles a datagram of the peer.
    pub fn handle_input(
        &mut self,
        now: Instant,
        datagram: &[u8],
        mut sink: impl FnMut(SessionOutput<'_>),
    ) {
        let admission = match self.state {
            State::Handshaking => Admission::Handshake,
            State::Secured { flights_until } if now < flights_until => self.after_handshake(),
            State::Secured { .. } => Admission::Protected,
            State::Ended => return,
        };
        if self.state == State::Handshaking {
            self.received = self.received.saturating_add(datagram.len());
            if self.received > MAX_HANDSHAKE_BYTES {
                return;
            }
        }
        if !admissible_in_session(datagram, admission) {
            return;
        }
        self.advance(now, &mut sink, |dtls| {
            records(datagram).try_for_each(|record| match dtls.handle_packet(record) {
                // The rest of a server's flight has arrived before its beginning; the server will retransmit it.
                Err(Error::UnexpectedMessage(
                    UnexpectedMessageError::UnrecognizedAutoServerResponse,
                )) => Ok(()),
                result => result,
            })
        });
    }

    /// Handles an expired timer.
    pub fn handle_timeout(&mut self, now: Instant, mut sink: impl FnMut(SessionOutput<'_>)) {
        if self.state == State::Ended {
            return;
        }
        self.advance(now, &mut sink, |_| Ok(()));
        if self.state == State::Handshaking && now >= self.begun + self.handshake_timeout {
            self.end(HandshakeError::NoAnswer(now - self.begun), &mut sink);
        }
    }

    /// Encrypts an SCTP packet for the peer. A packet that is too long for a record, or comes before the
    /// connection is established, is dropped.
    pub fn seal(&mut self, now: Instant, packet: &[u8], mut sink: impl FnMut(SessionOutput<'_>)) {
        if self.is_secured() && packet.len() <= crate::MAX_PACKET_BYTES {
            self.advance(now, &mut sink, |dtls| dtls.send_application_data(packet).map(drop));
        }
    }

    /// Closes the connection, and sends the peer an alert.
    pub fn close(&mut self, now: Instant, mut sink: impl FnMut(SessionOutput<'_>)) {
        if self.state != State::Ended {
            self.advance(now, &mut sink, Dtls::close);
            self.state = State::Ended;
        }
    }

    /// The records admitted after the handshake. If our last flight was lost, the peer retransmits its own, which is
    /// not encrypted in DTLS 1.2.
    fn after_handshake(&self) -> Admission {
        match self.version() {
            Some(Version::Dtls12) => Admission::Flights,
            _ => Admission::Protected,
        }
    }

    /// Calls the library, and handles its outputs.
    fn advance(
        &mut self,
        now: Instant,
        sink: &mut impl FnMut(SessionOutput<'_>),
        act: impl FnOnce(&mut Dtls) -> Result<(), Error>,
    ) {
        // Every record and every packet fits.
        self.buffer.resize(BUFFER_BYTES, 0);
        let at = self.clock.for_library(now);
        let mut result = self.dtls.handle_timeout(at);
        if result.is_ok() {
            result = act(&mut self.dtls);
        }
        let mut end = None;
        loop {
            match self.dtls.poll_output(&mut self.buffer) {
                Output::Timeout(at) => {
                    self.timeout = self.next_timeout(now, at);
                    break;
                }
                Output::BufferTooSmall { .. } => break,
                Output::Packet(datagram) if self.is_client && self.state == State::Handshaking => {
                    let mut datagram = datagram.to_vec();
                    self.numbers.renumber(&mut datagram);
                    sink(SessionOutput::Transmit(&datagram));
                }
                Output::Packet(datagram) => sink(SessionOutput::Transmit(datagram)),
                Output::PeerCert(certificate) => {
                    let peer = Fingerprint::of(certificate);
                    self.peer = Some(peer);
                    if !self.trust.includes(peer) {
                        end = Some(HandshakeError::Untrusted(peer));
                        break;
                    }
                }
                Output::Connected => match self.peer {
                    Some(peer) => {
                        let flights_until = now + self.handshake_timeout;
                        self.state = State::Secured { flights_until };
                        sink(SessionOutput::Secured(peer));
                    }
                    None => end = Some(HandshakeError::Failed("it has no certificate".to_owned())),
                },
                Output::ApplicationData(packet) if self.peer.is_some() && end.is_none() => {
                    sink(SessionOutput::Packet(packet));
                }
                Output::CloseNotify => end = Some(self.ended_by_peer()),
                _ => {}
            }
        }
        if let Err(error) = result {
            let waited = now - self.begun;
            end.get_or_insert(match error {
                Error::Timeout(_) => HandshakeError::NoAnswer(waited),
                Error::ConnectionClosed => self.ended_by_peer(),
                error => HandshakeError::Failed(error.to_string()),
            });
        }
        if let Some(error) = end {
            self.end(error, sink);
        }
    }

    const fn ended_by_peer(&self) -> HandshakeError {
        if self.is_secured() {
            HandshakeError::EndedByPeer
        } else {
            HandshakeError::RefusedByPeer(self.ours)
        }
    }

    fn end(&mut self, error: HandshakeError, sink: &mut impl FnMut(SessionOutput<'_>)) {
        if self.state == State::Ended {
            return;
        }
        self.state = State::Ended;
        if matches!(error, HandshakeError::Untrusted(_)) {
            // The rest of our flight, with our certificate, is not for that peer; the alert is.
            self.drain(|_| {});
            if self.dtls.close().is_ok() {
                self.drain(|farewell| sink(SessionOutput::Transmit(farewell)));
            }
        }
        sink(SessionOutput::Ended(error));
    }

    /// Takes all that the library has to send.
    fn drain(&mut self, mut take: impl FnMut(&[u8])) {
        loop {
            match self.dtls.poll_output(&mut self.buffer) {
                Output::Packet(datagram) => take(datagram),
                Output::Timeout(_) | Output::BufferTooSmall { .. } => return,
                _ => {}
            }
        }
    }

    /// The next deadline of the library. While a flight of the peer has a gap, the library always reports it as due;
    /// then it is delayed.
    fn next_timeout(&self, now: Instant, at: std::time::Instant) -> Instant {
        match self.clock.for_us(at) {
            at if at <= now => now + GAP_RETRY.max(LEAST),
            at if at > now + FAR => Instant::FAR_FUTURE,
            at => at,
        }
    }

    /// Whether this side is the DTLS client.
    #[must_use]
    pub const fn is_client(&self) -> bool {
        self.is_client
    }
}

/// Time between acknowledgements of an incomplete flight.
const GAP_RETRY: Duration = Duration::from_millis(50);
