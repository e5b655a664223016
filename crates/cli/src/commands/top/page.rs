//! The metrics page of another program: fetched, and read. It may contain anything.

use std::collections::BTreeMap;
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

/// A value of a metric.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Value {
    pub(super) name: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) value: f64,
}

/// The text of `http://HOST/metrics`, from the first of `addresses` that accepts a connection.
pub(super) async fn fetch(host: &str, addresses: &[SocketAddr]) -> io::Result<String> {
    let late = || {
        let what = format!("no complete answer within {} s", TIME_LIMIT.as_secs());
        io::Error::new(io::ErrorKind::TimedOut, what)
    };
    timeout(TIME_LIMIT, request(host, addresses)).await.unwrap_or_else(|_| Err(late()))
}

async fn request(host: &str, addresses: &[SocketAddr]) -> io::Result<String> {
    let mut stream = TcpStream::connect(addresses).await?;
    let request = format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(MAX_PAGE_BYTES + 1).read_to_end(&mut answer).await?;
    let broken = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
    if answer.len() as u64 > MAX_PAGE_BYTES {
        return Err(broken(format!("the page is longer than {MAX_PAGE_BYTES} bytes")));
    }
    let answer = String::from_utf8_lossy(&answer);
    let (head, page) = answer
        .split_once("\r\n\r\n")
        .ok_or_else(|| broken("it does not answer as an HTTP server does".into()))?;
    let status = head.lines().next().unwrap_or_default();
    if status.split(' ').nth(1) != Some("200") {
        let status: String = printable(status).chars().take(100).collect();
        return Err(broken(format!("it has no metrics: {status}")));
    }
    Ok(page.to_owned())
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
}
