//! Opening (RFC 9293 §3.5, §3.10.7.3; RFC 6298 §5.7): active, passive and simultaneous.

use std::sync::Arc;
use std::time::Duration;

use rexmit_core::Instant;

use super::context::{Context, Identity, Negotiated};
use super::inbound::Inbound;
use super::timestamps::{TimestampState, timestamp_clock};
use super::transmit::Reset;
use super::{Arrival, Connection, Next, State, Timer};
use crate::config::ConnectionConfig;
use crate::event::{CloseReason, Event};
use crate::wire::{Flags, Segment};

/// How old an echo in the acknowledgement of a cookie may be.
const COOKIE_ECHO_MS: u32 = 64_000;

/// Our SYN, or SYN-ACK, until it is acknowledged.
#[derive(Debug)]
pub(super) struct Handshake {
    sent_at: Instant,
    rto: Duration,
    /// How often it was sent again.
    repeats: u32,
    /// This connection did not send it: a cookie came back.
    is_cookie: bool,
    /// It left again, for a SYN that came again: which copy is acknowledged is not known (Karn).
    is_ambiguous: bool,
}

impl Handshake {
    pub(super) fn new(now: Instant, config: &ConnectionConfig) -> Self {
        Self {
            sent_at: now,
            rto: config.recovery.rto.initial,
            repeats: 0,
            is_cookie: false,
            is_ambiguous: false,
        }
    }
}

impl Connection {
    /// An active open: SYN-SENT (RFC 9293 §3.10.1).
    pub(crate) fn connect(
        cx: &mut Context<'_>,
        config: Arc<ConnectionConfig>,
        identity: Identity,
    ) -> Self {
        let mut connection = Self::new(cx, config, identity, State::SynSent);
        connection.set_state(cx, State::SynSent);
        connection.owed.syn = true;
        connection
    }

    /// A passive open meets a SYN: SYN-RECEIVED (RFC 9293 §3.10.7.2).
    pub(crate) fn accept(
        cx: &mut Context<'_>,
        config: Arc<ConnectionConfig>,
        identity: Identity,
        syn: &Segment<'_>,
    ) -> Self {
        let mut connection = Self::new(cx, config, identity, State::SynReceived);
        connection.is_passive = true;
        connection.set_state(cx, State::SynReceived);
        connection.learn_syn(cx, syn);
        connection.owed.syn = true;
        connection.traffic.segments_received += 1;
        connection.traffic.bytes_received += super::wire_len(syn);
        let arrival = connection.after_syn(syn);
        connection.on_text(cx, &arrival);
        connection.on_fin(cx, &arrival);
        connection.owed.ack = false;
        connection.timers.stop(Timer::Ack);
        connection
    }

    /// A passive open as if its SYN-ACK had left; the acknowledgement that bears the cookie is to
    /// follow through [`on_segment`](Self::on_segment).
    pub(crate) fn from_cookie(
        cx: &mut Context<'_>,
        config: Arc<ConnectionConfig>,
        identity: Identity,
        agreed: Negotiated,
    ) -> Self {
        let mut connection = Self::new(cx, config, identity, State::SynReceived);
        connection.is_passive = true;
        connection.handshake.is_cookie = true;
        connection.set_state(cx, State::SynReceived);
        connection.agree(cx, agreed);
        connection
    }

    /// What the peer's SYN says.
    fn learn_syn(&mut self, cx: &Context<'_>, syn: &Segment<'_>) {
        let is_v6 = self.identity.remote.is_ipv6();
        let agreed = Negotiated::from_syns(&self.config, &syn.header, is_v6);
        self.agree(cx, agreed);
        self.out.on_syn(self.inbound.irs, u64::from(syn.header.window));
    }

    fn agree(&mut self, cx: &Context<'_>, agreed: Negotiated) {
        let clock = timestamp_clock(cx.now, self.identity.timestamp_offset);
        let age = if self.handshake.is_cookie {
            COOKIE_ECHO_MS
        } else {
            (cx.now - self.handshake.sent_at).as_millis() as u32
        };
        let first = clock.wrapping_sub(age);
        self.timestamps = agreed.timestamps.map(|ts| TimestampState::new(cx.now, ts, first));
        self.inbound = Inbound::new(&self.config, &agreed);
        self.out.on_agreed(self.config.mss_over(self.identity.remote.is_ipv6()), &agreed);
        self.agreed = Some(agreed);
    }

    /// The rest of a segment behind its SYN.
    fn after_syn<'a>(&self, syn: &'a Segment<'a>) -> Arrival<'a> {
        Arrival {
            header: &syn.header,
            payload: syn.payload,
            seq: self.inbound.irs + 1,
            ack: self.out.unwrap_ack(syn.header.acknowledgment),
        }
    }

    /// RFC 9293 §3.10.7.3.
    pub(super) fn on_segment_in_syn_sent(&mut self, cx: &mut Context<'_>, segment: &Segment<'_>) {
        let flags = segment.header.flags;
        let ack = segment.header.acknowledgment;
        let is_ours = flags.has(Flags::ACK) && ack == self.identity.iss.wrapping_add(1);
        if flags.has(Flags::ACK) && !is_ours {
            if !flags.has(Flags::RST) {
                self.owed.reset = Some(Reset::At(ack));
            }
            return;
        }
        if flags.has(Flags::RST) {
            if is_ours {
                self.end(cx, Some(CloseReason::Refused), None);
            }
            return;
        }
        if !flags.has(Flags::SYN) {
            return;
        }
        self.learn_syn(cx, segment);
        let arrival = self.after_syn(segment);
        if is_ours {
            self.out.snd_una = arrival.ack;
            self.owed.ack = true;
            self.establish(cx, &arrival);
        } else {
            self.set_state(cx, State::SynReceived);
            self.owed.syn = true;
        }
        self.on_text(cx, &arrival);
        self.on_fin(cx, &arrival);
        self.tell_readable(cx);
    }

    /// In SYN-RECEIVED the peer's SYN comes again, alone because our SYN-ACK was lost, or with the
    /// acknowledgement of ours in a simultaneous open. `None` if nothing is left to look at.
    pub(super) fn take_repeated_syn<'a>(
        &mut self,
        segment: &'a Segment<'a>,
    ) -> Option<Arrival<'a>> {
        if !segment.header.flags.has(Flags::ACK) {
            self.owed.syn = true;
            return None;
        }
        self.owed.ack = true;
        Some(self.after_syn(segment))
    }

    /// The acknowledgement of our SYN in SYN-RECEIVED.
    pub(super) fn on_ack_of_syn(&mut self, cx: &mut Context<'_>, arrival: &Arrival<'_>) -> Next {
        if arrival.ack <= self.out.snd_una || arrival.ack > self.out.snd_nxt {
            self.owed.reset = Some(Reset::At(arrival.header.acknowledgment));
            return Next::Stop;
        }
        self.out.snd_una = self.out.first_sequence();
        self.establish(cx, arrival);
        Next::Continue
    }

    /// Both SYNs are acknowledged.
    fn establish(&mut self, cx: &mut Context<'_>, arrival: &Arrival<'_>) {
        self.timers.stop(Timer::Syn);
        self.owed.syn = false;
        let was_repeated = self.handshake.repeats > 0;
        let Handshake { sent_at, is_cookie, is_ambiguous, .. } = self.handshake;
        let is_measured = !was_repeated && !is_cookie && !is_ambiguous;
        let by_clock = is_measured.then(|| cx.now - sent_at);
        if let Some(rtt) = by_clock.or_else(|| self.round_trip_by_echo(cx, arrival)) {
            let path = super::outbound::PATH;
            self.out.recovery.on_setup_sample(cx.now, path, rtt, &mut cx.tracer());
        }
        self.out.on_established(was_repeated);
        self.set_state(cx, State::Established);
        cx.emit(Event::Connected {
            incoming: self.is_passive,
            local: self.identity.local,
            remote: self.identity.remote,
        });
        self.start_keep_alive(cx.now);
        if self.out.is_finishing() {
            self.set_state(cx, State::FinWait1);
        }
        self.watch_window(cx);
    }

    /// Our SYN was not answered (RFC 6298 §5.5, §5.6).
    pub(super) fn on_syn_timeout(&mut self, cx: &mut Context<'_>) {
        self.handshake.repeats += 1;
        if self.handshake.repeats > self.config.max_syn_retransmits {
            let reason = (!self.is_passive).then_some(CloseReason::ConnectTimedOut);
            return self.end(cx, reason, None);
        }
        self.handshake.rto = (self.handshake.rto * 2).min(self.config.recovery.rto.max);
        self.owed.syn = true;
    }

    /// Our SYN or SYN-ACK leaves. One that answers the peer's repeated SYN does not put off the
    /// timer.
    pub(super) fn on_syn_sent(&mut self, now: Instant) {
        if !self.timers.is_armed(Timer::Syn) {
            if self.handshake.repeats == 0 {
                self.handshake.sent_at = now;
            }
            self.timers.arm(Timer::Syn, now + self.handshake.rto);
        } else {
            self.handshake.is_ambiguous = true;
        }
    }
}
