//! The one out-of-the-blue answer that an orderly end may need (RFC 9260 §8.4).
//!
//! If the last packet of the shutdown, SHUTDOWN COMPLETE, is lost, the other side retransmits its SHUTDOWN ACK, which
//! must be answered although the association does not exist any more. A crate that implements a single association
//! cannot do that, so this module does.

use crate::packet::{chunk_type, first_chunk_type};

/// The SHUTDOWN COMPLETE for a SHUTDOWN ACK that belongs to no association: its verification tag
/// reflected, with the T bit.
pub(crate) fn answer(packet: &[u8]) -> Option<[u8; 16]> {
    if first_chunk_type(packet) != Some(chunk_type::SHUTDOWN_ACK) {
        return None;
    }
    let mut answer = [0; 16];
    answer[..2].copy_from_slice(&packet[2..4]);
    answer[2..4].copy_from_slice(&packet[..2]);
    answer[4..8].copy_from_slice(&packet[4..8]);
    answer[12..].copy_from_slice(&[chunk_type::SHUTDOWN_COMPLETE, 1, 0, 4]);
    let checksum = crc32c(&answer);
    answer[8..12].copy_from_slice(&checksum.to_le_bytes());
    Some(answer)
}

/// CRC32c bit by bit (RFC 9260 appendix A); for one small packet.
fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_has_its_published_check_value() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    }

    #[test]
    fn answers_a_shutdown_ack_and_nothing_else() {
        let mut packet = [0, 1, 0, 2, 9, 8, 7, 6, 0, 0, 0, 0, chunk_type::SHUTDOWN_ACK, 0, 0, 4];
        let reply = answer(&packet).unwrap();
        assert_eq!(reply[..8], [0, 2, 0, 1, 9, 8, 7, 6]);
        assert_eq!(reply[12..], [chunk_type::SHUTDOWN_COMPLETE, 1, 0, 4]);
        packet[12] = chunk_type::ABORT;
        assert_eq!(answer(&packet), None);
        assert_eq!(answer(&packet[..12]), None);
    }
}
