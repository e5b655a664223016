//! Final statistics as plain numbers, in a fixed order: a renamed field does not change the hash, but another value
//! does.

use std::time::Duration;

use rexmit_sctp::recovery::{
    ByCause, RecoveryStatistics, ReorderingState, SpuriousEvents, Thinness,
};
use rexmit_sctp::{AssociationStatistics, PathState, PathStatistics};
use rexmit_tcp::ConnectionStatistics;

pub(super) fn of_association(statistics: &AssociationStatistics) -> Vec<u64> {
    let traffic = &statistics.traffic;
    let mut numbers = vec![
        traffic.packets_sent,
        traffic.bytes_sent,
        traffic.packets_received,
        traffic.bytes_received,
        traffic.messages_accepted,
        traffic.messages_delivered,
        traffic.messages_failed,
        traffic.payload_accepted_bytes,
        traffic.payload_delivered_bytes,
        traffic.duplicates_received,
        traffic.chunks_dropped,
        traffic.sacks_sent,
        traffic.sacks_received,
        statistics.send_buffered_bytes as u64,
        statistics.receive_buffered_bytes as u64,
    ];
    numbers.extend(of_recovery(&statistics.recovery));
    numbers.extend(of_thinness(&statistics.thin));
    for (stream, thin) in &statistics.thin_streams {
        numbers.push(u64::from(*stream));
        numbers.extend(of_thinness(thin));
    }
    statistics.paths.iter().for_each(|path| numbers.extend(of_path(path)));
    numbers
}

pub(super) fn of_connection(statistics: &ConnectionStatistics) -> Vec<u64> {
    let traffic = &statistics.traffic;
    let mut numbers = vec![
        traffic.segments_sent,
        traffic.bytes_sent,
        traffic.redundant_segments_sent,
        traffic.segments_received,
        traffic.bytes_received,
        traffic.payload_accepted_bytes,
        traffic.payload_delivered_bytes,
        traffic.acks_sent,
        traffic.duplicates_received,
        traffic.out_of_order_received,
        statistics.srtt.map_or(u64::MAX, nanos),
        nanos(statistics.rto),
        statistics.cwnd,
        statistics.ssthresh,
        statistics.bytes_in_flight,
        statistics.send_window,
        statistics.send_buffered_bytes as u64,
        statistics.receive_buffered_bytes as u64,
    ];
    numbers.extend(of_recovery(&statistics.recovery));
    numbers.extend(of_thinness(&statistics.thin));
    numbers.extend(of_reordering(&statistics.reordering));
    numbers
}

fn of_path(path: &PathStatistics) -> Vec<u64> {
    let state = match path.state {
        PathState::Unconfirmed => 0,
        PathState::Active => 1,
        PathState::PotentiallyFailed => 2,
        PathState::Inactive => 3,
        PathState::Removed => 4,
        state => panic!("give {state:?} a number"),
    };
    let mut numbers = vec![
        state,
        u64::from(path.is_primary),
        u64::from(path.errors),
        path.srtt.map_or(u64::MAX, nanos),
        nanos(path.rto),
        path.cwnd,
        path.ssthresh,
        u64::from(path.packets_in_flight),
        path.bytes_in_flight,
        path.counters.packets,
        path.counters.packets_lost,
        path.counters.retransmissions,
        path.counters.timeouts,
    ];
    numbers.extend(of_reordering(&path.reordering));
    numbers
}

fn of_recovery(statistics: &RecoveryStatistics) -> Vec<u64> {
    let mut numbers = vec![
        statistics.packets,
        statistics.packets_lost,
        statistics.retransmission_packets,
        statistics.new_units,
        statistics.timeouts,
        statistics.fast_recoveries,
        statistics.redundant_bytes,
        statistics.delayed_copies,
        statistics.copies_denied,
        statistics.acks_missed,
        statistics.packets_repaired,
        statistics.thin_changes,
    ];
    numbers.extend(of_causes(&statistics.retransmitted));
    numbers.extend(of_causes(&statistics.spurious));
    let SpuriousEvents {
        fast_retransmits,
        timeouts,
        by_duplicates,
        by_timestamps,
        by_f_rto,
        undone,
        unexplained_duplicates,
        ..
    } = statistics.spurious_events;
    let events = [
        fast_retransmits,
        timeouts,
        by_duplicates,
        by_timestamps,
        by_f_rto,
        undone,
        unexplained_duplicates,
    ];
    numbers.extend(events.map(u64::from));
    numbers
}

fn of_causes(causes: &ByCause) -> [u64; 7] {
    [
        causes.timeout,
        causes.fast_retransmit,
        causes.bundled,
        causes.window_probe,
        causes.early,
        causes.redundant,
        causes.probe,
    ]
}

fn of_thinness(thin: &Thinness) -> [u64; 4] {
    let in_flight = u64::from(thin.in_flight);
    [u64::from(thin.is_thin), in_flight, thin.loss_rate.to_bits(), thin.bound.to_bits()]
}

fn of_reordering(reordering: &ReorderingState) -> [u64; 3] {
    let reports = u64::from(reordering.missing_reports);
    [reports, reordering.percentile.to_bits(), u64::from(reordering.extent)]
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
