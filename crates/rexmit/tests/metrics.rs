//! Metrics of endpoints: what Prometheus' own checks (`promtool check metrics`) ask of them, and several endpoints on one page.

mod common;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{Pair, in_time};
use rexmit::Endpoint;
use rexmit::metrics::{self, Metrics};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// A family of metrics: its type, and its values by name and labels.
#[derive(Debug, Default)]
struct Family {
    kind: String,
    values: BTreeMap<String, f64>,
}

/// The families of a page. Panics if the page is not in Prometheus' text format: each family has its help and type once and
/// first, and its values together.
fn families(page: &str) -> BTreeMap<String, Family> {
    assert!(page.ends_with('\n'));
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let mut latest = String::new();
    for line in page.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, text) = help.split_once(' ').unwrap();
            assert!(text.ends_with('.'), "{line}");
            assert!(families.insert(name.into(), Family::default()).is_none(), "twice: {line}");
            latest = name.into();
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').unwrap();
            assert_eq!((name, families[name].kind.as_str()), (latest.as_str(), ""), "{line}");
            families.get_mut(name).unwrap().kind = kind.into();
        } else {
            let (place, value) = line.rsplit_once(' ').unwrap();
            let name = place.split('{').next().unwrap();
            assert!(
                name == latest
                    || name.strip_prefix(&latest).is_some_and(|it| matches!(it, "_sum" | "_count")),
                "{line}"
            );
            let values = &mut families.get_mut(&latest).unwrap().values;
            assert!(values.insert(place.into(), value.parse().unwrap()).is_none(), "twice: {line}");
        }
    }
    families
}

/// The rules of `promtool check metrics`.
fn assert_conventional(families: &BTreeMap<String, Family>) {
    for (name, Family { kind, values }) in families {
        assert!(name.starts_with("rexmit_"), "{name}");
        assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{name}");
        assert_eq!(name.ends_with("_total"), kind == "counter", "{name} is a {kind}");
        assert!(["counter", "gauge", "summary"].contains(&kind.as_str()), "{name} is a {kind}");
        assert!(!values.is_empty(), "{name}");
        let has_quantile = values.keys().any(|it| it.contains("quantile="));
        assert!(!has_quantile || kind == "summary", "{name} is a {kind}");
        for unit in ["_ms", "_millis", "_us", "_kb", "_kib", "_gauge", "_counter"] {
            assert!(!name.contains(&format!("{unit}_")) && !name.ends_with(unit), "{name}");
        }
    }
}

#[tokio::test]
async fn names_and_types_follow_the_conventions_of_prometheus() {
    let pair = Pair::connect().await;
    pair.ours.stream(0).send("hello").await.unwrap();
    in_time(pair.theirs.recv()).await.unwrap();
    let page = pair.client.metrics();
    let found = families(&page);
    assert_conventional(&found);
    let label = format!("{{association=\"0\",peer=\"{}\"}}", pair.server.local_addr());
    let value = |name: &str| found[name].values[&format!("{name}{label}")];
    assert_eq!(value("rexmit_association_messages_sent_total").to_bits(), 1f64.to_bits());
    assert_eq!(
        found["rexmit_associations"].values["rexmit_associations"].to_bits(),
        1f64.to_bits()
    );
}

#[tokio::test]
async fn several_endpoints_are_one_page_with_sums() {
    let [one, two] = [Pair::connect().await, Pair::connect().await];
    let (mut sent, mut labels) = (0, Vec::new());
    let endpoints = [one.client.clone(), two.client.clone()];
    let page = Endpoint::metrics_of_all(&endpoints);
    let found = families(&page);
    assert_conventional(&found);
    for (position, pair) in [&one, &two].into_iter().enumerate() {
        sent += pair.client.statistics().packets_sent;
        labels.push(format!(
            "rexmit_association_data_packets_total{{association=\"{position}.0\",peer=\"{}\"}}",
            pair.server.local_addr()
        ));
    }
    assert_eq!(
        found["rexmit_associations"].values["rexmit_associations"].to_bits(),
        2f64.to_bits()
    );
    let counted = found["rexmit_packets_sent_total"].values["rexmit_packets_sent_total"];
    // Each has sent INIT and COOKIE ECHO; heartbeats may have followed since the page was made.
    assert!(counted >= 4.0 && counted <= sent as f64, "{counted} of {sent}");
    let packets = &found["rexmit_association_data_packets_total"].values;
    assert_eq!(packets.keys().collect::<Vec<_>>(), labels.iter().collect::<Vec<_>>());
    assert_eq!(Endpoint::metrics_of_all(&[]).lines().filter(|it| !it.starts_with('#')).count(), 9);
}

#[test]
fn a_summary_and_a_help_with_line_breaks_are_well_formed() {
    let mut page = Metrics::new("rexmit");
    page.summary("wait_seconds", "A\nwait of \\ bytes.", [(0.5, 0.25), (1.0, 3.0)], (4, 2.5));
    let page = page.into_text();
    assert!(page.starts_with("# HELP rexmit_wait_seconds A\\nwait of \\\\ bytes.\n"), "{page}");
    let found = families(&page);
    assert_conventional(&found);
    let values = &found["rexmit_wait_seconds"].values;
    let names: Vec<_> = values.keys().map(String::as_str).collect();
    let quantiles =
        ["{quantile=\"0.5\"}", "{quantile=\"1\"}"].map(|it| format!("rexmit_wait_seconds{it}"));
    assert_eq!(names[2..], [&quantiles[0], &quantiles[1]].map(String::as_str));
    assert_eq!(names[..2], ["rexmit_wait_seconds_count", "rexmit_wait_seconds_sum"]);
}

/// The answer to a request for the metrics.
async fn read(address: SocketAddr) -> String {
    requested(address, "GET /metrics").await
}

async fn requested(address: SocketAddr, request: &str) -> String {
    sent(address, &format!("{request} HTTP/1.1\r\n\r\n")).await
}

/// The answer to a whole request.
async fn sent(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn only_the_metrics_are_served() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(metrics::serve(listener, || "a 1\n".into()));
    let cases = [
        ("GET /metrics", "200", "a 1\n"),
        ("GET /metrics?collect=all", "200", "a 1\n"),
        ("GET /", "404", "the metrics are at /metrics\n"),
        ("GET /metrics/../etc/passwd", "404", "the metrics are at /metrics\n"),
        ("DELETE /metrics", "400", "only GET is understood\n"),
    ];
    for (request, status, body) in cases {
        let answer = in_time(requested(address, request)).await;
        let (head, text) = answer.split_once("\r\n\r\n").unwrap();
        assert_eq!((head.split(' ').nth(1), text), (Some(status), body), "{request}");
        let length = format!("\r\nContent-Length: {}\r\n", body.len());
        assert!(head.contains(&length), "{request}: {head}");
    }
}

/// A name of another site may lead to this machine (DNS rebinding): its pages are not to read the metrics.
#[tokio::test]
async fn on_loopback_only_addresses_and_localhost_are_served() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(metrics::serve(listener, || "a 1\n".into()));
    for (host, status) in [
        ("127.0.0.1", "200"),
        ("127.0.0.1:9100", "200"),
        ("[::1]:9100", "200"),
        ("LocalHost:9100", "200"),
        ("rebound.example:9100", "421"),
        ("rebound.example", "421"),
        ("localhost.example", "421"),
    ] {
        let request = format!("GET /metrics HTTP/1.1\r\nhost:{host}\r\nX-Other: 1\r\n\r\n");
        let answer = in_time(sent(address, &request)).await;
        assert_eq!(answer.split(' ').nth(1), Some(status), "{host}");
    }
}

/// A runtime of one thread: if it made the page itself, the signal that the page waits for could not be given.
#[tokio::test]
async fn a_page_is_made_beside_everything_else_and_one_at_a_time() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (signal, signalled) = channel::<()>();
    let signalled: Arc<Mutex<Receiver<()>>> = Arc::new(Mutex::new(signalled));
    let (begun, mut has_begun) = tokio::sync::mpsc::unbounded_channel();
    let at_once = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&at_once);
    tokio::spawn(metrics::serve(listener, move || {
        let others = counted.fetch_add(1, Ordering::SeqCst);
        begun.send(others).unwrap();
        // The limit is reached by a failing test only.
        let signal = signalled.lock().unwrap().recv_timeout(Duration::from_secs(50));
        counted.fetch_sub(1, Ordering::SeqCst);
        if signal.is_ok() { "in time\n".into() } else { "late\n".into() }
    }));
    let readers: Vec<_> = (0..4).map(|_| tokio::spawn(read(address))).collect();
    for _ in 0..readers.len() {
        let others = in_time(has_begun.recv()).await.unwrap();
        assert_eq!(others, 0, "another page is being made");
        // Time for a second page to begin, if it may.
        tokio::time::sleep(Duration::from_millis(20)).await;
        signal.send(()).unwrap();
    }
    for reader in readers {
        let answer = in_time(reader).await.unwrap();
        assert!(answer.ends_with("\r\n\r\nin time\n"), "{answer}");
    }
}
