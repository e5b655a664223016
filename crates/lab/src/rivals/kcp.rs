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
use crate::hosts::{Given, News};

/// The conversation number, which both ends must know in advance: there is no handshake.
const CONVERSATION: u32 = 1;
/// The window of each end, in segments, as commonly used with the fast mode.
const TURBO_WINDOW: u16 = 128;
/// Largest number of queued segments; beyond it, the sender must wait.
const MAX_WAITING: usize = 4096;

pub(super) struct KcpStack {
    kcp: Kcp<Packets>,
    packets: Packets,
    is_tuned: bool,
    is_connected: bool,
    incoming: bool,
    is_blocked: bool,
    news: VecDeque<News>,
    buffer: Vec<u8>,
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
            news: VecDeque::new(),
            buffer: Vec::new(),
        })
    }

    fn connected(&mut self) {
        if !self.is_connected {
            self.is_connected = true;
            self.news.push_back(News::Connected { incoming: self.incoming });
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
        if self.kcp.peeksize().is_ok() {
            self.news.push_back(News::Readable);
        }
        if self.is_blocked && self.kcp.wait_snd() < MAX_WAITING {
            self.is_blocked = false;
            self.news.push_back(News::Writable);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        let _ = self.kcp.update(millis(now));
        if self.is_tuned {
            // Else what is due waits for the next interval.
            let _ = self.kcp.flush();
        }
    }

    fn poll_transmit(&mut self, _: Instant, packet: &mut Vec<u8>) -> bool {
        let next = self.packets.0.borrow_mut().pop_front();
        next.map(|next| *packet = next).is_some()
    }

    fn poll_news(&mut self) -> Option<News> {
        self.news.pop_front()
    }

    /// If no segment is unacknowledged, no update is due.
    fn poll_timeout(&mut self, now: Instant) -> Option<Instant> {
        if self.kcp.wait_snd() == 0 {
            return None;
        }
        let due = u64::from(self.kcp.check(millis(now)).max(1));
        let begun = now.as_nanos() / 1_000_000;
        Some(Instant::ZERO + Duration::from_millis(begun + due))
    }

    fn give(&mut self, now: Instant, message: &Bytes) -> Given {
        if self.kcp.wait_snd() >= MAX_WAITING {
            self.is_blocked = true;
            return Given::Full;
        }
        match self.kcp.send(message) {
            Ok(_) => {
                self.flush(now);
                Given::All
            }
            Err(_) => Given::Ended,
        }
    }

    fn hand_over(&mut self, each: &mut dyn FnMut(&[u8])) {
        while let Ok(size) = self.kcp.peeksize() {
            self.buffer.resize(size, 0);
            match self.kcp.recv(&mut self.buffer) {
                Ok(size) => each(&self.buffer[..size]),
                Err(_) => return,
            }
        }
    }

    /// KCP has no shutdown.
    fn finish(&mut self, _: Instant) {}
}
