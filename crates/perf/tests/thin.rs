//! A thin load between a sender and receivers on loopback.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rexmit::{Endpoint, EndpointConfig};
use rexmit_perf::load::result::Sent;
use rexmit_perf::load::schedule::ThinLoad;
use rexmit_perf::load::{LoadError, Target, receive, send};

fn bind(address: SocketAddr, config: EndpointConfig) -> Endpoint {
    Endpoint::bind_unencrypted(address, config.port(5000)).expect("a free address")
}

fn target(remote: SocketAddr) -> Target {
    Target {
        remote,
        more_receivers: Vec::new(),
        more_remotes: Vec::new(),
        locals: Vec::new(),
        sctp_port: 5000,
        raw: false,
        encryption: None,
        association: Arc::default(),
        setup_timeout: Duration::from_secs(60),
    }
}

/// Ten messages on each connection.
fn load(connections: u32) -> ThinLoad {
    ThinLoad {
        first_connection: 0,
        connections,
        interval: Duration::from_millis(10),
        message_bytes: 100,
        duration: Duration::from_millis(100),
        poisson: false,
        unordered: false,
        seed: 1,
        batch: Duration::ZERO,
    }
}

/// The result of `connections` to a server that accepts at most `most`, or to no server, and how many were reported to be
/// set up.
async fn send_to_server_of(
    most: Option<usize>,
    connections: u32,
) -> Result<(Sent, usize), LoadError> {
    let config = EndpointConfig::default().accept(most.is_some());
    let server = bind(([127, 0, 0, 1], 0).into(), config.max_associations(most.unwrap_or(1)));
    let target = target(server.local_addr());
    let serving = tokio::spawn(async move {
        while let Some(association) = server.accept().await {
            tokio::spawn(async move { while association.recv().await.is_some() {} });
        }
        std::future::pending::<()>().await;
    });
    let mut started = 0;
    let stop = std::future::pending();
    let sent = send::thin(&target, &load(connections), stop, |_, count| started = count).await;
    serving.abort();
    sent.map(|(sent, _)| (sent, started))
}

#[tokio::test]
async fn one_that_is_refused_does_not_end_the_others() {
    let (sent, started) = send_to_server_of(Some(2), 3).await.expect("two of three");
    assert_eq!((sent.connections, sent.not_set_up, sent.broken, started), (2, 1, 0, 2));
    assert_eq!((sent.messages, sent.undelivered), (20, 0));
    assert!(sent.table(false).contains("1 connections could not be set up"));
}

#[tokio::test]
async fn where_all_are_refused_the_error_says_why() {
    let result = send_to_server_of(None, 3).await;
    assert!(matches!(result, Err(LoadError::Connect(_))), "{result:?}");
}

#[tokio::test]
async fn an_endpoint_has_a_connection_to_each_receiver() {
    let accepting = || EndpointConfig::default().accept(true);
    let first = bind(([127, 0, 0, 1], 0).into(), accepting());
    let remote = first.local_addr();
    let second = bind(([127, 0, 0, 2], remote.port()).into(), accepting());
    let receivers = [first.clone(), second.clone()];
    let receiving = tokio::spawn(async move {
        receive::thin(&receivers, std::io::sink(), |_| {}, std::future::pending()).await
    });
    let target = Target { more_receivers: vec![second.local_addr().ip()], ..target(remote) };
    let mut endpoints = 0;
    let stop = std::future::pending();
    let sent = send::thin(&target, &load(5), stop, |all, _| endpoints = all.len()).await;
    let (sent, lingering) = sent.expect("both receive");
    assert_eq!((endpoints, sent.connections, sent.broken, sent.undelivered), (3, 5, 0, 0));
    lingering.linger(Duration::ZERO).await;
    let received = receiving.await.expect("no panic").expect("a sink takes everything");
    assert_eq!((received.connections, received.messages, received.missing), (5, 50, 0));
    // Connections 0, 2 and 4 are those of the first receiver.
    let packets = [first, second].map(|it| it.statistics().packets_received);
    assert!(packets.iter().all(|&count| count >= 20), "{packets:?}");
}
