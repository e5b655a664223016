//! Streams that become thick and thin again, and streams that are singled out.

use std::sync::mpsc;

use rexmit_core::Instant;
use rexmit_core::trace::{SendCause, TraceEvent, TraceSink, Tracer};

use super::*;
use crate::MAX_GROUPS;
use crate::recovery::tests::{BASE, new_unit};

struct Crossings(mpsc::Sender<(bool, u32, f64, f64)>);

impl TraceSink for Crossings {
    fn record(&mut self, _: Instant, _: u32, event: &TraceEvent) {
        if let &TraceEvent::Thin { is_thin, in_flight, loss_rate, bound, .. } = event {
            self.0.send((is_thin, in_flight, loss_rate, bound)).expect("it is read");
        }
    }
}

#[test]
fn each_change_of_thinness_is_traced_once_with_its_figures() {
    let (reported, crossings) = mpsc::channel();
    let mut sink = Crossings(reported);
    let mut s = Sender::thin(ThinConfig {
        linear_timeouts: std::num::NonZeroU8::new(6),
        ..ThinConfig::OFF
    });
    let mut push = |s: &mut Sender| {
        let mut tracer = Tracer::new(s.now, 0, Some(&mut sink));
        let mut packet = s.recovery.packet(0, false, 0);
        packet.put_new(&mut s.recovery, s.now, new_unit(SMALL, 0), ());
        packet.end(&mut s.recovery, s.now, &mut tracer);
    };
    (0..6).for_each(|_| push(&mut s));
    assert!(!s.is_thin());
    s.at(100).ack(3, &[]);
    push(&mut s);
    assert!(s.is_thin());
    let reported: Vec<_> = crossings.try_iter().collect();
    assert_eq!(reported, [(true, 1, 0.0, 4.0), (false, 5, 0.0, 4.0)], "the way back had no tracer");
    assert_eq!(s.recovery.statistics().thin_changes, 2);
    assert_eq!(s.recovery.thinness(0).in_flight, 4);
}

/// M4 acts at the SACKs at which the stream is thin, and not at the one between at which it is not.
#[test]
fn a_stream_that_thins_again_has_its_mechanisms_again() {
    let mut s = Sender::with(|config| {
        config.thin = ThinConfig { first_indication: true, ..ThinConfig::OFF };
        config.max_burst = None;
    });
    (0..3).for_each(|_| s.push(&[SMALL]));
    s.at(100).ack(0, &[(2, 2)]);
    assert_eq!(s.resend(), [1], "thin");
    s.at(200).ack(3, &[]);
    (0..8).for_each(|_| s.push(&[SMALL]));
    s.at(300).ack(3, &[(5, 5)]);
    assert_eq!(s.resend(), [], "thick");
    s.at(310).ack(11, &[]);
    s.push(&[SMALL]);
    s.push(&[SMALL]);
    s.at(400).ack(11, &[(13, 13)]);
    assert_eq!(s.resend(), [12], "thin again");
}

/// Petlund 2009 §5.1: four of the packets are lost, so that six in flight are thin when there are
/// eleven, 4 / (1 - 4 / 11); and seven are not, 4 / (1 - 4 / 12).
#[test]
fn losses_let_a_stream_with_more_in_flight_be_thin() {
    let mut s = Sender::with(|config| {
        config.thin =
            ThinConfig { linear_timeouts: std::num::NonZeroU8::new(6), ..ThinConfig::OFF };
        config.max_burst = None;
    });
    (0..4).for_each(|_| s.push(&[SMALL]));
    s.expire();
    assert_eq!(s.resend(), [1, 2, 3, 4], "in one packet");
    s.at(2000).ack(4, &[]);
    let in_flight_when_thin = (1..=8).take_while(|_| {
        s.push(&[SMALL]);
        s.is_thin()
    });
    assert_eq!(in_flight_when_thin.last(), Some(6));
    let counted = s.recovery.statistics();
    assert_eq!((counted.packets, counted.packets_lost), (12, 4));
}

/// A bulk stream with 20 packets in flight, and a thin one with two.
#[test]
fn a_group_is_thin_by_its_own_packets() {
    let mut s = Sender::with(|config| config.max_burst = None);
    let thin = s.recovery.set_thin(None, ThinConfig::M1_TO_M4).expect("there is room");
    let push = |s: &mut Sender, group: u8| s.push_of(group, 0, &[SMALL]);
    push(&mut s, 0);
    push(&mut s, thin);
    (0..19).for_each(|_| push(&mut s, 0));
    assert!(s.recovery.thinness(thin).is_thin && !s.recovery.thinness(0).is_thin);
    assert_eq!(s.recovery.thinness(thin).in_flight, 1);
    // Both are reported missing once.
    s.at(100).ack(0, &[(3, 3)]);
    assert_eq!(s.resend(), [2], "only the thin stream's is retransmitted");
    assert_eq!(s.recovery.outstanding().unit(BASE + 2).map(crate::Unit::group), Some(thin));
    // The timer is the bulk stream's, whose unit is the earliest.
    assert_eq!(s.t3(), Some(1000));
    s.at(110).ack(1, &[(3, 3)]);
    assert_eq!(s.rto_ms(), 1000);
    assert_eq!(s.recovery.path_figures(0).rto.as_millis(), 300, "SRTT 100 ms, RTTVAR 50 ms");
}

/// Of a thin stream with redundancy beside a bulk stream without: whatever else is in flight stays, and
/// does not end the bundle.
#[test]
fn a_retransmission_bundles_only_data_of_its_stream_and_path_and_no_probe() {
    let mut s = Sender::with(|config| config.max_burst = None);
    s.add_confirmed_path();
    let test = crate::ThinTest::Packets(16);
    let copied = ThinConfig { bundling: Some(crate::BundlingConfig::ALL), test, ..ThinConfig::OFF };
    let thin = s.recovery.set_thin(None, copied).expect("there is room");
    for (path, group) in [(0, thin), (0, 0), (0, thin), (1, thin)] {
        s.push_of(group, path, &[SMALL]);
    }
    s.push_probe(thin, SMALL);
    for group in [0, thin] {
        s.push_of(group, 0, &[SMALL]);
    }
    s.recovery.declare_lost(BASE + 1, SendCause::FastRetransmit, &mut Tracer::off());
    assert_eq!(s.resend_bundled(), [vec![1], vec![3, 7]]);
}

/// Mechanisms that are switched on or off count at once, for a timer that runs, too.
#[test]
fn mechanisms_change_at_run_time() {
    let mut s = Sender::measured(|_| ());
    s.at(200).push(&[SMALL]);
    assert_eq!(s.t3(), Some(1200));
    s.set_thin(ThinConfig::M1_TO_M4);
    assert_eq!(s.t3(), Some(500));
    s.set_thin(ThinConfig::OFF);
    assert_eq!(s.t3(), Some(1200));
}

#[test]
fn groups_are_limited() {
    let mut s = Sender::new();
    let added = (0..100).filter(|_| s.recovery.set_thin(None, ThinConfig::OFF).is_ok()).count();
    assert_eq!(added, MAX_GROUPS - 1, "group 0 is there");
}
