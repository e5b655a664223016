//! Servers and clients in one call: names, several addresses, and immediate refusals.

mod common;

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use common::in_time;
use rexmit::{
    Association, AssociationConfig, BindError, ConnectError, Delivery, Encryption, Endpoint,
    EndpointConfig, Event, Identity, TimeLimits, Trust,
};

/// A UDP port of this host to which no socket is bound.
fn closed_port(host: &str) -> SocketAddr {
    UdpSocket::bind((host, 0)).unwrap().local_addr().unwrap()
}

fn plain() -> AssociationConfig {
    AssociationConfig::default()
}

#[tokio::test]
async fn a_server_and_a_client_by_name() {
    let identity = Identity::generate().unwrap();
    let trust = Trust::only([identity.fingerprint()]);
    let server = Endpoint::listen("localhost:0", identity).await.unwrap();
    let name = format!("localhost:{}", server.local_addr().port());
    // It can be spawned, and no handle of the endpoint is left.
    let client = tokio::spawn(async move {
        let client = Association::connect(name, trust).await.unwrap();
        client.stream(0).send("hello").await.unwrap();
        client.shutdown().await
    });
    let theirs = in_time(server.accept()).await.unwrap();
    assert_eq!(in_time(theirs.recv()).await.unwrap().payload, "hello");
    assert_eq!(in_time(theirs.recv()).await, None);
    assert_eq!(in_time(client).await.unwrap(), theirs.closed().await);
}

#[tokio::test]
async fn a_server_that_the_client_does_not_trust_is_refused() {
    let [known, other] = [(); 2].map(|()| Identity::generate().unwrap());
    let server = Endpoint::listen("127.0.0.1:0", known).await.unwrap();
    let trust = Trust::only([other.fingerprint()]);
    let error = in_time(Association::connect(server.local_addr(), trust)).await.unwrap_err();
    assert!(matches!(error, ConnectError::Handshake { .. }), "{error}");
}

#[tokio::test]
async fn a_server_refuses_clients_that_it_does_not_know() {
    let [client, stranger] = [(); 2].map(|()| Identity::generate().unwrap());
    let encryption =
        Encryption::new(Identity::generate().unwrap(), Trust::only([client.fingerprint()]));
    let profile = AssociationConfig::interactive_redundant();
    let server = Endpoint::listen_with("127.0.0.1:0", encryption, profile).await.unwrap();
    let connect = |identity| {
        let encryption = Encryption::new(identity, Trust::anyone());
        Association::connect_with(server.local_addr(), encryption, plain())
    };
    assert!(in_time(connect(stranger)).await.is_err());
    in_time(connect(client)).await.unwrap();
}

/// Without the system's report, each attempt would time out after minutes, because the endpoint has no time limits.
#[tokio::test]
#[cfg(target_os = "linux")]
async fn a_port_that_nothing_listens_on_is_refused_at_once() {
    for (own, host) in [("0.0.0.0:0", "127.0.0.1"), ("[::]:0", "127.0.0.1"), ("[::]:0", "::1")] {
        let (own, closed) = (own.parse().unwrap(), closed_port(host));
        let identity = Identity::generate().unwrap();
        let encryption = Encryption::new(identity, Trust::anyone());
        let config = EndpointConfig::default;
        for endpoint in [
            Endpoint::bind_unencrypted(own, config()).unwrap(),
            Endpoint::bind(own, config(), encryption).unwrap(),
        ] {
            let endpoint = endpoint.with_time_limits(TimeLimits::NONE);
            let attempts =
                async { tokio::join!(endpoint.connect(closed, 1), endpoint.connect(closed, 2)) };
            let (one, other) = in_time(attempts).await;
            for error in [one.unwrap_err(), other.unwrap_err()] {
                let is_told =
                    matches!(error, ConnectError::PortUnreachable { remote } if remote == closed);
                assert!(is_told, "{error}");
            }
        }
    }
}

/// The refusal by one peer does not fail an attempt at another peer on the same socket.
#[tokio::test]
async fn a_refusal_is_of_its_peer_only() {
    let server = Endpoint::listen_unencrypted("127.0.0.1:0", plain()).await.unwrap();
    let client =
        Endpoint::bind_unencrypted("127.0.0.1:0".parse().unwrap(), EndpointConfig::default());
    let client = client.unwrap().with_time_limits(TimeLimits::NONE);
    for _ in 0..5 {
        let closed = closed_port("127.0.0.1");
        let attempts = async {
            tokio::join!(client.connect(closed, 5000), client.connect(server.local_addr(), 5000))
        };
        let (refused, connected) = in_time(attempts).await;
        assert!(refused.is_err());
        in_time(connected.unwrap().shutdown()).await;
    }
}

#[tokio::test]
async fn the_addresses_of_a_name_are_tried_until_one_responds() {
    let server = Endpoint::listen_unencrypted("127.0.0.1:0", plain()).await.unwrap();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let silent = silent.local_addr().map(|at| (silent, at)).unwrap();
    let closed = closed_port("127.0.0.1");
    for first in [closed, silent.1] {
        let addresses = [first, server.local_addr()];
        let connecting = Association::connect_unencrypted(&addresses[..], plain());
        let association = in_time(connecting).await.unwrap();
        assert_eq!(association.peer_addr(), server.local_addr());
    }
    let nobody = [closed; 2];
    let error = in_time(Association::connect_unencrypted(&nobody[..], plain())).await;
    assert!(matches!(error, Err(ConnectError::PortUnreachable { .. })), "{error:?}");
    let nothing: [SocketAddr; 0] = [];
    let error = Association::connect_unencrypted(&nothing[..], plain()).await;
    assert!(matches!(error, Err(ConnectError::Unresolved { .. })), "{error:?}");
}

#[tokio::test]
async fn a_wrong_address_is_named() {
    let error = Endpoint::listen_unencrypted("nonsense", plain()).await.unwrap_err();
    assert!(matches!(&error, BindError::Unresolved { .. }), "{error}");
    assert!(error.to_string().contains("nonsense"), "{error}");
    let error = Association::connect_unencrypted("host:port", plain()).await.unwrap_err();
    assert!(error.to_string().contains("host:port"), "{error}");
}

#[tokio::test]
async fn an_endpoint_that_cannot_reach_the_peer_names_the_remedy() {
    let encryption = || Encryption::new(Identity::generate().unwrap(), Trust::anyone());
    let table =
        [("127.0.0.1:0", "192.0.2.1:9899", "0.0.0.0:0"), ("127.0.0.1:0", "[::1]:9899", "[::]:0")];
    for (own, remote, remedy) in table {
        let (own, remote) = (own.parse().unwrap(), remote.parse().unwrap());
        for endpoint in [
            Endpoint::bind_unencrypted(own, EndpointConfig::default()).unwrap(),
            Endpoint::bind(own, EndpointConfig::default(), encryption()).unwrap(),
        ] {
            let endpoint = endpoint.with_time_limits(TimeLimits::NONE);
            let error = in_time(endpoint.connect(remote, 5000)).await.unwrap_err();
            assert!(matches!(error, ConnectError::Unreachable { .. }), "{error}");
            assert!(error.to_string().contains(remedy), "{error}");
        }
    }
}

#[tokio::test]
async fn a_delivery_limits_when_a_message_is_abandoned() {
    let server = Endpoint::listen_unencrypted("127.0.0.1:0", plain()).await.unwrap();
    let association = Association::connect_unencrypted(server.local_addr(), plain()).await.unwrap();
    let theirs = in_time(server.accept()).await.unwrap();
    let delivery = Delivery::unordered().ppid(7).immediate(true);
    association.stream(3).send_with("message", delivery).await.unwrap();
    let message = in_time(theirs.recv()).await.unwrap();
    assert_eq!((message.stream, message.ppid, message.unordered), (3, 7, true));
    let over =
        association.stream(0).try_send_with("late", Delivery::ordered().lifetime(Duration::ZERO));
    let over = over.unwrap();
    // The message is abandoned, unless it was sent before the clock advanced.
    association.shutdown().await;
    while let Some(event) = association.event().await {
        if let Event::MessageFailed { id, .. } = event {
            assert_eq!(id, over);
        }
    }
}
