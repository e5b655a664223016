//! What the sender keeps for each path.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use rexmit_core::Instant;

use super::t3::T3;
use crate::{CongestionWindow, PathCounters, Reach, RecoveryConfig, RtoTimer};

#[derive(Debug)]
pub(super) struct Path {
    pub(super) timer: RtoTimer,
    pub(super) window: CongestionWindow,
    /// When T3-rtx expires, if it runs.
    pub(super) t3: Option<T3>,
    /// When Early Fast Retransmit looks at what is in flight; [`Instant::FAR_FUTURE`] if it does not.
    pub(super) early: Instant,
    /// Whether it works.
    pub(super) reach: Reach,
    /// Units judged lost that wait to be sent again over this path.
    pub(super) lost: BTreeSet<u64>,
    /// Units in flight over this path, and those that wait to be sent again over it.
    pub(super) outstanding: u64,
    /// No unit below this one is outstanding on this path.
    pub(super) earliest: u64,
    /// The earliest unit that left once, over this path, and is outstanding; as of the last
    /// acknowledgement, and only with CUC.
    pub(super) earliest_first_sent: u64,
    /// The highest unit outstanding when a fast recovery of this path alone began (SFR).
    pub(super) recovery_exit: Option<u64>,
    /// One packet of retransmissions may leave whatever the window says.
    pub(super) may_resend_now: bool,
    /// Only one packet may be in flight until something is acknowledged.
    pub(super) is_after_timeout: bool,
    /// Data packets that may still leave at this opportunity.
    pub(super) burst_left: u32,
    pub(super) last_sample: Option<Instant>,
    pub(super) last_retransmission: Option<Instant>,
    /// The earliest unit outstanding when T3-rtx last expired over a loss.
    pub(super) timed_out: Option<u64>,
    /// Expiries over that unit which did not double the timeout.
    pub(super) linear_timeouts: u8,
    pub(super) counters: PathCounters,
    /// The latest expiries of T3-rtx, if the destination of retransmissions depends on them.
    pub(super) timeouts: VecDeque<Instant>,
    /// What the acknowledgement being processed says of this path.
    pub(super) ack: PathAck,
}

/// Gathered while one acknowledgement is processed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PathAck {
    pub(super) flight_before: u64,
    pub(super) bytes: u64,
    /// Bytes that the cumulative point passed.
    pub(super) cumulative_bytes: u64,
    pub(super) has_acked_earliest: bool,
    /// The pseudo-cumulative point of this path has advanced (CUC).
    pub(super) has_pseudo_advanced: bool,
    /// The highest unit newly acknowledged that was sent over this path.
    pub(super) highest_newly_acked: Option<u64>,
    /// When the newest unit that makes an RTT sample was sent.
    pub(super) sample_sent_at: Option<Instant>,
}

impl Path {
    pub(super) fn new(config: &RecoveryConfig, pmdcs: u32, reach: Reach) -> Self {
        let mut path = Self {
            timer: RtoTimer::new(&config.rto),
            window: CongestionWindow::new(config, pmdcs),
            t3: None,
            early: Instant::FAR_FUTURE,
            reach,
            lost: BTreeSet::new(),
            outstanding: 0,
            earliest: 0,
            earliest_first_sent: 0,
            recovery_exit: None,
            may_resend_now: false,
            is_after_timeout: false,
            burst_left: 0,
            last_sample: None,
            last_retransmission: None,
            timed_out: None,
            linear_timeouts: 0,
            counters: PathCounters::default(),
            timeouts: VecDeque::new(),
            ack: PathAck::default(),
        };
        path.renew_burst(config);
        path
    }

    pub(super) fn renew_burst(&mut self, config: &RecoveryConfig) {
        self.burst_left = match config.max_burst {
            0 => u32::MAX,
            packets => u32::from(packets),
        };
    }

    pub(super) fn on_sample(&mut self, now: Instant, rtt: Duration, config: &RecoveryConfig) {
        self.timer.on_sample(rtt, &config.rto);
        self.last_sample = Some(now);
    }

    /// Whether a unit first sent at `sent_at` may be a sample: once per round trip
    /// (RFC 9260 §6.3.1 C4), and only if nothing was retransmitted since (C5).
    pub(super) fn may_sample(&self, sent_at: Instant) -> bool {
        self.last_sample.is_none_or(|last| sent_at >= last)
            && self.last_retransmission.is_none_or(|last| sent_at > last)
    }
}
