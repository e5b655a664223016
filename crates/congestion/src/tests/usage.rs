use super::RFC_9260;
use crate::window::Usage;
use crate::*;

#[test]
fn one_full_window_counts_for_as_many_bytes_as_it_held() {
    let mut usage = Usage::default();
    assert!(!usage.on_acked(1000, 3000, false));
    let seen = [(4000, true), (3000, false), (2000, false), (1000, false), (2000, false)]
        .map(|(flight, is_full)| usage.on_acked(1000, flight, is_full));
    assert_eq!(seen, [true, true, true, true, false]);
}

/// RFC 9260 §7.2.1: the initial window depends on the size of packets.
#[test]
fn a_window_follows_the_size_of_packets_only_if_it_was_never_reduced() {
    let window = |packet| CongestionWindow::new(RFC_9260, packet);
    let mut initial = window(1220);
    initial.resize(RFC_9260, 8952);
    assert_eq!((initial.cwnd(), initial.packet()), (window(8952).cwnd(), 8952));
    initial.resize(RFC_9260, 1220);
    assert_eq!((initial.cwnd(), initial.packet()), (window(8952).cwnd(), 1220));
    let mut reduced = window(1220);
    reduced.on_timeout(TimedOut { flight_size: 4880, is_repeated: false });
    let cwnd = reduced.cwnd();
    reduced.resize(RFC_9260, 8952);
    assert_eq!((reduced.cwnd(), reduced.packet()), (cwnd, 8952));
}
