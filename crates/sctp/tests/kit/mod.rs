//! The kit of the packet scripts: one endpoint under test, a scripted peer, and the clock. A script reads like a
//! sequence chart:
//!
//! ```ignore
//! let mut s = Script::established_server();
//! s.peer_sends([Data(data(0, b"hello"))]);        // a packet arrives, now
//! expect_packet!(s, [Sack(sack)] if sack.cumulative_tsn_ack == tsn(0)); // and is answered, now
//! s.at(1_000).peer_sends([Data(data(1, b"you"))]);
//! s.at(1_200);                                    // nothing leaves before 1200 ms
//! expect_packet!(s, [Sack(_)]);
//! ```
//!
//! - Time is in milliseconds from 0 and stands still until [`Script::at`] moves it. Timers fire at
//!   their own instants on the way, so a packet is sent at exactly the millisecond of the script.
//! - A sent packet without an `expect_packet!` fails the script: before time moves on, and at its end.
//! - Every packet that is sent is checked for what must always hold; see [`Sent`].
//! - TSNs of both sides begin at [`FIRST_TSN`], two below the wrap: [`tsn`]`(2)` is 0.
//! - The shortcuts to an established association take no time and leave RTO at 1 s on both sides.

#![allow(
    dead_code,
    unused_imports,
    unused_macros,
    unreachable_pub,
    reason = "each script file uses a part of it"
)]

mod app;
mod handshake;
mod multihoming;
mod sent;

use std::sync::Arc;

use rexmit_core::{Instant, Machine, Route, Seed};
pub use rexmit_sctp::wire::Chunk::*;
pub use rexmit_sctp::wire::{
    self, Cause, Chunk, DataFlags, Header, PacketWriter, Param, ParamsWriter,
};
use rexmit_sctp::{AssociationConfig, AssociationId, Endpoint, EndpointConfig, Event};

pub use rexmit_testkit::{PacketScript, Run, address, expect_event};

pub use handshake::{COOKIE, answer_params, cookie_of, extensions, peer_init};
pub(crate) use multihoming::expect_packet_to;
pub use sent::Sent;

/// The first TSN of both sides, two below the wrap.
pub const FIRST_TSN: u32 = u32::MAX - 1;
/// The Initiate Tag of the peer, unless a script chooses another.
pub const PEER_TAG: u32 = 0x7EE7_7EE7;
/// The SCTP ports.
pub const PORT: u16 = 5000;
pub const PEER_PORT: u16 = 6000;
/// The receive window of the peer.
pub const PEER_RWND: u32 = 100_000;

/// The `n`th TSN of either side, from 0.
pub const fn tsn(n: u32) -> u32 {
    FIRST_TSN.wrapping_add(n)
}

/// The peer's `n`th DATA chunk: an ordered message on stream 0, the SSN of which is `n`, too.
pub fn data(n: u16, payload: &[u8]) -> wire::Data<'_> {
    let flags = DataFlags { beginning: true, ending: true, ..DataFlags::default() };
    wire::Data { flags, tsn: tsn(n.into()), stream: 0, ssn: n, ppid: 0, payload }
}

/// Takes the next packet, which must be sent now, and matches its chunks: `expect_packet!(script, [pattern, …] if guard
/// => value)`; guard and value may be left out.
///
/// The packet must have the peer's tag, or with `expect_packet!(script, tag t, […])` the tag `t`.
macro_rules! expect_packet {
    ($script:expr, tag $tag:expr, [$($chunk:pat),*] $(if $guard:expr)? $(=> $value:expr)?) => {{
        let sent = $script.next_packet();
        assert_eq!(sent.header.verification_tag, $tag, "verification tag of {sent:?}");
        match sent.chunks()[..] {
            [$($chunk),*] $(if $guard)? => ($($value)?),
            _ => panic!(
                "expected [{}], but what was transmitted was {sent:?}",
                stringify!($($chunk),* $(if $guard)?),
            ),
        }
    }};
    ($script:expr, $($rest:tt)*) => {{
        let tag = $script.peer.tag;
        $crate::kit::expect_packet!($script, tag tag, $($rest)*)
    }};
}
pub(crate) use expect_packet;

/// The peer's identity, as the endpoint sees it.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// The route from the endpoint to the peer.
    pub route: Route,
    pub port: u16,
    /// The peer's Initiate Tag, which packets to it must have.
    pub tag: u32,
    /// The endpoint's Initiate Tag, with which the peer sends.
    pub endpoint_tag: u32,
}

/// See the module.
pub struct Script {
    pub endpoint: Endpoint,
    pub peer: Peer,
    run: Run<AssociationId, Event>,
}

impl Script {
    /// An endpoint that accepts, with the defaults that `change` changes; nothing has happened.
    pub fn with(change: impl FnOnce(&mut EndpointConfig, &mut AssociationConfig)) -> Self {
        let mut config =
            EndpointConfig::default().port(PORT).accept(true).initial_tsn(Some(FIRST_TSN));
        let mut association = AssociationConfig::rfc9260();
        change(&mut config, &mut association);
        config.association = Arc::new(association);
        let route = Route { local: address(1, 9899), remote: address(2, 9899) };
        Self {
            endpoint: Endpoint::new(config, &Seed::from_u64(1)).expect("a valid configuration"),
            peer: Peer { route, port: PEER_PORT, tag: PEER_TAG, endpoint_tag: 0 },
            run: Run::default(),
        }
    }

    /// A packet of the peer with these chunks arrives.
    pub fn peer_sends<'c>(&mut self, chunks: impl IntoIterator<Item = Chunk<'c>>) {
        self.peer_sends_under(self.peer.endpoint_tag, chunks);
    }

    /// As [`Self::peer_sends`], with another verification tag.
    pub fn peer_sends_under<'c>(&mut self, tag: u32, chunks: impl IntoIterator<Item = Chunk<'c>>) {
        self.peer_writes_under(tag, |packet| {
            for chunk in chunks {
                assert!(packet.chunk(&chunk), "{chunk:?} can be written");
            }
        });
    }

    /// A packet of the peer arrives, written by `build`: for chunks with lists.
    pub fn peer_writes<T>(&mut self, build: impl FnOnce(&mut PacketWriter<'_>) -> T) {
        self.peer_writes_under(self.peer.endpoint_tag, build);
    }

    /// As [`Self::peer_writes`], with another verification tag.
    pub fn peer_writes_under<T>(
        &mut self,
        tag: u32,
        build: impl FnOnce(&mut PacketWriter<'_>) -> T,
    ) {
        let bytes = self.peer_packet(tag, build);
        self.deliver(&bytes);
    }

    /// A SACK of the peer without gaps arrives.
    pub fn peer_acknowledges(&mut self, cumulative_tsn_ack: u32) {
        self.peer_writes(|p| p.sack(cumulative_tsn_ack, PEER_RWND, [], []));
    }

    /// A packet of the peer, to be delivered, changed or lost by the script.
    pub fn peer_packet<T>(
        &self,
        verification_tag: u32,
        build: impl FnOnce(&mut PacketWriter<'_>) -> T,
    ) -> Vec<u8> {
        let header =
            Header { source_port: self.peer.port, destination_port: PORT, verification_tag };
        let mut bytes = Vec::new();
        let mut packet = PacketWriter::new(&mut bytes, 65_000, header);
        build(&mut packet);
        packet.finish();
        bytes
    }

    /// Delivers these bytes from the peer.
    pub fn deliver(&mut self, bytes: &[u8]) {
        self.endpoint.handle_input(self.run.now, self.peer.route, bytes);
    }
}

impl PacketScript for Script {
    type Endpoint = Endpoint;
    type Id = AssociationId;
    type Event = Event;
    type Sent = Sent;

    fn run(&self) -> &Run<AssociationId, Event> {
        &self.run
    }

    fn parts(&mut self) -> (&mut Endpoint, &mut Run<AssociationId, Event>) {
        (&mut self.endpoint, &mut self.run)
    }

    #[track_caller]
    fn read_sent(&self, at: Instant, route: Route, bytes: Vec<u8>) -> Sent {
        Sent::new(at, route, bytes, self.peer.port)
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
