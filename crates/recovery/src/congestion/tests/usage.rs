use crate::congestion::*;

#[test]
fn one_full_window_counts_for_as_many_bytes_as_it_held() {
    let mut usage = Usage::default();
    assert!(!usage.on_acked(1000, 3000, false));
    let seen = [(4000, true), (3000, false), (2000, false), (1000, false), (2000, false)]
        .map(|(flight, is_full)| usage.on_acked(1000, flight, is_full));
    assert_eq!(seen, [true, true, true, true, false]);
}
