//! Laws under random operations: the sums match the units, and T3-rtx runs exactly while something is
//! outstanding.

use std::collections::BTreeSet;

use rexmit_core::trace::Tracer;
use rexmit_core::{Instant, Rng, Seed};

use super::{BASE, FULL, LossRecovery, Sender, TimeoutKind, UnitState};
use crate::RetransmissionDestination::{
    Alternate, Asap, Csi, Cwnd, Elsewhere, LeastCorrelated, LossRate, Same, Ssthresh,
};
use crate::{Coupling, SetupEvent};

impl Sender {
    /// The laws.
    #[track_caller]
    pub(super) fn check(&self) {
        let (state, outstanding) = (&self.recovery.state, self.recovery.outstanding());
        outstanding.check_invariants();
        let paths = || state.paths.numbers();
        paths().for_each(|path| self.check_path(path));
        let in_flight: usize =
            paths().map(|path| outstanding.packets().in_flight(path).count()).sum();
        if state.groups.is_one() {
            assert_eq!(outstanding.packets().packets_of(0) as usize, in_flight);
        }
        if in_flight == 0 {
            assert!(outstanding.packets().len() == 0);
        }
        // The short ways of bulk lead where the exact test does.
        let thinness = self.recovery.thinness(0);
        assert_eq!(state.is_thin(0), thinness.is_thin, "{thinness:?}");
        let deadline = |path| {
            let LossRecovery { loss, probe, redundancy, .. } = &self.recovery;
            let t3 = state.t3_deadline(path).unwrap_or(Instant::FAR_FUTURE);
            let others = loss.deadline(path).min(probe.deadline(path));
            let paced = state.paths[path].window.paced_until().unwrap_or(Instant::FAR_FUTURE);
            t3.min(others).min(redundancy.deadline(path)).min(paced)
        };
        let next = self.recovery.next_timeout().unwrap_or(Instant::FAR_FUTURE);
        assert_eq!(Some(next), paths().map(deadline).min());
    }

    /// The invariants of one path.
    #[track_caller]
    fn check_path(&self, path: u8) {
        let (state, outstanding) = (&self.recovery.state, self.recovery.outstanding());
        let (mut bytes, mut earliest, mut is_any_lost) = (0, None, false);
        for (number, unit) in outstanding.units_from(0).filter(|(_, unit)| unit.path == path) {
            if unit.is_in_flight() {
                assert_eq!(unit.last().path, path, "in flight where it was sent");
                bytes += u64::from(unit.bytes);
            }
            is_any_lost |= matches!(unit.state(), UnitState::Lost(_));
            if unit.is_outstanding() {
                earliest.get_or_insert(number);
            }
        }
        let p = &state.paths[path];
        assert_eq!(outstanding.flight(path).bytes, bytes);
        assert!(earliest.is_none_or(|earliest| earliest == outstanding.on(path).earliest), "{p:?}");
        assert!(!p.gate.may_retransmit_now() || is_any_lost, "nothing waits to pass the window");
    }

    /// Once everything that may be sent was: the timer runs exactly while something is outstanding.
    #[track_caller]
    pub(super) fn check_timer(&self) {
        let state = &self.recovery.state;
        for path in state.paths.numbers() {
            let is_outstanding = state.outstanding.on(path).outstanding > 0;
            assert_eq!(state.paths[path].t3.is_running(), is_outstanding, "path {path}");
        }
        let is_any_running = state.paths.iter().any(|path| path.t3.is_running());
        assert_eq!(is_any_running, self.has_outstanding());
    }

    fn has_outstanding(&self) -> bool {
        let state = &self.recovery.state;
        state.paths.numbers().any(|path| state.outstanding.on(path).outstanding > 0)
    }
}

/// A receiver that gets some of the data, and may renege; paths that fail and recover.
struct Run {
    rng: Rng,
    s: Sender,
    paths: u8,
    /// Units that the receiver holds beyond the cumulative point.
    held: BTreeSet<u64>,
    cumulative: u64,
    ms: u64,
}

impl Run {
    fn new(seed: u64, paths: u8) -> Self {
        let mut rng = Seed::from_u64(seed).rng();
        let profiles = crate::PROFILES;
        let (profile, _) = profiles[rng.below(profiles.len() as u64) as usize];
        let mut s = Sender::with(|config| {
            *config = crate::RecoveryConfig::profile(profile).expect("a profile");
            if paths > 1 {
                several_paths(&mut rng, config);
            }
        });
        (1..paths).for_each(|_| s.add_confirmed_path());
        Self { rng, s, paths, held: BTreeSet::new(), cumulative: 0, ms: 0 }
    }

    fn last(&self) -> u64 {
        self.s.recovery.outstanding().next_unit() - BASE - 1
    }

    fn any_path(&mut self) -> u8 {
        self.rng.below(self.paths.into()) as u8
    }

    fn step(&mut self) {
        self.ms += self.rng.below(400);
        self.s.at(self.ms);
        self.act();
        if self.paths > 1 && self.rng.chance(0.2) {
            self.path_event();
            self.s.check();
        }
        if self.s.due_path().is_none() {
            // What expires may change when T3-rtx does.
            self.s.recovery.on_timeout(self.s.now, TimeoutKind::Loss, &mut Tracer::off());
        }
        if self.rng.chance(0.05) {
            let any = [crate::ThinConfig::M1_TO_M4, crate::ThinConfig::INTERACTIVE];
            let thin = any[self.rng.below(2) as usize];
            let thin = crate::ThinConfig { bundling: crate::state::tests::bundling(3), ..thin };
            self.s.recovery.set_thin(Some(0), thin).expect("there is such a group");
        }
        self.s.check();
        if self.rng.chance(0.8) {
            self.resend();
        }
        if !self.s.has_lost() {
            self.s.check_timer();
        }
    }

    /// Sends, abandons, skips, restarts, delays or acknowledges something.
    fn act(&mut self) {
        let (last, cumulative) = (self.last(), self.cumulative);
        let s = &mut self.s;
        match self.rng.below(10) {
            0..2 if s.recovery.may_send_new(0, 0) && s.recovery.next_due(0).is_none() => {
                s.push_with_copies(false);
            }
            2..4 => {
                let units = 1 + self.rng.below(3) as usize;
                let path = (0..self.paths).rev().find(|&path| s.recovery.may_send_new(path, 0));
                if let Some(path) = path {
                    s.push_over(path, &vec![FULL / 4; units]);
                }
            }
            4 if last > cumulative => {
                s.abandon(cumulative + 1 + self.rng.below(last - cumulative));
            }
            5 if self.rng.chance(0.2) => {
                let path = self.any_path();
                let (s, tracer) = (&mut self.s, &mut Tracer::off());
                s.recovery.on_setup(s.now, path, SetupEvent::Restarted, tracer);
            }
            5 => {
                s.recovery.abandon(crate::Abandoned::Unsent(()));
            }
            6 if s.due_path().is_some() => {
                let kinds = [TimeoutKind::Loss, TimeoutKind::WindowProbe];
                let kind = kinds[self.rng.below(2) as usize];
                let timeout = s.recovery.on_timeout(s.now, kind, &mut Tracer::off());
                if let Some(timeout) = timeout.filter(|_| self.paths > 1) {
                    s.path_error(timeout.path, 2);
                }
            }
            7 if self.rng.chance(0.1) => self.held.clear(),
            _ if last > cumulative => self.acknowledge(last),
            _ => {}
        }
    }

    fn acknowledge(&mut self, last: u64) {
        let Self { rng, s, held, cumulative, .. } = self;
        for _ in 0..rng.below(4) {
            held.insert(*cumulative + 1 + rng.below(last - *cumulative));
        }
        while held.remove(&(*cumulative + 1)) {
            *cumulative += 1;
        }
        let blocks: Vec<_> = held.iter().map(|&unit| (unit, unit)).collect();
        if rng.chance(0.3) {
            s.report(*cumulative);
        }
        s.has_new = rng.chance(0.7);
        if rng.chance(0.3) {
            s.echo(rng.below(self.ms + 1));
        }
        s.ack(*cumulative, &blocks);
    }

    fn path_event(&mut self) {
        let path = self.any_path();
        let Self { rng, s, .. } = self;
        match rng.below(4) {
            0 => _ = s.path_error(path, 2),
            1 => _ = s.path_answered(path, rng.chance(0.5)),
            2 => _ = s.path_probed(path),
            _ => s.make_primary(path),
        }
    }

    /// Retransmits all units that may be retransmitted.
    fn resend(&mut self) {
        let Self { rng, s, .. } = self;
        loop {
            s.recovery.choose_destination(s.now, |count| rng.below(count));
            if !(0..self.paths).any(|path| !s.resend_over(path).is_empty()) {
                break;
            }
        }
        s.check();
        let is_stuck = s.has_outstanding() && s.t3().is_none();
        assert!(!is_stuck, "nothing will ever leave: {:?}", s.recovery);
    }

    fn finish(mut self) {
        let last = self.last();
        let s = &mut self.s;
        s.ack(last, &[]);
        s.check();
        let outstanding = s.recovery.outstanding();
        assert!(outstanding.is_empty() && s.t3().is_none());
        let is_nothing = |path| outstanding.flight(path) == crate::Flight::default();
        assert!((0..self.paths).all(is_nothing));
    }
}

fn several_paths(rng: &mut Rng, config: &mut crate::RecoveryConfig) {
    let all = [Same, Alternate, Elsewhere, LeastCorrelated, Asap, LossRate, Cwnd, Ssthresh, Csi];
    config.sctp.retransmission_destination = all[rng.below(9) as usize];
    config.sctp.lowest_tail = rng.chance(0.3);
    config.sctp.potentially_failed_max_retrans = [None, Some(0)][rng.below(2) as usize];
    let uses_all = rng.chance(0.5);
    let mut cmt = crate::CmtConfig {
        split_fast_retransmit: rng.chance(0.5),
        cwnd_update: rng.chance(0.5),
        delayed_ack: rng.chance(0.5),
        split_buffer: rng.chance(0.5),
        avoid_blocking: rng.chance(0.5),
        coupling: [None, Some(Coupling::ResourcePoolingV2)][rng.below(2) as usize],
    };
    if config.congestion != crate::CongestionControl::Rfc9260 {
        cmt.coupling = None;
    }
    config.sctp.cmt = uses_all.then_some(cmt);
}

fn run(seed: u64, paths: u8) {
    let mut run = Run::new(seed, paths);
    (0..300).for_each(|_| run.step());
    run.finish();
}

#[test]
fn sums_agree_with_the_units_and_the_timer_runs_while_data_is_outstanding() {
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
