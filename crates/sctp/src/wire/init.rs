//! INIT and INIT ACK (RFC 9260 §3.3.2, §3.3.3), which share their layout.

use super::cursor::Cursor;
use super::param::{Params, ParamsWriter};
use super::sink::Sink;

/// The fixed part and the parameters of INIT or INIT ACK.
///
/// Values are not checked. The association checks that the tag and the numbers of streams are not zero, and
/// that [`Init::a_rwnd`] is at least 1500, since the answers differ (RFC 9260 §3.3.2, §3.3.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Init<'a> {
    /// Initiate Tag: the verification tag of every packet to the sender of this chunk.
    pub initiate_tag: u32,
    /// Advertised Receiver Window Credit, in bytes.
    pub a_rwnd: u32,
    /// Number of Outbound Streams that the sender wishes to have.
    pub outbound_streams: u16,
    /// Number of Inbound Streams that the sender allows.
    pub inbound_streams: u16,
    /// Initial TSN: the first TSN that the sender uses.
    pub initial_tsn: u32,
    /// The parameters, not decoded yet. [`Params::default`] is empty.
    pub params: Params<'a>,
}

impl<'a> Init<'a> {
    /// The parameters, in order.
    #[must_use]
    pub const fn params(&self) -> Params<'a> {
        self.params
    }

    pub(super) fn decode(value: &'a [u8]) -> Option<Self> {
        let mut cursor = Cursor(value);
        Some(Self {
            initiate_tag: cursor.u32()?,
            a_rwnd: cursor.u32()?,
            outbound_streams: cursor.u16()?,
            inbound_streams: cursor.u16()?,
            initial_tsn: cursor.u32()?,
            params: Params::new(cursor.0),
        })
    }

    pub(super) fn encode(
        &self,
        kind: u8,
        sink: &mut Sink<'_>,
        more: impl FnOnce(&mut ParamsWriter<'_, '_>),
    ) {
        sink.chunk(kind, 0, |sink| {
            sink.put_u32(self.initiate_tag);
            sink.put_u32(self.a_rwnd);
            sink.put_u16(self.outbound_streams);
            sink.put_u16(self.inbound_streams);
            sink.put_u32(self.initial_tsn);
            let mut writer = ParamsWriter::new(sink);
            for param in self.params.flatten() {
                writer.push_raw(&param);
            }
            more(&mut writer);
        });
    }
}
