//! The state that mechanisms read, made without a sender: timers, thin streams, and the paths of data.

use std::num::{NonZeroU8, NonZeroU16};

use rexmit_core::trace::SendCause;

use super::*;
use crate::outstanding::{NewUnit, Placement};
use crate::{
    BundlingConfig, CongestionWindow, CopyBudget, Reach, RetransmissionCopies, ThinConfig,
    ThinTcpConfig,
};

/// A unit of this size fills a packet, and the first window holds four.
pub(crate) const FULL: u32 = 1000;
/// A small unit: many fit the initial window.
pub(crate) const SMALL: u32 = 100;
pub(crate) const AT: fn(u64) -> Instant = Instant::from_millis;
pub(crate) const MS: fn(u64) -> Duration = Duration::from_millis;

impl State<()> {
    /// A state with one path, whose first unit is 1.
    pub(crate) fn with(change: impl FnOnce(&mut RecoveryConfig)) -> Self {
        let mut config = RecoveryConfig::rfc9260();
        change(&mut config);
        let config = Arc::new(config);
        let mut state = Self {
            outstanding: Outstanding::new(1),
            paths: Paths::new(Path::new(&config, FULL, Reach::ACTIVE)),
            groups: Groups::new(&config),
            fast_recovery: FastRecovery::default(),
            statistics: RecoveryStatistics::default(),
            config,
        };
        state.outstanding.add_path();
        state
    }

    pub(crate) fn thin(thin: ThinConfig) -> Self {
        Self::with(|config| config.thin = thin)
    }

    /// Adds an active path.
    pub(crate) fn add_active_path(&mut self) {
        self.paths.add(Path::new(&self.config, FULL, Reach::ACTIVE));
        self.outstanding.add_path();
        self.fast_recovery.set_paths(self.paths.count().into());
    }

    /// A unit of group 0 is sent in a packet of its own. Returns its number.
    pub(crate) fn send(&mut self, now: Instant, path: u8, bytes: u32) -> u64 {
        self.send_of(now, (path, 0), bytes)
    }

    pub(crate) fn send_of(&mut self, now: Instant, (path, group): (u8, u8), bytes: u32) -> u64 {
        let place = Placement { path, starts_packet: true, trial: None };
        let new = NewUnit {
            bytes,
            user_bytes: bytes - 16,
            group,
            is_probe: false,
            is_ordered: false,
            due: None,
        };
        self.statistics.packets += 1;
        self.outstanding.send(now, place, new, ()).0
    }

    /// `unit` is retransmitted over `path`, in a packet of its own.
    pub(crate) fn resend(&mut self, now: Instant, path: u8, unit: u64, cause: SendCause) {
        let place = Placement { path, starts_packet: true, trial: None };
        let is_redundant = cause == SendCause::Redundant;
        let sent = self.outstanding.retransmit(now, place, unit, cause, is_redundant);
        let before = sent.expect("it is outstanding").before.packet;
        self.outstanding.remember_repeat(now, unit, before, cause, None);
    }

    /// Everything up to `cumulative` is acknowledged; no mechanism is informed.
    pub(crate) fn deliver_through(&mut self, cumulative: u64) {
        while self.outstanding.cumulative() < cumulative {
            self.outstanding.acknowledge(self.outstanding.cumulative() + 1);
            self.outstanding.deliver_first().expect("it was sent");
        }
        self.outstanding.forget_passed();
        self.outstanding.forget_ended();
        self.paths.numbers().for_each(|path| self.outstanding.advance_earliest(path));
    }

    /// Adds an RTT sample of `path`.
    pub(crate) fn sample(&mut self, now: Instant, path: u8, rtt: Duration) {
        let config = Arc::clone(&self.config);
        self.paths[path].on_sample(now, rtt, None, &config.rto);
    }
}

/// A window of `packets`, grown by slow start.
pub(crate) fn wide(packets: u64) -> CongestionWindow {
    let mut window = CongestionWindow::new(RecoveryConfig::rfc9260().window(), FULL);
    while window.cwnd() < packets * u64::from(FULL) {
        window.on_acked(rexmit_congestion::Acked {
            now: Instant::ZERO,
            bytes: FULL.into(),
            cumulative_bytes: FULL.into(),
            srtt: None,
            rtt: None,
            flight_before: u64::MAX,
            flight_after: 1,
            in_fast_recovery: false,
        });
    }
    window
}

const M1: ThinConfig = ThinConfig { rto_min: Some(Duration::from_millis(200)), ..ThinConfig::OFF };
const M2: ThinConfig = ThinConfig { restart_by_age: true, ..ThinConfig::OFF };

/// SRTT 100 ms and RTTVAR 50 ms: 300 ms, or RTO.Min of a second.
#[test]
fn a_running_timer_has_a_deadline_for_each_kind_of_stream() {
    for (thin, few, many) in [(ThinConfig::OFF, 1200, 1200), (M1, 500, 1200)] {
        let mut state = State::thin(thin);
        state.sample(AT(100), 0, MS(100));
        state.send(AT(200), 0, SMALL);
        assert_eq!(state.t3_deadline(0), None, "it does not run");
        state.arm_t3(AT(200), 0, None);
        assert_eq!(state.t3_deadline(0), Some(AT(few)));
        assert_eq!(state.rto(0), MS(few - 200));
        (0..4).for_each(|_| _ = state.send(AT(210), 0, SMALL));
        assert_eq!((state.is_thin(0), state.t3_deadline(0)), (false, Some(AT(many))));
        assert_eq!(state.rto(0), MS(1000));
    }
}

#[test]
fn the_timer_of_a_thin_stream_runs_from_its_oldest_packet_or_waits_for_the_probe_timer() {
    let mut state = State::thin(M2);
    state.sample(AT(100), 0, MS(100));
    state.send(AT(200), 0, SMALL);
    state.send(AT(250), 0, SMALL);
    state.arm_t3(AT(300), 0, None);
    assert_eq!(state.t3_deadline(0), Some(AT(1200)), "the oldest was sent at 200 ms");
    state.arm_t3(AT(300), 0, Some(MS(700)));
    assert_eq!(state.t3_deadline(0), Some(AT(1300)), "the timeout, from now on");
    state.arm_t3(AT(300), 0, Some(MS(1700)));
    assert_eq!(state.t3_deadline(0), Some(AT(2000)), "longer than the timeout");
    // 1 has arrived.
    state.deliver_through(1);
    state.arm_t3(AT(300), 0, None);
    assert_eq!(state.t3_deadline(0), Some(AT(1250)));
}

#[test]
fn a_timer_that_runs_follows_mechanisms_that_change() {
    let mut state = State::thin(ThinConfig::OFF);
    state.sample(AT(100), 0, MS(100));
    state.send(AT(200), 0, SMALL);
    state.arm_t3(AT(200), 0, None);
    state.groups.set(0, M1, &state.statistics);
    state.renew_t3(0, None);
    assert_eq!(state.t3_deadline(0), Some(AT(500)));
    state.groups.set(0, ThinConfig::OFF, &state.statistics);
    state.renew_t3(0, None);
    assert_eq!(state.t3_deadline(0), Some(AT(1200)));
}

/// The earliest unit outstanding on a path says whose mechanisms its timer has.
#[test]
fn the_timer_has_the_mechanisms_of_the_earliest_unit() {
    let mut state = State::thin(ThinConfig::OFF);
    state.sample(AT(100), 0, MS(100));
    let group = state.groups.add(M1, &state.statistics).expect("there is room");
    state.send_of(AT(200), (0, 0), SMALL);
    state.send_of(AT(200), (0, group), SMALL);
    assert_eq!((state.group_of_earliest(0), state.rto(0)), (0, MS(1000)));
    state.deliver_through(1);
    assert_eq!((state.group_of_earliest(0), state.rto(0)), (group, MS(300)));
}

#[test]
fn a_window_has_room_and_a_timeout_leaves_it_to_one_packet() {
    let mut state = State::with(|_| ());
    (0..3).for_each(|_| _ = state.send(AT(0), 0, FULL));
    assert!(state.has_window_for(0) && state.has_room(0, 0));
    state.send(AT(0), 0, FULL);
    assert!(!state.has_window_for(0) && !state.has_room(0, 0));
    assert!(state.has_room(0, 1000), "without one packet");
    state.paths[0].gate.is_single_packet = true;
    assert!(!state.has_room(0, 4000));
    state.deliver_through(4);
    assert!(state.has_room(0, 0), "nothing is in flight");
}

#[test]
fn nothing_may_pass_the_window_where_nothing_waits() {
    let mut state = State::with(|_| ());
    state.add_active_path();
    (0..2).for_each(|path| _ = state.send(AT(0), path, FULL));
    state.outstanding.lose(2, SendCause::Timeout);
    [0, 1].into_iter().for_each(|path| state.paths[path].gate.open_for_retransmission());
    state.settle_gates();
    assert_eq!([0, 1].map(|path| state.paths[path].gate.may_retransmit_now()), [false, true]);
}

/// Petlund 2008 §2: at least one of the criteria is fulfilled, and packets are small if they are far below the MSS.
#[test]
fn few_packets_or_small_ones_make_a_stream_thin() {
    let most = ThinConfig::OFF.with_tcp(ThinTcpConfig::PETLUND_2008);
    let data = |bytes: u32| bytes + 16; // With the header of a DATA chunk.
    for (thin, sizes, expected, is_few) in [
        (most, &[][..], true, true),
        (most, &[FULL; 4], true, true),
        (most, &[FULL; 5], false, false),
        (most, &[FULL / 2; 5], true, false),
        (most, &[FULL / 2, FULL / 2, FULL / 2, FULL / 2, FULL / 2 + 1], false, false),
        // The mean decides, and no number of small packets is too large.
        (most, &[100, 900, 100, 900, 500], true, false),
        (most, &[10; 200], true, false),
        (ThinConfig::OFF, &[10; 4], true, true),
        (ThinConfig::OFF, &[10; 5], false, false),
    ] {
        let mut state = State::thin(thin);
        for &bytes in sizes {
            state.send(AT(0), 0, data(bytes));
        }
        assert_eq!(state.is_thin(0), expected, "{sizes:?}");
        assert_eq!(state.thinness(0).is_thin, expected, "{sizes:?}");
        assert_eq!(state.has_few_packets(0), is_few, "{sizes:?}");
    }
}

/// Copies of the units of this many packets are bundled, whatever their size.
pub(crate) const fn bundling(packets: u8) -> Option<BundlingConfig> {
    match NonZeroU8::new(packets) {
        Some(packets) => Some(BundlingConfig { packets, bytes: None }),
        None => None,
    }
}

/// This many copies of a retransmission, a millisecond apart.
pub(crate) const fn copies(count: u8) -> Option<RetransmissionCopies> {
    match NonZeroU8::new(count) {
        Some(copies) => Some(RetransmissionCopies { copies, ..RetransmissionCopies::ONE }),
        None => None,
    }
}

/// A budget in percent; zero is no limit.
pub(crate) const fn budget(packets: u16, bytes: u16) -> CopyBudget {
    CopyBudget::percent(NonZeroU16::new(packets), NonZeroU16::new(bytes))
}
