//! Measurements of the sending end of a connection.

use rexmit_core::trace::TraceSink;

use super::{PathTally, PathsTrace, SenderTally, SenderTrace};
use crate::measure::{CopyLedger, CopyStatistics};

/// Evaluates the trace of a sender, and the outcomes of its packets.
#[derive(Debug)]
pub(in crate::scenario) struct Probe {
    trace: SenderTrace,
    copies: CopyLedger,
    /// The traces of both paths, for a sender with two.
    paths: Option<PathsTrace>,
}

impl Probe {
    /// A probe for a sender whose packets have at most `packet_bytes`, including transport headers.
    pub(in crate::scenario) fn new(packet_bytes: usize, copies: CopyLedger) -> Self {
        Self { trace: SenderTrace::new(packet_bytes), copies, paths: None }
    }

    /// Adds measurements of two paths.
    pub(in crate::scenario) fn with_paths(self) -> Self {
        Self { paths: Some(PathsTrace::default()), ..self }
    }

    /// The sink for the sender's endpoint.
    pub(in crate::scenario) fn sink(&self) -> Box<dyn TraceSink> {
        let sinks = [self.trace.sink(), self.copies.sink()];
        Box::new(
            sinks.into_iter().chain(self.paths.iter().map(PathsTrace::sink)).collect::<Vec<_>>(),
        )
    }

    /// What observes the packets of the sender on its network.
    pub(in crate::scenario) const fn ledger(&self) -> &CopyLedger {
        &self.copies
    }

    pub(in crate::scenario) fn tally(&self) -> SenderTally {
        self.trace.tally()
    }

    /// The measurements of each path, if there are two.
    pub(in crate::scenario) fn paths(&self) -> Option<[PathTally; 2]> {
        self.paths.as_ref().map(PathsTrace::tallies)
    }

    pub(in crate::scenario) fn copies(&self) -> CopyStatistics {
        self.copies.statistics()
    }
}
