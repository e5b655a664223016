//! Packet scripts of the transfer of user data (RFC 9260 §6, §7; RFC 3758, RFC 7496), in exact
//! virtual time.

#[path = "../kit/mod.rs"]
mod kit;

mod ack_copies;
mod flow_control;
mod life_events;
mod limits;
mod partial_reliability;
mod receive_window;
mod retransmission;
mod sack_generation;
mod sack_processing;
mod streams;
mod transmission;

use kit::*;
use rexmit_sctp::OutboundMessage;

/// The cumulative TSN before the first TSN.
const NONE: u32 = FIRST_TSN - 1;
/// The payload of a DATA chunk that fills a packet of the default size.
const FULL: usize = 1204;
/// The bytes of the same chunk with its header: PMDCS.
const PMDCS: u64 = 1220;

/// A message of `len` bytes on stream 0.
fn message(len: usize) -> OutboundMessage {
    OutboundMessage::new(0, vec![b'x'; len])
}

impl Script {
    /// Sends a message of `len` bytes on stream 0.
    #[track_caller]
    fn send_len(&mut self, len: usize) -> rexmit_sctp::MessageId {
        self.try_send(message(len)).expect("the message is accepted")
    }

    /// A SACK of the peer arrives.
    fn peer_sacks(&mut self, cumulative: u32, a_rwnd: u32, blocks: &[(u16, u16)]) {
        self.peer_writes(|p| p.sack(cumulative, a_rwnd, blocks.iter().copied(), []));
    }

    /// Reads a packet that has only DATA chunks; returns their numbers, counted from 0.
    #[track_caller]
    fn take_data(&mut self) -> Vec<u32> {
        let sent = self.next_packet();
        let number = |chunk: &Chunk<'_>| match chunk {
            Data(data) => data.tsn.wrapping_sub(FIRST_TSN),
            other => panic!("{other:?} is no DATA"),
        };
        sent.chunks().iter().map(number).collect()
    }

    /// An association established by a handshake with this round-trip time, which takes two round trips.
    fn with_round_trip(ms: u64) -> Self {
        let mut script = Self::client();
        script.take_init();
        script.at(ms).peer_writes(|p| p.init_ack(&peer_init(PEER_TAG), answer_params));
        expect_packet!(script, [CookieEcho(_)]);
        script.at(2 * ms).peer_sends([CookieAck]);
        expect_event!(script, rexmit_sctp::Event::Connected { .. });
        script
    }
}
