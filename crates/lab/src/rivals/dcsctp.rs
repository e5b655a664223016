//! dcsctp, the SCTP implementation of WebRTC's data channels.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use dcsctp::api::{
    DcSctpSocket, Message, Options, PpId, SendError, SendOptions, SocketEvent, SocketTime, StreamId,
};
use rexmit_core::{Instant, Route, Seed};

use super::DcSctpProfile;
use super::stack::Stack;
use crate::hosts::{ConnectionEvent, WriteResult};

/// The minimum RTO of `tuned`; all other settings not named in the table are defaults. It is also the upper limit of
/// the backoff. Because timeouts then follow each other soon, any number of them is allowed before the connection ends.
const RTO_MIN: Duration = Duration::from_millis(120);
const DELAYED_SACK: Duration = Duration::from_millis(10);
/// The minimum RTT variance of `tuned`: small enough not to determine the RTO.
const MIN_RTT_VARIANCE: Duration = Duration::from_millis(10);
/// The stream of the messages, and its priority over a transfer: the highest of WebRTC, against 256.
const MESSAGES: StreamId = StreamId(0);
const PRIORITY: u16 = 1024;
/// A transfer: its stream, the size of its messages in bytes, and the bytes that wait to be sent.
const TRANSFER: StreamId = StreamId(1);
const TRANSFER_BYTES: usize = 16 * 1024;
const TRANSFER_WAITING: usize = 256 * 1024;

pub(super) struct DcSctp {
    socket: Box<dyn DcSctpSocket>,
    is_unordered: bool,
    incoming: bool,
    packets: VecDeque<Vec<u8>>,
    messages: VecDeque<Vec<u8>>,
    transferred: u64,
    events: VecDeque<ConnectionEvent>,
}

impl DcSctp {
    pub(super) fn new(profile: DcSctpProfile, is_unordered: bool, seed: &Seed) -> Self {
        // Tags and the first TSN come from the generator of the thread.
        fastrand::seed(seed.rng().u64());
        let default = Options::default();
        let options = match profile {
            DcSctpProfile::Default => default,
            DcSctpProfile::Interleaved => Options { enable_message_interleaving: true, ..default },
            DcSctpProfile::Tuned => Options {
                rto_min: RTO_MIN,
                max_timer_backoff_duration: Some(RTO_MIN),
                max_retransmissions: None,
                max_init_retransmits: None,
                min_rtt_variance: MIN_RTT_VARIANCE,
                delayed_ack_max_timeout: DELAYED_SACK,
                ..default
            },
        };
        let mut socket = dcsctp::new_socket("rival", &options);
        socket.set_stream_priority(MESSAGES, PRIORITY);
        Self {
            socket,
            is_unordered,
            incoming: true,
            packets: VecDeque::new(),
            messages: VecDeque::new(),
            transferred: 0,
            events: VecDeque::new(),
        }
    }

    fn advance(&mut self, now: Instant) {
        self.socket.advance_time(SocketTime::zero() + Duration::from_nanos(now.as_nanos()));
    }

    fn sort_events(&mut self) {
        while let Some(event) = self.socket.poll_event() {
            match event {
                SocketEvent::SendPacket(packet) => self.packets.push_back(packet),
                SocketEvent::OnConnected() => {
                    self.events.push_back(ConnectionEvent::Connected { incoming: self.incoming });
                }
                SocketEvent::OnClosed() => {
                    self.events.push_back(ConnectionEvent::Closed { is_graceful: true });
                }
                SocketEvent::OnAborted(..) => {
                    self.events.push_back(ConnectionEvent::Closed { is_graceful: false });
                }
                SocketEvent::OnTotalBufferedAmountLow() | SocketEvent::OnBufferedAmountLow(_) => {
                    self.events.push_back(ConnectionEvent::Writable);
                }
                _ => {}
            }
        }
        let had_messages = !self.messages.is_empty();
        while let Some(message) = self.socket.get_next_message() {
            if message.stream_id == TRANSFER {
                self.transferred += message.payload.len() as u64;
            } else {
                self.messages.push_back(message.payload);
            }
        }
        if !had_messages && !self.messages.is_empty() {
            self.events.push_back(ConnectionEvent::Readable);
        }
    }
}

impl Stack for DcSctp {
    fn connect(&mut self, now: Instant, _: SocketAddr) {
        self.incoming = false;
        self.advance(now);
        self.socket.connect();
    }

    fn handle_input(&mut self, now: Instant, _: Route, packet: &[u8]) {
        self.advance(now);
        self.socket.handle_input(packet);
        self.sort_events();
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
        self.sort_events();
    }

    fn poll_transmit(&mut self, _: Instant, packet: &mut Vec<u8>) -> bool {
        if self.packets.is_empty() {
            self.sort_events();
        }
        let next = self.packets.pop_front();
        next.map(|next| *packet = next).is_some()
    }

    fn poll_event(&mut self) -> Option<ConnectionEvent> {
        self.events.pop_front()
    }

    fn poll_timeout(&mut self, _: Instant) -> Option<Instant> {
        let due = self.socket.poll_timeout();
        (due != SocketTime::infinite_future()).then(|| Instant::ZERO + (due - SocketTime::zero()))
    }

    fn write(&mut self, now: Instant, message: &Bytes) -> WriteResult {
        self.advance(now);
        let message = Message::new(MESSAGES, PpId(0), message.to_vec());
        let how = SendOptions { unordered: self.is_unordered, ..SendOptions::default() };
        match self.socket.send(message, &how) {
            Ok(()) => WriteResult::All,
            Err(SendError::ResourceExhaustion) => WriteResult::Full,
            Err(_) => WriteResult::Ended,
        }
    }

    fn fill_transfer(&mut self, now: Instant) {
        self.advance(now);
        while self.socket.buffered_amount(TRANSFER) < TRANSFER_WAITING {
            let message = Message::new(TRANSFER, PpId(0), vec![0; TRANSFER_BYTES]);
            if self.socket.send(message, &SendOptions::default()).is_err() {
                return;
            }
        }
    }

    fn take_transfer(&mut self) -> u64 {
        std::mem::take(&mut self.transferred)
    }

    fn hand_over(&mut self, each: &mut dyn FnMut(&[u8])) {
        self.messages.drain(..).for_each(|message| each(&message));
    }

    fn finish(&mut self, now: Instant) {
        self.advance(now);
        self.socket.shutdown();
    }
}
