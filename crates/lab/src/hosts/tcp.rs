//! TCP as a transport.

use std::net::SocketAddr;

use bytes::{Buf, Bytes};
use rexmit_core::serial::unwrap_u32;
use rexmit_core::{Instant, Route};
use rexmit_tcp::wire::{Flags, Segment};
use rexmit_tcp::{CloseReason, ConnectionId, Endpoint, Event, ReceiveError};

use super::transport::{Arrival, ConnectionEvent, ReadResult, Transport, Watch, WriteResult};

impl Transport for Endpoint {
    type Id = ConnectionId;
    type Watch = SegmentWatch;
    const IP_PROTOCOL: u8 = 6;
    const KEEPS_BOUNDARIES: bool = false;
    const WRITE_BYTES: usize = 16 * 1024;

    fn begin(
        &mut self,
        now: Instant,
        local: SocketAddr,
        remote: SocketAddr,
    ) -> Option<ConnectionId> {
        self.connect(now, local, remote).ok()
    }

    fn connection_event(
        (id, event): &(ConnectionId, Event),
    ) -> Option<(ConnectionId, ConnectionEvent)> {
        let event = match event {
            Event::Connected { incoming, .. } => ConnectionEvent::Connected { incoming: *incoming },
            Event::Readable => ConnectionEvent::Readable,
            Event::Writable => ConnectionEvent::Writable,
            Event::Closed(reason) => {
                ConnectionEvent::Closed { is_graceful: *reason == CloseReason::Finished }
            }
            _ => return None,
        };
        Some((*id, event))
    }

    fn write(&mut self, now: Instant, id: ConnectionId, bytes: &mut Bytes) -> WriteResult {
        match self.send(now, id, bytes) {
            Ok(taken) => bytes.advance(taken),
            Err(_) => return WriteResult::Ended,
        }
        if bytes.is_empty() { WriteResult::All } else { WriteResult::Full }
    }

    fn read(&mut self, now: Instant, id: ConnectionId, each: &mut dyn FnMut(&[u8])) -> ReadResult {
        loop {
            let received = self.receive_with(now, id, |bytes| {
                each(bytes);
                bytes.len()
            });
            match received {
                Ok(0) => return ReadResult::End,
                Ok(_) => {}
                Err(ReceiveError::Empty) => return ReadResult::Open,
                // Ended, or unknown.
                Err(_) => return ReadResult::End,
            }
        }
    }

    fn finish(&mut self, now: Instant, id: ConnectionId) {
        Self::finish(self, now, id);
    }

    fn abort(&mut self, now: Instant, id: ConnectionId) {
        Self::abort(self, now, id);
    }
}

/// Detects from segments which bytes of the stream have arrived, from the SYN on.
///
/// It accepts every segment with a correct checksum: a simulation has no attackers.
#[derive(Clone, Copy, Debug, Default)]
pub struct SegmentWatch {
    /// The sequence number of the first byte, and one near those that arrive, both unwrapped.
    stream: Option<(u64, u64)>,
}

impl Watch for SegmentWatch {
    fn on_packet(&mut self, route: Route, packet: &[u8], found: &mut dyn FnMut(Arrival<'_>)) {
        let addresses = (route.remote.ip(), route.local.ip());
        let Ok(segment) = Segment::parse(addresses.0, addresses.1, packet) else { return };
        let Segment { header, payload } = segment;
        if header.flags.has(Flags::SYN) {
            let first = (1 << 32) + u64::from(header.sequence.wrapping_add(1));
            self.stream = Some((first, first));
        }
        if payload.is_empty() {
            return;
        }
        if let Some((first, near)) = &mut self.stream {
            let at = unwrap_u32(*near, header.sequence);
            let end = at + payload.len() as u64;
            *near = (*near).max(end);
            if end > *first {
                let start = at.max(*first) - *first;
                found(Arrival::Bytes { start, end: end - *first });
            }
        }
    }
}
