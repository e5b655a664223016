//! The proxy between our own TCP, over a cable in memory, and the kernel's on loopback.

mod common;

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::in_time;
use rexmit::proxy::{Monitor, Proxy, ProxyConfig, serve_metrics};
use rexmit::tcp::{MemoryDevice, Stack, StackConfig, TcpStream};
use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

type Service = tokio::net::TcpStream;

/// Where clients connect to.
const PROXY: &str = "10.0.0.2:22";

/// A service, a proxy for it, and a host for clients.
struct Site {
    clients: Stack,
    listener: TcpListener,
    monitor: Monitor,
    log: Arc<Mutex<Vec<String>>>,
    stop: Option<oneshot::Sender<()>>,
    abort: Option<oneshot::Sender<()>>,
    running: JoinHandle<()>,
}

impl Site {
    async fn new(change: impl FnOnce(&mut ProxyConfig)) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut config = ProxyConfig::new(listener.local_addr().unwrap());
        change(&mut config);
        let (here, there) = MemoryDevice::pair(1500);
        let clients =
            Stack::new(here, ["10.0.0.1".parse().unwrap()], StackConfig::default()).unwrap();
        let stack = Stack::new(there, ["10.0.0.2".parse().unwrap()], config.stack()).unwrap();
        let log: Arc<Mutex<Vec<String>>> = Arc::default();
        let lines = Arc::clone(&log);
        let proxy = Proxy::new(stack.listen(22).unwrap(), config)
            .observed(Arc::new(move |event| lines.lock().unwrap().push(event.to_string())));
        let monitor = proxy.monitor();
        let ((stop, stopped), (abort, aborted)) = (oneshot::channel(), oneshot::channel());
        let running = tokio::spawn(async move {
            proxy.run(async { drop(stopped.await) }, async { drop(aborted.await) }).await;
        });
        let (stop, abort) = (Some(stop), Some(abort));
        Self { clients, listener, monitor, log, stop, abort, running }
    }

    async fn connect(&self) -> TcpStream {
        in_time(self.clients.connect(PROXY.parse().unwrap())).await.unwrap()
    }

    /// A client, and its connection as the service sees it.
    async fn pair(&self) -> (TcpStream, Service) {
        let client = self.connect().await;
        let (service, _) = in_time(self.listener.accept()).await.unwrap();
        (client, service)
    }

    /// Writes until no more is accepted, and returns the number of bytes. On a busy machine a pause alone does not
    /// show that: the proxy has to hold data, and several pauses in a row have to pass.
    async fn fill(
        &self,
        writer: &mut (impl AsyncWrite + Unpin),
        content: impl Fn(usize) -> Vec<u8>,
    ) -> usize {
        const PAUSE: Duration = Duration::from_millis(300);
        const PAUSES: usize = 5;
        let (mut written, mut pauses) = (0, 0);
        in_time(async {
            while pauses < PAUSES || self.monitor.statistics().buffered_bytes == 0 {
                match tokio::time::timeout(PAUSE, writer.write(&content(written))).await {
                    Ok(result) => (written, pauses) = (written + result.unwrap(), 0),
                    Err(_) => pauses += 1,
                }
                assert!(written < 64 << 20, "nothing stops the writer");
            }
        })
        .await;
        written
    }

    /// Waits until the log has a line that contains these words.
    async fn logged(&self, words: &str) {
        let is_there = || self.log.lock().unwrap().iter().any(|line| line.contains(words));
        in_time(async {
            while !is_there() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await;
    }

    fn stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }
}

async fn rest(from: &mut (impl AsyncReadExt + Unpin)) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    in_time(from.read_to_end(&mut bytes)).await.map(|_| bytes)
}

/// Reads exactly the expected bytes.
async fn expect(from: &mut (impl AsyncReadExt + Unpin), expected: &[u8]) {
    let mut bytes = vec![0; expected.len()];
    in_time(from.read_exact(&mut bytes)).await.unwrap();
    assert_eq!(bytes, expected);
}

/// The error with which reading ends.
async fn read_error(from: &mut (impl AsyncReadExt + Unpin)) -> ErrorKind {
    rest(from).await.unwrap_err().kind()
}

fn reset(service: &Service) {
    SockRef::from(service).set_linger(Some(Duration::ZERO)).unwrap();
}

#[tokio::test]
async fn the_client_may_finish_first() {
    let site = Site::new(|_| {}).await;
    let (mut client, mut service) = site.pair().await;
    client.write_all(b"question").await.unwrap();
    client.shutdown().await.unwrap();
    assert_eq!(rest(&mut service).await.unwrap(), b"question");
    // The other direction goes on.
    service.write_all(b"answer").await.unwrap();
    expect(&mut client, b"answer").await;
    service.write_all(b", and more").await.unwrap();
    drop(service);
    assert_eq!(rest(&mut client).await.unwrap(), b", and more");
    site.logged("finished after").await;
    let statistics = site.monitor.statistics();
    assert_eq!((statistics.accepted, statistics.open, statistics.finished), (1, 0, 1));
    assert_eq!((statistics.sent.to_service, statistics.sent.to_client), (8, 16));
}

#[tokio::test]
async fn the_service_may_finish_first() {
    let site = Site::new(|_| {}).await;
    let (mut client, mut service) = site.pair().await;
    service.write_all(b"banner").await.unwrap();
    service.shutdown().await.unwrap();
    assert_eq!(rest(&mut client).await.unwrap(), b"banner");
    client.write_all(b"late").await.unwrap();
    expect(&mut service, b"late").await;
    client.shutdown().await.unwrap();
    assert_eq!(rest(&mut service).await.unwrap(), b"");
    site.logged("finished after").await;
}

#[tokio::test]
async fn a_reset_of_the_client_reaches_the_service_after_its_data() {
    let site = Site::new(|_| {}).await;
    let (mut client, mut service) = site.pair().await;
    client.write_all(b"last words").await.unwrap();
    expect(&mut service, b"last words").await;
    client.abort();
    assert_eq!(read_error(&mut service).await, ErrorKind::ConnectionReset);
    site.logged("reset by the client").await;
    assert_eq!(site.monitor.statistics().reset_by_client, 1);
}

#[tokio::test]
async fn a_reset_of_the_service_reaches_the_client_after_its_data() {
    let site = Site::new(|_| {}).await;
    let (mut client, mut service) = site.pair().await;
    service.write_all(b"last words").await.unwrap();
    expect(&mut client, b"last words").await;
    reset(&service);
    drop(service);
    assert_eq!(read_error(&mut client).await, ErrorKind::ConnectionReset);
    site.logged("reset by the service").await;
    assert_eq!(site.monitor.statistics().reset_by_service, 1);
}

/// Neither direction has data to send or may send; the reset is detected nevertheless.
#[tokio::test]
async fn a_reset_is_passed_on_while_the_other_direction_is_blocked_or_finished() {
    let site = Site::new(|config| config.buffer_bytes = 4096).await;
    let (client, mut service) = site.pair().await;
    // The client reads nothing, so that nothing more is read from the service.
    site.fill(&mut service, |_| vec![0; 4096]).await;
    reset(&service);
    drop(service);
    in_time(client.closed()).await;

    // Nor does the service, so that nothing more is read from the client.
    let (mut client, service) = site.pair().await;
    site.fill(&mut client, |_| vec![0; 4096]).await;
    client.abort();
    site.logged("reset by the client").await;
    drop(service);

    let (mut client, mut service) = site.pair().await;
    client.shutdown().await.unwrap();
    assert_eq!(rest(&mut service).await.unwrap(), b"");
    client.abort();
    in_time(async {
        // Linux reports it to the writer.
        while service.write_all(b"to nobody").await.is_ok() {}
    })
    .await;
}

/// The data is delivered whether the proxy detects the data or the reset first.
#[tokio::test]
async fn data_right_before_a_reset_is_delivered() {
    let site = Site::new(|_| {}).await;
    for _ in 0..20 {
        let (mut client, mut service) = site.pair().await;
        client.write_all(b"x").await.unwrap();
        expect(&mut service, b"x").await;
        service.write_all(b"tail").await.unwrap();
        reset(&service);
        drop(service);
        expect(&mut client, b"tail").await;
        assert_eq!(read_error(&mut client).await, ErrorKind::ConnectionReset);

        let (mut client, mut service) = site.pair().await;
        service.write_all(b"x").await.unwrap();
        expect(&mut client, b"x").await;
        client.write_all(b"tail").await.unwrap();
        client.abort();
        expect(&mut service, b"tail").await;
        assert_eq!(read_error(&mut service).await, ErrorKind::ConnectionReset);
    }
}

#[tokio::test]
async fn a_service_that_closes_with_unread_data_resets_its_client_after_its_response() {
    let site = Site::new(|_| {}).await;
    let (mut client, mut service) = site.pair().await;
    client.write_all(b"a request that is not read").await.unwrap();
    in_time(service.peek(&mut [0])).await.unwrap();
    // No more than can be sent at once: the rest is lost with the reset, as without a proxy.
    service.write_all(&[7; 10_000]).await.unwrap();
    drop(service); // The kernel resets because of what is unread.
    let mut answer = vec![0; 10_000];
    in_time(client.read_exact(&mut answer)).await.unwrap();
    assert_eq!(read_error(&mut client).await, ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn a_client_that_does_not_read_stops_the_service() {
    const BUFFER: usize = 32 * 1024;
    let site = Site::new(|config| config.buffer_bytes = BUFFER).await;
    let (mut client, mut service) = site.pair().await;
    let pattern = |at: usize| (0..1024).map(|n| ((at + n) % 251) as u8).collect::<Vec<_>>();
    let written = site.fill(&mut service, pattern).await;
    // The data that the proxy holds: its buffer towards the client.
    let held = site.monitor.statistics().buffered_bytes as usize;
    assert!(held > 0 && held <= BUFFER, "{held} bytes are held");
    // The rest waits in buffers of fixed size: the pump's, the kernel's, the client's.
    let sent = site.monitor.statistics().sent.to_client as usize;
    let limit = BUFFER + StackConfig::default().connection.receive_buffer_bytes;
    assert!(sent <= limit, "{sent} of {limit} bytes are on their way");
    service.shutdown().await.unwrap();
    let everything = rest(&mut client).await.unwrap();
    assert_eq!(everything.len(), written);
    assert!(everything.iter().enumerate().all(|(at, &byte)| byte == (at % 251) as u8));
}

#[tokio::test]
async fn a_service_that_does_not_read_stops_the_client() {
    const BUFFER: usize = 32 * 1024;
    let site = Site::new(|config| config.buffer_bytes = BUFFER).await;
    let (mut client, mut service) = site.pair().await;
    let written = site.fill(&mut client, |_| vec![5; 1024]).await;
    let held = site.monitor.statistics().buffered_bytes as usize;
    assert!(held > 0 && held <= BUFFER, "{held} bytes are held");
    client.shutdown().await.unwrap();
    assert_eq!(rest(&mut service).await.unwrap().len(), written);
}

#[tokio::test]
async fn clients_beyond_the_limit_are_reset_until_others_have_ended() {
    let site = Site::new(|config| config.max_connections = 2).await;
    let first = site.pair().await;
    let _second = site.pair().await;
    let mut third = site.connect().await;
    assert_eq!(read_error(&mut third).await, ErrorKind::ConnectionReset);
    site.logged("as many clients as may be").await;
    let statistics = site.monitor.statistics();
    assert_eq!((statistics.refused_at_limit, statistics.open), (1, 2));
    drop(first);
    site.logged("finished after").await;
    let (mut fourth, mut service) = site.pair().await;
    fourth.write_all(b"in").await.unwrap();
    expect(&mut service, b"in").await;
}

#[tokio::test]
async fn a_client_of_a_missing_service_is_reset() {
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let site = Site::new(|config| config.upstream = nobody).await;
    let mut client = site.connect().await;
    assert_eq!(read_error(&mut client).await, ErrorKind::ConnectionReset);
    site.logged("the service cannot be reached").await;
    let statistics = site.monitor.statistics();
    assert_eq!((statistics.refused_by_upstream, statistics.open), (1, 0));
}

#[tokio::test]
async fn silence_ends_a_connection_if_that_is_asked_for() {
    let site = Site::new(|config| config.idle_timeout = Some(Duration::from_secs(4))).await;
    let (mut client, mut service) = site.pair().await;
    // For longer than the timeout, with short pauses.
    for _ in 0..24 {
        tokio::time::sleep(Duration::from_millis(200)).await;
        service.write_all(b"x").await.unwrap();
        expect(&mut client, b"x").await;
    }
    assert_eq!(read_error(&mut client).await, ErrorKind::ConnectionReset);
    assert_eq!(read_error(&mut service).await, ErrorKind::ConnectionReset);
    site.logged("as neither side said anything").await;
}

#[tokio::test]
async fn existing_clients_may_finish_after_the_stop_and_new_ones_are_refused() {
    let mut site = Site::new(|_| {}).await;
    let (mut client, mut service) = site.pair().await;
    site.stop();
    let refused = async { while site.clients.connect(PROXY.parse().unwrap()).await.is_ok() {} };
    in_time(refused).await;
    assert!(!site.running.is_finished());
    client.write_all(b"goodbye").await.unwrap();
    client.shutdown().await.unwrap();
    assert_eq!(rest(&mut service).await.unwrap(), b"goodbye");
    drop(service);
    assert_eq!(rest(&mut client).await.unwrap(), b"");
    in_time(site.running).await.unwrap();
    assert_eq!(site.monitor.statistics().finished, 1);
}

#[tokio::test]
async fn clients_that_remain_are_reset_after_the_drain_time() {
    let mut site = Site::new(|config| config.drain = Duration::from_millis(100)).await;
    let (mut client, mut service) = site.pair().await;
    site.stop();
    assert_eq!(read_error(&mut client).await, ErrorKind::ConnectionReset);
    assert_eq!(read_error(&mut service).await, ErrorKind::ConnectionReset);
    in_time(site.running).await.unwrap();
    assert_eq!(site.monitor.statistics().stopped, 1);
}

#[tokio::test]
async fn an_abort_does_not_wait_for_the_peer() {
    let mut site = Site::new(|config| config.drain = Duration::from_secs(1_000_000)).await;
    let (mut client, mut service) = site.pair().await;
    site.stop();
    site.abort.take().unwrap().send(()).unwrap();
    assert_eq!(read_error(&mut client).await, ErrorKind::ConnectionReset);
    assert_eq!(read_error(&mut service).await, ErrorKind::ConnectionReset);
    in_time(site.running).await.unwrap();
}

#[tokio::test]
async fn dropping_a_proxy_resets_its_clients() {
    let site = Site::new(|_| {}).await;
    let (mut client, mut service) = site.pair().await;
    client.write_all(b"begun").await.unwrap();
    expect(&mut service, b"begun").await;
    site.running.abort();
    assert_eq!(read_error(&mut client).await, ErrorKind::ConnectionReset);
    assert_eq!(read_error(&mut service).await, ErrorKind::ConnectionReset);
    assert_eq!(site.monitor.statistics().open, 0);
}

#[tokio::test]
async fn the_service_gets_the_proxy_protocol_header() {
    let site = Site::new(|config| config.proxy_protocol = true).await;
    let (mut client, mut service) = site.pair().await;
    client.write_all(b"hello").await.unwrap();
    let mut expected = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c".to_vec();
    expected.extend([10, 0, 0, 1, 10, 0, 0, 2]);
    expected.extend(client.local_addr().port().to_be_bytes());
    expected.extend([0, 22]);
    expected.extend(b"hello");
    expect(&mut service, &expected).await;
}

/// The address is not that of the stack, which is behind the one that clients connect to.
#[tokio::test]
async fn the_service_gets_the_address_that_the_client_connected_to() {
    let public_address = "192.0.2.1:2222".parse().unwrap();
    let site = Site::new(|config| {
        config.proxy_protocol = true;
        config.public_address = Some(public_address);
    })
    .await;
    let (client, mut service) = site.pair().await;
    let mut expected = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c".to_vec();
    expected.extend([10, 0, 0, 1, 192, 0, 2, 1]);
    expected.extend(client.local_addr().port().to_be_bytes());
    expected.extend(2222_u16.to_be_bytes());
    expect(&mut service, &expected).await;
}

#[tokio::test]
async fn two_hundred_clients_are_kept_apart() {
    let site = Site::new(|_| {}).await;
    let service = async {
        for _ in 0..200 {
            let (mut stream, _) = site.listener.accept().await.unwrap();
            tokio::spawn(async move {
                let (mut read, mut write) = stream.split();
                tokio::io::copy(&mut read, &mut write).await.unwrap();
            });
        }
    };
    let clients = async {
        let mut tasks = tokio::task::JoinSet::new();
        for number in 0..200_u32 {
            let mut client = site.connect().await;
            tasks.spawn(async move {
                for round in 0..10_u32 {
                    let words = format!("client {number} in round {round}");
                    client.write_all(words.as_bytes()).await.unwrap();
                    expect(&mut client, words.as_bytes()).await;
                }
                client.shutdown().await.unwrap();
                assert_eq!(rest(&mut client).await.unwrap(), b"");
            });
        }
        tasks.join_all().await;
    };
    in_time(async { tokio::join!(service, clients) }).await;
    in_time(async {
        while site.monitor.statistics().open > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    assert_eq!(site.monitor.statistics().finished, 200);
}

async fn fetch(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = Service::connect(address).await.unwrap();
    // The server may answer and close before it has read everything.
    let _ = stream.write_all(request).await;
    let mut bytes = Vec::new();
    let _ = in_time(stream.read_to_end(&mut bytes)).await;
    String::from_utf8(bytes).unwrap()
}

#[tokio::test]
async fn metrics_are_a_page() {
    let site = Site::new(|_| {}).await;
    let (mut client, mut service) = site.pair().await;
    service.write_all(b"twelve bytes").await.unwrap();
    expect(&mut client, b"twelve bytes").await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(serve_metrics(listener, site.monitor.clone()));
    let page = fetch(address, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert!(page.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4"));
    let (head, body) = page.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(&format!("Content-Length: {}", body.len())), "{head}");
    for line in [
        "rexmit_proxy_connections_open 1",
        "rexmit_proxy_bytes_total{to=\"client\"} 12",
        "rexmit_proxy_retransmissions_total{cause=\"timeout\"} 0",
    ] {
        assert!(body.lines().any(|it| it == line), "{line} is not in {body}");
    }
    assert!(fetch(address, b"GET / HTTP/1.1\r\n\r\n").await.starts_with("HTTP/1.1 404"));
    assert!(fetch(address, b"POST /metrics HTTP/1.1\r\n\r\n").await.starts_with("HTTP/1.1 400"));
    let endless = fetch(address, &[b'x'; 100_000]).await;
    assert!(endless.is_empty() || endless.starts_with("HTTP/1.1 400"), "{endless}");
}
