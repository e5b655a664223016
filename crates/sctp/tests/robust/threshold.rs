//! The loss threshold that adapts to reordering (RR-SCTP §4.3), on the wire.

use super::*;

impl Script {
    /// The chunk after `last` is overtaken by `positions` others, each with a SACK, before it arrives; eight more
    /// chunks follow. Returns the highest chunk, and whether the late one was retransmitted.
    fn delay(&mut self, last: u32, positions: u16) -> (u32, bool) {
        let late = last + 1;
        self.offer(8);
        let mut sent = self.take_all();
        for position in 1..=positions {
            let ms = self.now_ms() + 1;
            self.at(ms).peer_sacks(last, &[(2, 1 + position)], &[]);
            sent.extend(self.take_all());
        }
        let is_repeated = sent.iter().filter(|&&n| n == late).count() > 1;
        let ms = self.now_ms() + 1;
        self.at(ms).peer_sacks(last + 8, &[], &[late][..usize::from(is_repeated)]);
        assert!(self.take_all().is_empty());
        (last + 8, is_repeated)
    }

    fn missing_reports(&self) -> u16 {
        self.statistics().paths[0].reordering.missing_reports
    }

    /// Grows the window to 16 packets, so that half of it is eight; returns the highest chunk.
    fn grown(profile: &str) -> (Self, u32) {
        let mut s = Self::with_profile(profile);
        let last = 30;
        s.offer(30);
        s.take_all();
        for n in 1..=last {
            s.sacked_at(300 + u64::from(n), n, &[]);
        }
        assert!(s.cwnd() > 16 * PMDCS, "{}", s.cwnd());
        (s, last)
    }
}

#[test]
fn a_chunk_delayed_by_four_is_sent_again_once_and_then_waited_for() {
    let (mut s, last) = Script::grown("rr");
    let (last, is_repeated) = s.delay(last, 4);
    assert!(is_repeated);
    assert_eq!(s.missing_reports(), 5);
    let (last, is_repeated) = s.delay(last, 4);
    assert!(!is_repeated, "five are waited for");
    let (_, is_repeated) = s.delay(last, 6);
    assert!(is_repeated);
    assert_eq!((s.missing_reports(), s.spurious_events().undone), (7, 2));
}

#[test]
fn the_standard_sends_it_again_each_time() {
    let (mut s, last) = Script::grown("rfc9260");
    let (last, is_repeated) = s.delay(last, 4);
    assert!(is_repeated);
    assert!(s.delay(last, 4).1);
    assert_eq!(s.missing_reports(), 3);
}

/// A chunk is declared lost when all later ones are acknowledged, although fewer missing reports than the threshold are
/// possible then; no timeout is needed.
#[test]
fn a_loss_at_the_end_is_repeated_with_the_last_report() {
    let (mut s, last) = Script::grown("rr");
    let (last, _) = s.delay(last, 6);
    s.offer(5);
    assert_eq!(s.take_all().len(), 5);
    for position in 1..=4 {
        let ms = s.now_ms() + 1;
        s.at(ms).peer_sacks(last, &[(2, 1 + position)], &[]);
        let sent = s.take_all();
        assert_eq!(sent, if position < 4 { vec![] } else { vec![last + 1] });
    }
}

/// M4 with an adaptive threshold: if reordering is common, the first missing report does not declare a loss.
#[test]
fn a_thin_stream_learns_to_wait_for_a_second_report() {
    let mut s = Script::with_profile("thin-rr");
    let mut repeated = Vec::new();
    for round in 0..3 {
        let last = 2 * round;
        s.send(b"a");
        let mut sent = s.take_all();
        s.send(b"b");
        sent.extend(s.take_all());
        let ms = s.now_ms() + 100;
        s.at(ms).peer_sacks(last, &[(2, 2)], &[]);
        sent.extend(s.take_all());
        let is_repeated = sent.len() > 2;
        s.at(ms + 1).peer_sacks(last + 2, &[], &[last + 1][..usize::from(is_repeated)]);
        repeated.push(is_repeated);
        s.take_all();
    }
    assert_eq!(repeated, [true, false, false]);
}
