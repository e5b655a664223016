//! Laws under random operations of every kind, over every profile of both protocols: packets are built to the
//! end, paths come, go and lead elsewhere, groups change, and acknowledgements say whatever one may.

use std::collections::BTreeSet;

use rexmit_core::trace::Tracer;
use rexmit_core::{Rng, Seed};

use super::{
    Ack, BASE, FULL, LossRecovery, Next, PathEvent, Sender, TimeoutKind, UnitState, ack_of,
};
use crate::RetransmissionDestination::{
    Alternate, Asap, Csi, Cwnd, Elsewhere, LeastCorrelated, LossRate, Same,
};
use crate::{
    BundleRoom, CmtConfig, NewUnit, PROFILES, PathState, RecoveryConfig, RttSource, SetupEvent,
    TCP_PROFILES, ThinConfig,
};

/// A sender of a protocol, and the receiver's side.
struct Run {
    s: Sender,
    rng: Rng,
    is_tcp: bool,
    has_sack: bool,
    ms: u64,
    /// Units that the receiver holds above the cumulative point.
    held: BTreeSet<u64>,
    cumulative: u64,
    /// The units that were written into packets.
    sent: BTreeSet<&'static str>,
}

fn profiles() -> impl Iterator<Item = (&'static str, RecoveryConfig, bool)> {
    let sctp = PROFILES.iter().map(|(name, _)| (*name, RecoveryConfig::profile(name), false));
    let tcp = TCP_PROFILES.iter().map(|(name, _)| (*name, RecoveryConfig::tcp_profile(name), true));
    sctp.chain(tcp).map(|(name, config, is_tcp)| (name, config.expect("a profile"), is_tcp))
}

impl Run {
    fn new(config: RecoveryConfig, is_tcp: bool, seed: u64) -> Self {
        let mut rng = Seed::from_u64(seed).rng();
        let mut config = config;
        let paths = if is_tcp { 1 } else { 1 + rng.below(3) };
        if paths > 1 {
            let all = [Same, Alternate, Elsewhere, LeastCorrelated, Asap, LossRate, Cwnd, Csi];
            config.sctp.retransmission_destination = all[rng.below(8) as usize];
            config.sctp.lowest_tail |= rng.chance(0.2);
            let cmt = [None, Some(CmtConfig::ON)][rng.below(2) as usize];
            let splits_buffer = rng.chance(0.5);
            config.sctp.cmt = cmt.map(|cmt| cmt.split_buffer(splits_buffer));
        }
        let has_sack = !is_tcp || rng.chance(0.7);
        let mut s = Sender::with(|it| *it = config);
        (1..paths).for_each(|_| s.add_confirmed_path());
        let (held, cumulative) = (BTreeSet::new(), 0);
        Self { s, rng, is_tcp, has_sack, ms: 0, held, cumulative, sent: BTreeSet::new() }
    }

    fn last(&self) -> u64 {
        self.s.recovery.outstanding().next_unit() - 1 - BASE
    }

    fn any_path(&mut self) -> u8 {
        self.rng.below(self.s.recovery.paths().count().into()) as u8
    }

    fn any_unit(&mut self) -> u64 {
        self.cumulative + self.rng.below(self.last() - self.cumulative + 1)
    }

    fn step(&mut self) {
        if self.rng.chance(0.5) {
            self.ms += self.rng.below(300);
            self.s.at(self.ms);
        }
        match self.rng.below(24) {
            0..10 => self.send(),
            10..16 => self.acknowledge(),
            16..20 => self.expire(),
            20 => self.measure(),
            21 => self.change_groups(),
            22 if self.is_tcp => self.redirect(),
            22 => self.change_paths(),
            _ => self.abandon(),
        }
        self.s.check();
    }

    /// Sends packets over every path, with all units that they can contain.
    fn send(&mut self) {
        let draw = self.rng.below(4);
        self.s.recovery.choose_destination(self.s.now, |count| draw.min(count - 1));
        for _ in 0..3 {
            let path = self.any_path();
            self.packet(path);
        }
    }

    fn packet(&mut self, path: u8) {
        let groups = self.s.recovery.state.groups.count();
        let mut packet = self.s.recovery.packet(path, self.is_tcp, 0);
        assert_eq!(packet.path(), path);
        let (mut units, mut room) = (Vec::new(), FULL);
        while let Some(next) = packet.next(&self.s.recovery) {
            let known = |unit| self.s.recovery.outstanding().unit(unit).expect("it is outstanding");
            let (unit, is_lost) = match next {
                Next::Lost(unit) => (unit, true),
                Next::Bundled(unit)
                | Next::DelayedCopy(unit)
                | Next::BundledCopy(unit)
                | Next::Rescue(unit) => (unit, false),
                Next::New => {
                    let group = self.rng.below(groups.into()) as u8;
                    let bytes = 16 + self.rng.below(u64::from(FULL) / 3) as u32;
                    let beside = BundleRoom {
                        new_bytes: bytes,
                        room: room.saturating_sub(bytes),
                        is_contiguous: self.is_tcp,
                    };
                    let (now, s) = (self.s.now, &mut self.s);
                    if !packet.has_new() && packet.bundle(&mut s.recovery, now, group, beside) {
                        assert!(packet.is_bundling());
                        continue;
                    }
                    if bytes > room || self.rng.chance(0.3) {
                        packet.refuse();
                        continue;
                    }
                    let is_probe = self.rng.chance(0.05);
                    let new = NewUnit {
                        bytes,
                        user_bytes: bytes - 16,
                        group,
                        is_probe,
                        is_ordered: false,
                        due: None,
                    };
                    let (unit, _) = packet.put_new(&mut s.recovery, now, new, ());
                    units.push(unit);
                    room -= bytes;
                    continue;
                }
            };
            let bytes = known(unit).bytes;
            let is_waiting = matches!(known(unit).state(), UnitState::Lost(_));
            assert_eq!(is_waiting, is_lost, "{next:?}");
            assert!(is_lost || known(unit).is_in_flight(), "{next:?}");
            if bytes > room || self.rng.chance(0.05) {
                if self.rng.chance(0.5) {
                    packet.pass(&mut self.s.recovery);
                } else {
                    packet.refuse();
                }
                continue;
            }
            assert!(packet.put(&mut self.s.recovery, self.s.now).is_some(), "{next:?}");
            self.sent.insert(name_of(next));
            room -= bytes;
            if !matches!(next, Next::BundledCopy(_)) {
                units.push(unit);
            }
        }
        if self.is_tcp {
            assert!(units.windows(2).all(|two| two[0] + 1 == two[1]), "no segment: {units:?}");
        }
        assert_eq!(packet.is_empty(), units.is_empty());
        let (recovery, now) = (&mut self.s.recovery, self.s.now);
        let is_sent = packet.end(recovery, now, &mut Tracer::off());
        assert_eq!(is_sent, !units.is_empty());
    }

    fn acknowledge(&mut self) {
        if self.rng.chance(0.05) {
            self.held.clear(); // The receiver reneges.
        }
        let before = self.cumulative;
        for _ in 0..self.rng.below(5) {
            let unit = self.any_unit();
            if unit > self.cumulative {
                self.held.insert(unit);
            }
        }
        if self.rng.chance(0.5) && self.cumulative < self.last() {
            self.held.insert(self.cumulative + 1);
        }
        while self.held.remove(&(self.cumulative + 1)) {
            self.cumulative += 1;
        }
        let blocks: Vec<_> = self.held.iter().map(|&unit| (unit, unit)).collect();
        let is_duplicate = !self.has_sack && self.cumulative == before;
        let duplicate = self.rng.below(self.last() + 20);
        let echoed = self.rng.below(self.ms + 1);
        let ack = Ack {
            duplicates: self.rng.chance(0.3).then_some(BASE + duplicate),
            has_unexplained_duplicate: self.rng.chance(0.02),
            has_news: !is_duplicate,
            is_duplicate,
            packets_acked: self.rng.below(3) as u8,
            echo: self.rng.chance(0.3).then(|| crate::Echo {
                sent_at: crate::state::tests::AT(echoed),
                tick: super::TICK,
            }),
            has_new: self.rng.chance(0.5),
            ..ack_of(self.cumulative, if self.has_sack { &blocks } else { &[] })
        };
        let sent_before = self.s.recovery.outstanding().cumulative();
        let mut passed = Vec::new();
        let (recovery, now) = (&mut self.s.recovery, self.s.now);
        let outcome =
            recovery.on_ack(now, ack, &mut Tracer::off(), |unit| passed.push(unit.state()));
        let outcome = outcome.expect("it was sent");
        assert_eq!(passed.len() as u64, self.cumulative + BASE - sent_before);
        assert!(
            passed
                .iter()
                .all(|state| { matches!(state, UnitState::Acknowledged | UnitState::Abandoned) })
        );
        assert_eq!(outcome.has_advanced, !passed.is_empty());
        assert!(!outcome.is_stale && outcome.certain_paths & !outcome.paths == 0);
        if !self.has_sack {
            self.held.clear(); // Units above are not reported, and count as lost.
        }
        // An old one, and one of what was never sent, change nothing.
        if self.cumulative > 0 {
            assert!(self.s.ack(self.cumulative - 1, &[]).is_stale);
        }
        let beyond = ack_of(self.last() + 1, &[]);
        let (recovery, now) = (&mut self.s.recovery, self.s.now);
        assert!(recovery.on_ack(now, beyond, &mut Tracer::off(), |_| ()).is_err());
    }

    fn expire(&mut self) {
        if self.rng.chance(0.5)
            && let Some(at) = self.s.recovery.next_timeout()
        {
            self.ms = self.ms.max(at.as_nanos().div_ceil(1_000_000));
            self.s.at(self.ms);
        }
        let kind = [TimeoutKind::Loss, TimeoutKind::WindowProbe][usize::from(self.rng.chance(0.2))];
        // Once units are declared lost the window may have room, and the probe timer may be due for others
        // at once.
        for _ in 0..8 {
            let mut expired = 0;
            while let Some(timeout) =
                self.s.recovery.on_timeout(self.s.now, kind, &mut Tracer::off())
            {
                self.s.path_error(timeout.path, 3);
                expired += 1;
                assert!(expired <= 64, "a timer that expires for ever");
            }
            if self.s.recovery.next_timeout().is_none_or(|at| at > self.s.now) {
                return;
            }
        }
        panic!("a timer is due whatever expires: {:?}", self.s.recovery);
    }

    fn measure(&mut self) {
        let path = self.any_path();
        let rtt = std::time::Duration::from_millis(1 + self.rng.below(400));
        let sources = [RttSource::Heartbeat, RttSource::Timestamp];
        let source = sources[self.rng.below(2) as usize];
        let (recovery, now) = (&mut self.s.recovery, self.s.now);
        recovery.on_rtt_sample(now, path, rtt, source, &mut Tracer::off());
        let unit = self.any_unit();
        match self.rng.below(5) {
            0 => {
                // An acknowledgement that opens the window says so.
                self.s.recovery.on_probe_refused(BASE + unit, &mut Tracer::off());
                let blocks: Vec<_> = self.held.iter().map(|&unit| (unit, unit)).collect();
                self.s.ack(self.cumulative, if self.has_sack { &blocks } else { &[] });
            }
            1 => self.s.recovery.on_t3_event(now, path, crate::T3Event::Unanswered),
            2 => self.s.recovery.on_t3_event(now, path, crate::T3Event::BackoffOver),
            3 => self.s.recovery.release_memory(),
            _ => {
                let events = [
                    SetupEvent::TimedOut,
                    SetupEvent::Restarted,
                    SetupEvent::Done {
                        packet: FULL,
                        was_repeated: true,
                        answered_after: Some(std::time::Duration::from_millis(100)),
                    },
                ];
                let event = events[self.rng.below(3) as usize];
                self.s.recovery.on_setup(self.s.now, path, event, &mut Tracer::off());
            }
        }
        _ = self.s.recovery.wants_rtt_sample(false);
        if self.s.recovery.take_idle_probe(path) && self.rng.chance(0.5) {
            self.s.recovery.on_path_event(path, PathEvent::ProbeLost);
        }
    }

    fn change_groups(&mut self) {
        let all = [ThinConfig::OFF, ThinConfig::M1_TO_M4, ThinConfig::INTERACTIVE];
        let thin = all[self.rng.below(3) as usize];
        let count = self.s.recovery.state.groups.count();
        let group = Some(self.rng.below(count.into()) as u8).filter(|_| self.rng.chance(0.7));
        let set = self
            .s
            .recovery
            .set_thin(group, ThinConfig { bundling: crate::state::tests::bundling(2), ..thin });
        assert_eq!(set.is_ok(), group.is_some() || usize::from(count) < crate::MAX_GROUPS);
    }

    fn redirect(&mut self) {
        let (path, now) = (self.any_path(), self.s.now);
        if self.s.recovery.paths()[path].reach().state() != PathState::Removed {
            self.s.recovery.change_path(
                now,
                path,
                crate::PathChange::Redirected { packet: FULL },
                &mut Tracer::off(),
            );
        }
    }

    fn change_paths(&mut self) {
        let (path, now) = (self.any_path(), self.s.now);
        let state = |s: &Sender, path: u8| s.recovery.paths()[path].reach().state();
        let count = self.s.recovery.paths().count();
        let left = (0..count).filter(|&path| state(&self.s, path) != PathState::Removed).count();
        match self.rng.below(8) {
            0 => self.redirect(),
            1 if left > 1 && state(&self.s, path) != PathState::Removed => {
                self.s.recovery.change_path(
                    now,
                    path,
                    crate::PathChange::Removed,
                    &mut Tracer::off(),
                );
            }
            2 if state(&self.s, path) == PathState::Removed => {
                self.s.recovery.open_path(Some((now, path)), FULL);
            }
            3 if count < 4 => _ = self.s.recovery.open_path(None, FULL),
            4 => self.s.make_primary(path),
            5 => _ = self.s.path_error(path, 3),
            6 => {
                let is_certain = self.rng.chance(0.5);
                self.s.recovery.on_path_event(path, PathEvent::Answered { is_certain });
            }
            _ => _ = self.s.path_probed(path),
        }
    }

    fn abandon(&mut self) {
        let unit = self.any_unit();
        if self.is_tcp || unit == self.cumulative {
            return;
        }
        if self.rng.chance(0.3) {
            self.s.recovery.abandon(crate::Abandoned::Unsent(()));
        } else {
            self.s.abandon(unit);
        }
    }

    /// Delivers everything, or ends the association, and checks that no state remains.
    fn end(&mut self) {
        if self.rng.chance(0.3) {
            let mut drained = 0;
            let outstanding = self.s.recovery.outstanding().units_from(0).count();
            self.s.recovery.drain(|_| drained += 1);
            assert_eq!(drained, outstanding);
        } else {
            let last = self.last();
            self.s.ack(last, &[]);
        }
        self.s.check();
        let LossRecovery { state, .. } = &self.s.recovery;
        assert!(state.outstanding.is_empty() && !state.outstanding.has_lost());
        for path in state.paths.numbers() {
            assert_eq!(state.outstanding.flight(path), crate::Flight::default());
            assert!(!state.paths[path].t3.is_running());
        }
        assert_eq!((state.outstanding.bytes(), state.outstanding.user_bytes_to_arrive()), (0, 0));
        self.s.recovery.release_memory();
        self.s.push(&[FULL]);
        assert!(self.s.t3().is_some());
        self.s.check();
    }
}

const fn name_of(next: Next) -> &'static str {
    match next {
        Next::Lost(_) => "lost",
        Next::Bundled(_) => "bundled",
        Next::DelayedCopy(_) => "delayed copy",
        Next::BundledCopy(_) => "bundled copy",
        Next::New => "new",
        Next::Rescue(_) => "rescue",
    }
}

#[test]
fn the_laws_hold_whatever_happens_under_every_profile() {
    let (mut sent, mut counted) = (BTreeSet::new(), [0; 6]);
    for (index, (name, config, is_tcp)) in profiles().enumerate() {
        for seed in 0..60 {
            let seed = 1000 * index as u64 + seed;
            let mut run = Run::new(config.clone(), is_tcp, seed);
            for _ in 0..300 {
                run.step();
            }
            run.end();
            let of_run = run.s.recovery.statistics();
            assert!(of_run.packets > 0, "{name}: nothing was sent");
            let events = of_run.spurious_events;
            let all = [
                of_run.timeouts,
                of_run.fast_recoveries,
                of_run.packets_repaired,
                of_run.spurious.total(),
                events.total().into(),
                events.undone.into(),
            ];
            counted.iter_mut().zip(all).for_each(|(sum, count)| *sum += count);
            sent.append(&mut run.sent);
        }
    }
    // What does not happen is not tested.
    assert_eq!(sent.len(), 5, "all kinds but new data: {sent:?}");
    assert!(counted.iter().all(|&count| count > 0), "{counted:?}");
}
