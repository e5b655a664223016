//! A proxy's statistics as text for Prometheus (its text format, version 0.0.4).

use std::fmt::Display;

use super::ProxyStatistics;
use crate::metrics::{Metrics, by_cause};
use crate::recovery::ByCause;

/// The statistics in Prometheus' text format.
#[must_use]
pub fn metrics(statistics: &ProxyStatistics) -> String {
    let mut text = Text(Metrics::new("rexmit_proxy"));
    connections(&mut text, statistics);
    let sent = [
        ("to", "service", statistics.sent.to_service),
        ("to", "client", statistics.sent.to_client),
    ];
    text.family("bytes_total", "counter", "Bytes carried.", sent);
    recovery(&mut text, statistics);
    text.single(
        "buffered_bytes",
        "gauge",
        "Bytes that wait in the buffers of the TCP towards the clients.",
        statistics.buffered_bytes,
    );
    if let Some(round_trips) = statistics.round_trips {
        let quantiles = [
            ("quantile", "0.5", round_trips.median.as_secs_f64()),
            ("quantile", "0.9", round_trips.p90.as_secs_f64()),
            ("quantile", "0.99", round_trips.p99.as_secs_f64()),
        ];
        let about = "Smoothed round-trip times of the clients that are there.";
        text.family("client_srtt_seconds", "summary", about, quantiles);
    }
    text.0.into_text()
}

fn connections(text: &mut Text, statistics: &ProxyStatistics) {
    let about = "Clients that were accepted.";
    text.single("connections_accepted_total", "counter", about, statistics.accepted);
    text.single("connections_open", "gauge", "Clients that are there.", statistics.open);
    let refused = [
        ("reason", "limit", statistics.refused_at_limit),
        ("reason", "upstream", statistics.refused_by_upstream),
    ];
    let about = "Clients that were reset at once.";
    text.family("connections_refused_total", "counter", about, refused);
    let ended = [
        ("how", "finished", statistics.finished),
        ("how", "reset_by_client", statistics.reset_by_client),
        ("how", "reset_by_service", statistics.reset_by_service),
        ("how", "client_silent", statistics.client_silent),
        ("how", "idle", statistics.idle),
        ("how", "stopped", statistics.stopped),
    ];
    text.family("connections_ended_total", "counter", "How connections ended.", ended);
}

fn recovery(text: &mut Text, statistics: &ProxyStatistics) {
    let recovery = &statistics.recovery;
    let about = "Segments with data sent to clients.";
    text.single("segments_total", "counter", about, recovery.packets);
    let about = "Segments declared lost on the way to clients.";
    text.single("segments_lost_total", "counter", about, recovery.packets_lost);
    let about = "Pieces of data sent to clients again, by cause.";
    text.family("retransmissions_total", "counter", about, each_cause(recovery.retransmitted));
    let about = "Retransmissions that a client reported as spurious, by cause.";
    text.family("spurious_retransmissions_total", "counter", about, each_cause(recovery.spurious));
    let about = "Redundant copies of data sent to clients.";
    let redundant = recovery.retransmitted.redundant;
    text.single("redundant_copies_total", "counter", about, redundant);
    let about = "Bytes of redundant copies sent to clients.";
    text.single("redundant_bytes_total", "counter", about, recovery.redundant_bytes);
    let about = "Lost segments whose data a redundant copy delivered.";
    text.single("segments_repaired_total", "counter", about, recovery.packets_repaired);
    let about = "Expiries of retransmission timers.";
    text.single("retransmission_timeouts_total", "counter", about, recovery.timeouts);
    let about = "Entries into fast recovery.";
    text.single("fast_recoveries_total", "counter", about, recovery.fast_recoveries);
}

/// A counter for each cause of retransmission.
fn each_cause(counts: ByCause) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
    by_cause(counts).map(|(cause, count)| ("cause", cause, count))
}

struct Text(Metrics);

impl Text {
    fn single(&mut self, name: &str, kind: &str, about: &str, value: impl Display) {
        self.0.single(name, kind, about, value);
    }

    fn family<V: Display>(
        &mut self,
        name: &str,
        kind: &str,
        about: &str,
        values: impl IntoIterator<Item = (&'static str, &'static str, V)>,
    ) {
        let labelled = |(label, text, value): (_, &str, _)| ([(label, text.to_owned())], value);
        self.0.family(name, kind, about, values.into_iter().map(labelled));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_has_its_line_below_its_type() {
        let mut statistics = ProxyStatistics { accepted: 7, ..ProxyStatistics::default() };
        statistics.sent.to_client = 11;
        statistics.recovery.retransmitted.bundled = 13;
        let text = metrics(&statistics);
        let follows = |first: &str, second: &str| {
            let at = text.find(first).unwrap_or_else(|| panic!("{first} is not in {text}"));
            assert!(text[at..].contains(second), "{second} does not follow {first} in {text}");
        };
        follows(
            "# TYPE rexmit_proxy_connections_accepted_total counter\n",
            "rexmit_proxy_connections_accepted_total 7\n",
        );
        follows(
            "# TYPE rexmit_proxy_bytes_total counter\n",
            "rexmit_proxy_bytes_total{to=\"client\"} 11\n",
        );
        follows(
            "# TYPE rexmit_proxy_retransmissions_total counter\n",
            "rexmit_proxy_retransmissions_total{cause=\"bundled\"} 13\n",
        );
        assert!(!text.contains("srtt"), "nothing was measured");
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (_, value) = line.rsplit_once(' ').unwrap();
            value.parse::<f64>().unwrap();
        }
    }
}
