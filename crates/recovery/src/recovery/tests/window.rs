//! The window round by round (RFC 9260 §7.2.1, §7.2.2).

use super::{FULL, Sender};

impl Sender {
    /// One round: fills the window, then receives a SACK for every `every` packets, and fills the window
    /// after each. Returns the window afterwards, in packets.
    fn round(&mut self, every: u64) -> u64 {
        self.fill();
        let end = self.recovery.outstanding().next_unit() - super::BASE - 1;
        let mut acked = self.recovery.outstanding().cumulative() - super::BASE;
        while acked < end {
            acked = end.min(acked + every);
            self.ack(acked, &[]);
            self.fill();
        }
        self.cwnd() / u64::from(FULL)
    }

    fn rounds(&mut self, every: u64, rounds: usize) -> Vec<u64> {
        (0..rounds).map(|_| self.round(every)).collect()
    }
}

/// RFC 9260 §7.2.1: every SACK adds a packet at most, so one per packet doubles each round.
#[test]
fn slow_start_doubles_with_a_sack_per_packet() {
    assert_eq!(Sender::bursting().rounds(1, 5), [8, 16, 32, 64, 128]);
}

/// RFC 9260 §7.2.1 with a SACK for every second packet: half as fast again.
#[test]
fn slow_start_grows_by_half_with_delayed_sacks() {
    // Rounds of 4, 6, 9, 14 packets bring 2, 3, 5, 7 SACKs.
    assert_eq!(Sender::bursting().rounds(2, 4), [6, 9, 14, 21]);
}

/// RFC 9260 §7.2.2: above the threshold one packet per round, whatever the number of SACKs. At the
/// threshold it is still slow start, whose first SACK passes it.
#[test]
fn congestion_avoidance_adds_a_packet_per_round() {
    for every in [1, 2] {
        let mut s = rested();
        s.recovery.state.paths[0].window.on_fast_retransmit(0);
        assert_eq!((s.cwnd(), s.ssthresh()), (16_500, 16_500));
        // 17 packets fill 16.5; the packets of one round make one more.
        assert_eq!(s.rounds(every, 5), [17, 18, 19, 20, 21], "a SACK for every {every}");
    }
}

/// RFC 9260 §7.2.1: an application that does not use its window does not widen it.
#[test]
fn a_window_that_is_not_used_does_not_grow() {
    let mut s = Sender::bursting();
    for unit in 1..=50 {
        s.push(&[FULL]);
        s.ack(unit, &[]);
    }
    assert_eq!(s.cwnd(), 4000);
}

/// RFC 9260 §7.2.1: the windows of the paths grow that carried the acknowledged data.
#[test]
fn growth_goes_to_the_path_that_carried_the_units() {
    let mut s = Sender::bursting();
    s.add_confirmed_path();
    for path in [0, 1] {
        for _ in 0..4 {
            s.push_over(path, &[FULL]);
        }
    }
    let outcome = s.ack(0, &[(5, 5)]);
    assert_eq!(outcome.paths, 0b10);
    assert_eq!([0, 1].map(|path| s.window(path).cwnd()), [4000, 5000]);
    let outcome = s.ack(2, &[(5, 6)]);
    assert_eq!(outcome.paths, 0b11);
    assert_eq!([0, 1].map(|path| s.window(path).cwnd()), [5000, 5000], "path 1 was not full");
}

/// An idle sender with a window of 32 packets that was full in the last round.
fn rested() -> Sender {
    let mut s = Sender::bursting();
    s.rounds(1, 3);
    let last = s.recovery.outstanding().next_unit() - super::BASE - 1;
    s.ack(last, &[]);
    s
}

/// RFC 9260 §7.2.1: once per RTO without sending, down to four packets, when sending resumes.
#[test]
fn an_idle_window_decays_by_the_rtos_that_passed() {
    let table = [(999, 33_000), (1000, 16_500), (1999, 16_500), (2000, 8250), (3000, 4125)];
    for (idle_ms, cwnd) in table.into_iter().chain([(4000, 4000), (600_000, 4000)]) {
        let mut s = rested();
        assert_eq!(s.cwnd(), 33_000);
        s.at(idle_ms).push(&[100]);
        assert_eq!(s.cwnd(), cwnd, "after {idle_ms} ms");
    }
}

/// Only unused windows decay; an empty packet that was begun does not count as sending.
#[test]
fn an_empty_packet_does_not_end_the_rest() {
    let mut s = rested();
    let packet = s.at(900).recovery.packet(0, false, 0);
    packet.end(&mut s.recovery, s.now, &mut rexmit_core::trace::Tracer::off());
    s.at(1000).push(&[100]);
    assert_eq!(s.cwnd(), 16_500);
}
