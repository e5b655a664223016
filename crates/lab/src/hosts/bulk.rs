//! Bulk transfers.

use std::net::SocketAddr;

use rexmit_core::Instant;
use serde::Serialize;

use super::content;
use super::running::Program;
use super::transport::{ConnectionEvent, Transport, WriteResult};

/// A bulk transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bulk {
    /// The local address; with port 0 the transport chooses one.
    pub local: SocketAddr,
    /// The remote address.
    pub remote: SocketAddr,
    /// When the connection is opened. Default 0.
    pub start: Instant,
    /// When the application stops writing; accepted data is still delivered. Default never.
    pub stop: Instant,
    /// Number of bytes to send. Default unlimited.
    pub limit_bytes: Option<u64>,
    /// Bytes per write (the message size, if the transport has messages), at most 16 KiB. The
    /// default depends on the transport.
    pub write_bytes: Option<usize>,
}

impl Bulk {
    /// An unlimited transfer that starts at time 0.
    #[must_use]
    pub const fn new(local: SocketAddr, remote: SocketAddr) -> Self {
        let (start, stop) = (Instant::ZERO, Instant::FAR_FUTURE);
        Self { local, remote, start, stop, limit_bytes: None, write_bytes: None }
    }
}

/// The state of a bulk transfer or another sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
enum Stage {
    #[default]
    Waiting,
    Connecting,
    Sending,
    Finishing,
    Over {
        is_graceful: bool,
    },
}

/// Sends at full speed over one connection; [`Sink`](super::Sink) verifies the content.
#[derive(Clone, Debug)]
pub struct BulkSender<T: Transport> {
    bulk: Bulk,
    stage: Stage,
    id: Option<T::Id>,
    sent: u64,
}

impl<T: Transport> BulkSender<T> {
    /// A sender of `bulk`.
    #[must_use]
    pub fn new(bulk: Bulk) -> Self {
        Self { bulk, stage: Stage::Waiting, id: None, sent: 0 }
    }

    /// Number of bytes that the transport has accepted.
    #[must_use]
    pub fn sent_bytes(&self) -> u64 {
        self.sent
    }

    /// The connection, once it is opened.
    #[must_use]
    pub fn id(&self) -> Option<T::Id> {
        self.id
    }

    /// Whether everything was delivered and the connection ended gracefully.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.stage == Stage::Over { is_graceful: true }
    }

    /// Whether the connection could not be established, or failed.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.stage == Stage::Over { is_graceful: false }
    }

    fn fill(&mut self, now: Instant, transport: &mut T) {
        let (Stage::Sending, Some(id)) = (self.stage, self.id) else { return };
        let limit = self.bulk.limit_bytes.unwrap_or(u64::MAX);
        let write = self.bulk.write_bytes.unwrap_or(T::WRITE_BYTES).max(1) as u64;
        while self.sent < limit && now < self.bulk.stop {
            let mut piece = content::piece(self.sent, write.min(limit - self.sent));
            let len = piece.len();
            let given = transport.write(now, id, &mut piece);
            self.sent += (len - piece.len()) as u64;
            if given != WriteResult::All {
                return; // `Writable` or `Closed` follows.
            }
        }
        self.stage = Stage::Finishing;
        transport.finish(now, id);
    }
}

impl<T: Transport> Program<T> for BulkSender<T> {
    fn next_at(&self) -> Option<Instant> {
        match self.stage {
            Stage::Waiting => Some(self.bulk.start),
            Stage::Connecting | Stage::Sending => {
                Some(self.bulk.stop).filter(|&at| at < Instant::FAR_FUTURE)
            }
            Stage::Finishing | Stage::Over { .. } => None,
        }
    }

    fn on_time(&mut self, now: Instant, transport: &mut T) {
        match self.stage {
            Stage::Waiting => {
                self.id = transport.begin(now, self.bulk.local, self.bulk.remote);
                self.stage = match self.id {
                    Some(_) => Stage::Connecting,
                    None => Stage::Over { is_graceful: false },
                };
            }
            Stage::Connecting => {
                self.stage = Stage::Over { is_graceful: false };
                self.id.into_iter().for_each(|id| transport.abort(now, id));
            }
            _ => self.fill(now, transport),
        }
    }

    fn on_event(&mut self, now: Instant, transport: &mut T, id: T::Id, event: ConnectionEvent) {
        if self.id != Some(id) || matches!(self.stage, Stage::Over { .. }) {
            return;
        }
        match event {
            ConnectionEvent::Connected { .. } => {
                self.stage = Stage::Sending;
                self.fill(now, transport);
            }
            ConnectionEvent::Writable => self.fill(now, transport),
            ConnectionEvent::Readable => drop(transport.read(now, id, &mut |_| {})),
            ConnectionEvent::Infeasible => {}
            ConnectionEvent::Closed { is_graceful } => {
                let is_graceful = is_graceful && self.stage == Stage::Finishing;
                self.stage = Stage::Over { is_graceful };
            }
        }
    }
}
