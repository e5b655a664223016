//! Clients behind one address with the same SCTP port, as behind a NAT, are separate associations.

use std::net::SocketAddr;
use std::time::Duration;

use rexmit::{Endpoint, EndpointConfig};
use rexmit_core::{Instant, Machine, Route, Seed};
use rexmit_sctp::{AssociationId, Event, OutboundMessage};
use tokio::net::UdpSocket;

/// The SCTP port of all endpoints.
const PORT: u16 = 5000;
/// Clients in the test that is not ignored.
const CLIENTS: u32 = 500;

/// Sends every received message back, for all associations.
async fn serve(server: Endpoint) {
    while let Some(association) = server.accept().await {
        tokio::spawn(async move {
            while let Some(message) = association.recv().await {
                let _ = association.stream(message.stream).send(message.payload).await;
            }
        });
    }
}

/// A client with a UDP port of its own.
struct Client {
    number: u32,
    socket: UdpSocket,
    endpoint: rexmit_sctp::Endpoint,
    id: Option<AssociationId>,
    connected_after: Option<Duration>,
}

#[expect(clippy::disallowed_methods, reason = "the clock of the clients")]
fn clock() -> tokio::time::Instant {
    tokio::time::Instant::now()
}

impl Client {
    async fn new(number: u32) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.expect("a port is free");
        let config = EndpointConfig::default().port(PORT);
        let seed = Seed::from_u64(number.into());
        let endpoint = rexmit_sctp::Endpoint::new(config, &seed).expect("a valid configuration");
        Self { number, socket, endpoint, id: None, connected_after: None }
    }

    /// Connects, sends its number, and waits for the echo. Returns how long the connecting took.
    async fn run(mut self, server: SocketAddr, begun: tokio::time::Instant) -> Duration {
        let now =
            |begun: tokio::time::Instant| Instant::ZERO + clock().saturating_duration_since(begun);
        let local = self.socket.local_addr().expect("it is bound");
        let route = Route { local, remote: server };
        self.id = self.endpoint.connect(now(begun), route, PORT).ok();
        let id = self.id.expect("a new association");
        let number = self.number.to_be_bytes().to_vec();
        self.endpoint.send(now(begun), id, OutboundMessage::new(0, number.clone())).unwrap();
        let (mut packet, mut buffer) = (Vec::new(), [0; 2048]);
        loop {
            while self.endpoint.poll_transmit(now(begun), &mut packet).is_some() {
                let _ = self.socket.send_to(&packet, server).await;
            }
            while let Some((_, event)) = self.endpoint.poll_event() {
                assert!(!matches!(event, Event::Closed(_)), "client {}: {event:?}", self.number);
                if matches!(event, Event::Connected { .. }) {
                    self.connected_after = Some(clock().saturating_duration_since(begun));
                }
            }
            if let Some(message) = self.endpoint.receive(now(begun), id) {
                assert_eq!(message.payload, number, "the answer to another client");
                return self.connected_after.expect("it is connected");
            }
            let due = self.endpoint.poll_timeout().expect("something is awaited");
            let due = begun + (due - Instant::ZERO);
            tokio::select! {
                received = self.socket.recv_from(&mut buffer) => {
                    let Ok((len, _)) = received else { continue };
                    self.endpoint.handle_input(now(begun), route, &buffer[..len]);
                }
                () = tokio::time::sleep_until(due) => self.endpoint.handle_timeout(now(begun)),
            }
        }
    }
}

/// The time until the last of `count` clients was connected.
async fn connect_all(count: u32) -> Duration {
    let config = EndpointConfig::default().port(PORT).accept(true);
    let server = Endpoint::bind_unencrypted("127.0.0.1:0".parse().unwrap(), config).unwrap();
    let address = server.local_addr();
    let handle = server.clone();
    tokio::spawn(serve(server));
    let mut clients = Vec::new();
    for number in 0..count {
        clients.push(Client::new(number).await);
    }
    let begun = clock();
    let running: Vec<_> =
        clients.into_iter().map(|client| tokio::spawn(client.run(address, begun))).collect();
    let mut last = Duration::ZERO;
    for client in running {
        last = last.max(client.await.expect("each gets its own answer"));
    }
    let protocol = handle.statistics().protocol;
    assert_eq!(protocol.refused_for_limit, 0);
    last
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_behind_one_address_are_connected_and_not_mixed_up() {
    let wait = tokio::time::timeout(Duration::from_secs(120), connect_all(CLIENTS));
    let last = wait.await.expect("all of them get their answer");
    eprintln!("{CLIENTS} clients: the last was connected after {last:?}");
}

/// The measurement of docs/security.md: `cargo test --release -p rexmit --test one_address -- --ignored`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures: 10,000 clients, on a machine that does nothing else"]
async fn ten_thousand_clients_connect_within_five_seconds() {
    let last = connect_all(10_000).await;
    eprintln!("10,000 clients: the last was connected after {last:?}");
    assert!(last < Duration::from_secs(5), "{last:?}");
}
