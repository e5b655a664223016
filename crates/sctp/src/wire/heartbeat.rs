//! HEARTBEAT and HEARTBEAT ACK (RFC 9260 §3.3.5, §3.3.6), which share their layout.

use super::frame::ChunkError;
use super::param::{Params, param_kind};
use super::sink::Sink;

/// The content of the Heartbeat Info parameter that such a chunk must begin with; what follows
/// it is ignored.
pub(super) fn decode_heartbeat_info(value: &[u8]) -> Result<&[u8], ChunkError> {
    match Params::new(value).next() {
        Some(Ok(param)) if param.kind == param_kind::HEARTBEAT_INFO => Ok(param.value),
        _ => Err(ChunkError::NoHeartbeatInfo),
    }
}

/// Appends a HEARTBEAT or a HEARTBEAT ACK, by `kind`.
pub(super) fn encode_heartbeat(sink: &mut Sink<'_>, kind: u8, info: &[u8]) {
    sink.chunk(kind, 0, |sink| sink.tlv(param_kind::HEARTBEAT_INFO, |sink| sink.put(info)));
}
