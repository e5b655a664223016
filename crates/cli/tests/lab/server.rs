//! A running server, and requests to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

/// A limit that no answer reaches, even on a busy machine.
const TIME_LIMIT: Duration = Duration::from_secs(120);

/// A server for one test; it ends when this value is dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Server {
    pub(crate) fn start() -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_rexmit"))
            .args(["lab", "serve", "--listen", "0", "--jobs", "2"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("http://").and_then(|it| it.strip_suffix('/'));
        let address = address.unwrap_or_else(|| panic!("{line:?}")).parse().unwrap();
        Self { child, address }
    }

    /// Sends a request, and returns the connection before reading anything.
    pub(crate) fn send(&self, head: &str, body: &[u8]) -> TcpStream {
        self.send_on_kept(&format!("{head}\r\nConnection: close"), body)
    }

    /// The same, over a connection that may carry more requests.
    pub(crate) fn send_on_kept(&self, head: &str, body: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(TIME_LIMIT)).unwrap();
        let length = body.len();
        write!(stream, "{head}\r\nContent-Length: {length}\r\n\r\n").unwrap();
        stream.write_all(body).unwrap();
        stream
    }

    /// The processor time that the server has used, in ticks.
    pub(crate) fn ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        // proc_pid_stat(5): fields 14 and 15, counted from the state (3) behind the name in parentheses.
        let (_, fields) = stat.rsplit_once(") ").unwrap();
        fields.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum()
    }

    /// The answer to a request with these lines of its head.
    pub(crate) fn ask(&self, head: &str, body: &[u8]) -> Answer {
        Answer::read(&mut self.send(head, body))
    }

    /// The answer to a POST of JSON, as the page sends it.
    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        self.ask(&self.head(path), body.to_string().as_bytes())
    }

    pub(crate) fn head(&self, path: &str) -> String {
        let host = self.address;
        format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nContent-Type: application/json"
        )
    }

    /// The last line about a run of `settings`.
    pub(crate) fn run(&self, settings: &Value) -> Value {
        let answer = self.post("/run", settings);
        assert_eq!(answer.status, 200, "{}", answer.body);
        serde_json::from_str(answer.body.lines().next_back().unwrap()).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn read(stream: &mut impl Read) -> Self {
        let mut bytes = Vec::new();
        // A server that refuses a large body may reset the connection after its answer.
        if let Err(error) = stream.read_to_end(&mut bytes) {
            assert!(!bytes.is_empty(), "{error}");
        }
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{text:?}"));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let is_chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
        let body = if is_chunked { unchunked(body) } else { body.to_owned() };
        Self { status, head: head.to_ascii_lowercase(), body }
    }
}

/// A body with its chunks joined (RFC 9112 §7.1).
fn unchunked(mut rest: &str) -> String {
    let mut body = String::new();
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        body += &after[..size];
        rest = &after[size + 2..];
    }
    body
}
