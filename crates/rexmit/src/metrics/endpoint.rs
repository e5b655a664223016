//! The metrics of an endpoint.

use std::net::SocketAddr;

use rexmit_sctp::AssociationStatistics;

use super::{Metrics, by_cause};
use crate::EndpointStatistics;
use crate::recovery::ByCause;

/// The most associations of an endpoint with metrics of their own: those that began first.
pub const MAX_SHOWN_ASSOCIATIONS: usize = 1024;

/// The counters from which the metrics of an endpoint are made.
#[derive(Debug, Default)]
pub(crate) struct EndpointMetrics {
    /// Counters of the endpoint, or the sums of several.
    pub(crate) statistics: EndpointStatistics,
    /// Associations that have not ended.
    pub(crate) open: usize,
    /// Shards with their associations that have not ended: the number of the shard, after that of the endpoint if there are
    /// several.
    pub(crate) open_by_shard: Vec<(String, usize)>,
    /// The associations that are shown.
    pub(crate) associations: Vec<AssociationMetrics>,
}

/// An association and its counters.
#[derive(Debug)]
pub(crate) struct AssociationMetrics {
    /// The association's number in the endpoint, after that of the endpoint if there are several.
    pub(crate) number: String,
    pub(crate) peer: SocketAddr,
    pub(crate) statistics: AssociationStatistics,
}

impl AssociationMetrics {
    fn labels(&self) -> [(&'static str, String); 2] {
        [("association", self.number.clone()), ("peer", self.peer.to_string())]
    }

    fn labels_and(&self, name: &'static str, value: &impl ToString) -> [(&'static str, String); 3] {
        let [association, peer] = self.labels();
        [association, peer, (name, value.to_string())]
    }
}

impl EndpointMetrics {
    /// Adds those of the endpoint at `position` of a list.
    pub(crate) fn add(&mut self, position: usize, other: Self) {
        let shards = other.open_by_shard.into_iter();
        self.add_shard(Self {
            open_by_shard: shards
                .map(|(shard, open)| (format!("{position}.{shard}"), open))
                .collect(),
            associations: other
                .associations
                .into_iter()
                .map(|it| AssociationMetrics { number: format!("{position}.{}", it.number), ..it })
                .collect(),
            ..other
        });
    }

    /// Adds those of a further shard of the same endpoint.
    pub(crate) fn add_shard(&mut self, other: Self) {
        self.statistics += other.statistics;
        self.open += other.open;
        self.open_by_shard.extend(other.open_by_shard);
        self.associations.extend(other.associations);
    }

    /// The metrics in Prometheus' text format.
    pub(crate) fn text(&self) -> String {
        let mut metrics = Metrics::new("rexmit");
        self.endpoint(&mut metrics);
        self.recovery(&mut metrics);
        self.traffic(&mut metrics);
        self.paths(&mut metrics);
        metrics.into_text()
    }

    fn endpoint(&self, metrics: &mut Metrics) {
        let statistics = &self.statistics;
        let open = self.open as u64;
        let counts = [
            ("associations", "gauge", "Associations that have not ended.", open),
            (
                "packets_sent_total",
                "counter",
                "Packets that the system accepted for sending.",
                statistics.packets_sent,
            ),
            (
                "packets_unsent_total",
                "counter",
                "Packets that the system refused to send.",
                statistics.packets_unsent,
            ),
            (
                "packets_received_total",
                "counter",
                "Packets that arrived.",
                statistics.packets_received,
            ),
            (
                "packets_redirected_total",
                "counter",
                "Packets that a shard received for another.",
                statistics.packets_redirected,
            ),
            (
                "packets_dropped_total",
                "counter",
                "Packets for another shard that were dropped because too many waited for it.",
                statistics.packets_dropped,
            ),
            (
                "associations_not_accepted_total",
                "counter",
                "Associations aborted because too many waited to be accepted.",
                statistics.not_accepted,
            ),
            (
                "associations_refused_total",
                "counter",
                "Associations refused because there were too many.",
                statistics.protocol.refused_for_limit,
            ),
            (
                "packets_malformed_total",
                "counter",
                "Packets dropped because they were malformed.",
                statistics.protocol.malformed,
            ),
        ];
        for (name, kind, about, value) in counts {
            metrics.single(name, kind, about, value);
        }
        let shards = self.open_by_shard.iter();
        let shards = shards.map(|(shard, open)| ([("shard", shard.clone())], *open as u64));
        let about = "Associations that have not ended, by shard of an endpoint with several.";
        metrics.family("shard_associations", "gauge", about, shards);
    }

    /// A counter or gauge of each association.
    fn each(
        &self,
        metrics: &mut Metrics,
        (name, kind, about): (&str, &str, &str),
        value: impl Fn(&AssociationStatistics) -> u64,
    ) {
        let values = self.associations.iter().map(|it| (it.labels(), value(&it.statistics)));
        metrics.family(&format!("association_{name}"), kind, about, values);
    }

    /// A counter of each association for each cause of retransmission.
    fn each_by_cause(
        &self,
        metrics: &mut Metrics,
        (name, about): (&str, &str),
        counts: impl Fn(&AssociationStatistics) -> ByCause,
    ) {
        let values = self.associations.iter().flat_map(|it| {
            by_cause(counts(&it.statistics))
                .map(|(cause, count)| (it.labels_and("cause", &cause), count))
        });
        metrics.family(&format!("association_{name}"), "counter", about, values);
    }

    fn recovery(&self, metrics: &mut Metrics) {
        let about = ("data_packets_total", "counter", "Packets with data sent.");
        self.each(metrics, about, |it| it.recovery.packets);
        let about = ("data_packets_lost_total", "counter", "Packets with data declared lost.");
        self.each(metrics, about, |it| it.recovery.packets_lost);
        let about = ("retransmissions_total", "Chunks of data sent again, by cause.");
        self.each_by_cause(metrics, about, |it| it.recovery.retransmitted);
        let about = (
            "spurious_retransmissions_total",
            "Retransmissions that the peer reported as spurious, by cause.",
        );
        self.each_by_cause(metrics, about, |it| it.recovery.spurious);
        let about = ("redundant_copies_total", "counter", "Redundant copies of data sent.");
        self.each(metrics, about, |it| it.recovery.retransmitted.redundant);
        let about = ("redundant_bytes_total", "counter", "Bytes of redundant copies.");
        self.each(metrics, about, |it| it.recovery.redundant_bytes);
        let about = (
            "packets_repaired_total",
            "counter",
            "Lost packets whose data a redundant copy delivered.",
        );
        self.each(metrics, about, |it| it.recovery.packets_repaired);
        let about = ("timeouts_total", "counter", "Expiries of the retransmission timer.");
        self.each(metrics, about, |it| it.recovery.timeouts);
    }

    fn traffic(&self, metrics: &mut Metrics) {
        let about = ("messages_sent_total", "counter", "Messages accepted from the application.");
        self.each(metrics, about, |it| it.traffic.messages_accepted);
        let about = ("messages_received_total", "counter", "Messages handed to the application.");
        self.each(metrics, about, |it| it.traffic.messages_delivered);
        let about = ("bytes_sent_total", "counter", "Bytes of packets sent.");
        self.each(metrics, about, |it| it.traffic.bytes_sent);
        let about = ("bytes_received_total", "counter", "Bytes of packets received.");
        self.each(metrics, about, |it| it.traffic.bytes_received);
        let about =
            ("marks_received_total", "counter", "Packets received that a router had marked.");
        self.each(metrics, about, |it| it.marks.marks_received);
        let about = ("echoes_received_total", "counter", "Reports that packets sent were marked.");
        self.each(metrics, about, |it| it.marks.echoes_received);
        let about = ("send_buffered_bytes", "gauge", "Bytes accepted and not yet acknowledged.");
        self.each(metrics, about, |it| it.send_buffered_bytes as u64);
        let about = (
            "receive_buffered_bytes",
            "gauge",
            "Bytes received and not yet taken by the application.",
        );
        self.each(metrics, about, |it| it.receive_buffered_bytes as u64);
    }

    fn paths(&self, metrics: &mut Metrics) {
        let paths = || {
            self.associations.iter().flat_map(|it| {
                let paths = it.statistics.paths.iter().enumerate();
                paths.map(|(number, path)| (it.labels_and("path", &number), path))
            })
        };
        let srtt = paths().filter_map(|(labels, path)| Some((labels, path.srtt?.as_secs_f64())));
        metrics.family("path_srtt_seconds", "gauge", "Smoothed round-trip time.", srtt);
        let rto = paths().map(|(labels, path)| (labels, path.rto.as_secs_f64()));
        metrics.family("path_rto_seconds", "gauge", "Retransmission timeout.", rto);
        let cwnd = paths().map(|(labels, path)| (labels, path.cwnd));
        metrics.family("path_cwnd_bytes", "gauge", "Congestion window.", cwnd);
        let in_flight = paths().map(|(labels, path)| (labels, path.bytes_in_flight));
        metrics.family("path_in_flight_bytes", "gauge", "Bytes of data in flight.", in_flight);
    }
}
