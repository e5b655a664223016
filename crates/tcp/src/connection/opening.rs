//! Opening (RFC 9293 §3.5, §3.10.7.3; RFC 6298 §5.7): active, passive and simultaneous.

use std::sync::Arc;

use rexmit_core::trace::TraceEvent;
use rexmit_recovery::RttSource;

use super::context::{Context, Identity, Negotiated};
use super::inbound::Inbound;
use super::owed::Reset;
use super::timestamps::{TimestampState, timestamp_clock};
use super::{Arrival, Connection, Next, State, Timer, wire_len};
use crate::config::ConnectionConfig;
use crate::event::{CloseReason, Event};
use crate::wire::{Flags, Segment};

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
        connection.handshake.begin_passive(false);
        connection.set_state(cx, State::SynReceived);
        connection.learn_syn(cx, syn);
        connection.owed.syn = true;
        connection.traffic.segments_received += 1;
        connection.traffic.bytes_received += wire_len(syn);
        cx.tracer().emit(|| TraceEvent::Arrived { bytes: wire_len(syn) as u32 });
        let ack = connection.out.unwrap_ack(syn.header.acknowledgment);
        let arrival = Arrival::after_syn(syn, connection.inbound.irs, ack);
        connection.on_text(cx, &arrival);
        connection.on_fin(cx, &arrival);
        connection.owed.ack = false;
        connection.timers.stop(Timer::Ack);
        connection
    }

    /// A passive open from a SYN cookie, as if its SYN-ACK had been sent; pass the ACK that returned the
    /// cookie to [`on_segment`](Self::on_segment) afterwards.
    pub(crate) fn from_cookie(
        cx: &mut Context<'_>,
        config: Arc<ConnectionConfig>,
        identity: Identity,
        agreed: Negotiated,
    ) -> Self {
        let mut connection = Self::new(cx, config, identity, State::SynReceived);
        connection.handshake.begin_passive(true);
        connection.set_state(cx, State::SynReceived);
        connection.agree(cx, agreed);
        connection
    }

    /// Stores the options of the peer's SYN.
    fn learn_syn(&mut self, cx: &Context<'_>, syn: &Segment<'_>) {
        let is_v6 = self.identity.remote.is_ipv6();
        let agreed = Negotiated::from_syns(&self.config, &syn.header, is_v6);
        self.agree(cx, agreed);
        self.out.on_syn(self.inbound.irs, u64::from(syn.header.window));
    }

    fn agree(&mut self, cx: &Context<'_>, agreed: Negotiated) {
        let clock = timestamp_clock(cx.now, self.identity.timestamp_offset);
        let first = clock.wrapping_sub(self.handshake.oldest_echo(cx.now));
        self.timestamps = agreed.timestamps.map(|ts| TimestampState::new(cx.now, ts, first));
        self.inbound = Inbound::new(&self.config, &agreed);
        self.out.on_agreed(self.config.mss_over(self.identity.remote.is_ipv6()), &agreed);
        self.handshake.agreed = Some(agreed);
    }

    /// Processes a segment in SYN-SENT (RFC 9293 §3.10.7.3).
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
        let ack = self.out.unwrap_ack(segment.header.acknowledgment);
        let arrival = Arrival::after_syn(segment, self.inbound.irs, ack);
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
        self.inbound.emit_readable(cx, self.state, self.application.is_gone);
    }

    /// Handles a segment in SYN-RECEIVED that has the peer's SYN again: alone, because our SYN-ACK was lost,
    /// or with the ACK of our SYN in a simultaneous open. Returns the rest of the segment; `None` if nothing
    /// is left.
    pub(super) fn take_repeated_syn<'a>(
        &mut self,
        segment: &'a Segment<'a>,
    ) -> Option<Arrival<'a>> {
        if !segment.header.flags.has(Flags::ACK) {
            self.owed.syn = true;
            return None;
        }
        self.owed.ack = true;
        let ack = self.out.unwrap_ack(segment.header.acknowledgment);
        Some(Arrival::after_syn(segment, self.inbound.irs, ack))
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

    /// Establishes the connection, when both SYNs are acknowledged.
    fn establish(&mut self, cx: &mut Context<'_>, arrival: &Arrival<'_>) {
        self.timers.stop(Timer::Syn);
        self.owed.syn = false;
        let by_clock = self.handshake.round_trip(cx.now);
        let clock = timestamp_clock(cx.now, self.identity.timestamp_offset);
        let by_echo =
            || self.timestamps.and_then(|state| state.round_trip_by_echo(clock, arrival.header));
        if let Some(rtt) = by_clock.or_else(by_echo) {
            let path = super::outbound::PATH;
            let source = RttSource::Timestamp;
            self.out.recovery.on_rtt_sample(cx.now, path, rtt, source, &mut cx.tracer());
        }
        self.out.on_established(cx.now, &self.handshake, &mut cx.tracer());
        self.set_state(cx, State::Established);
        cx.emit(Event::Connected {
            incoming: self.handshake.is_passive,
            local: self.identity.local,
            remote: self.identity.remote,
        });
        if let Some(keep_alive) = &self.config.keep_alive {
            self.timers.arm(Timer::KeepAlive, cx.now + keep_alive.idle);
        }
        if self.out.is_finishing() {
            self.set_state(cx, State::FinWait1);
        }
        self.watch_window(cx);
    }

    /// Called when our SYN or SYN-ACK was not answered in time: retransmits it, or ends the connection after
    /// the last attempt.
    pub(super) fn on_syn_timeout(&mut self, cx: &mut Context<'_>) {
        if self.handshake.on_timeout(&self.config) {
            self.owed.syn = true;
        } else {
            let reason = (!self.handshake.is_passive).then_some(CloseReason::ConnectTimedOut);
            self.end(cx, reason, None);
        }
    }
}
