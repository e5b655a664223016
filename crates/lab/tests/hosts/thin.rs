//! Thin streams.

use std::time::Duration;

use rexmit_core::{Instant, Seed};
use rexmit_lab::hosts::{
    Datagrams, Host, Layer, Thin, ThinPlan, ThinReceiver, ThinSender, Transport,
};
use rexmit_netsim::network::{Network, PointToPoint};
use rexmit_netsim::path::PathConfig;
use rexmit_netsim::source::Application;

use crate::kit::{PORT, at, path, run, sctp, seconds, tcp, tcp_with};

/// 100 bytes every 250 ms.
fn every_250_ms(count: u64) -> ThinPlan {
    let source = (0..count).map(|n| (Instant::from_millis(500 + 250 * n), 100));
    ThinPlan::new(source, Instant::FAR_FUTURE)
}

/// Runs a stream over the link `path`, and returns its sender and receiver at the end.
fn stream<T: Transport>(
    plan: &ThinPlan,
    path: &PathConfig,
    seed: u64,
    endpoint: impl Fn(&Seed) -> T,
    judge: impl FnOnce(&ThinSender<T>, &ThinReceiver<T>),
) {
    let seed = Seed::from_u64(seed);
    let [from, to] = PointToPoint::ADDRESSES.map(at);
    let thin = Thin::new(from, to);
    let machines = [
        Host::new(endpoint(&seed.split("a")), ThinSender::<T>::new(thin, plan.clone())),
        Host::new(endpoint(&seed.split("b")), ThinReceiver::<T>::new(plan.clone())),
    ];
    let mut network = Network::new(&seed);
    let hosts = PointToPoint::build(&mut network, machines, path).unwrap().hosts;
    let end = plan.clone().last().unwrap().intended;
    run(&mut network, end + Duration::from_secs(300));
    let sender = network.machine(hosts[0]).program::<ThinSender<T>>().unwrap();
    let receiver = network.machine(hosts[1]).program::<ThinReceiver<T>>().unwrap();
    assert_eq!(sender.sent(), plan.clone().count() as u64);
    assert_eq!((receiver.duplicates(), receiver.damaged()), (0, 0));
    judge(sender, receiver);
}

#[test]
fn without_loss_every_message_takes_the_time_of_its_packet() {
    // A byte takes 10 µs.
    let (plan, path) = (every_250_ms(100), path("delay 50ms rate 800kbit limit 100"));
    let all_took = |receiver: Vec<rexmit_lab::measure::MessageRecord>, wire_bytes: u64| {
        assert_eq!(receiver.len(), 100);
        for record in receiver {
            let expected = Duration::from_millis(50) + Duration::from_micros(10 * wire_bytes);
            assert_eq!(record.latency(), Some(expected), "{record:?}");
        }
    };
    stream(
        &plan,
        &path,
        1,
        |seed| tcp("tcp-sack", seed),
        |sender, receiver| {
            assert!(sender.is_finished());
            for layer in [Layer::Transport, Layer::Application] {
                all_took(receiver.records(layer, 0), 20 + 32 + 100);
            }
        },
    );
    stream(&plan, &path, 1, sctp, |_, receiver| {
        for layer in [Layer::Transport, Layer::Application] {
            all_took(receiver.records(layer, 0), 20 + 12 + 16 + 100);
        }
    });
    stream(
        &plan,
        &path,
        1,
        |_| Datagrams::new(Some(PORT)),
        |_, receiver| {
            for layer in [Layer::Transport, Layer::Application] {
                all_took(receiver.records(layer, 0), 20 + 8 + 100);
            }
        },
    );
}

/// A lost packet delays its message; later messages arrive in time and wait for it.
fn waits_for_the_lost_one<T: Transport>(endpoint: impl Fn(&Seed) -> T, wire_bytes: u64) {
    // Two packets of the handshake, then a message in each: the sixth packet has message 3.
    const LOST: usize = 3;
    let (plan, path) = (every_250_ms(20), path("delay 50ms rate 800kbit limit 100 loss list 5"));
    stream(&plan, &path, 1, endpoint, |_, receiver| {
        let usual = Duration::from_millis(50) + Duration::from_micros(10 * wire_bytes);
        let arrived = receiver.records(Layer::Transport, 0);
        let delivered = receiver.records(Layer::Application, 0);
        let repaired = delivered[LOST].delivered;
        assert_eq!(arrived[LOST].delivered, repaired);
        let mut waiting = 0;
        for number in (0..20).filter(|&number| number != LOST) {
            assert_eq!(arrived[number].latency(), Some(usual), "message {number}");
            let has_to_wait = number > LOST && arrived[number].delivered < repaired;
            let expected = if has_to_wait { repaired } else { arrived[number].delivered };
            assert_eq!(delivered[number].delivered, expected, "message {number}");
            waiting += u32::from(has_to_wait);
        }
        // The third missing report causes the retransmission, or the fourth, because the loss list also applies to
        // ACKs.
        assert!((3..=4).contains(&waiting), "{waiting}");
    });
}

#[test]
fn arrival_behind_a_lost_message_is_distinguished_from_delivery() {
    waits_for_the_lost_one(|seed| tcp("tcp-sack", seed), 20 + 32 + 100);
    waits_for_the_lost_one(sctp, 20 + 12 + 16 + 100);
}

/// TCP runs without timestamps: with them it would drop a segment that its retransmission has overtaken (PAWS),
/// although it has arrived.
fn without_timestamps(profile: &str, seed: &Seed) -> rexmit_tcp::Endpoint {
    tcp_with(profile, seed, |connection| connection.timestamps = false)
}

/// Checks that all messages are delivered in order.
fn completes_in_order<T: Transport>(endpoint: impl Fn(&Seed) -> T, plan: &ThinPlan) {
    for seed in 0..3 {
        let path = path("delay 50ms 10ms loss 5% reorder 2% 20ms duplicate 1% corrupt 0.2%");
        stream(plan, &path, seed, &endpoint, |sender, receiver| {
            assert!(sender.is_finished());
            assert_eq!(receiver.delivered(), plan.clone().count() as u64);
            assert_eq!((receiver.out_of_order(), receiver.ended_gracefully()), (0, Some(true)));
            let arrived = receiver.records(Layer::Transport, 0);
            let delivered = receiver.records(Layer::Application, 0);
            let (mut latest, mut waited) = (None, 0);
            for (arrived, delivered) in arrived.iter().zip(&delivered) {
                // A message is delivered when it and all before it have arrived.
                latest = latest.max(arrived.delivered);
                assert_eq!(
                    delivered.delivered,
                    latest,
                    "{seed} {} {arrived:?}",
                    std::any::type_name::<T>()
                );
                waited += u64::from(arrived.delivered < delivered.delivered);
            }
            assert!(waited > 0, "some arrive before an earlier one");
        });
    }
}

#[test]
fn thin_streams_over_tcp_complete_in_order() {
    completes_in_order(|seed| without_timestamps("tcp-sack", seed), &every_250_ms(2000));
    completes_in_order(|seed| without_timestamps("tcp-newreno", seed), &every_250_ms(2000));
}

#[test]
fn thin_streams_over_sctp_complete_in_order() {
    completes_in_order(sctp, &every_250_ms(2000));
}

#[test]
fn applications_of_all_sizes_complete_over_every_transport() {
    for application in [Application::RemoteDesktop, Application::WorldOfWarcraft] {
        let start = Instant::from_millis(500);
        let source = application.source(start, &Seed::from_u64(9));
        let plan = ThinPlan::new(source, seconds(600));
        assert!(plan.clone().count() > 1000);
        completes_in_order(|seed| without_timestamps("tcp-sack", seed), &plan);
        completes_in_order(sctp, &plan);
    }
}

#[test]
fn udp_loses_what_the_path_loses() {
    let plan = every_250_ms(4000);
    stream(
        &plan,
        &path("delay 50ms loss 5%"),
        1,
        |_| Datagrams::new(Some(PORT)),
        |_, receiver| {
            let lost = 4000 - receiver.delivered();
            // 200 expected, standard deviation 14.
            assert!((130..270).contains(&lost), "{lost}");
            let latency = receiver.latency(Layer::Application);
            assert_eq!(latency.count(), receiver.delivered());
            assert_eq!(latency.quantile(1.0), Duration::from_millis(50));
            let missing = |record: &rexmit_lab::measure::MessageRecord| record.delivered.is_none();
            let records = receiver.records(Layer::Application, 7);
            assert_eq!(records.iter().filter(|record| missing(record)).count() as u64, lost);
            assert!(records.iter().all(|record| record.connection == 7));
        },
    );
}

#[test]
fn a_message_that_waits_for_the_connection_or_for_room_waits_all_the_same() {
    // A byte takes 1 ms. All is due at once, before the handshake.
    let source = (0..100).map(|_: u32| (Instant::ZERO, 1000));
    let plan = ThinPlan::new(source, Instant::FAR_FUTURE);
    let endpoint = |seed: &Seed| {
        let connection = rexmit_tcp::ConnectionConfig::sack().send_buffer_bytes(5000);
        let config = rexmit_tcp::EndpointConfig::default().connection(connection.into());
        let mut endpoint = rexmit_tcp::Endpoint::new(config, seed).unwrap();
        endpoint.listen(PORT, None).unwrap();
        endpoint
    };
    stream(&plan, &path("delay 50ms rate 8kbit limit 1000"), 1, endpoint, |_, receiver| {
        let records = receiver.records(Layer::Application, 0);
        let took = |n: usize| records[n].latency().unwrap();
        assert!(took(0) > Duration::from_millis(1000 + 3 * 50));
        assert!((0..99).all(|n| took(n) <= took(n + 1)));
        assert!(took(99) >= Duration::from_secs(100), "{:?}", took(99));
    });
}
