//! The interface between transports and programs.

use std::fmt::Debug;
use std::hash::Hash;
use std::net::SocketAddr;

use bytes::Bytes;
use rexmit_core::{Instant, Machine, Route};

/// An event of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConnectionEvent {
    /// The connection is established.
    Connected {
        /// Whether the peer opened it.
        incoming: bool,
    },
    /// Received data can be read.
    Readable,
    /// There is room in the send buffer again.
    Writable,
    /// The deadline of messages cannot be met with the probability asked for.
    Infeasible,
    /// The connection has ended; no events follow.
    Closed {
        /// Whether both sides ended it gracefully.
        is_graceful: bool,
    },
}

/// The result of passing bytes to a transport.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriteResult {
    /// All bytes were accepted.
    All,
    /// The send buffer is full; the caller passes the rest after [`ConnectionEvent::Writable`].
    Full,
    /// The connection accepts no more data.
    Ended,
}

/// The state of a connection after all received data was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadResult {
    /// More data may arrive.
    Open,
    /// The peer has finished sending, or the connection has ended.
    End,
}

/// A transport protocol of one host, as used by programs: connections that carry bytes.
pub trait Transport: Machine + Send + 'static {
    /// Identifies a connection.
    type Id: Copy + Eq + Hash + Debug + Send;
    /// Detects arrival of data from packets, before it is delivered.
    type Watch: Watch;
    /// The IP protocol number.
    const IP_PROTOCOL: u8;
    /// Whether bytes are received in the same units in which they were sent: messages, not a
    /// stream.
    const KEEPS_BOUNDARIES: bool;
    /// The default number of bytes per write of a bulk sender.
    const WRITE_BYTES: usize;

    /// The IP protocol number of its packets, where it depends on the configuration.
    fn ip_protocol(&self) -> u8 {
        Self::IP_PROTOCOL
    }

    /// Opens a connection. Ports are those of the protocol; that of `local` may be 0 if the
    /// protocol chooses one. `None` if it cannot be opened.
    fn begin(&mut self, now: Instant, local: SocketAddr, remote: SocketAddr) -> Option<Self::Id>;

    /// The connection event in an event of the protocol; `None` if programs do not need it.
    fn connection_event(event: &Self::Event) -> Option<(Self::Id, ConnectionEvent)>;

    /// Accepts as many bytes from the front of `bytes` as fit into the send buffer: a part of a
    /// stream, or a message as a whole or not at all.
    fn write(&mut self, now: Instant, id: Self::Id, bytes: &mut Bytes) -> WriteResult;

    /// Passes all received data to `each`, in pieces or messages.
    fn read(&mut self, now: Instant, id: Self::Id, each: &mut dyn FnMut(&[u8])) -> ReadResult;

    /// Ends sending; accepted data is still delivered.
    fn finish(&mut self, now: Instant, id: Self::Id);

    /// Aborts the connection.
    fn abort(&mut self, now: Instant, id: Self::Id);
}

/// The data in an arriving packet, in order or not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival<'a> {
    /// Bytes `start..end` of the stream, possibly duplicates.
    Bytes {
        /// The first byte or message.
        start: u64,
        /// The one after the last.
        end: u64,
    },
    /// The last missing fragment of the message that begins with these bytes.
    Message(&'a [u8]),
}

/// Inspects the packets of one connection before the transport processes them.
pub trait Watch: Default + Send + 'static {
    /// Called for an arriving packet; reports its data to `found`.
    fn on_packet(&mut self, route: Route, packet: &[u8], found: &mut dyn FnMut(Arrival<'_>));
}

/// No inspection: data counts as arrived when it is delivered.
impl Watch for () {
    fn on_packet(&mut self, _: Route, _: &[u8], _: &mut dyn FnMut(Arrival<'_>)) {}
}
