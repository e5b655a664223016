//! M3: linear timeouts.

use super::*;

fn expiries(s: &mut Sender, count: usize) -> Vec<u64> {
    let expire = |_| {
        let ms = s.expire();
        assert_eq!(s.resend(), [1]);
        ms / 1000
    };
    (0..count).map(expire).collect()
}

/// The closed form, RTO 1 s: the n-th retransmission is sent at n · RTO while n <= 7, since six timeouts do
/// not double the next one, and at (7 + 2^(n-6) - 2) · RTO beyond.
#[test]
fn m3_keeps_the_timeout_for_six_expiries_and_doubles_then() {
    let mut s = Sender::thin(ThinConfig {
        linear_timeouts: std::num::NonZeroU8::new(6),
        ..ThinConfig::OFF
    });
    s.push(&[SMALL]);
    let closed = |n: u64| if n <= 7 { n } else { 5 + (1 << (n - 6)) };
    let want: Vec<u64> = (1..=11).map(closed).collect();
    assert_eq!(want, [1, 2, 3, 4, 5, 6, 7, 9, 13, 21, 37]);
    assert_eq!(expiries(&mut s, 11), want);
}

#[test]
fn m3_begins_again_with_another_unit() {
    let mut s = Sender::thin(ThinConfig {
        linear_timeouts: std::num::NonZeroU8::new(2),
        ..ThinConfig::OFF
    });
    s.push(&[SMALL]);
    assert_eq!(expiries(&mut s, 4), [1, 2, 3, 5]);
    // An ambiguous acknowledgement leaves the backoff: 4 s.
    s.at(5100).ack(1, &[]);
    s.push(&[SMALL]);
    let expiries: Vec<_> = (0..4)
        .map(|_| {
            let ms = s.expire();
            assert_eq!(s.resend(), [2]);
            ms
        })
        .collect();
    assert_eq!(expiries, [9100, 13_100, 17_100, 25_100]);
}

/// Five packets in flight when the timer expires: thick, so it doubles.
#[test]
fn m3_does_not_act_on_a_thick_stream() {
    for (packets, second) in [(4, 2000), (5, 3000)] {
        let mut s = Sender::thin(ThinConfig {
            linear_timeouts: std::num::NonZeroU8::new(6),
            ..ThinConfig::OFF
        });
        (0..packets).for_each(|_| s.push(&[FULL]));
        assert_eq!(s.expire(), 1000);
        assert_eq!(s.resend(), [1]);
        assert_eq!(s.t3(), Some(second), "{packets} packets");
    }
}
