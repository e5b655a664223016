//! Windows that are coupled (resource pooling v2), in states computed by hand.

use super::fast_recovery::wide;
use super::{BASE, FULL, Sender};
use crate::{CmtConfig, Coupling, RecoveryConfig, SctpConfig};

const RTT_MS: [u64; 2] = [100, 50];

/// Two paths with round trips of 100 and 50 ms, and windows of `packets` packets of 1000 bytes; nothing is in
/// flight at 1000 ms. The first two units are acknowledged.
fn sender(packets: [u64; 2]) -> Sender {
    let mut s = Sender::with(|config| {
        config.max_burst = None;
        config.sctp.cmt = Some(CmtConfig::ON.coupling(Some(Coupling::ResourcePoolingV2)));
    });
    s.add_confirmed_path();
    s.at(1000 - RTT_MS[0]).push_over(0, &[FULL]);
    s.at(1000 - RTT_MS[1]).push_over(1, &[FULL]);
    s.at(1000).ack(2, &[]);
    for (path, packets) in (0..).zip(packets) {
        let srtt = s.timer(path).rtt().srtt().expect("it was measured");
        assert_eq!(srtt.as_millis(), RTT_MS[usize::from(path)].into());
        s.recovery.state.paths[path].window = wide(packets);
    }
    s
}

fn cwnds(s: &Sender) -> [u64; 2] {
    [0, 1].map(|path| s.window(path).cwnd())
}

/// Fills the window of `path` with units 3, 4, …, and acknowledges the first after a round trip.
fn acknowledge_one(s: &mut Sender, path: u8) {
    while s.recovery.may_send_new(path, 0) {
        s.push_over(path, &[FULL]);
    }
    s.at(1000 + RTT_MS[usize::from(path)]).ack(3, &[]);
}

/// Fills the window of `path`, and loses the first unit.
fn lose_one(s: &mut Sender, path: u8) {
    while s.recovery.may_send_new(path, 0) {
        s.push_over(path, &[FULL]);
    }
    s.at(1000 + RTT_MS[usize::from(path)]);
    for end in 4..=6 {
        s.ack(2, &[(4, end)]);
    }
    assert_eq!(s.next_lost(path), Some(BASE + 3));
}

/// Slow start: ⌈î · min(α, MTU)⌉, where 20 kB in 100 ms and 10 kB in 50 ms are half of the rate each, and
/// 30 kB and 5 kB are three quarters and one.
#[test]
fn a_window_grows_by_its_part_of_the_rate() {
    let table = [([20, 10], 0, 500), ([20, 10], 1, 500), ([30, 5], 0, 750), ([30, 5], 1, 250)];
    for (packets, path, grown) in table {
        let mut s = sender(packets);
        let before = cwnds(&s);
        acknowledge_one(&mut s, path);
        let mut want = before;
        want[usize::from(path)] += grown;
        assert_eq!(cwnds(&s), want, "{packets:?}");
    }
}

/// A loss takes d̂ = ½ / î of the window, half of the whole rate, and leaves ⌈î · 4 · MTU⌉ at least.
#[test]
fn a_loss_takes_half_of_the_whole_rate() {
    let table = [
        // d̂ is 1, so that nothing is left but the least.
        ([20, 10], 0, 2000),
        ([20, 10], 1, 2000),
        // 2/3 of 30 kB; then 2, and the least is a packet.
        ([30, 5], 0, 10_000),
        ([30, 5], 1, 1000),
        // 44 kB in 100 ms are two thirds of the rate, and three quarters of the window go.
        ([44, 11], 0, 11_000),
    ];
    for (packets, path, left) in table {
        let mut s = sender(packets);
        let mut want = cwnds(&s);
        lose_one(&mut s, path);
        want[usize::from(path)] = left;
        assert_eq!(cwnds(&s), want, "{packets:?}");
        assert_eq!(s.window(path).ssthresh(), left);
    }
}

/// After a timeout ssthresh is the same, and the window one packet.
#[test]
fn a_timeout_leaves_a_packet_and_the_threshold_of_a_loss() {
    let mut s = sender([30, 5]);
    s.push_over(0, &[FULL]);
    s.expire();
    assert_eq!((cwnds(&s), s.window(0).ssthresh()), ([1000, 5000], 10_000));
}

/// An inactive path has no share, and the remaining one behaves as in RFC 9260.
#[test]
fn a_path_that_is_alone_has_all_of_the_rate() {
    let limit = 2;
    let alone = |packets| {
        let mut s = sender(packets);
        (0..=limit).for_each(|_| _ = s.path_error(1, limit));
        s
    };
    let mut s = alone([20, 10]);
    acknowledge_one(&mut s, 0);
    assert_eq!(cwnds(&s)[0], 21_000);
    for (packets, left) in [(20, 10_000), (6, 4000)] {
        let mut s = alone([packets, 10]);
        lose_one(&mut s, 0);
        assert_eq!(cwnds(&s)[0], left);
    }
}

#[test]
fn windows_that_cannot_be_coupled_are_refused() {
    let cmt = Some(CmtConfig::ON.coupling(Some(Coupling::ResourcePoolingV2)));
    let mut config = RecoveryConfig::rfc9260().with_sctp(SctpConfig::default().cmt(cmt));
    assert_eq!(config.validate(), Ok(()));
    config.congestion = crate::CongestionControl::Cubic;
    assert!(config.validate().is_err());
}
