//! Redundant copies: data in flight that is sent again before it is declared lost. Bundled copies are sent
//! with new data (RDB, Petlund 2008), delayed copies in packets of their own.
//!
//! # Acknowledgements of a copied unit
//! For flight accounting a unit stays in the packet it was first sent in; a bundled copy is only recorded. A
//! packet with a bundled copy also carries new data. If one ACK acknowledges the unit and this new data for
//! the first time, the packet with the copy has arrived; if the receiver does not report the unit as a
//! duplicate, the copy arrived first and the original was lost: nothing else shows this loss. If the ACK does
//! not cover the new data, the original has arrived and the copy has not: the RTT sample is not ambiguous.
//!
//! A delayed copy is sent without new data. It is assumed to have repaired a loss if no ACK came before the first such
//! copy could be acknowledged, and the ACK reports no duplicate, however many copies were sent.
//!
//! If ACKs are lost or delayed, both packets may have arrived and be acknowledged by one ACK, with the
//! duplicate report lost in an ACK between: this is counted as a loss, too.

use crate::outstanding::{AckedUnit, Fate, FirstCopy, FirstSent, PacketNumber, Repeats, Unit};
use crate::paths::PerPath;
use crate::probe::ProbeTimer;
use crate::state::State;
pub use budget::SharedSpending;
use budget::{Share, Spending};
use delayed::{DelayedCopies, Planned};
use rexmit_core::Instant;
use rexmit_deadline::{Copies as CopyPlan, Planner};
use std::ops::Range;

mod budget;
mod delayed;

#[cfg(test)]
mod tests;

/// The room in a packet with new data.
#[derive(Clone, Copy, Debug)]
pub struct BundleRoom {
    /// The size of the new unit, in bytes with header and padding.
    pub new_bytes: u32,
    /// The room left in the packet, in bytes.
    pub room: u32,
    /// Whether the copies and the new unit must be consecutive (a TCP segment).
    pub is_contiguous: bool,
}

/// A packet with new data of `group` that may carry copies, and the mechanisms that help to choose them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bundling<'a> {
    pub(crate) path: u8,
    pub(crate) group: u8,
    pub(crate) room: BundleRoom,
    pub(crate) probe: &'a ProbeTimer,
    pub(crate) plan: &'a Planner,
}

/// The copies that were chosen, and whether the budget excluded any.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Chosen {
    pub(crate) copies: Copies,
    pub(crate) is_denied: bool,
}

/// An acknowledged unit that was sent once and copied.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckedCopied {
    pub(crate) unit: u64,
    pub(crate) first: FirstSent,
    copy: FirstCopy,
    /// The path of the last transmission.
    last_path: u8,
    pub(crate) is_reported: bool,
}

/// The redundant copies of an association.
#[derive(Debug, Default)]
pub(crate) struct Redundancy {
    pub(crate) spending: Spending,
    /// The delayed copies of each path, created when the first is planned.
    delayed: PerPath<DelayedCopies>,
}

impl Redundancy {
    /// Drops the planned copies of `path`, whose packets take another route from now on.
    pub(crate) fn renew_path(&mut self, path: u8) {
        self.delayed.remove(path);
    }

    /// Drops all planned copies, when nothing is outstanding any more.
    pub(crate) fn clear(&mut self) {
        self.delayed = PerPath::default();
    }

    /// When the next copy of `path` is due; far in the future if none is.
    #[inline]
    pub(crate) fn deadline(&self, path: u8) -> Instant {
        self.delayed.get(path).map_or(Instant::FAR_FUTURE, DelayedCopies::next)
    }
}

/// The budget.
impl Redundancy {
    /// Called when a packet with `bytes` of new units of `group` is sent over `path`.
    pub(crate) fn on_first_sent<P>(&mut self, path: u8, group: u8, bytes: u32, state: &State<P>) {
        self.spending.on_first_sent(bytes, share_beside_queue(path, group, state));
    }

    /// How many bytes of `group` may be copied over `path` now.
    pub(crate) fn bytes_to_copy<P>(&self, path: u8, group: u8, state: &State<P>) -> u64 {
        let budget = state.groups.config(group).copy_budget;
        let is_denied = share_beside_queue(path, group, state).is_none();
        if is_denied { 0 } else { self.spending.bytes_left(budget) }
    }

    /// Whether the budget allows a copy of `unit` over `path`, in a packet of its own or, with `is_begun`, in one that
    /// has other units.
    fn may_pay<P>(&self, path: u8, unit: &Unit<P>, is_begun: bool, state: &State<P>) -> bool {
        let budget = state.groups.config(unit.group()).copy_budget;
        let has_packet = is_begun || self.spending.has_packet(budget);
        let left = self.bytes_to_copy(path, unit.group(), state);
        has_packet && left >= u64::from(unit.bytes)
    }

    /// Whether a copy of `unit` may be sent over `path` in a packet of its own.
    fn may_copy_alone<P>(&self, path: u8, unit: &Unit<P>, state: &State<P>) -> CopyPermission {
        if !state.is_thin(unit.group()) || !state.has_window_for(path) {
            CopyPermission::NotThin
        } else if self.may_pay(path, unit, false, state) {
            CopyPermission::Granted
        } else {
            CopyPermission::Denied
        }
    }
}

/// The share of the budget of `group` that a queue on `path` leaves.
fn share_beside_queue<P>(path: u8, group: u8, state: &State<P>) -> Share {
    let Some(limit) = state.groups.config(group).queue_delay_limit else { return Share::ALL };
    match state.paths[path].queue.as_deref() {
        None => Share::ALL,
        Some(signs) if signs.losses.forbid_copies() => Share::NONE,
        Some(signs) => Share::beside(signs.delay.standing(), limit),
    }
}

/// Whether a copy may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CopyPermission {
    Granted,
    /// No copy may be sent at present: the stream is not thin, or the window is full.
    NotThin,
    /// Denied by the budget, which a queue on the path may have reduced.
    Denied,
}

/// Bundled copies.
impl Redundancy {
    /// Whether the profile bundles data in flight of `group` now; otherwise only what the planner wants is bundled.
    #[inline]
    pub(crate) fn may_copy<P>(group: u8, state: &State<P>) -> bool {
        state.groups.config(group).bundling.is_some() && state.is_thin(group)
    }

    /// Whether a retransmission over `path` may bundle data in flight of `group`.
    pub(crate) fn may_bundle<P>(&self, path: u8, group: u8, state: &State<P>) -> bool {
        Self::may_copy(group, state) && self.bytes_to_copy(path, group, state) > 0
    }

    /// The units that a packet over `path` with a new unit of `group` is to carry copies of: the newest ones,
    /// as many as fit the packet and the budget. When the budget is nearly spent, units sent more than a
    /// round trip ago come first, because they are more likely to be lost.
    pub(crate) fn choose<P>(
        &self,
        now: Instant,
        packet: &Bundling<'_>,
        state: &State<P>,
    ) -> Chosen {
        let &Bundling { path, group, room: bundle, probe, plan } = packet;
        let thin = state.groups.config(group);
        let bundling = thin.bundling;
        let rtt = if bundling.is_some() { None } else { probe.round_trip(state, path, group) };
        let bundles_unanswered = !bundle.is_contiguous && probe.bundles_unanswered(path);
        let is_wanted = |number: u64, unit: &Unit<P>| {
            bundling.is_some()
                || plan.wants_bundled(now, number, rtt)
                || (bundles_unanswered && unit.transmissions > 1)
        };
        let limit = bundling.and_then(|it| it.bytes).map_or(bundle.room, |most| {
            bundle.room.min(most.get().saturating_sub(bundle.new_bytes))
        });
        let left = self.bytes_to_copy(path, group, state);
        let left = match thin.queue_delay_limit {
            Some(_) => left.min(state.window_left(path).saturating_sub(bundle.new_bytes.into())),
            None => left,
        };
        let left_for_recent = left.min(self.spending.bytes_left_for_recent(thin.copy_budget));
        let (mut bytes, mut packets, mut packet, mut is_denied) = (0, 0, None, false);
        let outstanding = &state.outstanding;
        let mut copies = Copies::before(outstanding.next_unit());
        let units = outstanding.cumulative() + 1..outstanding.next_unit();
        for number in units.rev().take(Copies::MAX_LOOK_BACK) {
            let Some(unit) = outstanding.unit(number) else { break };
            if !unit.is_in_flight() || unit.group() != group || !is_wanted(number, unit) {
                if bundle.is_contiguous {
                    break;
                }
                continue;
            }
            let of_packet = unit.last().packet;
            packets += u8::from(packet.replace(of_packet) != Some(of_packet));
            let has_enough = bundling.is_some_and(|most| packets > most.packets.get());
            if has_enough || bytes + unit.bytes > limit {
                break;
            }
            // A run carries everything newer, so that nothing comes before it.
            let is_recent = !bundle.is_contiguous && is_recent(now, unit, state, probe);
            if u64::from(bytes + unit.bytes) <= if is_recent { left_for_recent } else { left } {
                bytes += unit.bytes;
                copies.insert(number);
                continue;
            }
            is_denied = true;
            if bundle.is_contiguous {
                break;
            }
        }
        Chosen { copies, is_denied }
    }
}

/// Whether `unit` was sent less than the shortest round trip ago, so that no ACK can have arrived.
fn is_recent<P>(now: Instant, unit: &Unit<P>, state: &State<P>, probe: &ProbeTimer) -> bool {
    let shortest = probe.shortest_rtt(unit.path);
    let sent_at = state.outstanding.packets().sent_at(unit.last().packet);
    shortest.zip(sent_at).is_some_and(|(shortest, sent_at)| now - sent_at < shortest)
}

/// Delayed copies.
impl Redundancy {
    /// Plans the delayed copies of `unit`, which is retransmitted because it was lost. `standing` bundled
    /// copies were sent before, and count as delayed copies.
    pub(crate) fn plan_of_retransmission<P>(
        &mut self,
        now: Instant,
        unit: u64,
        standing: u8,
        state: &State<P>,
    ) {
        let Some(group) = state.outstanding.unit(unit).map(Unit::group) else { return };
        if state.is_thin(group) {
            let copies = state.groups.config(group).delayed_copies.of_retransmissions;
            let Some(copies) = copies else { return };
            let (count, spacing) = (copies.copies.get().saturating_sub(standing), copies.interval);
            let copies = CopyPlan { count, spacing, is_elsewhere: true, ..CopyPlan::default() };
            self.plan(now, unit, copies, state);
        }
    }

    /// Plans `copies` of `unit`, if there are any.
    pub(crate) fn plan<P>(&mut self, now: Instant, unit: u64, copies: CopyPlan, state: &State<P>) {
        let (Some(u), Some(count)) = (state.outstanding.unit(unit), copies.count.checked_sub(1))
        else {
            return;
        };
        let path = if copies.is_elsewhere { state.copy_path(u.path) } else { u.path };
        let delayed = self.delayed.get_or_insert_with(path, DelayedCopies::default);
        let left = CopyPlan { count, ..copies };
        delayed.plan(Planned { at: now + left.spacing, unit, packet: u.last().packet, left });
    }

    /// Called when a packet with these new units is sent over `path`: plans their copy in case no new data follows.
    pub(crate) fn plan_last<P>(
        &mut self,
        now: Instant,
        path: u8,
        units: Range<u64>,
        state: &State<P>,
    ) {
        let group = state.outstanding.unit(units.start).map_or(0, Unit::group);
        let after = state.groups.config(group).delayed_copies.of_last_after;
        let after = after.filter(|_| state.is_thin(group));
        if after.is_some() || self.delayed.get(path).is_some_and(DelayedCopies::has_last) {
            let delayed = self.delayed.get_or_insert_with(path, DelayedCopies::default);
            delayed.plan_last(after.map(|after| now + after), units);
        }
    }

    /// Makes the copies of `path` that are due ready to be sent, if their units are still in flight as they
    /// were. Returns how many the budget denied.
    pub(crate) fn ready_copies<P>(
        &mut self,
        now: Instant,
        path: u8,
        state: &State<P>,
        plan: &Planner,
    ) -> u64 {
        let Some(delayed) = self.delayed.get(path) else { return 0 };
        let is_denied =
            |it: &&Planned| is_awaited(it, state) && !self.is_paid(path, it, false, state);
        let mut denied = delayed.ready.iter().filter(is_denied).count() as u64;
        let Some(delayed) = self.delayed.get_mut(path) else { return denied };
        delayed.ready.clear();
        for unit in delayed.take_last(now).into_iter().flatten() {
            let Some(packet) = state.outstanding.unit(unit).map(|unit| unit.last().packet) else {
                continue;
            };
            let copy = Planned { at: now, unit, packet, left: CopyPlan::default() };
            denied += self.ready_copy(path, copy, state);
        }
        while let Some(planned) =
            self.delayed.get_mut(path).and_then(|delayed| delayed.take_next(now))
        {
            denied += self.ready_unless_bundled(now, path, planned, state, plan);
        }
        denied
    }

    /// Makes one copy ready, unless copies bundled with new data have replaced it.
    fn ready_unless_bundled<P>(
        &mut self,
        now: Instant,
        path: u8,
        planned: Planned,
        state: &State<P>,
        plan: &Planner,
    ) -> u64 {
        let missing = plan.missing(planned.unit).unwrap_or(u8::MAX);
        if missing > planned.left.count {
            return self.ready_copy(path, planned, state);
        } else if is_awaited(&planned, state) {
            self.plan(now, planned.unit, CopyPlan { count: missing, ..planned.left }, state);
        }
        0
    }

    /// Makes one copy ready. Returns how many the budget denied, 0 or 1.
    fn ready_copy<P>(&mut self, path: u8, planned: Planned, state: &State<P>) -> u64 {
        let unit = state.outstanding.unit(planned.unit);
        let Some(unit) = unit.filter(|unit| !unit.is_probe && is_awaited(&planned, state)) else {
            return 0;
        };
        let permission = self.may_copy_alone(path, unit, state);
        if permission == CopyPermission::Granted
            && let Some(delayed) = self.delayed.get_mut(path)
        {
            delayed.ready.push_back(planned);
        }
        u64::from(permission == CopyPermission::Denied)
    }

    /// Whether the budget still allows the copy: others that were due at the same time may have spent it.
    fn is_paid<P>(&self, path: u8, planned: &Planned, is_begun: bool, state: &State<P>) -> bool {
        let unit = state.outstanding.unit(planned.unit);
        unit.is_some_and(|unit| self.may_pay(path, unit, is_begun, state))
    }

    /// Whether a copy is due on `path`.
    #[inline]
    pub(crate) fn has_ready(&self, path: u8) -> bool {
        self.delayed.get(path).is_some_and(|delayed| !delayed.ready.is_empty())
    }

    /// The next unit of which a copy may be sent over `path` in a packet of its own or, with `is_begun`, in
    /// one that has other units.
    pub(crate) fn next_copy<P>(&self, path: u8, is_begun: bool, state: &State<P>) -> Option<u64> {
        let delayed = self.delayed.get(path)?;
        let may_be_sent =
            |it: &&Planned| is_awaited(it, state) && self.is_paid(path, it, is_begun, state);
        delayed.ready.iter().find(may_be_sent).map(|ready| ready.unit)
    }

    /// Cancels the copy of `unit` that [`next_copy`](Self::next_copy) named for `path`.
    pub(crate) fn drop_copy(&mut self, path: u8, unit: u64) {
        if let Some(delayed) = self.delayed.get_mut(path) {
            delayed.ready.retain(|planned| planned.unit != unit);
        }
    }

    /// Takes the copy of `unit` that [`next_copy`](Self::next_copy) named for `path`, to be sent now. Returns
    /// how many copies are to follow; `None` if there is no such copy.
    pub(crate) fn take_copy(&mut self, path: u8, unit: u64) -> Option<CopyPlan> {
        let ready = &mut self.delayed.get_mut(path)?.ready;
        let place = ready.iter().position(|planned| planned.unit == unit)?;
        ready.remove(place).map(|planned| planned.left)
    }

    /// Called when a copy of `unit` is sent, and the copies in `left` are to follow.
    pub(crate) fn on_copy_sent<P>(
        &mut self,
        now: Instant,
        unit: u64,
        left: CopyPlan,
        state: &State<P>,
    ) {
        self.spending.on_copied(state.outstanding.unit(unit).map_or(0, |unit| unit.bytes));
        self.plan(now, unit, left, state);
    }
}

/// Whether the unit is still in flight in the same packet, so that the copy makes sense.
fn is_awaited<P>(planned: &Planned, state: &State<P>) -> bool {
    let unit = state.outstanding.unit(planned.unit);
    unit.is_some_and(|unit| unit.is_in_flight_in(planned.packet))
}

/// The data to be sent when the probe timer of a unit has expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProbeAction {
    /// Nothing: enough copies were sent since, and the ACK of the latest is waited for, or the budget denies one.
    Nothing { is_denied: bool },
    /// A retransmission; `is_beside` if copies were sent since.
    Retransmission { is_beside: bool },
}

impl Redundancy {
    /// Whether `unit` is to be retransmitted, in a packet of its own, now that the probe timer of its
    /// transmission at `at` has expired.
    ///
    /// Bundled copies sent since count as retransmissions: if there are as many as a retransmission and its
    /// delayed copies would be, the ACK of the latest is waited for. If there are fewer, which happens when
    /// messages are about a round trip apart, the missing one is sent as a copy, if the budget allows.
    pub(crate) fn action_on_expiry<P>(
        &mut self,
        unit: u64,
        at: Instant,
        state: &mut State<P>,
    ) -> ProbeAction {
        let Some(u) = state.outstanding.unit(unit) else {
            return ProbeAction::Nothing { is_denied: false };
        };
        let (copies, latest) = u.repeats().map_or((0, None), Repeats::standing_copies);
        if latest.is_none_or(|latest| latest <= at) {
            let repeats = state.outstanding.repeats_mut(unit);
            repeats.into_iter().for_each(Repeats::expire_copies);
            return ProbeAction::Retransmission { is_beside: false };
        }
        let is_first = state.outstanding.packets().sent_at(u.last().packet) == Some(at);
        let wanted = state.groups.config(u.group()).delayed_copies.of_retransmissions;
        let is_enough = copies > wanted.map_or(0, |it| it.copies.get());
        if is_enough || !is_first {
            return ProbeAction::Nothing { is_denied: false };
        }
        let permission = self.may_copy_alone(u.path, u, state);
        if permission != CopyPermission::Granted {
            return ProbeAction::Nothing { is_denied: permission == CopyPermission::Denied };
        }
        self.spending.on_copied(u.bytes);
        ProbeAction::Retransmission { is_beside: true }
    }
}

impl AckedCopied {
    /// Describes an acknowledged unit of which a copy was sent; `None` if nothing can be learned from its ACK.
    pub(crate) fn of<P>(acked: &AckedUnit, state: &mut State<P>) -> Option<Self> {
        let (copy, is_reported) = state.outstanding.repeats_mut(acked.unit)?.take_first_copy()?;
        let (unit, first, last_path) = (acked.unit, copy.first, acked.last.path);
        acked.was_in_flight.then_some(Self { unit, first, copy, last_path, is_reported })
    }

    /// Whether a copy can have been what arrived.
    pub(crate) fn may_be_of_copy<P>(
        &self,
        now: Instant,
        state: &State<P>,
        probe: &ProbeTimer,
    ) -> bool {
        let packets = state.outstanding.packets();
        let has_arrived = |packet: PacketNumber| {
            packets.packet(packet).is_some_and(|packet| packet.fate == Fate::Acknowledged)
        };
        let shortest = probe.shortest_rtt(self.last_path);
        let is_late = |at: Instant| shortest.is_none_or(|shortest| now - at >= shortest);
        self.copy.bundled.is_some_and(has_arrived) || self.copy.alone_at.is_some_and(is_late)
    }
}

/// Units of which copies are bundled: a set of the newest ones before the new unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Copies {
    /// One more than the highest unit that the set can contain.
    end: u64,
    /// Bit `n` stands for unit `end - 1 - n`.
    bits: u64,
}

impl Copies {
    /// Units looked at to find what to copy, at most: only the newest few can be of the packets before.
    pub(crate) const MAX_LOOK_BACK: usize = u64::BITS as usize;

    /// The empty set of units below `end`.
    pub(crate) const fn before(end: u64) -> Self {
        Self { end, bits: 0 }
    }

    /// Adds `unit`, one of the [`MAX_LOOK_BACK`](Self::MAX_LOOK_BACK) before the end.
    pub(crate) const fn insert(&mut self, unit: u64) {
        self.bits |= 1 << (self.end - 1 - unit);
    }

    pub(crate) const fn is_empty(self) -> bool {
        self.bits == 0
    }

    /// The lowest unit in the set.
    pub(crate) fn first(self) -> Option<u64> {
        self.bits.checked_ilog2().map(|bit| self.end - 1 - u64::from(bit))
    }
}

/// Iterates over the units in ascending order, and removes them.
impl Iterator for Copies {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let first = self.first()?;
        self.bits ^= 1 << self.bits.ilog2();
        Some(first)
    }
}
