//! The kit of the packet scripts: one endpoint under test, a peer that is driven by hand, and the
//! clock. A script reads like a sequence chart:
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
//!   their own instants on the way, so a packet leaves at exactly the millisecond a script says.
//! - A packet that no `expect_packet!` took fails the script: before time moves on, and at its end.
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
mod homes;
mod sent;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use rexmit_core::{Instant, Machine, Route, Seed};
pub use rexmit_sctp::wire::Chunk::*;
pub use rexmit_sctp::wire::{
    self, Cause, Chunk, DataFlags, Header, PacketWriter, Param, ParamsWriter,
};
use rexmit_sctp::{AssociationConfig, AssociationId, Endpoint, EndpointConfig, Event};

pub use handshake::{COOKIE, answer_params, cookie_of, extensions, peer_init};
pub(crate) use homes::expect_packet_to;
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

/// `192.0.2.host`, with the encapsulation's port.
pub fn address(host: u8, udp_port: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, host], udp_port))
}

/// Takes the next packet, which must leave now, and matches its chunks:
/// `expect_packet!(script, [pattern, …] if guard => value)`; guard and value may be left out.
///
/// The packet bears the peer's tag. `expect_packet!(script, tag t, […])` asks for the tag `t` instead.
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

/// Takes the next event: `expect_event!(script, pattern if guard => value)`.
macro_rules! expect_event {
    ($script:expr, $event:pat $(if $guard:expr)? $(=> $value:expr)?) => {
        match $script.next_event() {
            Some($event) $(if $guard)? => ($($value)?),
            other => panic!("expected {}, got {other:?}", stringify!($event $(if $guard)?)),
        }
    };
}
pub(crate) use expect_event;

/// The peer as the endpoint knows it.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// The way from the endpoint to the peer.
    pub route: Route,
    pub port: u16,
    /// Its Initiate Tag: under it packets must come.
    pub tag: u32,
    /// The endpoint's Initiate Tag: under it the peer sends.
    pub endpoint_tag: u32,
}

/// See the module.
pub struct Script {
    pub endpoint: Endpoint,
    pub peer: Peer,
    now: Instant,
    id: Option<AssociationId>,
    events: VecDeque<Event>,
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
            now: Instant::ZERO,
            id: None,
            events: VecDeque::new(),
        }
    }

    /// The time, in milliseconds.
    pub fn now_ms(&self) -> u64 {
        self.now.as_nanos() / 1_000_000
    }

    /// Moves the clock to `ms`: nothing may leave before; the timers due then have fired.
    #[track_caller]
    pub fn at(&mut self, ms: u64) -> &mut Self {
        let end = Instant::from_millis(ms);
        assert!(end >= self.now, "{ms} ms is past at {:?}", self.now);
        self.expect_silence();
        while let Some(due) = self.endpoint.poll_timeout().filter(|&due| due < end) {
            self.fire(due);
            self.expect_silence();
        }
        self.fire(end);
        self
    }

    /// Moves the clock to `ms`; nothing may leave before, nor then.
    #[track_caller]
    pub fn expect_silence_until(&mut self, ms: u64) {
        self.at(ms).expect_silence();
    }

    /// Moves the clock to `ms`; whatever leaves before is lost.
    pub fn lose_until(&mut self, ms: u64) {
        let end = Instant::from_millis(ms);
        while self.poll_packet().is_some() {}
        while let Some(due) = self.endpoint.poll_timeout().filter(|&due| due < end) {
            self.fire(due);
            while self.poll_packet().is_some() {}
        }
        self.fire(end);
    }

    /// Nothing may leave now.
    #[track_caller]
    pub fn expect_silence(&mut self) {
        if let Some(sent) = self.poll_packet() {
            panic!("nothing was expected, but {sent:?} left");
        }
    }

    /// The next packet, which must leave now.
    #[track_caller]
    pub fn next_packet(&mut self) -> Sent {
        let now = self.now;
        self.poll_packet().unwrap_or_else(|| panic!("at {now:?} a packet was to leave; none did"))
    }

    /// Moves the clock to where the next packet leaves, for those whose time is random.
    #[track_caller]
    pub fn wait_for_packet(&mut self) -> Sent {
        loop {
            if let Some(sent) = self.poll_packet() {
                return sent;
            }
            let due = self.endpoint.poll_timeout().expect("no timer runs, and nothing leaves");
            self.fire(due);
        }
    }

    /// The next packet, if one leaves now.
    pub fn poll_packet(&mut self) -> Option<Sent> {
        let mut bytes = Vec::new();
        let route = self.endpoint.poll_transmit(self.now, &mut bytes)?;
        Some(Sent::new(self.now, route, bytes, self.peer.port))
    }

    fn fire(&mut self, at: Instant) {
        self.now = at.max(self.now);
        self.endpoint.handle_timeout(self.now);
        let next = self.endpoint.poll_timeout();
        assert!(next.is_none_or(|next| next > self.now), "a timer that was due did not fire");
    }

    /// A packet of the peer with these chunks arrives.
    pub fn peer_sends<'c>(&mut self, chunks: impl IntoIterator<Item = Chunk<'c>>) {
        self.peer_sends_under(self.peer.endpoint_tag, chunks);
    }

    /// The same, under another verification tag.
    pub fn peer_sends_under<'c>(&mut self, tag: u32, chunks: impl IntoIterator<Item = Chunk<'c>>) {
        self.peer_writes_under(tag, |packet| {
            for chunk in chunks {
                assert!(packet.chunk(&chunk), "{chunk:?} can be written");
            }
        });
    }

    /// A packet of the peer arrives, as `build` fills it: for chunks with lists.
    pub fn peer_writes<T>(&mut self, build: impl FnOnce(&mut PacketWriter<'_>) -> T) {
        self.peer_writes_under(self.peer.endpoint_tag, build);
    }

    /// The same, under another verification tag.
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

    /// These bytes arrive from the peer.
    pub fn deliver(&mut self, bytes: &[u8]) {
        self.endpoint.handle_input(self.now, self.peer.route, bytes);
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
