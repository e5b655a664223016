//! The interface of an implementation for the loop.

use std::net::SocketAddr;
use std::time::Instant;

/// An event of a stack.
#[derive(Debug)]
pub enum Notice {
    /// The association is established.
    Connected,
    /// A message arrived.
    Message {
        /// On which stream.
        stream: u16,
        /// The bytes of the message.
        payload: Vec<u8>,
    },
    /// The association has ended; with the stack's error text if it failed.
    Closed(Option<String>),
}

/// One association of an implementation under test, without input and output.
pub trait Stack {
    /// The implementation's name in reports.
    const NAME: &'static str;

    /// Opens the association (client).
    fn connect(&mut self, now: Instant, remote: SocketAddr);

    /// Processes a packet from the network.
    fn handle_input(&mut self, now: Instant, remote: SocketAddr, packet: &[u8]);

    /// Handles the timers that are due.
    fn handle_timeout(&mut self, now: Instant);

    /// When `handle_timeout` is next due.
    fn poll_timeout(&mut self) -> Option<Instant>;

    /// The next packet for the network.
    fn poll_transmit(&mut self, now: Instant) -> Option<Vec<u8>>;

    /// The next event.
    fn poll_notice(&mut self) -> Option<Notice>;

    /// Takes a message to send.
    ///
    /// # Errors
    /// The stack's word for its refusal.
    fn send(&mut self, stream: u16, is_unordered: bool, payload: Vec<u8>) -> Result<(), String>;

    /// Bytes accepted by `send` that wait in the stack, if it reports them.
    fn queued(&mut self) -> usize;

    /// Whether all sent messages have been acknowledged.
    fn is_acknowledged(&mut self) -> bool;

    /// Begins the graceful shutdown.
    fn shutdown(&mut self);
}
