//! The common parts of all chunks: types, decoding errors, and the action for a chunk of an
//! unknown type (RFC 9260 §3.2).

/// Chunk types (RFC 9260 §3.2, RFC 4960 appendix A, RFC 3758 §3.2, RFC 6525 §3.1, RFC 4895 §4.1, RFC 5061 §4.1, RFC 8260 §5, RFC 4820 §3).
pub mod kind {
    /// Payload Data.
    pub const DATA: u8 = 0;
    /// Initiation.
    pub const INIT: u8 = 1;
    /// Initiation Acknowledgement.
    pub const INIT_ACK: u8 = 2;
    /// Selective Acknowledgement.
    pub const SACK: u8 = 3;
    /// Heartbeat Request.
    pub const HEARTBEAT: u8 = 4;
    /// Heartbeat Acknowledgement.
    pub const HEARTBEAT_ACK: u8 = 5;
    /// Abort Association.
    pub const ABORT: u8 = 6;
    /// Shutdown Association.
    pub const SHUTDOWN: u8 = 7;
    /// Shutdown Acknowledgement.
    pub const SHUTDOWN_ACK: u8 = 8;
    /// Operation Error.
    pub const ERROR: u8 = 9;
    /// Cookie Echo.
    pub const COOKIE_ECHO: u8 = 10;
    /// Cookie Acknowledgement.
    pub const COOKIE_ACK: u8 = 11;
    /// Explicit Congestion Notification Echo.
    pub const ECNE: u8 = 12;
    /// Congestion Window Reduced.
    pub const CWR: u8 = 13;
    /// Shutdown Complete.
    pub const SHUTDOWN_COMPLETE: u8 = 14;
    /// Authentication.
    pub const AUTH: u8 = 15;
    /// Payload Data supporting Interleaving.
    pub const I_DATA: u8 = 64;
    /// Address Configuration Acknowledgment.
    pub const ASCONF_ACK: u8 = 128;
    /// Re-configuration.
    pub const RE_CONFIG: u8 = 130;
    /// Padding.
    pub const PAD: u8 = 132;
    /// Forward Cumulative TSN.
    pub const FORWARD_TSN: u8 = 192;
    /// Address Configuration Change.
    pub const ASCONF: u8 = 193;
    /// Forward Cumulative TSN for interleaved messages.
    pub const I_FORWARD_TSN: u8 = 194;
}

/// Why a chunk cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ChunkError {
    /// The length field is below four or exceeds the packet; the next chunk cannot be found.
    #[error("the length of a chunk does not fit its packet")]
    Framing,
    /// The length field does not match the type of the chunk, or the counts in it.
    #[error("the length of a chunk of type {kind} does not fit its layout")]
    Length {
        /// The chunk's type.
        kind: u8,
    },
    /// A HEARTBEAT or HEARTBEAT ACK does not begin with its mandatory parameter (RFC 9260 §3.3.5).
    #[error("a heartbeat without Heartbeat Info")]
    NoHeartbeatInfo,
    /// An ASCONF does not begin with its mandatory address parameter (RFC 5061 §4.1.1).
    #[error("an ASCONF without an address parameter")]
    NoAddress,
    /// A DATA or I-DATA chunk without user data, to be answered with an ABORT (RFC 9260 §6.2).
    #[error("DATA with TSN {tsn} has no user data")]
    NoUserData {
        /// The chunk's TSN, for the error cause.
        tsn: u32,
    },
}

/// The action for an unknown chunk or parameter, by the two high bits of its type
/// (RFC 9260 §3.2, §3.2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnknownAction {
    /// Whether the rest of the packet (for a parameter: of its chunk) is discarded; otherwise only this chunk
    /// or parameter is skipped.
    pub stop: bool,
    /// Whether the unknown chunk or parameter is reported to the sender.
    pub report: bool,
}

impl UnknownAction {
    /// The action that the two high bits of `type_high_byte` ask for.
    pub(super) const fn of(type_high_byte: u8) -> Self {
        Self { stop: type_high_byte & 0x80 == 0, report: type_high_byte & 0x40 != 0 }
    }
}
