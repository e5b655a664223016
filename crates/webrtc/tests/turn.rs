//! Candidates of STUN and TURN servers, with coturn as the server.

#![cfg(all(target_os = "linux", feature = "tokio"))]

mod coturn;

use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

use coturn::{Coturn, PASSWORD, USER};
use rexmit_dtls::Identity;
use rexmit_webrtc::{
    AgentConfig, CandidateKind, ChannelConfig, Connection, Event, IceMode, IceServer, Message,
    ServeConfig, Server,
};

const TIME_LIMIT: Duration = Duration::from_secs(60);

async fn coturn() -> Option<Coturn> {
    Coturn::start(Ipv4Addr::LOCALHOST.into()).await
}

fn turn(coturn: &Coturn, password: &str) -> IceServer {
    let (user, password) = (USER.to_owned(), password.to_owned());
    IceServer::Turn { address: coturn.address, user, password }
}

fn config() -> ServeConfig {
    let agent = AgentConfig::new(Identity::generate().unwrap());
    let mut config = ServeConfig::new(agent);
    config.agent.ice = IceMode::Full;
    config
}

async fn bind(config: ServeConfig) -> Server {
    Server::bind("127.0.0.1:0".parse().unwrap(), config).await.unwrap()
}

fn kinds(server: &Server) -> Vec<CandidateKind> {
    server.candidates().iter().map(|it| it.kind).collect()
}

/// The next event that fits.
async fn next<R>(connection: &mut Connection, fits: impl Fn(Event) -> Option<R>) -> R {
    let wait = async {
        loop {
            let event = connection.event().await.expect("a connection");
            assert!(!matches!(event, Event::Closed(_)), "{event:?}");
            if let Some(found) = fits(event) {
                return found;
            }
        }
    };
    tokio::time::timeout(TIME_LIMIT, wait).await.expect("an event")
}

/// Sends messages from `from` to `to`, and checks that they arrive in order.
async fn exchange(from: &Connection, to: &mut Connection) {
    let channel = from.open(ChannelConfig::new("numbers")).unwrap();
    for n in 0..100 {
        // Some as large as a packet.
        let text = format!("{n} {}", "x".repeat(n * 30));
        from.send(channel, Message::text(text)).await.unwrap();
    }
    for n in 0..100 {
        let text = next(to, |event| match event {
            Event::Message { message, .. } => message.as_text().map(str::to_owned),
            _ => None,
        });
        assert!(text.await.starts_with(&format!("{n} ")));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_go_by_a_turn_server_and_across_an_ice_restart() {
    let Some(coturn) = coturn().await else { return };
    let relayed = bind(config().servers(vec![turn(&coturn, PASSWORD)]).relay_only(true)).await;
    assert_eq!(kinds(&relayed), [CandidateKind::Relayed]);
    // The server's STUN answer is this socket's own address: no candidate of its own.
    let direct = bind(config().servers(vec![IceServer::Stun(coturn.address)])).await;
    assert_eq!(kinds(&direct), [CandidateKind::Host]);

    let (offer, mut one) = relayed.offer().unwrap();
    assert_eq!(offer.matches("typ relay raddr 0.0.0.0 rport 9").count(), 1);
    assert!(!offer.contains("typ host"), "{offer}");
    let (answer, mut other) = direct.answer(&offer).unwrap();
    one.accept(&answer).unwrap();
    for connection in [&mut one, &mut other] {
        next(connection, |event| (event == Event::Connected).then_some(())).await;
    }
    assert!(one.is_relayed() && !other.is_relayed());
    exchange(&one, &mut other).await;
    exchange(&other, &mut one).await;

    let offer = other.restart_ice().unwrap();
    let answer = one.answer_again(&offer).unwrap();
    other.accept(&answer).unwrap();
    for connection in [&mut one, &mut other] {
        next(connection, |event| (event == Event::IceRestarted).then_some(())).await;
    }
    assert!(one.is_relayed());
    exchange(&one, &mut other).await;
}

/// The reflexive address is the socket's own here, which the agent does not know: it was told a wrong one, as behind a NAT.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stun_server_shows_the_address_beyond_a_nat() {
    let Some(coturn) = coturn().await else { return };
    // Addresses of the socket itself are configured wrongly, as they are behind a NAT.
    let mut behind = config().servers(vec![IceServer::Stun(coturn.address)]);
    behind.agent.addresses = vec!["192.0.2.7:9".parse().unwrap()];
    let behind = bind(behind).await;
    assert_eq!(kinds(&behind), [CandidateKind::Host, CandidateKind::ServerReflexive]);
    assert_eq!(behind.candidates()[1].address, behind.local_addr());
    // A peer that sends only to what the description has, as one that is lite does not: it checks both.
    let full = bind(config()).await;
    let (offer, mut one) = behind.offer().unwrap();
    let (answer, mut other) = full.answer(&offer).unwrap();
    one.accept(&answer).unwrap();
    for connection in [&mut one, &mut other] {
        next(connection, |event| (event == Event::Connected).then_some(())).await;
    }
    exchange(&other, &mut one).await;
}

/// Wrong credentials, and a server that does not answer: binding ends, and the other candidates are used.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_refuses_or_is_silent_does_not_prevent_others() {
    let Some(coturn) = coturn().await else { return };
    let refused = bind(config().servers(vec![turn(&coturn, "wrong")])).await;
    assert_eq!(kinds(&refused), [CandidateKind::Host]);
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let servers = vec![IceServer::Stun(silent.local_addr().unwrap()), turn(&coturn, PASSWORD)];
    let gathered = bind(config().servers(servers)).await;
    assert_eq!(kinds(&gathered), [CandidateKind::Host, CandidateKind::Relayed]);
}
