//! A thin stream in one association with a stream that fills the window, with `by_stream`.

use super::super::*;
use super::recovery_timer::{TIMED, WARM};
use crate::{ThinConfig, ThinSctpConfig};

const SMALL: u32 = 100;

fn by_stream(by_stream: bool) -> ThinConfig {
    ThinConfig { sctp: ThinSctpConfig { by_stream, ..TIMED.sctp }, ..TIMED }
}

/// A sender with a group for a thin stream, and a window full of another's packets.
fn filled(thin: ThinConfig) -> (Sender, u8) {
    let mut s = Sender::warm(|config| {
        config.thin = thin;
        config.max_burst = None;
    });
    let [bulk, inputs] = [0; 2].map(|_| s.recovery.set_thin(None, thin).expect("there is room"));
    while s.recovery.may_send_new(0, bulk) && s.recovery.thinness(bulk).in_flight < 100 {
        s.push_of(bulk, 0, &[FULL]);
    }
    (s, inputs)
}

/// The stream may exceed the window, but by at most a packet, however many messages there are.
#[test]
fn a_thin_stream_does_not_wait_for_the_window_of_others() {
    let (mut s, inputs) = filled(by_stream(true));
    let full = s.recovery.outstanding().flight(0).bytes;
    let mut sent = 0;
    while s.recovery.may_send_new(0, inputs) {
        s.push_of(inputs, 0, &[SMALL]);
        sent += SMALL;
        assert!(sent < 10 * FULL, "nothing limits it");
    }
    assert!(sent > 0 && sent <= FULL + SMALL, "{sent}");
    assert!(s.recovery.outstanding().flight(0).bytes <= full + u64::from(FULL + SMALL));

    let (s, inputs) = filled(by_stream(false));
    assert!(!s.recovery.may_send_new(0, inputs), "only where the profile says so");
}

/// The window is full: the probe timer runs for the thin stream all the same.
#[test]
fn a_thin_stream_has_its_probe_timer_beside_a_full_window() {
    for (is_by_stream, due) in [(true, Some(101_500)), (false, None)] {
        let (mut s, inputs) = filled(by_stream(is_by_stream));
        // Enough packets in flight that the other stream is not thin.
        (0..20).for_each(|_| s.push_of(inputs - 1, 0, &[FULL]));
        s.push_of(inputs, 0, &[SMALL]);
        assert!(s.recovery.thinness(inputs).is_thin && !s.recovery.thinness(inputs - 1).is_thin);
        let next = s.next_us();
        assert_eq!(due == next, is_by_stream, "{next:?}");
        if is_by_stream {
            let (_, units) = s.repeat_next();
            let last = s.recovery.outstanding().next_unit() - 1 - BASE;
            assert_eq!(units.last().map(|unit| WARM + unit), Some(last), "{units:?}");
            assert_eq!(units.len(), 1, "and for no other: {units:?}");
        }
    }
}
