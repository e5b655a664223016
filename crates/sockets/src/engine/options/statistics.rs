//! `SCTP_GET_ASSOC_STATS`.

use libc::EINVAL;

use super::super::socket::Socket;
use super::super::{Engine, Failure, Outcome};
use super::{sized, u32_at, words};
use crate::protocol::address;

/// The length of the structure.
const LENGTH: usize = 256;

/// `sctp_assoc_stats`, or its beginning if the buffer is shorter. Fields without a counter are 0.
pub(super) fn of_association(engine: &Engine, socket: &Socket, value: &[u8]) -> Outcome {
    let number = u32_at(sized(value, 4)?, 0);
    let (number, association) = engine.association_of(socket, number)?;
    let port = engine.ports.get(&association.port).ok_or(Failure(EINVAL))?;
    let statistics = port.endpoint.statistics(association.id).ok_or(Failure(EINVAL))?;
    let traffic = &statistics.traffic;
    let slowest = statistics.paths.iter().max_by_key(|path| path.rto);
    let mut bytes = words(&[number, 0]);
    let at = slowest.map(|path| (path.remote.ip(), association.remote_port).into());
    address::write_storage(at, &mut bytes);
    let counters = [
        slowest.map_or(0, |path| path.rto.as_millis() as u64),
        traffic.sacks_received,
        traffic.sacks_sent,
        traffic.packets_sent,
        traffic.packets_received,
        statistics.recovery.retransmitted.total(),
        0, // out of sequence
        traffic.duplicates_received,
        0, // gaps
        0, // unordered chunks sent
        0, // and received
        statistics.recovery.new_units,
    ];
    bytes.extend(counters.into_iter().flat_map(u64::to_ne_bytes));
    bytes.resize(LENGTH, 0);
    bytes.truncate(value.len());
    Ok(bytes)
}
