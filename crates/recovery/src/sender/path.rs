//! What the sender keeps for each path.

use std::time::Duration;

use rexmit_core::Instant;

use super::t3::T3;
use crate::loss::adaptive::Evidence;
use crate::loss::rack::Rack;
use crate::spurious::events::{Event, Events};
use crate::spurious::f_rto::FRto;
use crate::undo::AfterSpurious;
use crate::{CongestionWindow, RecoveryConfig, Reordering, RtoTimer};

#[derive(Debug)]
pub(super) struct Path {
    pub(super) timer: RtoTimer,
    pub(super) window: CongestionWindow,
    /// When T3-rtx expires, if it runs.
    pub(super) t3: Option<T3>,
    /// When Early Fast Retransmit, or RACK, looks at what is in flight; [`Instant::FAR_FUTURE`] if
    /// neither does.
    pub(super) early: Instant,
    /// Units sent last over this path and neither acknowledged nor given up.
    pub(super) outstanding: u64,
    /// No unit below this one is outstanding on this path.
    pub(super) earliest: u64,
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
    /// Whether what was judged lost was lost, if the profile asks.
    pub(super) scrutiny: Option<Box<Scrutiny>>,
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
    pub(super) fn new(config: &RecoveryConfig, pmdcs: u32) -> Self {
        let mut path = Self {
            timer: RtoTimer::new(&config.rto),
            window: CongestionWindow::new(config, pmdcs),
            t3: None,
            early: Instant::FAR_FUTURE,
            outstanding: 0,
            earliest: 0,
            may_resend_now: false,
            is_after_timeout: false,
            burst_left: 0,
            last_sample: None,
            last_retransmission: None,
            timed_out: None,
            linear_timeouts: 0,
            scrutiny: Scrutiny::of(config),
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
        match self.take_spurious_before(now - rtt) {
            Some(after) => self.timer.restart(rtt, after.restart(rtt, &config.rto), &config.rto),
            None => self.timer.on_sample(rtt, &config.rto),
        }
        self.last_sample = Some(now);
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
