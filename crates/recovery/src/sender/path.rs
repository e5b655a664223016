//! What the sender keeps for each path.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use rexmit_core::Instant;

use super::overdue::Watch;
use super::t3::T3;
use crate::loss::adaptive::Evidence;
use crate::loss::rack::Rack;
use crate::queueing::QueueingDelay;
use crate::spurious::events::{Event, Events};
use crate::spurious::f_rto::FRto;
use crate::undo::AfterSpurious;
use crate::{
    CongestionWindow, PathCounters, Reach, RecoveryConfig, RecoveryStatistics, Reordering, RtoTimer,
};

#[derive(Debug)]
pub(super) struct Path {
    pub(super) timer: RtoTimer,
    pub(super) window: CongestionWindow,
    /// When T3-rtx expires, if it runs.
    pub(super) t3: Option<T3>,
    /// When Early Fast Retransmit, or RACK, looks at what is in flight; [`Instant::FAR_FUTURE`] if
    /// neither does.
    pub(super) early: Instant,
    /// What the recovery timer of thin streams keeps, once there is one.
    pub(super) watch: Option<Box<Watch>>,
    /// How much a queue delays, once a thin stream has measured it that yields to queues.
    pub(super) queueing: Option<Box<QueueingDelay>>,
    /// Whether it works.
    pub(super) reach: Reach,
    /// Units judged lost that wait to be sent again over this path.
    pub(super) lost: BTreeSet<u64>,
    /// Units in flight over this path, and those that wait to be sent again over it.
    pub(super) outstanding: u64,
    /// No unit below this one is outstanding on this path.
    pub(super) earliest: u64,
    /// What is kept only where there are several paths.
    pub(super) concurrent: Option<Box<Concurrent>>,
    /// One packet of retransmissions may leave whatever the window says.
    pub(super) may_resend_now: bool,
    /// Only one packet may be in flight until something is acknowledged.
    pub(super) is_after_timeout: bool,
    /// Data packets that may still leave at this opportunity.
    pub(super) burst_left: u32,
    pub(super) last_sample: Option<Instant>,
    pub(super) last_retransmission: Option<Instant>,
    /// The earliest unit outstanding when T3-rtx last expired over a loss; `u64::MAX` before.
    pub(super) timed_out: u64,
    /// Expiries over that unit which did not double the timeout.
    pub(super) linear_timeouts: u8,
    /// Whether what was judged lost was lost, if the profile asks.
    pub(super) scrutiny: Option<Box<Scrutiny>>,
    /// What the acknowledgement being processed says of this path.
    pub(super) ack: PathAck,
}

/// What is kept of a path beside others.
#[derive(Debug, Default)]
pub(super) struct Concurrent {
    pub(super) counters: PathCounters,
    /// User bytes that last left over this path and have not arrived: in flight, or judged lost.
    pub(super) user_bytes: u64,
    /// How many units judged lost last left over this path, whichever they wait for.
    pub(super) awaiting: u64,
    /// The highest unit that the acknowledgement being processed brings of those sent over this path.
    pub(super) highest_newly_acked: Option<u64>,
    /// The earliest unit that left once, over this path, and is outstanding; as of the last
    /// acknowledgement, and only with CUC.
    pub(super) earliest_first_sent: u64,
    /// The highest unit acknowledged that was sent over this path; only with SFR.
    pub(super) highest_acked: Option<u64>,
    /// The highest unit outstanding when a fast recovery of this path alone began (SFR).
    pub(super) recovery_exit: Option<u64>,
    /// The latest expiries of T3-rtx, if the destination of retransmissions depends on them.
    pub(super) timeouts: VecDeque<Instant>,
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
    /// When the newest unit that makes an RTT sample was sent.
    pub(super) sample_sent_at: Option<Instant>,
}

/// What is kept of a path to tell reordering and delay from loss: see [`crate::spurious`].
#[derive(Debug)]
pub(super) struct Scrutiny {
    pub(super) events: Events,
    pub(super) f_rto: FRto,
    /// A spurious timeout of which the timer has not heard.
    pub(super) after_spurious: Option<AfterSpurious>,
    /// What is known of reordering, once there was any, if the threshold follows it.
    pub(super) evidence: Option<Box<Evidence>>,
    pub(super) rack: Option<Box<Rack>>,
    /// The acknowledgement being processed brings a unit that was judged lost, and had left once.
    pub(super) has_acked_original: bool,
}

impl Scrutiny {
    fn of(config: &RecoveryConfig) -> Option<Box<Self>> {
        config.follows_events().then(|| {
            Box::new(Self {
                events: Events::default(),
                f_rto: FRto::Off,
                after_spurious: None,
                evidence: None,
                rack: (config.reordering == Reordering::Rack).then(Box::default),
                has_acked_original: false,
            })
        })
    }

    /// An acknowledgement is about to be processed.
    pub(super) const fn begin_ack(&mut self) {
        self.has_acked_original = false;
    }
}

impl Path {
    pub(super) fn new(config: &RecoveryConfig, pmdcs: u32, reach: Reach) -> Self {
        let mut path = Self {
            timer: RtoTimer::new(&config.rto),
            window: CongestionWindow::new(config, pmdcs),
            t3: None,
            early: Instant::FAR_FUTURE,
            watch: None,
            queueing: None,
            reach,
            lost: BTreeSet::new(),
            outstanding: 0,
            earliest: 0,
            concurrent: None,
            may_resend_now: false,
            is_after_timeout: false,
            burst_left: 0,
            last_sample: None,
            last_retransmission: None,
            timed_out: u64::MAX,
            linear_timeouts: 0,
            scrutiny: Scrutiny::of(config),
            ack: PathAck::default(),
        };
        path.renew_burst(config);
        path
    }

    /// It leads another way from now on: nothing is known of that. What waits for it stays.
    pub(super) fn renew(&mut self, now: Instant, config: &RecoveryConfig, pmdcs: u32) {
        self.timer = RtoTimer::new(&config.rto);
        self.window = CongestionWindow::new(config, pmdcs);
        self.early = Instant::FAR_FUTURE;
        self.queueing = None;
        self.is_after_timeout = false;
        // What left before took another way and makes no sample.
        (self.last_sample, self.last_retransmission) = (None, Some(now));
        (self.timed_out, self.linear_timeouts) = (u64::MAX, 0);
        self.scrutiny = Scrutiny::of(config);
        if let Some(watch) = &mut self.watch {
            watch.renew(now);
        }
        self.renew_burst(config);
    }

    pub(super) fn renew_burst(&mut self, config: &RecoveryConfig) {
        self.burst_left = match config.max_burst {
            0 => u32::MAX,
            packets => u32::from(packets),
        };
    }

    pub(super) fn on_sample(&mut self, now: Instant, rtt: Duration, config: &RecoveryConfig) {
        match self.take_spurious_before(now - rtt) {
            Some(after) => self.timer.restart(rtt, after.restart(rtt, &config.rto), &config.rto),
            None => self.timer.on_sample(rtt, &config.rto),
        }
        self.last_sample = Some(now);
    }

    /// What was counted on this path, of all the `statistics` of the association.
    pub(super) fn counters(&self, statistics: &RecoveryStatistics) -> PathCounters {
        self.concurrent.as_ref().map_or_else(|| PathCounters::of(statistics), |it| it.counters)
    }

    /// Whether anything that last left over this path is judged lost, and waits for any.
    pub(super) fn is_awaiting(&self) -> bool {
        self.concurrent.as_ref().map_or(!self.lost.is_empty(), |known| known.awaiting > 0)
    }

    /// So many user bytes leave over this path.
    #[inline]
    pub(super) fn enter_share(&mut self, user_bytes: u32) {
        if let Some(known) = &mut self.concurrent {
            known.user_bytes += u64::from(user_bytes);
        }
    }

    /// So many user bytes have arrived, are given up, or left over another path.
    #[inline]
    pub(super) fn leave_share(&mut self, user_bytes: u32) {
        if let Some(known) = &mut self.concurrent {
            known.user_bytes -= u64::from(user_bytes);
        }
    }

    /// Where a fast recovery of this path alone ends, if one is on.
    pub(super) fn recovery_exit(&self) -> Option<u64> {
        self.concurrent.as_ref()?.recovery_exit
    }

    pub(super) fn set_recovery_exit(&mut self, exit: Option<u64>) {
        if let Some(concurrent) = &mut self.concurrent {
            concurrent.recovery_exit = exit;
        }
    }

    /// Whether a unit first sent at `sent_at` may be a sample: once per round trip
    /// (RFC 9260 §6.3.1 C4), and only if nothing was retransmitted since (C5).
    pub(super) fn may_sample(&self, sent_at: Instant) -> bool {
        self.last_sample.is_none_or(|last| sent_at >= last)
            && self.last_retransmission.is_none_or(|last| sent_at > last)
    }

    /// The spurious timeout that the sample of what left at `sent_at` is the first after. The packets
    /// may have taken to another way, so what is known of reordering counts less.
    fn take_spurious_before(&mut self, sent_at: Instant) -> Option<AfterSpurious> {
        let scrutiny = self.scrutiny.as_mut()?;
        let after = scrutiny.after_spurious.take_if(|after| sent_at >= after.since)?;
        scrutiny.evidence.iter_mut().for_each(|evidence| evidence.age());
        Some(after)
    }

    pub(super) fn events(&mut self) -> Option<&mut Events> {
        self.scrutiny.as_mut().map(|scrutiny| &mut scrutiny.events)
    }

    /// The latest event, if it is not decided.
    pub(super) fn open_event(&self) -> Option<&Event> {
        self.scrutiny.as_ref()?.events.latest()
    }

    /// Duplicate reports can no longer prove what is open.
    pub(super) fn doubt(&mut self) {
        self.events().into_iter().for_each(Events::doubt);
    }

    pub(super) fn f_rto(&self) -> FRto {
        self.scrutiny.as_ref().map_or(FRto::Off, |scrutiny| scrutiny.f_rto)
    }

    pub(super) fn set_f_rto(&mut self, f_rto: FRto) {
        if let Some(scrutiny) = &mut self.scrutiny {
            scrutiny.f_rto = f_rto;
        }
    }

    pub(super) fn evidence(&self) -> Option<&Evidence> {
        self.scrutiny.as_ref()?.evidence.as_deref()
    }

    pub(super) fn evidence_mut(&mut self) -> Option<&mut Evidence> {
        self.scrutiny.as_mut()?.evidence.as_deref_mut()
    }

    pub(super) fn rack(&self) -> Option<&Rack> {
        self.scrutiny.as_ref()?.rack.as_deref()
    }

    pub(super) fn rack_mut(&mut self) -> Option<&mut Rack> {
        self.scrutiny.as_mut()?.rack.as_deref_mut()
    }
}
