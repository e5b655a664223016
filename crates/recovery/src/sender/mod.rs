//! The sender's side of an association: what is outstanding, what may leave, and the entry points
//! that put the mechanisms together. `send` is what leaves, `rescue` what leaves as a last resort,
//! `outstanding` where each unit belongs, `ack` what was acknowledged, `losses` what that says of the
//! rest, `duplicates` what a peer without SACK says, `timeout` what the timer says. `thin` tells whether
//! a stream is, and `t3` when the timer expires. `destination` is which path is taken, `cmt` what an
//! acknowledgement says of each, and `moves` what becomes of it as its addresses come and go. `spurious`
//! knows the retransmission events, `f_rto` examines timeouts, and `undo` takes back what an event did;
//! `overdue` is the recovery timer of thin streams, `answers` what it learns, `spaced` are copies in packets of
//! their own, and `queueing` is what all of these yield to; `adaptive` and `rack` are how much reordering is borne.

mod ack;
mod adaptive;
mod answers;
mod cmt;
mod destination;
mod duplicates;
mod early;
mod f_rto;
mod losses;
mod moves;
mod outstanding;
mod overdue;
mod path;
mod queueing;
mod rack;
mod redundancy;
mod rescue;
mod send;
mod spaced;
mod spurious;
mod t3;
mod thin;
mod timeout;
mod undo;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use rexmit_core::trace::{SendCause, TraceEvent, Tracer};
use rexmit_core::{Instant, RangeSet};

pub use ack::{AckError, AckOutcome};
use path::{Concurrent, Path};
pub use redundancy::BundleRoom;
use spurious::Doubts;
use thin::Groups;
pub use thin::{GroupLimit, MAX_GROUPS};
pub use timeout::TimeoutKind;

use crate::budget::Spending;
use crate::ledger::{Flight, Ledger};
use crate::loss::duplicates::DuplicateAcks;
use crate::loss::scoreboard::Scoreboard;
use crate::queueing::LatestLosses;
use crate::redundancy::Copies;
use crate::spurious::events::Events;
use crate::spurious::log::RetransmissionLog;
use crate::{
    CongestionWindow, MissingReports, PacketNumber, Reach, RecoveryConfig, RecoveryStatistics,
    RtoTimer,
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
    /// The path that it is in flight on, or waits to be sent again over.
    path: u8,
    /// The path that its last copy left over.
    sent_over: u8,
    /// Copies of it left over different paths.
    is_on_several: bool,
    group: u8,
    packet: PacketNumber,
    /// Why it left with it.
    cause: SendCause,
    transmissions: u16,
    /// Of these, copies on purpose.
    on_purpose: u16,
    /// Had its fast retransmit: ineligible for another (RFC 9260 §7.2.4 rule 5).
    fast_retransmitted: bool,
    /// A copy of it left on purpose.
    is_copied: bool,
    /// It probes a closed window: only T3-rtx repeats it.
    is_probe: bool,
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

    /// How often it left because it was new or judged lost: copies on purpose are not counted.
    #[must_use]
    pub const fn transmissions(&self) -> u16 {
        self.transmissions.saturating_sub(self.on_purpose)
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
    /// The path that data take while it works.
    primary: u8,
    /// The path that new data take.
    data_path: u8,
    /// The path that retransmissions take now, if it is chosen as they leave.
    chosen_path: Option<u8>,
    /// Packets that the acknowledgement being processed answers.
    packets_answered: u8,
    /// What left more than once; nothing before anything did.
    log: Option<Box<RetransmissionLog>>,
    /// What the detectors of spurious events keep, if there is any.
    doubts: Option<Box<Doubts>>,
    copies: Copies,
    /// What copies on purpose have cost.
    spending: Spending,
    latest_losses: LatestLosses,
    user_bytes_in_flight: u64,
    /// Those of units that wait to be sent again.
    user_bytes_lost: u64,
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
        let groups = Groups::new(Arc::clone(&config));
        let doubts = config.follows_events().then(Box::default);
        let mut recovery = Self {
            config,
            groups,
            first,
            units: VecDeque::new(),
            acknowledged: RangeSet::new(),
            missing: MissingReports::default(),
            scoreboard: Scoreboard::default(),
            duplicates: DuplicateAcks::default(),
            fast_recovery_exit: None,
            recover: None,
            outstanding_bytes: 0,
            beyond_window: 0,
            ledger: Ledger::default(),
            paths: Vec::with_capacity(1),
            primary: 0,
            data_path: 0,
            chosen_path: None,
            packets_answered: 1,
            log: None,
            doubts,
            copies: Copies::default(),
            spending: Spending::default(),
            latest_losses: LatestLosses::default(),
            user_bytes_in_flight: 0,
            user_bytes_lost: 0,
            open: None,
            statistics: RecoveryStatistics::default(),
            #[cfg(test)]
            visits: std::cell::Cell::default(),
        };
        recovery.push_path(pmdcs, Reach::ACTIVE);
        recovery
    }

    /// Adds a path, which is not confirmed, and returns its index.
    ///
    /// # Panics
    /// With more than 64 paths; the protocol limits them far below.
    pub fn add_path(&mut self, pmdcs: u32) -> u8 {
        assert!(self.paths.len() < 64, "the protocol limits the paths");
        if let [only] = &mut self.paths[..] {
            let counters = only.counters(&self.statistics);
            let awaiting = only.lost.len() as u64;
            let user_bytes = self.user_bytes_in_flight + self.user_bytes_lost;
            let known = Concurrent { counters, user_bytes, awaiting, ..Default::default() };
            only.concurrent = Some(Box::new(known));
        }
        self.push_path(pmdcs, Reach::UNCONFIRMED);
        self.paths.len() as u8 - 1
    }

    fn push_path(&mut self, pmdcs: u32, reach: Reach) {
        self.ledger.add_path();
        let mut path = Path::new(&self.config, pmdcs, reach);
        path.watch = (self.groups.timed() != 0).then(Box::default);
        if !self.paths.is_empty() {
            path.concurrent = Some(Box::default());
        }
        self.paths.push(path);
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

    /// User bytes in flight, and those that wait to be sent again: what the peer's receive window has
    /// to hold before anything new.
    #[must_use]
    pub const fn user_bytes_to_arrive(&self) -> u64 {
        self.user_bytes_in_flight + self.user_bytes_lost
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
        self.missing.clear();
        self.acknowledged.clear();
        self.copies = Copies::default();
        self.ledger = Ledger::default();
        self.duplicates.clear();
        self.user_bytes_in_flight = 0;
        self.user_bytes_lost = 0;
        self.outstanding_bytes = 0;
        self.beyond_window = 0;
        for path in &mut self.paths {
            self.ledger.add_path();
            path.t3 = None;
            path.early = Instant::FAR_FUTURE;
            path.watch.iter_mut().for_each(|watch| watch.clear());
            path.lost.clear();
            path.concurrent
                .iter_mut()
                .for_each(|known| (known.awaiting, known.user_bytes) = (0, 0));
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
            // These are empty, but keep a node until they are cleared.
            self.paths.iter_mut().for_each(|path| path.lost.clear());
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
        if let Some(watch) = &mut self.path_mut(path).watch {
            watch.answers.on_answer(rtt);
        }
        self.note_queueing(now, path, rtt);
        self.take_round_trip(now, path, rtt, tracer);
        self.renew_overdue(path);
    }

    /// The setup took a round trip over `path`. It is answered at once, which data are not if the receiver
    /// delays acknowledgements and nothing asks it not to: what the recovery timer waits for is
    /// learned from data alone.
    pub fn on_setup_sample(
        &mut self,
        now: Instant,
        path: u8,
        rtt: Duration,
        tracer: &mut Tracer<'_>,
    ) {
        if let Some(watch) = &mut self.path_mut(path).watch {
            watch.at_once = Some(rtt);
        }
        self.take_round_trip(now, path, rtt, tracer);
    }

    /// A timestamp tells a round trip over `path`. What a lost acknowledgement was to tell came with a
    /// later one then, perhaps, so that the retransmission timeout alone takes account of it.
    pub fn on_echo_sample(
        &mut self,
        now: Instant,
        path: u8,
        rtt: Duration,
        tracer: &mut Tracer<'_>,
    ) {
        self.take_round_trip(now, path, rtt, tracer);
    }

    fn take_round_trip(&mut self, now: Instant, path: u8, rtt: Duration, tracer: &mut Tracer<'_>) {
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
