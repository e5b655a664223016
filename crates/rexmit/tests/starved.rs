//! Many clients send at once to one server, which answers later than any round trip measured before: that is no loss.

mod common;

use std::time::Duration;

use common::patiently;
use rexmit::clock::now;
use rexmit::recovery::RecoveryConfig;
use rexmit::{Association, AssociationConfig, Endpoint, EndpointConfig, OutboundMessage};
use tokio::task::JoinSet;

/// Bursts, the first of which meets paths over which nothing but the setup was measured.
const BURSTS: usize = 10;

fn config(profile: &str) -> EndpointConfig {
    let recovery = RecoveryConfig::profile(profile).expect("it exists");
    let association = AssociationConfig::default().recovery(recovery);
    EndpointConfig::default().association(association.into())
}

/// Data packets of both sides, and how long it took, for each burst: `clients` send one message each, which the server
/// sends back.
async fn bursts(profile: &str, clients: usize) -> Vec<(u64, Duration)> {
    let server =
        Endpoint::bind_unencrypted("127.0.0.1:0".parse().unwrap(), config(profile).accept(true))
            .unwrap();
    let (address, port) = (server.local_addr(), server.port());
    let accepting = tokio::spawn(async move {
        let mut accepted = Vec::new();
        while accepted.len() < clients {
            let association = server.accept().await.expect("a client");
            let echo = association.clone();
            tokio::spawn(async move {
                while let Some(message) = echo.recv().await {
                    let answer = OutboundMessage::new(0, message.payload);
                    if echo.send(answer).await.is_err() {
                        return;
                    }
                }
            });
            accepted.push(association);
        }
        (server, accepted)
    });
    let mut connected = Vec::new();
    for _ in 0..clients {
        let endpoint =
            Endpoint::bind_unencrypted("127.0.0.1:0".parse().unwrap(), config(profile).port(0))
                .unwrap();
        let association = endpoint.connect(address, port).await.unwrap();
        connected.push((endpoint, association));
    }
    let (_server, accepted) = accepting.await.unwrap();
    let packets = |connected: &[(Endpoint, Association)]| {
        let ours = connected.iter().map(|(_, association)| association);
        ours.chain(&accepted).map(|it| it.statistics().recovery.packets).sum::<u64>()
    };
    let mut results = Vec::new();
    for _ in 0..BURSTS {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let (before, began) = (packets(&connected), now());
        let mut waiting = JoinSet::new();
        for (_, association) in &connected {
            let association = association.clone();
            waiting.spawn(async move {
                association.send(OutboundMessage::new(0, vec![7; 100])).await.unwrap();
                association.recv().await.expect("an answer")
            });
        }
        patiently(waiting.join_all()).await;
        let took = now() - began;
        tokio::time::sleep(Duration::from_millis(300)).await;
        results.push((packets(&connected) - before, took));
    }
    results
}

/// How many packets a burst of 1000 takes depends on the machine: `cargo test --release -- --ignored --nocapture`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "depends on the machine"]
async fn a_thousand_clients_at_once() {
    for profile in ["rfc9260", "interactive", "interactive-redundant"] {
        let bursts = bursts(profile, 1000).await;
        println!("{profile}: {bursts:?}");
    }
}
