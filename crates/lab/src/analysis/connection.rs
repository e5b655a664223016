//! One connection of a capture: which packets are sent, which have arrived, and which acknowledge.

use std::time::Duration;

use rexmit_core::serial;
use rexmit_netsim::capture::CaptureDirection;
use rexmit_netsim::traffic::connections::Ends;
use rexmit_netsim::traffic::frames::CapturedFrame;
use rexmit_netsim::traffic::packet::{Content, TcpSegment};
use rexmit_netsim::traffic::sctp_chunks::{DataChunk, SackChunk, SctpPacket};
use rexmit_netsim::traffic::trace::Sender;

use super::data::{Ack, Data, Run};
use super::unit::Part;

/// A connection of TCP or SCTP, and both directions of its data.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) ends: Ends,
    /// For each side, the interface at which its packets count as sent: that of its first packet.
    pub(super) data: [Data; 2],
    /// When its first and last packets were captured.
    pub(super) times: (Duration, Duration),
    pub(super) handshake: Handshake,
    /// The interface at which packets of each side count as sent: that of the first one.
    near: [Option<u32>; 2],
    /// Whether ACKs to each side were captured where its packets count as sent.
    has_acks_near: [bool; 2],
    /// The window in the last ACK to each side.
    windows: [Option<u16>; 2],
}

/// The round trip of the packets that opened a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Handshake {
    began: Option<Duration>,
    is_repeated: bool,
    /// When the server's last answer was captured.
    answered: Option<Duration>,
    is_over: bool,
    /// From the first packet of the client to its second one. That is a round trip, wherever it is captured.
    pub(super) rtt: Option<Duration>,
    /// From the server's last answer to the client's second packet: the client's part of the round trip, known even if the
    /// first packet was repeated.
    pub(super) of_client: Option<Duration>,
}

const fn index(sender: Sender) -> usize {
    match sender {
        Sender::Client => 0,
        Sender::Server => 1,
    }
}

impl Connection {
    /// `near` has the interfaces at which packets count as sent, if that is known.
    pub(super) fn new(ends: Ends, begin: Duration, near: [Option<u32>; 2]) -> Self {
        Self {
            ends,
            data: Default::default(),
            times: (begin, begin),
            handshake: Handshake::default(),
            near,
            has_acks_near: [false; 2],
            windows: [None; 2],
        }
    }

    pub(super) fn on_frame(&mut self, sender: Sender, frame: &CapturedFrame) {
        let (own, other) = (index(sender), 1 - index(sender));
        self.times.1 = self.times.1.max(frame.time);
        let near = *self.near[own].get_or_insert(frame.interface);
        let is_sent = near == frame.interface;
        if is_sent {
            self.handshake.on_sent(sender, frame);
        }
        let runs = runs(&self.data[own], &frame.packet.content);
        if !runs.is_empty() {
            if !is_sent {
                if frame.direction == Some(CaptureDirection::In) && !frame.is_lost {
                    self.data[own].arrivals.on_arrived(frame.time, &runs);
                }
            } else if is_keep_alive(&self.data[own], &frame.packet.content, &runs) {
                self.data[own].counts.keep_alives += 1;
            } else {
                self.data[own].on_sent(frame.time, &runs, frame.is_lost);
            }
        }
        if is_sent
            && let Content::Sctp(SctpPacket { forward_tsn: Some(tsn), .. }) = &frame.packet.content
        {
            let end = serial::unwrap_u32(self.data[own].next, *tsn) + 1;
            self.data[own].on_abandoned(end);
        }
        // ACKs count where the sender's packets do, if they were captured there.
        let is_near_sender = self.near[other] == Some(frame.interface);
        self.has_acks_near[other] |= is_near_sender;
        if !frame.is_lost && (is_near_sender || (is_sent && !self.has_acks_near[other])) {
            self.acknowledge(other, frame);
        }
    }

    /// Records the acknowledgement in a packet to `side`.
    fn acknowledge(&mut self, side: usize, frame: &CapturedFrame) {
        let data = &mut self.data[side];
        if data.packets.is_empty() {
            return;
        }
        let ack = match &frame.packet.content {
            Content::Tcp(segment) => {
                let is_same = self.windows[side].replace(segment.window) == Some(segment.window);
                tcp_ack(data.next, segment, is_same)
            }
            Content::Sctp(packet) => packet.sack.as_ref().map(|sack| sctp_ack(data.next, sack)),
            Content::Udp(_) => None,
        };
        if let Some(ack) = ack {
            data.on_ack(frame.time, &ack);
        }
    }
}

impl Handshake {
    fn on_sent(&mut self, sender: Sender, frame: &CapturedFrame) {
        if self.is_over {
            return;
        }
        if sender == Sender::Server {
            if frame.packet.answers_opening() && self.began.is_some() && !frame.is_lost {
                self.answered = Some(frame.time);
            }
        } else if frame.packet.opens() {
            self.is_repeated |= self.began.replace(frame.time).is_some();
        } else if let Some(answered) = self.answered {
            self.is_over = true;
            self.of_client = frame.time.checked_sub(answered);
            let rtt = self.began.and_then(|began| frame.time.checked_sub(began));
            self.rtt = rtt.filter(|_| !self.is_repeated && !frame.is_lost);
        } else {
            self.is_over = self.began.is_none();
        }
    }
}

/// The runs of data in a packet.
fn runs(data: &Data, content: &Content) -> Vec<Run> {
    // Far from zero, so that numbers before the first one do not become negative.
    let reference =
        |wire: u32| if data.next == 0 { (1 << 32) + u64::from(wire) } else { data.next };
    match content {
        Content::Tcp(segment) if segment.payload > 0 => {
            // The SYN has the number before the first byte.
            let first = segment.sequence.wrapping_add(u32::from(segment.is_syn));
            let first = serial::unwrap_u32(reference(first), first);
            let (end, bytes) = (first + u64::from(segment.payload), segment.payload);
            vec![Run { first, end, bytes, part: None }]
        }
        Content::Sctp(packet) => {
            let base = packet.data.first().map_or(0, |chunk| reference(chunk.tsn));
            let run = |chunk: &DataChunk| {
                let first = serial::unwrap_u32(base, chunk.tsn);
                Run { first, end: first + 1, bytes: chunk.payload, part: Some(part(chunk)) }
            };
            packet.data.iter().map(run).collect()
        }
        _ => Vec::new(),
    }
}

fn part(chunk: &DataChunk) -> Part {
    let &DataChunk { stream, is_unordered, is_first, is_last, .. } = chunk;
    Part { stream, is_unordered, is_first, is_last }
}

/// RFC 9293 §3.8.4: the last byte again, or garbage with its sequence number, while nothing is outstanding.
fn is_keep_alive(data: &Data, content: &Content, runs: &[Run]) -> bool {
    let Content::Tcp(TcpSegment { payload: 1, .. }) = content else { return false };
    let cumulative = data.acks.cumulative;
    runs[0].end == cumulative && data.next == cumulative
}

fn tcp_ack(reference: u64, segment: &TcpSegment, is_same_window: bool) -> Option<Ack> {
    let unwrap = |wire| serial::unwrap_u32(reference, wire);
    let cumulative = unwrap(segment.acknowledgment?);
    let mut blocks: Vec<(u64, u64)> =
        segment.sack.iter().map(|&(first, end)| (unwrap(first), unwrap(end))).collect();
    let mut duplicates = Vec::new();
    if let Some(&(first, end)) = blocks.first() {
        // RFC 2883 §4: below the acknowledgment number, or inside of the second block.
        let is_inside = blocks.get(1).is_some_and(|outer| outer.0 <= first && end <= outer.1);
        if end <= cumulative || is_inside {
            duplicates.push(blocks.remove(0));
        }
    }
    Some(Ack {
        cumulative,
        blocks,
        duplicates,
        is_window_closed: segment.window == 0 && !segment.is_syn && !segment.is_reset,
        may_be_duplicate: segment.payload == 0
            && !segment.is_syn
            && !segment.is_fin
            && !segment.is_reset
            && (is_same_window || !segment.sack.is_empty()),
        counts_once: false,
    })
}

fn sctp_ack(reference: u64, sack: &SackChunk) -> Ack {
    let unwrap = |tsn| serial::unwrap_u32(reference, tsn);
    Ack {
        cumulative: unwrap(sack.cumulative) + 1,
        blocks: sack
            .blocks
            .iter()
            .map(|&(first, last)| (unwrap(first), unwrap(last) + 1))
            .collect(),
        duplicates: sack.duplicates.iter().map(|&tsn| (unwrap(tsn), unwrap(tsn) + 1)).collect(),
        is_window_closed: sack.window == Some(0),
        may_be_duplicate: !sack.blocks.is_empty(),
        counts_once: true,
    }
}
