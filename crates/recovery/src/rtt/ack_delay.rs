//! Whether a receiver delays acknowledgements, as the acknowledgements of a thin stream show (RFC 9260 §6.2,
//! RFC 9293 §3.8.6.3).

/// Acknowledgements that are looked at.
const RECENT: u32 = 16;
/// Fewer of them say nothing.
const LEAST: u8 = 4;

/// How many packets the latest acknowledgements acknowledged.
///
/// A receiver that delays acknowledgements answers every second packet. If it does not, an acknowledgement of
/// two packets follows one that was lost, which is the exception.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckDelay {
    /// A bit per acknowledgement, the latest lowest: whether it was of several packets.
    of_several: u16,
    /// Acknowledgements so far, at most [`RECENT`].
    seen: u8,
}

impl AckDelay {
    /// Before the first acknowledgement.
    pub(super) const NONE: Self = Self { of_several: 0, seen: 0 };

    /// An acknowledgement without gaps acknowledged several packets, or one.
    pub(crate) fn on_ack(&mut self, is_of_several: bool) {
        self.of_several = self.of_several << 1 | u16::from(is_of_several);
        self.seen = (self.seen + 1).min(RECENT as u8);
    }

    /// Whether the receiver is taken to delay acknowledgements: most of them are of several packets.
    pub(crate) const fn is_usual(&self) -> bool {
        self.seen >= LEAST && 2 * self.of_several.count_ones() > self.seen as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(of_several: &[bool]) -> AckDelay {
        let mut delay = AckDelay::NONE;
        of_several.iter().for_each(|&it| delay.on_ack(it));
        delay
    }

    #[test]
    fn a_receiver_that_answers_every_second_packet_delays_its_answers() {
        assert!(!after(&[true; 3]).is_usual(), "too few");
        assert!(after(&[true; 4]).is_usual());
        assert!(after(&[true, true, false, true, true, true, false]).is_usual());
    }

    #[test]
    fn a_receiver_whose_answers_are_lost_does_not() {
        let every_third: Vec<_> = (0..30).map(|n| n % 3 == 0).collect();
        assert!(!after(&every_third).is_usual());
        let after_delays = [[true; 16], [false; 16]].concat();
        assert!(!after(&after_delays).is_usual(), "only the latest count");
    }
}
