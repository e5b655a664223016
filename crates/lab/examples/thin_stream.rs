//! The standard thin stream in virtual time: 100 bytes every 250 ms over 100 ms RTT, 5 % of the
//! packets lost each way, ordered delivery. Prints the latency of the messages, per profile.
//!
//! `cargo run --release -p rexmit-lab --example thin_stream` (docs/validation.md compares it with
//! the Linux kernel's SCTP).

use std::sync::Arc;
use std::time::Duration;

use rexmit_core::{Instant, Seed};
use rexmit_lab::measure::LatencyDistribution;
use rexmit_netsim::network::{Context, Network, Occurrence, PointToPoint};
use rexmit_sctp::recovery::{PROFILES, RecoveryStatistics};
use rexmit_sctp::{
    AssociationConfig, AssociationId, Endpoint, EndpointConfig, Event, OutboundMessage,
};

const PATH: &str = "delay 50ms loss 5%";
const INTERVAL: Duration = Duration::from_millis(250);
const LENGTH: Duration = Duration::from_secs(2 * 3600);
const SEEDS: u64 = 40;
const BYTES: usize = 100;
const PORT: u16 = 5000;

/// Two hours of the stream.
fn run(config: &Arc<AssociationConfig>, seed: u64) -> (LatencyDistribution, RecoveryStatistics) {
    let seed = Seed::from_u64(seed);
    let endpoint = |name: &str, accept| {
        let association = Arc::clone(config);
        let config = EndpointConfig::default().accept(accept).association(association);
        Endpoint::new(config, &seed.split(name)).expect("a valid configuration")
    };
    let mut network = Network::new(&seed);
    let machines = [endpoint("sender", false), endpoint("receiver", true)];
    let path = PATH.parse().expect("the words of a path");
    let pair = PointToPoint::build(&mut network, machines, &path).expect("a new network");
    let [sender, _] = pair.hosts;
    let end = Instant::ZERO + LENGTH;
    let id = network
        .machine_mut(sender)
        .connect(Instant::ZERO, PointToPoint::route(), PORT)
        .expect("the first association");
    let mut latency = LatencyDistribution::new();
    let on = |cx: &mut Context<'_, Endpoint>, occurrence: Occurrence<(AssociationId, Event)>| {
        let now = cx.now();
        match occurrence {
            Occurrence::Event((_, Event::Connected { incoming: false, .. })) => {
                cx.wake_at(sender, now, 0);
            }
            Occurrence::Wake(_) => {
                let mut payload = now.as_nanos().to_be_bytes().to_vec();
                payload.resize(BYTES, 0);
                let message = OutboundMessage::new(0, payload);
                cx.machine().send(now, id, message).expect("there is room");
                if now + INTERVAL < end {
                    cx.wake_at(sender, now + INTERVAL, 0);
                }
            }
            Occurrence::Event((id, Event::Readable)) => {
                while let Some(message) = cx.machine().receive(now, id) {
                    let stamp = message.payload[..8].try_into().expect("eight bytes");
                    latency.record(now - Instant::from_nanos(u64::from_be_bytes(stamp)));
                }
            }
            Occurrence::Event(_) => {}
        }
    };
    network.run_until(end + Duration::from_secs(300), on).expect("the network rests");
    let statistics = network.machine_mut(sender).statistics(id).expect("still established");
    (latency, statistics.recovery)
}

fn main() {
    println!("{PATH} each way, {BYTES} B every {INTERVAL:?}, {SEEDS} × 2 h; latency in ms");
    println!("profile   SACK delay    mean     p90     p99   p99.9      max  timeouts  fast rtx");
    for (profile, _) in PROFILES {
        for sack_delay in [Duration::from_millis(200), Duration::ZERO] {
            let mut config = AssociationConfig::profile(profile).expect("it is listed");
            config.sack.delay = sack_delay;
            let config = Arc::new(config);
            let mut latency = LatencyDistribution::new();
            let (mut timeouts, mut fast) = (0, 0);
            for seed in 0..SEEDS {
                let (of_run, recovery) = run(&config, seed);
                latency.merge(&of_run);
                timeouts += recovery.timeouts;
                fast += recovery.retransmitted.fast_retransmit;
            }
            let summary = latency.summary().expect("messages were delivered");
            let ms = |duration: Duration| duration.as_secs_f64() * 1e3;
            println!(
                "{profile:<9} {:>7} ms {:>8.1} {:>7.1} {:>7.1} {:>7.1} {:>8.1} {timeouts:>9} {fast:>9}",
                sack_delay.as_millis(),
                ms(summary.mean),
                ms(summary.p90),
                ms(summary.p99),
                ms(summary.p999),
                ms(summary.max),
            );
        }
    }
}
