//! Type-length-value fields (RFC 9260 §3.2.1), the common layout of parameters and error causes.

use super::TLV_HEADER_LEN;
use super::padded;

/// Why a parameter or an error cause cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TlvError {
    /// The length field is below four or exceeds the chunk; the next parameter cannot be found.
    #[error("the length of a parameter or error cause does not fit its chunk")]
    Framing,
    /// The length of the value does not fit its type; the next parameter can be read.
    #[error("the value of a parameter or error cause does not fit its type")]
    Value,
}

/// One field as found: its type, its value and its complete bytes, both without padding.
#[derive(Clone, Copy)]
pub(super) struct Tlv<'a> {
    pub(super) kind: u16,
    pub(super) value: &'a [u8],
    pub(super) bytes: &'a [u8],
}

/// Removes the first field from `rest`, and returns it.
///
/// `None` at the end, where up to three bytes may be left over as counted final padding. After a
/// framing error `rest` is empty, so that an iterator over it is fused.
pub(super) fn split_tlv<'a>(rest: &mut &'a [u8]) -> Option<Result<Tlv<'a>, TlvError>> {
    let whole = std::mem::take(rest);
    let &[kind_high, kind_low, length_high, length_low, ..] = whole else {
        return None;
    };
    let length = usize::from(u16::from_be_bytes([length_high, length_low]));
    let Some((bytes, value)) =
        whole.get(..length).and_then(|b| Some((b, b.get(TLV_HEADER_LEN..)?)))
    else {
        return Some(Err(TlvError::Framing));
    };
    *rest = whole.get(padded(length)..).unwrap_or_default();
    Some(Ok(Tlv { kind: u16::from_be_bytes([kind_high, kind_low]), value, bytes }))
}
