//! The content of bulk transfers and files, which can be verified at every offset.

use bytes::Bytes;

/// Period of the content. It is prime, so that no size of segments or messages divides it, and
/// small, so that the table fits into the processor's first-level cache.
const PERIOD: usize = 4093;
/// Largest length of a piece.
pub(super) const MAX_PIECE: usize = 16 * 1024;

static TABLE: [u8; PERIOD + MAX_PIECE] = table();

const fn table() -> [u8; PERIOD + MAX_PIECE] {
    let mut table = [0; PERIOD + MAX_PIECE];
    let mut state = 1_u32;
    let mut at = 0;
    while at < table.len() {
        if at < PERIOD {
            // A linear congruential generator (Numerical Recipes); its high bits are the good ones.
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            table[at] = (state >> 24) as u8;
        } else {
            table[at] = table[at - PERIOD];
        }
        at += 1;
    }
    table
}

fn expected(offset: u64, len: usize) -> &'static [u8] {
    let start = (offset % PERIOD as u64) as usize;
    &TABLE[start..start + len]
}

/// The `len` bytes of content at `offset`; `len` is at most [`MAX_PIECE`].
pub(super) fn piece(offset: u64, len: u64) -> Bytes {
    let len = usize::try_from(len).unwrap_or(MAX_PIECE).min(MAX_PIECE);
    Bytes::from_static(expected(offset, len))
}

/// Whether `bytes` are the content at `offset`.
pub(super) fn is_at(mut offset: u64, bytes: &[u8]) -> bool {
    bytes.chunks(MAX_PIECE).all(|piece| {
        let is_right = piece == expected(offset, piece.len());
        offset += piece.len() as u64;
        is_right
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_is_found_at_its_place_only() {
        for offset in [0, 1, PERIOD as u64 - 1, 1 << 40] {
            let bytes = piece(offset, 1000);
            assert!(is_at(offset, &bytes));
            assert!(is_at(offset + PERIOD as u64, &bytes));
            for other in 1..3000 {
                assert!(!is_at(offset + other, &bytes), "{offset} and {other} more");
            }
        }
        assert_eq!(piece(7, u64::MAX).len(), MAX_PIECE);
    }
}
