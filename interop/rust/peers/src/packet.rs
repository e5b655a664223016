//! The few fields of an SCTP packet that the loop itself reads (RFC 9260 §3).

/// Bytes before the first chunk.
const COMMON_HEADER: usize = 12;

/// The chunk types the loop distinguishes (RFC 9260 §3.2).
pub(crate) mod chunk_type {
    /// ABORT.
    pub(crate) const ABORT: u8 = 6;
    /// SHUTDOWN ACK.
    pub(crate) const SHUTDOWN_ACK: u8 = 8;
    /// SHUTDOWN COMPLETE, always alone in its packet.
    pub(crate) const SHUTDOWN_COMPLETE: u8 = 14;
}

/// The type of a packet's first chunk.
pub(crate) fn first_chunk_type(packet: &[u8]) -> Option<u8> {
    packet.get(COMMON_HEADER).copied()
}

/// The chunks of the shutdown that were seen in packets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ending {
    pub(crate) has_shutdown_complete: bool,
    pub(crate) has_abort: bool,
}

impl Ending {
    pub(crate) fn on_packet(&mut self, packet: &[u8]) {
        match first_chunk_type(packet) {
            Some(chunk_type::SHUTDOWN_COMPLETE) => self.has_shutdown_complete = true,
            Some(chunk_type::ABORT) => self.has_abort = true,
            _ => {}
        }
    }
}
