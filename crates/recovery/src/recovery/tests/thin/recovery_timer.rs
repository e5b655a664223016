//! The probe timer: when it expires, and that T3-rtx and missing reports ignore its packets.

use std::collections::VecDeque;

use rexmit_core::Instant;

use super::*;
use crate::recovery::tests::{BASE, Next, new_unit};
use crate::{DelayedCopyConfig, ProbeConfig};
use crate::{TimeoutKind, UnitState};

/// A probe timer with a margin of 1.5 ms that tolerates 300 ms of silence.
pub(super) const TIMED: ThinConfig =
    ThinConfig { probe_timer: Some(ProbeConfig::DEFAULT), ..ThinConfig::OFF };
/// The number of units acknowledged before the scripts begin.
pub(super) const WARM: u64 = 40;
/// When the scripts begin, in milliseconds.
const BEGIN: u64 = 8_200;

impl Sender {
    /// A sender at [`BEGIN`], with [`WARM`] units acknowledged after 100 ms each.
    pub(super) fn warm(change: impl FnOnce(&mut RecoveryConfig)) -> Self {
        Self::warm_after(change, |_| 100)
    }

    /// A warm sender whose units are acknowledged after `answer(n)` milliseconds.
    fn warm_after(change: impl FnOnce(&mut RecoveryConfig), answer: impl Fn(u64) -> u64) -> Self {
        let mut s = Self::with(change);
        for unit in 1..=WARM {
            s.at(200 * unit).push(&[SMALL]);
            s.at(200 * unit + answer(unit)).ack(unit, &[]);
        }
        s.at(BEGIN);
        s
    }

    fn timed() -> Self {
        Self::warm(|config| config.thin = TIMED)
    }

    /// Moves the clock to `us` microseconds after [`BEGIN`].
    pub(super) fn after_us(&mut self, us: u64) -> &mut Self {
        let then = Instant::from_nanos((BEGIN * 1000 + us) * 1000);
        assert!(then >= self.now, "{us} us is past");
        self.now = then;
        self.recovery.begin_opportunity();
        self
    }

    /// The earliest deadline, in microseconds after [`BEGIN`].
    pub(super) fn next_us(&self) -> Option<u64> {
        self.recovery.next_timeout().map(|at| at.as_nanos().div_ceil(1000) - BEGIN * 1000)
    }

    /// Lets the next timer expire; returns when that was, in microseconds, and what was retransmitted.
    #[track_caller]
    pub(super) fn repeat_next(&mut self) -> (u64, Vec<u64>) {
        let us = self.next_us().expect("something is due");
        self.after_us(us);
        self.timers();
        assert_eq!(self.due_path(), None, "T3-rtx comes last");
        (us, self.resend().into_iter().map(|unit| unit - WARM).collect())
    }

    pub(super) fn ack_after_warm(&mut self, cumulative: u64, blocks: &[(u64, u64)]) {
        let blocks: Vec<_> = blocks.iter().map(|(from, to)| (from + WARM, to + WARM)).collect();
        self.ack(cumulative + WARM, &blocks);
    }
}

#[test]
fn a_packet_is_retransmitted_a_round_trip_and_the_margin_after_it_left() {
    let mut s = Sender::timed();
    s.push(&[SMALL]);
    s.after_us(50_000).push(&[SMALL]);
    assert_eq!(s.repeat_next(), (101_500, vec![1]), "later packets do not put it off");
    let counted = s.recovery.statistics();
    assert_eq!((counted.retransmitted.probe, counted.retransmitted.total()), (1, 1));
    assert_eq!((counted.fast_recoveries, counted.timeouts), (1, 0));
}

/// Each copy has a deadline of its own, from when it was sent; the window falls once.
#[test]
fn a_lost_retransmission_is_found_as_any_loss_is() {
    let mut s = Sender::warm(|config| {
        config.thin = TIMED;
        config.initial_window_packets = 20;
        config.initial_window_bytes = 20_000;
    });
    s.push(&[SMALL]);
    assert_eq!(s.cwnd(), 20_000);
    for round in 1..=5 {
        assert_eq!(s.repeat_next(), (101_500 * round, vec![1]));
        assert_eq!(s.cwnd(), 10_000);
    }
    s.after_us(600_000).ack_after_warm(1, &[]);
    assert!(!s.is_in_fast_recovery());
    assert_eq!(s.recovery.statistics().timeouts, 0);
    assert_eq!(s.next_us(), None);
}

/// Acknowledgements arrive after 81 to 120 ms: the first probe waits for all of them, a repeated one for
/// three quarters.
fn varying() -> Sender {
    Sender::warm_after(|config| config.thin = TIMED, |unit| 80 + unit * 17 % 41)
}

#[test]
fn the_timeout_of_a_retransmission_is_shorter_where_round_trips_vary() {
    let mut s = varying();
    s.push(&[SMALL]);
    let (first, _) = s.repeat_next();
    assert!((120_000..122_000).contains(&first), "{first}");
    let (again, _) = s.repeat_next();
    assert!((108_000..114_000).contains(&(again - first)), "{first} {again}");
}

/// New data in a packet with a retransmission is waited for as long as any new data.
#[test]
fn new_data_beside_a_retransmission_has_the_timeout_of_new_data() {
    let mut s = varying();
    s.push(&[SMALL]);
    let us = s.next_us().expect("the first is due");
    s.after_us(us).timers();
    let mut packet = s.recovery.packet(0, false, 0);
    assert!(matches!(packet.next(&s.recovery), Some(Next::Lost(_))));
    assert!(packet.put(&mut s.recovery, s.now).is_some());
    packet.put_new(&mut s.recovery, s.now, new_unit(SMALL, 0), ());
    assert!(packet.end(&mut s.recovery, s.now, &mut Tracer::off()));
    let wait = s.next_us().expect("they are due") - us;
    assert!((120_000..122_000).contains(&wait), "{wait}");
}

/// The ACK of the first transmission is late, but long before the timer of the second one expires.
#[test]
fn data_retransmitted_too_early_is_not_retransmitted_once_more() {
    let mut s = varying();
    s.push(&[SMALL]);
    let (us, _) = s.repeat_next();
    s.after_us(us + 10_000).ack_after_warm(1, &[]);
    assert_eq!(s.next_us(), None);
    // The answer was that of the first copy, and the next is waited for as long.
    s.push(&[SMALL]);
    let begun = us + 10_000;
    assert!(s.next_us().expect("it is due") - begun > us, "{us}");
    assert_eq!(s.recovery.statistics().retransmitted.total(), 1);
}

/// The ACK is faster than any sample, but the first transmission may still be the acknowledged one.
#[test]
fn a_quick_ack_to_a_retransmission_is_not_taken_for_a_slow_one() {
    let mut s = varying();
    s.push(&[SMALL]);
    let (first, _) = s.repeat_next();
    s.after_us(first + 75_000).ack_after_warm(1, &[]);
    s.push(&[SMALL]);
    let wait = s.next_us().expect("it is due") - (first + 75_000);
    assert!((120_000..122_000).contains(&wait), "{wait}");
}

#[test]
fn without_an_ack_so_far_t3_is_the_timer() {
    let mut s = Sender::thin(TIMED);
    s.push(&[SMALL]);
    assert_eq!(s.expire(), 1000);
}

/// The margin after the first answer is half its time.
#[test]
fn the_first_sample_starts_the_timer() {
    let mut s = Sender::measured(|config| config.thin = TIMED);
    s.at(200).push(&[SMALL]);
    assert_eq!(s.t3(), Some(360));
}

/// The probe of a packet that is answered after 200 instead of 100 ms is reported as a duplicate: that is no second late
/// round trip, and the next packets are waited for as if there had been none.
#[test]
fn a_late_ack_among_the_first_is_one_sample_although_a_duplicate_report_follows() {
    let sctp = crate::ThinSctpConfig::OFF.sack_immediately(true);
    let mut s = Sender::measured(|config| config.thin = ThinConfig { sctp, ..TIMED });
    s.at(200).push(&[SMALL]);
    s.at(360).timers();
    assert_eq!(s.resend(), [2]);
    s.at(400).ack(2, &[]);
    s.at(460).report(2);
    for unit in 3..=6 {
        s.at(300 * unit).push(&[SMALL]);
        s.at(300 * unit + 100).ack(unit, &[]);
    }
    s.at(2200).push(&[SMALL]);
    let due = s.t3().expect("it is due");
    assert!(due < 2200 + 120, "{due}");
}

/// Later packets, however many, do not declare units lost that the timer covers.
#[test]
fn data_that_arrives_out_of_order_is_not_retransmitted() {
    let mut s = Sender::warm(|config| {
        config.thin =
            ThinConfig { first_indication: true, test: crate::ThinTest::Packets(16), ..TIMED };
    });
    for unit in 0..6 {
        s.after_us(10_000 * unit).push(&[SMALL]);
    }
    for unit in 2..=6 {
        s.after_us(50_000 + 10_000 * unit / 2).ack_after_warm(0, &[(2, unit)]);
        assert_eq!(s.resend(), [], "{unit}");
    }
    s.after_us(101_000).ack_after_warm(6, &[]);
    assert_eq!(s.recovery.statistics().retransmitted.total(), 0);
}

/// With five in flight the stream is thick: three missing reports are what counts.
#[test]
fn a_thick_stream_is_left_to_missing_reports() {
    let mut s = Sender::timed();
    for _ in 0..8 {
        s.push(&[SMALL]);
    }
    assert!(!s.is_thin());
    assert_eq!(s.next_us(), Some(4 * 101_500), "a silent path");
    for unit in 2..=4 {
        s.after_us(100_000).ack_after_warm(0, &[(2, unit)]);
    }
    assert_eq!(s.resend(), [WARM + 1]);
    assert_eq!(s.recovery.statistics().retransmitted.fast_retransmit, 1);
}

/// A packet with units of a thin and a thick stream expires, which makes the thick stream thin. Its other packets have
/// then expired, too, but are declared lost by the next call.
#[test]
fn data_that_becomes_due_because_a_timer_expired_is_left_to_the_next_call() {
    let mut s = Sender::warm(|config| {
        config.thin = TIMED;
        config.max_burst = None;
    });
    let thick = s.recovery.set_thin(None, TIMED).expect("there is room");
    let mut packet = s.recovery.packet(0, false, 0);
    for group in [0, thick] {
        packet.put_new(&mut s.recovery, s.now, new_unit(SMALL, group), ());
    }
    packet.end(&mut s.recovery, s.now, &mut Tracer::off());
    (0..4).for_each(|_| s.push_of(thick, 0, &[SMALL]));
    assert!(!s.recovery.thinness(thick).is_thin);
    s.after_us(101_500).timers();
    assert!(s.recovery.thinness(thick).is_thin);
    assert_eq!(s.next_us(), Some(101_500), "the rest is due");
    assert_eq!(s.repeat_next(), (101_500, vec![1, 2, 3, 4, 5, 6]));
    assert!(s.next_us() > Some(101_500));
}

#[test]
fn a_full_window_is_left_to_t3_unless_the_path_is_silent() {
    let mut s = Sender::timed();
    (0..4).for_each(|_| s.push(&[FULL]));
    assert!(s.is_thin() && !s.has_room_for_new(0));
    assert_eq!(s.repeat_next(), (4 * 101_500, vec![1]));
}

/// RTO.Min is a second: T3-rtx, armed by the last retransmission before the silence, backs off independently of the probes.
#[test]
fn in_a_silence_t3_backs_off_beside_the_probes() {
    let mut s = Sender::timed();
    s.push(&[SMALL]);
    for probe in 1..=12 {
        assert_eq!(s.repeat_next(), (101_500 * probe, vec![1]));
    }
    assert_eq!(s.next_us(), Some(3 * 101_500 + 1_000_000));
    s.after_us(1_304_500).expire_path(0, TimeoutKind::Loss);
    assert_eq!(s.resend(), [WARM + 1]);
    assert_eq!(s.repeat_next(), (1_304_500 + 101_500, vec![1]), "a packet is as good as a probe");
    assert_eq!(s.timer(0).backoffs(), 1);
    s.after_us(1_450_000).ack_after_warm(1, &[]);
    s.push(&[SMALL]);
    assert_eq!(s.repeat_next(), (1_551_500, vec![2]));
}

/// In an outage each packet is a probe: it may be the first that passes.
#[test]
fn new_data_carries_what_two_probes_did_not_get_acknowledged() {
    let mut s = Sender::timed();
    s.push(&[SMALL]);
    assert_eq!(s.repeat_next(), (101_500, vec![1]));
    let copies = |s: &mut Sender, is_run| s.push_with_copies_beside(SMALL, is_run);
    assert_eq!(copies(s.after_us(150_000), false), [], "one probe");
    assert_eq!(s.repeat_next(), (203_000, vec![1]));
    assert_eq!(copies(s.after_us(210_000), true), [], "a segment of TCP has no gap");
    assert_eq!(copies(s.after_us(220_000), false), [WARM + 1], "the others were sent once");
    let counted = s.recovery.statistics();
    assert_eq!((counted.retransmitted.redundant, counted.fast_recoveries), (1, 1));
    s.after_us(300_000).ack_after_warm(0, &[(2, 2)]);
    assert_eq!(copies(s.after_us(301_000), false), [], "an ACK came");
}

/// Two packets that expire within a timeout are one round, also if the earliest data on the path has no probe timer.
#[test]
fn data_without_a_probe_timer_begins_no_round() {
    let mut s = Sender::timed();
    let plain = s.recovery.set_thin(None, ThinConfig::OFF).expect("there is room");
    s.push_of(plain, 0, &[SMALL]);
    s.after_us(1_000).push(&[SMALL]);
    s.after_us(21_000).push(&[SMALL]);
    assert_eq!(s.repeat_next(), (102_500, vec![2]));
    assert_eq!(s.repeat_next(), (122_500, vec![3]));
    assert_eq!(s.after_us(140_000).push_with_copies_beside(SMALL, false), []);
}

/// Only ACKs may be lost: new data is sent with the probes, and has no probe timer or copy of its own.
#[test]
fn in_a_silence_new_data_follows_the_retransmissions_in_a_probe() {
    let of_last_after = Some(Duration::from_millis(5));
    let copies = DelayedCopyConfig { of_last_after, ..DelayedCopyConfig::OFF };
    let mut s = Sender::warm(|config| {
        config.thin = ThinConfig { delayed_copies: copies, ..TIMED };
    });
    s.push(&[SMALL]);
    while s.next_us() < Some(4 * 101_500) {
        s.repeat_next();
    }
    for probe in 4..7 {
        s.after_us(probe * 101_500).timers();
        let mut packet = s.recovery.packet(0, false, 0);
        assert!(packet.probes_silence());
        assert_eq!(packet.next(&s.recovery), Some(Next::Lost(BASE + WARM + 1)));
        assert!(packet.put(&mut s.recovery, s.now).is_some());
        packet.refuse(); // Half of the packet is left.
        while packet.next(&s.recovery) != Some(Next::New) {
            packet.refuse();
        }
        packet.put_new(&mut s.recovery, s.now, new_unit(SMALL, 0), ());
        packet.end(&mut s.recovery, s.now, &mut Tracer::off());
        assert!(!s.has_room_for_new(0), "one packet is in flight");
        assert_eq!(s.next_us(), Some((probe + 1) * 101_500));
    }
    s.ack_after_warm(4, &[]);
    assert!(!s.recovery.packet(0, false, 0).probes_silence());
}

/// Data without a probe timer stays in flight in a silence, and takes room in the window.
#[test]
fn a_probe_has_new_data_only_if_the_window_has_room() {
    for (bulk, may_have_new) in [(0, true), (6, false)] {
        let mut s = Sender::warm(|config| {
            config.thin = TIMED;
            config.max_burst = None;
        });
        let plain = s.recovery.set_thin(None, ThinConfig::OFF).expect("there is room");
        s.push(&[SMALL]);
        (0..bulk).for_each(|_| s.push_of(plain, 0, &[FULL]));
        while s.next_us() < Some(4 * 101_500) {
            s.repeat_next();
        }
        s.after_us(4 * 101_500).timers();
        let mut packet = s.recovery.packet(0, false, 0);
        assert_eq!(packet.next(&s.recovery), Some(Next::Lost(BASE + WARM + 1)));
        assert_eq!(packet.probes_silence(), may_have_new, "{bulk}");
    }
}

/// New data waits for a probe during the silence, and all of it may be sent at the first ACK.
#[test]
fn in_a_silence_one_packet_is_in_flight() {
    let mut s = Sender::timed();
    for n in 0..3 {
        s.after_us(1000 * n).push(&[SMALL]);
    }
    while s.next_us() < Some(4 * 101_500 + 2_000) {
        s.repeat_next();
    }
    assert_eq!(s.repeat_next(), (4 * 101_500 + 2_000, vec![1, 2, 3]));
    assert!(!s.has_room_for_new(0));
    assert_eq!(s.repeat_next(), (5 * 101_500 + 2_000, vec![1, 2, 3]));
    s.after_us(520_000).ack_after_warm(3, &[]);
    assert!(s.has_room_for_new(0));
}

/// A round trip of 5 ms: 300 ms of silence would hold 46 retransmissions.
#[test]
fn retransmissions_over_a_short_path_are_up_to_40_ms_apart() {
    let mut s = Sender::with(|config| config.thin = TIMED);
    for unit in 1..=WARM {
        s.at(200 * unit).push(&[SMALL]);
        s.at(200 * unit + 5).ack(unit, &[]);
    }
    s.at(BEGIN).push(&[SMALL]);
    let mut at = 0;
    for wait in [6_500, 10_000, 20_000, 40_000, 40_000, 40_000, 40_000, 40_000, 40_000] {
        at += wait;
        assert_eq!(s.repeat_next(), (at, vec![1]));
    }
    assert_eq!(s.repeat_next(), (300_000, vec![]), "the silence begins after the last repetition");
    for silent in [376_500, 476_500] {
        assert_eq!(s.repeat_next(), (silent, vec![1]));
    }
    s.ack_after_warm(1, &[]);
    s.push(&[SMALL]);
    assert_eq!(s.repeat_next(), (483_000, vec![2]), "as before");
}

/// Time without anything in flight is no silence.
#[test]
fn an_idle_stream_was_not_silent() {
    let mut s = Sender::timed();
    s.after_us(60_000_000).push(&[SMALL]);
    assert_eq!(s.repeat_next(), (60_101_500, vec![1]));
}

/// Unit 1 travels with the next two packets as well, and all are lost.
#[test]
fn a_unit_is_due_when_the_latest_packet_with_it_is() {
    let mut s = Sender::warm(|config| {
        config.thin = ThinConfig { bundling: Some(crate::BundlingConfig::ALL), ..TIMED };
    });
    s.push_with_copies(false);
    assert_eq!(s.after_us(40_000).push_with_copies(false), [WARM + 1]);
    assert_eq!(s.after_us(80_000).push_with_copies(false), [WARM + 1, WARM + 2]);
    assert_eq!(s.repeat_next(), (101_500, vec![]), "the first packet alone");
    assert_eq!(s.repeat_next(), (141_500, vec![]));
    assert_eq!(s.repeat_next(), (181_500, vec![1, 2, 3]));
}

/// Probes of a closed window are not lost data.
#[test]
fn a_probe_of_a_closed_window_is_left_to_t3() {
    let mut s = Sender::timed();
    s.push_probe(0, SMALL);
    assert_eq!(s.repeat_next(), (101_500, vec![]));
    assert_eq!(s.next_us(), Some(1_000_000));
}

#[test]
fn abandoned_data_is_not_due() {
    let mut s = Sender::timed();
    s.push(&[SMALL]);
    s.after_us(50_000).abandon(WARM + 1);
    assert_eq!(s.next_us(), None);
    assert!(matches!(s.state(WARM + 1), Some(UnitState::Abandoned)));
}

/// A receiver that has everything, answers every second packet at once, if it is one of RFC 9260, and
/// others after 200 ms; whatever it is asked.
struct SlowReceiver {
    every_other: bool,
    arriving: VecDeque<(u64, u64)>,
    answering: VecDeque<(u64, u64, Option<u64>)>,
    cumulative: u64,
    /// When unacknowledged data will be acknowledged.
    waits_until: Option<u64>,
    duplicates: u64,
}

impl SlowReceiver {
    fn tick(&mut self, ms: u64) {
        while let Some((_, unit)) = self.arriving.pop_front_if(|(at, _)| *at <= ms) {
            let is_new = unit > self.cumulative;
            self.cumulative = self.cumulative.max(unit);
            self.duplicates += u64::from(!is_new);
            let is_second = self.every_other && self.waits_until.is_some();
            if !is_new || is_second {
                self.answer(ms, (!is_new).then_some(unit));
            } else {
                self.waits_until.get_or_insert(ms + 200);
            }
        }
        if self.waits_until.is_some_and(|at| at <= ms) {
            self.answer(ms, None);
        }
    }

    fn answer(&mut self, ms: u64, duplicate: Option<u64>) {
        self.waits_until = None;
        self.answering.push_back((ms + 50, self.cumulative, duplicate));
    }
}

/// open5gs#895: a timer below the peer's SACK delay sends everything twice, for ever, unless it learns.
#[test]
fn a_receiver_that_delays_acknowledgements_is_learned() {
    for (every_other, interval) in [(false, 250), (true, 250), (true, 50), (true, 30)] {
        let mut s = Sender::thin(ThinConfig {
            ack_delay_samples: true,
            test: crate::ThinTest::Packets(16),
            ..TIMED
        });
        s.heartbeat(0, Duration::from_millis(100));
        let mut peer = SlowReceiver {
            every_other,
            arriving: VecDeque::new(),
            answering: VecDeque::new(),
            cumulative: 0,
            waits_until: None,
            duplicates: 0,
        };
        let mut at_first = 0;
        for ms in 1..1000 * interval {
            s.at(ms);
            peer.tick(ms);
            while let Some((_, cumulative, duplicate)) =
                peer.answering.pop_front_if(|(at, ..)| *at <= ms)
            {
                duplicate.into_iter().for_each(|unit| s.report(unit));
                s.ack(cumulative, &[]);
            }
            s.timers();
            if ms % interval == 0 {
                s.push(&[SMALL]);
                peer.arriving.push_back((ms + 50, ms / interval));
            }
            peer.arriving.extend(s.resend().into_iter().map(|unit| (ms + 50, unit)));
            if ms == 40 * interval {
                at_first = peer.duplicates;
            }
        }
        let share = (peer.duplicates - at_first) as f64 / 960.0;
        assert!(share < 0.02, "{share} spurious, {every_other}, {interval} ms");
        assert!((1..40).contains(&at_first), "{at_first} at first");
    }
}

/// The lifetime of a message ends before its ACK comes: it is abandoned, and its ACK is a sample all the same.
#[test]
fn an_abandoned_unit_that_was_sent_once_makes_a_sample() {
    let mut s = Sender::timed();
    s.push(&[SMALL]);
    s.after_us(101_500).timers();
    s.abandon(WARM + 1);
    s.after_us(400_000);
    let outcome = s.ack(WARM + 1, &[]);
    assert!(outcome.has_sampled && outcome.has_passed_abandoned);
    s.push(&[SMALL]);
    assert_eq!(s.next_us().map(|us| us > 600_000), Some(true), "it is waited for longer");
}

/// The ACK may answer a FORWARD-TSN, unless that was sent just now or the unit is in a gap ack block.
#[test]
fn an_ack_to_skipped_units_makes_no_sample() {
    for (skipped_us, blocks, is_sample) in
        [(150_000, [(9, 9)], false), (380_000, [(9, 9)], true), (150_000, [(1, 1)], true)]
    {
        let mut s = Sender::timed();
        s.push(&[SMALL]);
        s.after_us(101_500).timers();
        s.abandon(WARM + 1);
        let skipped_at = Instant::from_nanos((BEGIN * 1000 + skipped_us) * 1000);
        s.after_us(400_000);
        let is_in_block = blocks[0].0 == 1;
        let cumulative = WARM + u64::from(!is_in_block);
        let blocks: Vec<_> = blocks.iter().map(|(from, to)| (WARM + from, WARM + to)).collect();
        let latest = (super::super::BASE + WARM + 1, skipped_at);
        let skipped = crate::Skipped { before: 0, latest };
        let blocks = if is_in_block { blocks } else { Vec::new() };
        let outcome = s.take(crate::Ack { skipped, ..super::super::ack_of(cumulative, &blocks) });
        assert!(outcome.has_passed_abandoned);
        assert_eq!(outcome.has_sampled, is_sample, "skipped after {skipped_us} us");
        assert!(!s.recovery.wants_rtt_sample(true), "this profile sends no HEARTBEAT");
    }
}

/// Where only one packet may be in flight until something is acknowledged, the ACK of an abandoned unit is enough.
#[test]
fn the_ack_of_an_abandoned_unit_allows_new_data() {
    let mut s = Sender::timed();
    s.push(&[SMALL]);
    s.after_us(101_500).timers();
    s.abandon(WARM + 1);
    s.recovery.state.paths[0].gate.is_single_packet = true;
    s.push(&[SMALL]);
    assert!(!s.has_room_for_new(0));
    s.after_us(200_000).ack_after_warm(1, &[]);
    assert!(s.has_room_for_new(0));
}

/// A timer that runs late shows that this host is busy: ACKs may have arrived.
#[test]
fn an_expiry_that_comes_late_is_put_off_as_long() {
    let mut s = Sender::timed();
    s.push(&[SMALL]);
    s.after_us(101_500 + 20_000).timers();
    assert_eq!((s.resend(), s.next_us()), (vec![], Some(101_500 + 2 * 20_000)));
    s.after_us(101_500 + 20_100).ack_after_warm(1, &[]);
    s.push(&[SMALL]);
    assert_eq!(s.recovery.statistics().retransmitted.total(), 0);
    let (us, repeated) = s.repeat_next();
    assert!(us > 101_500 + 120_000 && repeated == [2], "{us}");
}

/// With thousands of connections, each wake-up makes the others late: none is put off again and again.
#[test]
fn an_expiry_that_comes_late_again_is_not_put_off_again() {
    let mut s = Sender::timed();
    s.push(&[SMALL]);
    s.after_us(101_500 + 20_000).timers();
    assert!(s.resend().is_empty());
    s.after_us(101_500 + 2 * 20_000 + 20_000).timers();
    assert_eq!(s.resend().len(), 1);
}
