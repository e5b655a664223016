//! The metrics page of another program: fetched, and read. It may contain anything.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::output::printable;

/// Time limit for connecting and the whole answer.
const TIME_LIMIT: Duration = Duration::from_secs(5);
/// The longest page. That of an endpoint with 1024 associations has 3 MB, and 6 MB with eight paths each.
const MAX_PAGE_BYTES: u64 = 16 * 1024 * 1024;
/// The most values of a page that are kept.
const MAX_VALUES: usize = 100_000;
/// The path of the page.
const PAGE: &str = "/metrics";

/// A value of a metric.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Value {
    pub(super) name: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) value: f64,
}

/// Where a page of metrics is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Place {
    /// An address or a name, and a port.
    pub(super) host: String,
    path: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.host, self.path)
    }
}

/// Parses a port of this machine, an address or name with a port, or a URL. The page of a URL without a path is `/metrics`.
pub(super) fn place(text: &str) -> Result<Place, String> {
    if let Ok(port) = text.parse::<u16>() {
        return Ok(Place { host: format!("127.0.0.1:{port}"), path: PAGE.into() });
    }
    let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
    if !scheme.eq_ignore_ascii_case("http") {
        return Err(format!("metrics are served with HTTP, not with {scheme}: use http://"));
    }
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    // They are parts of the lines of the request.
    if text.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err("an address has no spaces".into());
    }
    if host.is_empty() {
        return Err("give the address and port of the metrics".into());
    }
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let host = if text.contains("://") && !has_port { format!("{host}:80") } else { host.into() };
    let path = if path.len() > 1 { path } else { PAGE };
    Ok(Place { host, path: path.into() })
}

/// The text of the page, from the first of `addresses` that accepts a connection.
pub(super) async fn fetch(place: &Place, addresses: &[SocketAddr]) -> io::Result<String> {
    let late = || {
        let what = format!("no complete answer within {} s", TIME_LIMIT.as_secs());
        io::Error::new(io::ErrorKind::TimedOut, what)
    };
    timeout(TIME_LIMIT, request(place, addresses)).await.unwrap_or_else(|_| Err(late()))
}

async fn request(place: &Place, addresses: &[SocketAddr]) -> io::Result<String> {
    let mut stream = TcpStream::connect(addresses).await?;
    let Place { host, path } = place;
    // A server must not send chunks to a client of HTTP/1.0 (RFC 9112 §6.1).
    let request = format!("GET {path} HTTP/1.0\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(MAX_PAGE_BYTES + 1).read_to_end(&mut answer).await?;
    if answer.len() as u64 > MAX_PAGE_BYTES {
        return Err(invalid(format!("the page is longer than {MAX_PAGE_BYTES} bytes")));
    }
    body(&answer)
}

/// The page in an answer that ended with its connection.
fn body(answer: &[u8]) -> io::Result<String> {
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n");
    let end = end.ok_or_else(|| invalid("it does not answer as an HTTP server does".into()))?;
    let (head, page) = (String::from_utf8_lossy(&answer[..end]), &answer[end + 4..]);
    let mut lines = head.lines();
    let status = lines.next().unwrap_or_default();
    if status.split(' ').nth(1) != Some("200") {
        let status: String = printable(status).chars().take(100).collect();
        return Err(invalid(format!("it has no metrics: {status}")));
    }
    let fields = lines.filter_map(|line| line.split_once(':'));
    let mut page = page;
    for (name, value) in fields {
        if name.eq_ignore_ascii_case("transfer-encoding") {
            return Err(invalid(
                "it sends the page in chunks, which HTTP/1.0 does not have".into(),
            ));
        }
        if name.eq_ignore_ascii_case("content-length") {
            let length = value.trim().parse::<usize>();
            let length = length.map_err(|_| invalid("its Content-Length is no number".into()))?;
            let here = page.len();
            page = page.get(..length).ok_or_else(|| {
                let what = format!("the page ended after {here} of {length} bytes");
                io::Error::new(io::ErrorKind::UnexpectedEof, what)
            })?;
        }
    }
    Ok(String::from_utf8_lossy(page).into_owned())
}

/// The error of a page that is not one of metrics.
pub(super) fn invalid(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// The values of a page in Prometheus' text format. Malformed lines are skipped.
pub(super) fn read(page: &str) -> Vec<Value> {
    page.lines().filter(|line| !line.starts_with('#')).filter_map(value).take(MAX_VALUES).collect()
}

fn value(line: &str) -> Option<Value> {
    let end = line.find(['{', ' '])?;
    let (name, mut rest) = line.split_at(end);
    let mut labels = BTreeMap::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        while let Some((label, after)) = rest.split_once("=\"") {
            let (text, after) = quoted(after)?;
            labels.insert(label.trim_start_matches(',').trim().to_owned(), text);
            rest = after;
            if rest.starts_with('}') {
                break;
            }
        }
        rest = rest.strip_prefix('}')?;
    }
    let value = rest.split_whitespace().next()?.parse().ok()?;
    Some(Value { name: name.to_owned(), labels, value })
}

/// A label's value and what follows its closing quote.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => match chars.next()?.1 {
                'n' => value.push('\n'),
                escaped => value.push(escaped),
            },
            c => value.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_their_labels_unescaped() {
        let page = "# HELP a b\na 1\nb{x=\"1\",y=\"q\\\"} \\\\ \\n\"} 2.5 1700000000\nc{} 3\n";
        let labels = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
        };
        let expected = [
            Value { name: "a".into(), labels: labels(&[]), value: 1.0 },
            Value {
                name: "b".into(),
                labels: labels(&[("x", "1"), ("y", "q\"} \\ \n")]),
                value: 2.5,
            },
            Value { name: "c".into(), labels: labels(&[]), value: 3.0 },
        ];
        assert_eq!(read(page), expected);
    }

    #[test]
    fn lines_that_are_no_values_are_left_out() {
        for line in [
            "",
            "a",
            "a{",
            "a{x",
            "a{x=\"1",
            "a{x=\"1\"",
            "a{x=\"1\\",
            "a{x=\"1\"} ",
            "a b",
            "{",
            "é{=\"\"}",
        ] {
            assert_eq!(read(line), [], "{line}");
        }
    }
    fn at(host: &str, path: &str) -> Result<Place, String> {
        Ok(Place { host: host.into(), path: path.into() })
    }

    #[test]
    fn an_address_is_a_port_a_host_or_a_url() {
        for (text, expected) in [
            ("9100", at("127.0.0.1:9100", "/metrics")),
            ("localhost:9100", at("localhost:9100", "/metrics")),
            ("[::1]:9100", at("[::1]:9100", "/metrics")),
            ("http://192.0.2.1:9100", at("192.0.2.1:9100", "/metrics")),
            ("HTTP://192.0.2.1:9100/", at("192.0.2.1:9100", "/metrics")),
            ("http://a.example/node/metrics?x=1", at("a.example:80", "/node/metrics?x=1")),
            ("http://[2001:db8::1]/metrics", at("[2001:db8::1]:80", "/metrics")),
            ("192.0.2.1:9100/metrics", at("192.0.2.1:9100", "/metrics")),
        ] {
            assert_eq!(place(text), expected, "{text}");
        }
        for text in ["", "/metrics", "https://a:1/", "http://", "a:1 x", "a:1/\r\nX: y"] {
            assert!(place(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_page_is_as_long_as_its_server_says() {
        let answer =
            |head: &str, page: &str| body(format!("HTTP/1.1 {head}\r\n\r\n{page}").as_bytes());
        assert_eq!(answer("200 OK", "a 1\n").unwrap(), "a 1\n");
        assert_eq!(answer("200 OK\r\ncontent-length:  4", "a 1\nrest").unwrap(), "a 1\n");
        for (head, expected) in [
            ("200 OK\r\nContent-Length: 5", "the page ended after 4 of 5 bytes"),
            ("200 OK\r\nContent-Length: -1", "its Content-Length is no number"),
            ("200 OK\r\nTransfer-Encoding: chunked", "in chunks"),
            ("404 Not \u{9b}Found", "it has no metrics: HTTP/1.1 404 Not \u{fffd}Found"),
        ] {
            let error = answer(head, "a 1\n").unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        assert!(body(b"SSH-2.0-OpenSSH\r\n").is_err());
    }
}
