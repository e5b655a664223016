//! One chunk: its frame, its type, and its value, decoded by type (RFC 9260 §3.2, §3.3).

use super::cursor::Cursor;
use super::frame::{ChunkError, UnknownAction, kind};
use super::heartbeat::decode_heartbeat_info;
use super::{
    Asconf, AsconfAck, Auth, CHUNK_HEADER_LEN, Causes, Data, ForwardTsn, IData, IForwardTsn, Init,
    ReConfig, Sack,
};

/// The T bit of ABORT and SHUTDOWN COMPLETE: the verification tag is reflected (RFC 9260 §3.3.7).
pub(super) const T_BIT: u8 = 1;

/// A chunk of a received packet, not decoded yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RawChunk<'a> {
    /// The chunk type, as in [`kind`].
    pub kind: u8,
    /// The flags byte, with unknown flags.
    pub flags: u8,
    /// The value, without padding.
    pub value: &'a [u8],
    /// The whole chunk with its header, without padding, as an Unrecognized Chunk Type cause quotes it.
    pub bytes: &'a [u8],
}

impl<'a> RawChunk<'a> {
    /// The chunk at the start of `packet_rest`; `None` if its length does not fit there.
    pub(super) fn split(packet_rest: &'a [u8]) -> Option<Self> {
        let [kind, flags, high, low] = Cursor(packet_rest).array()?;
        let bytes = packet_rest.get(..usize::from(u16::from_be_bytes([high, low])))?;
        let value = bytes.get(CHUNK_HEADER_LEN..)?;
        Some(Self { kind, flags, value, bytes })
    }

    /// Decodes the chunk. Its parameters and causes are decoded when they are iterated over.
    ///
    /// # Errors
    /// [`ChunkError::Length`] if it is shorter than its layout, or longer by more than padding;
    /// [`ChunkError::NoUserData`], [`ChunkError::NoHeartbeatInfo`], [`ChunkError::NoAddress`].
    pub fn decode(&self) -> Result<Chunk<'a>, ChunkError> {
        let t_bit = self.flags & T_BIT != 0;
        let value = self.value;
        let chunk = match self.kind {
            kind::DATA => return self.sized(Data::decode(self.flags, value))?.map(Chunk::Data),
            kind::I_DATA => {
                return self.sized(IData::decode(self.flags, value))?.map(Chunk::IData);
            }
            kind::INIT => Init::decode(value).map(Chunk::Init),
            kind::INIT_ACK => Init::decode(value).map(Chunk::InitAck),
            kind::SACK => Sack::decode(self.flags, value).map(Chunk::Sack),
            kind::HEARTBEAT => return decode_heartbeat_info(value).map(Chunk::Heartbeat),
            kind::HEARTBEAT_ACK => return decode_heartbeat_info(value).map(Chunk::HeartbeatAck),
            kind::ABORT => Some(Chunk::Abort { t_bit, causes: Causes::new(value) }),
            kind::SHUTDOWN => decode_shutdown(value),
            kind::SHUTDOWN_ACK => Cursor(value).end_of_chunk().map(|()| Chunk::ShutdownAck),
            kind::ERROR => Some(Chunk::Error { causes: Causes::new(value) }),
            kind::COOKIE_ECHO => Some(Chunk::CookieEcho(value)),
            kind::COOKIE_ACK => Cursor(value).end_of_chunk().map(|()| Chunk::CookieAck),
            kind::ECNE => decode_ecne(value),
            kind::CWR => decode_cwr(value),
            kind::SHUTDOWN_COMPLETE => {
                Cursor(value).end_of_chunk().map(|()| Chunk::ShutdownComplete { t_bit })
            }
            kind::RE_CONFIG => Some(Chunk::ReConfig(ReConfig::new(value))),
            kind::AUTH => Auth::decode(value).map(Chunk::Auth),
            kind::PAD => Some(Chunk::Pad(value)),
            kind::ASCONF => return Asconf::decode(value).map(Chunk::Asconf),
            kind::ASCONF_ACK => AsconfAck::decode(value).map(Chunk::AsconfAck),
            kind::FORWARD_TSN => ForwardTsn::decode(value).map(Chunk::ForwardTsn),
            kind::I_FORWARD_TSN => IForwardTsn::decode(value).map(Chunk::IForwardTsn),
            _ => Some(Chunk::Unknown),
        };
        self.sized(chunk)
    }

    fn sized<T>(&self, decoded: Option<T>) -> Result<T, ChunkError> {
        decoded.ok_or(ChunkError::Length { kind: self.kind })
    }

    /// The action for an unknown chunk type.
    #[must_use]
    pub const fn unknown_action(&self) -> UnknownAction {
        UnknownAction::of(self.kind)
    }
}

/// A chunk, decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Chunk<'a> {
    /// User data (RFC 9260 §3.3.1).
    Data(Data<'a>),
    /// User data of messages that may be interleaved (RFC 8260 §2.1).
    IData(IData<'a>),
    /// The first packet of a handshake (RFC 9260 §3.3.2).
    Init(Init<'a>),
    /// The response to INIT; its State Cookie is a parameter (RFC 9260 §3.3.3).
    InitAck(Init<'a>),
    /// Selective acknowledgement (RFC 9260 §3.3.4).
    Sack(Sack<'a>),
    /// The sender's opaque Heartbeat Info, without its parameter header (RFC 9260 §3.3.5).
    Heartbeat(&'a [u8]),
    /// The Heartbeat Info sent back (RFC 9260 §3.3.6).
    HeartbeatAck(&'a [u8]),
    /// The sender has aborted the association (RFC 9260 §3.3.7).
    Abort {
        /// The verification tag is the one of the packet that caused the ABORT.
        t_bit: bool,
        /// Zero or more causes.
        causes: Causes<'a>,
    },
    /// The sender has no more user data (RFC 9260 §3.3.8).
    Shutdown {
        /// All TSNs up to this one were received.
        cumulative_tsn_ack: u32,
    },
    /// The response to SHUTDOWN (RFC 9260 §3.3.9).
    ShutdownAck,
    /// An error that does not end the association (RFC 9260 §3.3.10).
    Error {
        /// One or more causes; an empty list is not refused here.
        causes: Causes<'a>,
    },
    /// The State Cookie of the INIT ACK, returned (RFC 9260 §3.3.11).
    CookieEcho(&'a [u8]),
    /// The response to COOKIE ECHO (RFC 9260 §3.3.12).
    CookieAck,
    /// A router has marked a packet of the receiver of this chunk (RFC 4960 appendix A).
    Ecne {
        /// The lowest TSN of the marked packet.
        lowest_tsn: u32,
    },
    /// The response to ECNE: the window was reduced (RFC 4960 appendix A).
    Cwr {
        /// Marks of packets up to this TSN are answered by the reduction.
        lowest_tsn: u32,
    },
    /// The response to SHUTDOWN ACK (RFC 9260 §3.3.13).
    ShutdownComplete {
        /// The verification tag is the one of the packet that caused it.
        t_bit: bool,
    },
    /// The sender gave up on TSNs (RFC 3758 §3.2).
    ForwardTsn(ForwardTsn<'a>),
    /// The sender gave up on TSNs, with interleaved messages (RFC 8260 §2.3.1).
    IForwardTsn(IForwardTsn<'a>),
    /// Requests and responses about streams (RFC 6525 §3.1).
    ReConfig(ReConfig<'a>),
    /// AUTH: authenticates the chunks after it (RFC 4895 §4.1).
    Auth(Auth<'a>),
    /// Requests about the sender's addresses (RFC 5061 §4.1.1).
    Asconf(Asconf<'a>),
    /// Answers to an ASCONF (RFC 5061 §4.1.2).
    AsconfAck(AsconfAck<'a>),
    /// Padding, to be ignored (RFC 4820 §3).
    Pad(&'a [u8]),
    /// A chunk of another type; see [`RawChunk::unknown_action`].
    Unknown,
}

/// ECNE; some implementations add the number of marked packets, which is not used.
fn decode_ecne<'a>(value: &[u8]) -> Option<Chunk<'a>> {
    let mut cursor = Cursor(value);
    let lowest_tsn = cursor.u32()?;
    let _number_of_packets = cursor.u32();
    cursor.end_of_chunk()?;
    Some(Chunk::Ecne { lowest_tsn })
}

fn decode_cwr<'a>(value: &[u8]) -> Option<Chunk<'a>> {
    let mut cursor = Cursor(value);
    let lowest_tsn = cursor.u32()?;
    cursor.end_of_chunk()?;
    Some(Chunk::Cwr { lowest_tsn })
}

fn decode_shutdown<'a>(value: &[u8]) -> Option<Chunk<'a>> {
    let mut cursor = Cursor(value);
    let cumulative_tsn_ack = cursor.u32()?;
    cursor.end_of_chunk()?;
    Some(Chunk::Shutdown { cumulative_tsn_ack })
}
