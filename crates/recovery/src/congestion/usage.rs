//! Whether a window limits its sender: one that is not used says nothing about the path, and does
//! not grow (RFC 9438 §5.8).

/// Whether the window was full within the last round trip.
///
/// An acknowledgement that finds the window full begins a round of as many bytes as are in flight:
/// several acknowledgements in one go, before the sender can refill it, belong to one round.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    round_left: u64,
}

impl Usage {
    /// `bytes` are acknowledged of `flight` bytes that were in flight. Returns whether the sender
    /// was limited by the window.
    pub(super) const fn on_acked(&mut self, bytes: u64, flight: u64, is_full: bool) -> bool {
        if is_full {
            self.round_left = flight;
        }
        let is_limited = self.round_left > 0;
        self.round_left = self.round_left.saturating_sub(bytes);
        is_limited
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_full_window_counts_for_as_many_bytes_as_it_held() {
        let mut usage = Usage::default();
        assert!(!usage.on_acked(1000, 3000, false));
        let seen = [(4000, true), (3000, false), (2000, false), (1000, false), (2000, false)]
            .map(|(flight, is_full)| usage.on_acked(1000, flight, is_full));
        assert_eq!(seen, [true, true, true, true, false]);
    }
}
