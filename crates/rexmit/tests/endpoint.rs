//! Endpoints over UDP on loopback.

mod common;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use common::{Pair, bind, client_config, in_time, server_config};
use rexmit::endpoint::ACCEPT_BACKLOG;
use rexmit::{
    AssociationConfig, BindError, CloseReason, ConnectError, Endpoint, EndpointConfig, Event,
    OutboundMessage, SendError, TrySendError,
};
use rexmit_core::{Instant, Machine, Route, Seed};

#[tokio::test]
async fn echo() {
    let pair = Pair::connect().await;
    let echo = async {
        while let Some(message) = pair.theirs.recv().await {
            pair.theirs.stream(message.stream).send(message.payload).await.unwrap();
        }
    };
    let client = async {
        for number in 0..100_u16 {
            let payload = vec![number as u8; usize::from(number) * 100 + 1];
            pair.ours.stream(number % 10).send(payload.clone()).await.unwrap();
            let answer = pair.ours.recv().await.unwrap();
            assert_eq!((answer.stream, answer.payload), (number % 10, payload.into()));
        }
        assert_eq!(pair.ours.shutdown().await, CloseReason::Shutdown);
    };
    in_time(async { tokio::join!(echo, client) }).await;
    assert_eq!(in_time(pair.theirs.closed()).await, CloseReason::Shutdown);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_of_all_sizes_arrive_in_order_from_concurrent_senders() {
    let pair = Pair::connect().await;
    let senders: Vec<_> = (0..8)
        .map(|number| {
            let stream = pair.ours.stream(number);
            tokio::spawn(async move {
                for message in 0..500_u32 {
                    let len = (message as usize * 7919) % 20_000 + 4;
                    let mut payload = vec![number as u8; len];
                    payload[..4].copy_from_slice(&message.to_be_bytes());
                    stream.send(payload).await.unwrap();
                }
            })
        })
        .collect();
    let mut next = [0_u32; 8];
    for _ in 0..8 * 500 {
        let message = in_time(pair.theirs.recv()).await.expect("a message");
        let next = &mut next[usize::from(message.stream)];
        assert_eq!(message.payload[..4], next.to_be_bytes());
        assert_eq!(message.payload.len(), (*next as usize * 7919) % 20_000 + 4);
        *next += 1;
    }
    for sender in senders {
        sender.await.unwrap();
    }
    assert!(pair.theirs.try_recv().is_none());
}

#[tokio::test]
async fn a_receiver_that_does_not_receive_makes_the_sender_wait() {
    const SIZE: usize = 1000;
    let config = AssociationConfig::default()
        .receive_buffer_bytes(64 * 1024)
        .send_buffer_bytes(64 * 1024)
        .max_message_bytes(32 * 1024);
    let pair = Pair::connect_with(config).await;
    let (mut accepted, mut pauses) = (0_usize, 0);
    loop {
        let message = OutboundMessage::new(0, vec![accepted as u8; SIZE]);
        match pair.ours.try_send(message.clone()) {
            Ok(_) => accepted += 1,
            Err(error) => {
                assert_eq!(error, TrySendError::Full);
                // Sent data arrives meanwhile and makes room, while the receiver has any.
                let limit = Duration::from_secs(2);
                match tokio::time::timeout(limit, pair.ours.send(message)).await {
                    Ok(sent) => accepted += usize::from(sent.is_ok()),
                    // On a busy machine a pause alone does not show that both buffers are full.
                    Err(_) if accepted * SIZE > 64 * 1024 => break,
                    Err(_) => pauses += 1,
                }
            }
        }
        assert!(accepted * SIZE < 4 * 64 * 1024, "nothing holds the sender back");
        assert!(pauses < 30, "not even the send buffer is used");
    }

    // Once the receiver reads, the transfer continues, without loss or duplicates.
    let waiting = pair.ours.clone();
    let sender = tokio::spawn(async move {
        for number in accepted..accepted + 200 {
            let message = OutboundMessage::new(0, vec![number as u8; SIZE]);
            waiting.send(message).await.unwrap();
        }
    });
    for number in 0..accepted + 200 {
        let message = in_time(pair.theirs.recv()).await.expect("a message");
        assert_eq!(message.payload, vec![number as u8; SIZE]);
    }
    sender.await.unwrap();
}

#[tokio::test]
async fn messages_before_a_graceful_close_arrive() {
    let pair = Pair::connect().await;
    for number in 0..200_u8 {
        pair.ours.stream(0).send(vec![number; 3000]).await.unwrap();
    }
    let reader = async {
        let mut count = 0_u8;
        while let Some(message) = pair.theirs.recv().await {
            assert_eq!(message.payload, vec![count; 3000]);
            count += 1;
        }
        assert_eq!(count, 200);
    };
    let (reason, ()) = in_time(async { tokio::join!(pair.ours.shutdown(), reader) }).await;
    assert_eq!(reason, CloseReason::Shutdown);
    let refused = pair.ours.try_send(OutboundMessage::new(0, "late"));
    assert_eq!(refused, Err(TrySendError::Refused(SendError::Closing)));
}

#[tokio::test]
async fn unread_messages_can_be_read_after_the_end() {
    let pair = Pair::connect().await;
    for text in ["one", "two", "three"] {
        pair.ours.stream(1).send(text).await.unwrap();
    }
    assert_eq!(in_time(pair.ours.shutdown()).await, CloseReason::Shutdown);
    assert_eq!(in_time(pair.theirs.closed()).await, CloseReason::Shutdown);
    for text in ["one", "two", "three"] {
        assert_eq!(pair.theirs.recv().await.unwrap().payload, text);
    }
    assert!(pair.theirs.recv().await.is_none());
    assert!(pair.theirs.recv().await.is_none());
}

#[tokio::test]
async fn an_abort_carries_its_reason_and_reports_undelivered_messages() {
    let config = AssociationConfig::default().receive_buffer_bytes(8192).max_message_bytes(4096);
    let pair = Pair::connect_with(config).await;
    let mut accepted = 0;
    while pair.ours.try_send(OutboundMessage::new(0, vec![7; 1000])).is_ok() {
        accepted += 1;
    }
    pair.ours.abort(b"enough");
    assert!(
        matches!(pair.ours.closed().await, CloseReason::Aborted { reason } if reason == "enough")
    );
    match in_time(pair.theirs.closed()).await {
        CloseReason::AbortedByPeer { cause, reason } => {
            assert_eq!((cause, &reason[..]), (12, &b"enough"[..]));
        }
        other => panic!("{other:?}"),
    }
    let (mut failed, mut delivered) = (0, 0);
    while let Some(event) = in_time(pair.ours.event()).await {
        match event {
            Event::MessageFailed { message, .. } => {
                assert_eq!(message.payload, vec![7; 1000]);
                failed += 1;
            }
            Event::Closed(reason) => assert!(matches!(reason, CloseReason::Aborted { .. })),
            other => panic!("{other:?}"),
        }
    }
    while pair.theirs.recv().await.is_some() {
        delivered += 1;
    }
    // Data in flight may be delivered although its ACK never arrived.
    assert!(failed > 0 && failed + delivered >= accepted, "{failed} {delivered} {accepted}");
}

#[tokio::test]
async fn no_peer_responds() {
    let client = bind(client_config());
    let once = AssociationConfig::rfc9260().max_init_retransmits(0);
    let nobody = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = nobody.local_addr().unwrap();
    let attempt = client.connect_with(address, 5000, Arc::new(once));
    let error = in_time(attempt).await.expect_err("no peer");
    assert!(matches!(error, ConnectError::NoAnswer { remote, .. } if remote == address));
    let text = error.to_string();
    // RTO.Initial, and what a busy machine adds.
    assert!(text.contains(&format!("5000 of {address} did not answer within 1.")), "{text}");
    assert_eq!(client.association_count(), 0);
}

#[tokio::test]
async fn a_peer_that_accepts_nothing_says_so() {
    let (client, server) = (bind(client_config()), bind(client_config()));
    let port = server.port();
    let error = in_time(client.connect(server.local_addr(), port)).await.expect_err("refused");
    assert!(matches!(error, ConnectError::RefusedByPeer { .. }), "{error}");
    assert!(error.to_string().contains("refused the association"), "{error}");
    assert!(server.accept().await.is_none());
}

#[tokio::test]
async fn an_unreachable_peer_fails_at_once() {
    let client = bind(client_config());
    for address in ["[2001:db8::1]:9899", "127.0.0.1:0"] {
        let error = client.connect(address.parse().unwrap(), 5000).await.expect_err("no way");
        assert!(matches!(error, ConnectError::Unreachable { .. }), "{error}");
        assert!(error.to_string().starts_with("nothing can be sent to "), "{error}");
    }
    assert_eq!(client.association_count(), 0);
}

#[tokio::test]
async fn an_address_in_use_is_named() {
    let first = bind(server_config());
    let error =
        Endpoint::bind_unencrypted(first.local_addr(), server_config()).expect_err("it is in use");
    assert!(matches!(error, BindError::InUse { .. }));
    let text = error.to_string();
    assert!(text.contains(&format!("{} is in use: choose another", first.local_addr())), "{text}");

    let error = Endpoint::bind_unencrypted("192.0.2.1:9899".parse().unwrap(), server_config());
    assert!(matches!(error, Err(BindError::NotLocal { .. })));
    let nonsense = server_config().max_associations(0);
    let error = Endpoint::bind_unencrypted("127.0.0.1:0".parse().unwrap(), nonsense);
    assert!(matches!(error, Err(BindError::Config(_))));
}

#[tokio::test]
async fn a_cancelled_connection_attempt_leaves_no_state() {
    let client = bind(client_config());
    let nobody = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let attempt = client.connect(nobody.local_addr().unwrap(), 5000);
    assert!(tokio::time::timeout(Duration::from_millis(20), attempt).await.is_err());
    assert_eq!(client.association_count(), 0);
    // And it may be tried again.
    let attempt = client.connect(nobody.local_addr().unwrap(), 5000);
    assert!(tokio::time::timeout(Duration::from_millis(20), attempt).await.is_err());
}

#[tokio::test]
async fn dropping_the_last_handle_shuts_down_gracefully() {
    let pair = Pair::connect().await;
    let clone = pair.ours.clone();
    for number in 0..100_u8 {
        clone.stream(0).send(vec![number; 2000]).await.unwrap();
    }
    drop(pair.ours);
    assert!(pair.theirs.close_reason().is_none(), "a handle is left");
    // The peer has sent more than fits, which is never read.
    let limit = AssociationConfig::default().buffers.receive_bytes;
    let filled = async {
        while clone.statistics().receive_buffered_bytes < limit - 10_000
            || pair.theirs.try_send(OutboundMessage::new(0, vec![0; 1000])).is_ok()
        {
            let _ = pair.theirs.try_send(OutboundMessage::new(0, vec![0; 1000]));
            tokio::task::yield_now().await;
        }
    };
    in_time(filled).await;
    drop(clone);
    for number in 0..100_u8 {
        let message = in_time(pair.theirs.recv()).await.expect("a message");
        assert_eq!(message.payload, vec![number; 2000]);
    }
    assert!(in_time(pair.theirs.recv()).await.is_none());
    assert_eq!(pair.theirs.close_reason(), Some(CloseReason::Shutdown));
    assert_eq!(pair.client.association_count(), 0);
}

#[tokio::test]
async fn the_socket_is_closed_with_the_last_handle() {
    let Pair { client, server, ours, theirs } = Pair::connect().await;
    let address = client.local_addr();
    let other = client.clone();
    drop(client);
    drop(other);
    // The association keeps the address in use.
    assert!(Endpoint::bind_unencrypted(address, client_config()).is_err());
    theirs.stream(0).send("still there").await.unwrap();
    assert_eq!(in_time(ours.recv()).await.unwrap().payload, "still there");
    drop(ours);
    assert_eq!(in_time(theirs.closed()).await, CloseReason::Shutdown);
    let bound = async {
        while Endpoint::bind_unencrypted(address, client_config()).is_err() {
            tokio::task::yield_now().await;
        }
    };
    in_time(bound).await;
    drop(server);
}

#[tokio::test]
async fn a_shut_down_endpoint_ends_its_associations_and_takes_no_more() {
    let pair = Pair::connect().await;
    let waiting = {
        let server = pair.server.clone();
        tokio::spawn(async move { server.accept().await.is_none() })
    };
    pair.theirs.stream(0).send("last words").await.unwrap();
    in_time(pair.server.shutdown()).await;
    assert_eq!(pair.theirs.close_reason(), Some(CloseReason::Shutdown));
    assert_eq!(in_time(pair.ours.recv()).await.unwrap().payload, "last words");
    assert!(in_time(waiting).await.unwrap(), "accept goes on");
    let error = pair.server.connect(pair.client.local_addr(), 5000).await.expect_err("closed");
    assert!(matches!(error, ConnectError::EndpointClosed));
    let late = bind(client_config());
    let error = in_time(late.connect(pair.server.local_addr(), pair.server.port())).await;
    assert!(error.is_err() || in_time(error.unwrap().closed()).await != CloseReason::Shutdown);
}

#[tokio::test]
async fn an_aborted_endpoint_ends_at_once() {
    let pair = Pair::connect().await;
    pair.server.abort(b"going down");
    assert!(matches!(pair.theirs.close_reason(), Some(CloseReason::Aborted { .. })));
    let reason = in_time(pair.ours.closed()).await;
    assert!(matches!(reason, CloseReason::AbortedByPeer { .. }), "{reason:?}");
}

/// One is accepted, one waits, and one comes later: the first goes on, and nothing of the others is acknowledged and lost.
#[tokio::test]
async fn an_endpoint_that_stops_accepting_refuses_others() {
    let pair = Pair::connect().await;
    let (address, port) = (pair.server.local_addr(), pair.server.port());
    let client = bind(client_config());
    let waiting = in_time(client.connect(address, port)).await.unwrap();
    // One that has ended already leaves nothing behind.
    let gone = bind(client_config());
    let ended = in_time(gone.connect(address, port)).await.unwrap();
    ended.stream(0).send("unread").await.unwrap();
    in_time(ended.shutdown()).await;
    in_time(async {
        while pair.server.association_count() != 2 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    pair.server.stop_accepting();
    let reason = in_time(waiting.closed()).await;
    assert!(matches!(reason, CloseReason::AbortedByPeer { .. }), "{reason:?}");
    let late = bind(client_config());
    in_time(late.connect(address, port)).await.expect_err("it is refused");
    assert!(in_time(pair.server.accept()).await.is_none());
    assert_eq!(pair.server.statistics().not_accepted, 1);
    assert_eq!(pair.server.association_count(), 1);
    pair.theirs.stream(0).send("still here").await.unwrap();
    assert_eq!(in_time(pair.ours.recv()).await.unwrap().payload, "still here");
}

#[tokio::test]
async fn unaccepted_associations_are_limited() {
    const TOO_MANY: usize = 3;
    let server = bind(server_config());
    // All clients share one socket, since the process may not open thousands.
    let socket = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let route = Route { local: socket.local_addr().unwrap(), remote: server.local_addr() };
    let mut packet = Vec::new();
    for port in 0..(ACCEPT_BACKLOG + TOO_MANY) as u16 {
        let config = EndpointConfig::default().port(port + 10_000);
        let seed = Seed::from_u64(port.into());
        let mut client = rexmit_sctp::Endpoint::new(config, &seed).unwrap();
        client.connect(Instant::ZERO, route, server.port()).unwrap();
        while client.poll_event().is_none() {
            while client.poll_transmit(Instant::ZERO, &mut packet).is_some() {
                socket.send_to(&packet, route.remote).await.unwrap();
            }
            let mut answer = [0; 2000];
            let (len, _) = in_time(socket.recv_from(&mut answer)).await.unwrap();
            client.handle_input(Instant::ZERO, route, &answer[..len]);
        }
    }
    assert_eq!(server.statistics().not_accepted, TOO_MANY as u64);
    assert_eq!(server.association_count(), ACCEPT_BACKLOG);
    for _ in 0..ACCEPT_BACKLOG {
        in_time(server.accept()).await.unwrap();
    }
}

/// Connects from a socket that a restarted peer takes over.
async fn connect_from(socket: &tokio::net::UdpSocket, server: &Endpoint, seed: u64) {
    let config = EndpointConfig::default().port(5000);
    let mut peer = rexmit_sctp::Endpoint::new(config, &Seed::from_u64(seed)).unwrap();
    let route = Route { local: socket.local_addr().unwrap(), remote: server.local_addr() };
    let now = Instant::ZERO;
    let id = peer.connect(now, route, server.port()).unwrap();
    peer.send(now, id, OutboundMessage::new(0, "hello")).unwrap();
    let (mut packet, mut buffer) = (Vec::new(), [0; 2048]);
    loop {
        while peer.poll_transmit(now, &mut packet).is_some() {
            socket.send_to(&packet, server.local_addr()).await.unwrap();
        }
        while let Some((_, event)) = peer.poll_event() {
            if matches!(event, rexmit_sctp::Event::Connected { .. }) {
                return;
            }
        }
        let (len, _) = in_time(socket.recv_from(&mut buffer)).await.unwrap();
        peer.handle_input(now, route, &buffer[..len]);
    }
}

#[tokio::test]
async fn a_peer_that_restarts_at_the_same_port_is_the_same_association() {
    let server = bind(server_config());
    let socket = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    connect_from(&socket, &server, 1).await;
    let theirs = in_time(server.accept()).await.unwrap();
    assert_eq!(in_time(theirs.recv()).await.unwrap().payload, "hello");
    connect_from(&socket, &server, 2).await;
    assert_eq!(in_time(theirs.event()).await, Some(Event::PeerRestarted));
    assert_eq!(in_time(theirs.recv()).await.unwrap().payload, "hello");
    assert_eq!(server.association_count(), 1);
}

/// Another port of the same address may be another client: packets for the first are not sent to the second.
#[tokio::test]
async fn a_peer_at_another_port_is_another_association() {
    let Pair { client, server, ours, theirs } = Pair::connect().await;
    let again = bind(EndpointConfig::default().port(client.port()));
    let other = in_time(again.connect(server.local_addr(), server.port())).await.unwrap();
    let of_other = in_time(server.accept()).await.unwrap();
    assert_eq!(server.association_count(), 2);
    theirs.stream(0).send("for the first").await.unwrap();
    of_other.stream(0).send("for the second").await.unwrap();
    assert_eq!(in_time(ours.recv()).await.unwrap().payload, "for the first");
    assert_eq!(in_time(other.recv()).await.unwrap().payload, "for the second");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_associations_on_one_endpoint() {
    const COUNT: usize = 200;
    const MESSAGES: u32 = 50;
    let server = bind(server_config());
    let address = server.local_addr();
    let port = server.port();
    let acceptor = tokio::spawn(async move {
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..COUNT {
            let association = server.accept().await.unwrap();
            tasks.spawn(async move {
                while let Some(message) = association.recv().await {
                    association.send(OutboundMessage::new(0, message.payload)).await.unwrap();
                }
            });
        }
        tasks.join_all().await;
        server
    });
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..COUNT {
        clients.spawn(async move {
            let client = bind(client_config());
            let association = client.connect(address, port).await.unwrap();
            for number in 0..MESSAGES {
                association.stream(0).send(number.to_be_bytes().to_vec()).await.unwrap();
            }
            for number in 0..MESSAGES {
                let answer = association.recv().await.unwrap();
                assert_eq!(answer.payload, &number.to_be_bytes()[..]);
            }
            assert_eq!(association.shutdown().await, CloseReason::Shutdown);
        });
    }
    in_time(clients.join_all()).await;
    let server = in_time(acceptor).await.unwrap();
    assert_eq!(server.association_count(), 0);
}

#[tokio::test]
async fn events_report_the_fate_of_messages() {
    let config = AssociationConfig::default()
        .report_sent(true)
        .report_acknowledged(true)
        .sack_delay(Duration::ZERO);
    let pair = Pair::connect_with(config).await;
    let id = pair.ours.stream(0).send("hello").await.unwrap();
    assert_eq!(in_time(pair.ours.event()).await, Some(Event::MessageSent(id)));
    assert_eq!(in_time(pair.ours.event()).await, Some(Event::MessageAcknowledged(id)));
    assert_eq!(pair.ours.try_event(), None);
    pair.ours.shutdown().await;
    assert_eq!(pair.ours.event().await, Some(Event::Closed(CloseReason::Shutdown)));
    assert_eq!(pair.ours.event().await, None);
}

#[tokio::test]
async fn a_wildcard_endpoint_serves_ipv4_and_ipv6_and_replies_from_the_addressed_ip() {
    let server = Endpoint::bind_unencrypted("[::]:0".parse().unwrap(), server_config()).unwrap();
    for (own, asked) in [("127.0.0.1", "127.0.0.1"), ("127.0.0.1", "127.0.0.2"), ("::1", "::1")] {
        let [own, asked]: [IpAddr; 2] = [own, asked].map(|address| address.parse().unwrap());
        let client = Endpoint::bind_unencrypted((own, 0).into(), client_config()).unwrap();
        let address = (asked, server.local_addr().port()).into();
        let connecting = client.connect(address, server.port());
        let (ours, theirs) = in_time(async { tokio::join!(connecting, server.accept()) }).await;
        let (ours, theirs) = (ours.unwrap(), theirs.unwrap());
        assert_eq!(ours.peer_addr(), address);
        assert_eq!(theirs.peer_addr(), client.local_addr());
        theirs.stream(0).send("hello").await.unwrap();
        assert_eq!(in_time(ours.recv()).await.unwrap().payload, "hello");
    }
}

#[tokio::test]
async fn garbage_from_the_network_is_counted_and_harmless() {
    let pair = Pair::connect().await;
    let garbage = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    for len in [0, 1, 11, 12, 100, 1500] {
        garbage.send_to(&vec![0xa5; len], pair.server.local_addr()).unwrap();
    }
    pair.ours.stream(0).send("still fine").await.unwrap();
    assert_eq!(in_time(pair.theirs.recv()).await.unwrap().payload, "still fine");
    assert!(pair.server.statistics().protocol.malformed >= 5);
}

/// The end of the runtime is reported as an end, not as silence.
#[test]
fn the_end_of_the_runtime_is_the_end_of_its_associations() {
    // The server outlives it: its ABORT would end the association otherwise, if it is the first to end.
    let runtime = || tokio::runtime::Runtime::new().unwrap();
    let (here, there) = (runtime(), runtime());
    let server = there.block_on(async { bind(server_config()) });
    let ours = here.block_on(async {
        let client = bind(client_config());
        in_time(client.connect(server.local_addr(), server.port())).await.unwrap()
    });
    drop(here);
    assert!(matches!(ours.close_reason(), Some(CloseReason::Aborted { .. })));
    let late = ours.try_send(OutboundMessage::new(0, "late"));
    assert_eq!(late, Err(TrySendError::Refused(SendError::Closing)));
}
