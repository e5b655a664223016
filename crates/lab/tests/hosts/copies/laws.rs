//! Invariants of the copy ledger on every path under every profile.

use rexmit_core::trace::TraceEvent;

use super::oracle::{Chunks, Look, Oracle, OracleSink, Segments};
use super::*;

/// Passes every event to both.
struct Both(Box<dyn TraceSink>, OracleSink);

impl TraceSink for Both {
    fn record(&mut self, now: Instant, association: u32, event: &TraceEvent) {
        self.0.record(now, association, event);
        self.1.record(now, association, event);
    }
}

fn every(interval_ms: u64, minutes: u64) -> ThinPlan {
    let count = minutes * 60_000 / interval_ms;
    let source = (0..count).map(move |n| (Instant::from_millis(500 + interval_ms * n), 100));
    ThinPlan::new(source, Instant::FAR_FUTURE)
}

fn counts_agree(copies: &CopyStatistics, sender: &RecoveryStatistics) {
    let sent = copies.sent();
    let again = &sender.retransmitted;
    assert_eq!((copies.packets, copies.units), (sender.packets, sender.new_units));
    let expected = per_cause(&[
        (SendCause::New, sender.new_units),
        (SendCause::Timeout, again.timeout),
        (SendCause::FastRetransmit, again.fast_retransmit),
        (SendCause::Bundled, again.bundled),
        (SendCause::WindowProbe, again.window_probe),
        (SendCause::Early, again.early),
        (SendCause::Redundant, again.redundant),
        (SendCause::Probe, again.probe),
    ]);
    assert_eq!(sent, expected);
}

const PATHS: [&str; 3] = [
    "delay 50ms loss 5%",
    "delay 40ms 30ms loss burst 10% 200ms reorder 5% 150ms duplicate 3% corrupt 1%",
    "delay 20ms loss 20% rate 64kbit limit 4",
];

/// Three minutes on each of the paths, and the final statistics of the ledger.
fn holds<T: Traced, L: Look>(recovery: &RecoveryConfig, interval_ms: u64) -> CopyStatistics {
    let mut all = CopyStatistics::default();
    for (number, path) in (1..).zip(PATHS) {
        let (ledger, oracle) = (T::ledger(), Oracle::default());
        let sink = Box::new(Both(ledger.sink(), oracle.sink()));
        let (plan, seed) = (every(interval_ms, 3), Seed::from_u64(number));
        let mut flow = Flow::new::<T>(recovery, &plan, [path, path], &seed, sink);
        let [sender, _] = flow.hosts;
        flow.network.add_observer(ledger.observer(sender));
        flow.network.add_observer(oracle.observer(sender));
        for second in 1..600 {
            flow.run(Instant::from_millis(second * 1000));
            let host = flow.network.machine(sender);
            let id = host.program::<ThinSender<T>>().expect("it runs there").id();
            let transport = host.transport::<T>().expect("it runs there");
            if let Some(counts) = id.and_then(|id| transport.recovery(id)) {
                counts_agree(&ledger.statistics(), &counts);
            }
        }
        let copies = ledger.statistics();
        oracle.check::<L>(&copies);
        assert_eq!((ledger.kept(), copies.delivered()), ((0, 0), copies.units), "on {path}");
        let on_purpose = copies.spurious()[SendCause::Redundant];
        assert_eq!(copies.spurious().total(), copies.spurious_classes.total() + on_purpose);
        all.merge(&copies);
    }
    all
}

/// Asserts that enough events occurred for the laws to be tested.
fn is_eventful(copies: &CopyStatistics, causes: &[SendCause]) {
    let (sent, spurious) = (copies.sent(), copies.spurious());
    for &cause in causes {
        assert!(sent[cause] > 50 && spurious[cause] > 5, "{cause:?}: {sent:?}, {spurious:?}");
        assert!(copies.latency_by_cause[cause].count() > 5, "{cause:?}");
    }
    let SpuriousClasses { premature, crossed, unacknowledged } = copies.spurious_classes;
    assert!(premature.min(crossed).min(unacknowledged) > 20, "{:?}", copies.spurious_classes);
    for (number, of_number) in copies.by_retransmission.iter().enumerate().skip(1) {
        assert!(of_number.latency.count() > 0, "number {number}");
        assert!(of_number.spurious.total() > 0, "number {number}, spuriously");
    }
}

#[test]
fn the_ledger_of_sctp_says_what_follows_from_all_that_happened() {
    let mut all = CopyStatistics::default();
    for (name, _) in rexmit_sctp::recovery::PROFILES {
        let profile = RecoveryConfig::profile(name).expect("a known profile");
        all.merge(&holds::<Sctp, Chunks>(&profile, 80));
    }
    use SendCause::{Bundled, Early, FastRetransmit, Redundant, Timeout};
    is_eventful(&all, &[Bundled, Early, FastRetransmit, Redundant, Timeout]);
}

#[test]
fn the_ledger_of_tcp_says_what_follows_from_all_that_happened() {
    let mut all = CopyStatistics::default();
    for (name, _) in rexmit_tcp::recovery::TCP_PROFILES {
        let profile = RecoveryConfig::tcp_profile(name).expect("a known profile");
        all.merge(&holds::<Tcp, Segments>(&profile, 80));
    }
    use SendCause::{FastRetransmit, Redundant, Timeout};
    is_eventful(&all, &[FastRetransmit, Redundant, Timeout]);
}

/// The largest number of entries in a ledger during the minutes of a run.
fn most_kept(minutes: u64) -> Vec<(usize, usize)> {
    let ledger = CopyLedger::of_sctp();
    let recovery = RecoveryConfig::profile("thin-bundling").expect("a known profile");
    let (plan, path) = (every(100, minutes), "delay 50ms 20ms loss 5% duplicate 1%");
    let seed = Seed::from_u64(1);
    let mut flow = Flow::new::<Sctp>(&recovery, &plan, [path, path], &seed, ledger.sink());
    flow.network.add_observer(ledger.observer(flow.hosts[0]));
    let mut minute = |from: u64| {
        let kept = (0..600).map(|n| {
            flow.run(Instant::from_millis(from * 60_000 + n * 100));
            ledger.kept()
        });
        kept.fold((0, 0), |(p, u), (packets, units)| (p.max(packets), u.max(units)))
    };
    (0..minutes).map(&mut minute).collect()
}

/// Ten packets in a second, each of which is in flight for at most 70 ms.
#[test]
fn memory_does_not_grow_with_the_length_of_a_run() {
    let kept = most_kept(10);
    assert!(kept.iter().all(|&(packets, units)| packets <= 8 && units <= 32), "{kept:?}");
    assert!(kept.iter().all(|&(packets, units)| packets > 0 && units > 1), "{kept:?}");
}
