//! The statistics of an association.

use super::{Association, paths};
use crate::statistics::{AssociationStatistics, CongestionMarks, PathStatistics, Traffic};

impl Association {
    pub(crate) fn statistics(&self) -> AssociationStatistics {
        let recovery = &self.out.recovery;
        let mut traffic = Traffic {
            packets_sent: self.packets.sent,
            bytes_sent: self.packets.bytes_sent,
            packets_received: self.packets.received,
            bytes_received: self.packets.bytes_received,
            ..Traffic::default()
        };
        self.inbound.count(&mut traffic);
        self.out.count(&mut traffic);
        AssociationStatistics {
            traffic,
            recovery: *recovery.statistics(),
            thin: recovery.thinness(0),
            thin_streams: self.out.thin_streams(),
            send_buffered_bytes: self.out.buffered_bytes(),
            receive_buffered_bytes: self.inbound.held_bytes(),
            marks: self.ecn.as_ref().map_or_else(CongestionMarks::default, |ecn| ecn.counters()),
            interleaving: self.out.queue.is_interleaved(),
            paths: self.path_statistics(),
        }
    }

    pub(crate) fn path_statistics(&self) -> Vec<PathStatistics> {
        let recovery = &self.out.recovery;
        let of = |(path, entry): (u8, &paths::PathEntry)| {
            let (timer, window) = (recovery.paths()[path].timer(), recovery.paths()[path].window());
            let (flight, reach) =
                (recovery.outstanding().flight(path), recovery.paths()[path].reach());
            PathStatistics {
                local: entry.route.local,
                remote: entry.route.remote,
                state: reach.state(),
                is_primary: path == recovery.paths().primary(),
                errors: reach.errors(),
                srtt: timer.rtt().srtt(),
                rto: recovery.path_figures(path).rto,
                cwnd: window.cwnd(),
                ssthresh: window.ssthresh(),
                reordering: recovery.path_figures(path).reordering,
                packets_in_flight: flight.packets,
                bytes_in_flight: flight.bytes,
                max_packet_bytes: self.paths.sizes.packet_bytes(&self.config, path),
                mtu_discovery: self.paths.sizes.state(path),
                counters: recovery.paths()[path].counters(),
            }
        };
        (0..).zip(self.paths.iter()).map(of).collect()
    }
}
