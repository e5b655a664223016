//! The interface of transports for programs.

use std::fmt::Debug;
use std::hash::Hash;
use std::net::SocketAddr;

use bytes::Bytes;
use rexmit_core::{Instant, Machine, Route};

/// What happened to a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum News {
    /// It is established.
    Connected {
        /// Whether the peer asked for it.
        incoming: bool,
    },
    /// There is something to take.
    Readable,
    /// There is room again.
    Writable,
    /// It is over; nothing more comes of it.
    Closed {
        /// Whether both sides ended it in order.
        is_orderly: bool,
    },
}

/// What became of bytes that were given to a transport.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Given {
    /// All were accepted.
    All,
    /// The rest has to wait for [`News::Writable`].
    Full,
    /// The connection takes no more.
    Ended,
}

/// How it stands when everything was taken that had arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Taken {
    /// More may come.
    Open,
    /// The peer has finished, or the connection is over.
    End,
}

/// A transport protocol of one host, as programs see it: connections that carry bytes.
pub trait Transport: Machine + Send + 'static {
    /// Names a connection.
    type Id: Copy + Eq + Hash + Debug + Send;
    /// Tells from packets what has arrived before it is delivered.
    type Watch: Watch;
    /// The IP protocol number.
    const IP_PROTOCOL: u8;
    /// Whether what is given at once is taken at once: messages, not a stream.
    const KEEPS_BOUNDARIES: bool;
    /// How much a bulk sender gives at once, unless it is told otherwise.
    const WRITE_BYTES: usize;

    /// That of its packets, where it depends on how the transport is set.
    fn ip_protocol(&self) -> u8 {
        Self::IP_PROTOCOL
    }

    /// Begins a connection; ports are the protocol's, that of `local` may be 0 where the protocol
    /// chooses. `None` if there can be none.
    fn begin(&mut self, now: Instant, local: SocketAddr, remote: SocketAddr) -> Option<Self::Id>;

    /// The news in an event; `None` if programs do not need it.
    fn news(event: &Self::Event) -> Option<(Self::Id, News)>;

    /// Accepts from the front of `bytes` what finds room: parts where boundaries are not kept,
    /// else all or nothing.
    fn give(&mut self, now: Instant, id: Self::Id, bytes: &mut Bytes) -> Given;

    /// Hands everything that has arrived to `each`, in pieces or messages.
    fn take(&mut self, now: Instant, id: Self::Id, each: &mut dyn FnMut(&[u8])) -> Taken;

    /// Nothing more will be given; what was given is still delivered.
    fn finish(&mut self, now: Instant, id: Self::Id);

    /// Ends the connection at once.
    fn abort(&mut self, now: Instant, id: Self::Id);
}

/// The data in a packet, in order or not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival<'a> {
    /// Bytes `start..end` of the stream, perhaps not for the first time.
    Bytes {
        /// The first.
        start: u64,
        /// The one after the last.
        end: u64,
    },
    /// The last missing piece of the message that begins so.
    Message(&'a [u8]),
}

/// Looks at the packets of one connection on their way to the transport.
pub trait Watch: Default + Send + 'static {
    /// A packet arrived; reports its data to `found`.
    fn on_packet(&mut self, route: Route, packet: &[u8], found: &mut dyn FnMut(Arrival<'_>));
}

/// No watch: delivery is arrival.
impl Watch for () {
    fn on_packet(&mut self, _: Route, _: &[u8], _: &mut dyn FnMut(Arrival<'_>)) {}
}
