//! Filling a packet: units declared lost, units bundled with them, redundant copies, then new data (RFC 9260 §6.1 C, E).

use rexmit_core::Instant;
use rexmit_core::trace::{SendCause, SentRun, TraceEvent, Tracer};
use rexmit_deadline::{Due, NewPlanned};

use super::LossRecovery;
use super::permission::Permission;
use crate::TimerRestart;
use crate::outstanding::{FirstSent, NewUnit, PacketNumber, Placement, Unit};
use crate::redundancy::{BundleRoom, Bundling, Copies, Redundancy};

/// At most this many units are searched for one of the same thin stream; bulk data may lie between.
const MAX_LOOK_AHEAD: usize = 64;

/// The next thing to be written into a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// A unit that was declared lost.
    Lost(u64),
    /// A unit in flight that is bundled with a retransmission.
    Bundled(u64),
    /// A unit in flight of which a delayed copy is due.
    DelayedCopy(u64),
    /// A unit in flight of which a copy is bundled with new data.
    BundledCopy(u64),
    /// New data, if there is any.
    New,
    /// A unit that may be lost, sent so that ACKs keep coming (RFC 6675 §4 NextSeg rules 3 and 4).
    Rescue(u64),
}

/// A unit as it is to be written into the packet.
#[derive(Debug)]
pub struct Written<'a, P> {
    /// The protocol's own data.
    pub payload: &'a P,
    /// Whether to ask the peer for an immediate ACK (SCTP: the I bit).
    pub wants_ack: bool,
}

/// A packet being built: [`next`](Self::next) names the next unit; the protocol writes it and confirms with
/// [`put`](Self::put) or [`put_new`](Self::put_new), or refuses it by [`pass`](Self::pass) or
/// [`refuse`](Self::refuse). The packet is finished with [`end`](Self::end).
#[must_use = "a packet ends with `end`"]
#[derive(Debug)]
pub struct OpenPacket {
    path: u8,
    /// Whether the units of the packet must be consecutive (a TCP segment).
    is_run: bool,
    /// Whether it probes a silent path: new data follows the retransmissions.
    probes_silence: bool,
    /// The group of the first new data for it.
    new_group: u8,
    stage: Filling,
    /// The unit named last.
    named: Option<Next>,
    /// The last unit that was named.
    last_named: Option<u64>,
    /// The last unit in the packet.
    last: Option<u64>,
    /// Copies to be bundled with new data.
    to_copy: Copies,
    /// Copies that were bundled.
    copied: Copies,
    content: Content,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Filling {
    Lost,
    Bundled,
    DelayedCopies,
    New,
    Rescue,
    Full,
}

/// The content of a packet, without redundant copies bundled with new data.
#[derive(Clone, Copy, Debug, Default)]
struct Content {
    units: u16,
    /// Whether the packet retransmits the earliest unit outstanding on its path, so that T3-rtx restarts. Early
    /// retransmissions do not count: they would keep it from expiring.
    has_earliest: bool,
    has_repeats: bool,
    /// Whether the packet contains delayed copies.
    has_delayed: bool,
    /// Whether the packet contains a unit that is neither new nor a redundant copy.
    is_needed: bool,
    /// Whether the packet contains a unit that the probe timer retransmits.
    has_probe: bool,
    /// The number of new units, which come after all others in the packet; then their bytes, and their group.
    new: u16,
    new_bytes: u32,
    new_group: u8,
}

impl OpenPacket {
    /// The path of the packet.
    #[must_use]
    pub const fn path(&self) -> u8 {
        self.path
    }

    /// Whether there is no unit in it; copies bundled with new data do not count before that.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.content.units == 0
    }

    /// Whether copies are named next that were chosen to be bundled with new data.
    #[must_use]
    pub fn is_bundling(&self) -> bool {
        !self.to_copy.is_empty()
    }

    /// Whether it probes a silent path, where each packet has new data, too: if only ACKs are lost, it arrives. Half of the
    /// packet is to be left to it.
    #[must_use]
    pub const fn probes_silence(&self) -> bool {
        self.probes_silence
    }

    /// Whether the packet contains new data.
    #[must_use]
    pub const fn has_new(&self) -> bool {
        self.content.new > 0
    }

    /// The next unit for the packet, to be answered with [`put`](Self::put), [`put_new`](Self::put_new),
    /// [`pass`](Self::pass) or [`refuse`](Self::refuse); `None` if the packet is complete.
    #[inline]
    pub fn next<P>(&mut self, recovery: &LossRecovery<P>) -> Option<Next> {
        // New data is the rule; what is repeated is worth a call.
        if self.stage == Filling::New && self.to_copy.is_empty() {
            if self.may_have_new(recovery) {
                self.named = Some(Next::New);
                return self.named;
            }
            self.stage = Filling::Rescue;
        }
        if self.stage == Filling::Rescue
            && !(self.is_empty() && recovery.state.fast_recovery.is_on())
        {
            self.stage = Filling::Full;
        }
        if self.stage == Filling::Full { None } else { self.find_next(recovery) }
    }

    #[inline(never)]
    fn find_next<P>(&mut self, recovery: &LossRecovery<P>) -> Option<Next> {
        while self.stage != Filling::Full {
            self.named = self.find(&Permission::of(recovery), recovery);
            match self.named {
                Some(next) => {
                    self.last_named = next.unit().or(self.last_named);
                    return self.named;
                }
                None => self.refuse(),
            }
        }
        None
    }

    fn find<P>(&self, permission: &Permission<'_, P>, recovery: &LossRecovery<P>) -> Option<Next> {
        let follows = |unit: &u64| !self.is_run || self.last.is_none_or(|last| *unit == last + 1);
        match self.stage {
            Filling::Lost => {
                let lost = match self.last_named {
                    None => permission.next_lost(self.path),
                    Some(last) => permission.lost_after(last, self.path),
                };
                lost.filter(follows).map(Next::Lost)
            }
            Filling::Bundled => {
                // With more to be retransmitted than fits there is no room, and no need to look for more.
                let is_full = !self.is_run && recovery.state.outstanding.has_lost();
                let last = self.last.filter(|_| !is_full)?;
                next_to_bundle(recovery, last, self.path).filter(follows).map(Next::Bundled)
            }
            Filling::DelayedCopies => {
                let has_others = self.content.has_repeats && !self.content.has_delayed;
                let copy = permission.next_copy(self.path, !self.is_empty());
                let copy = copy.filter(|_| !(self.is_run && has_others));
                copy.filter(follows).map(Next::DelayedCopy)
            }
            Filling::New => match self.to_copy.first() {
                Some(unit) => Some(Next::BundledCopy(unit)),
                None => self.may_have_new(recovery).then_some(Next::New),
            },
            Filling::Rescue if self.is_empty() => {
                permission.rescue_unit(self.path).map(Next::Rescue)
            }
            Filling::Rescue | Filling::Full => None,
        }
    }

    #[inline]
    fn may_have_new<P>(&self, recovery: &LossRecovery<P>) -> bool {
        if self.content.new > 0 {
            return true;
        }
        match self.last {
            // Behind the last retransmission before new data: the window had room for the whole segment.
            Some(last) if self.is_run => {
                !self.content.has_delayed && last + 1 == recovery.state.outstanding.next_unit()
            }
            Some(_) if self.probes_silence => true,
            _ => Permission::of(recovery).may_send_new(self.path, self.new_group),
        }
    }

    /// Skips the unit that [`next`](Self::next) named, because it does not fit into the packet; a later unit
    /// of the same kind (such as lost units) may fit.
    pub fn pass<P>(&mut self, recovery: &mut LossRecovery<P>) {
        match self.named.take() {
            Some(Next::DelayedCopy(unit)) => recovery.redundancy.drop_copy(self.path, unit),
            Some(Next::BundledCopy(_)) => _ = self.to_copy.next(),
            Some(Next::Lost(_)) | None => {}
            Some(Next::Bundled(_) | Next::New | Next::Rescue(_)) => self.refuse(),
        }
    }

    /// Skips the unit that [`next`](Self::next) named and all others of its kind, because none fits into the packet.
    pub fn refuse(&mut self) {
        self.named = None;
        self.to_copy = Copies::default();
        self.stage = match self.stage {
            Filling::Lost => Filling::Bundled,
            Filling::Bundled => Filling::DelayedCopies,
            Filling::DelayedCopies => Filling::New,
            Filling::New => Filling::Rescue,
            Filling::Rescue | Filling::Full => Filling::Full,
        };
    }

    /// Puts the unit that [`next`](Self::next) named into the packet. `None` if it is not outstanding any more.
    #[inline(never)] // Retransmission is the exception: new data stays fast.
    pub fn put<'r, P>(
        &mut self,
        recovery: &'r mut LossRecovery<P>,
        now: Instant,
    ) -> Option<Written<'r, P>> {
        let named = self.named.take()?;
        let unit = named.unit()?;
        let group = recovery.state.outstanding.unit(unit)?.group();
        let wants_ack = recovery.state.wants_immediate_ack(group);
        match named {
            Next::Lost(_) | Next::Bundled(_) => self.retransmit(recovery, now, unit)?,
            Next::DelayedCopy(_) => self.copy_alone(recovery, now, unit)?,
            Next::BundledCopy(_) => self.copy_bundled(recovery, unit)?,
            Next::Rescue(_) => {
                let exit = recovery.state.fast_recovery.exit()?;
                recovery.loss.on_rescued(&recovery.state.outstanding, unit, exit);
                self.repeat(recovery, now, unit, SendCause::FastRetransmit)?;
                self.stage = Filling::Full;
            }
            Next::New => return None,
        }
        let payload = &recovery.state.outstanding.unit(unit)?.payload;
        Some(Written { payload, wants_ack })
    }

    /// Whether copies of data in flight of `group` may be bundled with its new data: not if there are other units.
    #[inline]
    pub fn may_bundle<P>(&self, recovery: &LossRecovery<P>, group: u8) -> bool {
        let LossRecovery { state, probe, plan, .. } = recovery;
        let is_wanted =
            || plan.is_bundling() || !self.is_run && probe.bundles_unanswered(self.path);
        !state.outstanding.is_empty()
            && self.is_empty()
            && (Redundancy::may_copy(group, state) || is_wanted() && state.is_thin(group))
    }

    /// Chooses these copies, if they [may](Self::may_bundle) be bundled, before the first new unit. Returns whether there
    /// are any: [`next`](Self::next) names them.
    ///
    /// # Panics
    /// If there is no such group.
    pub fn bundle<P>(
        &mut self,
        recovery: &mut LossRecovery<P>,
        now: Instant,
        group: u8,
        room: BundleRoom,
    ) -> bool {
        if !self.may_bundle(recovery, group) {
            return false;
        }
        let LossRecovery { state, probe, redundancy, plan, .. } = recovery;
        let bundling = Bundling { path: self.path, group, room, probe, plan };
        let chosen = redundancy.choose(now, &bundling, state);
        state.statistics.copies_denied += u64::from(chosen.is_denied);
        self.to_copy = chosen.copies;
        self.copied = Copies::before(state.outstanding.next_unit());
        !self.to_copy.is_empty()
    }

    /// Puts a new unit into the packet. Returns its number, and whether to ask the peer for an immediate ACK.
    pub fn put_new<P>(
        &mut self,
        recovery: &mut LossRecovery<P>,
        now: Instant,
        new: NewUnit,
        payload: P,
    ) -> (u64, bool) {
        let state = &mut recovery.state;
        let wants_ack = state.wants_immediate_ack(new.group);
        let mut place = self.place();
        if place.starts_packet {
            place.trial = state.paths.on_new(now, self.path);
        }
        let (unit, was_idle) = state.outstanding.send(now, place, new, payload);
        if place.starts_packet {
            self.on_started(recovery, now, new.bytes);
        }
        let LossRecovery { state, loss, .. } = &mut *recovery;
        // What acknowledgements showed of later units lets this one leave beyond the window, perhaps; it is left
        // out when the window is reduced (RFC 5681 §3.2 step 2).
        let has_reports =
            !loss.duplicates.is_empty() || !state.outstanding.acknowledged().is_empty();
        if has_reports && !state.fast_recovery.is_on() {
            let window = &state.paths[self.path].window;
            let before = state.outstanding.bytes() - u64::from(new.bytes);
            if before + window.packet() > window.cwnd() {
                state.fast_recovery.on_beyond_window(u64::from(new.bytes));
            }
        }
        state.statistics.new_units += 1;
        if was_idle {
            recovery.probe.on_first_outstanding(now, self.path);
        }
        if recovery.state.groups.has_mechanisms {
            self.plan_new(recovery, now, unit, new);
        }
        self.content.new += 1;
        self.content.new_bytes += new.bytes;
        self.content.new_group = new.group;
        self.last = Some(unit);
        if self.is_run {
            self.stage = Filling::Full; // A segment of TCP has new data once, at its end.
        }
        (unit, wants_ack)
    }

    /// The probability with which the deadline of its new data can be met, if that is less than required. Returned once, for
    /// the first such data after data whose deadline could be met.
    pub fn take_infeasible<P>(&self, recovery: &mut LossRecovery<P>) -> Option<f64> {
        recovery.plan.take_infeasible().filter(|_| self.has_new())
    }

    /// Plans the copies of a new unit, if it has a deadline and its stream is thin.
    fn plan_new<P>(&self, recovery: &mut LossRecovery<P>, now: Instant, unit: u64, new: NewUnit) {
        let LossRecovery { state, probe, redundancy, plan, .. } = recovery;
        let NewUnit { group, due, is_ordered, .. } = new;
        let config = state.groups.config(group);
        let of_group =
            config.deadline.map(|deadline| Due { at: now + deadline.within(), deadline });
        let Some(due) = due.or(of_group).filter(|_| state.is_thin(group)) else { return };
        let ways = probe.ways(state, self.path, group);
        let new = NewPlanned { unit, due, is_ordered };
        let copies = plan.on_new(now, new, ways, config.copy_budget.shares());
        if !probe.is_silent(self.path) {
            redundancy.plan(now, unit, copies, state);
        }
    }

    const fn place(&mut self) -> Placement {
        let starts_packet = self.content.units == 0;
        self.content.units += 1;
        Placement { path: self.path, starts_packet, trial: None }
    }

    /// Called when the first unit of the packet, of `bytes`, is written: the window of an idle path decays first.
    fn on_started<P>(&self, recovery: &mut LossRecovery<P>, now: Instant, bytes: u32) {
        let state = &mut recovery.state;
        let flight = state.outstanding.flight(self.path).bytes - u64::from(bytes);
        let p = &mut state.paths[self.path];
        p.window.on_send(now, p.timer.rto(), flight);
    }
}

impl Next {
    /// Whether the unit is sent because it was declared lost, or because a copy of it is due.
    #[must_use]
    pub const fn is_due(self) -> bool {
        matches!(self, Self::Lost(_) | Self::DelayedCopy(_))
    }

    const fn unit(self) -> Option<u64> {
        match self {
            Self::Lost(unit)
            | Self::Bundled(unit)
            | Self::DelayedCopy(unit)
            | Self::BundledCopy(unit)
            | Self::Rescue(unit) => Some(unit),
            Self::New => None,
        }
    }
}

impl OpenPacket {
    #[inline(never)]
    fn retransmit<P>(
        &mut self,
        recovery: &mut LossRecovery<P>,
        now: Instant,
        unit: u64,
    ) -> Option<()> {
        let cause = match recovery.state.outstanding.unit(unit)?.state() {
            crate::UnitState::Lost(cause) => cause,
            _ => SendCause::Bundled,
        };
        if recovery.state.fast_recovery.is_on() && cause == SendCause::FastRetransmit {
            recovery.loss.on_retransmitted(unit);
        }
        let repeats = recovery.state.outstanding.unit(unit)?.repeats();
        let standing = repeats.map_or(0, |repeats| repeats.standing_copies().0);
        self.repeat(recovery, now, unit, cause)?;
        let LossRecovery { state, redundancy, probe, plan, .. } = recovery;
        let is_lost = matches!(cause, SendCause::Probe | SendCause::FastRetransmit);
        let group = state.outstanding.unit(unit)?.group();
        let ways = if plan.is_any() { probe.ways(state, self.path, group) } else { None };
        let planned = plan.on_retransmitted(now, unit, ways).filter(|_| is_lost);
        if let Some(copies) = planned.filter(|_| !probe.is_silent(self.path)) {
            redundancy.plan(now, unit, copies, state);
        } else if is_lost && !probe.is_silent(self.path) && state.groups.has_delayed_copies() {
            redundancy.plan_of_retransmission(now, unit, standing, state);
        }
        if is_redundant(cause, state.config.bundle_outstanding) {
            redundancy.spending.on_copied(state.outstanding.unit(unit)?.bytes);
        }
        if self.is_run {
            self.stage = Filling::Lost;
        }
        Some(())
    }

    fn copy_alone<P>(
        &mut self,
        recovery: &mut LossRecovery<P>,
        now: Instant,
        unit: u64,
    ) -> Option<()> {
        let state = &recovery.state;
        let u = state.outstanding.unit(unit)?;
        let bytes = u.bytes;
        let first = FirstSent::of(&state.outstanding, unit);
        let left = recovery.redundancy.take_copy(self.path, unit)?;
        self.repeat(recovery, now, unit, SendCause::Redundant)?;
        let LossRecovery { state, redundancy, plan, .. } = recovery;
        plan.on_copied(now, unit);
        state.outstanding.on_copied(unit, first);
        state.statistics.redundant_bytes += u64::from(bytes);
        state.statistics.delayed_copies += 1;
        redundancy.on_copy_sent(now, unit, left, state);
        self.content.has_delayed = true;
        Some(())
    }

    /// The unit stays in the packet that it was sent in: the copy is neither in flight nor a retransmission.
    fn copy_bundled<P>(&mut self, recovery: &LossRecovery<P>, unit: u64) -> Option<()> {
        self.to_copy.next();
        if !recovery.state.outstanding.unit(unit)?.is_in_flight() {
            return None;
        }
        self.copied.insert(unit);
        Some(())
    }

    /// Records the retransmission of `unit` in this packet.
    fn repeat<P>(
        &mut self,
        recovery: &mut LossRecovery<P>,
        now: Instant,
        unit: u64,
        cause: SendCause,
    ) -> Option<()> {
        let LossRecovery { state, loss, probe, spurious, .. } = &mut *recovery;
        if !state.outstanding.unit(unit)?.is_outstanding() {
            return None;
        }
        let place = self.place();
        let redundant = is_redundant(cause, state.config.bundle_outstanding);
        let sent = state.outstanding.retransmit(now, place, unit, cause, redundant)?;
        let before = sent.before;
        let detection = spurious.as_mut();
        let episode = detection.and_then(|it| it.on_retransmitted(now, before.path, cause));
        let outstanding = &mut state.outstanding;
        let forgotten = outstanding.remember_repeat(now, unit, before.packet, cause, episode);
        spurious.iter_mut().for_each(|it| it.on_forgotten(forgotten));
        state.statistics.retransmitted.count(cause);
        if sent.was_in_flight {
            loss.on_declared_lost(unit);
        }
        if let Some(moved) = sent.moved {
            state.stop_t3_if_idle(moved.from);
            probe.renew(moved.from, state);
            if moved.was_idle && state.paths[moved.to].reach.errors() == 0 {
                probe.on_moved_to(moved.to);
            }
        }
        loss.on_in_flight_again(unit, state);
        let bytes = state.outstanding.unit(unit)?.bytes;
        if place.starts_packet {
            self.on_started(recovery, now, bytes);
        }
        self.content.has_repeats = true;
        self.content.has_earliest |= sent.is_earliest && cause != SendCause::Early;
        self.content.is_needed |= cause != SendCause::Redundant;
        self.content.has_probe |= cause == SendCause::Probe;
        self.last = Some(unit);
        Some(())
    }
}

/// Whether something retransmitted because of `cause` is a redundant copy.
const fn is_redundant(cause: SendCause, bundles_outstanding: bool) -> bool {
    match cause {
        SendCause::Redundant => true,
        SendCause::Bundled => !bundles_outstanding,
        _ => false,
    }
}

impl<P> LossRecovery<P> {
    /// A packet over `path` is built. `is_run`: its units have to follow each other, as in a segment of TCP;
    /// `new_group`: that of the new data that is next.
    #[inline]
    pub fn packet(&self, path: u8, is_run: bool, new_group: u8) -> OpenPacket {
        let is_due = self.next_due(path).is_some();
        let stage = if is_due { Filling::Lost } else { Filling::New };
        OpenPacket {
            path,
            is_run,
            probes_silence: is_due && !is_run && Permission::of(self).probes_silence(path),
            new_group,
            stage,
            named: None,
            last_named: None,
            last: None,
            to_copy: Copies::default(),
            copied: Copies::default(),
            content: Content::default(),
        }
    }
}

/// The next unit after `unit` that is outstanding but not declared lost, if the profile bundles such units
/// with a retransmission; or of the same thin stream over the same path, if it copies data in flight.
fn next_to_bundle<P>(recovery: &LossRecovery<P>, unit: u64, path: u8) -> Option<u64> {
    let state = &recovery.state;
    let bundles_any = state.config.bundle_outstanding;
    let u = state.outstanding.unit(unit)?;
    let (group, of_path) = (u.group(), u.path);
    if !bundles_any && !recovery.redundancy.may_bundle(path, group, state) {
        return None;
    }
    let is_bundled = |u: &Unit<P>| {
        let is_alike = u.group() == group && u.path == of_path && !u.is_probe;
        u.is_in_flight() && (bundles_any || is_alike)
    };
    let most = if bundles_any { usize::MAX } else { MAX_LOOK_AHEAD };
    let mut following = state.outstanding.units_from(unit + 1).take(most);
    following.find(|(_, unit)| is_bundled(unit)).map(|(number, _)| number)
}

/// The end of a packet.
impl OpenPacket {
    /// Called when the packet is sent. Starts T3-rtx if it does not run, and restarts it if the packet
    /// repeats the earliest outstanding unit (RFC 9260 §6.1, R1), unless the profile says otherwise
    /// ([`TimerRestart`]). Returns whether the packet carries any unit.
    pub fn end<P>(
        self,
        recovery: &mut LossRecovery<P>,
        now: Instant,
        tracer: &mut Tracer<'_>,
    ) -> bool {
        let content = self.content;
        if content.units == 0 {
            return false;
        }
        self.count(recovery, now);
        let may_restart =
            content.has_probe || recovery.state.config.timer_restart == TimerRestart::OnResend;
        // It goes on beside the probes of a silent path, which would be probed for ever otherwise.
        let is_silent = content.has_probe && recovery.probe.is_silent(self.path);
        let is_restarted = content.has_earliest && may_restart && !is_silent;
        if !recovery.state.paths[self.path].t3.is_running() || is_restarted {
            recovery.arm_t3(now, self.path);
        }
        let number = recovery.state.outstanding.newest_packet();
        let sent = recovery.state.outstanding.packets().packet(number);
        let bytes = sent.map_or(0, |packet| packet.bytes);
        recovery.state.paths[self.path].window.on_sent(now, bytes);
        if sent.is_some() {
            tracer.emit(|| sent_event(recovery, number));
        }
        self.end_copies(recovery, now, tracer);
        self.count_new(recovery, now);
        recovery.renew_probe(self.path);
        if content.new > 0 {
            recovery.restart_early(now, self.path);
        }
        recovery.state.trace_thinness(tracer);
        true
    }

    fn count<P>(&self, recovery: &mut LossRecovery<P>, now: Instant) {
        let has_repeats = self.content.has_repeats;
        let state = &mut recovery.state;
        state.statistics.packets += 1;
        state.statistics.retransmission_packets += u64::from(has_repeats);
        let chooses_late = state.chooses_late();
        let p = &mut state.paths[self.path];
        p.counters.packets += 1;
        p.counters.retransmissions += u64::from(has_repeats);
        p.gate.burst_left = p.gate.burst_left.saturating_sub(1);
        if !has_repeats {
            return recovery.spurious.iter_mut().for_each(|it| it.on_sent_new(self.path));
        }
        p.gate.close();
        p.on_retransmission(now);
        if chooses_late {
            state.paths.iter_mut().for_each(|path| path.gate.close());
        }
    }

    fn end_copies<P>(&self, recovery: &mut LossRecovery<P>, now: Instant, tracer: &mut Tracer<'_>) {
        if self.copied.is_empty() {
            return;
        }
        let number = recovery.state.outstanding.newest_packet();
        for unit in self.copied {
            let LossRecovery { state, probe, redundancy, spurious, plan, .. } = &mut *recovery;
            plan.on_copied(now, unit);
            let forgotten = state.outstanding.remember_bundled_copy(now, unit, number);
            spurious.iter_mut().for_each(|it| it.on_forgotten(forgotten));
            state.statistics.retransmitted.count(SendCause::Redundant);
            let Some(u) = state.outstanding.unit(unit) else { continue };
            let (bytes, path) = (u.bytes, u.path);
            state.statistics.redundant_bytes += u64::from(bytes);
            redundancy.spending.on_copied(bytes);
            probe.on_copied(now, u, state);
            if probe.restarts_t3(unit, path, state) {
                recovery.arm_t3(now, path);
            }
        }
        let (packet, path) = (number.0, self.path);
        tracer.emit(|| TraceEvent::CopiesSent { packet, path, runs: runs_of(self.copied) });
    }

    /// Called when a packet is sent: adds its new data to the budget of redundant copies, and begins to cover
    /// it by the probe timer.
    fn count_new<P>(&self, recovery: &mut LossRecovery<P>, now: Instant) {
        let Content { new, new_bytes, new_group, is_needed, .. } = self.content;
        let LossRecovery { state, probe, redundancy, .. } = recovery;
        if !state.groups.has_mechanisms {
            return;
        }
        if new > 0 {
            state.note_first_sent(self.path);
            redundancy.on_first_sent(self.path, new_group, new_bytes, state);
            if !probe.is_silent(self.path) {
                let next = state.outstanding.next_unit();
                redundancy.plan_last(now, self.path, next - u64::from(new)..next, state);
            }
        } else if !is_needed {
            redundancy.spending.on_packet_of_copies();
        }
        probe.on_sent(now, self.path, state);
    }
}

fn sent_event<P>(recovery: &LossRecovery<P>, number: PacketNumber) -> TraceEvent {
    let outstanding = &recovery.state.outstanding;
    let packet = outstanding.packets().packet(number).expect("it was entered just now");
    let mut runs: Vec<SentRun> = Vec::new();
    for unit in packet.lowest..=packet.highest {
        let sent = outstanding.unit(unit).map(Unit::last).filter(|last| last.packet == number);
        let Some(cause) = sent.map(|last| last.cause) else { continue };
        match runs.last_mut() {
            Some(run) if run.highest + 1 == unit && run.cause == cause => run.highest = unit,
            _ => runs.push(SentRun::new(unit, unit, cause)),
        }
    }
    let (units, bytes) = (packet.units, packet.bytes);
    TraceEvent::PacketSent { packet: number.0, path: packet.path, units, bytes, runs }
}

fn runs_of(units: impl Iterator<Item = u64>) -> Vec<(u64, u64)> {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for unit in units {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == unit => *last = unit,
            _ => runs.push((unit, unit)),
        }
    }
    runs
}
