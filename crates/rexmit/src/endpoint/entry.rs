//! The endpoint's state of an association, besides that of the protocol.

use std::net::SocketAddr;
use std::sync::Arc;

use rexmit_sctp::{AssociationStatistics, CloseReason};

use crate::association::Cell;
use crate::event::EventQueue;

/// One association.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) cell: Arc<Cell>,
    /// `None` while the peer has not answered.
    pub(crate) established: Option<Established>,
    /// `None` while it lasts.
    pub(crate) closed: Option<CloseReason>,
    /// The last statistics, once it has ended.
    pub(crate) statistics: Option<Box<AssociationStatistics>>,
    pub(crate) events: EventQueue,
    /// The last handle was dropped: received messages are discarded.
    pub(crate) is_orphaned: bool,
}

/// Values fixed at the start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Established {
    pub(crate) peer: SocketAddr,
    pub(crate) outbound_streams: u16,
    pub(crate) inbound_streams: u16,
    #[cfg(feature = "dtls")]
    pub(crate) fingerprint: Option<rexmit_dtls::Fingerprint>,
}

impl Entry {
    pub(crate) fn new(cell: Arc<Cell>, established: Option<Established>) -> Self {
        let events = EventQueue::default();
        Self { cell, established, closed: None, statistics: None, events, is_orphaned: false }
    }
}
