//! HEARTBEATs: they monitor the reachability and the round-trip time of each path (RFC 9260 §8.3), and verify addresses
//! of the peer (§5.4).

use std::time::Duration;

use rexmit_core::{Instant, Route};
use rexmit_recovery::{PathEvent, PathState, RttSource, T3Event};

use super::heartbeat::{Heartbeat, HeartbeatInfo, heartbeat_info, read_heartbeat_info};
use super::{PathEntry, Paths};
use crate::association::context::{Context, Recovery};
use crate::wire::PacketWriter;

/// A path without new data is probed this often at most, to know its round trip and losses while data takes another.
const IDLE_PROBE_INTERVAL: Duration = Duration::from_secs(1);

/// The result of expired heartbeat timers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::association) struct Watched {
    /// Whether the path of new data was idle for a whole heartbeat period.
    pub(in crate::association) is_idle: bool,
    /// Whether the error counter of the association exceeded its limit (RFC 9260 §8.1).
    pub(in crate::association) is_unreachable: bool,
}

fn is_unconfirmed(recovery: &Recovery, path: u8) -> bool {
    recovery.paths()[path].reach().state() == PathState::Unconfirmed
}

impl PathEntry {
    /// Whether neither new data nor a HEARTBEAT was sent over the path for `interval`.
    fn may_be_probed(&self, now: Instant, interval: Duration) -> bool {
        let is_watched =
            matches!(self.heartbeat, Heartbeat::Resting { .. } | Heartbeat::Awaiting { .. });
        let is_idle = now - self.last_used >= interval;
        is_watched
            && is_idle
            && !self.sampling.is_due()
            && !self.sampling.is_too_soon(now, interval)
    }
}

impl Paths {
    /// The heartbeat period: HB.interval + RTO, with jitter of ± half the RTO. Returns its minimum, and the
    /// random part to add.
    fn heartbeat_period(
        &self,
        cx: &mut Context<'_>,
        recovery: &Recovery,
        path: u8,
    ) -> Option<(Duration, Duration)> {
        let interval = self.config.failure.heartbeat_interval?;
        let rto = recovery.paths()[path].timer().rto();
        let jitter = cx.around.rng.below(u64::try_from(rto.as_nanos()).unwrap_or(u64::MAX));
        Some((interval + rto / 2, Duration::from_nanos(jitter)))
    }

    /// Called when the association is established: begins to monitor its confirmed paths, and to probe the
    /// others.
    pub(in crate::association) fn start_watching(
        &mut self,
        cx: &mut Context<'_>,
        recovery: &Recovery,
    ) {
        self.is_watched = true;
        for path in 0..self.len() {
            if is_unconfirmed(recovery, path) {
                self.get_mut(path).heartbeat = Heartbeat::Queued { unanswered: None };
            } else {
                self.rest(cx, recovery, path, None);
            }
        }
        self.probe_next(recovery);
    }

    /// Called when the association ends: stops all heartbeats and probes.
    pub(in crate::association) fn stop_watching(&mut self) {
        self.is_watched = false;
        for entry in &mut self.entries {
            entry.heartbeat = Heartbeat::Off;
        }
        self.sizes.stop();
    }

    /// Called for a new path, or one with a new local address: monitors it if it is confirmed, else probes
    /// it. Does neither while nothing may be sent from its local address (`is_silent`).
    pub(in crate::association) fn watch(
        &mut self,
        cx: &mut Context<'_>,
        recovery: &Recovery,
        path: u8,
        is_silent: bool,
    ) {
        if !self.is_watched || is_silent {
            self.get_mut(path).heartbeat = Heartbeat::Off;
        } else if is_unconfirmed(recovery, path) {
            self.get_mut(path).heartbeat = Heartbeat::Queued { unanswered: None };
        } else {
            self.rest(cx, recovery, path, None);
        }
    }

    /// Whether `path` exists and is not monitored.
    pub(in crate::association) fn is_unwatched(&self, path: u8) -> bool {
        let entry = self.get(path);
        !entry.is_removed && entry.heartbeat == Heartbeat::Off
    }

    /// Begins to probe waiting addresses, up to HB.Max.Burst at a time, those with the fewest unanswered probes first
    /// (RFC 9260 §5.4).
    pub(in crate::association) fn probe_next(&mut self, recovery: &Recovery) {
        if self.len() == 1 || !self.is_watched {
            return;
        }
        let is_probed = |path: &u8| {
            let heartbeat = self.get(*path).heartbeat;
            is_unconfirmed(recovery, *path)
                && matches!(heartbeat, Heartbeat::Due | Heartbeat::Awaiting { .. })
        };
        let probed = (0..self.len()).filter(is_probed).count();
        for _ in probed..self.config.multihoming.heartbeat_max_burst.into() {
            let is_queued =
                |path: &u8| matches!(self.get(*path).heartbeat, Heartbeat::Queued { .. });
            let errors = |path: &u8| recovery.paths()[*path].reach().errors();
            let next = (0..self.len()).filter(is_queued).min_by_key(errors);
            let Some(path) = next else { return };
            self.get_mut(path).heartbeat = Heartbeat::Due;
        }
    }

    /// When the next heartbeat timer is due; [`Instant::FAR_FUTURE`] if none runs.
    pub(in crate::association) fn next_heartbeat(&self) -> Instant {
        let deadline =
            |path: &super::PathEntry| path.heartbeat.deadline().unwrap_or(Instant::FAR_FUTURE);
        // Called for every packet, mostly with one path.
        let next = match &self.entries[..] {
            [only] => deadline(only),
            all => all.iter().map(deadline).min().unwrap_or(Instant::FAR_FUTURE),
        };
        let probe = self.transports.probe_deadline().unwrap_or(Instant::FAR_FUTURE);
        next.min(probe).min(self.sizes.next_deadline())
    }

    /// Handles the path timers that have expired: heartbeats, the probe of a changed UDP port and path MTU
    /// discovery.
    pub(in crate::association) fn on_heartbeat_timers(
        &mut self,
        cx: &mut Context<'_>,
        recovery: &mut Recovery,
    ) -> Watched {
        let mut watched = Watched::default();
        self.transports.on_probe_timeout(cx.now);
        self.sizes.on_timeout(cx, recovery);
        if !self.is_watched {
            return watched;
        }
        for path in 0..self.len() {
            match self.get(path).heartbeat {
                Heartbeat::Resting { until, unanswered } if until <= cx.now => {
                    watched.is_idle |= self.on_rest_over(cx, recovery, path, unanswered);
                }
                Heartbeat::Awaiting { nonce, deadline } if deadline <= cx.now => {
                    watched.is_unreachable =
                        self.on_heartbeat_unanswered(cx, recovery, path, nonce);
                }
                _ => {}
            }
            if watched.is_unreachable {
                return watched;
            }
        }
        self.probe_next(recovery);
        watched
    }

    /// Called when the heartbeat period of a path is over. Returns whether the path is idle although new data would use
    /// it.
    fn on_rest_over(
        &mut self,
        cx: &mut Context<'_>,
        recovery: &Recovery,
        path: u8,
        unanswered: Option<u64>,
    ) -> bool {
        let last_used = self.get(path).last_used;
        let heartbeat = match self.heartbeat_period(cx, recovery, path) {
            // The path was used meanwhile: the period restarts at its last use.
            Some((least, jitter)) if last_used + least > cx.now => {
                Heartbeat::Resting { until: last_used + least + jitter, unanswered }
            }
            _ if is_unconfirmed(recovery, path) => Heartbeat::Queued { unanswered },
            _ => Heartbeat::Due,
        };
        self.get_mut(path).heartbeat = heartbeat;
        heartbeat == Heartbeat::Due && path == recovery.paths().data_path()
    }

    /// Called when a HEARTBEAT was not answered in time (RFC 9260 §8.3, §5.4; RFC 7829 §3.2 rules 5 and 6). It counts
    /// as an error of the association (§8.1) only on the path of data; returns whether the limit of these errors is
    /// exceeded.
    fn on_heartbeat_unanswered(
        &mut self,
        cx: &mut Context<'_>,
        recovery: &mut Recovery,
        path: u8,
        nonce: u64,
    ) -> bool {
        recovery.on_t3_event(cx.now, path, T3Event::Unanswered);
        let was_unconfirmed = is_unconfirmed(recovery, path);
        let is_of_data = path == recovery.paths().data_path() && !was_unconfirmed;
        self.rest(cx, recovery, path, Some(nonce));
        if !self.starved.is_error(cx, recovery.paths()[path].timer().rto()) {
            return false;
        }
        self.count_path_error(cx, recovery, path);
        if was_unconfirmed && !recovery.paths()[path].reach().has_failed() {
            let unanswered = Some(nonce);
            self.get_mut(path).heartbeat = Heartbeat::Queued { unanswered };
        }
        is_of_data && self.count_error()
    }

    /// Requests a HEARTBEAT on a potentially failed path, at once and after each timeout (RFC 7829 §3.2 rules 5 and 6).
    pub(super) fn ask(&mut self, path: u8) {
        let may_ask = self.config.failure.heartbeat_interval.is_some() && self.is_watched;
        let heartbeat = &mut self.get_mut(path).heartbeat;
        if may_ask && !matches!(heartbeat, Heartbeat::Awaiting { .. }) {
            *heartbeat = Heartbeat::Due;
        }
    }

    fn rest(
        &mut self,
        cx: &mut Context<'_>,
        recovery: &Recovery,
        path: u8,
        unanswered: Option<u64>,
    ) {
        let (now, period) = (cx.now, self.heartbeat_period(cx, recovery, path));
        let resting =
            |(least, jitter)| Heartbeat::Resting { until: now + least + jitter, unanswered };
        self.get_mut(path).heartbeat = period.map_or(Heartbeat::Off, resting);
    }

    /// The first path over which a HEARTBEAT is to be sent now.
    pub(in crate::association) fn with_heartbeat_due(&self) -> Option<u8> {
        let is_due = |path: &super::PathEntry| {
            matches!(path.heartbeat, Heartbeat::Due) || path.sampling.is_due()
        };
        self.entries.iter().position(is_due).map(|index| index as u8)
    }

    /// Writes the HEARTBEATs that are due on `path` into a packet for this path.
    pub(in crate::association) fn write_heartbeats(
        &mut self,
        cx: &mut Context<'_>,
        recovery: &Recovery,
        path: u8,
        writer: &mut PacketWriter<'_>,
    ) {
        let entry = self.get_mut(path);
        if entry.heartbeat == Heartbeat::Due {
            let nonce = cx.around.rng.u64();
            if writer.heartbeat(&heartbeat_info(nonce, path, cx.now)) {
                let deadline = cx.now + recovery.paths()[path].timer().rto();
                entry.heartbeat = Heartbeat::Awaiting { nonce, deadline };
                entry.last_used = cx.now;
            }
        }
        if entry.sampling.is_due() {
            let nonce = cx.around.rng.u64();
            if writer.heartbeat(&heartbeat_info(nonce, path, cx.now)) {
                entry.sampling.on_sent(nonce, cx.now);
            }
        }
    }

    /// Called when new DATA was sent over `path`, which measures it. If the path of data is chosen by what is measured on
    /// all, requests a HEARTBEAT on idle ones that are worth it, one in [`IDLE_PROBE_INTERVAL`] at most.
    pub(in crate::association) fn on_used(
        &mut self,
        now: Instant,
        path: u8,
        recovery: &mut Recovery,
    ) {
        self.get_mut(path).last_used = now;
        if self.len() == 1 || !self.is_watched {
            return;
        }
        for (path, entry) in (0..).zip(&mut self.entries) {
            // Not the RTO: it is backed off while the path does not answer.
            let srtt = recovery.paths()[path].timer().rtt().srtt().unwrap_or_default();
            if entry.may_be_probed(now, IDLE_PROBE_INTERVAL.max(2 * srtt)) {
                if entry.sampling.take_unanswered() {
                    recovery.on_path_event(path, PathEvent::ProbeLost);
                }
                if recovery.take_idle_probe(path) {
                    entry.sampling.ask();
                }
            }
        }
    }

    /// Handles a HEARTBEAT ACK that arrived over `route`. Only the answer to a HEARTBEAT that was sent
    /// counts, and for the path over which it was sent. Returns whether it was one.
    pub(in crate::association) fn on_heartbeat_ack(
        &mut self,
        cx: &mut Context<'_>,
        recovery: &mut Recovery,
        route: Route,
        info: &[u8],
    ) -> bool {
        let Some(HeartbeatInfo { nonce, path, sent_at }) = read_heartbeat_info(info) else {
            return false;
        };
        if path >= self.len() {
            return false;
        }
        // Neither a probe of a port or of a size nor an RTT sample changes the heartbeat schedule of the path.
        let changed = self.transports.take_answered(route.remote, nonce);
        if let Some(path) = changed {
            self.follow_port(path, route.remote);
        }
        let has_confirmed = self.sizes.on_answered(cx, recovery, path, nonce);
        let entry = self.get_mut(path);
        let is_beside = changed.is_some() || has_confirmed || entry.sampling.on_answered(nonce);
        if !is_beside && entry.heartbeat.nonce() != Some(nonce) {
            return false;
        }
        let (rtt, source) = (cx.now - sent_at, RttSource::Heartbeat);
        recovery.on_rtt_sample(cx.now, path, rtt, source, &mut cx.tracer());
        self.on_probed(cx, recovery, path);
        if !is_beside {
            self.rest(cx, recovery, path, None);
            self.probe_next(recovery);
        }
        true
    }

    /// Requests a HEARTBEAT at the end of the handshake, if the configuration measures by HEARTBEAT: the peer
    /// initiated the association, so this side has no sample.
    pub(in crate::association) fn ask_for_first_round_trip(&mut self, recovery: &Recovery) {
        if recovery.wants_rtt_sample(false) {
            self.get_mut(recovery.paths().data_path()).sampling.ask();
        }
    }

    /// Requests a HEARTBEAT, once per timeout, when an ACK of a thin stream gave no RTT sample: because it
    /// covers retransmitted data (Karn), or may answer a FORWARD-TSN.
    pub(in crate::association) fn ask_for_round_trip(
        &mut self,
        now: Instant,
        has_abandoned: bool,
        recovery: &Recovery,
    ) {
        if !self.is_watched || !recovery.wants_rtt_sample(has_abandoned) {
            return;
        }
        let path = recovery.paths().data_path();
        let entry = self.get_mut(path);
        let is_measured_anyway =
            matches!(entry.heartbeat, Heartbeat::Due | Heartbeat::Awaiting { .. });
        if !is_measured_anyway && !entry.sampling.is_too_soon(now, recovery.path_figures(path).rto)
        {
            entry.sampling.ask();
        }
    }
}
