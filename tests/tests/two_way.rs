//! What two-way traffic costs: both ends of one association send 100 bytes every 50 ms, over 50 ms and 5 % loss each way, as in
//! a game that exchanges inputs and snapshots. Most acknowledgements of the standard share packets with messages;
//! those that a profile asks for at once cannot wait for one.

use std::sync::Arc;
use std::time::Duration;

use rexmit_core::{Instant, Seed};
use rexmit_netsim::network::{Context, Network, Occurrence, PointToPoint};
use rexmit_netsim::path::{Delay, Loss, PathConfig};
use rexmit_sctp::{
    AssociationConfig, AssociationId, Endpoint, EndpointConfig, Event, OutboundMessage,
};

const BYTES: usize = 100;
/// The clocks differ by 0.01 %, so that the times at which the ends send relative to each other pass all phases.
const EVERY: [Duration; 2] = [Duration::from_micros(49_997), Duration::from_micros(50_002)];
const LASTS: Duration = Duration::from_secs(1000);
/// The headers of IP and UDP, which SCTP in UDP has.
const HEADER_BYTES: u64 = 20 + 8;

#[derive(Debug)]
struct Cost {
    /// Packets of both hosts, per message of either.
    packets: f64,
    /// Bytes of IP packets with UDP headers, per byte of payload.
    bytes: f64,
    /// Ascending.
    latencies: Vec<Duration>,
}

impl Cost {
    fn at(&self, share: f64) -> u128 {
        self.latencies[(self.latencies.len() as f64 * share) as usize].as_millis()
    }
}

fn run(profile: &AssociationConfig, seed: u64) -> Cost {
    let path = PathConfig {
        delay: Delay::constant(Duration::from_millis(50)),
        loss: Loss { uniform: 0.05, ..Loss::default() },
        ..PathConfig::default()
    };
    let machines = [1, 2].map(|end| {
        let config = EndpointConfig::default().accept(true).association(Arc::new(profile.clone()));
        Endpoint::new(config, &Seed::from_u64(100 * seed + end)).expect("it is valid")
    });
    let mut network = Network::new(&Seed::from_u64(seed));
    let PointToPoint { hosts, .. } =
        PointToPoint::build(&mut network, machines, &path).expect("a valid path");
    network.wake_at(hosts[0], Instant::ZERO, 0);
    let mut ids: [Option<AssociationId>; 2] = [None; 2];
    let mut sent: [Vec<Instant>; 2] = [Vec::new(), Vec::new()];
    let mut latencies = Vec::new();
    let app = |context: &mut Context<'_, Endpoint>, occurrence: Occurrence<_>| {
        let (now, host) = (context.now(), context.host());
        let end = usize::from(host == hosts[1]);
        match occurrence {
            Occurrence::Wake(0) => {
                context.machine().connect(now, PointToPoint::route(), 5000).expect("a first one");
            }
            Occurrence::Wake(_) => {
                let message = OutboundMessage::new(0, vec![1; BYTES]).unordered(true);
                let message = message.ppid(sent[end].len() as u32);
                let id = ids[end].expect("connected");
                context.machine().send(now, id, message).expect("room");
                sent[end].push(now);
                context.wake_at(host, now + EVERY[end], 1);
            }
            Occurrence::Event((id, Event::Connected { .. })) => {
                ids[end] = Some(id);
                context.wake_at(host, now + EVERY[end], 1);
            }
            Occurrence::Event((id, Event::Readable)) => {
                while let Some(message) = context.machine().receive(now, id) {
                    latencies.push(now - sent[1 - end][message.ppid as usize]);
                }
            }
            Occurrence::Event((_, Event::Closed(reason))) => panic!("closed: {reason:?}"),
            Occurrence::Event(_) => {}
        }
    };
    network.run_until(Instant::ZERO + LASTS, app).expect("it goes on");
    let messages = sent.iter().map(Vec::len).sum::<usize>() as f64;
    let counts = hosts.map(|host| *network.host_stats(host));
    let packets = counts.iter().map(|it| it.packets_out).sum::<u64>();
    let bytes = counts.iter().map(|it| it.bytes_out).sum::<u64>();
    latencies.sort_unstable();
    Cost {
        packets: packets as f64 / messages,
        bytes: (bytes + packets * HEADER_BYTES) as f64 / (messages * BYTES as f64),
        latencies,
    }
}

/// The figures of docs/costs.md: `cargo test -p rexmit-tests --test two_way -- --nocapture`.
#[test]
fn immediate_acknowledgements_of_two_way_traffic_cost_less_than_one_packet_per_message() {
    let costs =
        ["rfc9260", "interactive", "interactive-bundling", "interactive-redundant"].map(|name| {
            let profile = AssociationConfig::profile(name).expect("a profile");
            let cost = run(&profile, 1);
            println!(
                "{name}: {:.2} packets per message, {:.2} bytes per byte; {} / {} / {} / {} ms",
                cost.packets,
                cost.bytes,
                cost.at(0.5),
                cost.at(0.99),
                cost.at(0.999),
                cost.at(0.9999),
            );
            cost
        });
    let [standard, interactive, ..] = &costs;
    // A packet per message, and those that loss and delayed SACKs add.
    assert!((1.0..1.4).contains(&standard.packets), "{}", standard.packets);
    // At most a SACK for each message besides, and retransmissions.
    assert!(interactive.packets > standard.packets && interactive.packets < 2.2);
    assert!(interactive.at(0.99) < standard.at(0.99) / 2);
}
