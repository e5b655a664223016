//! Copies and probes that are held back while the path has a queue.

use super::*;
use crate::ProbeConfig;
use crate::recovery::tests::LossRecovery;

const LIMIT: Duration = Duration::from_millis(25);
const YIELDING: ThinConfig = ThinConfig {
    probe_timer: Some(ProbeConfig::DEFAULT),
    bundling: crate::state::tests::bundling(9),
    queue_delay_limit: Some(LIMIT),
    ..ThinConfig::OFF
};

impl Sender {
    /// Sends `count` units from `unit` on, one every 200 ms, each acknowledged after `ms`.
    fn answered(&mut self, unit: u64, count: u64, ms: u64) -> &mut Self {
        for unit in unit..unit + count {
            let then = self.now + Duration::from_millis(200);
            self.push(&[SMALL]);
            self.now += Duration::from_millis(ms);
            self.recovery.begin_opportunity();
            self.ack(unit, &[]);
            self.now = then;
        }
        self.recovery.begin_opportunity();
        self
    }
}

/// The units bundled as copies with a new one, with two in flight; all are acknowledged after `ms`.
fn copied(s: &mut Sender, unit: u64, ms: u64) -> usize {
    s.push(&[SMALL]);
    s.push(&[SMALL]);
    let copies = s.push_with_copies(false).len();
    s.now += Duration::from_millis(ms);
    s.recovery.begin_opportunity();
    s.ack(unit + 2, &[]);
    copies
}

#[test]
fn copies_beside_new_data_stop_for_a_queue_and_come_back() {
    for (queue_delay_limit, beside) in [(Some(LIMIT), 0), (None, 2)] {
        let mut s =
            Sender::warm(|config| config.thin = ThinConfig { queue_delay_limit, ..YIELDING });
        assert_eq!(copied(&mut s, 41, 100), 2);
        s.answered(44, 40, 140);
        assert_eq!(copied(&mut s, 84, 140), beside, "{queue_delay_limit:?}");
        s.answered(87, 40, 100);
        assert_eq!(copied(&mut s, 127, 100), 2);
    }
}

/// Of 100 units of 100 bytes, a queue of 10 ms leaves three fifths.
#[test]
fn the_budget_falls_with_the_queue() {
    let earned = |ms| {
        let copy_budget = crate::state::tests::budget(0, 100);
        let mut s = Sender::warm(|config| config.thin = ThinConfig { copy_budget, ..YIELDING });
        s.answered(41, 80, ms);
        let before = s.recovery.redundancy.spending_left(copy_budget);
        s.answered(121, 100, ms);
        let LossRecovery { redundancy, state, .. } = &s.recovery;
        let earned = redundancy.spending_left(copy_budget) - before;
        (earned, redundancy.bytes_to_copy(0, 0, state) > 0)
    };
    assert_eq!(earned(100), (10_000, true));
    assert!((5900..6100).contains(&earned(110).0), "{:?}", earned(110));
    assert_eq!(earned(126), (0, false));
}

/// New data waits for an ACK; data in flight is covered by T3-rtx and the probe timer.
#[test]
fn after_a_loss_beside_a_queue_one_packet_is_in_flight_until_something_is_acknowledged() {
    for (queue_ms, waits) in [(40, true), (0, false)] {
        let mut s = Sender::warm(|config| config.thin = YIELDING);
        s.answered(41, 40, 100 + queue_ms);
        s.push(&[SMALL]);
        assert!(s.has_room_for_new(0));
        let at = s.recovery.next_timeout().unwrap();
        s.now = at;
        s.recovery.begin_opportunity();
        s.timers();
        assert_eq!(s.resend(), [81]);
        assert_eq!(s.has_room_for_new(0), !waits);
        s.now += Duration::from_millis(100);
        s.recovery.begin_opportunity();
        s.ack(81, &[]);
        assert!(s.has_room_for_new(0));
    }
}

#[test]
fn retransmissions_beside_a_queue_back_off_from_the_first() {
    for (queue_ms, factor) in [(40, 2), (0, 1)] {
        let mut s = Sender::warm(|config| config.thin = YIELDING);
        s.answered(41, 40, 100 + queue_ms);
        s.push(&[SMALL]);
        let began = s.now;
        let mut waits = Vec::new();
        let mut last = began;
        for _ in 0..2 {
            let at = s.recovery.next_timeout().unwrap();
            waits.push(at - last);
            last = at;
            s.now = at;
            s.recovery.begin_opportunity();
            s.timers();
            assert_eq!(s.resend(), [81]);
        }
        assert_eq!(waits[1], factor * waits[0], "{queue_ms} ms");
    }
}

#[test]
fn without_the_field_nothing_is_measured() {
    let mut s = Sender::warm(|config| {
        config.thin = ThinConfig { queue_delay_limit: None, ..YIELDING };
    });
    s.answered(41, 40, 140);
    assert!(s.recovery.state.paths[0].queue.is_none());
}
