//! The interface of an implementation: one connection without I/O.

use std::net::SocketAddr;

use bytes::Bytes;
use rexmit_core::{Instant, Route};

use crate::hosts::{ConnectionEvent, WriteResult};

/// One connection of an implementation, without I/O.
pub(super) trait Stack {
    /// Opens the connection.
    fn connect(&mut self, now: Instant, remote: SocketAddr);
    /// Processes a received packet.
    fn handle_input(&mut self, now: Instant, route: Route, packet: &[u8]);
    /// Processes expired timers.
    fn handle_timeout(&mut self, now: Instant);
    /// Writes the next packet into `packet`, if there is one.
    fn poll_transmit(&mut self, now: Instant, packet: &mut Vec<u8>) -> bool;
    /// The next event.
    fn poll_event(&mut self) -> Option<ConnectionEvent>;
    /// The time of the next call of [`handle_timeout`](Self::handle_timeout).
    fn poll_timeout(&mut self, now: Instant) -> Option<Instant>;
    /// Accepts a message to send, as a whole or not at all.
    fn write(&mut self, now: Instant, message: &Bytes) -> WriteResult;
    /// Accepts as much of a greedy transfer as the implementation should have waiting behind the messages. Does nothing
    /// unless [`Rival::has_transfer`](super::Rival::has_transfer) is true.
    fn fill_transfer(&mut self, _now: Instant) {}
    /// The bytes of the transfer received since the last call.
    fn take_transfer(&mut self) -> u64 {
        0
    }
    /// Passes received data to `each`.
    fn hand_over(&mut self, each: &mut dyn FnMut(&[u8]));
    /// Ends the connection once everything has arrived, if the implementation supports that.
    fn finish(&mut self, now: Instant);
}
