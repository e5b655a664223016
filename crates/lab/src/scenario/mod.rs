//! Scenarios: the network, the flows over it, and the duration of one run.
//!
//! A [`Scenario`] is data. [`Scenario::catalogue`] lists the quantities that a run of it measures,
//! without running it; [`execute`] runs it.
//!
//! Names of quantities are `FLOW.WHAT`. Latency counts from the intended sending by the application.
//! `D` marks a distribution `D` with the quantities `D.mean`, `D.p50`, `D.p90`, `D.p99`, `D.p999`,
//! `D.p9999` and `D.max`.
//!
//! | of | what | |
//! |---|---|---|
//! | thin | `traffic.payload.mean`, `.min`, `.max` | payload of a planned message, in bytes |
//! | | `traffic.interarrival.mean`, `.min`, `.p1`, `.p50`, `.p99`, `.max` | time between two planned messages |
//! | | `traffic.packets_per_second` | the inverse of the mean interarrival time |
//! | | `traffic.bandwidth` | bits per second, with 66 bytes of headers per message |
//! | | `latency` (D) | until delivery to the application |
//! | | `transport_latency` (D) | until arrival at the receiver, in order or not |
//! | | `bytes_latency` (D) | as `transport_latency`, weighted by bytes |
//! | | `messages`, `undelivered` | planned messages; those never delivered |
//! | | `late_share.TIME`, `transport_late_share.TIME` | share of messages with a longer latency, for each `late` |
//! | | `had_late.TIME` | 1 if any message had a longer latency, else 0; the mean over seeds is a share of runs |
//! | | `packets_per_message` | packets of the sender's host |
//! | | `two_way.packets_per_message`, `two_way.wire_bytes_per_payload_byte` | packets and bytes of both hosts, acknowledgements included |
//! | | `bound.KIND` (D without mean and maximum), `bound.KIND.extra_packets` | theoretical bound, for each of `bounds`: `reactive`, `doubled`, `bundled`, `bundled_once` |
//! | | `over_bound.KIND` (the same) | excess of the quantiles of `latency` over the bound |
//! | | `bound.packets_per_message.PART`, `over_bound.packets_per_message.PART` | with `bounds`: the [least](crate::bound::least_packets) that let the quantile `PART` (`p50` to `p9999`) take a round trip more than the delay; of messages further apart than a round trip; `packets_per_message` over it |
//! | | `bound.wire_bytes_per_payload_byte.PART`, `over_bound.wire_bytes_per_payload_byte.PART` | with `bounds`: the [least](crate::bound::least_cost) for which any sender has the measured quantile `PART` (`p99`, `p999`); measured, over it |
//! | thin, `recovery.thin.deadline` | `deadline.late_share`, `deadline.late_ratio` | share of messages that miss the deadline; over the share that may |
//! | | `bound.deadline.packets_per_message`, `.wire_bytes_per_payload_byte` | the [least](crate::bound::least_cost) for which any sender meets it, with uniform loss or [bursts](crate::bound::least_cost_in_bursts) and messages of one size at constant intervals |
//! | | `over_bound.deadline` (the same) | measured, over the least; `.cost` is the smaller of both |
//! | | `deadline.infeasible` | times the sender reported that the deadline cannot be met |
//! | | `bound.deadline.late_share` | the [least](crate::bound::least_late) share that is late at any cost |
//! | thin, `transfer` | `transfer.goodput` | of the transfer on another stream of the association |
//! | thin, bulk | `goodput`; `goodput_bins`; `goodput` over time | mean; distribution over bins; series |
//! | | `timeouts`, `reductions`, `collapses` | expiries of the retransmission timer; reductions of the congestion window; those to one packet |
//! | | `rtt` (D), `rto` (D) | RTT samples of the sender; the timeouts after them |
//! | | `rtt`, `rto`, `cwnd`, `missing_reports` | series; `missing_reports` only if the threshold adapts |
//! | | `units`; `sequence` | data units sent; their numbers from 1 over time: a series |
//! | | `loss_share` | share of data packets lost by the network |
//! | | `delay` (D) | from the first transmission of a data unit to its arrival |
//! | | `retransmissions.CAUSE`, `spurious.CAUSE` | data units retransmitted; spurious ones among them; `all` for all causes |
//! | | `retransmitted_share`, `spurious_share` | shares of all data units sent: retransmitted; retransmitted spuriously |
//! | | `premature_share`, `crossed_share`, `unacknowledged_share`, `redundant_share` | the parts of `spurious_share`, see below |
//! | | `rtxK` (D) | from the first transmission of a data unit to its arrival, if its K-th retransmission delivered it; K is 0, 1, 2, 3, `4plus` |
//! | | `rtxK.count`, `rtxK.sent` | units delivered by their K-th retransmission; K-th retransmissions sent |
//! | | `rtxK.share.CAUSE` | share of this cause among the K-th retransmissions |
//! | | `rtxK.spurious_share`, `rtxK.spurious_share.CAUSE` | shares of all K-th retransmissions: the spurious ones; those that are spurious and of this cause |
//! | | `events.KIND` | retransmission events of the `KIND` `timeout`, `fast_retransmit` or `all`; of a kernel's SCTP the first two, as it counts them |
//! | | `events.KIND.spurious`, `.detected` | spurious events; those that the sender detected |
//! | | `events.KIND.detected_share` | `detected` divided by `spurious` |
//! | | `events.KIND.mistaken` | events wrongly detected as spurious |
//! | | `nth_retransmission.N.mean`, `.max`, `.count` | from the first transmission of a unit to its N-th retransmission, N from 1 to 10 |
//! | | `wire_bytes_per_payload_byte` | bytes sent by the sender's host, with IP and UDP headers, per byte of payload |
//! | | `wire_rate`, `arrived_wire_rate` | bytes per second sent by the sender's host, and received by the receiver's host, while `goodput` is measured |
//! | | `pathN.packets`, `.retransmissions`, `.timeouts`, `.rtt` (D) | for a flow over both networks, on the first (N is 1) and the second (N is 2) |
//! | | `pathN.rtt`, `pathN.cwnd` | series; `rtt` and `cwnd` without `pathN` are those of the first path |
//! | bulk, `background` | `goodput`; `goodput_bins`; `goodput` over time | no other quantities |
//! | web | `asked`, `files`, `failed`, `file_time` (D), `goodput` | |
//! | udp | `packets`, `loss_share`, `goodput`, `delay.mean` | |
//! | `network` | `forward.loss_share`, `.queue_loss_share`, `.mark_share`, `.packets`, `.queue.max` | the shared path; `backward`, too; `second_network`, too |
//!
//! On real sockets (`clock = "real"`) arrivals of packets are not observed: there is no `transport_latency`,
//! `bytes_latency`, `transport_late_share`, `loss_share` of a flow, `rtxK`, `wire_rate`,
//! `arrived_wire_rate` and parts of `spurious_share`, and `spurious` is what the senders have learned.
//! Instead there is what the machine added:
//!
//! | of | what | |
//! |---|---|---|
//! | thin | `send_lateness` (D) | how late messages were passed to the transport |
//! | `network` | `lateness.p50`, `.p99`, `.p999`, `.max` | how late packets left the emulator |
//!
//! [Rivals](crate::rivals), hosts of a kernel, and flows with a `transfer`, have no trace: these thin flows have only the quantities up to
//! `goodput`, `packets_per_message`, `wire_bytes_per_payload_byte` and the `wire_rate`s.
//!
//! A `CAUSE` is `timeout`, `fast_retransmit`, `bundled`, `probe`, `redundant`, `early` or
//! `window_probe`. Redundant copies (`redundant`) are not retransmissions: they are counted with the
//! last retransmission before them. A data unit is a DATA chunk of SCTP, or the data of one TCP
//! segment at its first transmission. A retransmission event is an expiry of the timer, or a fast
//! retransmit with all that follow it until the next event.
//!
//! Spurious retransmissions are classified by the ACKs of the unit, which are all packets with an
//! acknowledgement that the receiver sends after the unit arrived. *Unacknowledged*: all ACKs sent before
//! the retransmission were lost, which no sender can distinguish from a loss of the unit. *Crossed*:
//! the first ACK was lost, but a later one was in flight and arrived, so that waiting longer than a
//! round-trip time would have avoided the retransmission. *Premature*: the first ACK was not lost; it
//! was in flight, not sent yet, or had arrived. Redundant copies are counted separately.

mod bounds;
mod check;
mod connection;
mod deadline;
mod error;
mod extent;
mod flows;
mod kernel;
mod kernel_hosts;
mod measured;
mod meter;
mod outcome;
mod overrides;
mod packets;
mod problem;
mod quantities;
mod real;
mod repeated;
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
use std::sync::atomic::AtomicBool;

use rexmit_core::trace::TraceSink;
use rexmit_qlog::MakeLog;

use kernel::{NoKernel, Pace};
use packets::PacketLog;
use run::Records;

use crate::connections::{Connections, Measured, Sockets, SocketsError};
use crate::kernel::Kernel;

pub use connection::profiles;
pub use error::ExecuteError;
pub use extent::MAX_PLANNED_PACKETS;
pub use kernel_hosts::KernelHosts;
pub use measured::MeasuredCost;
pub use outcome::{Catalogue, Described, Distribution, MessageRow, RunOutcome, Series, Unit};
pub use overrides::Overrides;
pub use packets::{Content, MAX_PACKET_ROWS, PacketRow};
pub use problem::Problem;
pub use repeated::Repeated;
pub use sheet::QUANTILES;
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
            Clock::Virtual | Clock::Kernel => run::catalogue(self),
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
    checked(scenario, || match scenario.clock {
        Clock::Virtual => run::run(scenario, seed, Records::default(), Pace::Jumps(NoKernel)),
        Clock::Kernel => Ok(sockets.run_in_kernel(scenario, seed)?),
        Clock::Real => real::run(scenario, seed, sockets).map(|sheet| sheet.outcome),
    })
}

/// Runs `scenario` in `kernel`, in which this process runs.
///
/// # Errors
/// If the scenario cannot be run, its clock is not that of a kernel, or the run fails.
pub fn execute_in(
    kernel: &mut dyn Kernel,
    scenario: &Scenario,
    seed: u64,
) -> Result<RunOutcome, ExecuteError> {
    if scenario.clock != Clock::Kernel {
        return Err(Problem::of("clock", "a run inside a kernel has `clock = \"kernel\"`").into());
    }
    checked(scenario, || run::run(scenario, seed, Records::default(), Pace::Kernel(kernel)))
}

/// Calls `run` if `scenario` is valid. A panic is an error.
fn checked(
    scenario: &Scenario,
    run: impl FnOnce() -> Result<RunOutcome, ExecuteError>,
) -> Result<RunOutcome, ExecuteError> {
    if let Some(problem) = check::find(scenario).err().and_then(|all| all.into_iter().next()) {
        return Err(problem.into());
    }
    rival::find_built(scenario)?;
    // A failure inside of a run is a result of the run, not the end of all others.
    catch_unwind(AssertUnwindSafe(run))
        .unwrap_or_else(|panic| Err(ExecuteError::Failed(words_of(&*panic))))
}

/// Runs `scenario` as [`execute`] does, and also returns its packets, in the order in which they were sent. Another thread
/// can stop the run with `is_stopped`.
///
/// # Errors
/// As [`execute`], for a run with more than [`MAX_PACKET_ROWS`] packets, and for a stopped one.
pub fn execute_with_packets(
    scenario: &Scenario,
    seed: u64,
    is_stopped: &AtomicBool,
) -> Result<(RunOutcome, Vec<PacketRow>), ExecuteError> {
    if scenario.clock != Clock::Virtual {
        return execute(scenario, seed).map(|outcome| (outcome, Vec::new()));
    }
    let log = PacketLog::default();
    let records = Records { packets: Some(&log), ..Records::default() };
    let pace = Pace::Stoppable(NoKernel, is_stopped);
    let outcome = checked(scenario, || run::run(scenario, seed, records, pace))?;
    Ok((outcome, log.into_rows()?))
}

/// Runs `scenario` as [`execute`] does, with a log of the sender of each thin or bulk flow over our SCTP or TCP, unless the
/// flow shares its association with a transfer. The logs change nothing in the run.
///
/// # Errors
/// As [`execute`], and if the scenario is not simulated.
pub fn execute_with_logs(
    scenario: &Scenario,
    seed: u64,
    logs: &dyn MakeLog,
) -> Result<RunOutcome, ExecuteError> {
    if scenario.clock != Clock::Virtual {
        return Err(Problem::of("clock", "logs are of simulated runs: leave it out").into());
    }
    let records = Records { logs: Some(logs), ..Records::default() };
    checked(scenario, || run::run(scenario, seed, records, Pace::Jumps(NoKernel)))
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

    fn run_in_kernel(&self, _: &Scenario, _: u64) -> Result<RunOutcome, SocketsError> {
        Err(SocketsError::NotPermitted("the laboratory boots no kernel".into()))
    }
}

fn words_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("it panicked without a message").to_owned()
}
