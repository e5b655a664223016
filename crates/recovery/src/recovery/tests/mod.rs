//! Laws and tables of the sender, in exact virtual time.
//!
//! Units are numbered from 1 here: an acknowledgement of `3` acknowledges the first three. A unit
//! of [`FULL`] bytes fills a packet, and the first window holds four.

mod abandon;
mod bundling;
mod cmt;
mod costs;
mod coupling;
mod destination;
mod every_profile;
mod fast_recovery;
mod hostile;
mod ledger;
mod missing;
mod moves;
mod random;
mod reneging;
mod round_trips;
mod sending;
mod spurious;
mod tcp;
mod thin;
mod timer;
mod window;

use std::sync::Arc;
use std::time::Duration;

use rexmit_core::Instant;
use rexmit_core::trace::Tracer;

use super::timeout::Expiry;
use super::{Ack, AckOutcome, LossRecovery, Next, PathEvent, Permission, TimeoutKind};
use crate::{
    BundleRoom, CongestionWindow, NewUnit, PathState, RecoveryConfig, RtoTimer, UnitState,
};

/// PMDCS: a unit of this size fills a packet.
const FULL: u32 = 1000;
/// Unit 0, which was never sent; two below a wrap of the numbers on the wire.
const BASE: u64 = (2 << 32) - 2;
/// A tick of the clock of timestamps.
const TICK: Duration = Duration::from_millis(1);

/// The ACK type of these tests.
type TestAck = Ack<std::vec::IntoIter<(u64, u64)>, Option<u64>>;

/// A sender and its clock.
struct Sender {
    recovery: LossRecovery<()>,
    now: Instant,
    /// Whether new data is available whenever an ACK arrives.
    has_new: bool,
    /// The send time of the packet whose timestamp the next ACK echoes.
    echo: Option<Instant>,
    /// Packets received that the next ACK reports; 0 leaves the number unreported.
    packets_acked: u8,
}

impl Sender {
    fn new() -> Self {
        Self::with(|_| ())
    }

    /// No Max.Burst, for tables of the window alone.
    fn bursting() -> Self {
        Self::with(|config| config.max_burst = None)
    }

    fn with(change: impl FnOnce(&mut RecoveryConfig)) -> Self {
        let mut config = RecoveryConfig::rfc9260();
        change(&mut config);
        let recovery = LossRecovery::new(Arc::new(config), BASE + 1, FULL);
        let now = Instant::ZERO;
        Self { recovery, now, has_new: false, echo: None, packets_acked: 0 }
    }

    fn at(&mut self, ms: u64) -> &mut Self {
        let then = Instant::from_millis(ms);
        assert!(then >= self.now, "{ms} ms is past");
        self.now = then;
        self.recovery.begin_opportunity();
        self
    }
}

/// Sending.
impl Sender {
    /// Sends one packet with new units of these sizes, regardless of the window.
    fn push(&mut self, sizes: &[u32]) {
        self.push_over(0, sizes);
    }

    fn push_over(&mut self, path: u8, sizes: &[u32]) {
        self.push_of(0, path, sizes);
    }

    /// As [`push`](Self::push), with units of `group`.
    fn push_of(&mut self, group: u8, path: u8, sizes: &[u32]) {
        let mut packet = self.recovery.packet(path, false, 0);
        for &bytes in sizes {
            packet.put_new(&mut self.recovery, self.now, new_unit(bytes, group), ());
        }
        assert!(packet.end(&mut self.recovery, self.now, &mut Tracer::off()));
    }

    /// Sends a new unit as a probe of a closed window.
    fn push_probe(&mut self, group: u8, bytes: u32) {
        let mut packet = self.recovery.packet(0, false, 0);
        let new = NewUnit { is_probe: true, ..new_unit(bytes, group) };
        packet.put_new(&mut self.recovery, self.now, new, ());
        assert!(packet.end(&mut self.recovery, self.now, &mut Tracer::off()));
    }

    /// Sends `count` packets of one full unit each, regardless of the window.
    fn push_full(&mut self, count: usize) {
        for _ in 0..count {
            self.push(&[FULL]);
        }
    }

    /// Sends full packets while the window and the burst limit allow, and returns their number.
    fn fill(&mut self) -> usize {
        self.fill_with(FULL)
    }

    fn fill_with(&mut self, bytes: u32) -> usize {
        let mut packets = 0;
        while !self.has_lost() && self.has_room_for_new(0) {
            self.push(&[bytes]);
            packets += 1;
            assert!(packets < 100_000, "nothing limits the sender");
        }
        packets
    }

    /// Sends one full packet of retransmissions, and returns its units.
    fn resend(&mut self) -> Vec<u64> {
        self.resend_over(0)
    }

    fn resend_over(&mut self, path: u8) -> Vec<u64> {
        let (mut resent, mut room) = (Vec::new(), FULL);
        let mut packet = self.recovery.packet(path, false, 0);
        while let Some(Next::Lost(unit)) = packet.next(&self.recovery) {
            let known = self.recovery.outstanding().unit(unit).expect("it is outstanding");
            if known.bytes > room {
                break;
            }
            room -= known.bytes;
            assert!(packet.put(&mut self.recovery, self.now).is_some());
            resent.push(unit - BASE);
        }
        packet.end(&mut self.recovery, self.now, &mut Tracer::off());
        resent
    }

    /// Retransmits everything declared lost that may be sent, packet by packet.
    fn resend_all(&mut self) -> Vec<u64> {
        let mut resent = Vec::new();
        loop {
            let packet = self.resend();
            if packet.is_empty() {
                return resent;
            }
            resent.extend(packet);
            assert!(resent.len() < 100_000, "nothing limits the sender");
        }
    }

    /// Sends a packet of units declared lost and units bundled with them; returns both kinds.
    fn resend_bundled(&mut self) -> [Vec<u64>; 2] {
        let mut sent = [Vec::new(), Vec::new()];
        let mut packet = self.recovery.packet(0, false, 0);
        while let Some(next) = packet.next(&self.recovery) {
            match next {
                Next::Lost(unit) => sent[0].push(unit - BASE),
                Next::Bundled(unit) => sent[1].push(unit - BASE),
                _ => break,
            }
            assert!(packet.put(&mut self.recovery, self.now).is_some());
        }
        packet.end(&mut self.recovery, self.now, &mut Tracer::off());
        sent
    }

    /// Sends a rescue retransmission (RFC 6675 §4), if one may be sent, and returns its unit.
    fn rescue(&mut self) -> Option<u64> {
        let mut packet = self.recovery.packet(0, false, 0);
        let unit = loop {
            match packet.next(&self.recovery)? {
                Next::Rescue(unit) => break unit,
                _ => packet.refuse(),
            }
        };
        assert!(packet.put(&mut self.recovery, self.now).is_some());
        assert_eq!(packet.next(&self.recovery), None, "it is alone");
        packet.end(&mut self.recovery, self.now, &mut Tracer::off());
        Some(unit - BASE)
    }

    /// Sends a packet with a new unit of `bytes` and the copies bundled with it, and returns the units.
    fn push_with_copies_beside(&mut self, bytes: u32, is_contiguous: bool) -> Vec<u64> {
        let room = BundleRoom { new_bytes: bytes, room: FULL - bytes, is_contiguous };
        let mut packet = self.recovery.packet(0, is_contiguous, 0);
        let mut copies = Vec::new();
        packet.bundle(&mut self.recovery, self.now, 0, room);
        while packet.is_bundling() {
            let next = packet.next(&self.recovery);
            let Some(Next::BundledCopy(unit)) = next else { panic!("{next:?} is no copy") };
            assert!(packet.put(&mut self.recovery, self.now).is_some());
            copies.push(unit - BASE);
        }
        packet.put_new(&mut self.recovery, self.now, new_unit(bytes, 0), ());
        assert!(packet.end(&mut self.recovery, self.now, &mut Tracer::off()));
        copies
    }

    /// Sends a packet of up to `most` due delayed copies over the first path, and returns their units.
    fn copies_ready(&mut self, most: usize) -> Vec<u64> {
        let mut copied = Vec::new();
        let mut packet = self.recovery.packet(0, false, 0);
        while copied.len() < most
            && let Some(Next::DelayedCopy(unit)) = packet.next(&self.recovery)
        {
            assert!(packet.put(&mut self.recovery, self.now).is_some());
            copied.push(unit - BASE);
        }
        let is_sent = packet.end(&mut self.recovery, self.now, &mut Tracer::off());
        assert_eq!(is_sent, !copied.is_empty());
        copied
    }
}

/// Inputs: ACKs and reports.
impl Sender {
    /// Acknowledges everything up to `cumulative`, and these ranges.
    fn ack(&mut self, cumulative: u64, blocks: &[(u64, u64)]) -> AckOutcome {
        let echo = self.echo.take().map(|sent_at| crate::Echo { sent_at, tick: TICK });
        let packets_acked = std::mem::take(&mut self.packets_acked);
        let new = ack_of(cumulative, blocks);
        self.take(Ack { echo, packets_acked, has_new: self.has_new, ..new })
    }

    fn take(&mut self, ack: TestAck) -> AckOutcome {
        self.recovery.on_ack(self.now, ack, &mut Tracer::off(), |_| ()).expect("it was sent")
    }

    /// An ACK with only a duplicate report of `unit`.
    fn report(&mut self, unit: u64) {
        self.take(report_of(self.recovery.outstanding().cumulative() - BASE, unit));
    }

    /// Applies `count` duplicate ACKs.
    fn duplicates(&mut self, count: usize) {
        let cumulative = self.recovery.outstanding().cumulative() - BASE;
        for _ in 0..count {
            let ack = ack_of(cumulative, &[]);
            self.take(Ack { has_news: false, is_duplicate: true, ..ack });
        }
    }

    /// Makes the next ACK echo the timestamp of the packet sent at `ms`.
    fn echo(&mut self, ms: u64) -> &mut Self {
        self.echo = Some(Instant::from_millis(ms));
        self
    }

    /// Reports an error of `path`, as for an unanswered HEARTBEAT.
    fn path_error(&mut self, path: u8, path_max_retrans: u32) -> Option<PathState> {
        self.recovery.on_path_event(path, PathEvent::Error { path_max_retrans })
    }

    fn path_answered(&mut self, path: u8, is_certain: bool) -> Option<PathState> {
        self.recovery.on_path_event(path, PathEvent::Answered { is_certain })
    }

    fn path_probed(&mut self, path: u8) -> Option<PathState> {
        self.recovery.on_path_event(path, PathEvent::Probed)
    }

    fn make_primary(&mut self, path: u8) {
        let change = crate::PathChange::Primary;
        self.recovery.change_path(self.now, path, change, &mut Tracer::off());
    }

    fn abandon(&mut self, unit: u64) {
        self.recovery.abandon(crate::Abandoned::Sent(BASE + unit));
    }
}

/// Time.
impl Sender {
    /// The deadline of T3-rtx, in milliseconds.
    fn t3(&self) -> Option<u64> {
        self.recovery.next_timeout().map(|at| at.as_nanos() / 1_000_000)
    }

    /// Advances the clock to the expiry of T3-rtx, and returns the time in milliseconds.
    fn expire(&mut self) -> u64 {
        self.expire_as(TimeoutKind::Loss)
    }

    fn expire_as(&mut self, kind: TimeoutKind) -> u64 {
        let ms = self.t3().expect("T3-rtx runs");
        self.at(ms);
        let path = self.due_path().expect("a path is due");
        let timeout = self.recovery.on_timeout(self.now, kind, &mut Tracer::off());
        assert_eq!(timeout.expect("it is due").path, path);
        ms
    }

    /// The first path whose T3-rtx is due.
    fn due_path(&self) -> Option<u8> {
        let state = &self.recovery.state;
        let is_due = |&path: &u8| state.t3_deadline(path).is_some_and(|at| at <= self.now);
        state.paths.numbers().find(is_due)
    }

    /// Expires T3-rtx of `path`, due or not.
    fn expire_path(&mut self, path: u8, kind: TimeoutKind) {
        let (recovery, now, tracer) = (&mut self.recovery, self.now, &mut Tracer::off());
        Expiry { recovery, now, tracer }.expire_t3(path, kind);
    }

    /// Expires every timer that is due; T3-rtx must not be among them.
    #[track_caller]
    fn timers(&mut self) -> &mut Self {
        let timeout = self.recovery.on_timeout(self.now, TimeoutKind::Loss, &mut Tracer::off());
        assert_eq!(timeout, None, "T3-rtx is due");
        self
    }
}

/// Observations of the sender.
impl Sender {
    fn state(&self, unit: u64) -> Option<UnitState> {
        self.recovery.outstanding().unit(BASE + unit).map(crate::Unit::state)
    }

    fn window(&self, path: u8) -> &CongestionWindow {
        self.recovery.paths()[path].window()
    }

    fn timer(&self, path: u8) -> &RtoTimer {
        self.recovery.paths()[path].timer()
    }

    fn cwnd(&self) -> u64 {
        self.window(0).cwnd()
    }

    fn ssthresh(&self) -> u64 {
        self.window(0).ssthresh()
    }

    fn rto_ms(&self) -> u128 {
        self.timer(0).rto().as_millis()
    }

    /// Packets and bytes in flight.
    fn flight(&self) -> (u32, u64) {
        let flight = self.recovery.outstanding().flight(0);
        (flight.packets, flight.bytes)
    }

    fn has_lost(&self) -> bool {
        self.recovery.outstanding().has_lost()
    }

    /// The first unit declared lost that may be sent over `path` now.
    fn next_lost(&self, path: u8) -> Option<u64> {
        match self.recovery.next_due(path)? {
            Next::Lost(unit) => Some(unit),
            _ => None,
        }
    }

    /// Units that wait to be retransmitted over `path`.
    fn waiting_on(&self, path: u8) -> Vec<u64> {
        let units = self.recovery.outstanding().units_from(0);
        let lost = units.filter(|(_, unit)| matches!(unit.state(), UnitState::Lost(_)));
        lost.filter(|(_, unit)| unit.path == path).map(|(number, _)| number - BASE).collect()
    }

    /// Whether the window of `path` has room for new units, whatever comes before them.
    fn has_room_for_new(&self, path: u8) -> bool {
        Permission::of(&self.recovery).has_room_for_new(path, 0)
    }

    fn is_in_fast_recovery(&self) -> bool {
        self.recovery.state.fast_recovery.is_on()
    }

    /// Whether F-RTO examines the last timeout of the first path.
    fn examines_timeout(&self) -> bool {
        self.recovery.spurious.as_ref().is_some_and(|it| it.holds_lost(0, false))
    }
}

fn new_unit(bytes: u32, group: u8) -> NewUnit {
    NewUnit { bytes, user_bytes: bytes - 16, group, is_probe: false, is_ordered: false, due: None }
}

fn ack_of(cumulative: u64, blocks: &[(u64, u64)]) -> TestAck {
    let blocks: Vec<_> = blocks.iter().map(|&(start, end)| (BASE + start, BASE + end)).collect();
    Ack::new(BASE + cumulative, blocks.into_iter(), None)
}

fn report_of(cumulative: u64, unit: u64) -> TestAck {
    Ack { duplicates: Some(BASE + unit), has_news: false, ..ack_of(cumulative, &[]) }
}

/// RTO bounds out of the way: the RTO is SRTT + 4 · RTTVAR.
fn unbounded(config: &mut RecoveryConfig) {
    config.rto.min = Duration::ZERO;
}
