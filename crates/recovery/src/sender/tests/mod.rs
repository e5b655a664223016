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
mod fast_recovery;
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

use super::{AckOutcome, LossRecovery, TimeoutKind, UnitState};
use crate::RecoveryConfig;

/// PMDCS: a unit of this size fills a packet.
const FULL: u32 = 1000;
/// Unit 0, which was never sent; two below a wrap of the numbers on the wire.
const BASE: u64 = (2 << 32) - 2;

/// A sender and its clock.
struct Sender {
    recovery: LossRecovery<()>,
    now: Instant,
}

impl Sender {
    fn new() -> Self {
        Self::with(|_| ())
    }

    /// No Max.Burst, for tables of the window alone.
    fn bursting() -> Self {
        Self::with(|config| config.max_burst = 0)
    }

    fn with(change: impl FnOnce(&mut RecoveryConfig)) -> Self {
        let mut config = RecoveryConfig::default();
        change(&mut config);
        let recovery = LossRecovery::new(Arc::new(config), BASE + 1, FULL);
        Self { recovery, now: Instant::ZERO }
    }

    fn at(&mut self, ms: u64) -> &mut Self {
        let then = Instant::from_millis(ms);
        assert!(then >= self.now, "{ms} ms is past");
        self.now = then;
        self.recovery.begin_opportunity();
        self
    }

    /// One packet with new units of these sizes, whatever the window says.
    fn push(&mut self, sizes: &[u32]) {
        self.push_over(0, sizes);
    }

    fn push_over(&mut self, path: u8, sizes: &[u32]) {
        self.recovery.begin_packet(path);
        for &bytes in sizes {
            self.recovery.send_new(self.now, bytes, bytes - 16, ());
        }
        assert!(self.recovery.end_packet(self.now, &mut Tracer::off()));
    }

    /// `count` packets of one full unit each, whatever the window says.
    fn push_full(&mut self, count: usize) {
        for _ in 0..count {
            self.push(&[FULL]);
        }
    }

    /// Full packets while the window and the burst allow; how many.
    fn fill(&mut self) -> usize {
        self.fill_with(FULL)
    }

    fn fill_with(&mut self, bytes: u32) -> usize {
        let mut packets = 0;
        while !self.recovery.has_lost() && self.recovery.may_send_new(0) {
            self.push(&[bytes]);
            packets += 1;
            assert!(packets < 100_000, "nothing limits the sender");
        }
        packets
    }

    /// Everything up to `cumulative`, and these ranges, are acknowledged.
    fn ack(&mut self, cumulative: u64, blocks: &[(u64, u64)]) -> AckOutcome {
        let blocks = blocks.iter().map(|&(start, end)| (BASE + start, BASE + end));
        let acknowledged = (BASE + cumulative, blocks);
        self.recovery
            .on_ack(self.now, acknowledged, &mut Tracer::off(), |_| ())
            .expect("it was sent")
    }

    /// One packet of what is to be sent again and fits; which units.
    fn resend(&mut self) -> Vec<u64> {
        self.resend_over(0)
    }

    fn resend_over(&mut self, path: u8) -> Vec<u64> {
        let (mut resent, mut room) = (Vec::new(), FULL);
        let mut next = self.recovery.next_to_resend(path);
        self.recovery.begin_packet(path);
        while let Some(unit) = next {
            let bytes = self.recovery.unit(unit).expect("it is outstanding").bytes;
            if bytes > room {
                break;
            }
            room -= bytes;
            assert!(self.recovery.resend(self.now, unit).is_some());
            resent.push(unit - BASE);
            next = self.recovery.next_lost_after(unit);
        }
        self.recovery.end_packet(self.now, &mut Tracer::off());
        resent
    }

    /// When T3-rtx expires, in milliseconds.
    fn t3(&self) -> Option<u64> {
        self.recovery.next_timeout().map(|at| at.as_nanos() / 1_000_000)
    }

    /// Moves to where T3-rtx expires, and lets it; returns when, in milliseconds.
    fn expire(&mut self) -> u64 {
        self.expire_as(TimeoutKind::Loss)
    }

    fn expire_as(&mut self, kind: TimeoutKind) -> u64 {
        let ms = self.t3().expect("T3-rtx runs");
        self.at(ms);
        let path = self.recovery.due_path(self.now).expect("a path is due");
        self.recovery.on_timeout(path, kind, &mut Tracer::off());
        ms
    }

    fn abandon(&mut self, unit: u64) {
        self.recovery.abandon(BASE + unit);
    }

    fn state(&self, unit: u64) -> Option<UnitState> {
        self.recovery.unit(BASE + unit).map(super::Unit::state)
    }

    fn cwnd(&self) -> u64 {
        self.recovery.window(0).cwnd()
    }

    fn ssthresh(&self) -> u64 {
        self.recovery.window(0).ssthresh()
    }

    fn rto_ms(&self) -> u128 {
        self.recovery.timer(0).rto().as_millis()
    }

    /// Packets and bytes in flight.
    fn flight(&self) -> (u32, u64) {
        let flight = self.recovery.flight(0);
        (flight.packets, flight.bytes)
    }
}

/// RTO bounds out of the way: the RTO is SRTT + 4 · RTTVAR.
fn unbounded(config: &mut RecoveryConfig) {
    config.rto.min = Duration::ZERO;
}
