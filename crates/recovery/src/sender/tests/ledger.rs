//! What the ledger says of packets (Petlund 2009 §5: thin streams are told by packets).

use std::sync::{Arc, Mutex};

use rexmit_core::Instant;
use rexmit_core::trace::{SendCause, TraceEvent, TraceSink, Tracer};

use super::{BASE, FULL, Sender};
use crate::{Fate, PacketNumber};

/// Packets in flight, not chunks; each with its highest unit.
#[test]
fn a_packet_counts_once_whatever_it_carries() {
    let mut s = Sender::new();
    s.push(&[100, 100, 100]);
    s.push(&[100]);
    assert_eq!(s.flight(), (2, 400));
    let listed: Vec<_> = s.recovery.ledger().in_flight(0).map(|(n, p)| (n.0, p.highest)).collect();
    assert_eq!(listed, [(0, BASE + 3), (1, BASE + 4)]);
    let statistics = s.recovery.statistics();
    assert_eq!((statistics.packets, statistics.new_units), (2, 4));
}

/// A packet is acknowledged with its highest unit.
#[test]
fn the_highest_unit_decides_when_a_packet_is_acknowledged() {
    let mut s = Sender::new();
    s.push(&[100, 100]);
    s.push(&[100]);
    s.ack(1, &[]);
    assert_eq!(s.flight(), (2, 200));
    s.ack(2, &[]);
    assert_eq!(s.flight(), (1, 100));
    s.ack(3, &[]);
    assert!(s.recovery.ledger().is_empty());
}

/// A packet with several lost units is one lost packet, and its rate is that of packets.
#[test]
fn a_lost_packet_counts_once_whatever_it_carried() {
    let mut s = Sender::bursting();
    s.push(&[100, 100, 100]);
    for _ in 0..3 {
        s.push(&[100]);
    }
    for end in [4, 5, 6] {
        s.ack(0, &[(4, end)]);
    }
    let statistics = *s.recovery.statistics();
    assert_eq!((statistics.packets, statistics.packets_lost), (4, 1));
    assert!((statistics.loss_rate() - 0.25).abs() < 1e-12);
    assert_eq!(s.resend(), [1, 2, 3]);
    assert_eq!(s.recovery.statistics().retransmitted.fast_retransmit, 3, "units");
}

/// What became of each packet is known while something older is in flight.
#[test]
fn the_fate_of_each_packet_is_known() {
    let mut s = Sender::bursting();
    s.push_full(5);
    for end in [3, 4, 5] {
        s.ack(0, &[(3, end)]);
    }
    let fate = |s: &Sender, n| s.recovery.ledger().packet(PacketNumber(n)).map(|p| p.fate);
    assert_eq!(fate(&s, 0), None, "nothing older is in flight: forgotten");
    s.push(&[FULL]);
    assert_eq!(s.resend(), [1]);
    let resent = s.recovery.ledger().packet(PacketNumber(6)).expect("it is in flight");
    assert_eq!((resent.cause, resent.fate), (SendCause::FastRetransmit, Fate::InFlight));
    s.ack(1, &[(3, 5)]);
    assert_eq!(fate(&s, 5), Some(Fate::InFlight));
    assert_eq!(fate(&s, 6), Some(Fate::Acknowledged));
}

/// The ledger is as long as what left since the oldest packet in flight, and empty at rest.
#[test]
fn the_ledger_forgets() {
    let mut s = Sender::bursting();
    for unit in 1..=1000 {
        s.push(&[FULL]);
        s.ack(unit, &[]);
        assert!(s.recovery.ledger().is_empty());
    }
    assert_eq!(s.recovery.ledger().next_number(), PacketNumber(1000));
}

/// RFC 9260 §6.2, duplicate TSNs: a repeated unit that is reported twice was repeated needlessly.
#[test]
fn a_duplicate_report_tells_a_needless_retransmission_by_its_cause() {
    let mut s = Sender::bursting();
    s.push_full(2);
    s.expire();
    s.resend();
    s.recovery.on_duplicate_report(s.now, BASE + 1, &mut Tracer::off());
    let spurious = s.recovery.statistics().spurious;
    assert_eq!((spurious.timeout, spurious.total()), (1, 1));
    // The network doubled it: there is no judgement left, nor ever was one about unit 2's copy.
    s.recovery.on_duplicate_report(s.now, BASE + 1, &mut Tracer::off());
    s.recovery.on_duplicate_report(s.now, BASE + 7, &mut Tracer::off());
    assert_eq!(s.recovery.statistics().spurious.total(), 1);
}

#[derive(Clone, Default)]
struct Events(Arc<Mutex<Vec<TraceEvent>>>);

impl TraceSink for Events {
    fn record(&mut self, _: Instant, _: u32, event: &TraceEvent) {
        self.0.lock().expect("one thread").push(event.clone());
    }
}

/// The story of one packet that was wrongly judged lost, as the trace tells it.
#[test]
fn the_trace_tells_what_became_of_a_packet() {
    let (mut s, events) = (Sender::new(), Events::default());
    s.push_full(1);
    s.at(1000);
    let mut sink = events.clone();
    let mut tracer = Tracer::new(s.now, 0, Some(&mut sink));
    s.recovery.on_timeout(0, super::TimeoutKind::Loss, &mut tracer);
    s.recovery.begin_packet(0);
    s.recovery.resend(s.now, BASE + 1);
    s.recovery.end_packet(s.now, &mut tracer);
    let ack = (BASE + 1, std::iter::empty());
    s.recovery.on_ack(s.now, ack, &mut tracer, |_| ()).expect("it was sent");
    s.recovery.on_duplicate_report(s.now, BASE + 1, &mut tracer);
    let told: Vec<_> = events.0.lock().expect("one thread").iter().filter_map(words).collect();
    assert_eq!(told, ["expired", "0 lost", "event", "1 sent", "1 acknowledged", "0 spurious"]);
}

fn words(event: &TraceEvent) -> Option<String> {
    match event {
        TraceEvent::RetransmissionTimeout { .. } => Some("expired".into()),
        TraceEvent::RetransmissionEvent { path: 0, kind: SendCause::Timeout } => {
            Some("event".into())
        }
        TraceEvent::PacketLost { packet, .. } => Some(format!("{packet} lost")),
        TraceEvent::PacketSent { packet, .. } => Some(format!("{packet} sent")),
        TraceEvent::PacketAcked { packet } => Some(format!("{packet} acknowledged")),
        TraceEvent::PacketSpurious { packet } => Some(format!("{packet} spurious")),
        _ => None,
    }
}

/// The end of an association: every unit is given back once, and nothing is left.
#[test]
fn draining_gives_everything_back_and_leaves_nothing_behind() {
    let mut s = Sender::new();
    s.push_full(4);
    s.ack(1, &[(3, 3)]);
    s.expire();
    s.resend();
    let mut count = 0;
    s.recovery.drain(|_| count += 1);
    assert_eq!((count, s.t3(), s.flight()), (3, None, (0, 0)));
    assert_eq!((s.recovery.user_bytes_in_flight(), s.recovery.has_lost()), (0, false));
    assert!(s.recovery.is_empty() && s.recovery.ledger().is_empty());
}
