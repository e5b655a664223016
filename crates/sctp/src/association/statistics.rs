//! What an association tells of itself.

use super::{Association, paths};
use crate::statistics::{AssociationStatistics, PathStatistics};

impl Association {
    pub(crate) fn statistics(&self) -> AssociationStatistics {
        let recovery = &self.out.recovery;
        AssociationStatistics {
            traffic: self.traffic,
            recovery: *recovery.statistics(),
            thin: recovery.thinness(0),
            thin_streams: self.out.thin_streams.thinness(recovery),
            send_buffered_bytes: self.out.buffered_bytes(),
            receive_buffered_bytes: self.inbound.held_bytes(),
            paths: self.path_statistics(),
        }
    }

    pub(crate) fn path_statistics(&self) -> Vec<PathStatistics> {
        let recovery = &self.out.recovery;
        let of = |(path, entry): (u8, &paths::PathEntry)| {
            let (timer, window) = (recovery.timer(path), recovery.window(path));
            let (flight, reach) = (recovery.flight(path), recovery.reach(path));
            PathStatistics {
                local: entry.route.local,
                remote: entry.route.remote,
                state: reach.state(),
                is_primary: path == recovery.primary_path(),
                errors: reach.errors(),
                srtt: timer.rtt().srtt(),
                rto: recovery.rto(path),
                cwnd: window.cwnd(),
                ssthresh: window.ssthresh(),
                reordering: recovery.reordering(path),
                packets_in_flight: flight.packets,
                bytes_in_flight: flight.bytes,
                counters: recovery.path_counters(path),
            }
        };
        (0..).zip(self.paths.iter()).map(of).collect()
    }
}
