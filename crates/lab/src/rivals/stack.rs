//! The interface of a rival: one connection without input and output.

use std::net::SocketAddr;

use bytes::Bytes;
use rexmit_core::{Instant, Route};

use crate::hosts::{Given, News};

/// One connection of a rival, without input and output.
pub(super) trait Stack {
    /// Makes the connection.
    fn connect(&mut self, now: Instant, remote: SocketAddr);
    /// Takes a packet.
    fn handle_input(&mut self, now: Instant, route: Route, packet: &[u8]);
    /// Lets what is due happen.
    fn handle_timeout(&mut self, now: Instant);
    /// Writes the next packet into `packet`, if there is one.
    fn poll_transmit(&mut self, now: Instant, packet: &mut Vec<u8>) -> bool;
    /// What happened next.
    fn poll_news(&mut self) -> Option<News>;
    /// When [`handle_timeout`](Self::handle_timeout) is due.
    fn poll_timeout(&mut self, now: Instant) -> Option<Instant>;
    /// Takes a message to send, whole or not at all.
    fn give(&mut self, now: Instant, message: &Bytes) -> Given;
    /// Hands over what has arrived.
    fn hand_over(&mut self, each: &mut dyn FnMut(&[u8]));
    /// Ends the connection once everything has arrived, where the rival can do that.
    fn finish(&mut self, now: Instant);
}
