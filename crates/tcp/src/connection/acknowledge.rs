//! Processing of an ACK (RFC 9293 §3.10.7.4, fifth check): it frees sent data, feeds loss recovery, and
//! updates the send window.

use rexmit_core::trace::TraceEvent;
use rexmit_recovery::{Ack, Echo, LossDetection, RttSource};

use super::outbound::{Outbound, PATH};
use super::report::{Duplicates, Reports, blocks_of};
use super::timestamps::{TICK, timestamp_clock};
use super::{Arrival, Connection, Context, Next, State};
use crate::wire::Flags;

impl Connection {
    /// Processes the ACK field of an acceptable segment: the fifth check of RFC 9293 §3.10.7.4.
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
        let has_closed = self.out.update_window(arrival);
        self.traffic.zero_windows.received += u64::from(has_closed);
        self.out.check_probe(cx.now, &mut cx.tracer());
        self.watch_window(cx);
        self.on_fin_acknowledged(cx)
    }

    /// Passes the new part to loss recovery.
    fn take_acknowledgement(&mut self, cx: &mut Context<'_>, arrival: &Arrival<'_>) {
        let has_advanced = arrival.ack > self.out.snd_una;
        let is_duplicate = !has_advanced
            && self.out.counts_as_duplicate(arrival, self.config.recovery.loss_detection);
        if !has_advanced && !is_duplicate && arrival.header.options.sack.as_slice().is_empty() {
            return; // So are most segments with data.
        }
        let reports = self.out.reports(arrival);
        let duplicates = reports
            .duplicate
            .map_or(Duplicates::None, |(left, right)| self.out.duplicates_within(left, right));
        let is_news = has_advanced || is_duplicate || !reports.is_empty();
        if is_news || !matches!(duplicates, Duplicates::None) {
            self.acknowledge(cx, arrival, &reports, is_duplicate, duplicates);
        }
    }

    fn acknowledge(
        &mut self,
        cx: &mut Context<'_>,
        arrival: &Arrival<'_>,
        reports: &Reports,
        is_duplicate: bool,
        duplicates: Duplicates,
    ) {
        let cumulative = self.out.unit_through(arrival.ack);
        let blocks = reports.units();
        let has_news = arrival.ack > self.out.snd_una || !reports.is_empty();
        if has_news {
            let gaps = || blocks.clone().collect();
            cx.tracer().emit(|| TraceEvent::AckReceived { cumulative, gaps: gaps() });
        }
        let clock = timestamp_clock(cx.now, self.identity.timestamp_offset);
        let by_echo =
            self.timestamps.and_then(|state| state.round_trip_by_echo(clock, arrival.header));
        let echo = by_echo.map(|elapsed| Echo { sent_at: cx.now - elapsed, tick: TICK });
        let (has_unexplained_duplicate, duplicates) = match duplicates {
            Duplicates::None => (false, Vec::new()),
            Duplicates::Unexplained => (true, Vec::new()),
            Duplicates::Units(units) => (false, units),
        };
        let ack = Ack {
            has_unexplained_duplicate,
            has_news,
            is_duplicate,
            echo,
            has_new: self
                .out
                .next_len(self.out.nagles(self.config.nagle), self.out.segment_bytes)
                .is_some(),
            ..Ack::new(cumulative, blocks, duplicates)
        };
        let result = self.out.recovery.on_ack(cx.now, ack, &mut cx.tracer(), |_delivered| ());
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
            result.is_ok_and(|outcome| outcome.has_acked_retransmitted && !outcome.has_sampled);
        if needs_echo && let Some(rtt) = by_echo {
            let source = RttSource::Timestamp;
            self.out.recovery.on_rtt_sample(cx.now, PATH, rtt, source, &mut cx.tracer());
        }
        self.out.emit_writable(cx, self.config.send_buffer_bytes);
    }
}

impl Outbound {
    /// The highest unit that ends at or before `ack`. Walks over the units that it acknowledges.
    fn unit_through(&self, ack: u64) -> u64 {
        let mut through = self.recovery.outstanding().cumulative();
        while self
            .recovery
            .outstanding()
            .unit(through + 1)
            .is_some_and(|unit| unit.payload.end() <= ack)
        {
            through += 1;
        }
        through
    }

    /// The reports of the SACK option, mapped onto units.
    fn reports(&self, arrival: &Arrival<'_>) -> Reports {
        let blocks = arrival.header.options.sack.as_slice();
        if blocks.is_empty() || !self.has_reports {
            return Reports::default();
        }
        blocks_of(self, arrival.ack, blocks)
    }

    /// Whether the segment is a duplicate ACK (RFC 5681 §2), of a peer without SACK or for loss recovery that
    /// ignores SACK.
    fn counts_as_duplicate(&self, arrival: &Arrival<'_>, detection: LossDetection) -> bool {
        let window = u64::from(arrival.header.window) << self.shift;
        (!self.has_reports || detection == LossDetection::DuplicateAcks)
            && arrival.payload.is_empty()
            && !arrival.has(Flags::FIN)
            && !arrival.has(Flags::SYN)
            && arrival.ack + window == self.window.end
            && !self.recovery.outstanding().is_empty()
    }

    /// Updates the send window from a segment that is not older than the last one used. A peer that shrinks
    /// its window is tolerated (RFC 9293 §3.8.6). Returns whether the window has closed.
    fn update_window(&mut self, arrival: &Arrival<'_>) -> bool {
        let told_by = (arrival.seq, arrival.ack);
        if told_by < self.window.told_by {
            return false;
        }
        // The window of a SYN is not scaled (RFC 7323 §2.2).
        let shift = if arrival.has(Flags::SYN) { 0 } else { self.shift };
        let window = u64::from(arrival.header.window) << shift;
        let was_open = self.window.end > self.snd_una;
        self.window.told_by = told_by;
        self.window.end = arrival.ack + window;
        self.window.largest = self.window.largest.max(window);
        window == 0 && was_open
    }
}
