//! KCP, an ARQ protocol used by games over UDP, in its fast mode. The window of the normal mode
//! delays even thin streams.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use kcp::Kcp;
use rexmit_core::{Instant, Route};

use super::Role;
use super::stack::Stack;
use crate::hosts::{ConnectionEvent, WriteResult};

/// The conversation number, which both ends must know in advance: there is no handshake.
const CONVERSATION: u32 = 1;
/// The window of each end, in segments, as commonly used with the fast mode.
const TURBO_WINDOW: u16 = 128;
/// Largest number of queued segments; beyond it, the sender must wait.
const MAX_WAITING: usize = 4096;
/// The first byte of each message is its type.
const MESSAGE: u8 = 0;
const TRANSFER: u8 = 1;
/// The size of a transfer's message in bytes; each is one segment.
const TRANSFER_BYTES: usize = 1200;

pub(super) struct KcpStack {
    kcp: Kcp<Packets>,
    packets: Packets,
    is_tuned: bool,
    is_connected: bool,
    incoming: bool,
    is_blocked: bool,
    events: VecDeque<ConnectionEvent>,
    buffer: Vec<u8>,
    messages: VecDeque<Vec<u8>>,
    transferred: u64,
}

/// The packets that KCP has written.
#[derive(Clone, Default)]
struct Packets(Rc<RefCell<VecDeque<Vec<u8>>>>);

impl Write for Packets {
    fn write(&mut self, packet: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().push_back(packet.to_vec());
        Ok(packet.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The time in whole milliseconds, KCP's unit.
fn millis(now: Instant) -> u32 {
    (now.as_nanos() / 1_000_000) as u32
}

impl KcpStack {
    pub(super) fn new(role: Role, is_tuned: bool) -> Result<Self, String> {
        let packets = Packets::default();
        let mut kcp = Kcp::new(CONVERSATION, packets.clone());
        let fast_resend = if is_tuned { 1 } else { 2 };
        kcp.set_nodelay(true, 10, fast_resend, true);
        kcp.set_wndsize(TURBO_WINDOW, TURBO_WINDOW);
        kcp.update(0).map_err(|error| error.to_string())?;
        Ok(Self {
            kcp,
            packets,
            is_tuned,
            is_connected: false,
            incoming: role == Role::Accepts,
            is_blocked: false,
            events: VecDeque::new(),
            buffer: Vec::new(),
            messages: VecDeque::new(),
            transferred: 0,
        })
    }

    fn connected(&mut self) {
        if !self.is_connected {
            self.is_connected = true;
            self.events.push_back(ConnectionEvent::Connected { incoming: self.incoming });
        }
    }

    /// Queues a message; `kind` is its first byte.
    fn send(&mut self, kind: u8, message: &[u8]) -> bool {
        self.buffer.clear();
        self.buffer.push(kind);
        self.buffer.extend_from_slice(message);
        self.kcp.send(&self.buffer).is_ok()
    }

    /// Reads all complete messages.
    fn receive(&mut self) {
        while let Ok(size) = self.kcp.peeksize() {
            self.buffer.resize(size, 0);
            let Ok(size) = self.kcp.recv(&mut self.buffer) else { return };
            match self.buffer[..size].split_first() {
                Some((&TRANSFER, piece)) => self.transferred += piece.len() as u64,
                Some((_, message)) => self.messages.push_back(message.to_vec()),
                None => {}
            }
        }
    }

    /// Sends the segments that may be sent, without waiting for the update interval.
    fn flush(&mut self, now: Instant) {
        // Writing to memory does not fail.
        let _ = self.kcp.update(millis(now));
        let _ = self.kcp.flush();
    }
}

impl Stack for KcpStack {
    fn connect(&mut self, _: Instant, _: SocketAddr) {
        self.connected();
    }

    fn handle_input(&mut self, now: Instant, _: Route, packet: &[u8]) {
        self.connected();
        let _ = self.kcp.update(millis(now));
        // Packets that it rejects are lost.
        let _ = self.kcp.input(packet);
        let _ = self.kcp.flush();
        self.receive();
        if !self.messages.is_empty() {
            self.events.push_back(ConnectionEvent::Readable);
        }
        if self.is_blocked && self.kcp.wait_snd() < MAX_WAITING {
            self.is_blocked = false;
            self.events.push_back(ConnectionEvent::Writable);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        let _ = self.kcp.update(millis(now));
        if self.is_tuned {
            // Without a flush, due segments wait for the next interval.
            let _ = self.kcp.flush();
        }
    }

    fn poll_transmit(&mut self, _: Instant, packet: &mut Vec<u8>) -> bool {
        let next = self.packets.0.borrow_mut().pop_front();
        next.map(|next| *packet = next).is_some()
    }

    fn poll_event(&mut self) -> Option<ConnectionEvent> {
        self.events.pop_front()
    }

    /// An update is due only while segments are unacknowledged.
    fn poll_timeout(&mut self, now: Instant) -> Option<Instant> {
        if self.kcp.wait_snd() == 0 {
            return None;
        }
        let due = u64::from(self.kcp.check(millis(now)).max(1));
        let begun = now.as_nanos() / 1_000_000;
        Some(Instant::ZERO + Duration::from_millis(begun + due))
    }

    fn write(&mut self, now: Instant, message: &Bytes) -> WriteResult {
        if self.kcp.wait_snd() >= MAX_WAITING {
            self.is_blocked = true;
            return WriteResult::Full;
        }
        if !self.send(MESSAGE, message) {
            return WriteResult::Ended;
        }
        self.flush(now);
        WriteResult::All
    }

    /// Messages and transfer share one queue, so at most a window of the transfer is queued.
    fn fill_transfer(&mut self, now: Instant) {
        let mut is_new = false;
        while self.kcp.wait_snd() < TURBO_WINDOW.into() && self.send(TRANSFER, &[0; TRANSFER_BYTES])
        {
            is_new = true;
        }
        if is_new {
            self.flush(now);
        }
    }

    fn take_transfer(&mut self) -> u64 {
        std::mem::take(&mut self.transferred)
    }

    fn hand_over(&mut self, each: &mut dyn FnMut(&[u8])) {
        self.messages.drain(..).for_each(|message| each(&message));
    }

    /// KCP has no shutdown.
    fn finish(&mut self, _: Instant) {}
}
