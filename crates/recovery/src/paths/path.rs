//! One path: its round-trip time, its window, whether it works, and what it lets leave now.

use std::collections::VecDeque;
use std::time::Duration;

use rexmit_core::Instant;

use super::queue::QueueSigns;
use super::reach::Reach;
use crate::rtt::T3;
use crate::{CongestionWindow, PathCounters, RecoveryConfig, RtoConfig, RtoTimer};

/// Expiries of T3-rtx that are remembered, at most.
const MAX_TIMEOUTS: usize = 64;

/// A path from this host to an address of the peer.
#[derive(Debug)]
pub struct Path {
    pub(crate) timer: RtoTimer,
    pub(crate) window: CongestionWindow,
    pub(crate) t3: T3,
    pub(crate) reach: Reach,
    pub(crate) counters: PathCounters,
    pub(crate) gate: Gate,
    /// Packets sent before give no RTT sample.
    samples_from: Instant,
    /// What shows a queue, once a thin stream was sent that backs off by queueing delay.
    pub(crate) queue: Option<Box<QueueSigns>>,
    /// State needed only with several paths.
    pub(crate) beside: Option<Box<BesideOthers>>,
}

/// Allowance of a path beyond or short of its window.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gate {
    /// One packet of retransmissions may be sent whatever the window says (RFC 9260 §6.3.3 E3, §7.2.4
    /// rule 3), while there is anything to retransmit.
    pub(crate) may_retransmit_now: bool,
    /// Only one packet may be in flight until something is acknowledged (RFC 9260 §7.2.1).
    pub(crate) is_single_packet: bool,
    /// Data packets that may still be sent at this opportunity (Max.Burst).
    pub(crate) burst_left: u32,
}

/// State of a path needed only with several paths.
#[derive(Debug, Default)]
pub(crate) struct BesideOthers {
    /// CUC: the earliest outstanding unit that was sent once, over this path; as of the last
    /// acknowledgement.
    pub(crate) earliest_first_sent: u64,
    /// The latest expiries of T3-rtx, if the destination of retransmissions depends on them.
    timeouts: VecDeque<Instant>,
}

/// The time after `now`: a packet sent at `now` is before.
fn after(now: Instant) -> Instant {
    now + Duration::from_nanos(1)
}

impl Path {
    pub(crate) fn new(config: &RecoveryConfig, packet: u32, reach: Reach) -> Self {
        let mut path = Self {
            timer: RtoTimer::new(&config.rto),
            window: CongestionWindow::new(config, packet),
            t3: T3::default(),
            reach,
            counters: PathCounters::default(),
            gate: Gate::default(),
            samples_from: Instant::ZERO,
            queue: None,
            beside: None,
        };
        path.renew_burst(config);
        path
    }

    /// The timeout, with the round-trip time behind it.
    #[must_use]
    pub const fn timer(&self) -> &RtoTimer {
        &self.timer
    }

    /// The congestion window.
    #[must_use]
    pub const fn window(&self) -> &CongestionWindow {
        &self.window
    }

    /// Whether it works.
    #[must_use]
    pub const fn reach(&self) -> Reach {
        self.reach
    }

    /// The counters.
    #[must_use]
    pub const fn counters(&self) -> PathCounters {
        self.counters
    }

    /// The path leads another way from now on, of which nothing is known. What waits for it stays.
    pub(crate) fn renew(&mut self, now: Instant, config: &RecoveryConfig, packet: u32) {
        self.timer = RtoTimer::new(&config.rto);
        self.window = CongestionWindow::new(config, packet);
        self.queue = None;
        self.gate.is_single_packet = false;
        // Earlier data took another way and makes no sample.
        self.samples_from = after(now);
        self.t3.forget_expiries();
        self.renew_burst(config);
    }

    pub(crate) fn renew_burst(&mut self, config: &RecoveryConfig) {
        self.gate.burst_left = config.max_burst.map_or(u32::MAX, |packets| packets.get().into());
    }

    /// Whether what was sent at `sent_at` may be a round-trip sample: once per round trip
    /// (RFC 9260 §6.3.1 C4), and only if nothing was retransmitted since (C5).
    pub(crate) fn may_sample(&self, sent_at: Instant) -> bool {
        sent_at >= self.samples_from
    }

    /// A round trip was measured. `estimate`: SRTT and RTTVAR, if this sample starts the estimate anew.
    pub(crate) fn on_sample(
        &mut self,
        now: Instant,
        rtt: Duration,
        estimate: Option<(Duration, Duration)>,
        config: &RtoConfig,
    ) {
        match estimate {
            Some(estimate) => self.timer.restart(rtt, estimate, config),
            None => self.timer.on_sample(rtt, config),
        }
        self.samples_from = self.samples_from.max(now);
    }

    /// A packet with something retransmitted is sent.
    pub(crate) fn on_retransmission(&mut self, now: Instant) {
        self.samples_from = after(now);
    }

    /// T3-rtx expired `at`, and the destination of retransmissions depends on that.
    pub(crate) fn remember_timeout(&mut self, at: Instant) {
        let Some(beside) = &mut self.beside else { return };
        if beside.timeouts.len() == MAX_TIMEOUTS {
            beside.timeouts.pop_front();
        }
        beside.timeouts.push_back(at);
    }

    /// The remembered expiries of T3-rtx, latest first.
    pub(crate) fn timeouts(&self) -> impl Iterator<Item = Instant> + Clone + '_ {
        self.beside.iter().flat_map(|beside| beside.timeouts.iter().rev().copied())
    }
}
