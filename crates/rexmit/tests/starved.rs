//! Many clients send at once to one server, so that ACKs on both sides are later than any RTT sample: that is not to be
//! treated as loss.

mod common;

use std::collections::BTreeMap;
use std::time::Duration;

use rexmit::clock::now;
use rexmit::recovery::RecoveryConfig;
use rexmit::{Association, AssociationConfig, Endpoint, EndpointConfig, OutboundMessage};
use tokio::task::JoinSet;

/// Messages that each client sends alone before the last burst.
const CALM_MESSAGES: usize = 20;
/// Bursts before that. At the first, the RTT of each path is known from the setup only.
const BURSTS: usize = 5;

fn config(profile: &str) -> EndpointConfig {
    let recovery = RecoveryConfig::profile(profile).expect("it exists");
    let association = AssociationConfig::default().recovery(recovery);
    EndpointConfig::default().association(association.into())
}

/// Clients, each with an endpoint of its own, of one server that sends back what it receives.
struct Crowd {
    clients: Vec<(Endpoint, Association)>,
    /// The server's ends of these associations.
    accepted: Vec<Association>,
    _server: Endpoint,
}

impl Crowd {
    async fn connect(profile: &str, count: usize) -> Self {
        let config = config(profile);
        let any = "127.0.0.1:0".parse().unwrap();
        let server = Endpoint::bind_unencrypted(any, config.clone().accept(true)).unwrap();
        let (address, port) = (server.local_addr(), server.port());
        let accepting = tokio::spawn(async move {
            let mut accepted = Vec::new();
            while accepted.len() < count {
                let association = server.accept().await.expect("a client");
                tokio::spawn(send_back(association.clone()));
                accepted.push(association);
            }
            (server, accepted)
        });
        let mut clients = Vec::new();
        for _ in 0..count {
            let endpoint = Endpoint::bind_unencrypted(any, config.clone().port(0)).unwrap();
            let association = endpoint.connect(address, port).await.unwrap();
            clients.push((endpoint, association));
        }
        let (server, accepted) = accepting.await.unwrap();
        Self { clients, accepted, _server: server }
    }

    fn data_packets(&self) -> u64 {
        let ours = self.clients.iter().map(|(_, association)| association);
        ours.chain(&self.accepted).map(|it| it.statistics().recovery.packets).sum()
    }

    /// Every client sends a message at the same time and waits for its echo. Returns the data packets of both sides,
    /// and the duration.
    async fn burst(&self) -> (u64, Duration) {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let (before, began) = (self.data_packets(), now());
        let mut waiting = JoinSet::new();
        for (_, association) in &self.clients {
            let association = association.clone();
            waiting.spawn(async move { there_and_back(&association).await });
        }
        let limit = Duration::from_secs(120);
        tokio::time::timeout(limit, waiting.join_all()).await.expect("within two minutes");
        let took = now() - began;
        self.expect_no_end();
        tokio::time::sleep(Duration::from_millis(300)).await;
        (self.data_packets() - before, took)
    }

    /// Fails if associations have ended; says how many, and why.
    fn expect_no_end(&self) {
        let mut ends = BTreeMap::new();
        let clients = self.clients.iter().map(|(_, association)| ("client", association));
        for (side, association) in clients.chain(self.accepted.iter().map(|it| ("server", it))) {
            if let Some(reason) = association.close_reason() {
                *ends.entry((side, reason.to_string())).or_insert(0) += 1;
            }
        }
        assert!(ends.is_empty(), "{ends:?}");
    }

    /// Each client sends some messages while the others are idle.
    async fn calm(&self) {
        for (_, association) in &self.clients {
            for _ in 0..CALM_MESSAGES {
                there_and_back(association).await;
            }
        }
    }
}

async fn send_back(association: Association) {
    while let Some(message) = association.recv().await {
        if association.send(OutboundMessage::new(0, message.payload)).await.is_err() {
            return;
        }
    }
}

async fn there_and_back(association: &Association) {
    // If it has ended, that is counted.
    if association.send(OutboundMessage::new(0, vec![7; 100])).await.is_ok() {
        association.recv().await;
    }
}

/// How many packets a burst takes depends on the machine: `cargo test --release -- --ignored --nocapture`.
/// `CLIENTS` is how many there are, 1000 without it; 10,000 need 20,000 descriptors (`ulimit -n`).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "depends on the machine"]
async fn many_clients_at_once() {
    let count = std::env::var("CLIENTS").map_or(1000, |it| it.parse().expect("a number"));
    println!(
        "data packets and ms, in turn: paths known from the setup, from {BURSTS} bursts, from calm"
    );
    for profile in ["rfc9260", "interactive", "interactive-redundant"] {
        let crowd = Crowd::connect(profile, count).await;
        let mut bursts = Vec::new();
        for _ in 0..BURSTS {
            bursts.push(crowd.burst().await);
        }
        drop(crowd);
        let crowd = Crowd::connect(profile, count).await;
        crowd.calm().await;
        bursts.push(crowd.burst().await);
        let words = bursts.iter().map(|(packets, time)| format!("{packets} {}", time.as_millis()));
        println!("{profile}: {}", words.collect::<Vec<_>>().join(", "));
    }
}
