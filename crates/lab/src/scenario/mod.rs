//! What one run does: a network, the flows over it, and how long.
//!
//! A [`Scenario`] is data. [`Scenario::catalogue`] says what a run of it measures, before anything
//! runs; [`execute`] runs it.
//!
//! Names of what is measured are `FLOW.WHAT`. Latency counts from when the application meant to send.
//! Where there is `D`, it stands for a distribution `D` and the quantities `D.mean`, `D.p50`, `D.p90`,
//! `D.p99`, `D.p999`, `D.p9999` and `D.max`.
//!
//! | of | what | |
//! |---|---|---|
//! | thin | `traffic.payload.mean`, `.min`, `.max` | bytes of a message that the application means to send |
//! | | `traffic.interarrival.mean`, `.min`, `.p1`, `.p50`, `.p99`, `.max` | time between two of them |
//! | | `traffic.packets_per_second` | the inverse of its mean |
//! | | `latency` (D) | to the delivery to the application |
//! | | `transport_latency` (D) | to the arrival at the receiver, in order or not |
//! | | `bytes_latency` (D) | the same, weighted by bytes |
//! | | `messages`, `undelivered` | meant to be sent; never delivered |
//! | | `late_share.TIME`, `transport_late_share.TIME` | share that took longer, for each `late` |
//! | | `had_late.TIME` | 1 if any message took longer to the application, else 0: its mean is a share of runs |
//! | | `packets_per_message` | packets of the sender's host |
//! | | `two_way.packets_per_message`, `two_way.wire_bytes_per_payload_byte` | packets and bytes of both hosts, acknowledgements included |
//! | | `bound.KIND` (D without mean and maximum), `bound.KIND.extra_packets` | what is possible at best, for each of `bounds`: `reactive`, `doubled`, `bundled` |
//! | | `over_bound.KIND` (the same) | the quantiles of `latency` over those |
//! | | `bound.packets_per_message.PART`, `over_bound.packets_per_message.PART` | with `bounds`: the [least](crate::bound::least_packets) that let the quantile `PART` (`p50` to `p9999`) take a round trip more than the delay; of messages further apart than a round trip; `packets_per_message` over it |
//! | thin, bulk | `goodput`; `goodput_bins`; `goodput` over time | mean; distribution over bins; series |
//! | | `timeouts`, `reductions`, `collapses` | of the timer; of the window; of it to one packet |
//! | | `rtt` (D), `rto` (D) | what the sender measured; the timeouts made from it |
//! | | `rtt`, `rto`, `cwnd`, `missing_reports` | series; the last where it follows the path |
//! | | `units`; `sequence` | data units that were sent; each as it was sent, from 1: a series |
//! | | `loss_share` | data packets that the network lost, of those sent |
//! | | `delay` (D) | from the first sending of a data unit to its arrival, whichever copy brought it |
//! | | `retransmissions.CAUSE`, `spurious.CAUSE` | data units retransmitted; the spurious ones; `all` is a cause, too |
//! | | `retransmitted_share`, `spurious_share` | of all data units sent: again; again and spurious |
//! | | `impatient_share`, `crossed_share`, `unanswered_share`, `on_purpose_share` | the parts of `spurious_share`, see below |
//! | | `rtxK` (D) | from the first sending of a data unit to its arrival, if its K-th retransmission brought it; K is 0, 1, 2, 3, `4plus` |
//! | | `rtxK.count`, `rtxK.sent` | units brought so; K-th retransmissions sent |
//! | | `rtxK.share.CAUSE` | of the K-th retransmissions sent, those of this cause |
//! | | `rtxK.spurious_share`, `rtxK.spurious_share.CAUSE` | of the same, the spurious ones: all, of this cause |
//! | | `events.KIND` | retransmission events of the `KIND` `timeout`, `fast_retransmit` or `all` |
//! | | `events.KIND.spurious`, `.detected` | in which nothing was lost; of these, those that the sender found |
//! | | `events.KIND.detected_share` | the latter of the former |
//! | | `events.KIND.mistaken` | those that it took for such though something was lost |
//! | | `nth_retransmission.N.mean`, `.max`, `.count` | from the first sending of a unit to its N-th retransmission, N from 1 to 10 |
//! | | `wire_bytes_per_payload_byte` | bytes of the sender's host, headers of IP and UDP included |
//! | | `wire_rate`, `arrived_wire_rate` | the same per second, and what of it reached the receiver's host, while `goodput` is measured |
//! | | `pathN.packets`, `.retransmissions`, `.timeouts`, `.rtt` (D) | of a flow over both networks: on the first (N is 1) and the second |
//! | | `pathN.rtt`, `pathN.cwnd` | series; those without a path are of the first |
//! | bulk, `background` | `goodput`; `goodput_bins`; `goodput` over time | nothing else |
//! | web | `asked`, `files`, `failed`, `file_time` (D), `goodput` | |
//! | udp | `packets`, `loss_share`, `goodput`, `delay.mean` | |
//! | `network` | `forward.loss_share`, `.queue_loss_share`, `.packets`, `.queue.max` | the shared path; `backward`, too; `second_network`, too |
//!
//! On real sockets (`clock = "real"`) arrivals of packets are not observed: there is no `transport_latency`,
//! `bytes_latency`, `transport_late_share`, `loss_share` of a flow, `rtxK`, `wire_rate`,
//! `arrived_wire_rate` and parts of `spurious_share`, and `spurious` is what the senders have learned.
//! Instead there is what the machine added:
//!
//! | of | what | |
//! |---|---|---|
//! | thin | `send_lateness` (D) | by which messages were given to the transport too late |
//! | `network` | `lateness.p50`, `.p99`, `.p999`, `.max` | by which packets left the emulator too late |
//!
//! [Rivals](crate::rivals) have no trace: their thin flows have the quantities down to
//! `goodput`, `packets_per_message`, `wire_bytes_per_payload_byte` and the `wire_rate`s alone.
//!
//! A `CAUSE` is `timeout`, `fast_retransmit`, `bundled`, `probe`, `redundant`, `early` or
//! `window_probe`.
//! Redundant copies (`redundant`) are not retransmissions: they count with the last one before them. A data
//! unit is a DATA chunk of SCTP, or the data of one TCP segment at its first transmission. A retransmission event
//! is an expiry of the timer, or a fast retransmit with all that follow it until the next event.
//!
//! Spurious retransmissions are classified by the ACKs of the receiver, which are all of its
//! packets with an acknowledgement since the unit arrived. *Unanswered* is what was transmitted after all of them
//! that had been sent were lost: no sender can tell that from a loss of the unit. *Crossed* is what
//! left after the first of them was lost while a later one was under way that came: waiting for more
//! than a round trip would have told. *Impatient* is the rest, whose first answer was not lost: it was
//! still under way, or still to be sent, or had come. Redundant copies are apart, whatever was known.

mod bounds;
mod check;
mod connection;
mod error;
mod flows;
mod meter;
mod outcome;
mod overrides;
mod problem;
mod quantities;
mod real;
mod rival;
mod run;
mod sheet;
mod spec;
mod tell;
mod topology;
mod traffic;
mod words;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rexmit_core::trace::TraceSink;

use crate::connections::{Connections, Measured, Sockets, SocketsError};

pub use error::ExecuteError;
pub use outcome::{Catalogue, Described, Distribution, MessageRow, RunOutcome, Series, Unit};
pub use overrides::Overrides;
pub use problem::Problem;
pub use spec::{
    BoundKind, BulkFlow, Change, Clock, Encapsulation, NetworkSpec, Over, ReceiverSpec, Scenario,
    ThinFlow, TransportKind, UdpFlow, WebFlow,
};
pub use traffic::{Replayed, Traffic, TrafficError, TrafficSource};
pub use words::{Size, Time, Words};

impl Scenario {
    /// Checks conditions that the types cannot express: names of profiles, bounds, existence of
    /// traces.
    ///
    /// # Errors
    /// All problems.
    pub fn validate(&self) -> Result<(), Vec<Problem>> {
        check::find(self)
    }

    /// The quantities that a run measures.
    #[must_use]
    pub fn catalogue(&self) -> Catalogue {
        match self.clock {
            Clock::Virtual => run::catalogue(self),
            Clock::Real => real::tell(self, &Default::default(), &Default::default()).catalogue,
        }
    }
}

/// Runs `scenario` in virtual time; all randomness comes from `seed`.
///
/// # Errors
/// If the scenario cannot be run, the run fails, or the scenario requires real sockets.
pub fn execute(scenario: &Scenario, seed: u64) -> Result<RunOutcome, ExecuteError> {
    execute_on(&NoSockets, scenario, seed)
}

/// Runs `scenario`, on `sockets` if its clock is the real one. All randomness comes from `seed`,
/// except in a run on real sockets, which also depends on the operating system's scheduling.
///
/// # Errors
/// If the scenario cannot be run, or the run fails.
pub fn execute_on(
    sockets: &dyn Sockets,
    scenario: &Scenario,
    seed: u64,
) -> Result<RunOutcome, ExecuteError> {
    if let Some(problem) = check::find(scenario).err().and_then(|all| all.into_iter().next()) {
        return Err(problem.into());
    }
    rival::find_built(scenario)?;
    let run = || match scenario.clock {
        Clock::Virtual => run::run(scenario, seed),
        Clock::Real => real::run(scenario, seed, sockets).map(|sheet| sheet.outcome),
    };
    // A failure inside of a run is a result of the run, not the end of all others.
    catch_unwind(AssertUnwindSafe(run))
        .unwrap_or_else(|panic| Err(ExecuteError::Failed(words_of(&*panic))))
}

/// A driver without sockets: every run on real sockets fails.
struct NoSockets;

impl Sockets for NoSockets {
    fn run(
        &self,
        _: &Connections,
        _: &mut (dyn FnMut() -> Box<dyn TraceSink> + Send),
    ) -> Result<Measured, SocketsError> {
        Err(SocketsError::NotPermitted("the laboratory opens no sockets".into()))
    }
}

fn words_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("it panicked without a message").to_owned()
}
