//! The statistics of all packets, as text and as JSON.

use std::io::IsTerminal;
use std::time::Duration;

use rexmit::clock::{now, sleep_until};
use rexmit::emulator::{DirectionStatistics, EmulatorStatistics};
use serde::Serialize;

/// Interval of the progress lines on a terminal.
const PROGRESS: Duration = Duration::from_secs(5);

/// The statistics of all packets; `E` names the ends of the link.
#[derive(Serialize)]
pub(super) struct Summary<E> {
    #[serde(flatten)]
    ends: E,
    seed: u64,
    packets: u64,
    dropped: u64,
    late_p50_ms: f64,
    late_p99_ms: f64,
    #[serde(rename = "late_p99.9_ms")]
    late_p999_ms: f64,
    late_max_ms: f64,
    statistics: EmulatorStatistics,
}

impl<E> Summary<E> {
    pub(super) fn new(ends: E, seed: u64, statistics: EmulatorStatistics) -> Self {
        let late = statistics.lateness;
        let EmulatorStatistics { forward, backward, refused, .. } = statistics;
        Self {
            ends,
            seed,
            packets: forward.path.offered + backward.path.offered,
            dropped: dropped(&forward) + dropped(&backward) + refused,
            late_p50_ms: millis(late.p50),
            late_p99_ms: millis(late.p99),
            late_p999_ms: millis(late.p999),
            late_max_ms: millis(late.max),
            statistics,
        }
    }
}

/// Prints the statistics on a terminal at regular intervals, forever.
pub(super) async fn watch(statistics: impl Fn() -> EmulatorStatistics) {
    loop {
        sleep_until(now() + PROGRESS).await;
        if std::io::stderr().is_terminal() {
            let EmulatorStatistics { forward, backward, lateness, .. } = statistics();
            eprintln!(
                "forward {} packets, {} dropped; backward {}, {} dropped; late by {:.3} ms (99 %)",
                forward.path.offered,
                dropped(&forward),
                backward.path.offered,
                dropped(&backward),
                millis(lateness.p99),
            );
        }
    }
}

fn millis(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e6
}

fn dropped(direction: &DirectionStatistics) -> u64 {
    direction.path.lost() + direction.overflowed + direction.unsent
}

pub(super) fn text<E>(summary: &Summary<E>) -> String {
    let mut text = String::from(
        "           packets     lost  delivered  reordered  duplicated  corrupted  queue full\n",
    );
    for (name, direction) in
        [("forward", summary.statistics.forward), ("backward", summary.statistics.backward)]
    {
        let (path, arrivals) = (direction.path, direction.arrivals);
        text += &format!(
            "{name:9}{:9}{:9}{:11}{:11}{:12}{:11}{:12}\n",
            path.offered,
            path.lost() - path.lost_queue,
            arrivals.delivered,
            arrivals.reordered,
            path.duplicated,
            path.corrupted,
            path.lost_queue,
        );
    }
    let others = summary.statistics.forward.overflowed
        + summary.statistics.backward.overflowed
        + summary.statistics.forward.unsent
        + summary.statistics.backward.unsent
        + summary.statistics.refused;
    if others > 0 {
        text += &format!("dropped by the emulator itself, over its limits: {others}\n");
    }
    let marked = [summary.statistics.forward, summary.statistics.backward]
        .map(|direction| direction.path.aqm.marked)
        .iter()
        .sum::<u64>();
    if marked > 0 {
        text += &format!("marked by ECN instead of dropped: {marked}\n");
    }
    if summary.statistics.uncaptured > 0 {
        text += &format!("missing in the capture: {}\n", summary.statistics.uncaptured);
    }
    text += &format!(
        "lateness of packets: {:.3} ms (50 %), {:.3} ms (99 %), {:.3} ms (99.9 %), {:.3} ms at most\n",
        summary.late_p50_ms, summary.late_p99_ms, summary.late_p999_ms, summary.late_max_ms
    );
    text
}
