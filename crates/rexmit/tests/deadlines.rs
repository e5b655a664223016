//! Time limits of calls when the peer has disappeared.

mod common;

use std::net::UdpSocket;
use std::time::Duration;

use common::{client_config, in_time, server_config};
use rexmit::clock::now;
use rexmit::emulator::{Emulator, EmulatorConfig};
use rexmit::{
    Association, AssociationConfig, CloseReason, ConnectError, Delivery, Endpoint, EndpointConfig,
    Event, Instant, SendError, TimeLimits,
};

const LIMIT: Duration = Duration::from_millis(300);
/// The longest time that a call may take: much shorter than the protocol's own limits, and much longer than the
/// configured ones.
const SOON: Duration = Duration::from_secs(30);

fn bind(config: EndpointConfig) -> Endpoint {
    let limits = TimeLimits::default().connect(Some(LIMIT)).shutdown(Some(LIMIT));
    common::bind(config).with_time_limits(limits)
}

/// An association whose peer has vanished: its packets are dropped in both directions.
struct Killed {
    client: Endpoint,
    ours: Association,
    at: Instant,
    /// Kept alive, but unreachable.
    _peer: (Endpoint, Association),
}

async fn killed(config: AssociationConfig) -> Killed {
    let server = common::bind(server_config());
    let link = EmulatorConfig::new("127.0.0.1:0".parse().unwrap(), server.local_addr());
    let link = Emulator::start(&link).unwrap();
    let client = common::bind(client_config().association(config.into()));
    let connecting = client.connect(link.local_addr(), server.port());
    let (ours, theirs) = in_time(async { tokio::join!(connecting, server.accept()) }).await;
    let (ours, theirs) = (ours.unwrap(), theirs.unwrap());
    ours.stream(0).send("hello").await.unwrap();
    assert_eq!(in_time(theirs.recv()).await.unwrap().payload, "hello");
    link.stop().unwrap();
    let limits = TimeLimits::default().shutdown(Some(LIMIT));
    let client = client.with_time_limits(limits);
    Killed { client, ours, at: now(), _peer: (server, theirs) }
}

#[tokio::test]
async fn connect_gives_up_when_its_time_is_over() {
    let client = bind(client_config());
    let nobody = UdpSocket::bind("127.0.0.1:0").unwrap();
    let start = now();
    let attempt = client.connect(nobody.local_addr().unwrap(), 5000);
    let error = in_time(attempt).await.expect_err("no peer answers");
    assert!(matches!(error, ConnectError::NoAnswer { waited, .. } if waited >= LIMIT), "{error}");
    assert!((LIMIT..SOON).contains(&(now() - start)));
    assert_eq!(client.association_count(), 0, "the attempt was cancelled");
}

#[tokio::test]
async fn shutdown_of_an_association_aborts_it_after_its_time_limit() {
    let peer = killed(AssociationConfig::rfc9260()).await;
    peer.ours.stream(0).send("lost").await.unwrap();
    let reason = in_time(peer.ours.shutdown()).await;
    assert!(matches!(&reason, CloseReason::Aborted { .. }), "{reason}");
    assert!(reason.to_string().contains("time limit"), "{reason}");
    assert!((LIMIT..SOON).contains(&(now() - peer.at)));
    let event = peer.ours.event().await;
    assert!(matches!(event, Some(Event::MessageFailed { .. })), "{event:?}");
}

/// The receiver reads so slowly that the transfer takes several times the limit.
#[tokio::test]
async fn shutdown_continues_while_data_is_acknowledged() {
    const MESSAGES: usize = 45;
    const OF_TWO_SECONDS: Duration = Duration::from_secs(2);
    let small = AssociationConfig::rfc9260().receive_buffer_bytes(10_000).max_message_bytes(10_000);
    let server = common::bind(server_config().association(small.into()));
    let limits = TimeLimits::default().shutdown(Some(OF_TWO_SECONDS));
    let client = common::bind(client_config()).with_time_limits(limits);
    let connecting = client.connect(server.local_addr(), server.port());
    let (ours, theirs) = in_time(async { tokio::join!(connecting, server.accept()) }).await;
    let (ours, theirs) = (ours.unwrap(), theirs.unwrap());
    for _ in 0..MESSAGES {
        ours.stream(0).send(vec![7; 2000]).await.unwrap();
    }
    let start = now();
    let reading = async {
        let mut received = 0;
        while theirs.recv().await.is_some() {
            received += 1;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        received
    };
    let (reason, received) = in_time(async { tokio::join!(ours.shutdown(), reading) }).await;
    assert!(matches!(reason, CloseReason::Shutdown), "{reason}");
    assert_eq!(received, MESSAGES);
    assert!(now() - start > OF_TWO_SECONDS, "it did not take longer than the limit");
}

#[tokio::test]
async fn shutdown_of_an_endpoint_aborts_remaining_associations_after_its_time_limit() {
    let peer = killed(AssociationConfig::rfc9260()).await;
    in_time(peer.client.shutdown()).await;
    assert!((LIMIT..SOON).contains(&(now() - peer.at)));
    assert!(matches!(peer.ours.close_reason(), Some(CloseReason::Aborted { .. })));
}

/// The peer needs as long as the limit, but makes progress meanwhile.
#[tokio::test]
async fn shutdown_is_graceful_while_the_peer_responds() {
    let (server, client) = (bind(server_config()), bind(client_config()));
    let client = client.with_time_limits(TimeLimits::NONE);
    let connecting = client.connect(server.local_addr(), server.port());
    let (ours, theirs) = in_time(async { tokio::join!(connecting, server.accept()) }).await;
    let (ours, theirs) = (ours.unwrap(), theirs.unwrap());
    ours.stream(0).send("bye").await.unwrap();
    assert_eq!(in_time(ours.shutdown()).await, CloseReason::Shutdown);
    assert_eq!(in_time(theirs.recv()).await.unwrap().payload, "bye");
}

#[tokio::test]
async fn a_peer_that_is_killed_while_inputs_flow_is_reported_in_time() {
    let dead_after = Duration::from_secs(3);
    let peer = killed(AssociationConfig::interactive().dead_after(Some(dead_after))).await;
    let inputs = async {
        loop {
            match peer.ours.stream(1).send_with("input", Delivery::unordered()).await {
                Ok(_) => tokio::time::sleep(Duration::from_millis(20)).await,
                Err(error) => return error,
            }
        }
    };
    assert_eq!(in_time(inputs).await, SendError::Closing);
    assert_eq!(peer.ours.close_reason(), Some(CloseReason::Unreachable));
    let waited = now() - peer.at;
    // The peer's last packet came before it was killed.
    assert!((dead_after / 2..SOON).contains(&waited), "{waited:?}");
}

#[test]
fn the_limits_are_those_that_users_expect() {
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    let limits = TimeLimits::default();
    assert_eq!((limits.connect, limits.shutdown), (seconds(10), seconds(5)));
    assert_eq!(AssociationConfig::default().failure.dead_after, seconds(15));
    for profile in ["interactive", "interactive-redundant"] {
        assert_eq!(AssociationConfig::profile(profile).unwrap().failure.dead_after, seconds(15));
    }
    assert_eq!(AssociationConfig::rfc9260().failure.dead_after, None);
}
