//! Stacks over a cable in memory: our TCP on both sides.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use rexmit::TimeLimits;
use rexmit::tcp::{
    CloseReason, ConnectError, ConnectionConfig, ListenError, MemoryDevice, OpenError,
    PacketDevice, Stack, StackConfig, State, TcpListener, TcpStream,
};
use rexmit::tun::Batch;
use rexmit_core::Seed;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Waits for `future` with a time limit that only a failing test reaches.
async fn in_time<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future).await.expect("it takes too long")
}

/// Two stacks, and both ends of a connection.
struct Pair {
    client: Stack,
    server: Stack,
    listener: TcpListener,
    ours: TcpStream,
    theirs: TcpStream,
}

const SERVER: &str = "10.0.0.2:80";

fn server() -> SocketAddr {
    SERVER.parse().unwrap()
}

fn stacks(config: &StackConfig) -> (Stack, Stack) {
    let (here, there) = MemoryDevice::pair(1500);
    let stack = |device, addresses: [&str; 2]| {
        let addresses = addresses.map(|address| address.parse().unwrap());
        Stack::new(device, addresses, config.clone()).unwrap()
    };
    (stack(here, ["10.0.0.1", "fd00::1"]), stack(there, ["10.0.0.2", "fd00::2"]))
}

impl Pair {
    async fn new() -> Self {
        Self::with(ConnectionConfig::default()).await
    }

    async fn with(connection: ConnectionConfig) -> Self {
        let config = StackConfig::default().connection(Arc::new(connection));
        let (client, server) = stacks(&config);
        let listener = server.listen(80).unwrap();
        let (ours, theirs) = connect(&client, &listener).await;
        Self { client, server, listener, ours, theirs }
    }
}

async fn connect(client: &Stack, listener: &TcpListener) -> (TcpStream, TcpStream) {
    let both = async { tokio::join!(client.connect(server()), listener.accept()) };
    let (ours, accepted) = in_time(both).await;
    let (theirs, peer) = accepted.unwrap();
    let ours = ours.unwrap();
    assert_eq!((peer, theirs.peer_addr()), (ours.local_addr(), ours.local_addr()));
    assert_eq!((ours.peer_addr(), theirs.local_addr()), (server(), server()));
    (ours, theirs)
}

fn random_bytes(len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    Seed::from_u64(len as u64).rng().fill(&mut bytes);
    bytes
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_arrive_both_ways_at_once_and_in_order() {
    let Pair { ours, theirs, .. } = Pair::new().await;
    let (there, back) = (random_bytes(5_000_000), random_bytes(3_000_001));
    let transfer = |stream: TcpStream, send: Vec<u8>| async move {
        let (mut read, mut write) = stream.into_split();
        let writer = tokio::spawn(async move {
            write.write_all(&send).await.unwrap();
            write.shutdown().await.unwrap();
            write
        });
        let mut received = Vec::new();
        in_time(read.read_to_end(&mut received)).await.unwrap();
        in_time(writer).await.unwrap();
        received
    };
    let (at_ours, at_theirs) =
        tokio::join!(transfer(ours, back.clone()), transfer(theirs, there.clone()));
    assert!(at_theirs == back && at_ours == there, "what arrived is something else");
}

/// The reader is so slow that the transfer takes several times the limit.
#[tokio::test]
async fn shutdown_of_a_stack_goes_on_while_data_is_acknowledged() {
    const LIMIT: Duration = Duration::from_secs(2);
    let small = ConnectionConfig::default().receive_buffer_bytes(10_000);
    let Pair { mut ours, mut theirs, client, .. } = Pair::with(small).await;
    let client = client.with_time_limits(TimeLimits::default().shutdown(Some(LIMIT)));
    let bytes = random_bytes(90_000);
    ours.write_all(&bytes).await.unwrap();
    drop(ours);
    let start = rexmit::clock::now();
    let reading = async move {
        let (mut all, mut piece) = (Vec::new(), [0; 2000]);
        loop {
            match theirs.read(&mut piece).await.unwrap() {
                0 => return all,
                len => all.extend_from_slice(&piece[..len]),
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let ((), all) = in_time(async { tokio::join!(client.shutdown(), reading) }).await;
    assert!(all == bytes, "{} bytes arrived", all.len());
    assert!(rexmit::clock::now() - start > LIMIT, "it did not take longer than the limit");
}

#[tokio::test]
async fn a_half_closed_connection_still_delivers_the_response() {
    let Pair { mut ours, mut theirs, client, server, .. } = Pair::new().await;
    ours.write_all(b"question").await.unwrap();
    ours.shutdown().await.unwrap();
    assert_eq!(ours.write(b"more").await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    let mut question = String::new();
    in_time(theirs.read_to_string(&mut question)).await.unwrap();
    assert_eq!(question, "question");
    assert_eq!(theirs.state(), State::CloseWait);
    theirs.write_all(b"answer").await.unwrap();
    theirs.shutdown().await.unwrap();
    let mut answer = String::new();
    in_time(ours.read_to_string(&mut answer)).await.unwrap();
    assert_eq!(answer, "answer");
    assert_eq!(in_time(ours.closed()).await, CloseReason::Finished);
    assert_eq!(in_time(theirs.closed()).await, CloseReason::Finished);
    assert_eq!(ours.read(&mut [0; 9]).await.unwrap(), 0, "the end stays the end");
    assert_eq!((client.connection_count(), server.connection_count()), (0, 0));
    let statistics = ours.statistics();
    assert_eq!(statistics.traffic.payload_accepted_bytes, 8);
    assert_eq!(statistics.traffic.payload_delivered_bytes, 6);
}

#[tokio::test]
async fn tokio_can_split_a_stream_too() {
    let Pair { ours, mut theirs, .. } = Pair::new().await;
    let (mut read, mut write) = tokio::io::split(ours);
    let echo = tokio::spawn(async move {
        let (mut read, mut write) = tokio::io::split(&mut theirs);
        tokio::io::copy(&mut read, &mut write).await.unwrap();
        write.shutdown().await.unwrap();
    });
    let sent = random_bytes(300_000);
    let writer = async {
        write.write_all(&sent).await.unwrap();
        write.shutdown().await.unwrap();
    };
    let mut received = Vec::new();
    let reader = read.read_to_end(&mut received);
    let (_, count) = in_time(async { tokio::join!(writer, reader) }).await;
    assert_eq!(count.unwrap(), sent.len());
    assert!(received == sent);
    in_time(echo).await.unwrap();
}

#[tokio::test]
async fn a_reader_that_does_not_read_makes_the_writer_wait() {
    let small =
        ConnectionConfig::default().receive_buffer_bytes(64 * 1024).send_buffer_bytes(64 * 1024);
    let Pair { mut ours, mut theirs, .. } = Pair::with(small).await;
    let sent = random_bytes(1_000_000);
    let expected = sent.clone();
    let writer = tokio::spawn(async move {
        ours.write_all(&sent).await.unwrap();
        ours.shutdown().await.unwrap();
        ours
    });
    let is_full = async {
        while theirs.statistics().receive_buffered_bytes < 32 * 1024 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    in_time(is_full).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!writer.is_finished(), "nothing holds the writer back");
    let buffered = theirs.statistics().receive_buffered_bytes;
    assert!(buffered <= 64 * 1024, "{buffered}");
    let mut received = Vec::new();
    in_time(theirs.read_to_end(&mut received)).await.unwrap();
    assert!(received == expected);
    in_time(writer).await.unwrap();
}

#[tokio::test]
async fn trying_and_waiting_go_together() {
    let Pair { ours, theirs, .. } = Pair::new().await;
    let mut bytes = [0; 1000];
    assert_eq!(theirs.try_read(&mut bytes).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    in_time(ours.writable()).await;
    assert_eq!(ours.try_write(b"hello").unwrap(), 5);
    in_time(theirs.readable()).await;
    assert_eq!(theirs.try_read(&mut bytes).unwrap(), 5);
    assert_eq!(&bytes[..5], b"hello");
    // Writes until the buffer is full; that is reported, and room later on, too.
    let chunk = [7; 50_000];
    let mut written = 0;
    let error = loop {
        match ours.try_write(&chunk) {
            Ok(len) => written += len,
            Err(error) => break error,
        }
        // The peer must not drain the buffer meanwhile.
        assert!(written < 100_000_000);
    };
    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    let writer = async {
        ours.writable().await;
        assert!(ours.try_write(b"more").unwrap() > 0);
    };
    let reader = async {
        let mut read = 0;
        while read < written + 4 {
            theirs.readable().await;
            match theirs.try_read(&mut bytes) {
                Ok(len) => read += len,
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
        }
    };
    in_time(async { tokio::join!(writer, reader) }).await;
}

#[tokio::test]
async fn an_aborted_connection_is_reset_for_the_peer() {
    let Pair { mut ours, mut theirs, client, .. } = Pair::new().await;
    theirs.write_all(b"read before the end").await.unwrap();
    in_time(ours.readable()).await;
    ours.abort();
    assert_eq!(ours.close_reason(), Some(CloseReason::Aborted));
    assert_eq!(in_time(theirs.closed()).await, CloseReason::Reset);
    let error = in_time(theirs.read(&mut [0; 100])).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    let error = in_time(theirs.write(b"?")).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    let error = in_time(ours.write(b"?")).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionAborted);
    assert_eq!(client.connection_count(), 0);
}

#[tokio::test]
async fn a_waiting_reader_and_a_waiting_writer_are_woken_at_the_end() {
    let Pair { ours, theirs, .. } = Pair::new().await;
    let (mut read, mut write) = ours.into_split();
    let reader = tokio::spawn(async move { read.read(&mut [0; 10]).await });
    let writer = tokio::spawn(async move {
        loop {
            if let Err(error) = write.write(&[0; 100_000]).await {
                return error;
            }
        }
    });
    // By then both tasks wait, or they begin to after the end; in either case they are informed.
    tokio::time::sleep(Duration::from_millis(50)).await;
    theirs.abort();
    let error = in_time(reader).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    let error = in_time(writer).await.unwrap();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn data_written_before_the_drop_arrives() {
    let Pair { client, mut ours, mut theirs, .. } = Pair::new().await;
    let sent = random_bytes(700_000);
    ours.write_all(&sent).await.unwrap();
    drop(ours);
    let finish = tokio::spawn(async move { client.shutdown().await });
    let mut received = Vec::new();
    in_time(theirs.read_to_end(&mut received)).await.unwrap();
    assert!(received == sent);
    drop(theirs);
    in_time(finish).await.unwrap();
}

#[tokio::test]
async fn data_for_a_dropped_stream_is_refused() {
    let Pair { ours, mut theirs, .. } = Pair::new().await;
    drop(ours);
    let writing = async {
        loop {
            if let Err(error) = theirs.write_all(&[0; 1000]).await {
                return error;
            }
            tokio::task::yield_now().await;
        }
    };
    let error = in_time(writing).await;
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn dropping_the_writing_half_ends_writing_only() {
    let Pair { ours, mut theirs, .. } = Pair::new().await;
    let (mut read, write) = ours.into_split();
    drop(write);
    assert_eq!(in_time(theirs.read(&mut [0; 1])).await.unwrap(), 0);
    theirs.write_all(b"still").await.unwrap();
    drop(theirs);
    let mut heard = String::new();
    in_time(read.read_to_string(&mut heard)).await.unwrap();
    assert_eq!(heard, "still");
}

#[tokio::test]
async fn a_port_on_which_nobody_listens_refuses() {
    let (client, server_stack) = stacks(&StackConfig::default());
    let error = in_time(client.connect(server())).await.expect_err("a closed port");
    assert!(matches!(error, ConnectError::RefusedByPeer { .. }), "{error}");
    assert!(error.to_string().starts_with("10.0.0.2:80 refused the connection"), "{error}");
    assert_eq!(io::Error::from(error).kind(), io::ErrorKind::ConnectionRefused);
    assert_eq!(client.connection_count(), 0);
    assert_eq!(server_stack.statistics().protocol.resets_sent, 1);
}

#[tokio::test]
async fn no_peer_responds() {
    let (client, _server) = stacks(&StackConfig::default());
    let config = ConnectionConfig::default().max_syn_retransmits(0);
    let nobody: SocketAddr = "10.0.0.9:80".parse().unwrap();
    let attempt = client.connect_with(None, nobody, Arc::new(config));
    let error = in_time(attempt).await.expect_err("no peer");
    assert!(matches!(error, ConnectError::NoAnswer { remote, .. } if remote == nobody), "{error}");
    // After RTO.Initial, or later on a busy machine.
    let text = error.to_string();
    let waited = text.strip_prefix("10.0.0.9:80 did not answer within ").expect(&text);
    let seconds: f64 = waited.split(' ').next().and_then(|word| word.parse().ok()).expect(&text);
    assert!(seconds >= 1.0, "{text}");
}

#[tokio::test]
async fn a_cancelled_attempt_leaves_no_state() {
    let (client, _server) = stacks(&StackConfig::default());
    let attempt = client.connect("10.0.0.9:80".parse().unwrap());
    assert!(tokio::time::timeout(Duration::from_millis(20), attempt).await.is_err());
    assert_eq!(client.connection_count(), 0);
}

#[tokio::test]
async fn impossible_stacks_ports_and_peers_are_named() {
    let new = |mtu, addresses: &[&str], config| {
        let addresses: Vec<_> = addresses.iter().map(|text| text.parse().unwrap()).collect();
        Stack::new(MemoryDevice::pair(mtu).0, addresses, config).err()
    };
    let default = StackConfig::default;
    assert!(matches!(new(1500, &[], default()), Some(OpenError::NoAddress)));
    assert!(matches!(new(1500, &["10.0.0.1", "::"], default()), Some(OpenError::BadAddress(_))));
    assert!(matches!(new(100, &["10.0.0.1"], default()), Some(OpenError::MtuTooSmall { .. })));
    let nonsense = default().max_connections(0);
    assert!(matches!(new(1500, &["10.0.0.1"], nonsense), Some(OpenError::Config(_))));

    let (client, _server) = stacks(&default());
    assert!(matches!(client.listen(0), Err(ListenError::Refused { .. })));
    let listener = client.listen(80).unwrap();
    let error = client.listen(80).unwrap_err().to_string();
    assert_eq!(error, "cannot listen on port 80: the port has a listener already");
    drop(listener);
    client.listen(80).unwrap();
    let foreign = Some("10.0.0.7:0".parse().unwrap());
    let attempt = client.connect_with(foreign, server(), Arc::default());
    assert!(matches!(attempt.await, Err(ConnectError::NoLocalAddress { .. })));
    let attempt = client.connect("10.0.0.2:0".parse().unwrap());
    assert!(matches!(attempt.await, Err(ConnectError::Refused(_))));
}

#[tokio::test]
async fn ipv6_and_a_small_mtu_work_without_a_configuration() {
    let (here, there) = MemoryDevice::pair(1280);
    let stack = |device, address: &str| {
        Stack::new(device, [address.parse().unwrap()], StackConfig::default()).unwrap()
    };
    let (client, server) = (stack(here, "fd00::1"), stack(there, "fd00::2"));
    let listener = server.listen(443).unwrap();
    let connecting = client.connect("[fd00::2]:443".parse().unwrap());
    let (ours, accepted) = in_time(async { tokio::join!(connecting, listener.accept()) }).await;
    let (mut ours, (mut theirs, _)) = (ours.unwrap(), accepted.unwrap());
    ours.write_all(&random_bytes(100_000)).await.unwrap();
    drop(ours);
    let mut received = Vec::new();
    in_time(theirs.read_to_end(&mut received)).await.unwrap();
    assert!(received == random_bytes(100_000));
    assert_eq!(client.statistics().packets_unsent, 0, "a segment was too long for the device");
}

#[tokio::test]
async fn unaccepted_connections_are_limited() {
    let (client, server_stack) = stacks(&StackConfig::default());
    let listener = server_stack.listen_with(80, Arc::default(), 3).unwrap();
    let mut streams = Vec::new();
    for _ in 0..3 {
        streams.push(in_time(client.connect(server())).await.unwrap());
    }
    // Established for the protocol, then aborted.
    let refused = in_time(client.connect(server())).await.unwrap();
    assert_eq!(in_time(refused.closed()).await, CloseReason::Reset);
    assert_eq!(server_stack.statistics().not_accepted, 1);
    assert_eq!(server_stack.connection_count(), 3);
    for stream in &streams {
        let (_, peer) = in_time(listener.accept()).await.unwrap();
        assert_eq!(peer, stream.local_addr());
    }
    let _room_again = in_time(client.connect(server())).await.unwrap();
    assert_eq!(server_stack.statistics().not_accepted, 1);
}

#[tokio::test]
async fn a_closed_listener_resets_unaccepted_connections() {
    let Pair { client, server: _server, listener, mut ours, mut theirs } = Pair::new().await;
    let waiting = in_time(client.connect(server())).await.unwrap();
    drop(listener);
    assert_eq!(in_time(waiting.closed()).await, CloseReason::Reset);
    let error = in_time(client.connect(server())).await.expect_err("a closed port");
    assert!(matches!(error, ConnectError::RefusedByPeer { .. }));
    // Accepted connections continue.
    ours.write_all(b"x").await.unwrap();
    assert_eq!(in_time(theirs.read(&mut [0; 9])).await.unwrap(), 1);
}

#[tokio::test]
async fn a_stack_lives_as_long_as_its_last_handle_listener_or_connection() {
    let Pair { client, server: stack, listener, mut ours, mut theirs } = Pair::new().await;
    drop(stack);
    let (second, other) = connect(&client, &listener).await;
    drop((second, other, listener));
    ours.write_all(b"x").await.unwrap();
    assert_eq!(in_time(theirs.read(&mut [0; 9])).await.unwrap(), 1);
}

#[tokio::test]
async fn a_shut_down_stack_accepts_and_begins_nothing_more() {
    let Pair { client, server: stack, listener, ours, theirs } = Pair::new().await;
    let accepting = tokio::spawn(async move { listener.accept().await.map(drop) });
    let ending = tokio::spawn({
        let stack = stack.clone();
        async move { stack.shutdown().await }
    });
    let error = in_time(accepting).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotConnected);
    assert!(matches!(stack.listen(81), Err(ListenError::StackClosed)));
    let attempt = stack.connect("10.0.0.1:80".parse().unwrap());
    assert!(matches!(attempt.await, Err(ConnectError::StackClosed)));
    assert!(!ending.is_finished());
    drop((ours, theirs));
    in_time(ending).await.unwrap();
    in_time(client.shutdown()).await;
}

#[tokio::test]
async fn a_stack_gives_up_a_connection_and_a_shutdown_after_their_time_limits() {
    let Pair { client, server: stack, ours, theirs, .. } = Pair::new().await;
    let limits = client.time_limits();
    assert_eq!((limits.connect, limits.shutdown), {
        let seconds = |count| Some(std::time::Duration::from_secs(count));
        (seconds(10), seconds(5))
    });
    let short = std::time::Duration::from_millis(10);
    let client = client.with_time_limits(limits.connect(Some(short)).shutdown(Some(short)));
    // No host has this address.
    let error = in_time(client.connect("10.0.0.9:80".parse().unwrap())).await.unwrap_err();
    assert!(matches!(error, ConnectError::NoAnswer { waited, .. } if waited >= short), "{error}");
    // Both handles of the connection are there, so that it does not end by itself.
    in_time(client.shutdown()).await;
    assert_eq!(client.connection_count(), 0);
    assert_eq!(in_time(theirs.closed()).await, CloseReason::Reset);
    drop((ours, stack));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_connections_between_two_stacks() {
    const COUNT: usize = 200;
    let (client, server_stack) = stacks(&StackConfig::default());
    let listener = server_stack.listen(80).unwrap();
    let acceptor = tokio::spawn(async move {
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..COUNT {
            let (mut stream, _) = listener.accept().await.unwrap();
            tasks.spawn(async move {
                let (mut read, mut write) = tokio::io::split(&mut stream);
                tokio::io::copy(&mut read, &mut write).await.unwrap();
                write.shutdown().await.unwrap();
            });
        }
        tasks.join_all().await;
        listener
    });
    let mut clients = tokio::task::JoinSet::new();
    for number in 0..COUNT {
        let client = client.clone();
        clients.spawn(async move {
            let mut stream = client.connect(server()).await.unwrap();
            let message = random_bytes(1000 + number);
            stream.write_all(&message).await.unwrap();
            stream.shutdown().await.unwrap();
            let mut echo = Vec::new();
            stream.read_to_end(&mut echo).await.unwrap();
            assert!(echo == message);
            assert_eq!(stream.closed().await, CloseReason::Finished);
        });
    }
    in_time(clients.join_all()).await;
    in_time(acceptor).await.unwrap();
    in_time(client.shutdown()).await;
    in_time(server_stack.shutdown()).await;
}

/// Thousands of small messages are sent by the driver, not one per call.
#[tokio::test]
async fn many_small_writes_arrive() {
    let prompt = ConnectionConfig::default().nagle(false);
    let Pair { mut ours, mut theirs, .. } = Pair::with(prompt).await;
    let writer = tokio::spawn(async move {
        for number in 0..10_000_u32 {
            ours.write_all(&number.to_be_bytes()).await.unwrap();
        }
    });
    for number in 0..10_000 {
        assert_eq!(in_time(theirs.read_u32()).await.unwrap(), number);
    }
    in_time(writer).await.unwrap();
}

/// On a runtime of one thread.
#[tokio::test]
async fn a_reader_that_always_finds_something_lets_others_have_their_turn() {
    const LEN: usize = 100_000;
    let Pair { mut ours, mut theirs, .. } = Pair::new().await;
    ours.write_all(&[0; LEN]).await.unwrap();
    let arrived = async {
        while theirs.statistics().receive_buffered_bytes < LEN {
            tokio::task::yield_now().await;
        }
    };
    in_time(arrived).await;
    let other = tokio::spawn(async {});
    let mut read = 0;
    while !other.is_finished() {
        read += theirs.read(&mut [0]).await.unwrap();
        assert!(read < LEN, "other tasks had no turn");
    }
}

/// A device that drops packets by a filter.
struct Lossy {
    device: MemoryDevice,
    drops: Box<dyn Fn(u64) -> bool + Send + Sync>,
    sent: std::sync::atomic::AtomicU64,
}

impl PacketDevice for Lossy {
    fn mtu(&self) -> u16 {
        self.device.mtu()
    }

    fn poll_receive(&self, cx: &mut Context<'_>, batch: &mut Batch) -> Poll<io::Result<()>> {
        self.device.poll_receive(cx, batch)
    }

    fn try_send(&self, header: &[u8], segment: &[u8]) -> io::Result<()> {
        let number = self.sent.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        if (self.drops)(number) { Ok(()) } else { self.device.try_send(header, segment) }
    }
}

/// Only a timer repairs the loss of the last segment.
#[tokio::test]
async fn lost_segments_are_retransmitted() {
    let (here, there) = MemoryDevice::pair(1500);
    // The SYN, the ACK, then data.
    let drops = Box::new(|number| number == 2);
    let lossy = Lossy { device: here, drops, sent: 0.into() };
    let config = StackConfig::default();
    let client = Stack::new(lossy, ["10.0.0.1".parse().unwrap()], config.clone()).unwrap();
    let other = Stack::new(there, ["10.0.0.2".parse().unwrap()], config).unwrap();
    let listener = other.listen(80).unwrap();
    let (mut ours, mut theirs) = connect(&client, &listener).await;
    ours.write_all(b"lost once").await.unwrap();
    let mut bytes = [0; 100];
    assert_eq!(in_time(theirs.read(&mut bytes)).await.unwrap(), 9);
    assert_eq!(ours.statistics().recovery.retransmitted.total(), 1);
}

#[tokio::test]
async fn garbage_is_counted_and_harmless() {
    let (here, there) = MemoryDevice::pair(1500);
    let config = StackConfig::default();
    let stack = Stack::new(here, ["10.0.0.1".parse().unwrap()], config).unwrap();
    for len in [0, 1, 19, 20, 40, 1500] {
        there.try_send(&vec![0xa5; len], &[]).unwrap();
    }
    let counted = async {
        while stack.statistics().ip.malformed < 6 {
            tokio::task::yield_now().await;
        }
    };
    in_time(counted).await;
}

/// The end of the runtime is reported as an end, not as silence.
#[test]
fn the_end_of_the_runtime_is_the_end_of_its_connections() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let Pair { ours, .. } = runtime.block_on(Pair::new());
    drop(runtime);
    assert_eq!(ours.close_reason(), Some(CloseReason::Aborted));
    assert_eq!(ours.try_write(b"late").unwrap_err().kind(), io::ErrorKind::ConnectionAborted);
}
