//! Everything that is measured of the sending end of a connection.

use rexmit_core::Instant;
use rexmit_core::trace::{TraceEvent, TraceSink};
use rexmit_netsim::network::{HostId, Network};

use super::{SenderTally, SenderTrace};
use crate::hosts::Host;
use crate::measure::{CopyLedger, CopyStatistics};

/// Looks at the trace of a sender, and at what becomes of its packets.
#[derive(Debug)]
pub(in crate::scenario) struct Probe {
    trace: SenderTrace,
    copies: CopyLedger,
}

impl Probe {
    /// Of a sender whose packets have at most so many bytes, headers of the transport included.
    pub(in crate::scenario) fn new(packet_bytes: usize) -> Self {
        Self { trace: SenderTrace::new(packet_bytes), copies: CopyLedger::default() }
    }

    /// For the endpoint of the sender.
    pub(in crate::scenario) fn sink(&self) -> Box<dyn TraceSink> {
        Box::new(Both(self.trace.sink(), self.copies.sink()))
    }

    /// Looks at `sender` on its network.
    pub(in crate::scenario) fn watch(&self, network: &mut Network<Host>, sender: HostId) {
        network.add_observer(self.copies.observer(sender));
    }

    pub(in crate::scenario) fn tally(&self) -> SenderTally {
        self.trace.tally()
    }

    pub(in crate::scenario) fn copies(&self) -> CopyStatistics {
        self.copies.statistics()
    }
}

struct Both(Box<dyn TraceSink>, Box<dyn TraceSink>);

impl TraceSink for Both {
    fn record(&mut self, now: Instant, association: u32, event: &TraceEvent) {
        self.0.record(now, association, event);
        self.1.record(now, association, event);
    }
}
