//! dcsctp, the SCTP of WebRTC's data channels, in Rust.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Instant;

use dcsctp::api::{
    DcSctpSocket, ErrorKind, Message, Options as DcSctpOptions, PpId, SendOptions, SocketEvent,
    SocketState, SocketTime, StreamId,
};
use peers::{Notice, Stack};
use workload::{LARGEST_MESSAGE, Options, PPID};

struct DcSctp {
    socket: Box<dyn DcSctpSocket>,
    /// The origin of the socket's time.
    epoch: Instant,
    streams: u16,
    packets: VecDeque<Vec<u8>>,
    notices: VecDeque<Notice>,
}

impl DcSctp {
    fn new(options: &Options) -> Self {
        // Its defaults, which include CRC32c; zero checksums would have to be asked for.
        let settings = DcSctpOptions {
            local_port: options.sctp_port,
            remote_port: options.sctp_port,
            max_message_size: LARGEST_MESSAGE,
            enable_message_interleaving: options.is_interleaved,
            ..DcSctpOptions::default()
        };
        Self {
            socket: dcsctp::new_socket("peer", &settings),
            epoch: Instant::now(),
            streams: options.streams,
            packets: VecDeque::new(),
            notices: VecDeque::new(),
        }
    }

    fn advance(&mut self, now: Instant) {
        self.socket.advance_time(SocketTime::zero() + now.saturating_duration_since(self.epoch));
    }

    /// Sorts the socket's events, which include packets, for both polls.
    fn sort_events(&mut self) {
        while let Some(event) = self.socket.poll_event() {
            match event {
                SocketEvent::SendPacket(packet) => self.packets.push_back(packet),
                SocketEvent::OnConnected() => self.notices.push_back(Notice::Connected),
                SocketEvent::OnClosed() => self.notices.push_back(Notice::Closed(None)),
                SocketEvent::OnAborted(kind, reason) => {
                    self.notices.push_back(Notice::Closed(Some(failure(kind, &reason))));
                }
                _ => {}
            }
        }
    }
}

fn failure(kind: ErrorKind, reason: &str) -> String {
    format!("{kind:?}: {reason}")
}

impl Stack for DcSctp {
    const NAME: &'static str = "dcsctp";

    fn connect(&mut self, now: Instant, _: SocketAddr) {
        self.advance(now);
        self.socket.connect();
    }

    fn handle_input(&mut self, now: Instant, _: SocketAddr, packet: &[u8]) {
        self.advance(now);
        self.socket.handle_input(packet);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        let due = self.socket.poll_timeout();
        (due != SocketTime::infinite_future()).then(|| self.epoch + (due - SocketTime::zero()))
    }

    fn poll_transmit(&mut self, _: Instant) -> Option<Vec<u8>> {
        self.sort_events();
        self.packets.pop_front()
    }

    fn poll_notice(&mut self) -> Option<Notice> {
        self.sort_events();
        // Messages first: what was delivered before the end still counts.
        let message = self.socket.get_next_message().map(|message| Notice::Message {
            stream: message.stream_id.0,
            payload: message.payload,
        });
        message.or_else(|| self.notices.pop_front())
    }

    fn send(&mut self, stream: u16, is_unordered: bool, payload: Vec<u8>) -> Result<(), String> {
        let message = Message::new(StreamId(stream), PpId(PPID), payload);
        let how = SendOptions { unordered: is_unordered, ..SendOptions::default() };
        self.socket.send(message, &how).map_err(|error| error.to_string())
    }

    fn queued(&mut self) -> usize {
        (0..self.streams).map(|stream| self.socket.buffered_amount(StreamId(stream))).sum()
    }

    fn is_acknowledged(&mut self) -> bool {
        self.socket.state() == SocketState::Connected
            && self.queued() == 0
            && self.socket.get_metrics().is_some_and(|metrics| metrics.unack_data_count == 0)
    }

    fn shutdown(&mut self) {
        self.socket.shutdown();
    }
}

fn main() {
    let options = Options::from_environment();
    peers::run(&options, DcSctp::new(&options));
}
