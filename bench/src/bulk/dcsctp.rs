//! dcsctp, the SCTP of WebRTC's data channels.

use std::collections::VecDeque;
use std::time::Duration;

use dcsctp::api::{
    DcSctpSocket, Message, Options, PpId, SendOptions, SocketEvent, SocketTime, StreamId,
};
use rexmit_core::Instant;

use super::{MAX_PACKET_BYTES, PORT, RECEIVE_BUFFER_BYTES, Stack};

pub(super) struct DcSctp {
    socket: Box<dyn DcSctpSocket>,
    packets: VecDeque<Vec<u8>>,
    is_connected: bool,
}

impl DcSctp {
    fn advance(&mut self, now: Instant) {
        self.socket.advance_time(SocketTime::zero() + Duration::from_nanos(now.as_nanos()));
    }

    fn take_events(&mut self) {
        while let Some(event) = self.socket.poll_event() {
            match event {
                SocketEvent::SendPacket(packet) => self.packets.push_back(packet),
                SocketEvent::OnConnected() => self.is_connected = true,
                SocketEvent::OnAborted(kind, reason) => panic!("dcsctp: {kind:?}: {reason}"),
                _ => {}
            }
        }
    }
}

impl Stack for DcSctp {
    const NAME: &'static str = "dcsctp 0.1.16";
    type Packet = Vec<u8>;

    fn new(_: bool) -> Self {
        let options = Options {
            local_port: PORT,
            remote_port: PORT,
            mtu: MAX_PACKET_BYTES,
            max_receiver_window_buffer_size: RECEIVE_BUFFER_BYTES,
            ..Options::default()
        };
        Self {
            socket: dcsctp::new_socket("bench", &options),
            packets: VecDeque::new(),
            is_connected: false,
        }
    }

    fn connect(&mut self, now: Instant) {
        self.advance(now);
        self.socket.connect();
    }

    fn is_connected(&mut self) -> bool {
        self.take_events();
        self.is_connected
    }

    fn send(&mut self, now: Instant, message: Vec<u8>) {
        self.advance(now);
        let message = Message::new(StreamId(0), PpId(0), message);
        self.socket.send(message, &SendOptions::default()).expect("there is room");
    }

    fn receive(&mut self, _: Instant, check: &mut impl FnMut(&[u8])) -> bool {
        let message = self.socket.get_next_message();
        message.inspect(|message| check(&message.payload)).is_some()
    }

    fn handle_input(&mut self, now: Instant, packet: Vec<u8>) {
        self.advance(now);
        self.socket.handle_input(&packet);
    }

    fn poll_transmit(&mut self, _: Instant) -> Option<Vec<u8>> {
        if self.packets.is_empty() {
            self.take_events();
        }
        self.packets.pop_front()
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        let due = self.socket.poll_timeout();
        (due != SocketTime::infinite_future()).then(|| Instant::ZERO + (due - SocketTime::zero()))
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
    }
}
