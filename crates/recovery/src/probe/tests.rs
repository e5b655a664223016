//! The timer over outstanding data, without a sender: when it expires, for what, and when it does not run.

use super::*;
use crate::SendCause;
use crate::state::tests::{AT, FULL, MS, SMALL};
use crate::{ProbeConfig, ThinConfig, ThinTest};

const TIMED: ThinConfig = ThinConfig { probe_timer: Some(ProbeConfig::DEFAULT), ..ThinConfig::OFF };
/// The timeout after many round trips of 100 ms: the least margin is 1.5 ms.
const TIMEOUT: Duration = Duration::from_micros(101_500);

struct Probing {
    state: State<()>,
    probe: ProbeTimer,
}

impl Probing {
    fn new(thin: ThinConfig) -> Self {
        let state = State::thin(thin);
        let mut probe = ProbeTimer::default();
        if state.groups.probed != 0 {
            probe.enable(0);
        }
        Self { state, probe }
    }

    /// A probe timer after 40 RTT samples of 100 ms.
    fn warm(thin: ThinConfig) -> Self {
        let mut p = Self::new(thin);
        (0..40).for_each(|_| p.probe.on_rtt(0, MS(100)));
        p
    }

    fn send(&mut self, now: Instant, bytes: u32) -> u64 {
        self.send_of(now, (0, 0), bytes)
    }

    fn send_of(&mut self, now: Instant, place: (u8, u8), bytes: u32) -> u64 {
        let was_idle = self.state.outstanding.on(place.0).outstanding == 0;
        let unit = self.state.send_of(now, place, bytes);
        if was_idle {
            self.probe.on_first_outstanding(now, place.0);
        }
        self.probe.on_sent(now, place.0, &self.state);
        self.probe.renew(place.0, &self.state);
        unit
    }

    /// `unit` is declared lost, and is retransmitted because of the timer.
    fn repeat(&mut self, now: Instant, unit: u64) {
        self.state.outstanding.lose(unit, SendCause::Probe);
        self.state.outstanding.measure_first_transmission(unit, 0, AT(0));
        self.probe.count_round(now, 0, &self.state);
        self.state.resend(now, 0, unit, SendCause::Probe);
        self.probe.on_sent(now, 0, &self.state);
        self.probe.renew(0, &self.state);
    }

    fn ack(&mut self, now: Instant, units: &[u64]) {
        for &unit in units {
            let acked = self.state.outstanding.acknowledge(unit).expect("it is outstanding");
            self.probe.on_acked(now, &acked, None, &mut self.state);
        }
        self.probe.learn(now, 0, true, false, None);
        self.probe.renew(0, &self.state);
    }

    /// Expires the timer at `now`. Returns whether a probe of the silent path is due.
    fn probes_at(&mut self, now: Instant) -> bool {
        let is_due = self.probe.probes_silent(now, 0, &self.state);
        self.probe.renew(0, &self.state);
        is_due
    }

    fn is_silent_at(&mut self, now: Instant) -> bool {
        self.probes_at(now);
        self.probe.is_silent(0)
    }

    fn deadline(&self) -> Option<Instant> {
        Some(self.probe.deadline(0)).filter(|&at| at < Instant::FAR_FUTURE)
    }

    fn expired(&mut self, now: Instant, round: Round) -> Vec<(Instant, u64)> {
        let due = self.probe.take_expired(now, 0, round, &self.state);
        due.into_iter().map(|(at, packet)| (at, packet.0)).collect()
    }
}

#[test]
fn a_packet_is_due_a_round_trip_and_the_margin_after_it_was_sent() {
    let mut p = Probing::warm(TIMED);
    p.send(AT(10), SMALL);
    p.send(AT(50), SMALL);
    assert_eq!(p.deadline(), Some(AT(10) + TIMEOUT), "later packets do not put it off");
    assert_eq!(p.expired(AT(111), Round::First), []);
    assert_eq!(p.expired(AT(112), Round::First), [(AT(10), 0)]);
    assert_eq!(p.expired(AT(112), Round::First), [], "once");
    assert_eq!(p.expired(AT(200), Round::First), [(AT(50), 1)]);
}

#[test]
fn acknowledged_data_is_not_due() {
    let mut p = Probing::warm(TIMED);
    let first = p.send(AT(10), SMALL);
    p.send(AT(50), SMALL);
    p.ack(AT(110), &[first]);
    assert_eq!(p.deadline(), Some(AT(50) + TIMEOUT));
    assert_eq!(p.expired(AT(120), Round::First), []);
}

#[test]
fn the_first_round_trip_starts_it_with_half_of_it_and_ten_ms_as_margin() {
    let mut p = Probing::new(TIMED);
    let first = p.send(AT(0), SMALL);
    assert_eq!((p.deadline(), p.probe.shortest_rtt(0)), (None, None));
    p.ack(AT(100), &[first]);
    assert_eq!(p.probe.shortest_rtt(0), Some(MS(100)));
    p.send(AT(200), SMALL);
    assert_eq!(p.deadline(), Some(AT(360)));
}

#[test]
fn a_thick_stream_a_full_window_or_one_without_the_mechanism_has_none() {
    let mut p = Probing::warm(TIMED);
    (0..5).for_each(|_| _ = p.send(AT(10), SMALL));
    assert_eq!(p.deadline(), Some(AT(10) + 4 * TIMEOUT), "five in flight: once it is silent");
    let mut p = Probing::warm(TIMED);
    (0..4).for_each(|_| _ = p.send(AT(10), FULL));
    assert_eq!(p.deadline(), Some(AT(10) + 4 * TIMEOUT), "a window of four");
    let mut p = Probing::warm(ThinConfig::OFF);
    p.send(AT(10), SMALL);
    assert_eq!((p.deadline(), p.probe.least_t3(&p.state, 0)), (None, None));
}

/// With a second stream without a probe timer, whose packets are skipped.
#[test]
fn it_is_for_the_groups_that_have_it() {
    let mut p = Probing::warm(ThinConfig::OFF);
    let group = p.state.groups.add(TIMED, &p.state.statistics).expect("there is room");
    p.probe.enable(0);
    (0..40).for_each(|_| p.probe.on_rtt(0, MS(100)));
    p.send_of(AT(10), (0, 0), SMALL);
    assert_eq!(p.deadline(), None);
    p.send_of(AT(20), (0, group), SMALL);
    assert_eq!(p.deadline(), Some(AT(20) + TIMEOUT));
    assert_eq!(p.expired(AT(150), Round::First), [(AT(20), 1)]);
    assert!(p.probe.covers(&p.state, 0, 1 << group) && !p.probe.covers(&p.state, 0, 1));
}

#[test]
fn t3_waits_for_two_timeouts_at_least() {
    let p = Probing::warm(TIMED);
    assert_eq!(p.probe.least_t3(&p.state, 0), Some(2 * TIMEOUT));
    assert_eq!(Probing::new(TIMED).probe.least_t3(&p.state, 0), None, "nothing was measured");
}

/// On a short path the fourth waits for 40 ms; from the tenth on each waits twice as long.
#[test]
fn rounds_without_an_ack_are_apart_and_double_the_timeout_after_the_eighth() {
    const TIMEOUT: Duration = Duration::from_micros(21_500);
    let patient = ProbeConfig { silence: Duration::from_secs(60), ..ProbeConfig::DEFAULT };
    let mut p = Probing::new(ThinConfig { probe_timer: Some(patient), ..TIMED });
    (0..40).for_each(|_| p.probe.on_rtt(0, MS(20)));
    let unit = p.send(AT(0), SMALL);
    let mut at = AT(0);
    let paced = [TIMEOUT; 3].into_iter().chain([MS(40); 6]);
    for wait in paced.chain([2 * TIMEOUT, 4 * TIMEOUT, 8 * TIMEOUT]) {
        let due = p.deadline().expect("it runs");
        assert_eq!(due, at + wait);
        at = due;
        p.repeat(at, unit);
    }
    p.ack(at + MS(20), &[unit]);
    // Any of them may have been acknowledged, which shows nothing of how early they were.
    let next = p.send(at + MS(200), SMALL);
    assert_eq!(
        p.deadline(),
        Some(at + MS(200) + TIMEOUT),
        "nothing was outstanding: it begins anew"
    );
    p.ack(at + MS(300), &[next]);
}

/// Packets that expire together count as one unanswered round.
#[test]
fn packets_of_one_round_count_once() {
    let mut p = Probing::warm(ThinConfig { test: ThinTest::Packets(16), ..TIMED });
    let units: Vec<u64> = (0..10).map(|_| p.send(AT(0), SMALL)).collect();
    for &unit in &units {
        p.repeat(AT(102), unit);
    }
    assert_eq!(p.deadline(), Some(AT(102) + TIMEOUT));
}

/// The path is silent then, and packets in flight are not due one by one.
#[test]
fn after_a_silence_the_path_is_probed_as_a_whole_until_something_is_acknowledged() {
    let mut p = Probing::warm(TIMED);
    let unit = p.send(AT(0), SMALL);
    let silent_from = AT(0) + 4 * TIMEOUT;
    assert!(!p.is_silent_at(silent_from - MS(1)) && !p.probes_at(silent_from - MS(1)));
    assert!(p.probes_at(silent_from) && p.is_silent_at(silent_from), "nothing was sent since");
    assert_eq!(p.expired(silent_from, Round::First), []);
    assert_eq!(p.deadline(), Some(silent_from + TIMEOUT), "the next probe");
    assert!(!p.probe.covers(&p.state, 0, 1));
    let second = p.send(AT(450), SMALL);
    assert_eq!(p.deadline(), Some(AT(450) + TIMEOUT), "a packet is as good as a probe");
    p.ack(AT(550), &[second]);
    assert!(!p.probe.is_silent(0));
    assert_eq!(p.deadline(), Some(AT(0) + TIMEOUT), "{unit} is due");
}

/// Where round trips are short a probe is sent every 100 ms, and after ten seconds every second.
#[test]
fn probes_of_a_silent_path_have_a_pace() {
    let mut p = Probing::new(TIMED);
    (0..40).for_each(|_| p.probe.on_rtt(0, MS(20)));
    p.send(AT(0), SMALL);
    let mut probes = Vec::new();
    for ms in 0..15_000 {
        if p.probes_at(AT(ms)) {
            probes.push(ms);
        }
    }
    let gaps: Vec<u64> = probes.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(probes[0], 300);
    assert!(
        gaps.iter().zip(&probes).all(|(&gap, &at)| gap == if at < 10_500 { 100 } else { 1000 })
    );
}

/// Only T3-rtx retransmits data of a sender that fills its window.
#[test]
fn a_thick_stream_is_not_probed_in_a_silence() {
    let mut p = Probing::warm(TIMED);
    let units: Vec<u64> = (0..8).map(|_| p.send(AT(0), SMALL)).collect();
    p.ack(AT(100), &units[..1]);
    assert!(!p.is_silent_at(AT(5000)));
    p.ack(AT(5000), &units[1..6]);
    assert!(p.is_silent_at(AT(60_000)));
}

/// The tolerated silence is four timeouts if that is longer than the setting.
#[test]
fn a_longer_round_trip_tolerates_a_longer_silence() {
    let mut p = Probing::new(TIMED);
    (0..40).for_each(|_| p.probe.on_rtt(0, MS(500)));
    let timeout = p.probe.least_t3(&p.state, 0).expect("measured") / 2;
    p.send(AT(0), SMALL);
    let end = AT(0) + 4 * timeout;
    assert!(timeout > MS(500) && !p.is_silent_at(end - MS(1)));
    assert!(p.is_silent_at(end));
}

/// Time without anything in flight is no silence.
#[test]
fn an_idle_path_was_not_silent() {
    let mut p = Probing::warm(TIMED);
    let first = p.send(AT(0), SMALL);
    p.ack(AT(100), &[first]);
    p.state.deliver_through(first);
    p.send(AT(60_000), SMALL);
    assert!(!p.is_silent_at(AT(60_300)));
    assert_eq!(p.deadline(), Some(AT(60_000) + TIMEOUT));
}

/// With a copy bundled with newer data, the unit's packet expires again together with the newer packet.
#[test]
fn a_copy_is_waited_for_as_well() {
    let mut p = Probing::warm(TIMED);
    let first = p.send(AT(0), SMALL);
    p.send(AT(40), SMALL);
    let unit = p.state.outstanding.unit(first).expect("outstanding");
    p.probe.on_copied(AT(40), unit, &p.state);
    p.probe.on_copied(AT(40), unit, &p.state);
    assert_eq!(p.expired(AT(110), Round::First), [(AT(0), 0)]);
    assert_eq!(p.expired(AT(141), Round::First), []);
    assert_eq!(p.expired(AT(142), Round::First), [(AT(40), 1), (AT(40), 0)]);
}

#[test]
fn a_copy_of_the_earliest_restarts_t3_while_acks_arrive() {
    let mut p = Probing::warm(TIMED);
    let first = p.send(AT(0), SMALL);
    let second = p.send(AT(40), SMALL);
    assert!(p.probe.restarts_t3(first, 0, &p.state));
    assert!(!p.probe.restarts_t3(second, 0, &p.state), "not the earliest");
    assert!(p.is_silent_at(AT(2000)));
    assert!(!p.probe.restarts_t3(first, 0, &p.state), "a dead path");
}

/// With RTTs of 100 to 140 ms, the timer of a retransmission is shorter than that of a first transmission.
#[test]
fn retransmissions_have_a_queue_and_a_timeout_of_their_own() {
    let mut p = Probing::new(TIMED);
    (0..200).for_each(|n| p.probe.on_rtt(0, MS(100 + n % 41)));
    let unit = p.send(AT(0), SMALL);
    let first = p.deadline().expect("it runs") - AT(0);
    p.repeat(AT(200), unit);
    let again = p.deadline().expect("it runs") - AT(200);
    assert!(again < first && again > MS(100), "{first:?} {again:?}");
    assert_eq!(p.expired(AT(1000), Round::First), [], "its first packet is not in flight");
    assert_eq!(p.expired(AT(1000), Round::Again), [(AT(200), 1)]);
}

/// Karn: after two transmissions, only an ACK that came too soon for the second is unambiguous.
#[test]
fn samples_are_of_what_was_sent_once_or_acked_too_soon() {
    for (answered_at, is_sample) in [(205, false), (115, true)] {
        let mut p = Probing::warm(TIMED);
        let unit = p.send(AT(0), SMALL);
        p.repeat(AT(102), unit);
        p.ack(AT(answered_at), &[unit]);
        p.state.deliver_through(unit);
        p.send(AT(300), SMALL);
        let timeout = p.deadline().expect("it runs") - AT(300);
        assert_eq!(timeout > TIMEOUT, is_sample, "answered at {answered_at} ms: {timeout:?}");
    }
}

/// The ACK may be for a bundled copy: there is a sample only if the copy cannot have been acknowledged yet.
#[test]
fn a_copied_unit_makes_a_sample_only_where_no_copy_can_have_arrived() {
    for is_certain in [false, true] {
        let mut p = Probing::warm(TIMED);
        let first = p.send(AT(0), SMALL);
        let second = p.send(AT(40), SMALL);
        p.state.outstanding.remember_bundled_copy(AT(40), first, PacketNumber(1));
        let acked = p.state.outstanding.acknowledge(first).expect("it is outstanding");
        p.probe.on_acked(AT(140), &acked, None, &mut p.state);
        if is_certain {
            p.probe.on_copied_acked(0, acked.sent_at);
        }
        p.probe.learn(AT(140), 0, true, false, None);
        p.state.deliver_through(second);
        p.send(AT(300), SMALL);
        let timeout = p.deadline().expect("it runs") - AT(300);
        assert_eq!(timeout > TIMEOUT, is_certain, "{timeout:?}");
    }
}

/// Two packets in one ACK: the ACK of the first was lost or delayed. With most so, later packets show losses.
#[test]
fn a_receiver_that_delays_acks_is_not_covered() {
    let mut p = Probing::warm(TIMED);
    for n in 0..60 {
        let units = [p.send(AT(1000 * n), SMALL), p.send(AT(1000 * n + 10), SMALL)];
        p.ack(AT(1000 * n + 110), &units);
        p.state.deliver_through(units[1]);
    }
    p.send(AT(100_000), SMALL);
    assert!(!p.probe.covers(&p.state, 0, 1), "every second ACK is missed");
    let mut p = Probing::warm(TIMED);
    p.send(AT(0), SMALL);
    assert!(p.probe.covers(&p.state, 0, 1));
}

#[test]
fn a_spurious_probe_is_a_missed_ack_unless_the_ack_came_for_the_first() {
    let mut p = Probing::warm(TIMED);
    let unit = p.send(AT(0), SMALL);
    p.repeat(AT(102), unit);
    let first = p.state.outstanding.first_transmission(unit).expect("it is watched");
    assert!(p.probe.on_spurious(AT(300), first), "as far as is known");
    p.ack(AT(110), &[unit]);
    let first = p.state.outstanding.first_transmission(unit).expect("it is watched");
    assert!(
        !p.probe.on_spurious(AT(300), first),
        "it was answered before the second can have been"
    );
}

/// The RTT of the setup determines the first timeouts, three RTTs (RFC 6298 §2.2), but at least 200 ms for the ACK delay.
#[test]
fn the_setup_makes_no_sample() {
    for (rtt, timeout) in [(100, 310), (20, 230), (150, 460)] {
        let mut p = Probing::new(TIMED);
        p.probe.on_setup_rtt(0, MS(rtt));
        p.send(AT(0), SMALL);
        assert_eq!((p.deadline(), p.probe.shortest_rtt(0)), (Some(AT(timeout)), None));
    }
    let mut p = Probing::new(TIMED);
    p.send(AT(0), SMALL);
    assert_eq!(p.deadline(), None);
}

/// The samples are discarded, while packets in flight keep their timers.
#[test]
fn another_route_is_measured_anew() {
    let mut p = Probing::warm(TIMED);
    p.send(AT(0), SMALL);
    p.probe.renew_path(AT(50), 0);
    p.probe.renew(0, &p.state);
    assert_eq!((p.deadline(), p.probe.shortest_rtt(0)), (None, None));
    p.probe.on_rtt(0, MS(20));
    p.probe.renew(0, &p.state);
    assert_eq!(p.deadline(), Some(AT(80)), "60 ms more than the round trip");
}

#[test]
fn data_that_moves_to_a_path_is_waited_for_from_when_it_is_sent() {
    let mut p = Probing::warm(TIMED);
    p.state.add_active_path();
    p.probe.enable(1);
    (0..40).for_each(|_| p.probe.on_rtt(1, MS(100)));
    p.probe.on_moved_to(1);
    let unit = p.send(AT(0), SMALL);
    p.state.outstanding.lose(unit, SendCause::Timeout);
    p.state.resend(AT(5000), 1, unit, SendCause::Timeout);
    p.probe.on_sent(AT(5000), 1, &p.state);
    p.probe.renew(1, &p.state);
    assert!(!p.probe.probes_silent(AT(5400), 1, &p.state), "it was sent at 5000 ms");
    assert_eq!(p.probe.deadline(1), AT(5000) + TIMEOUT);
}

/// On a cold path, silence of the path cannot be distinguished from a busy peer.
#[test]
fn a_cold_path_doubles_the_time_between_probes_while_it_is_silent() {
    let mut p = Probing::new(TIMED);
    p.probe.on_rtt(0, MS(20));
    let unit = p.send(AT(0), SMALL);
    for due in [80, 160, 240] {
        assert_eq!(p.deadline(), Some(AT(due)));
        p.repeat(AT(due), unit);
    }
    let mut probes = Vec::new();
    for now in 240..6000 {
        if p.probes_at(AT(now)) {
            probes.push(now);
            p.state.outstanding.lose(unit, SendCause::Probe);
            p.state.resend(AT(now), 0, unit, SendCause::Probe);
            p.probe.on_sent(AT(now), 0, &p.state);
        }
    }
    let gaps: Vec<u64> = probes.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(gaps[..6], [200, 400, 800, 1000, 1000, 1000], "{probes:?}");
}

/// How long probes are put off at a time, and in all.
const AT_A_TIME: Duration = Duration::from_millis(10);
const LONGEST: Duration = Duration::from_millis(100);

/// Probes of a path wait for as long as most connections are unanswered, up to a limit.
#[test]
fn a_probe_is_put_off_for_some_time_only() {
    let mut p = Probing::warm(TIMED);
    let unit = p.send(AT(0), SMALL);
    assert!(!p.probe.put_off(AT(101), 0, AT_A_TIME, LONGEST), "it is not due");
    let mut now = AT(0) + TIMEOUT;
    while p.probe.put_off(now, 0, AT_A_TIME, LONGEST) {
        p.probe.renew(0, &p.state);
        assert_eq!(p.expired(now, Round::First), []);
        now = p.deadline().expect("it runs");
        assert!(now <= AT(0) + TIMEOUT + LONGEST);
    }
    assert_eq!(now, AT(0) + TIMEOUT + LONGEST);
    assert_eq!(p.expired(now, Round::First), [(AT(0), 0)]);
    p.ack(AT(250), &[unit]);
    assert!(!p.probe.paths.iter().any(PathProbe::is_unanswered));
}

/// In an outage every connection keeps probing, also one that starts after the outage.
#[test]
fn a_silent_path_puts_nothing_off_and_is_not_unanswered() {
    let mut p = Probing::warm(TIMED);
    p.send(AT(0), SMALL);
    assert!(p.probe.put_off(AT(102), 0, AT_A_TIME, LONGEST));
    assert!(p.probe.paths.iter().any(PathProbe::is_unanswered));
    assert!(p.is_silent_at(AT(500)));
    assert!(!p.probe.put_off(AT(10_000), 0, AT_A_TIME, LONGEST));
    assert!(!p.probe.paths.iter().any(PathProbe::is_unanswered));
    let mut p = Probing::warm(TIMED);
    p.send(AT(0), SMALL);
    assert!(p.probe.put_off(AT(102), 0, AT_A_TIME, LONGEST));
    p.probe.clear();
    assert!(!p.probe.paths.iter().any(PathProbe::is_unanswered), "the end");
}

#[test]
fn the_end_leaves_nothing_to_wait_for() {
    let mut p = Probing::warm(TIMED);
    p.send(AT(0), SMALL);
    p.probe.clear();
    assert_eq!((p.deadline(), p.expired(AT(500), Round::First)), (None, vec![]));
}
