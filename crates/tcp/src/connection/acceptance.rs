//! Which segments are looked at (RFC 9293 §3.10.7.4, first to fourth check and the beginning of the
//! fifth; RFC 5961; RFC 7323 §5.3).

use std::time::Duration;

use rexmit_core::serial::unwrap_u32;

use super::{Arrival, Connection, Context, State};
use crate::event::CloseReason;
use crate::wire::{Flags, Segment};

/// A segment out of the window without data or FIN is answered at most this often: two ends that
/// disagree would otherwise acknowledge each other for ever, and a SYN costs nobody anything.
const MIN_BETWEEN_ANSWERS: Duration = Duration::from_millis(100);

/// Table 6 of RFC 9293 §3.10.7.4: a segment of `len` at `seq` against the window from `rcv_nxt` on.
const fn is_in_window(seq: u64, len: u64, rcv_nxt: u64, window: u64) -> bool {
    let edge = rcv_nxt + window;
    match (len, window) {
        (0, 0) => seq == rcv_nxt,
        (0, _) => rcv_nxt <= seq && seq < edge,
        (_, 0) => false,
        (_, _) => {
            let last = seq + len - 1;
            (rcv_nxt <= seq && seq < edge) || (rcv_nxt <= last && last < edge)
        }
    }
}

/// What a table entry refuses though its acknowledgement, RST or urgent pointer is good: what meets
/// a closed window, and an empty segment behind data that fill the window.
const fn may_look_at_control(seq: u64, len: u64, rcv_nxt: u64, window: u64) -> bool {
    (window == 0 && seq == rcv_nxt) || (len == 0 && seq == rcv_nxt + window)
}

impl Connection {
    /// The segment with its numbers placed next to ours, if it passes every check. What does not is
    /// counted, and answered as the check says.
    pub(super) fn examine<'a>(
        &mut self,
        cx: &mut Context<'_>,
        segment: &'a Segment<'a>,
    ) -> Option<Arrival<'a>> {
        let header = &segment.header;
        let arrival = Arrival {
            header,
            payload: segment.payload,
            seq: unwrap_u32(self.inbound.rcv_nxt(), header.sequence),
            ack: self.out.unwrap_ack(header.acknowledgment),
        };
        if !self.check_timestamp(cx, &arrival) {
            return None;
        }
        let is_repeated_syn = self.state == State::SynReceived
            && arrival.has(Flags::SYN)
            && !arrival.has(Flags::RST)
            && arrival.seq == self.inbound.irs;
        let arrival = if is_repeated_syn {
            self.take_repeated_syn(segment)?
        } else {
            let is_good = self.check_sequence(cx, &arrival)
                && self.check_reset(cx, &arrival)
                && self.check_syn(cx, &arrival);
            is_good.then_some(arrival)?
        };
        self.note_timestamp(cx, &arrival);
        self.check_ack(cx, &arrival).then_some(arrival)
    }

    /// PAWS (RFC 7323 §5.3 R1), and a segment without the timestamps that were agreed on is
    /// dropped silently (§3.2). A RST is exempt from both.
    fn check_timestamp(&mut self, cx: &mut Context<'_>, arrival: &Arrival<'_>) -> bool {
        let Some(state) = &self.timestamps else { return true };
        if arrival.has(Flags::RST) {
            return true;
        }
        let Some(timestamps) = arrival.header.options.timestamps else {
            self.traffic.missing_timestamps += 1;
            Self::trace_dropped(cx, "no timestamps");
            return false;
        };
        if state.is_old(cx.now, timestamps.value) {
            self.traffic.paws_drops += 1;
            cx.around.statistics.paws_drops += 1;
            Self::trace_dropped(cx, "old timestamp");
            self.answer_unacceptable(cx, arrival);
            return false;
        }
        true
    }

    /// The first check.
    fn check_sequence(&mut self, cx: &mut Context<'_>, arrival: &Arrival<'_>) -> bool {
        let rcv_nxt = self.inbound.rcv_nxt();
        let window = self.inbound.window.edge().saturating_sub(rcv_nxt);
        let (seq, len) = (arrival.seq, arrival.sequence_len());
        if is_in_window(seq, len, rcv_nxt, window) {
            return true;
        }
        if may_look_at_control(seq, len, rcv_nxt, window) {
            self.owed.ack |= len > 0 && !arrival.has(Flags::RST);
            return true;
        }
        self.traffic.out_of_window += 1;
        cx.around.statistics.out_of_window += 1;
        if !arrival.has(Flags::RST) {
            if !arrival.payload.is_empty() {
                self.note_duplicate(arrival);
            }
            if self.state == State::TimeWait && arrival.has(Flags::FIN) {
                self.restart_time_wait(cx.now);
            }
            self.answer_unacceptable(cx, arrival);
        }
        false
    }

    /// <SEQ=SND.NXT><ACK=RCV.NXT><CTL=ACK> for what is not acceptable.
    fn answer_unacceptable(&mut self, cx: &Context<'_>, arrival: &Arrival<'_>) {
        let is_bare = arrival.payload.is_empty() && !arrival.has(Flags::FIN);
        if is_bare && cx.now < self.silence.answers_from {
            return;
        }
        if is_bare {
            self.silence.answers_from = cx.now + MIN_BETWEEN_ANSWERS;
        }
        self.owed.ack = true;
    }

    /// RFC 5961 §3.2, §4.2, §5.2: asks the peer to prove what may be forged.
    fn challenge(&mut self, cx: &mut Context<'_>, reason: &'static str) {
        Self::trace_dropped(cx, reason);
        self.traffic.challenged += 1;
        let around = &mut *cx.around;
        let rng = &mut around.rng;
        if self.challenges.may_send(cx.now, rng) && around.challenges.may_send(cx.now, rng) {
            around.statistics.challenge_acks_sent += 1;
            self.owed.ack = true;
        } else {
            around.statistics.challenge_acks_suppressed += 1;
        }
    }

    /// The second check (RFC 5961 §3.2): only the very next sequence number resets. Nothing resets
    /// TIME-WAIT, which an old RST could end early (RFC 1337 §3).
    fn check_reset(&mut self, cx: &mut Context<'_>, arrival: &Arrival<'_>) -> bool {
        if !arrival.has(Flags::RST) {
            return true;
        }
        if arrival.seq != self.inbound.rcv_nxt() {
            self.challenge(cx, "RST in window");
            return false;
        }
        if self.state == State::TimeWait {
            return false;
        }
        let reason = match self.state {
            State::SynReceived if self.is_passive => None,
            State::SynReceived => Some(CloseReason::Refused),
            _ => Some(CloseReason::Reset),
        };
        self.end(cx, reason, None);
        false
    }

    /// The fourth check (RFC 5961 §4.2). A half-open connection of a listener gives way to a new
    /// SYN.
    fn check_syn(&mut self, cx: &mut Context<'_>, arrival: &Arrival<'_>) -> bool {
        if !arrival.has(Flags::SYN) {
            return true;
        }
        if self.is_half_open() {
            self.end(cx, None, None);
        } else {
            self.challenge(cx, "SYN in window");
        }
        false
    }

    /// The fifth check's beginning (RFC 5961 §5.2).
    fn check_ack(&mut self, cx: &mut Context<'_>, arrival: &Arrival<'_>) -> bool {
        if !arrival.has(Flags::ACK) {
            return false;
        }
        if self.state == State::SynReceived {
            return true;
        }
        let oldest = self.out.snd_una - self.out.max_window;
        if (oldest..=self.out.snd_nxt).contains(&arrival.ack) {
            return true;
        }
        self.challenge(cx, "ACK of what was never sent, or long ago");
        false
    }

    /// RFC 7323 §4.3 (2), §5.3 R3.
    fn note_timestamp(&mut self, cx: &Context<'_>, arrival: &Arrival<'_>) {
        let last_ack_sent = self.inbound.last_ack_sent;
        if let Some(state) = &mut self.timestamps
            && let Some(timestamps) = arrival.header.options.timestamps
            && arrival.seq <= last_ack_sent
        {
            state.on_segment(cx.now, timestamps.value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every place of a segment around a window, by the words of RFC 9293 §3.10.7.4: some sequence
    /// number of it, or its own if it is empty, is one that the window has; only one that begins
    /// before the window and ends behind it is refused as well.
    #[test]
    fn the_four_cases_of_the_acceptability_table() {
        let nxt = 100;
        for window in [0, 1, 5] {
            for len in [0, 1, 3, 5, 7] {
                for seq in 90..110 {
                    let in_window = |n: u64| (nxt..nxt + window).contains(&n);
                    let expected = match (len, window) {
                        (0, 0) => seq == nxt,
                        (0, _) => in_window(seq),
                        (_, 0) => false,
                        _ => in_window(seq) || in_window(seq + len - 1),
                    };
                    assert_eq!(is_in_window(seq, len, nxt, window), expected);
                }
            }
        }
        // Rows of the table, by hand.
        assert!(is_in_window(100, 0, 100, 0) && !is_in_window(101, 0, 100, 0));
        assert!(is_in_window(104, 0, 100, 5) && !is_in_window(105, 0, 100, 5));
        assert!(!is_in_window(100, 1, 100, 0));
        assert!(is_in_window(98, 3, 100, 5) && !is_in_window(97, 3, 100, 5));
        assert!(is_in_window(104, 3, 100, 5) && !is_in_window(105, 3, 100, 5));
    }

    #[test]
    fn control_is_looked_at_in_a_closed_window_and_behind_a_full_one() {
        assert!(may_look_at_control(100, 1, 100, 0) && !may_look_at_control(101, 1, 100, 0));
        assert!(may_look_at_control(105, 0, 100, 5) && !may_look_at_control(105, 1, 100, 5));
    }
}
