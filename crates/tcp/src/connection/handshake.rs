//! Our SYN, or SYN-ACK, until it is acknowledged (RFC 9293 §3.5; RFC 6298 §5.5 to §5.7).

use std::time::Duration;

use rexmit_core::{Instant, TimerTable};

use super::context::Negotiated;
use super::timers::{TIMERS, Timer};
use crate::config::ConnectionConfig;

/// The maximum age, in milliseconds, of the timestamp echo in the ACK of a SYN cookie.
const COOKIE_ECHO_MS: u32 = 64_000;

/// The state of our SYN, or SYN-ACK, until it is acknowledged.
#[derive(Debug)]
pub(super) struct Handshake {
    /// Whether the connection began with the peer's SYN.
    pub(super) is_passive: bool,
    /// The options negotiated by the SYNs, once the peer's has arrived.
    pub(super) agreed: Option<Negotiated>,
    sent_at: Instant,
    /// When the SYN was last sent, in microseconds after its first transmission.
    last_sent_us: u32,
    /// The number of retransmissions.
    repeats: u16,
    sending: Sending,
}

/// How our SYN, or SYN-ACK, was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sending {
    /// Once, or again when its timer expired.
    ByTimer,
    /// Again for a retransmitted SYN, so that its RTT sample is ambiguous (Karn).
    ForSyn,
    /// As a SYN cookie, which was not sent by this connection.
    AsCookie,
}

/// The number of SYN retransmissions within RTO.Initial, usually 1 s. With a probe timer the first timeout is a quarter
/// of RTO.Initial, so that three SYNs are sent within it, as SCTP does with INIT.
fn early_retransmits(config: &ConnectionConfig) -> u32 {
    if config.recovery.thin.probe_timer.is_some() { 2 } else { 0 }
}

impl Handshake {
    pub(super) const fn new(now: Instant) -> Self {
        Self {
            is_passive: false,
            agreed: None,
            sent_at: now,
            last_sent_us: 0,
            repeats: 0,
            sending: Sending::ByTimer,
        }
    }

    /// Marks the connection as opened by the peer's SYN; `is_cookie` if our SYN-ACK was a SYN cookie.
    pub(super) const fn begin_passive(&mut self, is_cookie: bool) {
        self.is_passive = true;
        if is_cookie {
            self.sending = Sending::AsCookie;
        }
    }

    /// The maximum age, in milliseconds, of a timestamp echo that can arrive now.
    pub(super) fn oldest_echo(&self, now: Instant) -> u32 {
        if self.is_cookie() { COOKIE_ECHO_MS } else { (now - self.sent_at).as_millis() as u32 }
    }

    /// Called when the SYN or SYN-ACK is sent. An answer to a retransmitted SYN does not restart the timer.
    pub(super) fn on_sent(
        &mut self,
        now: Instant,
        config: &ConnectionConfig,
        timers: &mut TimerTable<TIMERS>,
    ) {
        if !timers.is_armed(Timer::Syn) {
            if self.repeats == 0 {
                self.sent_at = now;
            }
            timers.arm(Timer::Syn, now + self.rto(config));
        } else if !self.is_cookie() {
            self.sending = Sending::ForSyn;
        }
        self.last_sent_us = u32::try_from((now - self.sent_at).as_micros()).unwrap_or(u32::MAX);
    }

    fn is_cookie(&self) -> bool {
        self.sending == Sending::AsCookie
    }

    /// Called when the timer expires (RFC 6298 §5.5, §5.6). Returns whether the SYN or SYN-ACK is to be
    /// retransmitted.
    pub(super) fn on_timeout(&mut self, config: &ConnectionConfig) -> bool {
        self.repeats = self.repeats.saturating_add(1);
        u32::from(self.repeats) <= config.max_syn_retransmits + early_retransmits(config)
    }

    fn rto(&self, config: &ConnectionConfig) -> Duration {
        let rto = &config.recovery.rto;
        let first = rto.initial / (1 << early_retransmits(config));
        match self.repeats {
            0 => first,
            repeats => first.saturating_mul(1 << u32::from(repeats).min(31)).min(rto.max),
        }
    }

    /// Whether the SYN was retransmitted because its timer expired.
    pub(super) const fn was_repeated(&self) -> bool {
        self.repeats > 0
    }

    /// The time from the latest transmission to an answer that arrives now; `None` for a SYN cookie.
    pub(super) fn answered_after(&self, now: Instant) -> Option<Duration> {
        let last = self.sent_at + Duration::from_micros(self.last_sent_us.into());
        (!self.is_cookie()).then(|| now - last)
    }

    /// The round-trip time of an acknowledgement that arrives now, if it was sent once.
    pub(super) fn round_trip(&self, now: Instant) -> Option<Duration> {
        let is_measured = !self.was_repeated() && self.sending == Sending::ByTimer;
        is_measured.then(|| now - self.sent_at)
    }
}
