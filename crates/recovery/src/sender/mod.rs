//! The sender's side of an association: what is outstanding, what may leave, and the entry points
//! that put the mechanisms together. `send` is what leaves, `rescue` what leaves as a last resort,
//! `ack` what was acknowledged, `losses` what that says of the rest, `duplicates` what a peer
//! without SACK says, `timeout` what the timer says. `thin` tells whether a stream is, and `t3` when
//! the timer expires. `spurious` knows the retransmission events, `f_rto` examines timeouts, and
//! `undo` takes back what an event did; `adaptive` and `rack` are how much reordering is borne.

mod ack;
mod adaptive;
mod duplicates;
mod early;
mod f_rto;
mod losses;
mod path;
mod rack;
mod redundancy;
mod rescue;
mod send;
mod spurious;
mod t3;
mod thin;
mod timeout;
mod undo;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use rexmit_core::trace::{SendCause, TraceEvent, Tracer};
use rexmit_core::{Instant, RangeSet};

pub use ack::{AckError, AckOutcome};
use path::Path;
pub use redundancy::BundleRoom;
use spurious::Doubts;
use thin::Groups;
pub use thin::{GroupLimit, MAX_GROUPS};
pub use timeout::TimeoutKind;

use crate::ledger::{EndedUnit, Fate, Flight, Ledger};
use crate::loss::duplicates::DuplicateAcks;
use crate::loss::scoreboard::Scoreboard;
use crate::redundancy::Copies;
use crate::spurious::events::Events;
use crate::spurious::log::RetransmissionLog;
use crate::{
    CongestionWindow, MissingReports, PacketNumber, RecoveryConfig, RecoveryStatistics, RtoTimer,
};

/// What is known of a unit that was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnitState {
    /// Its last copy is on the way.
    InFlight,
    /// Reported as received above the cumulative point.
    Acknowledged,
    /// Judged lost, and waiting to be sent again.
    Lost(SendCause),
    /// Given up (partial reliability): it will not be sent again.
    Abandoned,
}

/// A unit that was sent and is not yet cumulatively acknowledged.
#[derive(Clone, Debug)]
pub struct Unit<P> {
    /// What the protocol needs to send it again.
    pub payload: P,
    bytes: u32,
    user_bytes: u32,
    path: u8,
    group: u8,
    packet: PacketNumber,
    /// Why it left with it.
    cause: SendCause,
    transmissions: u16,
    /// Had its fast retransmit: ineligible for another (RFC 9260 §7.2.4 rule 5).
    fast_retransmitted: bool,
    /// A copy of it left on purpose.
    is_copied: bool,
    state: UnitState,
}

impl<P> Unit<P> {
    /// The group that it was sent in.
    #[must_use]
    pub const fn group(&self) -> u8 {
        self.group
    }

    /// What is known of it.
    #[must_use]
    pub const fn state(&self) -> UnitState {
        self.state
    }

    /// Whether missing reports of it count (RFC 9260 §7.2.4 rule 5).
    fn may_be_fast_retransmitted(&self) -> bool {
        self.state == UnitState::InFlight && !self.fast_retransmitted
    }

    /// How often it left.
    #[must_use]
    pub const fn transmissions(&self) -> u16 {
        self.transmissions
    }
}

/// Loss recovery and congestion control of one association, over units numbered by the protocol.
///
/// Numbers are unwrapped and consecutive. `P` is what the protocol keeps with a unit.
#[derive(Debug)]
pub struct LossRecovery<P> {
    config: Arc<RecoveryConfig>,
    /// The number of `units[0]`: one above the cumulative point.
    first: u64,
    units: VecDeque<Unit<P>>,
    /// Units acknowledged above the cumulative point.
    acknowledged: RangeSet,
    /// Units judged lost that wait to be sent again.
    lost: BTreeSet<u64>,
    missing: MissingReports,
    scoreboard: Scoreboard,
    duplicates: DuplicateAcks,
    /// The highest unit outstanding when fast recovery began.
    fast_recovery_exit: Option<u64>,
    /// `recover`: the highest unit sent when a recovery last began or the timer expired. Until it
    /// is acknowledged, a TCP begins no other recovery (RFC 6582 §3.2, RFC 6675 §5.1).
    recover: Option<u64>,
    /// Bytes sent and not cumulatively acknowledged: `FlightSize` (RFC 5681 §2).
    outstanding_bytes: u64,
    /// Those of limited transmit.
    beyond_window: u64,
    ledger: Ledger,
    paths: Vec<Path>,
    /// What left more than once; nothing before anything did.
    log: Option<Box<RetransmissionLog>>,
    /// What the detectors of spurious events keep, if there is any.
    doubts: Option<Box<Doubts>>,
    copies: Copies,
    user_bytes_in_flight: u64,
    groups: Groups,
    open: Option<send::OpenPacket>,
    statistics: RecoveryStatistics,
    /// How often a unit was looked at: what a SACK costs.
    #[cfg(test)]
    visits: std::cell::Cell<u64>,
}

impl<P> LossRecovery<P> {
    /// A sender whose first unit will be `first`, over one path whose packets hold units of up to
    /// `pmdcs` bytes (header and padding included).
    #[must_use]
    pub fn new(config: Arc<RecoveryConfig>, first: u64, pmdcs: u32) -> Self {
        let groups = Groups::new(config.thin, config.missing_reports);
        let doubts = config.follows_events().then(Box::default);
        let mut recovery = Self {
            config,
            groups,
            first,
            units: VecDeque::new(),
            acknowledged: RangeSet::new(),
            lost: BTreeSet::new(),
            missing: MissingReports::default(),
            scoreboard: Scoreboard::default(),
            duplicates: DuplicateAcks::default(),
            fast_recovery_exit: None,
            recover: None,
            outstanding_bytes: 0,
            beyond_window: 0,
            ledger: Ledger::default(),
            paths: Vec::with_capacity(1),
            log: None,
            doubts,
            copies: Copies::default(),
            user_bytes_in_flight: 0,
            open: None,
            statistics: RecoveryStatistics::default(),
            #[cfg(test)]
            visits: std::cell::Cell::default(),
        };
        recovery.add_path(pmdcs);
        recovery
    }

    /// Adds a path and returns its index.
    ///
    /// # Panics
    /// With more than 255 paths; the protocol limits them far below.
    pub fn add_path(&mut self, pmdcs: u32) -> u8 {
        let index = u8::try_from(self.paths.len()).expect("the protocol limits the paths");
        self.ledger.add_path();
        self.paths.push(Path::new(&self.config, pmdcs));
        index
    }

    /// The setup is done: packets of `path` hold units of up to `packet` bytes, and its window is
    /// the initial one. If the setup had to be sent again, the window is one packet, and without a
    /// round-trip time the timeout is 3 s (RFC 5681 §3.1, RFC 6298 §5.7).
    pub fn on_established(&mut self, path: u8, packet: u32, setup_was_repeated: bool) {
        let config = Arc::clone(&self.config);
        let p = self.path_mut(path);
        p.window = CongestionWindow::new(&config, packet);
        if setup_was_repeated {
            p.window.on_setup_lost();
            p.timer.on_setup_lost(&config.rto);
        }
    }

    /// Packets of `path` hold units of up to `packet` bytes from now on (path MTU).
    pub fn on_packet_size(&mut self, path: u8, packet: u32) {
        self.path_mut(path).window.on_packet_size(packet);
    }

    /// The number of the next new unit.
    #[must_use]
    pub fn next_unit(&self) -> u64 {
        self.first + self.units.len() as u64
    }

    /// Every unit up to this one is acknowledged (or was never sent).
    #[must_use]
    pub const fn cumulative(&self) -> u64 {
        self.first - 1
    }

    /// The unit numbered `unit`, if it was sent and is not yet cumulatively acknowledged.
    #[must_use]
    pub fn unit(&self, unit: u64) -> Option<&Unit<P>> {
        #[cfg(test)]
        self.visits.update(|visits| visits + 1);
        self.units.get(usize::try_from(unit.checked_sub(self.first)?).ok()?)
    }

    fn unit_mut(&mut self, unit: u64) -> Option<&mut Unit<P>> {
        #[cfg(test)]
        self.visits.update(|visits| visits + 1);
        self.units.get_mut(usize::try_from(unit.checked_sub(self.first)?).ok()?)
    }

    /// The units not yet cumulatively acknowledged, in order.
    pub fn units(&self) -> impl Iterator<Item = (u64, &Unit<P>)> {
        (self.first..).zip(&self.units)
    }

    /// Whether everything sent is cumulatively acknowledged.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// What is in flight on `path`.
    #[must_use]
    pub fn flight(&self, path: u8) -> Flight {
        self.ledger.flight(path)
    }

    /// Bytes sent and not cumulatively acknowledged, on all paths: `FlightSize` (RFC 5681 §2).
    #[must_use]
    pub const fn outstanding_bytes(&self) -> u64 {
        self.outstanding_bytes
    }

    /// User bytes in flight on all paths: what counts against the peer's receive window.
    #[must_use]
    pub const fn user_bytes_in_flight(&self) -> u64 {
        self.user_bytes_in_flight
    }

    /// The packets of this association.
    #[must_use]
    pub const fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The window of `path`.
    #[must_use]
    pub fn window(&self, path: u8) -> &CongestionWindow {
        &self.path(path).window
    }

    /// The timeout of `path`, with the round-trip time behind it.
    #[must_use]
    pub fn timer(&self, path: u8) -> &RtoTimer {
        &self.path(path).timer
    }

    /// Whether the sender is in fast recovery.
    #[must_use]
    pub const fn is_in_fast_recovery(&self) -> bool {
        self.fast_recovery_exit.is_some()
    }

    /// What was counted.
    #[must_use]
    pub const fn statistics(&self) -> &RecoveryStatistics {
        &self.statistics
    }

    /// Forgets every unit, giving each to `f` in order: the end of the association.
    pub fn drain(&mut self, mut f: impl FnMut(Unit<P>)) {
        self.first = self.next_unit();
        self.units.drain(..).for_each(&mut f);
        self.lost.clear();
        self.missing.clear();
        self.acknowledged.clear();
        self.copies = Copies::default();
        self.ledger = Ledger::default();
        self.duplicates.clear();
        self.user_bytes_in_flight = 0;
        self.outstanding_bytes = 0;
        self.beyond_window = 0;
        for path in &mut self.paths {
            self.ledger.add_path();
            path.t3 = None;
            path.early = Instant::FAR_FUTURE;
            path.outstanding = 0;
            path.may_resend_now = false;
            path.events().into_iter().for_each(Events::clear);
        }
    }

    /// Gives back memory that is not in use: for when nothing was sent for a while, so that no
    /// duplicate report is to be expected either.
    pub fn release_memory(&mut self) {
        self.units.shrink_to_fit();
        self.acknowledged.release_memory();
        self.ledger.release_memory();
        if self.units.is_empty() {
            // The first two are empty, but keep a node until they are cleared.
            self.lost.clear();
            self.missing.clear();
            let cumulative = self.cumulative();
            self.log.iter_mut().for_each(|log| log.release_memory(cumulative));
            self.copies = Copies::default();
        }
    }

    /// A round trip over `path` was measured by other means (a HEARTBEAT).
    pub fn on_rtt_sample(
        &mut self,
        now: Instant,
        path: u8,
        rtt: Duration,
        tracer: &mut Tracer<'_>,
    ) {
        let config = Arc::clone(&self.config);
        self.path_mut(path).on_sample(now, rtt, &config);
        let timer = &self.path(path).timer;
        tracer.emit(|| TraceEvent::RttSample {
            path,
            rtt,
            srtt: timer.rtt().srtt().unwrap_or(rtt),
            rto: self.rto(path),
        });
    }

    /// Gives `unit` up (RFC 3758): it will not be sent again and is not in flight. One that was
    /// acknowledged above the cumulative point is given up, too, as a part of its message.
    pub fn abandon(&mut self, unit: u64) {
        let Some(u) = self.unit_mut(unit) else { return };
        let (state, path) = (u.state, u.path);
        u.state = UnitState::Abandoned;
        match state {
            UnitState::Abandoned | UnitState::Acknowledged => return,
            UnitState::InFlight => {
                self.leave_flight(unit, Fate::Superseded);
                self.ledger.forget_ended();
            }
            UnitState::Lost(_) => {
                self.lost.remove(&unit);
                // Whether it had arrived will never be known.
                self.path_mut(path).doubt();
            }
        }
        self.missing.forget(unit);
        self.copies.forget(unit);
        self.arm_early(path);
        let p = self.path_mut(path);
        p.outstanding -= 1;
        if p.outstanding == 0 {
            p.t3 = None;
        } else if p.earliest == unit {
            self.advance_earliest(path);
        }
        self.settle_resending();
    }

    /// Nothing waits to be sent again, so no packet may pass the window for it.
    fn settle_resending(&mut self) {
        if self.lost.is_empty() {
            self.paths.iter_mut().for_each(|path| path.may_resend_now = false);
        }
    }

    /// Finds the earliest unit outstanding on `path` again, upwards from where it was: each unit
    /// is passed over once.
    fn advance_earliest(&mut self, path: u8) {
        let is_outstanding = |u: &Unit<P>| {
            u.path == path && matches!(u.state, UnitState::InFlight | UnitState::Lost(_))
        };
        let from = self.path(path).earliest.max(self.first);
        let found =
            (from..self.next_unit()).find(|&unit| self.unit(unit).is_some_and(is_outstanding));
        self.path_mut(path).earliest = found.unwrap_or(self.next_unit());
    }

    /// Takes `unit` out of the flight; its packet meets `fate` if it was the highest unit in it.
    fn leave_flight(&mut self, unit: u64, fate: Fate) -> Option<PacketNumber> {
        let &Unit { bytes, user_bytes, path, packet, .. } = self.unit(unit)?;
        let ended = EndedUnit { unit, bytes, path, packet };
        self.end_flight(&ended, user_bytes, fate).then_some(packet)
    }

    /// The same for what the caller knows already; returns whether the packet met `fate`.
    #[inline]
    fn end_flight(&mut self, ended: &EndedUnit, user_bytes: u32, fate: Fate) -> bool {
        self.user_bytes_in_flight -= u64::from(user_bytes);
        self.ledger.on_unit_ended(ended, fate)
    }

    fn mark_lost(&mut self, unit: u64, cause: SendCause, tracer: &mut Tracer<'_>) {
        if let Some(packet) = self.leave_flight(unit, Fate::Lost(cause)) {
            // The receiver refused a window probe; the network lost nothing.
            if cause != SendCause::WindowProbe {
                self.count_lost_packet();
            }
            tracer.emit(|| TraceEvent::PacketLost { packet: packet.0, cause });
        }
        if let Some(u) = self.unit_mut(unit) {
            u.state = UnitState::Lost(cause);
            self.lost.insert(unit);
            if self.is_adaptive() {
                self.missing.judge(unit);
            } else {
                self.missing.forget(unit);
            }
        }
    }

    fn path(&self, path: u8) -> &Path {
        &self.paths[usize::from(path)]
    }

    fn path_mut(&mut self, path: u8) -> &mut Path {
        &mut self.paths[usize::from(path)]
    }

    fn trace_window(&self, path: u8, tracer: &mut Tracer<'_>) {
        tracer.emit(|| {
            let window = self.window(path);
            TraceEvent::Window {
                path,
                cwnd: window.cwnd(),
                ssthresh: window.ssthresh(),
                flight: self.flight(path).bytes,
            }
        });
    }
}

#[cfg(test)]
mod tests;
