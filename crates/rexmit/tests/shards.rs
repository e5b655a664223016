//! Endpoints with several shards, on loopback.
#![cfg(target_os = "linux")]

mod common;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{client_config, in_time, server_config};
use rexmit::Instant;
use rexmit::trace::{TraceEvent, TraceSink};
use rexmit::{
    Association, AssociationConfig, BindError, CloseReason, ConnectError, Encryption, Endpoint,
    EndpointConfig, Identity, TimeLimits, Trust,
};

const SHARDS: usize = 4;
/// With this number of associations a shard has none in one of 10^7 runs.
const CLIENTS: usize = 64;

fn bind_at(address: &str, config: EndpointConfig) -> Endpoint {
    let endpoint = Endpoint::bind_unencrypted(address.parse().unwrap(), config).unwrap();
    endpoint.with_time_limits(TimeLimits::NONE)
}

fn sharded(address: &str) -> Endpoint {
    bind_at(address, server_config().shards(SHARDS))
}

async fn connect(client: &Endpoint, to: SocketAddr) -> Association {
    in_time(client.connect(to, 5000)).await.unwrap()
}

/// Returns every message to its sender.
fn echo(server: &Endpoint) {
    let server = server.clone();
    tokio::spawn(async move {
        while let Some(accepted) = server.accept().await {
            tokio::spawn(async move {
                while let Some(message) = accepted.recv().await {
                    if accepted.stream(message.stream).send(message.payload).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
}

async fn is_echoed(association: &Association, text: &str) {
    association.stream(0).send(text.to_owned()).await.unwrap();
    assert_eq!(in_time(association.recv()).await.unwrap().payload, text);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn associations_spread_over_the_shards_and_are_served_by_each() {
    for (own, client, host) in [
        ("127.0.0.1:0", "127.0.0.1:0", "127.0.0.1"),
        ("[::1]:0", "[::1]:0", "::1"),
        ("[::]:0", "127.0.0.1:0", "127.0.0.1"),
    ] {
        let server = sharded(own);
        echo(&server);
        let to = SocketAddr::new(host.parse().unwrap(), server.local_addr().port());
        let mut clients = Vec::new();
        for number in 0..CLIENTS {
            let client = bind_at(client, client_config());
            let association = connect(&client, to).await;
            is_echoed(&association, &format!("message {number}")).await;
            clients.push((client, association));
        }
        let counts = server.association_counts();
        assert_eq!((counts.len(), counts.iter().sum()), (SHARDS, CLIENTS));
        assert!(counts.iter().all(|&count| count > 0), "{counts:?}");
        assert_eq!(server.association_count(), CLIENTS);
        let statistics = server.statistics();
        assert_eq!(statistics.protocol.inits_answered, CLIENTS as u64);
        // The kernel gave each packet to the shard to which it belongs.
        assert_eq!(statistics.packets_redirected, 0, "{own}");
        let line = format!("rexmit_associations {CLIENTS}\n");
        let metrics = server.metrics();
        assert!(metrics.contains(&line));
        for (shard, count) in counts.iter().enumerate() {
            let line = format!("rexmit_shard_associations{{shard=\"{shard}\"}} {count}\n");
            assert!(metrics.contains(&line), "{metrics}");
        }
        in_time(server.shutdown()).await;
        for (_, association) in &clients {
            in_time(association.closed()).await;
        }
        assert_eq!(server.association_count(), 0);
        assert!(in_time(server.accept()).await.is_none());
    }
}

/// As behind a NAT that has forgotten its clients: they are at other ports, in other residue classes of the hash.
#[tokio::test]
async fn an_association_stays_on_its_shard_when_the_port_of_its_peer_changes() {
    let server = sharded("127.0.0.1:0");
    echo(&server);
    let client = bind_at("127.0.0.1:0", client_config());
    let association = connect(&client, server.local_addr()).await;
    let (before, mut ports) = (server.association_counts(), BTreeSet::new());
    for number in 0..12 {
        is_echoed(&association, &format!("message {number}")).await;
        assert_eq!(server.association_counts(), before);
        ports.insert(client.local_addr().port());
        client.rebind("127.0.0.1:0".parse().unwrap()).unwrap();
    }
    assert!(ports.len() > 6, "{ports:?}");
    assert_eq!(association.close_reason(), None);
    assert_eq!(server.statistics().packets_redirected, 0);
}

#[tokio::test]
async fn the_limit_of_associations_is_that_of_all_shards() {
    const LIMIT: usize = 10;
    let config = server_config().shards(SHARDS).max_associations(LIMIT);
    let server = bind_at("127.0.0.1:0", config);
    let (mut kept, mut refused) = (Vec::new(), 0);
    for _ in 0..CLIENTS {
        let client = bind_at("127.0.0.1:0", client_config());
        match in_time(client.connect(server.local_addr(), 5000)).await {
            Ok(association) => kept.push((client, association)),
            Err(ConnectError::RefusedByPeer { .. }) => refused += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!((kept.len(), refused), (LIMIT, CLIENTS - LIMIT));
    let counts = server.association_counts();
    assert!(counts.iter().all(|count| [2, 3].contains(count)), "{counts:?}");
    assert_eq!(server.statistics().protocol.refused_for_limit, refused as u64);
}

/// Answers arrive at the shard that began the association, because it is the home of the peer.
#[tokio::test]
async fn associations_are_begun_on_all_shards() {
    let client = bind_at("127.0.0.1:0", EndpointConfig::default().shards(SHARDS));
    let mut kept = Vec::new();
    for _ in 0..CLIENTS / 2 {
        let server = bind_at("127.0.0.1:0", server_config());
        echo(&server);
        let association = connect(&client, server.local_addr()).await;
        is_echoed(&association, "message").await;
        kept.push((server, association));
    }
    let counts = client.association_counts();
    assert!(counts.iter().filter(|&&count| count > 0).count() > 1, "{counts:?}");
    assert_eq!(client.statistics().packets_redirected, 0);
    // A port at which nothing listens is reported to any of the sockets.
    for _ in 0..16 {
        let free = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let error = in_time(client.connect(free, 5000)).await.unwrap_err();
        assert!(matches!(error, ConnectError::PortUnreachable { .. }), "{error}");
    }
    in_time(client.shutdown()).await;
    for (_, association) in &kept {
        assert!(association.close_reason().is_some());
    }
}

/// A shard whose socket is closed before the others leaves its packets to them.
#[tokio::test]
async fn shards_answer_until_the_last_association_of_all_has_ended() {
    let server = sharded("127.0.0.1:0");
    let to = server.local_addr();
    let first = bind_at("127.0.0.1:0", client_config());
    let ours = connect(&first, to).await;
    let theirs = in_time(server.accept()).await.unwrap();
    drop(server);
    for _ in 0..CLIENTS / 2 {
        let client = bind_at("127.0.0.1:0", client_config());
        match in_time(client.connect(to, 5000)).await {
            Err(error) => assert!(matches!(error, ConnectError::RefusedByPeer { .. }), "{error}"),
            Ok(association) => {
                let reason = in_time(association.closed()).await;
                assert!(matches!(reason, CloseReason::AbortedByPeer { .. }), "{reason}");
            }
        }
    }
    theirs.stream(0).send("message").await.unwrap();
    assert_eq!(in_time(ours.recv()).await.unwrap().payload, "message");
    drop((ours, theirs));
    // All sockets are closed now.
    let is_free = async {
        while Endpoint::bind_unencrypted(to, server_config()).is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    in_time(is_free).await;
}

/// Each attempt reads the errors of all sockets, those for other attempts too. An INIT that is sent again would get another error.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attempts_at_the_same_time_are_refused_by_their_first_packet() {
    const ONCE: Duration = Duration::from_secs(600);
    let mut association = AssociationConfig::default();
    (association.recovery.rto.initial, association.recovery.rto.max) = (ONCE, ONCE);
    let config = client_config().shards(16).association(association.into());
    let client = bind_at("127.0.0.1:0", config);
    let (mut silent, mut attempts) = (Vec::new(), Vec::new());
    let attempt = |to: SocketAddr| {
        let client = client.clone();
        tokio::spawn(async move { client.connect(to, 5000).await.unwrap_err() })
    };
    for _ in 0..24 {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        silent.push((attempt(socket.local_addr().unwrap()), socket));
    }
    for _ in 0..24 {
        let free = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        attempts.push(attempt(free));
    }
    for attempt in attempts {
        let error = in_time(attempt).await.unwrap();
        assert!(matches!(error, ConnectError::PortUnreachable { .. }), "{error}");
    }
    silent.iter().for_each(|(attempt, _)| attempt.abort());
}

#[derive(Clone, Default)]
struct Numbers(Arc<Mutex<BTreeSet<u32>>>);

impl TraceSink for Numbers {
    fn record(&mut self, _: Instant, association: u32, _: &TraceEvent) {
        self.0.lock().unwrap().insert(association);
    }
}

#[tokio::test]
async fn associations_of_different_shards_have_different_numbers() {
    let server = sharded("127.0.0.1:0");
    let numbers = Numbers::default();
    server.set_trace(Some(Box::new(numbers.clone())));
    let (mut kept, mut accepted) = (Vec::new(), BTreeSet::new());
    for _ in 0..16 {
        let client = bind_at("127.0.0.1:0", client_config());
        let ours = connect(&client, server.local_addr()).await;
        let theirs = in_time(server.accept()).await.unwrap();
        theirs.stream(0).send("message").await.unwrap();
        assert_eq!(in_time(ours.recv()).await.unwrap().payload, "message");
        accepted.insert(theirs.trace_number());
        kept.push((client, ours, theirs));
    }
    assert_eq!(accepted.len(), 16);
    assert_eq!(*numbers.0.lock().unwrap(), accepted);
}

#[tokio::test]
async fn encrypted_associations_spread_over_the_shards() {
    let identity = Identity::generate().unwrap();
    let trust = Trust::only([identity.fingerprint()]);
    let any = "127.0.0.1:0".parse().unwrap();
    let encryption = Encryption::new(identity, Trust::anyone());
    let config = server_config().shards(2);
    let server = Endpoint::bind(any, config, encryption).unwrap();
    let server = server.with_time_limits(TimeLimits::NONE);
    echo(&server);
    let mut kept = Vec::new();
    for _ in 0..24 {
        let encryption = Encryption::new(Identity::generate().unwrap(), trust.clone());
        // Clients with several shards, too.
        let client = Endpoint::bind(any, client_config().shards(2), encryption).unwrap();
        let client = client.with_time_limits(TimeLimits::NONE);
        let association = connect(&client, server.local_addr()).await;
        is_echoed(&association, "message").await;
        assert_eq!(client.statistics().packets_redirected, 0);
        kept.push((client, association));
    }
    let counts = server.association_counts();
    assert!(counts.iter().all(|&count| count > 0), "{counts:?}");
    let statistics = server.statistics();
    assert_eq!(statistics.packets_redirected, 0);
    assert_eq!(statistics.encryption.unwrap().handshakes_completed, 24);
}

#[tokio::test]
async fn limits_of_encryption_are_those_of_all_shards() {
    let any = "127.0.0.1:0".parse().unwrap();
    let identity = Identity::generate().unwrap();
    let encryption = || Encryption::new(identity.clone(), Trust::anyone());
    for (low, shards) in [
        (encryption().max_connections(3), 4),
        (encryption().max_handshakes(1), 2),
        (encryption().max_handshakes(0).max_connections(3), 4),
    ] {
        let error = Endpoint::bind(any, server_config().shards(shards), low).unwrap_err();
        assert!(matches!(error, BindError::Shards { .. }), "{error}");
    }
    Endpoint::bind(any, server_config().shards(4), encryption().max_connections(4)).unwrap();
    Endpoint::bind(any, server_config(), encryption().max_connections(1)).unwrap();
    let server = Endpoint::bind(any, server_config(), encryption()).unwrap();
    for shards in [1, 4] {
        let none = encryption().max_connections(0).max_handshakes(0);
        let client = Endpoint::bind(any, client_config().shards(shards), none).unwrap();
        let error = in_time(client.connect(server.local_addr(), 5000)).await.unwrap_err();
        assert!(matches!(error, ConnectError::Handshake { .. }), "{error}");
        let text = std::error::Error::source(&error).map(ToString::to_string);
        assert!(text.is_some_and(|text| text.contains("max_connections")), "{error:?}");
    }
}

#[tokio::test]
async fn what_shards_do_not_support_is_refused() {
    let any = "127.0.0.1:0".parse().unwrap();
    for config in [
        EndpointConfig::default().shards(0),
        EndpointConfig::default().shards(65),
        EndpointConfig::default().shards(4).max_associations(3),
        EndpointConfig::default().shards(4).max_receive_bytes(4 * 4096 - 1),
    ] {
        let error = Endpoint::bind_unencrypted(any, config).unwrap_err();
        assert!(matches!(error, BindError::Config(_)), "{error}");
    }
    let config = || server_config().shards(2);
    let error = Endpoint::bind_raw(any.ip(), config()).unwrap_err();
    assert!(matches!(error, BindError::Shards { .. } | BindError::NeedsRawSockets { .. }));
    let server = sharded("127.0.0.1:0");
    assert!(server.rebind(any).is_err());
    assert!(server.follow_addresses().is_err());
    // Neither another group nor a single socket shares the address.
    for config in [config(), server_config()] {
        let error = Endpoint::bind_unencrypted(server.local_addr(), config).unwrap_err();
        assert!(matches!(error, BindError::InUse { .. }), "{error}");
    }
}
