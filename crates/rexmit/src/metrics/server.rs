//! A small HTTP server (RFC 9112) for one page: the metrics.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// The most simultaneous visitors; further ones wait in the kernel.
const MAX_VISITORS: usize = 16;
/// The longest request.
const MAX_HEAD_BYTES: usize = 8 * 1024;
/// Time limit of a request.
const TIME_LIMIT: Duration = Duration::from_secs(5);
/// A pause after an error of the system, such as too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// Answers `GET /metrics` with the text of `page`, one request per connection, until the future is dropped.
///
/// At most 16 requests are served at one time, each of at most 8 KiB within 5 s. A listener on loopback answers only requests
/// for an IP address or `localhost`, so that the pages of a web site whose name resolves to this machine (DNS rebinding) cannot
/// read the metrics. There is no authentication: bind the listener to an address that only readers of the metrics can reach,
/// such as 127.0.0.1. `page` is called for each request in a thread for blocking work, one call at a time: a large page delays
/// other readers, but no other task of the runtime.
pub async fn serve(listener: TcpListener, page: impl Fn() -> String + Send + Sync + 'static) {
    let page = Arc::new(Page { make: Arc::new(page), turn: Mutex::new(()) });
    let places = Arc::new(Semaphore::new(MAX_VISITORS));
    let mut visitors = tokio::task::JoinSet::new();
    loop {
        while visitors.try_join_next().is_some() {}
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let page = Arc::clone(&page);
                visitors.spawn(async move {
                    // Errors and timeouts of a visitor are ignored.
                    let _ = timeout(TIME_LIMIT, answer(stream, &page)).await;
                    drop(place);
                });
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

struct Page<F> {
    make: Arc<F>,
    turn: Mutex<()>,
}

impl<F: Fn() -> String + Send + Sync + 'static> Page<F> {
    async fn text(&self) -> io::Result<String> {
        let _turn = self.turn.lock().await;
        let make = Arc::clone(&self.make);
        spawn_blocking(move || make()).await.map_err(io::Error::other)
    }
}

async fn answer<F>(mut stream: TcpStream, page: &Page<F>) -> io::Result<()>
where
    F: Fn() -> String + Send + Sync + 'static,
{
    let is_local = stream.local_addr()?.ip().is_loopback();
    let (status, body) = match request(&mut stream).await? {
        Some(request) if is_local && !request.host.as_deref().is_none_or(is_local_name) => {
            ("421 Misdirected Request", "use an IP address or localhost\n".into())
        }
        Some(request) if request.target.split('?').next() == Some("/metrics") => {
            ("200 OK", page.text().await?)
        }
        Some(_) => ("404 Not Found", "the metrics are at /metrics\n".into()),
        None => ("400 Bad Request", "only GET is understood\n".into()),
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}

/// A request of GET.
struct Request {
    target: String,
    host: Option<String>,
}

/// Whether a name is that of this machine for itself, or an address.
fn is_local_name(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.parse::<u16>().is_ok() => name,
        _ => host,
    };
    let address = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost") || address.parse::<IpAddr>().is_ok()
}

/// `None` if the request is malformed.
async fn request(stream: &mut TcpStream) -> io::Result<Option<Request>> {
    let mut head = Vec::new();
    let mut piece = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let len = stream.read(&mut piece).await?;
        if len == 0 || head.len() + len > MAX_HEAD_BYTES {
            return Ok(None);
        }
        head.extend(&piece[..len]);
    }
    let head = String::from_utf8_lossy(&head);
    let mut words = head.lines().next().unwrap_or_default().split(' ');
    let fields = head.lines().skip(1).filter_map(|line| line.split_once(':'));
    let host = fields.filter(|(name, _)| name.eq_ignore_ascii_case("host")).last();
    Ok((words.next() == Some("GET")).then(|| Request {
        target: words.next().unwrap_or_default().to_owned(),
        host: host.map(|(_, host)| host.trim().to_owned()),
    }))
}
