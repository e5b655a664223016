//! The replayed load, and the result of one lane.

use std::sync::Arc;
use std::time::Duration;

use rexmit::clock;
use rexmit::emulator::EmulatorStatistics;
use rexmit_core::Instant;
use rexmit_core::trace::TraceSink;
use rexmit_lab::link::Link;
use rexmit_lab::load::Load;
use rexmit_lab::measure::{LatencyDistribution, Recorder, Run};
use rexmit_qlog::{About, MakeLog};
use rexmit_sctp::recovery::Deadline;

use super::transport::Transport;

/// Time limit for an association to be established; long enough for several lost packets of the
/// handshake.
pub(super) const SETUP_TIMEOUT: Duration = Duration::from_secs(60);

/// The plan of the run.
#[derive(Clone, Debug)]
pub struct Replay {
    /// The messages.
    pub load: Load,
    /// The link between server and clients.
    pub link: Link,
    /// The protocol that carries the messages.
    pub transport: Transport,
    /// The names of the recovery profiles; each gets a lane.
    pub profiles: Vec<String>,
    /// The seed of the emulators.
    pub seed: u64,
    /// Whether messages may be delivered in any order. Over TCP delivery is always in order.
    pub unordered: bool,
    /// The deadline of every message, in the lanes whose profile has a probe timer (SCTP); other profiles send no
    /// copies.
    pub deadline: Option<Deadline>,
    /// Makes the logs of the servers, one for each profile.
    pub logs: Option<Arc<dyn MakeLog>>,
}

impl Replay {
    /// What records the trace of the server of `profile`: `recorder`, and a log if logs are made.
    pub(super) fn sink(&self, profile: &str, recorder: &Recorder) -> Box<dyn TraceSink> {
        let protocol = match self.transport {
            Transport::Sctp => "sctp",
            Transport::Tcp => "tcp",
        };
        let about = About::new(format!("{profile}: {}", self.load.name)).protocol(protocol);
        let about = about.begin(clock::now(), 0.0);
        let log = self.logs.as_ref().and_then(|logs| logs.log(profile, &about));
        let sinks = log.map(|log| log.sink()).into_iter().chain([recorder.sink()]);
        Box::new(sinks.collect::<Vec<_>>())
    }
}

/// The result of a lane.
pub(super) struct LaneOutcome {
    pub(super) run: Run,
    pub(super) emulator: EmulatorStatistics,
    pub(super) sending: LatencyDistribution,
}

/// Begin and end of the run: the first message and the time limit.
pub(super) type Span = (Instant, Instant);
