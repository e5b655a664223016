//! Counters in the form that C reads.

use std::time::Duration;

use rexmit_sctp::recovery::ByCause;
use rexmit_sctp::{AssociationId, AssociationStatistics, PathStatistics, Traffic};

use crate::address::rexmit_address;
use crate::endpoint::{call, rexmit_endpoint};
use crate::event::{path_state, rexmit_path_state};
use crate::status::rexmit_status::{self, *};
use crate::status::{Failure, Outcome};

/// Retransmitted DATA chunks by cause.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct rexmit_by_cause {
    /// The retransmission timer expired.
    pub timeout: u64,
    /// Missing reports, or RACK.
    pub fast_retransmit: u64,
    /// Bundled with another retransmission.
    pub bundled: u64,
    /// A probe of a closed window.
    pub window_probe: u64,
    /// Early Fast Retransmit.
    pub early: u64,
    /// Redundant copies, which are not retransmissions.
    pub redundant: u64,
    /// The probe timer of a thin stream.
    pub probe: u64,
}

impl From<ByCause> for rexmit_by_cause {
    fn from(count: ByCause) -> Self {
        Self {
            timeout: count.timeout,
            fast_retransmit: count.fast_retransmit,
            bundled: count.bundled,
            window_probe: count.window_probe,
            early: count.early,
            redundant: count.redundant,
            probe: count.probe,
        }
    }
}

/// The traffic of an association.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct rexmit_traffic {
    /// SCTP packets sent.
    pub packets_sent: u64,
    /// Bytes of these.
    pub bytes_sent: u64,
    /// SCTP packets received.
    pub packets_received: u64,
    /// Bytes of these.
    pub bytes_received: u64,
    /// Messages accepted from the application.
    pub messages_accepted: u64,
    /// Messages handed to the application.
    pub messages_delivered: u64,
    /// Messages that failed.
    pub messages_failed: u64,
    /// Payload bytes accepted.
    pub payload_accepted_bytes: u64,
    /// Payload bytes handed to the application.
    pub payload_delivered_bytes: u64,
    /// DATA chunks received that had been received before.
    pub duplicates_received: u64,
    /// SACKs sent.
    pub sacks_sent: u64,
    /// SACKs received.
    pub sacks_received: u64,
}

impl From<&Traffic> for rexmit_traffic {
    fn from(traffic: &Traffic) -> Self {
        Self {
            packets_sent: traffic.packets_sent,
            bytes_sent: traffic.bytes_sent,
            packets_received: traffic.packets_received,
            bytes_received: traffic.bytes_received,
            messages_accepted: traffic.messages_accepted,
            messages_delivered: traffic.messages_delivered,
            messages_failed: traffic.messages_failed,
            payload_accepted_bytes: traffic.payload_accepted_bytes,
            payload_delivered_bytes: traffic.payload_delivered_bytes,
            duplicates_received: traffic.duplicates_received,
            sacks_sent: traffic.sacks_sent,
            sacks_received: traffic.sacks_received,
        }
    }
}

/// Counters of an association from its start, and its present state.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct rexmit_statistics {
    /// The traffic.
    pub traffic: rexmit_traffic,
    /// DATA chunks retransmitted.
    pub retransmitted: rexmit_by_cause,
    /// DATA chunks retransmitted spuriously, as far as is known.
    pub spurious: rexmit_by_cause,
    /// Bytes accepted and not yet acknowledged.
    pub send_buffered_bytes: u64,
    /// Bytes received and not yet read by the application.
    pub receive_buffered_bytes: u64,
    /// Whether the association is thin.
    pub is_thin: bool,
    /// The number of paths, for `rexmit_get_path_statistics`.
    pub paths: u8,
}

impl From<&AssociationStatistics> for rexmit_statistics {
    fn from(all: &AssociationStatistics) -> Self {
        Self {
            traffic: (&all.traffic).into(),
            retransmitted: all.recovery.retransmitted.into(),
            spurious: all.recovery.spurious.into(),
            send_buffered_bytes: all.send_buffered_bytes as u64,
            receive_buffered_bytes: all.receive_buffered_bytes as u64,
            is_thin: all.thin.is_thin,
            paths: all.paths.len() as u8,
        }
    }
}

/// One path of an association.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rexmit_path_statistics {
    /// Our address; unspecified if the system chooses it.
    pub local: rexmit_address,
    /// The peer's address.
    pub remote: rexmit_address,
    /// The state of the path.
    pub state: rexmit_path_state,
    /// Timeouts and unanswered HEARTBEATs in a row.
    pub errors: u32,
    /// Smoothed round-trip time in nanoseconds; 0 if it was not measured.
    pub srtt: u64,
    /// Retransmission timeout in nanoseconds.
    pub rto: u64,
    /// Congestion window in bytes.
    pub cwnd: u64,
    /// Slow start threshold in bytes.
    pub ssthresh: u64,
    /// Bytes in flight.
    pub bytes_in_flight: u64,
    /// Packets with data sent.
    pub packets: u64,
    /// Packets declared lost.
    pub packets_lost: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Whether new data uses it while it is active.
    pub is_primary: bool,
}

impl From<&PathStatistics> for rexmit_path_statistics {
    fn from(path: &PathStatistics) -> Self {
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Self {
            local: path.local.into(),
            remote: path.remote.into(),
            state: path_state(path.state),
            errors: path.errors,
            srtt: path.srtt.map_or(0, nanoseconds),
            rto: nanoseconds(path.rto),
            cwnd: path.cwnd,
            ssthresh: path.ssthresh,
            bytes_in_flight: path.bytes_in_flight,
            packets: path.counters.packets,
            packets_lost: path.counters.packets_lost,
            timeouts: path.counters.timeouts,
            is_primary: path.is_primary,
        }
    }
}

/// Writes as much of `value` as the caller has room for: a program built with an older, shorter structure continues to
/// work, and one built with a newer structure finds zeros in the rest.
///
/// # Safety
/// `pointer` is NULL or points to `size` bytes.
unsafe fn store_sized<T: Copy>(pointer: *mut T, size: usize, value: T) -> Outcome {
    if pointer.is_null() {
        return Err(Failure::null("where the statistics go"));
    }
    // SAFETY: As the caller promised; a shorter structure is a prefix of this one.
    unsafe {
        pointer.cast::<u8>().write_bytes(0, size);
        let bytes = std::ptr::from_ref(&value).cast::<u8>();
        pointer.cast::<u8>().copy_from_nonoverlapping(bytes, size.min(size_of::<T>()));
    }
    Ok(())
}

/// Counters of an association, also right after REXMIT_EVENT_CLOSED. `size` is `sizeof(struct rexmit_statistics)`.
///
/// ```c
/// rexmit_statistics statistics;
/// if (rexmit_get_statistics(endpoint, association, &statistics, sizeof statistics) == REXMIT_OK)
///     printf("%llu bytes wait\n", (unsigned long long)statistics.send_buffered_bytes);
/// ```
///
/// # Safety
/// `endpoint` came from `rexmit_endpoint_new`; `statistics` points to `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_get_statistics(
    endpoint: *mut rexmit_endpoint,
    association: u64,
    statistics: *mut rexmit_statistics,
    size: usize,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe {
        call(endpoint, 0, |endpoint, _| {
            let all = read(endpoint, association)?;
            store_sized(statistics, size, rexmit_statistics::from(&all))
        })
    }
}

/// The statistics of one path of an association, by number. `size` is `sizeof(struct
/// rexmit_path_statistics)`.
///
/// # Safety
/// `endpoint` came from `rexmit_endpoint_new`; `statistics` points to `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_get_path_statistics(
    endpoint: *mut rexmit_endpoint,
    association: u64,
    path: u8,
    statistics: *mut rexmit_path_statistics,
    size: usize,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe {
        call(endpoint, 0, |endpoint, _| {
            let all = read(endpoint, association)?;
            let missing = || Failure::new(REXMIT_NOT_FOUND, format!("there is no path {path}"));
            let path = all.paths.get(usize::from(path)).ok_or_else(missing)?;
            store_sized(statistics, size, rexmit_path_statistics::from(path))
        })
    }
}

fn read(endpoint: &rexmit_endpoint, association: u64) -> Result<AssociationStatistics, Failure> {
    let missing = || Failure::new(REXMIT_NO_ASSOCIATION, "there is no such association");
    endpoint.sctp.statistics(AssociationId::from_bits(association)).ok_or_else(missing)
}
