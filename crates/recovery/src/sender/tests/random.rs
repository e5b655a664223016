//! Laws under random operations: what is counted is what is there, and T3-rtx runs exactly while
//! something is outstanding.

use rexmit_core::{Instant, Seed};

use super::{BASE, FULL, Sender, TimeoutKind, UnitState};
use crate::Coupling;
use crate::RetransmissionDestination::{
    Alternate, Asap, Csi, Cwnd, Elsewhere, LossRate, Same, Ssthresh,
};

impl Sender {
    /// The laws. `is_sending_done`: what was judged lost has left, as far as it may.
    #[track_caller]
    pub(super) fn check(&self) {
        let paths = 0..self.recovery.paths.len() as u8;
        let user_bytes: u64 = paths.clone().map(|path| self.check_path(path)).sum();
        assert_eq!(self.recovery.user_bytes_in_flight(), user_bytes);
        let is_lost = |unit: &&super::super::Unit<()>| matches!(unit.state, UnitState::Lost(_));
        let lost = self.recovery.units.iter().filter(is_lost);
        let lost: u64 = lost.map(|unit| u64::from(unit.user_bytes)).sum();
        assert_eq!(self.recovery.user_bytes_to_arrive(), user_bytes + lost);
        let in_flight: usize =
            paths.map(|path| self.recovery.ledger().in_flight(path).count()).sum();
        assert_eq!(self.recovery.ledger().packets_of(0) as usize, in_flight, "one group");
        if in_flight == 0 {
            assert!(self.recovery.ledger().is_empty());
        }
        // The short ways of bulk lead where the exact test does.
        let thinness = self.recovery.thinness(0);
        assert_eq!(self.recovery.is_thin(0), thinness.is_thin, "{thinness:?}");
        let deadline = |(path, index): (&super::super::Path, u8)| {
            let t3 = self.recovery.t3_deadline(index).unwrap_or(Instant::FAR_FUTURE);
            let watch = path.watch.as_ref().map(|watch| watch.deadline);
            t3.min(path.early).min(watch.unwrap_or(Instant::FAR_FUTURE))
        };
        let deadlines = self.recovery.paths.iter().zip(0..).map(deadline);
        let next = self.recovery.next_timeout().unwrap_or(Instant::FAR_FUTURE);
        assert_eq!(Some(next), deadlines.min());
        for path in 0..self.recovery.paths.len() as u8 {
            let sent_at = |packet: &crate::SentPacket| packet.sent_at;
            let oldest = self.recovery.ledger().in_flight(path).next().map(|(_, p)| sent_at(p));
            let found = self.recovery.ledger().oldest_in_flight(path).map(sent_at);
            assert_eq!(found, oldest);
        }
    }

    /// Those of one path; returns the user bytes in flight on it.
    #[track_caller]
    fn check_path(&self, index: u8) -> u64 {
        let (mut bytes, mut user_bytes, mut outstanding) = (0, 0, 0);
        let (mut earliest, mut lost) = (None, std::collections::BTreeSet::new());
        for (number, unit) in self.recovery.units().filter(|(_, unit)| unit.path == index) {
            let is_in_flight = unit.state == UnitState::InFlight;
            let is_lost = matches!(unit.state, UnitState::Lost(_));
            if is_in_flight {
                assert_eq!(unit.sent_over, index, "in flight where it was sent");
                bytes += u64::from(unit.bytes);
                user_bytes += u64::from(unit.user_bytes);
            }
            if is_lost {
                lost.insert(number);
            }
            if is_in_flight || is_lost {
                outstanding += 1;
                earliest.get_or_insert(number);
            }
        }
        let path = &self.recovery.paths[usize::from(index)];
        let flight = self.recovery.flight(index);
        assert_eq!(flight.bytes, bytes);
        assert_eq!(path.outstanding, outstanding);
        assert_eq!(path.lost, lost);
        let awaits = |unit: &&super::super::Unit<()>| {
            matches!(unit.state, UnitState::Lost(_)) && unit.sent_over == index
        };
        let awaiting = self.recovery.units.iter().filter(awaits).count() as u64;
        assert_eq!(path.is_awaiting(), awaiting > 0);
        if let Some(known) = &path.concurrent {
            let is_under_way = |unit: &&super::super::Unit<()>| {
                let is_it = matches!(unit.state, UnitState::Lost(_) | UnitState::InFlight);
                is_it && unit.sent_over == index
            };
            let under_way = self.recovery.units.iter().filter(is_under_way);
            let user_bytes: u64 = under_way.map(|unit| u64::from(unit.user_bytes)).sum();
            assert_eq!((known.awaiting, known.user_bytes), (awaiting, user_bytes));
        }
        assert!(earliest.is_none_or(|earliest| earliest == path.earliest), "{path:?}");
        assert!(!path.may_resend_now || !lost.is_empty(), "nothing waits to pass the window");
        let in_flight = self.recovery.ledger().in_flight(index).count();
        assert_eq!(flight.packets as usize, in_flight);
        user_bytes
    }

    /// After what may leave has left: the timer runs exactly while something is outstanding.
    #[track_caller]
    pub(super) fn check_timer(&self) {
        for path in &self.recovery.paths {
            assert_eq!(path.t3.is_some(), path.outstanding > 0, "{path:?}");
        }
        let is_outstanding = self.recovery.paths.iter().any(|path| path.outstanding > 0);
        assert_eq!(self.t3().is_some(), is_outstanding);
    }
}

/// A receiver that takes some of what is sent, and may renege; paths that fail and recover.
fn run(seed: u64, paths: u8) {
    let mut rng = Seed::from_u64(seed).rng();
    let profiles = crate::PROFILES;
    let (profile, _) = profiles[rng.below(profiles.len() as u64) as usize];
    let mut s = Sender::with(|config| {
        *config = crate::RecoveryConfig::profile(profile).expect("a profile");
        if paths > 1 {
            let all = [Same, Alternate, Elsewhere, Asap, LossRate, Cwnd, Ssthresh, Csi];
            config.retransmission_destination = all[rng.below(8) as usize];
            config.potentially_failed_max_retrans = [None, Some(0)][rng.below(2) as usize];
            config.cmt = crate::CmtConfig {
                all_paths: rng.chance(0.5),
                split_fast_retransmit: rng.chance(0.5),
                cwnd_update: rng.chance(0.5),
                delayed_ack: rng.chance(0.5),
                split_buffer: rng.chance(0.5),
                avoid_blocking: rng.chance(0.5),
                coupling: [Coupling::None, Coupling::ResourcePoolingV2][rng.below(2) as usize],
            };
        }
    });
    (1..paths).for_each(|_| s.add_confirmed_path());
    let mut held = std::collections::BTreeSet::new();
    let (mut cumulative, mut ms) = (0, 0);
    for _ in 0..300 {
        ms += rng.below(400);
        s.at(ms);
        let last = s.recovery.next_unit() - BASE - 1;
        match rng.below(10) {
            0..2 if s.recovery.may_send_new(0) && !s.recovery.has_lost() => {
                s.push_with_copies(false);
            }
            2..4 => {
                let units = 1 + rng.below(3) as usize;
                let path = (0..paths).rev().find(|&path| s.recovery.takes_new(path));
                if let Some(path) = path {
                    s.push_over(path, &vec![FULL / 4; units]);
                }
            }
            4 if last > cumulative => s.abandon(cumulative + 1 + rng.below(last - cumulative)),
            5 if rng.chance(0.2) => {
                let path = rng.below(paths.into()) as u8;
                s.recovery.on_setup_again(path, &mut rexmit_core::trace::Tracer::off());
            }
            5 => {
                s.recovery.skip_new(());
            }
            6 if s.recovery.due_path(s.now).is_some() => {
                let path = s.recovery.due_path(s.now).expect("one is due");
                let kind = [TimeoutKind::Loss, TimeoutKind::WindowProbe][rng.below(2) as usize];
                s.recovery.on_timeout(path, kind, &mut rexmit_core::trace::Tracer::off());
                if paths > 1 {
                    s.recovery.on_path_error(path, 2);
                }
            }
            7 if rng.chance(0.1) => held.clear(),
            _ if last > cumulative => {
                for _ in 0..rng.below(4) {
                    held.insert(cumulative + 1 + rng.below(last - cumulative));
                }
                while held.remove(&(cumulative + 1)) {
                    cumulative += 1;
                }
                let blocks: Vec<_> = held.iter().map(|&unit| (unit, unit)).collect();
                if rng.chance(0.3) {
                    s.report_duplicate(cumulative);
                }
                s.recovery.tell_new(rng.chance(0.7));
                if rng.chance(0.3) {
                    s.echo(rng.below(ms + 1));
                }
                s.ack(cumulative, &blocks);
            }
            _ => {}
        }
        if paths > 1 && rng.chance(0.2) {
            let path = rng.below(paths.into()) as u8;
            match rng.below(4) {
                0 => _ = s.recovery.on_path_error(path, 2),
                1 => _ = s.recovery.on_path_answered(path, rng.chance(0.5)),
                2 => _ = s.recovery.on_path_probed(path),
                _ => s.recovery.set_primary_path(path),
            }
            s.check();
        }
        s.recovery.on_early_timers(s.now, &mut rexmit_core::trace::Tracer::off());
        if rng.chance(0.05) {
            let any = [crate::ThinConfig::M1_TO_M4, crate::ThinConfig::INTERACTIVE];
            let thin = any[rng.below(2) as usize];
            s.recovery.set_thin(0, crate::ThinConfig { max_bundle_packets: 3, ..thin });
        }
        s.check();
        if rng.chance(0.8) {
            loop {
                s.recovery.choose_destination(s.now, |count| rng.below(count));
                if !(0..paths).any(|path| !s.resend_over(path).is_empty()) {
                    break;
                }
            }
            s.check();
            let is_outstanding = s.recovery.paths.iter().any(|path| path.outstanding > 0);
            assert!(
                !is_outstanding || s.t3().is_some(),
                "nothing will ever leave: {:?}",
                s.recovery
            );
        }
        if !s.recovery.has_lost() {
            s.check_timer();
        }
    }
    let last = s.recovery.next_unit() - BASE - 1;
    s.ack(last, &[]);
    s.check();
    assert!(s.recovery.is_empty() && s.t3().is_none());
    assert!((0..paths).all(|path| s.recovery.flight(path) == crate::Flight::default()));
}

#[test]
fn the_books_agree_with_the_units_and_the_timer_runs_while_something_is_outstanding() {
    for seed in 0..300 {
        run(seed, 1);
    }
}

#[test]
fn the_same_holds_over_several_paths_that_fail_and_recover() {
    for seed in 0..400 {
        run(seed, 2 + (seed % 3) as u8);
    }
}
