//! Captures as traces: the new payload of each flow and direction.

use std::time::Duration;

use rexmit_core::{RangeSet, serial};

use super::connections::{Connections, Sender};
use super::frames::{self, CapturedFrame};
use super::input::TraceError;
use super::packet::Content;
use super::trace::{Flow, Message, Trace};

/// Reads the capture in `bytes`.
pub(super) fn read(file: &str, name: &str, bytes: &[u8]) -> Result<Trace, TraceError> {
    let mut flows = Flows::default();
    frames::read(file, bytes, &mut |frame| flows.on_frame(&frame))?;
    Ok(Trace { name: name.to_owned(), flows: flows.finish() })
}

#[derive(Default)]
struct Flows {
    connections: Connections,
    /// The data sent by each connection.
    flows: Vec<Sent>,
}

struct Sent {
    begin: Duration,
    flow: Flow,
    /// The sequence numbers, unwrapped, seen from the client and from the server.
    seen: [Option<RangeSet>; 2],
}

impl Flows {
    fn on_frame(&mut self, frame: &CapturedFrame) {
        let (place, sender) = self.connections.assign(&frame.packet);
        if place == self.flows.len() {
            let (begin, flow) = (frame.time, Flow::default());
            self.flows.push(Sent { begin, flow, seen: [None, None] });
        }
        self.flows[place].on_packet(frame.time, sender, &frame.packet.content);
    }

    /// The flows with payload, by the time of their first packet.
    fn finish(self) -> Vec<Flow> {
        let has_payload = |flow: &Flow| !(flow.client.is_empty() && flow.server.is_empty());
        let flows = self.flows.into_iter().map(|sent| sent.flow);
        (0..).zip(flows.filter(has_payload)).map(|(id, flow)| Flow { id, ..flow }).collect()
    }
}

impl Sent {
    fn on_packet(&mut self, time: Duration, sender: Sender, content: &Content) {
        let seen = &mut self.seen[usize::from(sender == Sender::Server)];
        let bytes = match content {
            Content::Udp(payload) => *payload,
            Content::Tcp(segment) => {
                // The SYN has the number before the first byte.
                let first = segment.sequence.wrapping_add(u32::from(segment.is_syn));
                new_payload(seen, first, segment.payload)
            }
            Content::Sctp(packet) => {
                let new = packet.data.iter().map(|it| new_payload(seen, it.tsn, 1) * it.payload);
                new.fold(0, u32::saturating_add)
            }
        };
        if bytes > 0 {
            let messages = self.flow.messages_mut(sender);
            // Clocks of captures may step back.
            let earliest = messages.last().map_or(Duration::ZERO, |last| last.at);
            let at = time.saturating_sub(self.begin).max(earliest);
            messages.push(Message { at, bytes });
        }
    }
}

/// Adds the `len` sequence numbers from `first` on; returns how many of them are new.
fn new_payload(seen: &mut Option<RangeSet>, first: u32, len: u32) -> u32 {
    if len == 0 {
        return 0;
    }
    let seen = seen.get_or_insert_default();
    let reference = seen.max().unwrap_or((1 << 32) + u64::from(first));
    let first = serial::unwrap_u32(reference, first);
    let mut new = 0;
    seen.insert_range(first, first + u64::from(len) - 1, |from, to| new += to - from + 1);
    new as u32
}
