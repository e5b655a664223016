//! Measurements of connections that have ended.

use std::time::Duration;

use rexmit::clock;
use rexmit::emulator::EmulatorStatistics;
use rexmit_core::Instant;
use rexmit_lab::connections::{Lateness, Measured};
use rexmit_netsim::network::LinkStats;
use tokio::task::JoinSet;

use super::arrivals::Arrivals;
use super::sender::{Finished, Sender};
use crate::realtime::error::RealtimeError;
use crate::realtime::tasks::in_order;

/// The time from the arrival of the last message to the last reading of the senders' statistics. A run in virtual time
/// also continues for up to one second.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Connections that have ended.
pub(super) struct Ended<S> {
    senders: Vec<Finished<S>>,
}

impl<S: Sender> Ended<S> {
    pub(super) async fn wait(
        flows: JoinSet<Result<(usize, Finished<S>), RealtimeError>>,
    ) -> Result<Self, RealtimeError> {
        let senders = in_order(flows).await?;
        // The last acknowledgements are in flight and belong to the run.
        clock::sleep_until(clock::now() + LAST_WORDS).await;
        Ok(Self { senders })
    }

    /// Sums up the measurements once the link has stopped.
    pub(super) fn measured(
        self,
        origin: Instant,
        arrivals: &Arrivals,
        emulator: EmulatorStatistics,
    ) -> Result<Measured, RealtimeError> {
        let link = [&emulator.forward, &emulator.backward]
            .map(|way| LinkStats::new(way.path, way.arrivals));
        let late = emulator.lateness;
        let lateness = (late.count > 0).then_some(Lateness {
            p50: late.p50,
            p99: late.p99,
            p999: late.p999,
            max: late.max,
        });
        let mut measured = Measured { origin, link, lateness, ..Measured::default() };
        // The messages of a connection that was never established count from the beginning of the run.
        let start = |sender: &Finished<S>| sender.stands_since.unwrap_or(origin);
        let starts: Vec<_> = self.senders.iter().map(start).collect();
        for sender in &self.senders {
            measured.sending.merge(&sender.lateness);
            measured.recovery.extend(sender.sender.as_ref().map(S::recovery));
        }
        measured.records = arrivals.records(&starts).map_err(|what| RealtimeError::Broken {
            profile: "a run of several connections".into(),
            what,
        })?;
        Ok(measured)
    }
}
