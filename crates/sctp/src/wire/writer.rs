//! Builds packets (RFC 9260 §3, §6.8, §6.10).

use std::net::IpAddr;

use super::asconf::{AnswersWriter, AsconfRequest, encode_asconf, encode_asconf_ack};
use super::auth::{AUTH_HEADER_LEN, Auth};
use super::cause::CausesWriter;
use super::chunk::T_BIT;
use super::forward_tsn::encode_forward_tsn;
use super::frame::kind;
use super::heartbeat::encode_heartbeat;
use super::i_forward_tsn::encode_i_forward_tsn;
use super::packet::write_checksum;
use super::param::ParamsWriter;
use super::re_config::encode_re_config;
use super::sack::encode_sack;
use super::sink::Sink;
use super::{
    CHUNK_HEADER_LEN, COMMON_HEADER_LEN, Chunk, Data, Header, IData, Init, ReConfigParam,
    SkippedMid, padded,
};

/// The longest MAC that can be written: that of SHA-256.
const MAX_MAC_LEN: usize = 32;

/// Builds one packet in the caller's buffer, never beyond a limit.
///
/// Each chunk method returns whether the chunk was written: one that does not fit, or would be longer than
/// 65535 bytes, is left out entirely. The caller is responsible for the order of chunks, and for which of
/// them may be bundled (RFC 9260 §6.10).
///
/// ```
/// use rexmit_sctp::wire::{Chunk, Header, Packet, PacketWriter};
///
/// let mut buffer = Vec::new();
/// let header = Header { source_port: 5000, destination_port: 5001, verification_tag: 7 };
/// let mut writer = PacketWriter::new(&mut buffer, 1280, header);
/// writer.shutdown(99);
/// assert_eq!(writer.finish(), 20);
///
/// let packet = Packet::parse(&buffer)?;
/// let chunk = packet.chunks().next().expect("one chunk")?.decode()?;
/// assert_eq!(chunk, Chunk::Shutdown { cumulative_tsn_ack: 99 });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a packet has no checksum before `finish`"]
pub struct PacketWriter<'b> {
    buffer: &'b mut Vec<u8>,
    limit: usize,
    /// Where AUTH begins, and the length of its MAC.
    auth: Option<(usize, usize)>,
    has_checksum: bool,
}

impl<'b> PacketWriter<'b> {
    /// Clears `buffer` and begins a packet of at most `limit` bytes in it.
    ///
    /// The limit is rounded down to a multiple of four, since every chunk is padded to one. With a limit
    /// below the size of the common header no chunk fits.
    pub fn new(buffer: &'b mut Vec<u8>, limit: usize, header: Header) -> Self {
        buffer.clear();
        buffer.extend_from_slice(&header.source_port.to_be_bytes());
        buffer.extend_from_slice(&header.destination_port.to_be_bytes());
        buffer.extend_from_slice(&header.verification_tag.to_be_bytes());
        buffer.extend_from_slice(&[0; 4]);
        Self { buffer, limit: limit & !3, auth: None, has_checksum: true }
    }

    /// Changes the limit of the packet to `limit` bytes, rounded down as in [`Self::new`].
    pub const fn set_limit(&mut self, limit: usize) {
        self.limit = limit & !3;
    }

    /// Bytes available for another chunk, including its padding. A multiple of four.
    #[must_use]
    pub fn room(&self) -> usize {
        self.limit.saturating_sub(self.buffer.len())
    }

    /// Bytes of the packet so far, padding and common header included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.buffer.len()
    }

    /// Whether the packet has no chunk yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.buffer.len() <= COMMON_HEADER_LEN
    }

    /// Sets whether the packet gets a checksum (the default) or zero in its place (RFC 9653 §5.2).
    pub const fn set_checksum(&mut self, has_checksum: bool) {
        self.has_checksum = has_checksum;
    }

    /// Writes the checksum and returns the packet's length.
    pub fn finish(self) -> usize {
        if self.has_checksum {
            write_checksum(self.buffer);
        }
        self.buffer.len()
    }

    /// Appends DATA (RFC 9260 §3.3.1), which takes
    /// [`DATA_HEADER_LEN`](super::DATA_HEADER_LEN) bytes and its padded payload.
    pub fn data(&mut self, data: &Data<'_>) -> bool {
        self.append(|sink| data.encode(sink))
    }

    /// Appends I-DATA (RFC 8260 §2.1), which takes
    /// [`I_DATA_HEADER_LEN`](super::I_DATA_HEADER_LEN) bytes and its padded payload.
    pub fn i_data(&mut self, data: &IData<'_>) -> bool {
        self.append(|sink| data.encode(sink))
    }

    /// Appends INIT (RFC 9260 §3.3.2): its own parameters, then those that `params` adds.
    pub fn init(
        &mut self,
        init: &Init<'_>,
        params: impl FnOnce(&mut ParamsWriter<'_, '_>),
    ) -> bool {
        self.append(|sink| init.encode(kind::INIT, sink, params))
    }

    /// Appends INIT ACK (RFC 9260 §3.3.3): its own parameters, then those that `params` adds.
    pub fn init_ack(
        &mut self,
        init_ack: &Init<'_>,
        params: impl FnOnce(&mut ParamsWriter<'_, '_>),
    ) -> bool {
        self.append(|sink| init_ack.encode(kind::INIT_ACK, sink, params))
    }

    /// Appends SACK (RFC 9260 §3.3.4), which takes [`sack_len`](super::sack_len) bytes.
    /// Gap ack blocks are offsets of their first and last TSN from `cumulative_tsn_ack`.
    pub fn sack(
        &mut self,
        cumulative_tsn_ack: u32,
        a_rwnd: u32,
        gap_ack_blocks: impl IntoIterator<Item = (u16, u16)>,
        duplicate_tsns: impl IntoIterator<Item = u32>,
    ) -> bool {
        self.sack_of(0, cumulative_tsn_ack, a_rwnd, gap_ack_blocks, duplicate_tsns)
    }

    /// Appends SACK with the number of packets that it acknowledges; see
    /// [`Sack::packets`](super::Sack::packets).
    pub fn sack_of(
        &mut self,
        packets: u8,
        cumulative_tsn_ack: u32,
        a_rwnd: u32,
        gap_ack_blocks: impl IntoIterator<Item = (u16, u16)>,
        duplicate_tsns: impl IntoIterator<Item = u32>,
    ) -> bool {
        let (cumulative, gaps) = (cumulative_tsn_ack, gap_ack_blocks);
        self.append(|sink| encode_sack(sink, packets, cumulative, a_rwnd, gaps, duplicate_tsns))
    }

    /// Appends HEARTBEAT with this content of its Heartbeat Info (RFC 9260 §3.3.5).
    pub fn heartbeat(&mut self, info: &[u8]) -> bool {
        self.append(|sink| encode_heartbeat(sink, kind::HEARTBEAT, info))
    }

    /// Appends HEARTBEAT ACK with the content of the HEARTBEAT's Heartbeat Info
    /// (RFC 9260 §3.3.6).
    pub fn heartbeat_ack(&mut self, info: &[u8]) -> bool {
        self.append(|sink| encode_heartbeat(sink, kind::HEARTBEAT_ACK, info))
    }

    /// Appends PAD (RFC 4820 §3) that fills the packet up to its limit. Without room for a chunk the packet stays as
    /// it was.
    pub fn pad(&mut self) -> bool {
        let len = self.room().min(usize::from(u16::MAX) & !3);
        let Some(zeros) = len.checked_sub(CHUNK_HEADER_LEN) else { return false };
        self.append(|sink| {
            sink.chunk(kind::PAD, 0, |sink| sink.zeros(zeros));
        })
    }

    /// Appends ABORT with the causes that `causes` adds, which may be none (RFC 9260 §3.3.7).
    pub fn abort(&mut self, t_bit: bool, causes: impl FnOnce(&mut CausesWriter<'_, '_>)) -> bool {
        self.append(|sink| {
            sink.chunk(kind::ABORT, t_flag(t_bit), |sink| causes(&mut CausesWriter::new(sink)));
        })
    }

    /// Appends ERROR with the causes that `causes` adds (RFC 9260 §3.3.10). If none of them fits, nothing is written,
    /// because an ERROR has at least one.
    pub fn error(&mut self, causes: impl FnOnce(&mut CausesWriter<'_, '_>)) -> bool {
        let start = self.buffer.len();
        self.append(|sink| {
            sink.chunk(kind::ERROR, 0, |sink| causes(&mut CausesWriter::new(sink)));
        });
        if self.buffer.len() == start + CHUNK_HEADER_LEN {
            self.buffer.truncate(start);
        }
        self.buffer.len() > start
    }

    /// Appends SHUTDOWN (RFC 9260 §3.3.8).
    pub fn shutdown(&mut self, cumulative_tsn_ack: u32) -> bool {
        self.plain(kind::SHUTDOWN, 0, &cumulative_tsn_ack.to_be_bytes())
    }

    /// Appends SHUTDOWN ACK (RFC 9260 §3.3.9).
    pub fn shutdown_ack(&mut self) -> bool {
        self.plain(kind::SHUTDOWN_ACK, 0, &[])
    }

    /// Appends SHUTDOWN COMPLETE (RFC 9260 §3.3.13).
    pub fn shutdown_complete(&mut self, t_bit: bool) -> bool {
        self.plain(kind::SHUTDOWN_COMPLETE, t_flag(t_bit), &[])
    }

    /// Appends ECNE: a packet was marked whose lowest TSN is `lowest_tsn` (RFC 4960 appendix A).
    pub fn ecne(&mut self, lowest_tsn: u32) -> bool {
        self.plain(kind::ECNE, 0, &lowest_tsn.to_be_bytes())
    }

    /// Appends CWR: the window was reduced for marks of packets up to `lowest_tsn` (RFC 4960 appendix A).
    pub fn cwr(&mut self, lowest_tsn: u32) -> bool {
        self.plain(kind::CWR, 0, &lowest_tsn.to_be_bytes())
    }

    /// Appends COOKIE ECHO with the State Cookie's value (RFC 9260 §3.3.11).
    pub fn cookie_echo(&mut self, cookie: &[u8]) -> bool {
        self.plain(kind::COOKIE_ECHO, 0, cookie)
    }

    /// Appends COOKIE ACK (RFC 9260 §3.3.12).
    pub fn cookie_ack(&mut self) -> bool {
        self.plain(kind::COOKIE_ACK, 0, &[])
    }

    /// Appends FORWARD-TSN (RFC 3758 §3.2), which takes
    /// [`forward_tsn_len`](super::forward_tsn_len) bytes, with skipped streams and their largest
    /// skipped SSNs.
    pub fn forward_tsn(
        &mut self,
        new_cumulative_tsn: u32,
        skipped: impl IntoIterator<Item = (u16, u16)>,
    ) -> bool {
        self.append(|sink| encode_forward_tsn(sink, new_cumulative_tsn, skipped))
    }

    /// Appends I-FORWARD-TSN (RFC 8260 §2.3.1), which takes
    /// [`i_forward_tsn_len`](super::i_forward_tsn_len) bytes, with the largest skipped MIDs.
    pub fn i_forward_tsn(
        &mut self,
        new_cumulative_tsn: u32,
        skipped: impl IntoIterator<Item = SkippedMid>,
    ) -> bool {
        self.append(|sink| encode_i_forward_tsn(sink, new_cumulative_tsn, skipped))
    }

    /// Appends RE-CONFIG with `params`: one or two, in a combination that RFC 6525 §3.1 allows.
    pub fn re_config<'p>(&mut self, params: impl IntoIterator<Item = ReConfigParam<'p>>) -> bool {
        self.append(|sink| encode_re_config(sink, params))
    }

    /// Appends AUTH (RFC 4895 §4.1) with room for a MAC of `mac_len` bytes, a multiple of four, which
    /// [`PacketWriter::finish_authenticated`] fills in: over this chunk and all that follow.
    pub fn auth(&mut self, key_id: u16, hmac_id: u16, mac_len: usize) -> bool {
        let zeros = [0; MAX_MAC_LEN];
        let start = self.buffer.len();
        let Some(mac) = zeros.get(..mac_len) else { return false };
        let is_written = self.append(|sink| Auth { key_id, hmac_id, mac }.encode(sink));
        if is_written {
            self.auth = Some((start, mac_len));
        }
        is_written
    }

    /// Whether the packet has no chunk, or only an AUTH.
    #[must_use]
    pub fn is_only_auth(&self) -> bool {
        let auth = self.auth.map_or(0, |(_, mac_len)| AUTH_HEADER_LEN + padded(mac_len));
        self.buffer.len() <= COMMON_HEADER_LEN + auth
    }

    /// As [`PacketWriter::finish`], and fills in the MAC of the AUTH chunk. `mac` computes it from the AUTH
    /// chunk, with zeros for the MAC, and all chunks after it. Without an AUTH chunk `mac` is not called.
    pub fn finish_authenticated<M: AsRef<[u8]>>(self, mac: impl FnOnce(&[u8]) -> M) -> usize {
        if let Some((start, mac_len)) = self.auth {
            let mac = mac(&self.buffer[start..]);
            let place = &mut self.buffer[start + AUTH_HEADER_LEN..][..mac_len];
            place.copy_from_slice(&mac.as_ref()[..mac_len]);
        }
        self.finish()
    }

    /// Appends ASCONF (RFC 5061 §4.1.1) with its Sequence Number and Address Parameter.
    pub fn asconf<'p>(
        &mut self,
        serial: u32,
        address: IpAddr,
        requests: impl IntoIterator<Item = AsconfRequest<'p>>,
    ) -> bool {
        self.append(|sink| encode_asconf(sink, serial, address, requests))
    }

    /// Appends ASCONF-ACK (RFC 5061 §4.1.2) with the answers that `answers` adds, which may be none.
    pub fn asconf_ack(
        &mut self,
        serial: u32,
        answers: impl FnOnce(&mut AnswersWriter<'_, '_>),
    ) -> bool {
        self.append(|sink| encode_asconf_ack(sink, serial, answers))
    }

    /// Appends a decoded chunk. Parameters and causes that cannot be read are left out, and
    /// [`Chunk::Unknown`], which has no content, is not written.
    pub fn chunk(&mut self, chunk: &Chunk<'_>) -> bool {
        match *chunk {
            Chunk::Data(data) => self.data(&data),
            Chunk::IData(data) => self.i_data(&data),
            Chunk::Init(init) => self.init(&init, |_| ()),
            Chunk::InitAck(init_ack) => self.init_ack(&init_ack, |_| ()),
            Chunk::Sack(sack) => {
                let (blocks, duplicates) = (sack.gap_ack_blocks(), sack.duplicate_tsns());
                let (cumulative, a_rwnd) = (sack.cumulative_tsn_ack, sack.a_rwnd);
                self.sack_of(sack.packets, cumulative, a_rwnd, blocks, duplicates)
            }
            Chunk::Heartbeat(info) => self.heartbeat(info),
            Chunk::HeartbeatAck(info) => self.heartbeat_ack(info),
            Chunk::Abort { t_bit, causes } => self.abort(t_bit, |writer| writer.push_all(causes)),
            Chunk::Shutdown { cumulative_tsn_ack } => self.shutdown(cumulative_tsn_ack),
            Chunk::ShutdownAck => self.shutdown_ack(),
            Chunk::Error { causes } => self.error(|writer| writer.push_all(causes)),
            Chunk::CookieEcho(cookie) => self.cookie_echo(cookie),
            Chunk::CookieAck => self.cookie_ack(),
            Chunk::Ecne { lowest_tsn } => self.ecne(lowest_tsn),
            Chunk::Cwr { lowest_tsn } => self.cwr(lowest_tsn),
            Chunk::ShutdownComplete { t_bit } => self.shutdown_complete(t_bit),
            Chunk::ForwardTsn(forward) => {
                self.forward_tsn(forward.new_cumulative_tsn, forward.skipped())
            }
            Chunk::IForwardTsn(forward) => {
                self.i_forward_tsn(forward.new_cumulative_tsn, forward.skipped())
            }
            Chunk::ReConfig(re_config) => self.re_config(re_config.params().flatten()),
            Chunk::Auth(auth) => self.append(|sink| auth.encode(sink)),
            Chunk::Asconf(asconf) => {
                self.asconf(asconf.serial, asconf.address, asconf.requests().flatten())
            }
            Chunk::AsconfAck(ack) => self.asconf_ack(ack.serial, |writer| {
                ack.answers().flatten().for_each(|answer| _ = writer.push(&answer));
            }),
            Chunk::Pad(value) => self.plain(kind::PAD, 0, value),
            Chunk::Unknown => false,
        }
    }

    /// Appends a chunk of any type with this value, for extensions.
    pub fn plain(&mut self, kind: u8, flags: u8, value: &[u8]) -> bool {
        self.append(|sink| sink.chunk(kind, flags, |sink| sink.put(value)))
    }

    /// Appends the chunk that `chunk` writes, padded; appends nothing if it does not fit.
    fn append(&mut self, chunk: impl FnOnce(&mut Sink<'_>)) -> bool {
        // With this bound, a list in a chunk leaves out entries that would exceed the 16-bit length.
        let end = self.limit.min(self.buffer.len() + usize::from(u16::MAX));
        let is_written = Sink::new(self.buffer, end).whole(chunk);
        // Within the limit: that is a multiple of four.
        self.buffer.resize(padded(self.buffer.len()), 0);
        is_written
    }
}

const fn t_flag(t_bit: bool) -> u8 {
    if t_bit { T_BIT } else { 0 }
}
