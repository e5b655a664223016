//! Packets in flight, lost, and acknowledged (Petlund 2009 §5: packets decide whether a stream is thin).

use std::sync::{Arc, Mutex, mpsc};

use rexmit_core::Instant;
use rexmit_core::trace::{SendCause, SentRun, TraceEvent, TraceSink, Tracer};

use super::{BASE, FULL, Next, Sender, TimeoutKind, ack_of, new_unit, report_of};
use crate::OpenPacket;
use crate::outstanding::{Fate, PacketNumber};

/// The flight is counted in packets, not in chunks.
#[test]
fn a_packet_counts_once_whatever_it_carries() {
    let mut s = Sender::new();
    s.push(&[100, 100, 100]);
    s.push(&[100]);
    assert_eq!(s.flight(), (2, 400));
    let listed: Vec<_> =
        s.recovery.outstanding().packets().in_flight(0).map(|(n, p)| (n.0, p.highest)).collect();
    assert_eq!(listed, [(0, BASE + 3), (1, BASE + 4)]);
    let statistics = s.recovery.statistics();
    assert_eq!((statistics.packets, statistics.new_units), (2, 4));
}

/// A packet is acknowledged with the last of its units.
#[test]
fn the_last_unit_decides_when_a_packet_is_acknowledged() {
    let mut s = Sender::new();
    s.push(&[100, 100]);
    s.push(&[100]);
    s.ack(1, &[]);
    assert_eq!(s.flight(), (2, 200));
    s.ack(2, &[]);
    assert_eq!(s.flight(), (1, 100));
    s.ack(3, &[]);
    assert!(s.recovery.outstanding().packets().len() == 0);
}

/// A packet is lost, the next one carries two units, the stream is thin, and a SACK acknowledges the higher
/// of them. Once, no packet counted as in flight then, although bytes did.
#[test]
fn a_packet_is_in_flight_as_long_as_a_lower_unit_of_it_is() {
    let mut s = Sender::new();
    s.push(&[608, 100]);
    s.at(100).ack(0, &[(2, 2)]);
    assert_eq!((s.flight(), s.t3()), ((1, 608), Some(1000)));
    s.expire();
    assert_eq!((s.flight(), s.resend()), ((0, 0), vec![1]));
    s.at(1100).ack(2, &[]);
    assert_eq!((s.flight(), s.t3()), ((0, 0), None));
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

/// A packet's fate can be looked up until no older packet is in flight.
#[test]
fn the_fate_of_each_packet_is_known() {
    let mut s = Sender::bursting();
    s.push_full(5);
    for end in [3, 4, 5] {
        s.ack(0, &[(3, end)]);
    }
    let fate =
        |s: &Sender, n| s.recovery.outstanding().packets().packet(PacketNumber(n)).map(|p| p.fate);
    assert_eq!(fate(&s, 0), None, "nothing older is in flight: forgotten");
    s.push(&[FULL]);
    assert_eq!(s.resend(), [1]);
    let cause = s.recovery.outstanding().unit(BASE + 1).map(|unit| unit.last().cause);
    assert_eq!(cause, Some(SendCause::FastRetransmit));
    assert_eq!(fate(&s, 6), Some(Fate::InFlight));
    s.ack(1, &[(3, 5)]);
    assert_eq!(fate(&s, 5), Some(Fate::InFlight));
    assert_eq!(fate(&s, 6), Some(Fate::Acknowledged));
}

/// As many packets are remembered as were sent since the oldest in flight; none at rest.
#[test]
fn the_ledger_forgets() {
    let mut s = Sender::bursting();
    for unit in 1..=1000 {
        s.push(&[FULL]);
        s.ack(unit, &[]);
        assert!(s.recovery.outstanding().packets().len() == 0);
    }
    assert_eq!(s.recovery.outstanding().packets().next_number(), PacketNumber(1000));
}

/// RFC 9260 §6.2, duplicate TSNs: a repeated unit that is reported twice was a spurious retransmission.
#[test]
fn a_duplicate_report_shows_a_spurious_retransmission_by_its_cause() {
    let mut s = Sender::bursting();
    s.push_full(2);
    s.expire();
    s.resend();
    s.report(1);
    let spurious = s.recovery.statistics().spurious;
    assert_eq!((spurious.timeout, spurious.total()), (1, 1));
    // The network doubled it: there is no judgement left, nor ever was one about unit 2's copy.
    s.report(1);
    s.report(7);
    assert_eq!(s.recovery.statistics().spurious.total(), 1);
}

#[derive(Clone, Default)]
struct Events(Arc<Mutex<Vec<TraceEvent>>>);

impl TraceSink for Events {
    fn record(&mut self, _: Instant, _: u32, event: &TraceEvent) {
        self.0.lock().expect("one thread").push(event.clone());
    }
}

impl Sender {
    /// A packet with the retransmission of a unit whose T3-rtx has expired, before it is complete.
    fn after_a_timeout(&mut self, tracer: &mut Tracer<'_>) -> OpenPacket {
        assert!(self.recovery.on_timeout(self.now, TimeoutKind::Loss, tracer).is_some());
        let mut packet = self.recovery.packet(0, false, 0);
        assert_eq!(packet.next(&self.recovery), Some(Next::Lost(BASE + 1)));
        assert!(packet.put(&mut self.recovery, self.now).is_some());
        packet
    }
}

/// The trace events of a packet that was wrongly declared lost.
#[test]
fn the_trace_shows_the_fate_of_each_packet() {
    let (mut s, events) = (Sender::new(), Events::default());
    s.push_full(1);
    s.at(1000);
    let mut sink = events.clone();
    let mut tracer = Tracer::new(s.now, 0, Some(&mut sink));
    let packet = s.after_a_timeout(&mut tracer);
    packet.end(&mut s.recovery, s.now, &mut tracer);
    for ack in [ack_of(1, &[]), report_of(1, 1)] {
        s.recovery.on_ack(s.now, ack, &mut tracer, |_| ()).expect("it was sent");
    }
    let reported: Vec<_> = events.0.lock().expect("one thread").iter().filter_map(words).collect();
    assert_eq!(reported, ["expired", "0 lost", "event", "1 sent", "1 acknowledged", "0 spurious"]);
}

/// The message of the only unit in a packet is abandoned before the packet is complete.
#[test]
fn a_packet_that_is_forgotten_before_it_is_complete_is_not_in_the_trace() {
    let (mut s, events) = (Sender::new(), Events::default());
    s.push_full(1);
    s.at(1000);
    let mut sink = events.clone();
    let mut tracer = Tracer::new(s.now, 0, Some(&mut sink));
    let packet = s.after_a_timeout(&mut tracer);
    s.recovery.abandon(crate::Abandoned::Sent(BASE + 1));
    assert!(packet.end(&mut s.recovery, s.now, &mut tracer));
    let reported: Vec<_> = events.0.lock().expect("one thread").iter().filter_map(words).collect();
    assert_eq!(reported, ["expired", "0 lost", "event"]);
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

/// The end of an association: every unit is returned once, and none remains.
#[test]
fn draining_returns_every_unit_and_resets_all_sums() {
    let mut s = Sender::new();
    s.push_full(4);
    s.ack(1, &[(3, 3)]);
    s.expire();
    s.resend();
    let mut count = 0;
    s.recovery.drain(|_| count += 1);
    assert_eq!((count, s.t3(), s.flight()), (3, None, (0, 0)));
    assert_eq!((s.recovery.outstanding().user_bytes_in_flight(), s.has_lost()), (0, false));
    assert!(s.recovery.outstanding().is_empty() && s.recovery.outstanding().packets().len() == 0);
}

struct Runs(mpsc::Sender<Vec<SentRun>>);

impl TraceSink for Runs {
    fn record(&mut self, _: Instant, _: u32, event: &TraceEvent) {
        if let TraceEvent::PacketSent { runs, .. } = event {
            self.0.send(runs.clone()).expect("it is read");
        }
    }
}

#[test]
fn the_trace_shows_exactly_which_units_a_packet_carries_and_why() {
    use SendCause::{Bundled, FastRetransmit, New, Timeout};
    let (runs, traced) = mpsc::channel();
    let mut sink = Runs(runs);
    let mut s = Sender::with(|config| {
        (config.bundle_outstanding, config.single_packet_after_timeout) = (true, false);
    });
    let mut tracer = Tracer::new(s.now, 0, Some(&mut sink));
    let mut send = |s: &mut Sender, new: usize| {
        let mut packet = s.recovery.packet(0, false, 0);
        while let Some(Next::Lost(_) | Next::Bundled(_)) = packet.next(&s.recovery) {
            assert!(packet.put(&mut s.recovery, s.now).is_some());
        }
        for _ in 0..new {
            packet.put_new(&mut s.recovery, s.now, new_unit(100, 0), ());
        }
        assert!(packet.end(&mut s.recovery, s.now, &mut tracer));
    };
    [1, 1, 2].into_iter().for_each(|new| send(&mut s, new));
    // 2 arrived; the rest is repeated in one packet, 3 and 4 once more in the next with a new one.
    s.ack(0, &[(2, 2)]);
    s.expire();
    send(&mut s, 0);
    s.recovery.declare_lost(BASE + 3, FastRetransmit, &mut Tracer::off());
    send(&mut s, 1);
    let traced: Vec<Vec<_>> = traced
        .try_iter()
        .map(|runs| {
            runs.iter().map(|run| (run.lowest - BASE, run.highest - BASE, run.cause)).collect()
        })
        .collect();
    let expected = [
        vec![(1, 1, New)],
        vec![(2, 2, New)],
        vec![(3, 4, New)],
        vec![(1, 1, Timeout), (3, 4, Timeout)],
        vec![(3, 3, FastRetransmit), (4, 4, Bundled), (5, 5, New)],
    ];
    assert_eq!(traced, expected);
}
