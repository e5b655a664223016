//! The memory of an association is the number of bytes in its counters plus a stated overhead (docs/security.md). A
//! counting allocator measures it for each pattern with which small chunks could occupy large blocks.

mod kit;

use kit::*;
use rexmit_core::Machine as _;
use rexmit_sctp::{MessageId, OutboundMessage, SendError};

/// The receive buffer, the send buffer and the largest message of every script.
const BUFFER_BYTES: usize = 1024 * 1024;
/// The overhead of each chunk and message that is held, as docs/security.md states it.
const OVERHEAD_BYTES: usize = 256;
/// The overhead of an association: the memory reserved for a message whose beginning has arrived.
const RESERVED_BYTES: usize = 64 * 1024;
const MAX_HELD_CHUNKS: usize = 16_384;

/// An established endpoint that takes large messages on 2000 streams.
fn receiver() -> Script {
    let mut s = Script::established_server_with(|_, association| {
        association.buffers.receive_bytes = BUFFER_BYTES;
        association.messages.max_bytes = BUFFER_BYTES;
        association.buffers.max_held_chunks = MAX_HELD_CHUNKS;
    });
    while s.endpoint.poll_event().is_some() {}
    s
}

/// The peer's data, with consecutive TSNs.
struct Sender {
    next: u32,
    /// SSNs, by stream.
    ssn: [u16; 10],
}

#[derive(Clone, Copy)]
struct Flags {
    unordered: bool,
    beginning: bool,
    ending: bool,
}

const WHOLE: Flags = Flags { unordered: false, beginning: true, ending: true };
const UNORDERED: Flags = Flags { unordered: true, ..WHOLE };

impl Sender {
    fn new() -> Self {
        Self { next: 0, ssn: [0; 10] }
    }

    /// Sends a chunk on `stream`; increments the TSN and, at the end of a message, the SSN.
    fn send(&mut self, s: &mut Script, stream: u16, flags: Flags, payload: &[u8]) {
        let Flags { unordered, beginning, ending } = flags;
        let ssn = self.ssn[usize::from(stream)];
        let chunk_flags = DataFlags { unordered, beginning, ending, ..DataFlags::default() };
        let (tsn, ppid) = (tsn(self.next), 0);
        s.peer_sends([Data(wire::Data { flags: chunk_flags, tsn, stream, ssn, ppid, payload })]);
        self.next += 1;
        if ending && !unordered {
            self.ssn[usize::from(stream)] = ssn.wrapping_add(1);
        }
        discard(s);
    }
}

/// Discards the packets and events of the endpoint.
fn discard(s: &mut Script) {
    while s.poll_packet().is_some() {}
    while s.endpoint.poll_event().is_some() {}
}

/// Measures the memory that is still allocated after `act`, and compares it with the payload and chunks that are held
/// then.
#[track_caller]
fn expect_bounded(s: &mut Script, most_chunks: usize, act: impl FnOnce(&mut Script)) {
    let before = s.statistics().receive_buffered_bytes;
    let held = allocation_counter::measure(|| act(s)).bytes_current;
    let charged = s.statistics().receive_buffered_bytes - before;
    let bound = 2 * charged + most_chunks * OVERHEAD_BYTES + RESERVED_BYTES;
    eprintln!("{held} bytes held, {charged} charged, bound {bound}");
    assert!(charged > 0, "nothing is held");
    assert!(held <= bound as i64, "{held} bytes held, {charged} charged, bound {bound}");
}

/// Every second message, of one byte, waits for its order; the others are read at once. In an earlier version each
/// waiting message kept a block of 16 KiB alive.
#[test]
fn messages_that_wait_between_others_that_are_read_hold_no_blocks() {
    const COUNT: usize = 2000;
    let (mut s, mut peer) = (receiver(), Sender::new());
    let filler = vec![7; 4000];
    peer.ssn[1] = 1; // The first message of stream 1 never arrives.
    expect_bounded(&mut s, COUNT, |s| {
        for _ in 0..COUNT {
            peer.send(s, 1, WHOLE, b"x");
            for _ in 0..4 {
                peer.send(s, 0, UNORDERED, &filler);
                s.receive().expect("an unordered message is read at once");
            }
        }
    });
    assert_eq!(s.statistics().receive_buffered_bytes, COUNT);
}

/// The middle of a message waits for its beginning, while messages before and after it are read at once.
#[test]
fn fragments_that_wait_between_messages_that_are_read_hold_no_blocks() {
    const COUNT: usize = 500;
    let (mut s, mut peer) = (receiver(), Sender::new());
    let filler = vec![7; 4000];
    expect_bounded(&mut s, COUNT, |s| {
        for n in 0..COUNT {
            peer.next += 1; // Its beginning is lost.
            let flags = Flags { beginning: false, ending: n % 2 == 0, unordered: n % 3 == 0 };
            peer.send(s, (n % 10) as u16, flags, b"x");
            peer.next += 1; // Where it would go on.
            for _ in 0..4 {
                peer.send(s, 0, UNORDERED, &filler);
                s.receive().expect("an unordered message is read at once");
            }
        }
    });
}

/// Beginnings of messages, after a message of 64 KiB, which is the estimate for the size of the next.
#[test]
fn beginnings_reserve_memory_for_one_message_only() {
    const COUNT: usize = 900;
    let (mut s, mut peer) = (receiver(), Sender::new());
    for n in 0..64 {
        let flags = Flags { beginning: n == 0, ending: n == 63, unordered: false };
        peer.send(&mut s, 0, flags, &[7; 1024]);
    }
    assert_eq!(s.receive().expect("a message").len(), 64 * 1024);
    expect_bounded(&mut s, COUNT, |s| {
        for n in 0..COUNT {
            let flags = Flags { beginning: true, ending: false, unordered: n % 2 == 0 };
            peer.send(s, (n % 10) as u16, flags, b"x");
            peer.next += 1;
        }
    });
}

/// The application reads nothing: messages of one byte arrive until the window is closed, and then those that close
/// gaps.
#[test]
fn messages_of_one_byte_that_nobody_reads_are_bounded() {
    let (mut s, mut peer) = (receiver(), Sender::new());
    expect_bounded(&mut s, MAX_HELD_CHUNKS, |s| {
        for _ in 0..2 * MAX_HELD_CHUNKS {
            peer.send(s, 0, WHOLE, b"x");
        }
    });
    assert_eq!(s.statistics().receive_buffered_bytes, MAX_HELD_CHUNKS);
}

/// With a closed window only chunks that close a gap are accepted. The highest possible TSN makes the gap as large as
/// possible.
#[test]
fn messages_of_one_byte_that_close_a_gap_are_bounded() {
    const AHEAD: u32 = 32_767;
    let (mut s, mut peer) = (receiver(), Sender::new());
    expect_bounded(&mut s, AHEAD as usize, |s| {
        peer.next = AHEAD - 1;
        peer.send(s, 1, UNORDERED, b"x");
        peer.next = 0;
        for _ in 0..2 * AHEAD {
            peer.send(s, 0, WHOLE, b"x");
        }
    });
    assert_eq!(s.statistics().receive_buffered_bytes, AHEAD as usize);
}

/// Large and small messages alternate, and the application keeps the small ones: each keeps only its own memory
/// allocated.
#[test]
fn a_small_message_that_the_application_keeps_holds_no_block() {
    const COUNT: usize = 1000;
    let (mut s, mut peer) = (receiver(), Sender::new());
    let filler = vec![7; 4000];
    let mut kept = Vec::with_capacity(COUNT);
    let held = allocation_counter::measure(|| {
        for _ in 0..COUNT {
            peer.send(&mut s, 0, WHOLE, b"x");
            for _ in 0..4 {
                peer.send(&mut s, 0, WHOLE, &filler);
            }
            kept.push(s.receive().expect("the small message"));
            while s.receive().is_some() {}
        }
    });
    assert!(kept.iter().all(|message| message == &b"x"[..]));
    let held = held.bytes_current;
    assert!(held <= (COUNT * OVERHEAD_BYTES + RESERVED_BYTES) as i64, "{held} bytes held");
}

/// The application of one association reads nothing, that of another one everything.
#[test]
fn an_association_holds_no_blocks_of_another() {
    const COUNT: usize = 1000;
    let (mut s, mut slow, mut fast) = (receiver(), Sender::new(), Sender::new());
    let first = s.peer;
    s.peer.route.remote = address(2, 40_001);
    let cookie = s.peer_begins();
    s.peer_sends([CookieEcho(&cookie)]);
    expect_packet!(s, [CookieAck]);
    let second = s.peer;
    let (id, _) = s.endpoint.poll_event().expect("it is connected");
    let filler = vec![7; 4000];
    let held = allocation_counter::measure(|| {
        for _ in 0..COUNT {
            s.peer = first;
            slow.send(&mut s, 0, WHOLE, b"x");
            s.peer = second;
            for _ in 0..4 {
                fast.send(&mut s, 0, WHOLE, &filler);
                s.endpoint.receive(s.run().now, id).expect("a message of the second");
            }
        }
    });
    let held = held.bytes_current;
    assert!(held <= (COUNT * OVERHEAD_BYTES + RESERVED_BYTES) as i64, "{held} bytes held");
}

/// Messages of one byte to a peer that acknowledges nothing.
#[test]
fn messages_of_one_byte_that_are_not_acknowledged_are_bounded() {
    let mut s = Script::established_server_with(|_, association| {
        association.buffers.send_bytes = BUFFER_BYTES;
    });
    let mut accepted: Vec<MessageId> = Vec::with_capacity(BUFFER_BYTES);
    let held = allocation_counter::measure(|| {
        loop {
            match s.try_send(OutboundMessage::new(0, vec![7])) {
                Ok(id) => accepted.push(id),
                Err(error) => break assert_eq!(error, SendError::BufferFull),
            }
            while s.poll_packet().is_some() {}
        }
    });
    let (held, count) = (held.bytes_current, accepted.len());
    eprintln!("{held} bytes held for {count} messages");
    assert_eq!(count, BUFFER_BYTES / 64);
    assert!(held <= (count * OVERHEAD_BYTES) as i64, "{held} bytes held for {count} messages");
}

/// One-byte beginnings and middles of different messages, none of which is ever completed.
#[test]
fn fragments_of_interleaved_messages_are_bounded() {
    const COUNT: u32 = 4000;
    let mut s = Script::with(|_, association| {
        association.extensions.interleaving = true;
        association.buffers.receive_bytes = BUFFER_BYTES;
        association.buffers.max_held_chunks = MAX_HELD_CHUNKS;
    });
    let init = peer_init(s.peer.tag);
    let kinds = [wire::kind::I_DATA, wire::kind::I_FORWARD_TSN];
    s.peer_writes_under(0, |p| {
        p.init(&init, |params| {
            params.push(&Param::SupportedExtensions(&kinds));
        })
    });
    let cookie = s.take_init_ack();
    s.peer_sends([CookieEcho(&cookie)]);
    expect_packet!(s, [CookieAck]);
    expect_event!(s, rexmit_sctp::Event::Connected { .. });
    expect_bounded(&mut s, COUNT as usize, |s| {
        for n in 0..COUNT {
            let (beginning, unordered) = (n % 2 == 0, n % 3 == 0);
            let flags = DataFlags { beginning, unordered, ..DataFlags::default() };
            let (stream, fsn) = ((n % 10) as u16, u32::from(!beginning) * 5);
            let (tsn, mid, ppid) = (tsn(n), n, 0);
            s.peer_sends([IData(wire::IData {
                flags,
                tsn,
                stream,
                mid,
                ppid,
                fsn,
                payload: b"x",
            })]);
            discard(s);
        }
    });
    assert_eq!(s.statistics().receive_buffered_bytes, COUNT as usize);
}
