//! The answer to a segment that belongs to no connection (RFC 9293 §3.10.7.1).

use rexmit_core::Instant;

use super::four_tuple::FourTuple;
use super::{Endpoint, Reply};
use crate::wire::{Flags, Header, Segment};

impl Endpoint {
    /// Called when a segment arrived that belongs to no connection.
    pub(super) fn on_unknown(&mut self, now: Instant, tuple: &FourTuple, segment: &Segment<'_>) {
        self.around.statistics.out_of_the_blue += 1;
        let Some(header) = reset_for(segment) else { return };
        let may = self.resets.grant(now, &mut self.around.rng);
        if self.answer(may, Reply { tuple: *tuple, header }) {
            self.around.statistics.resets_sent += 1;
        }
    }

    /// Sends an answer without a connection if it `may`, and the limit of answers per second is not reached.
    pub(super) fn answer(&mut self, may: bool, reply: Reply) -> bool {
        let is_sent = may && self.reply(reply);
        self.around.statistics.out_of_the_blue_responses_suppressed += u64::from(!is_sent);
        is_sent
    }
}

/// The RST that answers `segment`, which belongs to no connection; `None` if it is a RST itself.
fn reset_for(segment: &Segment<'_>) -> Option<Header> {
    let header = &segment.header;
    if header.flags.has(Flags::RST) {
        return None;
    }
    let ports = Header {
        source_port: header.destination_port,
        destination_port: header.source_port,
        ..Header::default()
    };
    Some(if header.flags.has(Flags::ACK) {
        Header { sequence: header.acknowledgment, flags: Flags::RST, ..ports }
    } else {
        let acknowledgment = header.sequence.wrapping_add(segment.sequence_len());
        Header { acknowledgment, flags: Flags::RST.and(Flags::ACK), ..ports }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(flags: Flags, payload: &[u8]) -> Segment<'_> {
        let header = Header {
            source_port: 1,
            destination_port: 2,
            sequence: u32::MAX,
            acknowledgment: if flags.has(Flags::ACK) { 77 } else { 0 },
            flags,
            ..Header::default()
        };
        Segment { header, payload }
    }

    #[test]
    fn a_reset_uses_the_acknowledgment_as_its_sequence_number() {
        for flags in [Flags::ACK, Flags::ACK.and(Flags::SYN), Flags::ACK.and(Flags::FIN)] {
            let reset = reset_for(&segment(flags, b"x")).expect("an answer");
            assert_eq!((reset.source_port, reset.destination_port), (2, 1));
            assert_eq!((reset.flags, reset.sequence, reset.acknowledgment), (Flags::RST, 77, 0));
        }
    }

    #[test]
    fn a_reset_acknowledges_a_segment_without_ack() {
        let lengths: [(Flags, &[u8], u32); 4] = [
            (Flags::SYN, b"", 0),
            (Flags::SYN, b"ab", 2),
            (Flags::SYN.and(Flags::FIN), b"", 1),
            (Flags::default(), b"", u32::MAX),
        ];
        for (flags, payload, acknowledgment) in lengths {
            let reset = reset_for(&segment(flags, payload)).expect("an answer");
            let answer = (reset.flags, reset.sequence, reset.acknowledgment);
            assert_eq!(answer, (Flags::RST.and(Flags::ACK), 0, acknowledgment));
        }
    }

    #[test]
    fn a_rst_is_never_answered() {
        for flags in [Flags::default(), Flags::ACK, Flags::SYN, Flags::FIN] {
            assert_eq!(reset_for(&segment(flags.and(Flags::RST), b"")), None);
        }
    }
}
