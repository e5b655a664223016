//! The kit of the packet scripts: one endpoint under test, a scripted peer, and the clock. A script reads like a
//! sequence chart:
//!
//! ```ignore
//! let mut s = Script::established_server();
//! s.arrives(data(1, 1, b"hello"));        // a segment arrives, now
//! s.at(40).expect(ack(1, 6));             // and is answered when the delay is over, not before
//! s.send(b"you");
//! s.expect(data(1, 6, b"you"));           // leaves now
//! ```
//!
//! - Time is in milliseconds from 0 and stands still until [`Script::at`] moves it. Timers fire at their own instants
//!   on the way, so a segment is sent at exactly the millisecond of the script.
//! - An unexpected segment fails the script: before time moves on, and at its end.
//! - Every segment that is sent is checked for what must always hold; see [`Sent`].
//! - Sequence and acknowledgment numbers are counted from the SYN of their own side, which is 0.
//!   On the wire the SYNs are [`ISS`] and [`PEER_ISS`], just below the wrap.
//! - The peer offers no options but an MSS, unless a script fills [`Peer::options`].
//! - The shortcuts to an established connection take no time.

#![allow(dead_code, unused_imports, unreachable_pub, reason = "each script file uses a part of it")]
#![allow(clippy::needless_pass_by_value, reason = "a script writes its segments down in place")]

mod app;
mod draft;
mod handshake;

use std::net::SocketAddr;
use std::sync::Arc;

use rexmit_core::{Instant, Machine, Route, Seed};
pub use rexmit_tcp::wire::{self, Flags, Header, Options, SackBlocks, Segment, Timestamps};
pub use rexmit_tcp::{CloseReason, ConnectionConfig, Endpoint, EndpointConfig, Event, State};
use rexmit_tcp::{ConnectionId, EndpointStatistics};

pub use rexmit_testkit::{PacketScript, Run, address, expect_event};

pub use draft::{Draft, Sent, ack, data, fin, rst, rst_ack, syn, syn_ack};

/// The initial sequence number of the endpoint, two below the wrap.
pub const ISS: u32 = u32::MAX - 1;
/// The peer's initial sequence number, three below the wrap.
pub const PEER_ISS: u32 = u32::MAX - 2;
/// The port of the endpoint: for listening, and for connecting.
pub const PORT: u16 = 80;
/// The port of the peer.
pub const PEER_PORT: u16 = 6000;
/// The window field of the peer's segments, unless a script chooses another.
pub const PEER_WINDOW: u16 = 60_000;

/// The peer, as the script drives it.
#[derive(Clone, Debug)]
pub struct Peer {
    pub address: SocketAddr,
    /// The endpoint's address and port, as the peer knows it.
    pub endpoint: SocketAddr,
    /// The peer's initial sequence number, from which its drafts are counted.
    pub iss: u32,
    /// The endpoint's initial sequence number, from which the peer's acknowledgments are counted.
    pub endpoint_iss: u32,
    /// The options of its SYN or SYN-ACK.
    pub options: Options,
    /// The timestamps of its other segments.
    pub timestamps: Option<Timestamps>,
}

/// See the module.
pub struct Script {
    pub endpoint: Endpoint,
    pub peer: Peer,
    run: Run<ConnectionId, Event>,
}

impl Script {
    /// An endpoint that listens on [`PORT`], with the defaults that `change` changes; nothing has
    /// happened.
    pub fn with(change: impl FnOnce(&mut EndpointConfig, &mut ConnectionConfig)) -> Self {
        let mut script = Self::silent_with(change);
        script.endpoint.listen(PORT, None).expect("a free port");
        script
    }

    /// As [`Self::with`], but the endpoint does not listen.
    pub fn silent_with(change: impl FnOnce(&mut EndpointConfig, &mut ConnectionConfig)) -> Self {
        let mut config = EndpointConfig::default().initial_sequence(Some(ISS));
        let mut connection = ConnectionConfig::sack();
        change(&mut config, &mut connection);
        config.connection = Arc::new(connection);
        let peer = Peer {
            address: address(2, PEER_PORT),
            endpoint: address(1, PORT),
            iss: PEER_ISS,
            endpoint_iss: ISS,
            options: Options { mss: Some(1460), ..Options::default() },
            timestamps: None,
        };
        Self {
            endpoint: Endpoint::new(config, &Seed::from_u64(1)).expect("a valid configuration"),
            peer,
            run: Run::default(),
        }
    }

    /// When the endpoint wants to be called, in milliseconds.
    pub fn next_timeout_ms(&self) -> Option<u64> {
        self.endpoint.poll_timeout().map(|at| at.as_nanos() / 1_000_000)
    }

    /// The next segment must be sent now, with the flags (except PSH), numbers and payload of `draft`; the caller
    /// checks its window and options.
    #[track_caller]
    pub fn expect(&mut self, draft: Draft) -> Sent {
        let sent = self.next_packet();
        let expected = draft.header(self.peer.endpoint_iss, self.peer.iss);
        let fields = |header: &Header| {
            let push = Flags::PSH.0;
            (header.flags.0 & !push, header.sequence, header.acknowledgment)
        };
        let is_same = fields(&sent.header) == fields(&expected) && sent.payload == draft.payload;
        assert!(
            is_same && sent.remote == self.peer.address,
            "expected {draft:?}, but what was transmitted was {sent:?} = {:?}",
            sent.relative(self.peer.endpoint_iss, self.peer.iss),
        );
        sent
    }

    /// A segment of the peer arrives.
    pub fn arrives(&mut self, draft: Draft) {
        let bytes = self.peer_segment(&draft);
        self.deliver(&bytes);
    }

    /// The same as `arrives`, from another address and port; its numbers are counted as the peer's.
    pub fn arrives_from(&mut self, from: SocketAddr, draft: Draft) {
        let peer = std::mem::replace(&mut self.peer.address, from);
        self.arrives(draft);
        self.peer.address = peer;
    }

    /// The bytes of a segment of the peer, to be delivered, changed or lost by the script.
    pub fn peer_segment(&self, draft: &Draft) -> Vec<u8> {
        let mut header = draft.header(self.peer.iss, self.peer.endpoint_iss);
        header.source_port = self.peer.address.port();
        header.destination_port = self.peer.endpoint.port();
        if draft.options.is_none() {
            header.options = if draft.flags.has(Flags::SYN) {
                self.peer.options
            } else {
                Options { timestamps: self.peer.timestamps, ..Options::default() }
            };
        }
        let mut bytes = Vec::new();
        let addresses = (self.peer.address.ip(), self.peer.endpoint.ip());
        header.write(addresses, (&draft.payload, &[]), &mut bytes);
        bytes
    }

    /// Delivers these bytes from the peer.
    pub fn deliver(&mut self, bytes: &[u8]) {
        let route = Route {
            local: (self.peer.endpoint.ip(), 0).into(),
            remote: (self.peer.address.ip(), 0).into(),
        };
        self.endpoint.handle_input(self.run.now, route, bytes);
    }
}

impl PacketScript for Script {
    type Endpoint = Endpoint;
    type Id = ConnectionId;
    type Event = Event;
    type Sent = Sent;

    fn run(&self) -> &Run<ConnectionId, Event> {
        &self.run
    }

    fn parts(&mut self) -> (&mut Endpoint, &mut Run<ConnectionId, Event>) {
        (&mut self.endpoint, &mut self.run)
    }

    #[track_caller]
    fn read_sent(&self, at: Instant, route: Route, bytes: Vec<u8>) -> Sent {
        Sent::new(at, route, bytes)
    }

    fn is_last(event: &Event) -> bool {
        matches!(event, Event::Closed(_))
    }
}

/// An unexpected transmission is a failure.
impl Drop for Script {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.expect_silence();
        }
    }
}
