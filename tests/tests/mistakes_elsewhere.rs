//! Bugs of other implementations, each with a run that would show it here.

use std::time::Duration;

use rexmit_core::{Instant, Machine, Seed};
use rexmit_netsim::network::PointToPoint;
use rexmit_netsim::path::{Delay, Loss, PathConfig};
use rexmit_sctp::recovery::RecoveryConfig;
use rexmit_sctp::wire::{kind, write_checksum};
use rexmit_sctp::{AssociationStatistics, Endpoint, EndpointConfig, Reliability};
use rexmit_tests::plan::{Burst, Op, Plan, Step};
use rexmit_tests::{Outcome, run};

fn sender(outcome: &Outcome) -> &AssociationStatistics {
    statistics_of(outcome, 0)
}

fn statistics_of(outcome: &Outcome, host: usize) -> &AssociationStatistics {
    let (_, statistics) =
        outcome.statistics.iter().find(|(of, _)| *of == host).expect("still open");
    statistics
}

/// pion/webrtc#3356: fast recovery outlived the timeout, and the window stayed at one packet.
#[test]
fn the_window_grows_again_when_a_timeout_ends_fast_recovery() {
    let mut plan = Plan::by_hand(vec![
        Step::new(0, 0, Op::Connect),
        Step::new(1000, 0, Op::Send(Burst::new(0, 1000, 1000))),
    ]);
    // One packet, so that fast recovery begins; then its retransmission and much else.
    let packets = std::iter::once(20).chain(24..60).collect();
    plan.paths[0].1[0].loss = Loss { packets, ..Loss::default() };
    let outcome = run(&plan, false, false);
    let statistics = sender(&outcome);
    assert_eq!(outcome.counts, (1000, 1000, 0));
    assert!(statistics.recovery.fast_recoveries > 0, "{statistics:?}");
    assert!(statistics.recovery.timeouts > 0, "{statistics:?}");
    assert!(statistics.paths[0].cwnd > 10_000, "{statistics:?}");
}

/// pion/sctp#498: T3-rtx was not rearmed after a probe.
#[test]
fn a_window_is_probed_until_it_opens_though_every_probe_is_lost() {
    let mut plan = Plan::by_hand(vec![
        Step::new(0, 0, Op::Connect),
        Step::new(100, 1, Op::Pause),
        Step::new(1000, 0, Op::Send(Burst::new(0, 12, 1024))),
        Step::new(61_000, 1, Op::Resume),
    ]);
    for host in 0..2 {
        let association = plan.association_mut(host);
        association.buffers.receive_bytes = 4096;
        association.messages.max_bytes = 4096;
        association.failure.heartbeat_interval = None;
    }
    let open = plan.paths[0].1.clone();
    let dark = open
        .clone()
        .map(|path| PathConfig { loss: Loss { uniform: 1.0, ..Loss::default() }, ..path });
    plan.paths.push((Instant::from_millis(1500), dark));
    plan.paths.push((Instant::from_millis(62_000), open));
    plan.calm_at = Instant::from_millis(200_000);
    assert_eq!(run(&plan, false, false).counts, (12, 12, 0));
}

/// pion/sctp#505: FORWARD-TSN and SACK answered each other for ever.
#[test]
fn nothing_is_reported_after_a_skipped_message() {
    let burst = Burst { reliability: Reliability::MaxRetransmissions(0), ..Burst::new(0, 20, 500) };
    let mut plan =
        Plan::by_hand(vec![Step::new(0, 0, Op::Connect), Step::new(1000, 0, Op::Send(burst))]);
    for host in 0..2 {
        plan.association_mut(host).failure.heartbeat_interval = None;
    }
    // The last of them, so that nothing follows.
    plan.paths[0].1[0].loss = Loss { packets: (8..12).collect(), ..Loss::default() };
    let outcome = run(&plan, false, false);
    assert!(outcome.counts.2 > 0, "none was given up");
    let forward = outcome.chunks.get(&kind::FORWARD_TSN).copied().unwrap_or(0);
    assert!((1..10).contains(&forward), "{forward} FORWARD-TSNs");
    assert_eq!(outcome.quiet_packets, 0);
}

/// open5gs#895: the peer delayed its acknowledgements for longer than RTO.Min, and everything was sent twice.
#[test]
fn delayed_acknowledgements_cause_no_retransmission() {
    let mut steps = vec![Step::new(0, 0, Op::Connect)];
    let message = |n: u64| Step::new(1000 + 700 * n, 0, Op::Send(Burst::new(0, 1, 100)));
    steps.extend((0..100u64).map(message));
    let mut plan = Plan::by_hand(steps);
    plan.association_mut(1).sack.delay = Duration::from_millis(500);
    plan.calm_at = Instant::from_millis(80_000);
    let outcome = run(&plan, false, false);
    let recovery = &sender(&outcome).recovery;
    assert_eq!((recovery.packets_lost, recovery.timeouts), (0, 0));
    assert_eq!(recovery.packets, 100);
}

/// The same with the probe timer, which expires after a round trip, and a peer that ignores the I bit: the timer adapts
/// to the peer's ACK delay.
#[test]
fn a_timer_of_a_round_trip_learns_that_acknowledgements_are_delayed() {
    for (interval, sack_every) in [(700, 2), (250, 2), (50, 2), (100, 10)] {
        let mut steps = vec![Step::new(0, 0, Op::Connect)];
        let message = |n: u64| Step::new(1000 + interval * n, 0, Op::Send(Burst::new(0, 1, 100)));
        steps.extend((0..1000u64).map(message));
        let mut plan = Plan::by_hand(steps);
        let sender = plan.association_mut(0);
        sender.recovery = RecoveryConfig::profile("interactive").expect("it exists");
        sender.recovery.thin.sctp.sack_immediately = false; // As if the peer did not know the bit.
        plan.association_mut(1).sack.delay = Duration::from_millis(500);
        plan.association_mut(1).sack.every = sack_every;
        plan.calm_at = Instant::from_millis(2000 + interval * 1000);
        let outcome = run(&plan, false, false);
        let needless = statistics_of(&outcome, 1).traffic.duplicates_received;
        assert!((1..30).contains(&needless), "{needless} of 1000 every {interval} ms");
        assert_eq!(statistics_of(&outcome, 0).recovery.timeouts, 0);
    }
}

/// Other implementations keep round-trip times in whole milliseconds.
#[test]
fn a_round_trip_below_a_millisecond_is_measured() {
    let delay = Duration::from_nanos(100_300);
    let mut plan = Plan::by_hand(vec![
        Step::new(0, 0, Op::Connect),
        Step::new(1000, 0, Op::Send(Burst::new(0, 1, 100))),
    ]);
    let path = PathConfig { delay: Delay::constant(delay), ..PathConfig::default() };
    plan.paths = vec![(Instant::ZERO, [path.clone(), path])];
    plan.calm_at = Instant::from_millis(1100);
    let outcome = run(&plan, false, false);
    assert_eq!(sender(&outcome).paths[0].srtt, Some(2 * delay));
}

/// dcsctp: others can forge a cookie.
#[test]
fn a_cookie_with_any_bit_changed_begins_nothing() {
    let config = |accept| EndpointConfig::default().accept(accept);
    let [mut client, mut server] =
        [false, true].map(|accept| Endpoint::new(config(accept), &Seed::from_u64(7)).unwrap());
    let (now, route) = (Instant::ZERO, PointToPoint::route());
    let mut packet = Vec::new();
    client.connect(now, route, 5000).unwrap();
    client.poll_transmit(now, &mut packet).expect("INIT");
    server.handle_input(now, route.reversed(), &packet);
    server.poll_transmit(now, &mut packet).expect("INIT ACK");
    client.handle_input(now, route, &packet);
    client.poll_transmit(now, &mut packet).expect("COOKIE ECHO");
    // The chunk's value; what follows is padding.
    let end = 12 + usize::from(u16::from_be_bytes([packet[14], packet[15]]));
    for bit in 16 * 8..end * 8 {
        let mut forged = packet.clone();
        forged[bit / 8] ^= 1 << (bit % 8);
        write_checksum(&mut forged);
        server.handle_input(now, route.reversed(), &forged);
        assert_eq!(server.association_count(), 0, "bit {bit}");
    }
    server.handle_input(now, route.reversed(), &packet);
    assert_eq!(server.association_count(), 1);
}

/// Stream sequence numbers wrap after 65,536 messages of a stream.
#[test]
fn messages_keep_their_order_across_the_wrap_of_stream_sequence_numbers() {
    let send = |n: u64| Step::new(1000 + 100 * n, 0, Op::Send(Burst::new(0, 1000, 1)));
    let mut steps = vec![Step::new(0, 0, Op::Connect)];
    steps.extend((0..70u64).map(send));
    let mut plan = Plan::by_hand(steps);
    for path in &mut plan.paths[0].1 {
        path.loss.uniform = 0.01;
        path.duplicate = 0.01;
    }
    plan.calm_at = Instant::from_millis(60_000);
    let outcome = run(&plan, false, false);
    assert_eq!(outcome.counts, (70_000, 70_000, 0));
}

/// In an idle hour, only heartbeats are sent.
#[test]
fn an_idle_association_sends_nothing_but_heartbeats() {
    let mut plan = Plan::by_hand(vec![Step::new(0, 0, Op::Connect)]);
    plan.calm_at = Instant::from_millis(3_600_000);
    let chunks = run(&plan, false, false).chunks;
    let setup_and_end = [
        kind::INIT,
        kind::INIT_ACK,
        kind::COOKIE_ECHO,
        kind::COOKIE_ACK,
        kind::SHUTDOWN,
        kind::SHUTDOWN_ACK,
        kind::SHUTDOWN_COMPLETE,
    ];
    for (kind, count) in chunks {
        if matches!(kind, kind::HEARTBEAT | kind::HEARTBEAT_ACK) {
            // HB.interval is 30 s, and the RTO is added, with jitter.
            assert!((200..=240).contains(&count), "{count} chunks of type {kind}");
        } else {
            // The path is mild at the end, not without loss.
            assert!(setup_and_end.contains(&kind) && count <= 3, "{count} chunks of type {kind}");
        }
    }
}
