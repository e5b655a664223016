//! The wire format of SCTP: packets, chunks, parameters and error causes (RFC 9260 §3), FORWARD-TSN
//! (RFC 3758), I-DATA and I-FORWARD-TSN (RFC 8260), RE-CONFIG (RFC 6525), AUTH (RFC 4895), and ASCONF
//! with the Supported Extensions parameter (RFC 5061).
//!
//! Reading borrows: [`Packet::parse`] checks the checksum, and [`Packet::chunks`], [`Params`] and [`Causes`]
//! are views over the caller's bytes that allocate nothing. Writing appends: a [`PacketWriter`] fills the
//! caller's buffer up to a limit, and leaves out entirely what does not fit.
//!
//! This module handles syntax only. The association checks whether a value is valid (an Initiate Tag of zero,
//! a gap ack block that ends before it starts, chunks that must not be bundled). No input causes a panic.
//!
//! # Leniency
//! A chunk may end without its padding at the end of a packet, and may count its final padding in its length
//! (RFC 9260 §3.2): up to three bytes more than the layout of a chunk requires are ignored. More is
//! [`ChunkError::Length`]. Reserved bits and padding bytes are ignored.

mod asconf;
mod auth;
mod cause;
mod chunk;
mod cursor;
mod data;
mod forward_tsn;
mod frame;
mod heartbeat;
mod i_data;
mod i_forward_tsn;
mod init;
mod packet;
mod param;
mod re_config;
mod sack;
mod sink;
#[cfg(test)]
mod tests;
mod tlv;
mod u16_list;
mod writer;

pub use asconf::{
    AnswersWriter, Asconf, AsconfAck, AsconfAnswer, AsconfAnswers, AsconfChange, AsconfRequest,
    AsconfRequests,
};
pub use auth::{AUTH_HEADER_LEN, Auth, may_be_authenticated};
pub use cause::{Cause, Causes, CausesWriter};
pub use chunk::{Chunk, RawChunk};
pub use data::{DATA_HEADER_LEN, Data, DataFlags};
pub use forward_tsn::{ForwardTsn, forward_tsn_len};
pub use frame::{ChunkError, UnknownAction, kind};
pub use i_data::{I_DATA_HEADER_LEN, IData};
pub use i_forward_tsn::{IForwardTsn, SkippedMid, i_forward_tsn_len};
pub use init::Init;
pub use packet::{COMMON_HEADER_LEN, Chunks, Header, Packet, PacketError, write_checksum};
pub use param::{Param, Params, ParamsWriter, RawParam, SCTP_OVER_DTLS, param_kind};
pub use re_config::{ReConfig, ReConfigParam, ReConfigParams, ReConfigResult};
pub use sack::{Sack, sack_len};
pub use tlv::TlvError;
pub use u16_list::U16List;
pub use writer::PacketWriter;

/// Bytes of a chunk's header: type, flags, length (RFC 9260 §3.2).
pub const CHUNK_HEADER_LEN: usize = 4;

/// Bytes of the header of a parameter or an error cause: type, length (RFC 9260 §3.2.1).
pub const TLV_HEADER_LEN: usize = 4;

/// `len` rounded up to the next multiple of four, as chunks and parameters are padded.
#[must_use]
pub const fn padded(len: usize) -> usize {
    len.saturating_add(3) & !3
}
