//! Runs of TCP endpoints with one profile: small writes in both directions, and bulk transfers occasionally.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rexmit_core::{Instant, Rng, Seed};
use rexmit_netsim::network::{Context, Direction, HostId, Network, Occurrence};
use rexmit_tcp::recovery::RecoveryConfig;
use rexmit_tcp::{ConnectionConfig, ConnectionId, Endpoint, EndpointConfig, Event};

use super::recorded::{Digest, Recorded};
use super::{Case, Fingerprint, Kind, link, numbers};
use crate::plan::pick;
use crate::watch::address;

type Host = Recorded<Endpoint>;

const MS: fn(u64) -> Duration = Duration::from_millis;
const PORT: u16 = 80;
/// The token of a wake-up for a restart; other tokens are numbers of flows.
const RESTART: u64 = u64::MAX;

/// Writes of one size that a host makes at a rate.
#[derive(Clone, Copy, Debug)]
struct Flow {
    host: usize,
    interval: Duration,
    bytes: usize,
}

struct Run {
    duration: Duration,
    config: EndpointConfig,
    flows: Vec<Flow>,
    /// The host that restarts, and when.
    restart: Option<(Instant, usize)>,
    seed: Seed,
    hosts: [HostId; 2],
    ids: [Option<ConnectionId>; 2],
    rng: Rng,
}

pub(super) fn run(profile: &str, case: Case) -> Fingerprint {
    let seed = Seed::from_u64(case.seed).split(case.kind.name());
    let mut rng = seed.split("plan").rng();
    let duration = MS(pick(&mut rng, &[4_000, 12_000, 25_000]));
    let config = config(profile, &mut rng);
    let mut network: Network<Host> = Network::new(&seed.split("network"));
    let hosts =
        [0, 1].map(|host| network.add_host(["a", "b"][host], endpoint(&config, &seed, host, 0)));
    add_link(&mut network, hosts, &link::schedule(case.kind, &mut rng, duration));
    let flows = flows(case.kind, &mut rng);
    let restart = (case.kind == Kind::Restart).then(|| {
        let millis = duration.as_millis() as u64;
        (Instant::from_millis(millis / 4 + rng.below(millis / 4)), rng.below(2) as usize)
    });
    let mut run = Run { duration, config, flows, restart, seed, hosts, ids: [None; 2], rng };
    run.carry_out(&mut network)
}

fn endpoint(config: &EndpointConfig, seed: &Seed, host: usize, life: u32) -> Host {
    let seed = seed.split(&format!("endpoint {host}, life {life}"));
    let mut endpoint = Endpoint::new(config.clone(), &seed).expect("profiles are valid");
    if host == 1 {
        endpoint.listen(PORT, None).expect("a free port");
    }
    Recorded::new(endpoint)
}

fn add_link(network: &mut Network<Host>, hosts: [HostId; 2], schedule: &link::Schedule) {
    let [a, b] = hosts.map(|host| network.host_node(host));
    let (_, [there, back]) = schedule[0].clone();
    let link = network.add_link(a, b, there, back).expect("valid paths");
    for (host, id) in hosts.into_iter().enumerate() {
        network.add_address(id, address(host, 0), link).expect("distinct");
    }
    for (at, [there, back]) in schedule[1..].iter().cloned() {
        for (direction, path) in [(Direction::Forward, there), (Direction::Backward, back)] {
            network.change_path_at(link, direction, at, path).expect("valid paths");
        }
    }
}

fn config(profile: &str, rng: &mut Rng) -> EndpointConfig {
    let connection = ConnectionConfig::sack()
        .recovery(RecoveryConfig::tcp_profile(profile).expect("a profile"))
        .mss(pick(rng, &[1460, 536]))
        .timestamps(rng.chance(0.7))
        .with_sack(rng.chance(0.8))
        .nagle(rng.chance(0.3))
        .ack_delay(MS(pick(rng, &[0, 40, 200])));
    EndpointConfig::default().connection(Arc::new(connection))
}

fn flows(kind: Kind, rng: &mut Rng) -> Vec<Flow> {
    let thin = |host, rng: &mut Rng| Flow {
        host,
        interval: MS(pick(rng, &[10, 50, 100, 130, 250, 1_000])),
        bytes: pick(rng, &[20, 100, 400]),
    };
    let mut flows = vec![thin(0, rng), thin(1, rng)];
    if kind == Kind::Bottleneck || rng.chance(0.3) {
        flows.push(Flow { host: rng.below(2) as usize, interval: MS(100), bytes: 12_000 });
    }
    flows
}

impl Run {
    fn carry_out(&mut self, network: &mut Network<Host>) -> Fingerprint {
        self.connect(Instant::ZERO, network.machine_mut(self.hosts[0]));
        for (index, flow) in self.flows.iter().enumerate() {
            let at = Instant::from_millis(self.rng.below(300));
            network.wake_at(self.hosts[flow.host], at, index as u64);
        }
        if let Some((at, host)) = self.restart {
            network.wake_at(self.hosts[host], at, RESTART);
        }
        let end = Instant::ZERO + self.duration + MS(8_000);
        let app = |context: &mut Context<'_, Host>, occurrence| {
            self.on_occurrence(context, occurrence);
        };
        network.run_until(end, app).expect("no livelock");
        let machines = self.hosts.map(|host| network.machine(host));
        let mut statistics = Digest::default();
        for (machine, id) in machines.iter().zip(self.ids) {
            if let Some(known) = id.and_then(|id| machine.machine.statistics(id)) {
                statistics.add(&numbers::of_connection(&known));
            }
        }
        Fingerprint {
            packets: machines.iter().map(|machine| machine.sent.packets()).sum(),
            bytes: Digest::of(&machines.map(|machine| machine.sent.value())).value(),
            statistics: statistics.value(),
        }
    }

    fn connect(&mut self, now: Instant, host: &mut Host) {
        let (local, remote) = ((address(0, 0), 0), (address(1, 0), PORT));
        let id = host.machine.connect(now, SocketAddr::from(local), SocketAddr::from(remote));
        self.ids[0] = Some(id.expect("a free port"));
    }

    fn on_occurrence(
        &mut self,
        context: &mut Context<'_, Host>,
        occurrence: Occurrence<(ConnectionId, Event)>,
    ) {
        let now = context.now();
        let host = usize::from(context.host() == self.hosts[1]);
        match occurrence {
            Occurrence::Wake(RESTART) => {
                let sent = context.machine().sent;
                let fresh = endpoint(&self.config, &self.seed, host, 1);
                *context.machine() = Recorded { sent, ..fresh };
                self.ids[host] = None;
                if host == 0 {
                    self.connect(now, context.machine());
                }
            }
            Occurrence::Wake(flow) => self.send(context, flow),
            Occurrence::Event((id, event)) => {
                self.on_event(now, context.machine(), (host, id), &event);
            }
        }
    }

    fn send(&mut self, context: &mut Context<'_, Host>, number: u64) {
        let now = context.now();
        let flow = self.flows[number as usize];
        if let Some(id) = self.ids[flow.host] {
            // A full buffer, or a connection that has ended, is a part of the run.
            let _ = context.machine().machine.send(now, id, &vec![number as u8; flow.bytes]);
        }
        // Neither exactly periodic nor far from it.
        let jitter = self.rng.below(1 + flow.interval.as_micros() as u64 / 4);
        let next = now + flow.interval + Duration::from_micros(jitter);
        if next < Instant::ZERO + self.duration {
            context.wake_at(self.hosts[flow.host], next, number);
        }
    }

    fn on_event(
        &mut self,
        now: Instant,
        host: &mut Host,
        (number, id): (usize, ConnectionId),
        event: &Event,
    ) {
        match event {
            Event::Connected { .. } => self.ids[number] = Some(id),
            Event::Readable => {
                let mut bytes = [0; 4096];
                while matches!(host.machine.receive(now, id, &mut bytes), Ok(1..)) {}
            }
            Event::Closed(_) => {
                if self.ids[number] == Some(id) {
                    self.ids[number] = None;
                }
                // The client of a server that began anew connects again.
                if number == 0 && self.ids[0].is_none() {
                    self.connect(now, host);
                }
            }
            // Writable.
            _ => {}
        }
    }
}
