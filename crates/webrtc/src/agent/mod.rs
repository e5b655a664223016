//! One side of a connection, without I/O: ICE, DTLS, SCTP and channels of one peer.

mod description;
mod hello;
mod machine;
mod outgoing;
mod reachability;

use std::net::SocketAddr;
use std::time::Duration;

use rexmit_core::{Ecn, Instant, Route, Seed};
use rexmit_dtls::{Fingerprint, HandshakeError, Session, SessionOutput, Trust, Version};
use rexmit_sctp::AssociationStatistics;

use hello::Hello;
pub(crate) use machine::is_stun;
use outgoing::Outgoing;
use reachability::Reachability;

use crate::association::{Association, close_reason};
use crate::channels::Channels;
use crate::ice::{Ice, Role};
use crate::{
    ChannelConfig, ChannelId, CloseReason, Event, Message, OpenError, SendError, Settings, Stage,
    TrySendError,
};

/// The parts of the peer's description that are needed later.
struct Peer {
    fingerprints: Vec<Fingerprint>,
    /// The name of the section for data channels (RFC 5888).
    mid: String,
    sctp_port: u16,
    max_message_bytes: usize,
    /// Whether this side is the DTLS client.
    is_client: bool,
}

#[derive(PartialEq, Eq)]
enum State {
    SettingUp {
        until: Instant,
    },
    Connected,
    /// The last event was not reported yet.
    Ending(CloseReason),
    Closed,
}

/// One side of a connection of data channels, without I/O: a [`Machine`](rexmit_core::Machine) with the calls of an
/// application.
///
/// ```
/// use rexmit_core::{Instant, Machine, Route, Seed};
/// use rexmit_dtls::Identity;
/// use rexmit_webrtc::{Agent, AgentConfig, ChannelConfig, Event, Message, Settings};
///
/// let [here, there]: [std::net::SocketAddr; 2] = ["192.0.2.1:4000".parse()?, "192.0.2.2:4000".parse()?];
/// let settings = |address| -> Result<Settings, Box<dyn std::error::Error>> {
///     Ok(Settings::new(AgentConfig::new(Identity::generate()?).addresses(vec![address]))?)
/// };
/// let mut now = Instant::from_millis(1);
/// let (mut client, offer) = Agent::offer(now, settings(here)?, &Seed::from_u64(1));
/// let (mut server, answer) = Agent::answer(now, settings(there)?, &offer, &Seed::from_u64(2))?;
/// client.accept(now, &answer)?;
/// let channel = client.open(now, ChannelConfig::new("greetings"))?;
///
/// let (mut packet, mut received) = (Vec::new(), None);
/// while received.is_none() {
///     while client.poll_transmit(now, &mut packet).is_some() {
///         server.handle_input(now, Route { local: there, remote: here }, &packet);
///     }
///     while server.poll_transmit(now, &mut packet).is_some() {
///         client.handle_input(now, Route { local: here, remote: there }, &packet);
///     }
///     while let Some(event) = client.poll_event() {
///         if event == Event::Connected {
///             client.send(now, channel, &Message::text("hello"))?;
///         }
///     }
///     while let Some(event) = server.poll_event() {
///         if let Event::Message { message, .. } = event {
///             received = Some(message);
///         }
///     }
///     now += std::time::Duration::from_millis(10);
///     client.handle_timeout(now);
///     server.handle_timeout(now);
/// }
/// assert_eq!(received, Some(Message::text("hello")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Agent {
    settings: Settings,
    ice: Ice,
    reachability: Reachability,
    peer: Option<Peer>,
    session: Option<Session>,
    association: Association,
    channels: Channels,
    state: State,
    outgoing: Outgoing,
    /// A packet of SCTP before it is encrypted.
    packet: Vec<u8>,
    /// The time of the latest call.
    now: Instant,
    /// When the DTLS handshake began.
    handshake_at: Instant,
    hello: Hello,
    session_number: u64,
    /// The number of descriptions so far.
    version: u64,
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agent")
            .field("ufrag", &self.ice.credentials().ufrag)
            .field("channels", &self.channels.len())
            .finish_non_exhaustive()
    }
}

impl Agent {
    fn new(now: Instant, settings: Settings, seed: &Seed, is_controlling: bool) -> Self {
        let mode = settings.config.ice;
        let (relayed, is_relay_only) = (settings.relayed(), settings.is_relay_only);
        let role = Role { mode, is_controlling, relayed, is_relay_only };
        Self {
            ice: Ice::new(role, seed.split("ICE").rng()),
            reachability: Reachability::default(),
            peer: None,
            session: None,
            association: Association::new(&settings.endpoint, &seed.split("SCTP")),
            channels: Channels::new(&settings.config),
            state: State::SettingUp { until: now + settings.config.setup_timeout },
            outgoing: Outgoing::default(),
            packet: Vec::new(),
            now,
            handshake_at: now,
            hello: Hello::default(),
            // RFC 8829 §5.2.1: positive, of 63 bits.
            session_number: seed.split("session").rng().u64() >> 1,
            version: 0,
            settings,
        }
    }

    /// Opens a channel; allowed before the connection is established.
    /// [`Event::ChannelOpened`](crate::Event::ChannelOpened) follows, or
    /// [`Event::ChannelClosed`](crate::Event::ChannelClosed) if there is no stream for it.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(&mut self, now: Instant, config: ChannelConfig) -> Result<ChannelId, OpenError> {
        if self.is_closed() {
            return Err(OpenError::Closed);
        }
        let id = self.channels.open(config)?;
        self.advance(now);
        Ok(id)
    }

    /// Accepts a message for the peer.
    ///
    /// # Errors
    /// See [`SendError`]; the message was not accepted.
    pub fn send(
        &mut self,
        now: Instant,
        channel: ChannelId,
        message: &Message,
    ) -> Result<(), TrySendError> {
        let limit = match &self.peer {
            _ if self.is_closed() => return Err(SendError::NoSuchChannel.into()),
            Some(peer) => peer.max_message_bytes,
            None => return Err(SendError::NotConnected.into()),
        };
        let limit = limit.min(self.settings.endpoint.association.messages.max_bytes);
        self.channels.send(now, &mut self.association, channel, message, limit)?;
        self.advance(now);
        Ok(())
    }

    /// Closes a channel after sending the messages that it has accepted;
    /// [`Event::ChannelClosed`](crate::Event::ChannelClosed) follows.
    pub fn close_channel(&mut self, now: Instant, channel: ChannelId) {
        self.channels.close(channel);
        self.advance(now);
    }

    /// The bytes that a channel has accepted and not sent, as `bufferedAmount` in JavaScript.
    #[must_use]
    pub fn buffered_amount(&self, channel: ChannelId) -> usize {
        self.channels.buffered(channel)
    }

    /// Sets the threshold of [`Event::BufferedAmountLow`](crate::Event::BufferedAmountLow), which is reported
    /// when [`buffered_amount`](Self::buffered_amount) falls to this many bytes. Default 0.
    pub fn set_buffered_amount_low_threshold(&mut self, channel: ChannelId, bytes: usize) {
        self.channels.set_low_threshold(channel, bytes);
    }

    /// Closes the connection at once, and notifies the peer. Unsent messages are lost.
    pub fn close(&mut self, now: Instant) {
        self.end(now, CloseReason::Local);
    }

    /// Ends the setup, which has taken `time`, before its time limit.
    pub(crate) fn abandon_setup(&mut self, now: Instant, time: Duration) {
        let reason = self.not_set_up_within(time);
        self.end(now, reason);
    }

    /// Whether the connection has ended; there may be unread events.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        matches!(self.state, State::Ending(_) | State::Closed)
    }

    /// Whether the connection has ended and all events were read.
    #[must_use]
    pub const fn is_drained(&self) -> bool {
        matches!(self.state, State::Closed)
    }

    /// Whether the connection is being set up.
    #[must_use]
    pub const fn is_setting_up(&self) -> bool {
        matches!(self.state, State::SettingUp { .. })
    }

    /// The address that data is sent to; `None` until ICE has found it.
    #[must_use]
    pub fn remote(&self) -> Option<SocketAddr> {
        self.ice.nominated().map(|route| route.remote)
    }

    /// Whether data is sent by a TURN server of this side.
    #[must_use]
    pub fn is_relayed(&self) -> bool {
        self.ice.nominated().is_some_and(|route| !route.local.ip().is_unspecified())
    }

    /// The addresses from which the peer has sent authenticated checks.
    #[must_use]
    pub fn peer_addresses(&self) -> &[SocketAddr] {
        self.ice.sources()
    }

    /// The negotiated version of DTLS; `None` before it is known.
    #[must_use]
    pub fn dtls_version(&self) -> Option<Version> {
        self.session.as_ref()?.version()
    }

    /// Counters of the association; `None` before it begins and after it has ended.
    #[must_use]
    pub fn statistics(&self) -> Option<AssociationStatistics> {
        self.association.statistics()
    }

    /// The number of messages of the peer that were dropped: for no channel, or malformed DCEP messages.
    #[must_use]
    pub const fn dropped_messages(&self) -> u64 {
        self.channels.dropped
    }

    /// The user name fragments by which the peer's checks name this agent.
    pub(crate) fn ufrags(&self) -> impl Iterator<Item = &str> {
        self.ice.ufrags()
    }

    /// Changes when user name fragments change, or addresses of the peer are removed.
    pub(crate) const fn ice_revision(&self) -> u32 {
        self.ice.revision()
    }

    /// Ends the connection, and notifies the peer if possible.
    fn end(&mut self, now: Instant, reason: CloseReason) {
        if self.is_closed() {
            return;
        }
        self.state = State::Ending(reason);
        self.association.abort(now);
        self.seal_all(now);
        if let (Some(session), Some(route)) = (&mut self.session, self.ice.destination()) {
            session.close(now, |output| {
                if let SessionOutput::Transmit(datagram) = output {
                    self.outgoing.push(route, datagram);
                }
            });
        }
    }

    /// Encrypts the packets that SCTP has to send.
    fn seal_all(&mut self, now: Instant) {
        while self.seal_one(now) {}
    }

    fn seal_one(&mut self, now: Instant) -> bool {
        let (Some(session), Some(route)) = (&mut self.session, self.ice.destination()) else {
            return false;
        };
        if !session.is_secured() || !self.association.poll_transmit(now, &mut self.packet) {
            return false;
        }
        let ecn = self.association.transmit_ecn();
        session.seal(now, &self.packet, |output| {
            if let SessionOutput::Transmit(datagram) = output {
                self.outgoing.push_with_ecn(route, ecn, datagram);
            }
        });
        true
    }

    /// Continues all procedures that an input, a timeout or a call may have made possible.
    fn advance(&mut self, now: Instant) {
        self.now = now;
        if self.is_closed() {
            return;
        }
        if self.ice.take_restarted() {
            self.channels.events.push_back(Event::IceRestarted);
        }
        self.begin_handshake(now);
        self.poll_association(now);
        self.channels.flush(now, &mut self.association);
    }

    /// Begins the DTLS handshake, once ICE has an address of the peer.
    fn begin_handshake(&mut self, now: Instant) {
        if let (None, Some(peer), Some(_)) = (&self.session, &self.peer, self.ice.destination()) {
            self.handshake_at = now;
            let (sessions, trust) =
                (&self.settings.sessions, Trust::only(peer.fingerprints.iter().copied()));
            self.session = Some(Session::new(now, sessions, peer.is_client, trust));
            self.call_session(now, None);
            self.hello = Hello::sent(now, self.outgoing.datagrams());
        }
    }

    /// Called when the peer has sent a check. Until it has answered the ClientHello, this shows that it is there and
    /// may not have got it.
    fn on_check(&mut self, now: Instant) {
        if let Some(route) = self.ice.destination() {
            let again = self.hello.on_check(now);
            again.for_each(|datagram| self.outgoing.push(route, &datagram));
        }
    }

    /// Passes a datagram, or the time, to the DTLS session.
    fn call_session(&mut self, now: Instant, datagram: Option<(Route, Ecn, &[u8])>) {
        let source = datagram.map(|(source, ..)| source);
        let ecn = datagram.map_or(Ecn::NotEct, |(_, ecn, _)| ecn);
        let (Some(session), Some(route)) = (&mut self.session, self.ice.destination().or(source))
        else {
            return;
        };
        let (mut is_secured, mut is_authentic, mut ended) = (false, false, None);
        let (outgoing, association) = (&mut self.outgoing, &mut self.association);
        let sink = |output: SessionOutput<'_>| match output {
            SessionOutput::Transmit(datagram) => outgoing.push(route, datagram),
            SessionOutput::Packet(packet) => {
                is_authentic = true;
                association.handle_input(now, ecn, packet);
            }
            SessionOutput::Secured(_) => is_secured = true,
            SessionOutput::Ended(error) => ended = Some(error),
            _ => {}
        };
        match datagram {
            Some((.., datagram)) => session.handle_input(now, datagram, sink),
            None => session.handle_timeout(now, sink),
        }
        if let Some(source) = source.filter(|_| is_authentic || is_secured) {
            self.reachability.on_shown(source.remote);
        }
        if is_secured && let Some(peer) = &self.peer {
            let round_trip = self.ice.round_trip().unwrap_or(now - self.handshake_at);
            let config = &self.settings.endpoint;
            self.association.connect(now, config, peer.sctp_port, Some(round_trip));
        }
        if let Some(error) = ended {
            self.end(
                now,
                match error {
                    // It has seen our certificate after our handshake was complete.
                    HandshakeError::EndedByPeer if self.is_setting_up() => CloseReason::Dtls(
                        HandshakeError::RefusedByPeer(self.settings.sessions.fingerprint()),
                    ),
                    HandshakeError::EndedByPeer => CloseReason::Peer,
                    error => CloseReason::Dtls(error),
                },
            );
        }
    }

    fn poll_association(&mut self, now: Instant) {
        use rexmit_sctp::Event;
        while let Some(event) = self.association.poll_event() {
            if self.is_closed() {
                continue; // What follows its end does not begin it again.
            }
            match event {
                Event::Connected { outbound_streams, .. } => {
                    self.state = State::Connected;
                    self.channels.on_connected(outbound_streams);
                }
                Event::Writable => self.channels.on_writable(),
                Event::MessageSent(id) | Event::MessageFailed { id, .. } => {
                    self.channels.on_sent(id);
                }
                Event::Infeasible { achievable_ppm } => {
                    self.channels.on_infeasible(achievable_ppm);
                }
                Event::StreamsReset { streams, .. } => self.channels.on_reset(&streams),
                Event::PeerResetStreams(streams) => self.channels.on_peer_reset(&streams),
                Event::PeerShutdown => self.end(now, CloseReason::Peer),
                Event::Closed(reason) => self.end(now, close_reason(reason)),
                // The peer has forgotten the channels, which browsers do only with the whole connection.
                Event::PeerRestarted => self.end(now, CloseReason::Peer),
                _ => {}
            }
        }
    }

    /// When the setup has taken too long or, once connected, when the peer's consent expires (RFC 7675).
    fn next_deadline(&self) -> Option<Instant> {
        let consent = self.ice.consent_at().map(|at| at + self.settings.config.consent_timeout);
        match self.state {
            State::SettingUp { until } => Some(until),
            State::Connected => consent,
            _ => None,
        }
    }

    fn check_deadline(&mut self, now: Instant) {
        if self.next_deadline().is_none_or(|at| now < at) {
            return;
        }
        let config = &self.settings.config;
        let reason = match &self.state {
            State::Connected => CloseReason::ConsentExpired(config.consent_timeout),
            _ => self.not_set_up_within(config.setup_timeout),
        };
        // A peer without consent is sent nothing, not even the end (RFC 7675 §5.1).
        if matches!(reason, CloseReason::ConsentExpired(_)) {
            self.session = None;
        }
        self.end(now, reason);
    }

    fn not_set_up_within(&self, time: Duration) -> CloseReason {
        let stage = match &self.session {
            None => Stage::Ice,
            Some(session) if !session.is_secured() => Stage::Dtls,
            Some(_) => Stage::Sctp,
        };
        CloseReason::SetupTimedOut(stage, time)
    }
}

#[cfg(test)]
mod tests;
