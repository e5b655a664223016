//! HEARTBEAT: is the peer there, and how far away (RFC 9260 §8.3), and is an address really its own
//! (§5.4).

use std::time::Duration;

use rexmit_core::{Instant, Route};
use rexmit_recovery::PathState;

use super::{Association, Context};
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
    /// Waits until fewer addresses are being probed (HB.Max.Burst). The answer to the last may
    /// still come, late.
    Queued {
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
            Self::Off | Self::Queued { .. } | Self::Due => None,
            Self::Resting { until, .. } => Some(until),
            Self::Awaiting { deadline, .. } => Some(deadline),
        }
    }

    /// The nonce that an answer must bear.
    const fn nonce(self) -> Option<u64> {
        match self {
            Self::Awaiting { nonce, .. } => Some(nonce),
            Self::Resting { unanswered, .. } | Self::Queued { unanswered } => unanswered,
            Self::Off | Self::Due => None,
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

    /// The association is established: its paths are watched from now on, and addresses that are
    /// not confirmed are probed.
    pub(super) fn start_heartbeats(&mut self, cx: &mut Context<'_>) {
        for path in 0..self.paths.len() {
            if self.is_unconfirmed(path) {
                self.paths.get_mut(path).heartbeat = Heartbeat::Queued { unanswered: None };
            } else {
                self.rest(cx, path, None);
            }
        }
        self.probe_next();
    }

    pub(super) fn stop_heartbeats(&mut self) {
        for path in 0..self.paths.len() {
            self.paths.get_mut(path).heartbeat = Heartbeat::Off;
        }
    }

    fn is_unconfirmed(&self, path: u8) -> bool {
        self.out.recovery.reach(path).state() == PathState::Unconfirmed
    }

    /// Addresses that wait to be probed get their turn, those first that failed to answer least
    /// often, up to HB.Max.Burst at a time (RFC 9260 §5.4).
    pub(super) fn probe_next(&mut self) {
        if self.paths.len() == 1 || !self.state.may_heartbeat() {
            return;
        }
        let is_probed = |path: &u8| {
            let heartbeat = self.paths.get(*path).heartbeat;
            self.is_unconfirmed(*path)
                && matches!(heartbeat, Heartbeat::Due | Heartbeat::Awaiting { .. })
        };
        let probed = (0..self.paths.len()).filter(is_probed).count();
        for _ in probed..self.config.heartbeat_max_burst.into() {
            let is_queued =
                |path: &u8| matches!(self.paths.get(*path).heartbeat, Heartbeat::Queued { .. });
            let errors = |path: &u8| self.out.recovery.reach(*path).errors();
            let next = (0..self.paths.len()).filter(is_queued).min_by_key(errors);
            let Some(path) = next else { return };
            self.paths.get_mut(path).heartbeat = Heartbeat::Due;
        }
    }

    /// Heartbeat timers that are due.
    pub(super) fn on_heartbeat_timers(&mut self, cx: &mut Context<'_>) {
        if !self.state.may_heartbeat() {
            return;
        }
        for path in 0..self.paths.len() {
            match self.paths.get(path).heartbeat {
                Heartbeat::Resting { until, unanswered } if until <= cx.now => {
                    self.on_rest_over(cx, path, unanswered);
                }
                Heartbeat::Awaiting { nonce, deadline } if deadline <= cx.now => {
                    self.on_heartbeat_unanswered(cx, path, nonce);
                }
                _ => {}
            }
            if self.state.is_closed() {
                return;
            }
        }
        self.probe_next();
    }

    fn on_rest_over(&mut self, cx: &mut Context<'_>, path: u8, unanswered: Option<u64>) {
        let last_used = self.paths.get(path).last_used;
        self.paths.get_mut(path).heartbeat = match self.heartbeat_period(cx, path) {
            // The path was used meanwhile: the period begins with that.
            Some((least, jitter)) if last_used + least > cx.now => {
                Heartbeat::Resting { until: last_used + least + jitter, unanswered }
            }
            _ if self.is_unconfirmed(path) => Heartbeat::Queued { unanswered },
            _ => Heartbeat::Due,
        };
        // An idle association is small, whatever it did before.
        let is_due = self.paths.get(path).heartbeat == Heartbeat::Due;
        if is_due && path == self.out.recovery.data_path() {
            self.release_memory();
        }
    }

    /// RFC 9260 §8.3, §5.4; RFC 7829 §3.2 rules 5 and 6. Only on the path that data take it says
    /// something of the association (§8.1).
    fn on_heartbeat_unanswered(&mut self, cx: &mut Context<'_>, path: u8, nonce: u64) {
        self.out.recovery.back_off(path);
        let is_unconfirmed = self.is_unconfirmed(path);
        let is_of_data = path == self.out.recovery.data_path() && !is_unconfirmed;
        self.rest(cx, path, Some(nonce));
        self.count_path_error(cx, path);
        if is_unconfirmed && !self.out.recovery.reach(path).has_failed() {
            let unanswered = Some(nonce);
            self.paths.get_mut(path).heartbeat = Heartbeat::Queued { unanswered };
        }
        if is_of_data {
            self.count_error(cx);
        }
    }

    /// A path that may have failed is asked at once, and again with each timeout
    /// (RFC 7829 §3.2 rules 5 and 6).
    pub(super) fn ask_path(&mut self, path: u8) {
        let may_ask = self.config.heartbeat_interval.is_some() && self.state.may_heartbeat();
        let heartbeat = &mut self.paths.get_mut(path).heartbeat;
        if may_ask && !matches!(heartbeat, Heartbeat::Awaiting { .. }) {
            *heartbeat = Heartbeat::Due;
        }
    }

    pub(super) fn rest(&mut self, cx: &mut Context<'_>, path: u8, unanswered: Option<u64>) {
        let (now, period) = (cx.now, self.heartbeat_period(cx, path));
        let resting =
            |(least, jitter)| Heartbeat::Resting { until: now + least + jitter, unanswered };
        self.paths.get_mut(path).heartbeat = period.map_or(Heartbeat::Off, resting);
    }

    /// Writes the HEARTBEATs that are due on `path`, into a packet that takes it.
    pub(super) fn write_heartbeats(
        &mut self,
        cx: &mut Context<'_>,
        path: u8,
        writer: &mut PacketWriter<'_>,
    ) {
        if self.paths.get(path).heartbeat == Heartbeat::Due {
            self.write_heartbeat(cx, path, writer);
        }
        if self.paths.get(path).sampling.is_due() {
            let nonce = cx.around.rng.u64();
            if writer.heartbeat(&heartbeat_info(nonce, path, cx.now)) {
                self.paths.get_mut(path).sampling.on_sent(nonce, cx.now);
            }
        }
    }

    fn write_heartbeat(&mut self, cx: &mut Context<'_>, path: u8, writer: &mut PacketWriter<'_>) {
        let nonce = cx.around.rng.u64();
        if writer.heartbeat(&heartbeat_info(nonce, path, cx.now)) {
            let deadline = cx.now + self.out.recovery.timer(path).rto();
            let entry = self.paths.get_mut(path);
            entry.heartbeat = Heartbeat::Awaiting { nonce, deadline };
            entry.last_used = cx.now;
        }
    }

    /// HEARTBEAT: answered to where it came from, with all that is in it.
    pub(super) fn on_heartbeat(&mut self, route: Route, value: &[u8]) {
        if self.state.may_answer_heartbeat() && !self.has_left(route) {
            self.owed.heartbeat_ack(route, value);
        }
    }

    /// HEARTBEAT ACK: only the answer to what was really sent counts, and for the path over which
    /// it was sent.
    pub(super) fn on_heartbeat_ack(&mut self, cx: &mut Context<'_>, info: &[u8]) {
        let Ok(info) = <&[u8; INFO_LEN]>::try_from(info) else { return };
        let number = |bytes: &[u8]| bytes.iter().fold(0u64, |n, &b| n << 8 | u64::from(b));
        let (echoed, path) = (number(&info[..8]), info[8]);
        let sent_at = Instant::from_nanos(number(&info[9..]));
        if path >= self.paths.len() {
            return;
        }
        let entry = self.paths.get_mut(path);
        if entry.sampling.on_answered(echoed) {
            // The watch over the path goes on as it is: this one is beside it.
            self.take_heartbeat_sample(cx, path, sent_at);
        } else if entry.heartbeat.nonce() == Some(echoed) {
            self.take_heartbeat_sample(cx, path, sent_at);
            self.rest(cx, path, None);
            self.probe_next();
        }
    }

    fn take_heartbeat_sample(&mut self, cx: &mut Context<'_>, path: u8, sent_at: Instant) {
        self.out.recovery.on_rtt_sample(cx.now, path, cx.now - sent_at, &mut cx.tracer());
        self.on_path_probed(cx, path);
    }
}

/// What a HEARTBEAT over `path` carries, and its answer brings back.
fn heartbeat_info(nonce: u64, path: u8, now: Instant) -> [u8; INFO_LEN] {
    let mut info = [0; INFO_LEN];
    info[..8].copy_from_slice(&nonce.to_be_bytes());
    info[8] = path;
    info[9..].copy_from_slice(&now.as_nanos().to_be_bytes());
    info
}
