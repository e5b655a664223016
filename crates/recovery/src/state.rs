//! The state of a sender: outstanding data, paths, groups, and the present recovery. Mechanisms read it and decide;
//! [`LossRecovery`](crate::LossRecovery) changes it. Some transitions of a mechanism change it, too: what it notes of a
//! unit or a path, and counters.

#[cfg(test)]
pub(crate) mod tests;

use std::sync::Arc;
use std::time::Duration;

use rexmit_congestion::RunningT3;
use rexmit_core::Instant;
use rexmit_core::trace::{TraceEvent, Tracer};

use crate::fast_recovery::FastRecovery;
use crate::outstanding::{LostUnit, Moved, Outstanding, Unit};
use crate::paths::{Candidate, Path, Paths, TIMEOUT_MEMORY, choose};
use crate::thin::{Groups, ThinInputs};
use crate::{CmtConfig, RecoveryConfig, RecoveryStatistics, RetransmissionDestination, Thinness};

#[derive(Debug)]
pub(crate) struct State<P> {
    pub(crate) config: Arc<RecoveryConfig>,
    pub(crate) outstanding: Outstanding<P>,
    pub(crate) paths: Paths,
    pub(crate) groups: Groups,
    pub(crate) fast_recovery: FastRecovery,
    pub(crate) statistics: RecoveryStatistics,
}

/// The paths that units moved between, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Moves {
    /// Paths from which units that wait to be retransmitted were moved away.
    pub(crate) left: u64,
    /// Paths to which units were moved, and on which nothing was outstanding before.
    pub(crate) begun: u64,
}

impl Moves {
    pub(crate) fn add(&mut self, moved: Moved) {
        self.left |= 1 << moved.from;
        self.begun |= u64::from(moved.was_idle) << moved.to;
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.left |= other.left;
        self.begun |= other.begun;
    }
}

/// Thin streams.
impl<P> State<P> {
    fn thin_inputs(&self, group: u8) -> ThinInputs {
        ThinInputs {
            in_flight: self.outstanding.packets().packets_of(group),
            sent: self.statistics.packets,
            lost: self.statistics.packets_lost,
            pttfr: self.config.missing_reports,
            is_initial_slow_start: self.paths[0].window.ssthresh() == u64::from(u32::MAX),
        }
    }

    #[inline]
    pub(crate) fn is_thin(&self, group: u8) -> bool {
        self.has_few_packets(group) || self.has_small_segments(group)
    }

    /// Whether `group` is thin by its packets in flight, which is what timers depend on (Petlund 2008 §3.1).
    #[inline]
    pub(crate) fn has_few_packets(&self, group: u8) -> bool {
        !self.groups.is_surely_thick(self.outstanding.packets().packets_of(group))
            && self.groups.config(group).test.is_thin(&self.thin_inputs(group))
    }

    /// Whether size alone makes a TCP connection thin: two of its segments fit in one.
    fn has_small_segments(&self, group: u8) -> bool {
        let in_flight = u64::from(self.outstanding.packets().packets_of(group));
        let bytes = self.outstanding.user_bytes_in_flight();
        self.groups.config(group).tcp.small_segments
            && 2 * bytes <= self.paths[0].window.packet() * in_flight
    }

    /// The result of the thin test of `group`, with its figures.
    pub(crate) fn thinness(&self, group: u8) -> Thinness {
        let result = self.groups.config(group).test.explain(&self.thin_inputs(group));
        Thinness { is_thin: result.is_thin || self.has_small_segments(group), ..result }
    }

    /// Counts and traces groups that became thin or thick.
    #[inline]
    pub(crate) fn trace_thinness(&mut self, tracer: &mut Tracer<'_>) {
        let in_flight = self.outstanding.packets().packets_of(0);
        if !self.groups.has_mechanisms || self.groups.is_known_thick(in_flight) {
            return;
        }
        for group in 0..self.groups.count() {
            let is_thin = self.is_thin(group);
            let Some(is_change) = self.groups.note(group, is_thin) else { continue };
            self.statistics.thin_changes += u64::from(is_change);
            tracer.emit(|| {
                let Thinness { is_thin, in_flight, loss_rate, bound } = self.thinness(group);
                TraceEvent::Thin { group, is_thin, in_flight, loss_rate, bound }
            });
        }
    }

    /// Whether `group` counts as one stream beside others (`by_stream`), which have at least as many packets
    /// in flight on `path`: a stream that fills the window by itself does not.
    #[inline]
    pub(crate) fn shares_path(&self, path: u8, group: u8) -> bool {
        if self.groups.is_one() || !self.groups.config(group).sctp.by_stream {
            return false;
        }
        let own = self.outstanding.packets().packets_of(group);
        2 * u64::from(own) <= u64::from(self.outstanding.flight(path).packets)
    }

    /// The group of the earliest unit outstanding on `path`, whose mechanisms apply to T3-rtx.
    #[inline]
    pub(crate) fn group_of_earliest(&self, path: u8) -> u8 {
        if self.groups.is_one() {
            return 0;
        }
        let earliest = self.outstanding.unit(self.outstanding.on(path).earliest);
        earliest.map_or(0, Unit::group)
    }

    /// The groups, one bit each, whose units are declared lost at the first missing report now.
    pub(crate) fn first_indication_groups(&self) -> u32 {
        if !self.groups.has_mechanisms {
            return 0;
        }
        let acts = |&group: &u8| self.groups.config(group).first_indication && self.is_thin(group);
        (0..self.groups.count()).filter(acts).fold(0, |groups, group| groups | 1 << group)
    }

    /// The number of missing reports, or of units acknowledged above, after which a unit of `group` is
    /// declared lost, unless the threshold is adaptive.
    pub(crate) fn loss_threshold(&self, group: u8) -> u8 {
        let is_first = self.groups.config(group).first_indication && self.is_thin(group);
        if is_first { 1 } else { self.config.missing_reports }
    }

    /// Whether the peer is to be asked to acknowledge units of `group` at once.
    #[inline]
    pub(crate) fn wants_immediate_ack(&self, group: u8) -> bool {
        self.groups.has_mechanisms
            && self.groups.config(group).sctp.sack_immediately
            && self.is_thin(group)
    }

    /// Whether `group` backs off because of a queue on `path`.
    pub(crate) fn yields(&self, path: u8, group: u8) -> bool {
        let Some(limit) = self.groups.config(group).queue_delay_limit else { return false };
        let signs = self.paths[path].queue.as_deref();
        signs.is_some_and(|signs| signs.losses.show_overload() || signs.delay.standing() >= limit)
    }

    #[inline]
    pub(crate) fn note_queueing(&mut self, now: Instant, path: u8, rtt: Duration) {
        if self.groups.yields {
            self.paths[path].queue.get_or_insert_default().delay.on_sample(now, rtt);
        }
    }

    pub(crate) fn note_first_sent(&mut self, path: u8) {
        if self.groups.yields {
            self.paths[path].queue.get_or_insert_default().losses.on_sent();
        }
    }

    /// Counts the loss of a packet over `path` whose data was sent once.
    pub(crate) fn note_first_lost(&mut self, path: u8) {
        self.paths[path].queue.iter_mut().for_each(|signs| signs.losses.on_lost());
    }
}

/// Timers.
impl<P> State<P> {
    /// The present timeout of `path`: that of its timer, or a shorter one while the stream of the earliest
    /// unit outstanding is thin (Petlund 2009 §5.2).
    pub(crate) fn rto(&self, path: u8) -> Duration {
        let group = self.group_of_earliest(path);
        let timer = &self.paths[path].timer;
        match self.groups.config(group).rto_min {
            Some(min) if self.has_few_packets(group) => timer.rto_within(min, &self.config.rto),
            _ => timer.rto(),
        }
    }

    /// When T3-rtx of `path` expires, if it runs.
    #[inline]
    pub(crate) fn t3_deadline(&self, path: u8) -> Option<Instant> {
        let t3 = self.paths[path].t3.running()?;
        let is_thin = t3.only().is_none() && self.has_few_packets(self.group_of_earliest(path));
        Some(if is_thin { t3.thin } else { t3.standard })
    }

    /// Restarts T3-rtx of `path`. `least` is its least timeout while thin, if a probe timer runs before it.
    pub(crate) fn arm_t3(&mut self, now: Instant, path: u8, least: Option<Duration>) {
        let standard = now + self.paths[path].timer.rto();
        let thin = self.thin_deadline(now, path, least).unwrap_or(standard);
        self.paths[path].t3.start(RunningT3 { started_at: now, standard, thin });
    }

    /// Recomputes the deadline of a running T3-rtx of `path`, because the mechanisms have changed.
    pub(crate) fn renew_t3(&mut self, path: u8, least: Option<Duration>) {
        if let Some(&t3) = self.paths[path].t3.running() {
            let thin = self.thin_deadline(t3.started_at, path, least).unwrap_or(t3.standard);
            self.paths[path].t3.start(RunningT3 { thin, ..t3 });
        }
    }

    /// When a timer started at `start` expires while thin, if M1 or M2 is on.
    #[inline]
    fn thin_deadline(&self, start: Instant, path: u8, least: Option<Duration>) -> Option<Instant> {
        if !self.groups.has_mechanisms {
            return None;
        }
        let thin = self.groups.config(self.group_of_earliest(path));
        if thin.rto_min.is_none() && !thin.restart_by_age {
            return None;
        }
        let config = &self.config.rto;
        let rto = self.paths[path].timer.rto_within(thin.rto_min.unwrap_or(config.min), config);
        // The probe timer knows the age of each packet; this one waits until that has failed.
        if let Some(least) = least {
            return Some(start + rto.max(least));
        }
        let oldest = self.oldest_in_flight(path).filter(|_| thin.restart_by_age);
        Some(oldest.unwrap_or(start) + rto)
    }

    /// When the oldest unit in flight on `path` was last sent. Of packets that may be forgotten, only that of
    /// the earliest unit is considered.
    fn oldest_in_flight(&self, path: u8) -> Option<Instant> {
        let packets = self.outstanding.packets();
        let oldest = packets.in_flight(path).next().map(|(_, packet)| packet.sent_at);
        let earliest = self.outstanding.on(path).earliest;
        let earliest = self
            .outstanding
            .unit(earliest)
            .filter(|unit| unit.path == path && unit.is_in_flight())
            .and_then(|unit| packets.sent_at(unit.last().packet));
        match (oldest, earliest) {
            (Some(oldest), Some(earliest)) => Some(oldest.min(earliest)),
            (oldest, earliest) => oldest.or(earliest),
        }
    }
}

/// Windows and recoveries.
impl<P> State<P> {
    /// Whether the window of `path` is larger than the data in flight: by a packet like those in flight. (TCP sends
    /// another one only if there is room for a full one, so that one small packet stops a window of one packet.)
    pub(crate) fn has_window_for(&self, path: u8) -> bool {
        let (flight, window) = (self.outstanding.flight(path), &self.paths[path].window);
        let mean = flight.bytes.checked_div(flight.packets.into()).unwrap_or_default();
        window.has_room(flight.bytes) || flight.bytes + mean <= window.cwnd()
    }

    /// The congestion window of `path` less the bytes in flight.
    pub(crate) fn window_left(&self, path: u8) -> u64 {
        self.paths[path].window.cwnd().saturating_sub(self.outstanding.flight(path).bytes)
    }

    /// Whether the window of `path` has room for a packet, if `departed` bytes in flight do not count.
    pub(crate) fn has_room(&self, path: u8, departed: u64) -> bool {
        let (p, flight) = (&self.paths[path], self.outstanding.flight(path));
        let is_blocked = p.gate.is_single_packet && flight.packets > 0;
        !is_blocked && p.window.has_room(flight.bytes.saturating_sub(departed))
    }

    /// Whether losses are detected by each path for itself (SFR).
    pub(crate) fn splits_fast_retransmit(&self) -> bool {
        self.cmt().is_some_and(|cmt| cmt.split_fast_retransmit)
    }

    /// How new units are sent over several paths at once, if they are.
    #[inline]
    pub(crate) fn cmt(&self) -> Option<&CmtConfig> {
        if self.paths.is_one() { None } else { self.config.sctp.cmt.as_ref() }
    }

    pub(crate) fn begin_recovery(&mut self) {
        self.statistics.fast_recoveries += 1;
        self.fast_recovery.begin(self.outstanding.next_unit() - 1);
    }

    /// Begins a recovery of `path` alone, of everything sent so far.
    pub(crate) fn begin_path_recovery(&mut self, path: u8) {
        self.statistics.fast_recoveries += 1;
        self.fast_recovery.begin_on_path(path, self.outstanding.next_unit() - 1);
    }

    pub(crate) fn reduce_window(&mut self, path: u8) {
        let flight_size = self.outstanding.bytes() - self.fast_recovery.beyond_window();
        self.couple_windows();
        self.paths[path].window.on_fast_retransmit(flight_size);
        self.retransmit_now(path);
    }

    pub(crate) fn trace_window(&self, path: u8, tracer: &mut Tracer<'_>) {
        tracer.emit(|| {
            let window = &self.paths[path].window;
            let flight = self.outstanding.flight(path).bytes;
            TraceEvent::Window { path, cwnd: window.cwnd(), ssthresh: window.ssthresh(), flight }
        });
    }

    /// Updates the share of each path in the rate of all paths in use, for coupled windows.
    pub(crate) fn couple_windows(&mut self) {
        if self.cmt().is_some_and(|cmt| cmt.coupling.is_some()) {
            self.paths.couple_windows();
        }
    }

    /// Withdraws the permission to exceed the window for a retransmission from paths that have nothing to retransmit.
    pub(crate) fn settle_gates(&mut self) {
        for path in self.paths.numbers() {
            let has_lost = self.outstanding.on(path).has_lost();
            self.paths[path].gate.close_unless(has_lost);
        }
    }

    /// Counts a packet that was declared lost, or whose loss a copy repaired.
    pub(crate) fn count_lost_packet(&mut self) {
        self.statistics.packets_lost += 1;
        if self.groups.is_tested {
            self.groups.refresh(&self.statistics);
        }
    }
}

/// Paths.
impl<P> State<P> {
    /// The path over which a unit is retransmitted that was sent over `path`; `is_timeout` if T3-rtx declared it lost.
    pub(crate) fn destination(&self, path: u8, is_timeout: bool) -> u8 {
        match self.config.sctp.retransmission_destination {
            RetransmissionDestination::Alternate if is_timeout => self.paths.alternate_to(path),
            RetransmissionDestination::Elsewhere => self.paths.alternate_to(path),
            RetransmissionDestination::LeastCorrelated => self.paths.least_correlated(path),
            // Those that choose late do so when it is sent; until then it stays.
            _ if self.paths.is_active(path) => path,
            _ => self.paths.alternate_to(path),
        }
    }

    /// The path over which a redundant copy of a unit is sent that is in flight over `path`.
    pub(crate) fn copy_path(&self, path: u8) -> u8 {
        let destination = self.config.sctp.retransmission_destination;
        let is_diverse = destination == RetransmissionDestination::LeastCorrelated;
        if is_diverse && !self.paths.is_one() { self.paths.least_correlated(path) } else { path }
    }

    /// Whether the path of a retransmission is chosen only when it is sent.
    #[inline]
    pub(crate) fn chooses_late(&self) -> bool {
        !self.paths.is_one() && self.config.sctp.retransmission_destination.is_chosen_late()
    }

    /// Allows one packet of the units declared lost on `path` to be retransmitted beyond the window (RFC 9260 §7.2.4 rule 3).
    pub(crate) fn retransmit_now(&mut self, path: u8) {
        let to = if self.paths.is_one() { path } else { self.destination(path, false) };
        self.paths[to].gate.open_for_retransmission();
    }

    /// Chooses the paths of new data and of units that wait to be retransmitted again, after a path has changed.
    pub(crate) fn choose_paths(&mut self) -> Moves {
        let mut moves = Moves::default();
        if self.paths.is_one() {
            return moves;
        }
        self.paths.choose_data_path();
        for path in self.paths.numbers() {
            if !self.paths.is_active(path) {
                moves.merge(self.move_lost(path, self.paths.alternate_to(path)));
            }
        }
        moves
    }

    /// Moves the units that wait for the window of `path`, whose T3-rtx expired, to the path of
    /// retransmissions; one packet of them may be sent beyond its window (RFC 9260 §6.3.3 E3).
    pub(crate) fn move_timed_out(&mut self, path: u8) -> Moves {
        self.paths[path].gate.open_for_retransmission();
        let is_one = self.paths.is_one();
        let to = if is_one { path } else { self.destination(path, true) };
        let moves = self.move_lost(path, to);
        self.settle_gates();
        moves
    }

    fn move_lost(&mut self, from: u8, to: u8) -> Moves {
        let mut moves = Moves::default();
        if from == to || !self.outstanding.on(from).has_lost() {
            return moves;
        }
        while let Some(unit) = self.outstanding.on(from).first_lost() {
            moves.merge(self.move_unit(unit, to));
        }
        if self.paths[from].gate.take() {
            self.paths[to].gate.open_for_retransmission();
        }
        moves
    }

    pub(crate) fn move_unit(&mut self, unit: u64, to: u8) -> Moves {
        let mut moves = Moves::default();
        if let Some(moved) = self.outstanding.move_to(unit, to) {
            self.stop_t3_if_idle(moved.from);
            moves.add(moved);
        }
        moves
    }

    pub(crate) fn stop_t3_if_idle(&mut self, path: u8) {
        if self.outstanding.on(path).outstanding == 0 {
            self.paths[path].t3.stop();
        }
    }

    /// Counts a unit that was declared lost; `is_loss` if the network lost it.
    pub(crate) fn count_lost(&mut self, lost: &LostUnit, is_loss: bool) {
        let Some(number) = lost.packet.filter(|_| is_loss) else { return };
        self.count_lost_packet();
        if let Some(diversity) = self.paths.diversity_mut()
            && let Some(packet) = self.outstanding.packets().packet(number)
        {
            diversity.on_lost(packet.path, Some(packet.sent_at), packet.trial);
        }
        if lost.is_first_transmission {
            self.note_first_lost(lost.path);
        }
        self.paths[lost.path].counters.packets_lost += 1;
        self.paths[lost.path].window.on_packet_lost();
    }

    /// As [`LossRecovery::choose_destination`](crate::LossRecovery::choose_destination).
    pub(crate) fn choose_destination(&mut self, now: Instant, draw: impl FnOnce(u64) -> u64) {
        if !self.chooses_late() {
            return;
        }
        let policy = self.config.sctp.retransmission_destination;
        let first = self.outstanding.lost_anywhere(0).and_then(|unit| self.outstanding.unit(unit));
        let home = first.map(|unit| unit.path);
        let active = self.paths.numbers().filter(|&path| self.paths.is_active(path));
        self.paths.chosen = home.and_then(|home| {
            if active.clone().next().is_none() {
                return Some(self.paths.alternate_to(home));
            }
            choose(policy, active.map(|path| self.candidate(now, path)), draw)
        });
    }

    fn candidate(&self, now: Instant, path: u8) -> Candidate {
        let p = &self.paths[path];
        let is_recent = |at: &Instant| *at + TIMEOUT_MEMORY > now;
        Candidate {
            path,
            has_room: p.gate.burst_left > 0 && self.has_room(path, 0),
            lost: (p.counters.packets_lost, p.counters.packets),
            cwnd: p.window.cwnd(),
            ssthresh: p.window.ssthresh(),
            recent_timeouts: p.timeouts().take_while(is_recent).count() as u64,
            last_timeout: p.timeouts().next(),
        }
    }

    /// As [`LossRecovery::may_take`](crate::LossRecovery::may_take). A path with nothing outstanding may always send something.
    pub(crate) fn may_take(&self, path: u8, user_bytes: u64, peer: PeerWindow) -> bool {
        let Some(cmt) = self.cmt() else { return true };
        let under_way = self.outstanding.on(path).user_bytes;
        if under_way == 0 {
            return true;
        }
        let is_active = |path: &&Path| path.reach.state() == crate::PathState::Active;
        let parts = self.paths.iter().filter(is_active).count().max(1) as u64;
        let has_share = !cmt.split_buffer || under_way + user_bytes <= peer.a_rwnd / parts;
        let blocks = || {
            let meanwhile = self.paths.bytes_of_faster(path);
            let needed = u128::from(under_way + user_bytes) + meanwhile;
            meanwhile > 0 && needed > u128::from(peer.buffer)
        };
        has_share && !(cmt.avoid_blocking && blocks())
    }

    /// Finds the earliest outstanding unit of each path that was sent once (CUC). Each unit is visited once per path.
    pub(crate) fn find_pseudo_cumulative(&mut self) {
        if !self.cmt().is_some_and(|cmt| cmt.cwnd_update) {
            return;
        }
        for path in self.paths.numbers() {
            let is_it = |u: &Unit<P>| {
                u.last().path == path && u.is_first_transmission() && u.is_outstanding()
            };
            let Some(multipath) = &self.paths[path].multipath else { continue };
            let from = multipath.earliest_first_sent;
            let found = self.outstanding.units_from(from).find(|(_, unit)| is_it(unit));
            let found = found.map_or(self.outstanding.next_unit(), |(unit, _)| unit);
            if let Some(multipath) = &mut self.paths[path].multipath {
                multipath.earliest_first_sent = found;
            }
        }
    }
}

/// The peer's receive window.
#[derive(Clone, Copy, Debug)]
pub struct PeerWindow {
    /// The window advertised last (a_rwnd), in bytes.
    pub a_rwnd: u64,
    /// The largest window ever advertised, that is, the peer's receive buffer, in bytes.
    pub buffer: u64,
}
