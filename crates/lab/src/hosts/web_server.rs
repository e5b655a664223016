//! A web server: sends a file of the size given in the request, and then ends the connection.

use rexmit_core::Instant;
use rustc_hash::FxHashMap;

use super::content;
use super::running::Program;
use super::transport::{ConnectionEvent, Transport, WriteResult};

/// Bytes of the relevant part of a request: the file size, big endian.
pub(super) const REQUEST_BYTES: usize = 8;

/// Answers requests of [`WebClients`](super::WebClients) on any number of connections.
#[derive(Debug)]
pub struct WebServer<T: Transport> {
    open: FxHashMap<T::Id, Answer>,
    served: u64,
    sent: u64,
    broken: u64,
}

#[derive(Clone, Copy, Debug)]
enum Answer {
    /// A request is being received: its bytes so far, and their number.
    Asked([u8; REQUEST_BYTES], usize),
    /// The file is being sent: number of bytes accepted by the transport, and file size.
    Sending(u64, u64),
    /// The transport has accepted the whole file.
    WriteResult,
}

impl<T: Transport> WebServer<T> {
    /// A server without connections.
    #[must_use]
    pub fn new() -> Self {
        Self { open: FxHashMap::default(), served: 0, sent: 0, broken: 0 }
    }

    /// Number of files that the transport accepted completely.
    #[must_use]
    pub fn served(&self) -> u64 {
        self.served
    }

    /// Number of bytes of files that the transport accepted.
    #[must_use]
    pub fn sent_bytes(&self) -> u64 {
        self.sent
    }

    /// Number of connections that failed.
    #[must_use]
    pub fn broken(&self) -> u64 {
        self.broken
    }

    /// Number of open connections.
    #[must_use]
    pub fn open_connections(&self) -> usize {
        self.open.len()
    }

    fn read(&mut self, now: Instant, transport: &mut T, id: T::Id) {
        let Some(answer) = self.open.get_mut(&id) else { return };
        let _ = transport.read(now, id, &mut |bytes| {
            if let Answer::Asked(request, had) = answer {
                let len = bytes.len().min(REQUEST_BYTES - *had);
                request[*had..*had + len].copy_from_slice(&bytes[..len]);
                *had += len;
            }
        });
        if let Answer::Asked(request, REQUEST_BYTES) = *answer {
            *answer = Answer::Sending(0, u64::from_be_bytes(request));
            self.send(now, transport, id);
        }
    }

    fn send(&mut self, now: Instant, transport: &mut T, id: T::Id) {
        let Some(answer) = self.open.get_mut(&id) else { return };
        let Answer::Sending(sent, all) = answer else { return };
        while *sent < *all {
            let mut piece = content::piece(*sent, (*all - *sent).min(T::WRITE_BYTES as u64));
            let len = piece.len();
            let given = transport.write(now, id, &mut piece);
            *sent += (len - piece.len()) as u64;
            self.sent += (len - piece.len()) as u64;
            if given != WriteResult::All {
                return; // `Writable` or `Closed` follows.
            }
        }
        *answer = Answer::WriteResult;
        self.served += 1;
        transport.finish(now, id);
    }
}

impl<T: Transport> Default for WebServer<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Transport> Program<T> for WebServer<T> {
    fn next_at(&self) -> Option<Instant> {
        None
    }

    fn on_time(&mut self, _: Instant, _: &mut T) {}

    fn on_event(&mut self, now: Instant, transport: &mut T, id: T::Id, event: ConnectionEvent) {
        match event {
            ConnectionEvent::Connected { .. } => {
                self.open.insert(id, Answer::Asked([0; REQUEST_BYTES], 0));
            }
            ConnectionEvent::Readable => self.read(now, transport, id),
            ConnectionEvent::Writable => self.send(now, transport, id),
            ConnectionEvent::Infeasible => {}
            ConnectionEvent::Closed { is_graceful } => {
                if self.open.remove(&id).is_some() {
                    self.broken += u64::from(!is_graceful);
                }
            }
        }
    }
}
