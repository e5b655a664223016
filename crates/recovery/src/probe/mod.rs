//! The probe timer of thin streams (compare RFC 9002 §6.2): a packet whose ACK does not come in time is retransmitted.
//!
//! Each packet has its own timeout, which runs from when it was sent, or from the latest of its redundant copies if enough of
//! these were bundled with newer packets. Unlike QUIC's PTO, it does not restart when later packets are sent. The timer covers
//! only streams that are thin while the window has room: a sender that fills its window also fills queues, and has ACKs of
//! later packets. With `by_stream`, it also covers a thin stream beside others that fill the window. A packet that the timer
//! covers is declared lost by it or T3-rtx only, unless the receiver delays ACKs: then later packets may show a loss sooner.
//!
//! # Silent paths
//! A path without ACKs for [`ProbeConfig::silence`] is silent. Instead of a timeout per packet, one probe is sent per
//! timeout, at most every 100 ms: everything outstanding is declared lost, and one packet of it is sent, with new data (SCTP). So
//! transmission resumes within a round trip of the end of an outage, however long it was. After ten seconds, one probe
//! is sent per second. T3-rtx runs as well; it backs off and counts errors as if there were no probes.

mod expiry;
mod rtt_samples;
mod unanswered;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use rexmit_core::Instant;
use rexmit_deadline::{OtherPath, RoundTrip, Ways};

pub(crate) use rtt_samples::Round;
use rtt_samples::{Micros, RttSamples};
use unanswered::Report;
pub use unanswered::{Share, Unanswered};

use crate::Echo;
use crate::ProbeConfig;
use crate::outstanding::{AckedUnit, FirstTransmission, PacketNumber, Unit};
use crate::paths::PerPath;
use crate::state::State;

/// At most this many packets are searched for the earliest one that the timer covers; some may be of streams that are not thin.
const MAX_LOOK_AHEAD: usize = 64;
/// Rounds of unanswered probes with a constant timeout; each further round doubles it. On a short path,
/// hundreds of rounds would fit into the silence that is tolerated.
const STEADY_ROUNDS: u32 = 8;
/// After n unanswered rounds the next round takes at least 2ⁿ times this, up to [`MOST_PACE`]: on a short
/// path, a silence may only mean that the peer's host is busy.
const LEAST_PACE: Duration = Duration::from_millis(5);
const MOST_PACE: Duration = Duration::from_millis(40);
/// The timeout is doubled at most this many times.
const MOST_DOUBLINGS: u32 = 16;
/// A unit that was transmitted this many times is left to T3-rtx: it may never arrive, for example because it
/// is too large for the path.
pub(crate) const MOST_TRANSMISSIONS: u16 = 16;
/// A path counts as silent after at least this many timeouts without an ACK, however long each is.
const MIN_SILENT_TIMEOUTS: u32 = 4;
/// Before there are enough samples, a plan takes a round trip to be longer than the first ones by this part: copies are sent in time
/// where the timer has a wide margin.
const COLD_PLAN_MARGIN: u32 = 16;
/// The least time between probes of a silent path.
const SILENT_PACE: Duration = Duration::from_millis(100);
/// After this time without an ACK (an outage of ten seconds that began after the last ACK), probes of a
/// silent path are [`LONG_SILENT_PACE`] apart.
const LONG_SILENCE: Duration = Duration::from_millis(10_500);
const LONG_SILENT_PACE: Duration = Duration::from_secs(1);
/// How long most receivers delay an ACK at most.
const DELAYED_ACK: Duration = Duration::from_millis(200);
/// The resolution of the timer of delayed ACKs.
const TIMER_TICK: Duration = Duration::from_millis(10);
/// An ACK over a cold path that takes so much longer than is known of it shows that a host is busy: half of the least margin
/// there.
const SLOW: Duration = Duration::from_millis(30);
/// The timeout of a probe of a silent path exceeds the mean round trip by this at most.
const MOST_SILENT_MARGIN: Duration = Duration::from_millis(50);

/// Packets that were in flight, in the order in which they, or redundant copies of their units, were sent.
type Queue = VecDeque<(Instant, PacketNumber)>;

#[derive(Debug, Default)]
pub(crate) struct ProbeTimer {
    paths: PerPath<PathProbe>,
    /// Whether a path ever had the timer: otherwise there is nothing to be run.
    pub(crate) is_on: bool,
}

/// The packets that the timer of a path covers.
#[derive(Debug, Default)]
struct Covered {
    /// The packets that the timer covers, by [`Round`]. All packets of a round have the same timeout, so that
    /// the first in each queue expires first.
    queues: [Queue; 2],
    /// Packets whose timer has expired, and whose retransmission waits for the ACK of a later one, at most until then.
    waiting: Vec<(Instant, PacketNumber, Round)>,
}

#[derive(Debug)]
struct PathProbe {
    samples: RttSamples,
    covered: Covered,
    /// When the timer of the earliest packet expires; far in the future if it is not armed.
    deadline: Instant,
    /// When data was last acknowledged, or when data was sent with nothing else in flight, whichever is
    /// later; far in the future before either.
    last_ack_at: Instant,
    /// Rounds of probes since the last ACK of a first transmission, each of one timeout, however many packets it
    /// retransmits; and when the latest began.
    unanswered_rounds: u32,
    round_began_at: Instant,
    /// When the path is probed next as a whole, because the last ACK is too long ago; `None` while it is not silent.
    silent: Option<Instant>,
    /// Probes of the silent path so far.
    silent_probes: u16,
    /// ACKs in time and late ones that were not yet reported to [`Unanswered`].
    unreported: Report,
    /// When the latest packet was sent.
    last_sent_at: Instant,
    /// The timer does not expire before this time, because its last expiry came late or most connections are unanswered.
    not_before: Instant,
    /// The first timeout of the packets whose probes are delayed because the timer was late or most connections are
    /// unanswered; far in the future without such packets.
    first_due_at: Instant,
    /// Whether the stream of the last acknowledged unit was thin. If not, T3-rtx alone retransmits while the path is silent.
    was_thin: bool,
    ack: AckedPackets,
    /// The time from the latest transmission of the handshake's packet to its answer: the only one that certainly comes
    /// at once if the receiver delays ACKs.
    setup_rtt: Option<Micros>,
}

/// The packets of a path that the current ACK acknowledges.
#[derive(Clone, Copy, Debug, Default)]
struct AckedPackets {
    /// The number of packets.
    packets: u32,
    packet: Option<PacketNumber>,
    /// When the newest of them was sent.
    newest: Option<Instant>,
    /// When the newest and the oldest of those were sent whose first transmission was acknowledged for certain.
    certain: Option<(Instant, Instant)>,
    has_first: bool,
}

impl Default for PathProbe {
    fn default() -> Self {
        Self {
            samples: RttSamples::default(),
            covered: Covered::default(),
            deadline: Instant::FAR_FUTURE,
            last_ack_at: Instant::FAR_FUTURE,
            unanswered_rounds: 0,
            round_began_at: Instant::ZERO,
            silent: None,
            silent_probes: 0,
            unreported: Report::default(),
            last_sent_at: Instant::ZERO,
            not_before: Instant::ZERO,
            first_due_at: Instant::FAR_FUTURE,
            was_thin: true,
            ack: AckedPackets::default(),
            setup_rtt: None,
        }
    }
}

/// Paths.
impl ProbeTimer {
    pub(crate) fn enable(&mut self, path: u8) {
        self.is_on = true;
        self.paths.get_or_insert_with(path, PathProbe::default);
    }

    /// Forgets what was measured on `path`, because its packets now take another route. Data in flight stays
    /// covered by the timer.
    pub(crate) fn renew_path(&mut self, now: Instant, path: u8) {
        if let Some(probe) = self.paths.get_mut(path) {
            *probe =
                PathProbe { covered: std::mem::take(&mut probe.covered), ..Default::default() };
            probe.begin(now);
        }
    }

    /// Disarms all timers, when nothing is in flight any more.
    pub(crate) fn clear(&mut self) {
        for probe in self.paths.iter_mut() {
            probe.covered.queues.iter_mut().for_each(VecDeque::clear);
            probe.covered.waiting.clear();
            probe.deadline = Instant::FAR_FUTURE;
            probe.begin(Instant::FAR_FUTURE);
        }
    }

    /// Releases memory that is not in use.
    pub(crate) fn release_memory(&mut self) {
        for probe in self.paths.iter_mut() {
            probe.covered.queues.iter_mut().for_each(VecDeque::shrink_to_fit);
            probe.covered.waiting.shrink_to_fit();
        }
    }

    #[inline]
    pub(crate) fn deadline(&self, path: u8) -> Instant {
        self.paths.get(path).map_or(Instant::FAR_FUTURE, |probe| probe.deadline)
    }

    /// The round trip of `path` for units of `group`, before the first samples that of the handshake; `None` while nothing is
    /// known, or the timer is not for them.
    pub(crate) fn round_trip<P>(&self, state: &State<P>, path: u8, group: u8) -> Option<RoundTrip> {
        let timeout = self.timeout(state, path, group, Round::First);
        let probe = self.paths.get(path)?;
        if let Some(at_first) = probe.setup_rtt().filter(|_| probe.samples.shortest().is_none()) {
            let timeout = at_first + at_first / COLD_PLAN_MARGIN;
            return Some(RoundTrip { is_cold: true, least: at_first / 2, mean: at_first, timeout });
        }
        let (is_cold, mean) = (probe.samples.is_cold(), probe.samples.mean());
        let timeout = if is_cold { mean + mean / COLD_PLAN_MARGIN } else { timeout? };
        Some(RoundTrip { is_cold, least: probe.rtt_lower_bound()?, mean, timeout })
    }

    /// The round trip of `path`, and the measurements of the path that its units take when they are sent again.
    pub(crate) fn ways<P>(&self, state: &State<P>, path: u8, group: u8) -> Option<Ways> {
        let rtt = self.round_trip(state, path, group)?;
        let again = state.copy_path(path);
        let diversity = state.paths.diversity().filter(|_| again != path);
        let other = diversity.map(|diversity| OtherPath {
            rtt: self.round_trip(state, again, group).unwrap_or(rtt),
            loss_after_loss: diversity.loss_after(path, again).max(diversity.loss(again)),
        });
        Some(Ways { rtt, other })
    }

    /// The shortest round trip of `path` that is remembered.
    pub(crate) fn shortest_rtt(&self, path: u8) -> Option<Duration> {
        self.paths.get(path)?.samples.shortest()
    }

    /// Called when a new unit is sent over `path`, where nothing was outstanding.
    pub(crate) fn on_first_outstanding(&mut self, now: Instant, path: u8) {
        if let Some(probe) = self.paths.get_mut(path) {
            probe.begin(now);
        }
    }

    /// Called when units come from another path, where nothing was outstanding, and are sent next.
    pub(crate) fn on_moved_to(&mut self, path: u8) {
        self.on_first_outstanding(Instant::FAR_FUTURE, path);
    }

    /// Called when a round trip over `path` was measured by other means (a HEARTBEAT).
    pub(crate) fn on_rtt(&mut self, path: u8, rtt: Duration) {
        if let Some(probe) = self.paths.get_mut(path) {
            probe.samples.on_sample(rtt);
        }
    }

    /// Records the time from the latest transmission of the handshake's packet over `path` to its answer. It is kept
    /// apart from the samples, which are made of data alone: data is answered only after the delay of delayed ACKs.
    pub(crate) fn on_setup_rtt(&mut self, path: u8, rtt: Duration) {
        if let Some(probe) = self.paths.get_mut(path) {
            probe.setup_rtt = Some(rtt.into());
        }
    }
}

/// Timeouts.
impl ProbeTimer {
    /// The probe timeout of a packet over `path` with units of `group`; `None` while the timer is not for it.
    fn timeout<P>(&self, state: &State<P>, path: u8, group: u8, round: Round) -> Option<Duration> {
        let probe = self.paths.get(path).filter(|probe| probe.silent.is_none())?;
        let timer = state.groups.config(group).probe_timer.as_ref()?;
        let has_room = state.shares_path(path, group) || state.has_window_for(path);
        if !state.is_thin(group) || !has_room {
            return None;
        }
        let steady = if state.yields(path, group) { 0 } else { STEADY_ROUNDS };
        let doublings = probe.unanswered_rounds.saturating_sub(steady).min(MOST_DOUBLINGS);
        let pace = match probe.unanswered_rounds {
            0 => Duration::ZERO,
            rounds => MOST_PACE.min(LEAST_PACE * (1 << rounds.min(STEADY_ROUNDS))),
        };
        Some((probe.timeout(timer, round)? * (1 << doublings)).max(pace))
    }

    fn timeout_of<P>(
        &self,
        state: &State<P>,
        path: u8,
        groups: u32,
        round: Round,
    ) -> Option<Duration> {
        let mut probed = groups & state.groups.probed;
        while probed != 0 {
            let timeout = self.timeout(state, path, probed.trailing_zeros() as u8, round);
            if timeout.is_some() {
                return timeout;
            }
            probed &= probed - 1;
        }
        None
    }

    /// The least timeout of T3-rtx of `path` while the probe timer covers its data, so that T3-rtx expires last.
    pub(crate) fn least_t3<P>(&self, state: &State<P>, path: u8) -> Option<Duration> {
        let probe = self.paths.get(path)?;
        let timer = state.groups.config(state.group_of_earliest(path)).probe_timer.as_ref()?;
        probe.timeout(timer, Round::First).map(|timeout| 2 * timeout)
    }

    /// Whether only this timer and T3-rtx may declare a packet with units of these `groups` over `path` lost
    /// now. Not if the receiver delays ACKs: then ACKs of later packets show a loss sooner.
    pub(crate) fn covers<P>(&self, state: &State<P>, path: u8, groups: u32) -> bool {
        let probe = self.paths.get(path);
        probe.is_some_and(|probe| !probe.samples.are_delayed())
            && self.timeout_of(state, path, groups, Round::First).is_some()
    }

    /// Whether packets with new data over `path` carry copies of what was retransmitted, because two rounds of probes are
    /// unanswered: in an outage, each packet then is a probe, too. After one round, the answer is often on its way.
    #[inline]
    pub(crate) fn bundles_unanswered(&self, path: u8) -> bool {
        self.paths.get(path).is_some_and(|probe| probe.unanswered_rounds > 1)
    }

    /// Whether `path` is silent: nothing was acknowledged for too long.
    pub(crate) fn is_silent(&self, path: u8) -> bool {
        self.paths.get(path).is_some_and(|probe| probe.silent.is_some())
    }

    /// When nothing was acknowledged over `path` for longer than the timer tolerates, if anything is outstanding.
    fn silent_from<P>(&self, path: u8, state: &State<P>) -> Option<Instant> {
        let probe = self.paths.get(path)?;
        let on_path = state.outstanding.on(path);
        if on_path.outstanding == 0 || !probe.was_thin || probe.last_ack_at == Instant::FAR_FUTURE {
            return None;
        }
        // What probes a closed window is left to T3-rtx.
        if state.outstanding.unit(on_path.earliest).is_some_and(|unit| unit.is_probe) {
            return None;
        }
        let timer = state.groups.config(state.group_of_earliest(path)).probe_timer.as_ref()?;
        let timeout = probe.timeout(timer, Round::First)?;
        Some(probe.last_ack_at + timer.silence.max(MIN_SILENT_TIMEOUTS * timeout))
    }

    /// Whether `path` is silent from now on.
    fn is_falling_silent<P>(&self, now: Instant, path: u8, state: &State<P>) -> bool {
        // Asked with every packet: the timeout is not looked up before the least silence has passed.
        let Some(probe) = self.paths.get(path) else { return false };
        let timer = state.groups.config(state.group_of_earliest(path)).probe_timer.as_ref();
        timer.is_some_and(|timer| now - probe.last_ack_at >= timer.silence)
            && self.silent_from(path, state).is_some_and(|from| from <= now)
    }

    /// The time between two probes of `path` while it is silent.
    fn silent_pace<P>(&self, now: Instant, path: u8, state: &State<P>) -> Duration {
        let Some(probe) = self.paths.get(path) else { return LONG_SILENT_PACE };
        let timer = state.groups.config(state.group_of_earliest(path)).probe_timer.as_ref();
        let timeout = timer.and_then(|timer| probe.timeout(timer, Round::First));
        let timeout = timeout.unwrap_or_default().min(probe.mean() + MOST_SILENT_MARGIN);
        if now - probe.last_ack_at >= LONG_SILENCE {
            return timeout.max(LONG_SILENT_PACE);
        }
        let doublings = if probe.samples.is_cold() { probe.silent_probes.into() } else { 0 };
        let pace = SILENT_PACE * (1 << doublings.min(STEADY_ROUNDS));
        timeout.max(pace.min(LONG_SILENT_PACE))
    }
}

/// Packets.
impl ProbeTimer {
    /// Called when the newest packet is sent over `path`.
    pub(crate) fn on_sent<P>(&mut self, now: Instant, path: u8, state: &State<P>) {
        // What moves to a path that failed before is sent into its silence: no timer has to expire first.
        let is_silent = self.is_silent(path) || self.is_falling_silent(now, path, state);
        let pace = is_silent.then(|| self.silent_pace(now, path, state));
        if let Some(probe) = self.paths.get_mut(path) {
            probe.last_sent_at = now;
            probe.silent = pace.map(|pace| now + pace);
        }
        let number = state.outstanding.newest_packet();
        let probed = state.groups.probed;
        let packet = state.outstanding.packets().packet(number);
        if probed == 0 || packet.is_none_or(|packet| packet.groups & probed == 0) {
            return;
        }
        let round = round_of(state, number);
        let Some(probe) = self.paths.get_mut(path) else { return };
        probe.last_ack_at = probe.last_ack_at.min(now);
        probe.covered.queues[round as usize].push_back((now, number));
    }

    /// Called when a redundant copy of `unit` is sent in another packet: the timer of the packet it was in
    /// does not expire before that of the copy.
    pub(crate) fn on_copied<P>(&mut self, now: Instant, unit: &Unit<P>, state: &State<P>) {
        let packet = unit.last().packet;
        let round = round_of(state, packet);
        let Some(probe) = self.paths.get_mut(unit.path) else { return };
        let queue = &mut probe.covered.queues[round as usize];
        if queue.back() != Some(&(now, packet)) {
            queue.push_back((now, packet));
        }
    }

    /// Whether a copy of `unit` restarts T3-rtx, as if the unit were retransmitted; on a dead path it does not, or
    /// that would go on for ever.
    pub(crate) fn restarts_t3<P>(&self, unit: u64, path: u8, state: &State<P>) -> bool {
        self.paths.get(path).is_some()
            && state.groups.probed != 0
            && state.outstanding.on(path).earliest == unit
            && !self.is_silent(path)
    }

    /// Sees when the timer of `path` expires next.
    pub(crate) fn renew<P>(&mut self, path: u8, state: &State<P>) {
        let mut deadline = Instant::FAR_FUTURE;
        for round in Round::BOTH {
            let Some(probe) = self.paths.get_mut(path) else { return };
            let queue = &mut probe.covered.queues[round as usize];
            while queue.front().is_some_and(|&(_, it)| groups_in_flight(state, path, it).is_none())
            {
                queue.pop_front();
            }
            deadline = deadline.min(self.first_due(path, round, state));
        }
        if let Some(probe) = self.paths.get_mut(path) {
            probe.covered.waiting.retain(|&(_, it, _)| groups_in_flight(state, path, it).is_some());
            deadline =
                probe.covered.waiting.iter().fold(deadline, |first, &(at, ..)| first.min(at));
        }
        let silent = self.paths.get(path).and_then(|probe| probe.silent);
        let silent = silent.filter(|_| state.outstanding.on(path).outstanding > 0);
        let silent = silent.or_else(|| self.silent_from(path, state));
        deadline = silent.map_or(deadline, |silent| deadline.min(silent));
        if let Some(probe) = self.paths.get_mut(path) {
            let is_put_off = deadline < probe.not_before;
            probe.deadline = if is_put_off { probe.not_before } else { deadline };
        }
    }

    /// Updates `unanswered` with the state of this connection.
    #[inline]
    pub(crate) fn report(&mut self, now: Instant, unanswered: &mut Unanswered, share: &mut Share) {
        let is_unanswered = self.paths.iter().any(PathProbe::is_unanswered);
        let has_news = |probe: &PathProbe| probe.unreported != Report::default();
        if is_unanswered == share.0 && !self.paths.iter().any(has_news) {
            return;
        }
        let mut report = Report { is_unanswered, ..Report::default() };
        for probe in self.paths.iter_mut() {
            let Report { answers, slow, late, .. } = std::mem::take(&mut probe.unreported);
            report.answers = report.answers.saturating_add(answers);
            report.slow = report.slow.saturating_add(slow);
            report.late = report.late.max(late);
        }
        unanswered.update(now, share, report);
    }

    fn first_due<P>(&self, path: u8, round: Round, state: &State<P>) -> Instant {
        let mut deadline = Instant::FAR_FUTURE;
        let queue = self
            .paths
            .get(path)
            .into_iter()
            .flat_map(|probe| &probe.covered.queues[round as usize]);
        for &(at, packet) in queue.take(MAX_LOOK_AHEAD) {
            let Some(groups) = groups_in_flight(state, path, packet) else { continue };
            let timeout = self.timeout_of(state, path, groups, round);
            deadline = timeout.map_or(deadline, |timeout| deadline.min(at + timeout));
            if state.groups.is_one() {
                break; // All wait for the same time, so that the first is the earliest.
            }
        }
        deadline
    }
}

/// ACKs.
impl ProbeTimer {
    /// Called when a unit of a group with a probe timer is acknowledged for the first time. `before_copies`: when it was sent, if the ACK came before its copies
    /// could be answered.
    pub(crate) fn on_acked<P>(
        &mut self,
        now: Instant,
        acked: &AckedUnit,
        before_copies: Option<Instant>,
        state: &mut State<P>,
    ) {
        let path = acked.last.path;
        let Some(probe) = self.paths.get_mut(path) else { return };
        probe.was_thin = state.is_thin(acked.group);
        if !probe.was_thin {
            return;
        }
        let is_first = acked.is_first_transmission;
        let packet = acked.last.packet;
        let is_packet = probe.ack.packet.replace(packet) != Some(packet);
        probe.ack.packets += u32::from(is_packet);
        probe.ack.has_first |= is_first;
        if is_packet && is_first {
            probe.samples.on_first_awaited(false);
        }
        let certain = match (is_first, acked.is_copied) {
            _ if before_copies.is_some() => before_copies,
            (true, false) => acked.sent_at,
            (true, true) => None,
            // It was acknowledged sooner than anything is: that was the transmission before.
            (false, _) => probe.rtt_lower_bound().and_then(|shortest| {
                let repeats = state.outstanding.repeats_mut(acked.unit)?;
                repeats.acked_before_retransmission(now, path, shortest)
            }),
        };
        match certain {
            Some(sent_at) => probe.ack.note_certain(sent_at),
            None => probe.ack.newest = probe.ack.newest.max(acked.sent_at),
        }
    }

    /// Called when a unit with redundant copies was acknowledged by its own packet, which was sent at `sent_at`.
    pub(crate) fn on_copied_acked(&mut self, path: u8, sent_at: Option<Instant>) {
        if let (Some(probe), Some(sent_at)) = (self.paths.get_mut(path), sent_at) {
            probe.ack.note_certain(sent_at);
        }
    }

    pub(crate) fn on_abandoned_acked(&mut self, path: u8, sent_at: Instant) {
        if let Some(probe) = self.paths.get_mut(path) {
            probe.ack.packets += 1;
            probe.ack.has_first = true;
            probe.ack.note_certain(sent_at);
        }
    }

    /// Whether an ACK that comes now cannot be an answer to something that was sent over `path` then, if it was.
    pub(crate) fn precedes_any_answer(
        &self,
        now: Instant,
        path: u8,
        sent: Option<Instant>,
    ) -> bool {
        let Some(sent) = sent else { return true };
        let shortest = self.paths.get(path).and_then(PathProbe::rtt_lower_bound);
        shortest.is_some_and(|shortest| now - sent < shortest)
    }

    /// Called when a packet was retransmitted although its ACK was on the way; `rtt` is what it took.
    pub(crate) fn on_late_ack(&mut self, path: u8, rtt: Duration) {
        if let Some(probe) = self.paths.get_mut(path)
            && !probe.samples.are_delayed()
        {
            probe.samples.on_sample(rtt);
            probe.unreported.late = probe.unreported.late.max(Some(rtt.into()));
        }
    }

    /// Called after all units of an ACK were processed. `has_acked`: some of them were last sent over `path`. `is_ambiguous`: the
    /// ACK reports duplicates, so that it answers one of them, and may be much later than the ACKs of what it acknowledges, which
    /// were lost. Then it is no sample.
    pub(crate) fn learn(
        &mut self,
        now: Instant,
        path: u8,
        has_acked: bool,
        is_ambiguous: bool,
        echo: Option<Echo>,
    ) {
        if let Some(probe) = self.paths.get_mut(path) {
            if is_ambiguous {
                probe.ack.certain = None;
            }
            let in_time = u32::from(has_acked && !probe.is_unanswered());
            let is_slow = probe.is_slow(now);
            let Report { answers, slow, .. } = &mut probe.unreported;
            let count = if is_slow { slow } else { answers };
            *count = count.saturating_add(in_time);
            probe.learn(now, has_acked, echo);
        }
    }

    /// Called when a duplicate report shows that a unit which the timer retransmitted had arrived: its ACK
    /// was late, or was lost. Returns whether it was lost, as far as is known.
    pub(crate) fn on_spurious(&mut self, now: Instant, first: FirstTransmission) -> bool {
        if first.is_answered {
            return false;
        }
        if let Some(probe) = self.paths.get_mut(first.path) {
            probe.samples.on_ack_outcome(true);
            if probe.samples.are_delayed() {
                probe.samples.on_sample(first.acked_at.unwrap_or(now) - first.sent_at);
            }
        }
        true
    }
}

impl PathProbe {
    /// Called when data is sent with nothing else outstanding on the path.
    const fn begin(&mut self, now: Instant) {
        self.last_ack_at = now;
        self.unanswered_rounds = 0;
        self.silent = None;
        self.first_due_at = Instant::FAR_FUTURE;
    }

    /// Whether a probe was due since the last ACK. Not for a silent path, whose connection may have ended.
    fn is_unanswered(&self) -> bool {
        self.silent.is_none()
            && (self.unanswered_rounds > 0 || self.first_due_at < Instant::FAR_FUTURE)
    }

    /// Whether the ACK that comes now took much longer than is known of a cold path.
    fn is_slow(&self, now: Instant) -> bool {
        let known = self.mean();
        let is_cold = self.samples.is_cold() && !known.is_zero();
        is_cold && self.ack.certain.is_some_and(|(newest, _)| now - newest >= known + SLOW)
    }

    fn learn(&mut self, now: Instant, has_acked: bool, echo: Option<Echo>) {
        let is_late = self.is_unanswered();
        if has_acked {
            self.last_ack_at = now;
            self.silent = None;
            self.first_due_at = Instant::FAR_FUTURE;
        }
        // Others may be ACKs of what was retransmitted too early, and show nothing of how early.
        if self.ack.has_first || self.ack.certain.is_some() {
            self.unanswered_rounds = 0;
        }
        let ack = std::mem::take(&mut self.ack);
        if ack.packets == 0 {
            return;
        }
        for (until, ..) in &mut self.covered.waiting {
            *until = now;
        }
        self.samples.on_ack_outcome(false);
        // A receiver that delays ACKs does so for every second packet (RFC 9260 §6.2): others were lost.
        if ack.packets > 1 && echo.is_none() {
            self.samples.on_ack_outcome(true);
        }
        let Some((newest, oldest)) = ack.certain else { return };
        let is_alone = Some(newest) == ack.newest;
        if is_alone {
            self.samples.on_sample(now - newest);
        }
        if is_late {
            self.unreported.late = self.unreported.late.max(Some((now - newest).into()));
        }
        let is_delayed = match echo {
            // A retransmission may be what was acknowledged: the receiver answers a duplicate at once.
            Some(Echo { sent_at, tick }) => {
                is_alone && oldest <= sent_at + tick && sent_at <= oldest + tick
            }
            None => self.samples.are_delayed(),
        };
        if is_delayed && (oldest < newest || !is_alone) {
            self.samples.on_sample(now - oldest);
        }
    }

    /// The timeout of a transmission of `round`. Before the first sample it is that of a new TCP connection (RFC 6298
    /// §2.2), with room for a delayed ACK; the handshake's RTT alone does not show whether ACKs are delayed.
    fn timeout(&self, timer: &ProbeConfig, round: Round) -> Option<Duration> {
        let by_setup = || self.setup_rtt().map(|rtt| (3 * rtt).max(rtt + DELAYED_ACK) + TIMER_TICK);
        self.samples.timeout(timer, round).or_else(by_setup)
    }

    fn setup_rtt(&self) -> Option<Duration> {
        self.setup_rtt.map(Duration::from)
    }

    /// The mean round trip as far as it is known; zero if it is not.
    fn mean(&self) -> Duration {
        self.samples
            .shortest()
            .and(Some(self.samples.mean()))
            .or(self.setup_rtt())
            .unwrap_or_default()
    }

    /// A lower bound of the round trip time. If all samples may contain the ACK delay, it is taken from that of the handshake.
    fn rtt_lower_bound(&self) -> Option<Duration> {
        let at_once = self.setup_rtt().map_or(Duration::MAX, |rtt| rtt - rtt / 4);
        self.samples.rtt_lower_bound().map(|shortest| shortest.min(at_once))
    }
}

impl AckedPackets {
    fn note_certain(&mut self, sent_at: Instant) {
        self.certain = Some(match self.certain {
            None => (sent_at, sent_at),
            Some((newest, oldest)) => (newest.max(sent_at), oldest.min(sent_at)),
        });
        self.newest = self.newest.max(Some(sent_at));
    }
}

/// The round of a packet in the probe timer. It follows from the packet's highest unit, which is new data if there is any.
fn round_of<P>(state: &State<P>, packet: PacketNumber) -> Round {
    let packet = state.outstanding.packets().packet(packet);
    let highest = packet.and_then(|packet| state.outstanding.unit(packet.highest));
    match highest.is_some_and(|unit| unit.is_fast_retransmitted) {
        false => Round::First,
        true => Round::Again,
    }
}

/// The groups of a packet that is in flight on `path`, one bit each.
fn groups_in_flight<P>(state: &State<P>, path: u8, packet: PacketNumber) -> Option<u32> {
    let packet = state.outstanding.packets().packet(packet)?;
    packet.is_in_flight_on(path).then_some(packet.groups)
}
