//! Sends the planned messages.

use std::net::SocketAddr;

use bytes::{Bytes, BytesMut};
use rexmit_core::Instant;

use super::plan::{PlannedMessage, ThinPlan, write_number};
use crate::hosts::running::Program;
use crate::hosts::transport::{ConnectionEvent, Transport, WriteResult};

/// The configuration of a thin stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Thin {
    /// The local address; with port 0 the transport chooses one.
    pub local: SocketAddr,
    /// The remote address.
    pub remote: SocketAddr,
    /// When the connection is opened. Default 0.
    pub start: Instant,
    /// Whether the connection, with the statistics of its endpoint, is kept after the last message.
    /// Default `false`.
    pub stays_open: bool,
    /// Whether the times of the plan count from the connection's establishment instead of the
    /// origin of time, so that no message waits for the handshake. Default `false`.
    pub waits_for_connection: bool,
}

impl Thin {
    /// A stream that starts at time 0.
    #[must_use]
    pub const fn new(local: SocketAddr, remote: SocketAddr) -> Self {
        Self { local, remote, start: Instant::ZERO, stays_open: false, waits_for_connection: false }
    }
}

/// Sends the messages of a plan over one connection, each at its time. A message waits if the
/// connection is not established or the send buffer is full; its latency counts from its intended
/// time. After the last message the connection is ended, unless it is to stay open.
#[derive(Debug)]
pub struct ThinSender<T: Transport> {
    thin: Thin,
    plan: ThinPlan,
    id: Option<T::Id>,
    stage: Stage,
    /// The next message to be passed to the transport.
    next: Option<PlannedMessage>,
    /// The number of the next message.
    number: usize,
    /// The unsent part of the previous one.
    unsent: Bytes,
    buffer: BytesMut,
    /// How often the transport has reported that the deadline cannot be met.
    infeasible: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Waiting,
    Connecting,
    Sending,
    /// The transport's send buffer is full.
    Blocked,
    Finishing,
    Over {
        is_graceful: bool,
    },
}

impl<T: Transport> ThinSender<T> {
    /// A sender of `plan`.
    #[must_use]
    pub fn new(thin: Thin, plan: ThinPlan) -> Self {
        let (unsent, buffer) = (Bytes::new(), BytesMut::new());
        Self {
            thin,
            plan,
            id: None,
            stage: Stage::Waiting,
            next: None,
            number: 0,
            unsent,
            buffer,
            infeasible: 0,
        }
    }

    /// Number of messages that the transport has accepted.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.number as u64 - u64::from(!self.unsent.is_empty())
    }

    /// Whether the transport has accepted every message of the plan.
    #[must_use]
    pub fn has_sent_all(&self) -> bool {
        let has_begun = !matches!(self.stage, Stage::Waiting | Stage::Connecting);
        has_begun && self.next.is_none() && self.unsent.is_empty()
    }

    /// How often the transport has reported that the deadline of messages cannot be met.
    #[must_use]
    pub const fn infeasible(&self) -> u64 {
        self.infeasible
    }

    /// The connection, once it is opened.
    #[must_use]
    pub fn id(&self) -> Option<T::Id> {
        self.id
    }

    /// Whether everything was sent and the connection ended gracefully.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.stage == Stage::Over { is_graceful: true }
    }

    /// Whether the connection could not be established, or failed.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.stage == Stage::Over { is_graceful: false }
    }

    /// Passes the messages that are due to the transport.
    fn send(&mut self, now: Instant, transport: &mut T) {
        let Some(id) = self.id else { return };
        loop {
            if self.unsent.is_empty() && !self.make_next(now) {
                break;
            }
            match transport.write(now, id, &mut self.unsent) {
                WriteResult::All => {}
                WriteResult::Full => {
                    self.stage = Stage::Blocked;
                    return;
                }
                WriteResult::Ended => return, // ConnectionEvent tell why.
            }
        }
        self.stage = Stage::Sending;
        if self.next.is_none() && !self.thin.stays_open {
            self.stage = Stage::Finishing;
            transport.finish(now, id);
        }
    }

    /// Prepares the next message if it is due.
    fn make_next(&mut self, now: Instant) -> bool {
        let Some(message) = self.next.filter(|next| next.intended <= now) else { return false };
        // Reuses the previous buffer once the transport has released it.
        self.buffer.resize(message.bytes as usize, 0);
        write_number(self.number, &mut self.buffer);
        self.unsent = self.buffer.split().freeze();
        self.number += 1;
        self.next = self.plan.next();
        true
    }
}

impl<T: Transport> Program<T> for ThinSender<T> {
    fn next_at(&self) -> Option<Instant> {
        match self.stage {
            Stage::Waiting => Some(self.thin.start),
            Stage::Sending => self.next.map(|next| next.intended),
            Stage::Connecting | Stage::Blocked | Stage::Finishing | Stage::Over { .. } => None,
        }
    }

    fn on_time(&mut self, now: Instant, transport: &mut T) {
        if self.stage == Stage::Waiting {
            self.id = transport.begin(now, self.thin.local, self.thin.remote);
            self.stage = match self.id {
                Some(_) => Stage::Connecting,
                None => Stage::Over { is_graceful: false },
            };
        } else if self.stage == Stage::Sending {
            self.send(now, transport);
        }
    }

    fn on_event(&mut self, now: Instant, transport: &mut T, id: T::Id, event: ConnectionEvent) {
        if self.id != Some(id) {
            return;
        }
        match (event, self.stage) {
            (ConnectionEvent::Connected { .. }, Stage::Connecting) => {
                if self.thin.waits_for_connection {
                    self.plan.delay_by(now - Instant::ZERO);
                }
                self.next = self.plan.next();
                self.send(now, transport);
            }
            (ConnectionEvent::Writable, Stage::Blocked) => self.send(now, transport),
            (ConnectionEvent::Infeasible, _) => self.infeasible += 1,
            (ConnectionEvent::Readable, _) => drop(transport.read(now, id, &mut |_| {})),
            (ConnectionEvent::Closed { is_graceful }, stage) => {
                let is_graceful = is_graceful && stage == Stage::Finishing;
                self.stage = Stage::Over { is_graceful };
            }
            _ => {}
        }
    }
}
