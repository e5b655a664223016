//! The profiles `tcp-interactive` and `tcp-interactive-redundant`, packet by packet: the probe timer with peers that
//! delay ACKs, and copies in segments of their own.

use std::num::NonZeroU16;

use rexmit_recovery::{DelayedCopyConfig, RecoveryStatistics, RetransmissionCopies, ThinConfig};

use super::redundant::run_to;
use super::script::*;
use super::*;

/// A connection whose first RTT sample was 100 ms, so that the margin of the probe timer is 60 ms at first. It returns
/// at 200 ms.
fn with_profile(name: &str) -> Script {
    changed(name, |_| ())
}

fn changed(name: &str, change: impl FnOnce(&mut RecoveryConfig)) -> Script {
    let mut recovery = RecoveryConfig::tcp_profile(name).expect("it is listed");
    change(&mut recovery);
    let mut s = Script::established_with(ConnectionConfig { recovery, ..plain() }, SYN);
    s.send(100).expect("P. 1:101(100) ack 1");
    s.at(100).peer(". 1:1(0) ack 101").at(200);
    s
}

fn recovery(s: &Script) -> RecoveryStatistics {
    s.end.connection.statistics().recovery
}

/// A segment is sent at 200 ms, again at 360 ms, and once more a millisecond later.
fn lost_and_doubled() -> Script {
    let mut s = with_profile("tcp-interactive-redundant");
    s.send(100).expect("P. 101:201(100) ack 1");
    s.at(360).expect("P. 101:201(100) ack 1");
    s.at(361).expect("P. 101:201(100) ack 1");
    s
}

/// The peer's SYN-ACK is lost. The next one echoes the timestamp of the first SYN, as Linux does, and arrives 100 ms
/// after the second SYN.
#[test]
fn after_a_lost_syn_ack_the_first_data_waits_for_three_round_trips_and_not_for_three_times_the_outage()
 {
    let recovery = RecoveryConfig::tcp_interactive();
    let mut s = Script::client(ConnectionConfig { recovery, timestamps: true, ..plain() });
    s.expect("S 0:0(0) <ts 0:0>");
    s.at(250).expect("S 0:0(0) <ts 250:0>");
    s.at(350).peer("S. 0:0(0) ack 1 <mss 1000,sackOK,ts 1:0>").expect(". 1:1(0) ack 1 <ts 350:1>");
    s.send(100).expect("P. 1:101(100) ack 1 <ts 350:1>");
    s.at(660).expect("P. 1:101(100) ack 1 <ts 660:1>");
    s.at(970).expect("P. 1:101(100) ack 1 <ts 970:1>");
    s.at(1070).peer(". 1:1(0) ack 101 <ts 2:970>");
    assert_eq!(s.end.connection.statistics().recovery.retransmitted.total(), 2);
}

#[test]
fn a_syn_is_repeated_after_a_quarter_of_a_second_and_for_as_long_as_others() {
    let recovery = RecoveryConfig::tcp_interactive();
    let mut s = Script::client(ConnectionConfig { recovery, max_syn_retransmits: 2, ..plain() });
    s.expect("S 0:0(0)");
    for ms in [250, 750, 1750, 3750] {
        s.at(ms).expect("S 0:0(0)");
    }
    s.at(7749);
    assert!(!s.end.connection.is_over());
    s.at(7750);
    assert!(s.end.connection.is_over());
}

/// A copy was planned when the last acknowledgement arrived. In an earlier version its timer stayed due in FIN-WAIT-2,
/// and `handle_timeout` of the endpoint never returned.
#[test]
fn a_planned_copy_keeps_no_timer_due_once_the_fin_is_acknowledged() {
    let mut s = with_profile("tcp-interactive-redundant");
    s.send(100).finish().expect("FP. 101:201(100) ack 1");
    s.at(360).expect("FP. 101:201(100) ack 1");
    s.peer(". 1:1(0) ack 202");
    assert_eq!(s.state(), State::FinWait2);
    let due = s.end.connection.next_timeout().expect("the copy is planned");
    s.end.call(due, Connection::on_timeout);
    assert!(
        s.end.connection.next_timeout().is_none_or(|next| next > due),
        "a timer that stays due"
    );
    s.expect_silence();
}

#[test]
fn a_lost_segment_is_repeated_after_the_time_of_an_answer_and_so_is_its_copy() {
    let mut s = with_profile("tcp-interactive");
    s.send(100).expect("P. 101:201(100) ack 1");
    for ms in [360, 520, 680] {
        s.at(ms).expect("P. 101:201(100) ack 1");
    }
    s.at(780).peer(". 1:1(0) ack 201").at(5000);
    let reported = recovery(&s);
    assert_eq!((reported.retransmitted.probe, reported.retransmitted.total()), (3, 3));
    assert_eq!((reported.timeouts, reported.fast_recoveries, reported.delayed_copies), (0, 1, 0));
}

#[test]
fn a_redundant_retransmission_is_sent_twice_and_timed_from_the_second() {
    let mut s = lost_and_doubled();
    s.at(521).expect("P. 101:201(100) ack 1");
    s.at(522).expect("P. 101:201(100) ack 1");
    s.at(622).peer(". 1:1(0) ack 201").at(5000);
    let reported = recovery(&s);
    assert_eq!((reported.retransmitted.probe, reported.retransmitted.redundant), (2, 2));
    assert_eq!((reported.delayed_copies, reported.redundant_bytes, reported.timeouts), (2, 200, 0));
}

#[test]
fn a_copy_of_acknowledged_data_is_not_sent() {
    for (ack, copies) in [(". 1:1(0) ack 201", 0), (". 1:1(0) ack 101", 1)] {
        let mut s = with_profile("tcp-interactive-redundant");
        s.send(100).expect("P. 101:201(100) ack 1");
        s.at(360).expect("P. 101:201(100) ack 1").peer(ack);
        if copies > 0 {
            s.at(361).expect("P. 101:201(100) ack 1");
        }
        s.at(400).peer(". 1:1(0) ack 201").at(5000);
        assert_eq!(recovery(&s).delayed_copies, copies);
    }
}

#[test]
fn each_duplicate_report_is_evaluated_separately() {
    // The segment of 200 ms was lost, and both copies arrived.
    let mut s = lost_and_doubled();
    s.at(460).peer(". 1:1(0) ack 201").at(461).peer(". 1:1(0) ack 201 <sack 101:201>");
    let reported = recovery(&s);
    assert_eq!(
        (reported.spurious.total(), reported.spurious_events.unexplained_duplicates),
        (0, 0)
    );
    // The original had arrived as well: the retransmission was spurious.
    s.at(462).peer(". 1:1(0) ack 201 <sack 101:201>");
    let reported = recovery(&s);
    assert_eq!((reported.spurious.probe, reported.spurious.total()), (1, 1));
    assert_eq!(reported.spurious_events.unexplained_duplicates, 0);
    // More duplicates than were sent: the network duplicates packets.
    s.at(463).peer(". 1:1(0) ack 201 <sack 101:201>");
    let reported = recovery(&s);
    assert_eq!(
        (reported.spurious.total(), reported.spurious_events.unexplained_duplicates),
        (1, 1)
    );
}

/// Eight segments, of which two are lost.
fn two_lost(len: u64) -> Script {
    let mut s = with_profile("tcp-interactive-redundant");
    s.end
        .connection
        .set_thin(copies(SPACED.of_retransmissions(Some(RetransmissionCopies::ONE))))
        .unwrap();
    for n in 0..8 {
        let (start, end) = (101 + n * len, 101 + (n + 1) * len);
        s.send(len).expect(&format!("P. {start}:{end}({len}) ack 1"));
    }
    s.at(300).peer(&format!(". 1:1(0) ack 101 <sack {}:{}>", 101 + 2 * len, 101 + 8 * len));
    s
}

#[test]
fn copies_of_segments_that_follow_each_other_share_one_if_they_fit() {
    let mut s = two_lost(500);
    for ms in [360, 361] {
        s.at(ms).expect(". 101:1101(1000) ack 1");
    }
    s.at(430).peer(". 1:1(0) ack 4101");
    assert_eq!((recovery(&s).delayed_copies, recovery(&s).packets), (2, 1 + 8 + 2));
    let mut s = two_lost(501);
    for ms in [360, 361] {
        s.at(ms).expect(". 101:602(501) ack 1").expect(". 602:1103(501) ack 1");
    }
    s.at(430).peer(". 1:1(0) ack 4109");
    assert_eq!((recovery(&s).delayed_copies, recovery(&s).packets), (2, 1 + 8 + 4));
}

#[test]
fn only_the_unacknowledged_part_of_a_segment_is_copied() {
    let mut s = with_profile("tcp-interactive-redundant");
    s.send(100).expect("P. 101:201(100) ack 1");
    s.at(360).expect("P. 101:201(100) ack 1").peer(". 1:1(0) ack 141");
    s.at(361).expect("P. 141:201(60) ack 1");
    s.at(460).peer(". 1:1(0) ack 201");
    assert!(s.end.connection.out.is_empty());
}

#[test]
fn the_end_of_the_stream_is_copied_with_the_last_data() {
    let mut s = with_profile("tcp-interactive-redundant");
    s.send(100).finish().expect("FP. 101:201(100) ack 1");
    s.at(360).expect("FP. 101:201(100) ack 1");
    s.at(361).expect("FP. 101:201(100) ack 1");
    s.at(460).peer(". 1:1(0) ack 202");
    assert_eq!(s.state(), State::FinWait2);
}

/// The peer shrinks its window: data beyond it is sent by probes only.
#[test]
fn a_copy_beyond_the_window_waits_for_it() {
    let mut s = with_profile("tcp-interactive-redundant");
    s.send(100).expect("P. 101:201(100) ack 1");
    s.at(360).expect("P. 101:201(100) ack 1").peer(". 1:1(0) ack 101 win 0");
    s.at(370).peer(". 1:1(0) ack 101 win 1000").expect("P. 101:201(100) ack 1");
    s.at(460).peer(". 1:1(0) ack 201");
    assert_eq!(recovery(&s).delayed_copies, 1);
}

const SPACED: DelayedCopyConfig = DelayedCopyConfig::OFF;

/// `tcp-interactive` with only these copies.
fn copies(delayed_copies: DelayedCopyConfig) -> ThinConfig {
    let interactive = RecoveryConfig::tcp_profile("tcp-interactive").expect("it is listed").thin;
    interactive.delayed_copies(delayed_copies)
}

#[test]
fn the_last_segment_has_a_copy_if_none_follows_in_time() {
    let mut s = with_profile("tcp-interactive");
    let after = Duration::from_millis(30);
    let last = SPACED.of_last_after(Some(after));
    s.end.connection.set_thin(copies(last)).unwrap();
    s.send(100).expect("P. 101:201(100) ack 1");
    s.at(220).send(100).expect("P. 201:301(100) ack 1");
    s.at(250).expect("P. 201:301(100) ack 1");
    s.at(350).peer(". 1:1(0) ack 301 <sack 201:301>").at(5000);
    let reported = recovery(&s);
    assert_eq!(
        (reported.delayed_copies, reported.retransmitted.total(), reported.spurious.total()),
        (1, 0, 0)
    );
}

#[test]
fn the_budget_limits_copies_in_segments_of_their_own() {
    let mut s = changed("tcp-interactive-redundant", |recovery| {
        recovery.thin.copy_budget.packets_percent = NonZeroU16::new(1);
    });
    s.send(100).expect("P. 101:201(100) ack 1");
    s.at(360).expect("P. 101:201(100) ack 1");
    s.at(520).expect("P. 101:201(100) ack 1");
    s.at(620).peer(". 1:1(0) ack 201");
    assert_eq!((recovery(&s).delayed_copies, recovery(&s).copies_denied), (0, 2));
}

/// Messages at constant intervals to a peer that delays ACKs. No message and no ACK is lost.
struct Delayed {
    pair: Pair,
    interval: Duration,
}

impl Delayed {
    fn new(interval_ms: u64, ack_delay_ms: u64, timestamps: bool) -> Self {
        Self::of("tcp-interactive", (interval_ms, ack_delay_ms), timestamps)
    }

    fn of(profile: &str, (interval_ms, ack_delay_ms): (u64, u64), timestamps: bool) -> Self {
        let recovery = RecoveryConfig::tcp_profile(profile).expect("it is listed");
        let ours = ConnectionConfig { recovery, timestamps, ..config() };
        let pair = Pair::established(ours, Self::theirs(ack_delay_ms));
        Self { pair, interval: Duration::from_millis(interval_ms) }
    }

    fn theirs(ack_delay_ms: u64) -> ConnectionConfig {
        ConnectionConfig { ack_delay: Duration::from_millis(ack_delay_ms), ..config() }
    }

    fn change_delay(&mut self, ack_delay_ms: u64) {
        self.pair.b.connection.config = Arc::new(Self::theirs(ack_delay_ms));
    }

    fn repeats(&self) -> u64 {
        self.pair.a.connection.statistics().recovery.retransmitted.total()
    }

    fn send(&mut self, count: u64, mut fate: impl FnMut(&mut Rng, &[u8]) -> Fate) {
        for _ in 0..count {
            let next = self.pair.now + self.interval;
            self.pair.a.send(self.pair.now, &[0; 100]);
            run_to(&mut self.pair, next, &mut fate);
        }
    }

    /// Sends `count` messages; returns the number of retransmissions.
    fn repeats_of(&mut self, count: u64) -> u64 {
        let before = self.repeats();
        self.send(count, |_, _| Fate::Deliver);
        self.repeats() - before
    }

    /// The time to the retransmission of a lost message, to a millisecond.
    fn time_to_repeat(&mut self) -> u64 {
        let (before, sent_at) = (self.repeats(), self.pair.now);
        self.pair.a.send(sent_at, &[0; 100]);
        self.pair.a.drain(sent_at, |_| Fate::Lose);
        while self.repeats() == before {
            let next = self.pair.now + Duration::from_millis(1);
            run_to(&mut self.pair, next, |_, _| Fate::Deliver);
        }
        (self.pair.now - sent_at).as_millis() as u64
    }
}

/// The RTT of the network is 20 ms; only the handshake measures it, because the peer delays the ACKs of data.
#[test]
fn a_peer_that_delays_acknowledgements_is_known_soon_and_answers_before_the_timer_from_then_on() {
    for (interval_ms, ack_delay_ms, most) in [
        (250, 40, 0),
        // The lower bound of M1 for the RTO, 200 ms, is shorter than the ACK delay and the RTT.
        (250, 200, 1),
        (100, 200, 6),
        (50, 200, 4),
        (15, 40, 5),
        (15, 200, 5),
        (5, 200, 2),
    ] {
        for timestamps in [false, true] {
            let mut delayed = Delayed::new(interval_ms, ack_delay_ms, timestamps);
            let case = format!("every {interval_ms} ms, {ack_delay_ms} ms late, {timestamps}");
            let repeats = delayed.repeats_of(100);
            assert!(repeats <= most, "{repeats} at first, {case}");
            assert_eq!(delayed.repeats_of(1000), 0, "{case}");
        }
    }
}

/// Linux delays ACKs once its application sends data of its own.
#[test]
fn a_peer_that_begins_to_delay_acknowledgements_is_known_soon() {
    for (interval_ms, timestamps) in [(250, false), (250, true), (50, false), (50, true)] {
        let mut delayed = Delayed::new(interval_ms, 0, timestamps);
        assert_eq!(delayed.repeats_of(300), 0);
        delayed.change_delay(40);
        let repeats = delayed.repeats_of(100);
        assert!((1..=20).contains(&repeats), "{repeats}");
        assert_eq!(delayed.repeats_of(1000), 0, "every {interval_ms} ms, {timestamps}");
    }
}

/// One ACK in ten is lost: the time until a later ACK, or until a duplicate report, is not an RTT sample.
#[test]
fn lost_acknowledgements_are_not_waited_for() {
    let is_ack = |packet: &[u8]| packet.len() < 100;
    for (interval_ms, ack_delay_ms, timestamps, longest_ms) in [
        (250, 0, true, 20),
        (250, 0, false, 20),
        (250, 40, true, 60),
        (250, 40, false, 60),
        // With every second segment, if no acknowledgement is lost.
        (15, 40, true, 35),
        (50, 200, true, 70),
    ] {
        let mut delayed = Delayed::new(interval_ms, ack_delay_ms, timestamps);
        delayed.send(600, |rng, packet| {
            if is_ack(packet) && rng.chance(0.1) { Fate::Lose } else { Fate::Deliver }
        });
        delayed.send(2, |_, _| Fate::Deliver);
        let ms = delayed.time_to_repeat();
        let case = format!("every {interval_ms} ms, {ack_delay_ms} ms late, {timestamps}");
        assert!((longest_ms + 1..=longest_ms + 4).contains(&ms), "{ms} ms, {case}");
    }
}

/// The ACK of a duplicated retransmission is not delayed, so it arrives earlier than any ACK before. It must not count
/// as a late ACK of the original.
#[test]
fn an_early_ack_of_a_retransmission_is_not_mistaken_for_a_late_one_of_the_original() {
    for timestamps in [false, true] {
        let mut delayed = Delayed::of("tcp-interactive-redundant", (250, 40), timestamps);
        delayed.send(20, |_, _| Fate::Deliver);
        delayed.send(600, |rng, packet| {
            if packet.len() > 100 && rng.chance(0.1) { Fate::Lose } else { Fate::Deliver }
        });
        delayed.send(2, |_, _| Fate::Deliver);
        let ms = delayed.time_to_repeat();
        assert!((61..=64).contains(&ms), "{ms} ms, {timestamps}");
    }
}
