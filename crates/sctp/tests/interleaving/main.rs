//! Packet scripts of interleaved messages and of stream schedulers (RFC 8260), in exact virtual time.

#[path = "../kit/mod.rs"]
mod kit;

mod bad_input;
mod giving_up;
mod receiving;
mod schedulers;
mod sending;

use kit::*;
use rexmit_sctp::wire::{Init, Params, ParamsWriter, kind};
use rexmit_sctp::{AssociationConfig, Event, OutboundMessage};

/// The payload of an I-DATA chunk that fills a packet of the default size.
const FULL: usize = 1200;

/// The parameters of a peer that supports I-DATA and I-FORWARD-TSN.
fn i_data_params(params: &mut ParamsWriter<'_, '_>) {
    let kinds = [kind::RE_CONFIG, kind::FORWARD_TSN, kind::I_DATA, kind::I_FORWARD_TSN];
    params.push(&Param::ForwardTsnSupported);
    params.push(&Param::SupportedExtensions(&kinds));
}

/// An association that we began, with a peer that supports I-DATA. `change` sets what we send.
fn client_with(change: impl FnOnce(&mut AssociationConfig)) -> Script {
    client_of(1 << 20, change)
}

/// The same, with a peer whose buffer has this size.
fn client_of(a_rwnd: u32, change: impl FnOnce(&mut AssociationConfig)) -> Script {
    let mut s = Script::client_with(|_, association| {
        association.extensions.interleaving = true;
        association.failure.heartbeat_interval = None;
        association.recovery.max_burst = None;
        association.messages.max_bytes = 1 << 20;
        association.buffers.send_bytes = 4 << 20;
        change(association);
    });
    s.take_init();
    let init_ack = Init { a_rwnd, ..peer_init(PEER_TAG) };
    s.peer_writes(|p| {
        p.init_ack(&init_ack, |params| {
            params.push(&Param::StateCookie(COOKIE));
            i_data_params(params);
        })
    });
    expect_packet!(s, [CookieEcho(_)]);
    s.peer_sends([CookieAck]);
    expect_event!(s, Event::Connected { .. });
    s
}

fn client() -> Script {
    client_with(|_| ())
}

/// An association that the peer began, which supports I-DATA.
fn server_with(change: impl FnOnce(&mut AssociationConfig)) -> Script {
    let mut s = Script::with(|_, association| {
        association.extensions.interleaving = true;
        association.sack.delay = std::time::Duration::ZERO;
        change(association);
    });
    let init = peer_init(s.peer.tag);
    s.peer_writes_under(0, |p| p.init(&init, i_data_params));
    let cookie = s.take_init_ack();
    s.peer_sends([CookieEcho(&cookie)]);
    expect_packet!(s, [CookieAck]);
    expect_event!(s, Event::Connected { .. });
    s
}

fn server() -> Script {
    server_with(|_| ())
}

/// The chunk types that an INIT or INIT ACK lists.
fn listed(params: Params<'_>) -> Vec<u8> {
    let lists = params.flatten().filter_map(|param| match param.decode() {
        Ok(Param::SupportedExtensions(kinds)) => Some(kinds.to_vec()),
        _ => None,
    });
    lists.flatten().collect()
}

/// A complete ordered message, the first of its stream.
fn whole(n: u32, stream: u16, payload: &[u8]) -> wire::IData<'_> {
    let flags = DataFlags { beginning: true, ending: true, ..DataFlags::default() };
    wire::IData { flags, tsn: tsn(n), stream, mid: 0, ppid: 0, fsn: 0, payload }
}

/// A fragment of the first ordered message of its stream.
fn fragment(n: u32, stream: u16, fsn: u32, payload: &[u8]) -> wire::IData<'_> {
    let flags = DataFlags { beginning: fsn == 0, ..DataFlags::default() };
    wire::IData { flags, fsn, ..whole(n, stream, payload) }
}

/// The last fragment of that message.
fn last(n: u32, stream: u16, fsn: u32, payload: &[u8]) -> wire::IData<'_> {
    let flags = DataFlags { ending: true, ..DataFlags::default() };
    wire::IData { flags, ..fragment(n, stream, fsn, payload) }
}

impl Script {
    #[track_caller]
    fn send_on(&mut self, stream: u16, len: usize) {
        let message = OutboundMessage::new(stream, vec![stream as u8; len]);
        self.try_send(message).expect("the message is accepted");
    }

    /// Reads all I-DATA chunks transmitted now: stream, MID and FSN of each, by packet.
    #[track_caller]
    fn take_packets(&mut self) -> Vec<Vec<(u16, u32, u32)>> {
        let mut packets = Vec::new();
        while let Some(sent) = self.poll_packet() {
            let chunks = sent.chunks();
            let of = |chunk: &Chunk<'_>| match chunk {
                IData(data) => (data.stream, data.mid, data.fsn),
                other => panic!("{other:?} is no I-DATA"),
            };
            packets.push(chunks.iter().map(of).collect());
        }
        packets
    }

    /// The streams of all chunks that are sent until the queue is empty; the peer acknowledges everything.
    #[track_caller]
    fn take_streams(&mut self) -> Vec<u16> {
        self.take_lengths().into_iter().map(|(stream, _)| stream).collect()
    }

    /// The same, with the length of each chunk.
    #[track_caller]
    fn take_lengths(&mut self) -> Vec<(u16, usize)> {
        let mut seen = Vec::new();
        loop {
            let before = seen.len();
            let mut newest = None;
            while let Some(sent) = self.poll_packet() {
                for chunk in sent.chunks() {
                    let (tsn, stream, len) = match chunk {
                        IData(data) => (data.tsn, data.stream, data.payload.len()),
                        Data(data) => (data.tsn, data.stream, data.payload.len()),
                        other => panic!("{other:?} is no data"),
                    };
                    seen.push((stream, len));
                    newest = Some(tsn);
                }
            }
            let Some(newest) = newest.filter(|_| seen.len() > before) else { return seen };
            self.peer_writes(|p| p.sack(newest, 1 << 20, [], []));
        }
    }
}
