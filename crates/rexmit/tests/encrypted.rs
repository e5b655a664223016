//! Encrypted associations over real sockets.

use std::net::SocketAddr;
use std::time::Duration;

use rexmit::{
    Association, ConnectError, Encryption, Endpoint, EndpointConfig, HandshakeError, Identity,
    OutboundMessage, TimeLimits, Trust,
};

const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

fn server(identity: &Identity, trust: Trust) -> Endpoint {
    let config = EndpointConfig::default().accept(true);
    Endpoint::bind(ANY, config, Encryption::new(identity.clone(), trust)).unwrap()
}

fn client(identity: &Identity, trust: Trust) -> Endpoint {
    let config = EndpointConfig::default().port(0);
    Endpoint::bind(ANY, config, Encryption::new(identity.clone(), trust)).unwrap()
}

fn identities() -> [Identity; 2] {
    [(); 2].map(|()| Identity::generate().unwrap())
}

fn echo(server: &Endpoint) {
    let server = server.clone();
    tokio::spawn(async move {
        while let Some(association) = server.accept().await {
            tokio::spawn(async move {
                while let Some(message) = association.recv().await {
                    let echo = OutboundMessage::new(message.stream, message.payload);
                    if association.send(echo).await.is_err() {
                        break;
                    }
                }
            });
        }
    });
}

async fn echoes(association: &Association, count: u32, len: usize) {
    for number in 0..count {
        let mut message = vec![7; len];
        message[..4].copy_from_slice(&number.to_be_bytes());
        association.stream(1).send(message.clone()).await.unwrap();
        assert_eq!(association.recv().await.expect("an echo").payload, message);
    }
}

#[tokio::test]
async fn both_sides_know_each_other() {
    let [one, other] = identities();
    let server = server(&one, Trust::only([other.fingerprint()]));
    let client = client(&other, Trust::only([one.fingerprint()]));
    let (ours, theirs) =
        tokio::join!(client.connect(server.local_addr(), server.port()), server.accept());
    let (ours, theirs) = (ours.unwrap(), theirs.unwrap());
    assert_eq!(ours.peer_fingerprint(), Some(one.fingerprint()));
    assert_eq!(theirs.peer_fingerprint(), Some(other.fingerprint()));
    ours.stream(0).send(vec![1; 100_000]).await.unwrap();
    theirs.stream(0).send(vec![2; 100_000]).await.unwrap();
    assert_eq!(theirs.recv().await.unwrap().payload, vec![1; 100_000]);
    assert_eq!(ours.recv().await.unwrap().payload, vec![2; 100_000]);
    ours.shutdown().await;
    assert_eq!(server.statistics().encryption.unwrap().handshakes_completed, 1);
}

/// A second association with the same server needs another SCTP port, and no other handshake.
#[tokio::test]
async fn a_connection_is_used_again() {
    let [one, other] = identities();
    let server = server(&one, Trust::anyone());
    echo(&server);
    let client = client(&other, Trust::only([one.fingerprint()]));
    for _ in 0..3 {
        let association = client.connect(server.local_addr(), server.port()).await.unwrap();
        echoes(&association, 2, 1000).await;
        association.shutdown().await;
    }
    assert_eq!(server.statistics().encryption.unwrap().handshakes_completed, 1);
}

#[tokio::test]
async fn an_untrusted_client_is_refused_by_fingerprint() {
    let [one, other] = identities();
    let address = |endpoint: &Endpoint| (endpoint.local_addr(), endpoint.port());
    let not_me = server(&one, Trust::only([one.fingerprint()]));
    let anyone = server(&one, Trust::anyone());

    let wrong = client(&other, Trust::only([other.fingerprint()]));
    let (remote, port) = address(&anyone);
    let error = wrong.connect(remote, port).await.unwrap_err();
    let ConnectError::Handshake { source, .. } = &error else { panic!("{error}") };
    assert_eq!(source, &HandshakeError::Untrusted(one.fingerprint()));
    assert!(error.to_string().contains(&one.fingerprint().to_string()), "{error}");

    let (remote, port) = address(&not_me);
    let refused = client(&other, Trust::only([one.fingerprint()]));
    let error = refused.connect(remote, port).await.unwrap_err();
    let ConnectError::Handshake { source, .. } = &error else { panic!("{error}") };
    assert_eq!(source, &HandshakeError::RefusedByPeer(other.fingerprint()));
}

#[tokio::test]
async fn an_encrypted_and_an_unencrypted_endpoint_do_not_connect() {
    let [one, other] = identities();
    let limits = TimeLimits::default().connect(Some(Duration::from_millis(600)));
    let config = EndpointConfig::default().accept(true);
    let plain = Endpoint::bind_unencrypted(ANY, config).unwrap().with_time_limits(limits);
    let encrypted = client(&one, Trust::anyone()).with_time_limits(limits);
    let error = encrypted.connect(plain.local_addr(), plain.port()).await.unwrap_err();
    let ConnectError::Handshake { source: HandshakeError::NoAnswer(_), .. } = &error else {
        panic!("{error}")
    };
    let server = server(&other, Trust::anyone());
    let error = plain.connect(server.local_addr(), server.port()).await.unwrap_err();
    assert!(matches!(error, ConnectError::NoAnswer { .. }), "{error}");
}

/// Five percent of the packets are lost in each direction.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn echoes_pass_a_lossy_link() {
    use rexmit::emulator::{Emulator, EmulatorConfig};
    use rexmit::path::{Delay, Loss, PathConfig};

    let [one, other] = identities();
    let server = server(&one, Trust::anyone());
    echo(&server);
    let client = client(&other, Trust::only([one.fingerprint()]));
    let path = PathConfig {
        delay: Delay::constant(Duration::from_millis(5)),
        loss: Loss { uniform: 0.05, ..Loss::default() },
        ..PathConfig::default()
    };
    let config = EmulatorConfig::new(ANY, server.local_addr()).forward(path.clone()).backward(path);
    let emulator = Emulator::start(&config).unwrap();
    let association = client.connect(emulator.local_addr(), server.port()).await.unwrap();
    echoes(&association, 50, 400).await;
    association.shutdown().await;
}
