//! The acceptance test of segments (RFC 9293 §3.10.7.4, first to fourth check and the beginning of the fifth;
//! RFC 5961; RFC 7323 §5.3).

use rexmit_core::Instant;
use rexmit_core::serial::unwrap_u32;

use super::inbound::Inbound;
use super::outbound::Outbound;
use super::timestamps::TimestampState;
use super::{Arrival, Connection, Context, State};
use crate::event::CloseReason;
use crate::wire::{Flags, Segment};

/// Whether a segment of `len` at `seq` is acceptable with the window from `rcv_nxt` on (RFC 9293 §3.10.7.4,
/// table 6).
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

/// Whether an unacceptable segment is still processed for its acknowledgement, RST or urgent pointer: with a closed
/// window a segment at its edge, otherwise an empty segment right after data that fills the window.
const fn may_look_at_control(seq: u64, len: u64, rcv_nxt: u64, window: u64) -> bool {
    (window == 0 && seq == rcv_nxt) || (len == 0 && seq == rcv_nxt + window)
}

/// Why a segment, or the rest of it, is not processed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Refusal {
    /// The segment has no timestamps, although they were negotiated (RFC 7323 §3.2).
    NoTimestamps,
    /// The timestamp is older than an earlier one (PAWS, RFC 7323 §5.3 R1).
    OldTimestamp,
    OutOfWindow,
    /// The segment may be forged: a challenge ACK asks the peer for proof (RFC 5961 §3.2, §4.2, §5.2).
    Doubtful(&'static str),
    /// The segment ends the connection. The reason is reported to the application, if there is one.
    Ends(Option<CloseReason>),
    Silently,
}

/// The state that the checks use.
struct Checks<'a> {
    now: Instant,
    state: State,
    is_passive: bool,
    timestamps: Option<&'a TimestampState>,
    inbound: &'a Inbound,
    out: &'a Outbound,
}

impl Checks<'_> {
    /// The timestamps. A RST is exempt.
    fn timestamp(&self, arrival: &Arrival<'_>) -> Result<(), Refusal> {
        let Some(state) = self.timestamps else { return Ok(()) };
        if arrival.has(Flags::RST) {
            return Ok(());
        }
        match arrival.header.options.timestamps {
            None => Err(Refusal::NoTimestamps),
            Some(it) if state.is_old(self.now, it.value) => Err(Refusal::OldTimestamp),
            Some(_) => Ok(()),
        }
    }

    /// The first check. Returns whether the segment has to be acknowledged, because it is unacceptable, but its control
    /// bits are still processed.
    fn sequence(&self, arrival: &Arrival<'_>) -> Result<bool, Refusal> {
        let rcv_nxt = self.inbound.rcv_nxt();
        let window = self.inbound.window.edge().saturating_sub(rcv_nxt);
        let (seq, len) = (arrival.seq, arrival.sequence_len());
        if is_in_window(seq, len, rcv_nxt, window) {
            Ok(false)
        } else if may_look_at_control(seq, len, rcv_nxt, window) {
            Ok(len > 0 && !arrival.has(Flags::RST))
        } else {
            Err(Refusal::OutOfWindow)
        }
    }

    /// The second check (RFC 5961 §3.2): only the very next sequence number resets. Nothing resets
    /// TIME-WAIT, which an old RST could end early (RFC 1337 §3).
    fn reset(&self, arrival: &Arrival<'_>) -> Result<(), Refusal> {
        if !arrival.has(Flags::RST) {
            return Ok(());
        }
        Err(match self.state {
            _ if arrival.seq != self.inbound.rcv_nxt() => Refusal::Doubtful("RST in window"),
            State::TimeWait => Refusal::Silently,
            State::SynReceived if self.is_passive => Refusal::Ends(None),
            State::SynReceived => Refusal::Ends(Some(CloseReason::Refused)),
            _ => Refusal::Ends(Some(CloseReason::Reset)),
        })
    }

    /// The fourth check (RFC 5961 §4.2). A new SYN replaces a half-open connection of a listener.
    fn syn(&self, arrival: &Arrival<'_>) -> Result<(), Refusal> {
        if !arrival.has(Flags::SYN) {
            return Ok(());
        }
        let is_half_open = self.is_passive && self.state == State::SynReceived;
        Err(if is_half_open { Refusal::Ends(None) } else { Refusal::Doubtful("SYN in window") })
    }

    /// The fifth check's beginning (RFC 5961 §5.2).
    fn ack(&self, arrival: &Arrival<'_>) -> Result<(), Refusal> {
        if !arrival.has(Flags::ACK) {
            return Err(Refusal::Silently);
        }
        let oldest = self.out.snd_una - self.out.window.largest;
        let is_known = (oldest..=self.out.snd_nxt).contains(&arrival.ack);
        if is_known || self.state == State::SynReceived {
            return Ok(());
        }
        Err(Refusal::Doubtful("ACK of what was never sent, or long ago"))
    }
}

impl Connection {
    /// The segment with its numbers unwrapped next to ours, if it passes every check. A segment that fails one is
    /// counted, and answered as that check requires.
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
        self.check(cx, &arrival, |checks| checks.timestamp(&arrival))?;
        let is_repeated_syn = self.state == State::SynReceived
            && arrival.has(Flags::SYN)
            && !arrival.has(Flags::RST)
            && arrival.seq == self.inbound.irs;
        let arrival = if is_repeated_syn {
            self.take_repeated_syn(segment)?
        } else {
            self.owed.ack |= self.check(cx, &arrival, |checks| checks.sequence(&arrival))?;
            self.check(cx, &arrival, |checks| checks.reset(&arrival))?;
            self.check(cx, &arrival, |checks| checks.syn(&arrival))?;
            arrival
        };
        // RFC 7323 §4.3 (2), §5.3 R3.
        if arrival.seq <= self.inbound.last_ack_sent
            && let Some(state) = &mut self.timestamps
            && let Some(timestamps) = arrival.header.options.timestamps
        {
            state.on_segment(cx.now, timestamps.value);
        }
        self.check(cx, &arrival, |checks| checks.ack(&arrival))?;
        Some(arrival)
    }

    /// The result of a check, if the segment passes.
    #[inline]
    fn check<T>(
        &mut self,
        cx: &mut Context<'_>,
        arrival: &Arrival<'_>,
        check: impl FnOnce(&Checks<'_>) -> Result<T, Refusal>,
    ) -> Option<T> {
        let checks = Checks {
            now: cx.now,
            state: self.state,
            is_passive: self.handshake.is_passive,
            timestamps: self.timestamps.as_ref(),
            inbound: &self.inbound,
            out: &self.out,
        };
        check(&checks).map_err(|refusal| self.refuse(cx, arrival, refusal)).ok()
    }

    /// Counts and answers a segment that did not pass.
    fn refuse(&mut self, cx: &mut Context<'_>, arrival: &Arrival<'_>, refusal: Refusal) {
        match refusal {
            Refusal::NoTimestamps => {
                self.traffic.dropped.missing_timestamps += 1;
                cx.trace_dropped("no timestamps");
            }
            Refusal::OldTimestamp => {
                self.traffic.dropped.old_timestamps += 1;
                cx.around.statistics.paws_drops += 1;
                cx.trace_dropped("old timestamp");
                self.answer_unacceptable(cx, arrival);
            }
            Refusal::OutOfWindow => {
                self.traffic.dropped.out_of_window += 1;
                cx.around.statistics.out_of_window += 1;
                if !arrival.has(Flags::RST) {
                    let end = arrival.seq + arrival.payload.len() as u64;
                    let is_known = self.inbound.note_duplicate(arrival.seq, end);
                    self.traffic.duplicates_received += u64::from(is_known);
                    if self.state == State::TimeWait && arrival.has(Flags::FIN) {
                        self.restart_time_wait(cx.now);
                    }
                    self.answer_unacceptable(cx, arrival);
                }
            }
            Refusal::Doubtful(reason) => self.challenge(cx, reason),
            Refusal::Ends(reason) => self.end(cx, reason, None),
            Refusal::Silently => {}
        }
    }

    /// Answers an unacceptable segment by `<SEQ=SND.NXT><ACK=RCV.NXT><CTL=ACK>`.
    fn answer_unacceptable(&mut self, cx: &Context<'_>, arrival: &Arrival<'_>) {
        let is_bare = arrival.payload.is_empty() && !arrival.has(Flags::FIN);
        self.owed.ack |= !is_bare || self.silence.grant_answer(cx.now);
    }

    /// Sends a challenge ACK for a segment that may be forged (RFC 5961 §3.2, §4.2, §5.2).
    fn challenge(&mut self, cx: &mut Context<'_>, reason: &'static str) {
        cx.trace_dropped(reason);
        self.traffic.challenged += 1;
        let around = &mut *cx.around;
        let rng = &mut around.rng;
        if self.challenges.grant(cx.now, rng) && around.challenges.grant(cx.now, rng) {
            around.statistics.challenge_acks_sent += 1;
            self.owed.ack = true;
        } else {
            around.statistics.challenge_acks_suppressed += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every position of a segment relative to a window, compared with the text of RFC 9293 §3.10.7.4: one of its
    /// sequence numbers, or SEG.SEQ if it is empty, must be in the window. A segment that begins before the window and
    /// ends after it is refused, too.
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
    fn control_bits_are_processed_in_a_closed_window_and_after_a_full_one() {
        assert!(may_look_at_control(100, 1, 100, 0) && !may_look_at_control(101, 1, 100, 0));
        assert!(may_look_at_control(105, 0, 100, 5) && !may_look_at_control(105, 1, 100, 5));
    }
}
