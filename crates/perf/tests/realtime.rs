//! A short comparison on real sockets. Latencies depend on the machine, and are not checked.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rexmit_lab::link::Link;
use rexmit_lab::load::Load;
use rexmit_lab::measure::SCHEMA;
use rexmit_lab::table;
use rexmit_perf::realtime::{Progress, RealtimeError, Replay, ReplayOutcome, Transport};
use rexmit_study::page;

fn replay() -> Replay {
    Replay {
        load: Load::open("crossfire", Duration::from_secs(2)).unwrap(),
        link: Link { rtt: Duration::from_millis(20), loss: 0.02, ..Link::default() },
        transport: Transport::Sctp,
        profiles: vec!["rfc9260".into(), "lksctp".into()],
        seed: 5,
        unordered: false,
        deadline: None,
        logs: None,
    }
}

fn run(replay: &Replay) -> Result<(ReplayOutcome, usize), RealtimeError> {
    let seen = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&seen);
    let watch = Arc::new(move |progress| {
        if let Progress::Delivered { .. } = progress {
            count.fetch_add(1, Ordering::Relaxed);
        }
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let outcome = runtime.block_on(replay.run(watch))?;
    Ok((outcome, seen.load(Ordering::Relaxed)))
}

/// The replay itself checks that each message arrives once, unchanged and in order.
#[test]
fn every_profile_delivers_every_message_over_a_lossy_link() {
    let replay = replay();
    let (outcome, delivered) = run(&replay).unwrap();
    let (comparison, messages) = (&outcome.comparison, replay.load.messages());
    assert_eq!(delivered, 2 * messages);
    assert_eq!((comparison.schema, comparison.seed), (SCHEMA, 5));
    for (result, emulator) in comparison.runs.iter().zip(&outcome.emulators) {
        assert_eq!((result.messages, result.undelivered), (messages as u64, 0));
        let sent: u64 = replay.load.flows.iter().flatten().map(|m| u64::from(m.bytes)).sum();
        assert_eq!(result.payload_bytes, sent);
        assert_eq!(outcome.sending.count(), 2 * messages as u64);
        // Every payload byte is in a packet with headers; every packet met the emulator.
        assert!(result.wire_bytes > sent + 28 * result.packets, "{result:?}");
        assert!(result.packets <= emulator.forward.path.offered + emulator.backward.path.offered);
        assert!(emulator.backward.path.lost() > 0, "a seed that loses nothing tests nothing");
        assert!(result.retransmissions.total() > 0, "{result:?}");
        let stall = result.worst_stall.as_ref().expect("the trace reports it");
        let (low, high) = stall.message.sequence.expect("it is numbered");
        let carries = |send: &&rexmit_lab::timesequence::Send| {
            send.runs.iter().any(|run| run.0 <= low && run.1 >= high)
        };
        assert!(stall.sends.iter().any(|send| carries(&send)), "{stall:#?}");
        assert!(!stall.acknowledgements.is_empty());
    }
    let rows = table::render(comparison);
    let first = |row: &str| row.split_whitespace().next().unwrap_or_default().to_owned();
    let rows: Vec<_> = rows.lines().skip(1).take(2).map(first).collect();
    assert_eq!(rows, replay.profiles);
    let page = page::comparison::html(comparison).unwrap();
    assert!(page.contains("With rfc9260, half of the messages took"));
}

#[test]
fn unordered_messages_all_arrive_too() {
    let link = Link { reorder: 0.05, jitter: Duration::from_millis(2), ..replay().link };
    let profiles = vec!["rfc9260".into()];
    let replay = Replay { unordered: true, link, profiles, ..replay() };
    let (outcome, delivered) = run(&replay).unwrap();
    assert_eq!(delivered, replay.load.messages());
    assert_eq!(outcome.comparison.runs[0].undelivered, 0);
}

#[test]
fn impossible_replays_are_refused_before_anything_runs() {
    let unknown = Replay { profiles: vec!["reno".into()], ..replay() };
    let error = run(&unknown).unwrap_err().to_string();
    assert!(error.contains("`reno`") && error.contains("rfc9260"), "{error}");
    let burst = Link { burst: Some(0.5), ..replay().link };
    let error = run(&Replay { link: burst, ..replay() }).unwrap_err().to_string();
    assert!(error.contains("too short"), "{error}");
}
