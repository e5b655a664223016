//! Events that a program with the feature `tracing` receives.

mod common;

use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use common::{Pair, in_time};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Keeps the lines of all events.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.push_str(&format!(" {field}={value:?}"));
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "rexmit"
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(event.metadata().level().to_string());
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[tokio::test]
async fn an_association_is_reported_when_it_begins_and_ends_and_not_per_packet() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(lines.clone());
    let pair = Pair::connect().await;
    for _ in 0..100 {
        pair.ours.stream(0).send("message").await.unwrap();
        in_time(pair.theirs.recv()).await.unwrap();
    }
    in_time(pair.ours.shutdown()).await;
    in_time(pair.theirs.closed()).await;
    let lines = lines.0.lock().unwrap();
    let info: Vec<_> = lines.iter().filter(|line| line.starts_with("INFO")).collect();
    assert_eq!(info.len(), 4, "{lines:?}");
    let count = |part: &str| info.iter().filter(|line| line.contains(part)).count();
    assert_eq!((count("message=established"), count("message=ended")), (2, 2), "{lines:?}");
    assert_eq!((count("incoming=true"), count("incoming=false")), (1, 1), "{lines:?}");
}

#[tokio::test]
async fn loss_recovery_is_reported_at_level_debug() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(lines.clone());
    let client = common::bind(common::client_config());
    let server = common::bind(common::server_config());
    let link =
        rexmit::emulator::EmulatorConfig::new("127.0.0.1:0".parse().unwrap(), server.local_addr());
    let link = rexmit::emulator::Emulator::start(&link).unwrap();
    let connecting = client.connect(link.local_addr(), server.port());
    let (ours, _theirs) = in_time(async { tokio::join!(connecting, server.accept()) }).await;
    let ours = ours.unwrap();
    link.stop().unwrap();
    ours.stream(0).send("lost").await.unwrap();
    let is_told = || lines.0.lock().unwrap().iter().any(|line| line.starts_with("DEBUG"));
    in_time(async {
        while !is_told() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    })
    .await;
    let lines = lines.0.lock().unwrap();
    assert!(lines.iter().any(|line| line.contains("retransmission event")), "{lines:?}");
}
