//! What an acknowledgement does (RFC 9293 §3.10.7.4, fifth check): what it frees, what loss
//! recovery makes of it, and the window it tells.

use std::time::Duration;

use rexmit_core::trace::TraceEvent;
use rexmit_recovery::LossDetection;

use super::outbound::{Outbound, PATH};
use super::report::{Reports, blocks_of};
use super::timestamps::{TICK, timestamp_clock};
use super::{Arrival, Connection, Context, Next, State};
use crate::wire::Flags;

impl Connection {
    /// The rest of the fifth check.
    pub(super) fn on_ack(&mut self, cx: &mut Context<'_>, arrival: &Arrival<'_>) -> Next {
        if self.state == State::SynReceived && self.on_ack_of_syn(cx, arrival) == Next::Stop {
            return Next::Stop;
        }
        // In TIME-WAIT nothing is outstanding (and the last window does not matter).
        if self.state == State::TimeWait {
            return Next::Continue;
        }
        if arrival.ack < self.out.snd_una {
            return Next::Continue;
        }
        self.take_acknowledgement(cx, arrival);
        self.update_send_window(arrival);
        self.check_probe(cx);
        self.watch_window(cx);
        self.on_fin_acknowledged(cx)
    }

    /// Hands to loss recovery what is new in it.
    fn take_acknowledgement(&mut self, cx: &mut Context<'_>, arrival: &Arrival<'_>) {
        let has_advanced = arrival.ack > self.out.snd_una;
        let reports = self.reports(arrival);
        // Before the rest: a copy that was not needed has repaired no loss.
        if let Some((left, right)) = reports.duplicate {
            self.on_duplicate_reported(cx, left, right);
        }
        if has_advanced || !reports.is_empty() {
            self.acknowledge(cx, arrival, &reports);
        }
        if !has_advanced && self.counts_as_duplicate(arrival) {
            self.out.recovery.on_duplicate_ack(&mut cx.tracer());
        }
    }

    /// What its SACK option says, mapped onto units.
    fn reports(&self, arrival: &Arrival<'_>) -> Reports {
        let blocks = arrival.header.options.sack.as_slice();
        if blocks.is_empty() || !self.out.has_reports {
            return Reports::default();
        }
        blocks_of(&self.out, arrival.ack, blocks)
    }

    fn acknowledge(&mut self, cx: &mut Context<'_>, arrival: &Arrival<'_>, reports: &Reports) {
        let cumulative = self.out.unit_through(arrival.ack);
        let blocks = reports.units();
        let gaps = || blocks.clone().collect();
        cx.tracer().emit(|| TraceEvent::AckReceived { cumulative, gaps: gaps() });
        self.tell_beside(cx, arrival);
        let acknowledged = (cumulative, blocks.clone());
        let result =
            self.out.recovery.on_ack(cx.now, acknowledged, &mut cx.tracer(), |_delivered| ());
        if result.is_ok_and(|outcome| outcome.has_reneged) {
            self.out.on_reneged();
        }
        if arrival.ack == self.out.snd_una {
            return;
        }
        self.out.buffer.acknowledge_to(arrival.ack);
        self.out.snd_una = arrival.ack;
        self.out.unanswered = 0;
        let needs_echo =
            result.is_ok_and(|outcome| outcome.has_acked_resent && !outcome.has_sampled);
        if needs_echo && let Some(rtt) = self.round_trip_by_echo(cx, arrival) {
            self.out.recovery.on_echo_sample(cx.now, PATH, rtt, &mut cx.tracer());
        }
        self.tell_writable(cx);
    }

    /// What the detectors of spurious events ask for.
    fn tell_beside(&mut self, cx: &Context<'_>, arrival: &Arrival<'_>) {
        if self.out.recovery.asks_for_new() {
            let room = self.out.segment_bytes;
            let has_new = self.out.next_len(self.nagles(), room).is_some();
            self.out.recovery.tell_new(has_new);
        }
        if self.out.recovery.asks_for_echo()
            && let Some(elapsed) = self.round_trip_by_echo(cx, arrival)
        {
            self.out.recovery.on_echo(cx.now - elapsed, TICK);
        }
    }

    /// RFC 7323 §4: for what was sent again the clock alone cannot tell. An echo of what a delayed
    /// acknowledgement covered is that of the earliest segment, so that it includes the delay.
    pub(super) fn round_trip_by_echo(
        &self,
        cx: &Context<'_>,
        arrival: &Arrival<'_>,
    ) -> Option<Duration> {
        let echo_reply = arrival.header.options.timestamps?.echo_reply;
        let clock = timestamp_clock(cx.now, self.identity.timestamp_offset);
        self.timestamps?.round_trip(clock, echo_reply)
    }

    /// RFC 5681 §2, for a peer that does not tell what it holds, or loss recovery that is not to
    /// know.
    fn counts_as_duplicate(&self, arrival: &Arrival<'_>) -> bool {
        let detection = self.config.recovery.loss_detection;
        let window = u64::from(arrival.header.window) << self.out.shift;
        (!self.out.has_reports || detection == LossDetection::DuplicateAcks)
            && arrival.payload.is_empty()
            && !arrival.has(Flags::FIN)
            && !arrival.has(Flags::SYN)
            && arrival.ack + window == self.out.window_end
            && !self.out.recovery.is_empty()
    }

    /// The window of a segment that is not older than the one that told it last. A peer that takes
    /// back what it offered is borne (RFC 9293 §3.8.6).
    fn update_send_window(&mut self, arrival: &Arrival<'_>) {
        let out = &mut self.out;
        let told_by = (arrival.seq, arrival.ack);
        if told_by < out.window_told_by {
            return;
        }
        // The window of a SYN is not scaled (RFC 7323 §2.2).
        let shift = if arrival.has(Flags::SYN) { 0 } else { out.shift };
        let window = u64::from(arrival.header.window) << shift;
        let was_open = out.window_end > out.snd_una;
        self.traffic.zero_windows_received += u64::from(window == 0 && was_open);
        out.window_told_by = told_by;
        out.window_end = arrival.ack + window;
        out.max_window = out.max_window.max(window);
    }
}

impl Outbound {
    /// The highest unit that ends at or before `ack`. Walks over the units that it acknowledges.
    fn unit_through(&self, ack: u64) -> u64 {
        let mut through = self.recovery.cumulative();
        while self.recovery.unit(through + 1).is_some_and(|unit| unit.payload.end() <= ack) {
            through += 1;
        }
        through
    }
}
