//! The recovery timer: what is overdue leaves again. See [`crate::recovery_timer`].
//!
//! A packet is watched from when it leaves; one whose units newer packets carry enough copies of, from
//! when the latest of these left. The timer runs for the earliest of them, whatever leaves later, and only
//! for streams that are thin while the window has room: a sender that fills its window fills queues,
//! too, and has later packets to go by. What the timer watches nothing else judges but T3-rtx, unless the
//! receiver delays its answers: then later packets may tell sooner. What it learns of acknowledgements is in
//! `answers`.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

use rexmit_core::Instant;
use rexmit_core::trace::{SendCause, Tracer};

use super::answers::Heard;
use super::spaced::Planned;
use super::{LossRecovery, UnitState};
use crate::PacketNumber;
use crate::ledger::Fate;
use crate::recovery_timer::{AnswerTimes, Round};

/// Packets looked at to find the earliest that the timer is for, at most: of those before it some may
/// be of streams that are not thin.
const MAX_LOOK_AHEAD: usize = 64;
/// Rounds of repetitions in a row without an answer before each doubles the patience: where the round trip
/// is short, a silence that is borne would else hold hundreds of them.
const STEADY_ROUNDS: u32 = 8;
/// A unit that left so often is left to T3-rtx: others may arrive while it never will, as one that is
/// too large for the path.
const MOST_TRANSMISSIONS: u16 = 16;
/// A silence is borne for as many answers as this, however long each takes.
const MIN_SILENT_ANSWERS: u32 = 4;

/// Packets in flight, and some that are not, by when they or copies of what is in them left.
type Queue = VecDeque<(Instant, PacketNumber)>;

/// What is kept of a path for the recovery timer and for spaced copies.
#[derive(Debug)]
pub(super) struct Watch {
    pub(super) answers: AnswerTimes,
    /// What is watched, by [`Round`]: each waits for its own time, so that in each the first is due first.
    queues: [Queue; 2],
    /// When a packet is overdue, or a copy due; [`Instant::FAR_FUTURE`] if neither will be.
    pub(super) deadline: Instant,
    /// When something was last acknowledged; with nothing in flight, when something left, and before
    /// that [`Instant::FAR_FUTURE`].
    pub(super) heard_at: Instant,
    /// Rounds of repetitions since an answer told how long answers take, and when the latest began: each
    /// takes as long as an answer is waited for, however many packets it repeats.
    pub(super) unheard: u32,
    round_began_at: Instant,
    /// That is too long ago.
    pub(super) is_resting: bool,
    pub(super) heard: Heard,
    /// The round trip of the setup, where only that was answered at once for certain.
    pub(super) at_once: Option<Duration>,
    /// Copies that are to leave, by when.
    pub(super) planned: VecDeque<Planned>,
    /// Copies that may leave now.
    pub(super) ready: VecDeque<Planned>,
    /// The copies of the last new units, if nothing new follows.
    pub(super) last: Option<(Instant, Range<u64>)>,
}

impl Default for Watch {
    fn default() -> Self {
        Self {
            answers: AnswerTimes::default(),
            queues: <[Queue; 2]>::default(),
            deadline: Instant::FAR_FUTURE,
            heard_at: Instant::FAR_FUTURE,
            unheard: 0,
            round_began_at: Instant::ZERO,
            is_resting: false,
            heard: Heard::default(),
            at_once: None,
            planned: VecDeque::new(),
            ready: VecDeque::new(),
            last: None,
        }
    }
}

impl Watch {
    /// Something leaves, and nothing was outstanding.
    pub(super) const fn begin(&mut self, now: Instant) {
        self.heard_at = now;
        self.unheard = 0;
        self.is_resting = false;
    }

    /// The same of what comes from another path, and leaves next.
    pub(super) const fn begin_with_next(&mut self) {
        self.begin(Instant::FAR_FUTURE);
    }

    /// The path leads another way, of which nothing is known. What is in flight is watched on.
    pub(super) fn renew(&mut self, now: Instant) {
        *self = Self { queues: std::mem::take(&mut self.queues), ..Self::default() };
        self.begin(now);
    }

    /// Nothing is in flight any more.
    pub(super) fn clear(&mut self) {
        self.queues.iter_mut().for_each(VecDeque::clear);
        self.planned.clear();
        self.ready.clear();
        self.last = None;
        self.deadline = Instant::FAR_FUTURE;
    }
}

impl<P> LossRecovery<P> {
    /// How long answers over `path` to what is of `group` are waited for; `None` while the timer is not
    /// for it.
    fn patience(&self, path: u8, group: u8, round: Round) -> Option<Duration> {
        let watch = self.path(path).watch.as_ref().filter(|watch| !watch.is_resting)?;
        let timer = &self.groups.of(group).thin.recovery_timer;
        let is_for_it = timer.is_on && self.is_thin(group) && self.has_window_for(path);
        let steady = if self.yields(path, group) { 0 } else { STEADY_ROUNDS };
        let doublings = watch.unheard.saturating_sub(steady).min(16);
        is_for_it.then(|| Some(watch.answers.patience(timer, round)? * (1 << doublings)))?
    }

    /// Whether the window of `path` holds more than what is in flight.
    pub(super) fn has_window_for(&self, path: u8) -> bool {
        self.path(path).window.has_room(self.ledger.flight(path).bytes)
    }

    /// How long T3-rtx waits at least for what the timer is for, so that it is what comes last.
    pub(super) fn patience_of_t3(&self, path: u8) -> Option<Duration> {
        let watch = self.path(path).watch.as_ref()?;
        let timer = &self.groups.of(self.group_of_earliest(path)).thin.recovery_timer;
        timer.is_on.then(|| watch.answers.patience(timer, Round::First).map(|it| 2 * it))?
    }

    /// Whether the timer, and nothing else but T3-rtx, judges `unit` now.
    pub(super) fn is_timed(&self, unit: u64) -> bool {
        self.groups.timed() != 0
            && self.unit(unit).is_some_and(|unit| self.is_timed_with(unit.path, 1 << unit.group))
    }

    /// The same of a packet over `path` with units of these groups. Where answers are delayed, what
    /// later packets tell comes sooner.
    pub(super) fn is_timed_with(&self, path: u8, groups: u32) -> bool {
        let watch = self.path(path).watch.as_ref();
        watch.is_some_and(|watch| !watch.answers.are_delayed())
            && self.patience_with(path, groups, Round::First).is_some()
    }

    fn patience_with(&self, path: u8, groups: u32, round: Round) -> Option<Duration> {
        let mut timed = groups & self.groups.timed();
        while timed != 0 {
            let patience = self.patience(path, timed.trailing_zeros() as u8, round);
            if patience.is_some() {
                return patience;
            }
            timed &= timed - 1;
        }
        None
    }

    /// A packet with units of `groups` leaves over `path`.
    #[inline]
    pub(super) fn watch_packet(&mut self, now: Instant, path: u8, packet: PacketNumber) {
        let timed = self.groups.timed();
        let is_timed = |packet: &crate::SentPacket| packet.groups() & timed != 0;
        if timed != 0 && self.ledger.packet(packet).is_some_and(is_timed) {
            let round = self.round_of(packet);
            let watch = self.path_mut(path).watch.get_or_insert_default();
            watch.heard_at = watch.heard_at.min(now);
            watch.queues[round as usize].push_back((now, packet));
        }
    }

    /// What is new in a packet is the highest in it, and waits as long as anything new.
    fn round_of(&self, packet: PacketNumber) -> Round {
        let highest = self.ledger.packet(packet).and_then(|packet| self.unit(packet.highest));
        match highest.is_some_and(|unit| unit.fast_retransmitted) {
            false => Round::First,
            true => Round::Again,
        }
    }

    /// A copy of `unit` left on purpose: what it belongs to is not overdue before that is.
    pub(super) fn watch_again(&mut self, now: Instant, unit: u64) {
        let Some((path, packet)) = self.unit(unit).map(|unit| (unit.path, unit.packet)) else {
            return;
        };
        let (is_silent, round) = (self.is_silent(now, path), self.round_of(packet));
        let is_watched = self.groups.timed() != 0;
        let p = self.path_mut(path);
        let is_earliest = p.earliest == unit;
        let Some(watch) = &mut p.watch else { return };
        let queue = &mut watch.queues[round as usize];
        if queue.back() != Some(&(now, packet)) {
            queue.push_back((now, packet));
        }
        // As if it left again, but not for ever on a dead path.
        if is_earliest && is_watched && !is_silent {
            self.arm_t3(now, path);
        }
    }

    /// Whether nothing was heard over `path` for longer than any timer bears.
    fn is_silent(&self, now: Instant, path: u8) -> bool {
        let Some(watch) = &self.path(path).watch else { return false };
        let timed = self.groups.timed();
        let groups = (0..u32::BITS as u8).filter(|group| timed & (1 << group) != 0);
        let silence = groups.map(|group| {
            let timer = &self.groups.of(group).thin.recovery_timer;
            let patience = watch.answers.patience(timer, Round::First).unwrap_or_default();
            timer.silence.max(MIN_SILENT_ANSWERS * patience)
        });
        silence.min().is_some_and(|silence| now - watch.heard_at > silence)
    }

    fn is_in_flight(&self, path: u8, packet: PacketNumber) -> Option<u32> {
        let packet = self.ledger.packet(packet)?;
        (packet.fate == Fate::InFlight && packet.path == path).then(|| packet.groups())
    }

    /// Sees when something is overdue next.
    #[inline]
    pub(super) fn renew_overdue(&mut self, path: u8) {
        if self.path(path).watch.is_some() {
            self.find_overdue(path);
        }
    }

    fn find_overdue(&mut self, path: u8) {
        let mut deadline = self.next_planned(path);
        for round in Round::BOTH {
            while let Some(&(_, packet)) = self.queue_of(path, round).front()
                && self.is_in_flight(path, packet).is_none()
            {
                self.queue_mut(path, round).pop_front();
            }
            deadline = deadline.min(self.first_overdue(path, round));
        }
        if let Some(watch) = &mut self.path_mut(path).watch {
            watch.deadline = deadline;
        }
    }

    fn first_overdue(&self, path: u8, round: Round) -> Instant {
        let mut deadline = Instant::FAR_FUTURE;
        for &(at, packet) in self.queue_of(path, round).iter().take(MAX_LOOK_AHEAD) {
            let Some(groups) = self.is_in_flight(path, packet) else { continue };
            let patience = self.patience_with(path, groups, round);
            deadline = patience.map_or(deadline, |patience| deadline.min(at + patience));
            if self.groups.is_one() {
                break; // The same holds for all, so that the first is the earliest.
            }
        }
        deadline
    }

    fn queue_of(&self, path: u8, round: Round) -> &Queue {
        static EMPTY: Queue = VecDeque::new();
        self.path(path).watch.as_ref().map_or(&EMPTY, |watch| &watch.queues[round as usize])
    }

    fn queue_mut(&mut self, path: u8, round: Round) -> &mut Queue {
        &mut self.path_mut(path).watch.get_or_insert_default().queues[round as usize]
    }

    /// The deadline of the watch over `path` has passed.
    pub(super) fn on_watch_timer(&mut self, now: Instant, path: u8, tracer: &mut Tracer<'_>) {
        self.ready_copies(now, path);
        self.rest_if_silent(now, path);
        let mut lost = 0;
        for round in Round::BOTH {
            for (at, packet) in self.take_overdue(now, path, round) {
                self.note_overdue(path, (at, packet), round);
                lost += self.lose_overdue(packet, at, tracer);
            }
        }
        if lost > 0 {
            self.count_round(now, path);
            self.ledger.forget_ended();
            self.recover_from_overdue(path, tracer);
            self.wait_for_answer(path);
            self.settle_resending();
        }
        self.find_overdue(path);
        self.watch_thinness(tracer);
    }

    /// Something is repeated: the first of a round?
    fn count_round(&mut self, now: Instant, path: u8) {
        let group = self.group_of_earliest(path);
        let patience = self.patience(path, group, Round::Again).unwrap_or_default();
        if let Some(watch) = &mut self.path_mut(path).watch
            && (watch.unheard == 0 || now >= watch.round_began_at + patience)
        {
            watch.unheard += 1;
            watch.round_began_at = now;
        }
    }

    /// Nothing was heard for too long: no further packet is sent again by this timer.
    fn rest_if_silent(&mut self, now: Instant, path: u8) {
        let is_silent = self.is_silent(now, path);
        self.path_mut(path).watch.iter_mut().for_each(|watch| watch.is_resting |= is_silent);
    }

    /// The entries of what is overdue now, which leave the queue.
    fn take_overdue(
        &mut self,
        now: Instant,
        path: u8,
        round: Round,
    ) -> Vec<(Instant, PacketNumber)> {
        let mut due = Vec::new(); // Allocates only when something is lost.
        let mut index = 0;
        while index < MAX_LOOK_AHEAD
            && let Some(&(at, packet)) = self.queue_of(path, round).get(index)
        {
            let groups = self.is_in_flight(path, packet);
            let patience = groups.and_then(|groups| self.patience_with(path, groups, round));
            if groups.is_none() {
                self.queue_mut(path, round).remove(index);
            } else if patience.is_some_and(|patience| at + patience <= now) {
                self.queue_mut(path, round).remove(index);
                due.push((at, packet));
            } else if self.groups.is_one() {
                break;
            } else {
                index += 1;
            }
        }
        due
    }

    /// What is in flight with `packet`, which left at `at`, is lost, unless enough copies left since.
    fn lose_overdue(&mut self, packet: PacketNumber, at: Instant, tracer: &mut Tracer<'_>) -> u64 {
        let Some((lowest, highest)) = self.ledger.packet(packet).map(|p| (p.lowest, p.highest))
        else {
            return 0;
        };
        let (mut lost, mut is_beside) = (0, false);
        for number in lowest..=highest {
            let is_overdue = self.unit(number).is_some_and(|unit| {
                let is_in_it = unit.packet == packet && unit.state == UnitState::InFlight;
                let is_timed = self.groups.timed() & (1 << unit.group) != 0 && !unit.is_probe;
                is_in_it && is_timed && unit.transmissions < MOST_TRANSMISSIONS
            });
            if is_overdue && self.lacks_copies(number, at) {
                is_beside |= self.copies.since(number).is_some_and(|(copies, _)| copies > 0);
                self.mark_lost(number, SendCause::Overdue, tracer);
                lost += 1;
            }
        }
        if is_beside {
            self.spending.on_packet_of_copies();
        }
        lost
    }

    /// As after a fast retransmit: the window falls once for all that was outstanding.
    fn recover_from_overdue(&mut self, path: u8, tracer: &mut Tracer<'_>) {
        if self.is_recovering(path) {
            self.resend_now(path);
        } else if self.splits_fast_retransmit() {
            self.begin_path_recovery(path, tracer);
        } else {
            self.reduce_window(path, tracer);
            self.begin_recovery();
        }
    }
}
