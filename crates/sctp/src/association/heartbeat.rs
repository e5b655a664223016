//! HEARTBEAT: is the peer there, and how far away (RFC 9260 §8.3).

use std::time::Duration;

use rexmit_core::{Instant, Route};

use super::{Association, Context, PRIMARY};
use crate::wire::PacketWriter;

/// Nonce, path index, time of sending.
const INFO_LEN: usize = 8 + 1 + 8;

/// The heartbeat of one path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Heartbeat {
    Off,
    /// The next is due then, if the path is idle until then. The answer to the last may still
    /// come, late.
    Resting {
        until: Instant,
        unanswered: Option<u64>,
    },
    /// It is to be sent as soon as may be.
    Due,
    /// Sent; an answer is awaited until the deadline.
    Awaiting {
        nonce: u64,
        deadline: Instant,
    },
}

impl Heartbeat {
    pub(super) const fn deadline(self) -> Option<Instant> {
        match self {
            Self::Off | Self::Due => None,
            Self::Resting { until, .. } => Some(until),
            Self::Awaiting { deadline, .. } => Some(deadline),
        }
    }
}

impl Association {
    /// HB.interval + RTO, with jitter of half the RTO either way: the least it may be, and what is
    /// drawn on top of it.
    fn heartbeat_period(&self, cx: &mut Context<'_>, path: u8) -> Option<(Duration, Duration)> {
        let interval = self.config.heartbeat_interval?;
        let rto = self.out.recovery.timer(path).rto();
        let jitter = cx.around.rng.below(u64::try_from(rto.as_nanos()).unwrap_or(u64::MAX));
        Some((interval + rto / 2, Duration::from_nanos(jitter)))
    }

    /// The association is established: the primary path is watched from now on.
    pub(super) fn start_heartbeats(&mut self, cx: &mut Context<'_>) {
        self.rest(cx, None);
    }

    pub(super) fn stop_heartbeats(&mut self) {
        self.paths.primary_mut().heartbeat = Heartbeat::Off;
    }

    /// Heartbeat timers that are due.
    pub(super) fn on_heartbeat_timers(&mut self, cx: &mut Context<'_>) {
        if !self.state.may_heartbeat() {
            return;
        }
        let entry = self.paths.primary();
        match entry.heartbeat {
            Heartbeat::Resting { until, unanswered } if until <= cx.now => {
                let last_used = entry.last_used;
                self.paths.primary_mut().heartbeat = match self.heartbeat_period(cx, PRIMARY) {
                    // The path was used meanwhile: the period begins with that.
                    Some((least, jitter)) if last_used + least > cx.now => {
                        Heartbeat::Resting { until: last_used + least + jitter, unanswered }
                    }
                    _ => Heartbeat::Due,
                };
                // An idle association is small, whatever it did before.
                if self.paths.primary().heartbeat == Heartbeat::Due {
                    self.release_memory();
                }
            }
            Heartbeat::Awaiting { nonce, deadline } if deadline <= cx.now => {
                self.out.recovery.back_off(PRIMARY);
                self.rest(cx, Some(nonce));
                self.count_path_error(cx, PRIMARY);
                self.count_error(cx);
            }
            _ => {}
        }
    }

    fn rest(&mut self, cx: &mut Context<'_>, unanswered: Option<u64>) {
        let (now, period) = (cx.now, self.heartbeat_period(cx, PRIMARY));
        let resting =
            |(least, jitter)| Heartbeat::Resting { until: now + least + jitter, unanswered };
        self.paths.primary_mut().heartbeat = period.map_or(Heartbeat::Off, resting);
    }

    /// Whether a HEARTBEAT is to leave now, to see whether the peer is there or how far away.
    pub(super) fn is_heartbeat_due(&self) -> bool {
        let entry = self.paths.primary();
        entry.heartbeat == Heartbeat::Due || entry.sampling.is_due()
    }

    /// Writes the HEARTBEATs that are due.
    pub(super) fn write_heartbeats(&mut self, cx: &mut Context<'_>, writer: &mut PacketWriter<'_>) {
        if self.paths.primary().heartbeat == Heartbeat::Due {
            self.write_heartbeat(cx, writer);
        }
        if self.paths.primary().sampling.is_due() {
            let nonce = cx.around.rng.u64();
            if writer.heartbeat(&heartbeat_info(nonce, cx.now)) {
                self.paths.primary_mut().sampling.on_sent(nonce, cx.now);
            }
        }
    }

    fn write_heartbeat(&mut self, cx: &mut Context<'_>, writer: &mut PacketWriter<'_>) {
        let nonce = cx.around.rng.u64();
        if writer.heartbeat(&heartbeat_info(nonce, cx.now)) {
            let deadline = cx.now + self.out.recovery.timer(PRIMARY).rto();
            let entry = self.paths.primary_mut();
            entry.heartbeat = Heartbeat::Awaiting { nonce, deadline };
            entry.last_used = cx.now;
        }
    }

    /// HEARTBEAT: answered to where it came from, with all that is in it.
    pub(super) fn on_heartbeat(&mut self, route: Route, value: &[u8]) {
        if self.state.may_answer_heartbeat() {
            self.owed.heartbeat_ack(route, value);
        }
    }

    /// HEARTBEAT ACK: only the answer to what was really sent counts.
    pub(super) fn on_heartbeat_ack(&mut self, cx: &mut Context<'_>, info: &[u8]) {
        let Ok(info) = <&[u8; INFO_LEN]>::try_from(info) else { return };
        let number = |bytes: &[u8]| bytes.iter().fold(0u64, |n, &b| n << 8 | u64::from(b));
        let (echoed, path) = (number(&info[..8]), info[8]);
        let sent_at = Instant::from_nanos(number(&info[9..]));
        let nonce = match self.paths.primary().heartbeat {
            Heartbeat::Awaiting { nonce, .. } => Some(nonce),
            Heartbeat::Resting { unanswered, .. } => unanswered,
            Heartbeat::Off | Heartbeat::Due => None,
        };
        let is_sample = path == PRIMARY && self.paths.primary_mut().sampling.on_answered(echoed);
        if is_sample {
            // The watch over the path goes on as it is: this one is beside it.
            self.take_heartbeat_sample(cx, sent_at);
            return;
        }
        if path != PRIMARY || nonce != Some(echoed) {
            return;
        }
        self.take_heartbeat_sample(cx, sent_at);
        self.rest(cx, None);
    }

    fn take_heartbeat_sample(&mut self, cx: &mut Context<'_>, sent_at: Instant) {
        self.out.recovery.on_rtt_sample(cx.now, PRIMARY, cx.now - sent_at, &mut cx.tracer());
        self.clear_errors(cx, PRIMARY);
    }
}

/// What a HEARTBEAT over the primary path carries, and its answer brings back.
fn heartbeat_info(nonce: u64, now: Instant) -> [u8; INFO_LEN] {
    let mut info = [0; INFO_LEN];
    info[..8].copy_from_slice(&nonce.to_be_bytes());
    info[8] = PRIMARY;
    info[9..].copy_from_slice(&now.as_nanos().to_be_bytes());
    info
}
