//! TCP as a transport.

use std::net::SocketAddr;

use bytes::{Buf, Bytes};
use rexmit_core::serial::unwrap_u32;
use rexmit_core::{Instant, Route};
use rexmit_tcp::wire::{Flags, Segment};
use rexmit_tcp::{CloseReason, ConnectionId, Endpoint, Event, ReceiveError};

use super::transport::{Arrival, Given, News, Taken, Transport, Watch};

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

    fn news((id, event): &(ConnectionId, Event)) -> Option<(ConnectionId, News)> {
        let news = match event {
            Event::Connected { incoming, .. } => News::Connected { incoming: *incoming },
            Event::Readable => News::Readable,
            Event::Writable => News::Writable,
            Event::Closed(reason) => News::Closed { is_orderly: *reason == CloseReason::Finished },
            _ => return None,
        };
        Some((*id, news))
    }

    fn give(&mut self, now: Instant, id: ConnectionId, bytes: &mut Bytes) -> Given {
        match self.send(now, id, bytes) {
            Ok(taken) => bytes.advance(taken),
            Err(_) => return Given::Ended,
        }
        if bytes.is_empty() { Given::All } else { Given::Full }
    }

    fn take(&mut self, now: Instant, id: ConnectionId, each: &mut dyn FnMut(&[u8])) -> Taken {
        loop {
            let received = self.receive_with(now, id, |bytes| {
                each(bytes);
                bytes.len()
            });
            match received {
                Ok(0) => return Taken::End,
                Ok(_) => {}
                Err(ReceiveError::Empty) => return Taken::Open,
                // Ended, or unknown.
                Err(_) => return Taken::End,
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
