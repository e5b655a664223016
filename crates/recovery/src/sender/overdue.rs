//! The recovery timer: what is overdue leaves again. See [`crate::recovery_timer`].
//!
//! A packet is watched from when it leaves; one whose units newer packets carry copies of, from when
//! the latest of these left. The timer runs for the earliest of them, whatever leaves later, and only
//! for streams that are thin while the window has room: a sender that fills its window fills queues,
//! too, and has later packets to go by. What the timer watches nothing else judges but T3-rtx.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

use rexmit_core::Instant;
use rexmit_core::trace::{SendCause, Tracer};

use super::spaced::Planned;
use super::{LossRecovery, UnitState};
use crate::PacketNumber;
use crate::ledger::Fate;
use crate::recovery_timer::AnswerTimes;

/// Packets looked at to find the earliest that the timer is for, at most: of those before it some may
/// be of streams that are not thin.
const MAX_LOOK_AHEAD: usize = 64;
/// Expiries over losses in a row without an answer before each doubles the patience: where the round trip
/// is short, a silence that is borne would else hold hundreds of repetitions.
const STEADY_REPEATS: u32 = 8;
/// Packets that one acknowledgement shows to have missed theirs, at most.
const MAX_MISSED: u32 = 8;

/// What is kept of a path for the recovery timer and for spaced copies.
#[derive(Debug)]
pub(super) struct Watch {
    pub(super) answers: AnswerTimes,
    /// Packets in flight, and some that are not, by when they or copies of what is in them left.
    queue: VecDeque<(Instant, PacketNumber)>,
    /// When a packet is overdue, or a copy due; [`Instant::FAR_FUTURE`] if neither will be.
    pub(super) deadline: Instant,
    /// When something was last acknowledged; with nothing in flight, when something left.
    heard_at: Instant,
    /// Expiries over losses since then.
    unheard: u32,
    /// That is too long ago.
    is_resting: bool,
    heard: Heard,
    /// Copies that are to leave, by when.
    pub(super) planned: VecDeque<Planned>,
    /// Copies that may leave now.
    pub(super) ready: VecDeque<Planned>,
    /// The copies of the last new units, if nothing new follows.
    pub(super) last: Option<(Instant, Range<u64>)>,
}

/// What the acknowledgement being processed answers of a path.
#[derive(Clone, Copy, Debug, Default)]
struct Heard {
    /// Packets, and the last of them.
    packets: u32,
    packet: Option<PacketNumber>,
    /// When the newest of them left.
    newest: Option<Instant>,
    /// When the newest and the oldest left of those that nothing repeated before they were answered.
    certain: Option<(Instant, Instant)>,
}

/// A unit that is acknowledged for the first time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answered {
    pub(super) unit: u64,
    pub(super) group: u8,
    pub(super) path: u8,
    pub(super) packet: PacketNumber,
    pub(super) sent_at: Option<Instant>,
    /// It left once.
    pub(super) is_first_copy: bool,
    /// Copies of it left on purpose.
    pub(super) is_copied: bool,
}

impl Default for Watch {
    fn default() -> Self {
        Self {
            answers: AnswerTimes::default(),
            queue: VecDeque::new(),
            deadline: Instant::FAR_FUTURE,
            heard_at: Instant::ZERO,
            unheard: 0,
            is_resting: false,
            heard: Heard::default(),
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

    /// The path leads another way, of which nothing is known. What is in flight is watched on.
    pub(super) fn renew(&mut self, now: Instant) {
        *self = Self { queue: std::mem::take(&mut self.queue), ..Self::default() };
        self.begin(now);
    }

    /// The packet, or copies of what is in it, left.
    pub(super) fn watch(&mut self, now: Instant, packet: PacketNumber) {
        self.queue.push_back((now, packet));
    }

    /// Nothing is in flight any more.
    pub(super) fn clear(&mut self) {
        self.queue.clear();
        self.planned.clear();
        self.ready.clear();
        self.last = None;
        self.deadline = Instant::FAR_FUTURE;
    }

    fn note_certain(&mut self, sent_at: Instant) {
        let certain = &mut self.heard.certain;
        *certain = Some(match *certain {
            None => (sent_at, sent_at),
            Some((newest, oldest)) => (newest.max(sent_at), oldest.min(sent_at)),
        });
        self.heard.newest = self.heard.newest.max(Some(sent_at));
    }
}

impl<P> LossRecovery<P> {
    /// How long answers over `path` to what is of `group` are waited for; `None` while the timer is not
    /// for it.
    fn patience(&self, path: u8, group: u8) -> Option<Duration> {
        let watch = self.path(path).watch.as_ref().filter(|watch| !watch.is_resting)?;
        let timer = &self.groups.of(group).thin.recovery_timer;
        let is_for_it = timer.is_on && self.is_thin(group) && self.has_window_for(path);
        let doublings = watch.unheard.saturating_sub(STEADY_REPEATS).min(16);
        is_for_it.then(|| Some(watch.answers.patience(timer)? * (1 << doublings)))?
    }

    /// Whether the window of `path` holds more than what is in flight.
    pub(super) fn has_window_for(&self, path: u8) -> bool {
        self.path(path).window.has_room(self.ledger.flight(path).bytes)
    }

    /// How long T3-rtx waits at least for what the timer is for, so that it is what comes last.
    pub(super) fn patience_of_t3(&self, path: u8) -> Option<Duration> {
        let watch = self.path(path).watch.as_ref()?;
        let timer = &self.groups.of(self.group_of_earliest(path)).thin.recovery_timer;
        timer.is_on.then(|| watch.answers.patience(timer).map(|patience| 2 * patience))?
    }

    /// Whether the timer, and nothing else, judges `unit` now.
    pub(super) fn is_timed(&self, unit: u64) -> bool {
        self.groups.timed() != 0
            && self.unit(unit).is_some_and(|unit| self.patience(unit.path, unit.group).is_some())
    }

    /// The same of a packet over `path` with units of these groups.
    pub(super) fn patience_with(&self, path: u8, groups: u32) -> Option<Duration> {
        let mut timed = groups & self.groups.timed();
        while timed != 0 {
            let patience = self.patience(path, timed.trailing_zeros() as u8);
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
            self.path_mut(path).watch.get_or_insert_default().watch(now, packet);
        }
    }

    /// A copy of `unit` left on purpose: what it belongs to is not overdue before that is.
    pub(super) fn watch_again(&mut self, now: Instant, unit: u64) {
        let Some((path, packet)) = self.unit(unit).map(|unit| (unit.path, unit.packet)) else {
            return;
        };
        let silence = self.silence();
        let p = self.path_mut(path);
        let is_earliest = p.earliest == unit;
        let Some(watch) = &mut p.watch else { return };
        if watch.queue.back() != Some(&(now, packet)) {
            watch.watch(now, packet);
        }
        // As if it left again, but not for ever on a dead path.
        if is_earliest && silence.is_some_and(|silence| now - watch.heard_at <= silence) {
            self.arm_t3(now, path);
        }
    }

    /// The shortest silence that a timer bears.
    fn silence(&self) -> Option<Duration> {
        let timed = self.groups.timed();
        let groups = (0..u32::BITS as u8).filter(|group| timed & (1 << group) != 0);
        groups.map(|group| self.groups.of(group).thin.recovery_timer.silence).min()
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
        while let Some(&(_, packet)) = self.queue_of(path).front()
            && self.is_in_flight(path, packet).is_none()
        {
            self.queue_mut(path).pop_front();
        }
        let mut deadline = self.next_planned(path);
        for &(at, packet) in self.queue_of(path).iter().take(MAX_LOOK_AHEAD) {
            let Some(groups) = self.is_in_flight(path, packet) else { continue };
            let patience = self.patience_with(path, groups);
            deadline = patience.map_or(deadline, |patience| deadline.min(at + patience));
            if self.groups.is_one() {
                break; // The same holds for all, so that the first is the earliest.
            }
        }
        if let Some(watch) = &mut self.path_mut(path).watch {
            watch.deadline = deadline;
        }
    }

    fn queue_of(&self, path: u8) -> &VecDeque<(Instant, PacketNumber)> {
        static EMPTY: VecDeque<(Instant, PacketNumber)> = VecDeque::new();
        self.path(path).watch.as_ref().map_or(&EMPTY, |watch| &watch.queue)
    }

    fn queue_mut(&mut self, path: u8) -> &mut VecDeque<(Instant, PacketNumber)> {
        &mut self.path_mut(path).watch.get_or_insert_default().queue
    }

    /// The deadline of the watch over `path` has passed.
    pub(super) fn on_watch_timer(&mut self, now: Instant, path: u8, tracer: &mut Tracer<'_>) {
        self.ready_copies(now, path);
        self.rest_if_silent(now, path);
        let mut lost = 0;
        for (at, packet) in self.take_overdue(now, path) {
            lost += self.lose_overdue(packet, at, tracer);
        }
        if lost > 0 {
            self.path_mut(path).watch.iter_mut().for_each(|watch| watch.unheard += 1);
            self.ledger.forget_ended();
            self.recover_from_overdue(path, tracer);
            self.settle_resending();
        }
        self.find_overdue(path);
        self.watch_thinness(tracer);
    }

    /// Nothing was heard for too long: no further packet is sent again by this timer.
    fn rest_if_silent(&mut self, now: Instant, path: u8) {
        if let (Some(silence), Some(watch)) = (self.silence(), &mut self.path_mut(path).watch) {
            watch.is_resting |= now - watch.heard_at > silence;
        }
    }

    /// The entries of what is overdue now, which leave the queue.
    fn take_overdue(&mut self, now: Instant, path: u8) -> Vec<(Instant, PacketNumber)> {
        let mut due = Vec::new(); // Allocates only when something is lost.
        let mut index = 0;
        while index < MAX_LOOK_AHEAD
            && let Some(&(at, packet)) = self.queue_of(path).get(index)
        {
            let groups = self.is_in_flight(path, packet);
            let patience = groups.and_then(|groups| self.patience_with(path, groups));
            if groups.is_none() {
                self.queue_mut(path).remove(index);
            } else if patience.is_some_and(|patience| at + patience <= now) {
                self.queue_mut(path).remove(index);
                due.push((at, packet));
            } else if self.groups.is_one() {
                break;
            } else {
                index += 1;
            }
        }
        due
    }

    /// What is in flight with `packet`, and of which no copy left after `at`, is lost.
    fn lose_overdue(&mut self, packet: PacketNumber, at: Instant, tracer: &mut Tracer<'_>) -> u64 {
        let Some((lowest, highest)) = self.ledger.packet(packet).map(|p| (p.lowest, p.highest))
        else {
            return 0;
        };
        let mut lost = 0;
        for number in lowest..=highest {
            let is_overdue = self.unit(number).is_some_and(|unit| {
                let is_in_it = unit.packet == packet && unit.state == UnitState::InFlight;
                let is_timed = self.groups.timed() & (1 << unit.group) != 0 && !unit.is_probe;
                let latest = if unit.is_copied { self.copies.latest(number) } else { None };
                is_in_it && is_timed && latest.is_none_or(|latest| latest <= at)
            });
            if is_overdue {
                self.mark_lost(number, SendCause::Overdue, tracer);
                lost += 1;
            }
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

    /// A unit is acknowledged.
    pub(super) fn note_answer(&mut self, now: Instant, answered: Answered) {
        let Answered { unit, group, path, packet, sent_at, is_first_copy, is_copied } = answered;
        let is_timed = self.groups.timed() & (1 << group) != 0 && self.is_thin(group);
        let Some(watch) = self.paths[usize::from(path)].watch.as_mut().filter(|_| is_timed) else {
            return;
        };
        watch.heard.packets += u32::from(watch.heard.packet.replace(packet) != Some(packet));
        let certain = match (is_first_copy, is_copied) {
            (true, false) => sent_at,
            (true, true) => None,
            // It was answered sooner than anything is: that was for the copy before.
            (false, _) => watch.answers.shortest().and_then(|shortest| {
                let log = self.log.as_mut()?;
                log.first_copies.answered_before_repeat(now, unit, shortest)
            }),
        };
        match certain {
            Some(sent_at) => watch.note_certain(sent_at),
            None => watch.heard.newest = watch.heard.newest.max(sent_at),
        }
    }

    /// A unit that left once is acknowledged by its own packet, though copies of it left.
    pub(super) fn note_answer_of_copied(&mut self, path: u8, sent_at: Option<Instant>) {
        if let (Some(watch), Some(sent_at)) = (&mut self.path_mut(path).watch, sent_at) {
            watch.note_certain(sent_at);
        }
    }

    /// What the acknowledgement being processed tells of the time that answers take.
    #[inline]
    pub(super) fn learn_answers(&mut self, now: Instant) {
        for path in &mut self.paths {
            if let Some(watch) = &mut path.watch {
                watch.learn(now, path.ack.bytes > 0);
            }
        }
    }

    /// A unit that the timer sent again had arrived, as a duplicate report tells. Its acknowledgement
    /// was late, or it never came.
    pub(super) fn note_needless(&mut self, now: Instant, unit: u64) {
        let Some(first) = self.log.as_ref().and_then(|log| log.first_copies.of(unit)) else {
            return;
        };
        if first.is_answered {
            return;
        }
        self.statistics.acks_missed += 1;
        if let Some(watch) = &mut self.path_mut(first.path).watch {
            watch.answers.on_judged(true);
            if watch.answers.are_delayed() {
                watch.answers.on_answer(first.acked_at.unwrap_or(now) - first.sent_at);
            }
        }
    }
}

impl Watch {
    fn learn(&mut self, now: Instant, has_heard: bool) {
        if has_heard {
            self.begin(now);
        }
        let Heard { packets, newest, certain, .. } = std::mem::take(&mut self.heard);
        if packets == 0 {
            return;
        }
        self.answers.on_judged(false);
        (1..packets.min(MAX_MISSED)).for_each(|_| self.answers.on_judged(true));
        let Some((newest_certain, oldest)) = certain else { return };
        let is_by_itself = Some(newest_certain) == newest;
        if is_by_itself {
            self.answers.on_answer(now - newest_certain);
        }
        if self.answers.are_delayed() && (oldest < newest_certain || !is_by_itself) {
            self.answers.on_answer(now - oldest);
        }
    }
}
