//! Outages of thirty seconds: how much a sender of thin streams may send while one lasts.

/// Packets in two parts of an outage, from its second to its tenth second and from its eleventh to its thirtieth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pace {
    /// Packets before ten seconds.
    pub before_ten: usize,
    /// Packets after ten seconds.
    pub after_ten: usize,
}

impl Pace {
    /// The packets sent at the times `sent` (milliseconds) in an outage that began at `begins`.
    #[must_use]
    pub fn of(sent: &[u64], begins: u64) -> Self {
        let count = |first: u64, last: u64| {
            sent.iter().filter(|&&at| (begins + first..begins + last).contains(&at)).count()
        };
        Self { before_ten: count(1000, 10_000), after_ten: count(11_000, 30_000) }
    }

    /// The most at a round-trip time of `rtt` milliseconds: a packet per round trip, or per 100 ms, then one per
    /// second, and those of the retransmission timer.
    #[must_use]
    pub fn most(rtt: u64) -> Self {
        Self { before_ten: (9000 / rtt.max(100) + 6) as usize, after_ten: 19 + 4 }
    }

    /// Whether neither part has more packets than `most`.
    #[must_use]
    pub const fn is_within(self, most: Self) -> bool {
        self.before_ten <= most.before_ten && self.after_ten <= most.after_ten
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_is_counted_and_limited() {
        let at = |times: &[u64]| Pace::of(times, 500);
        let counted = at(&[1499, 1500, 10_499, 10_500, 11_500, 30_499, 30_500]);
        assert_eq!(counted, Pace { before_ten: 2, after_ten: 2 });
        let most = Pace::most(20);
        assert_eq!(most, Pace { before_ten: 96, after_ten: 23 });
        assert_eq!(Pace::most(200).before_ten, 51);
        assert!(most.is_within(most));
        assert!(!Pace { before_ten: 97, ..most }.is_within(most));
        assert!(!Pace { after_ten: 24, ..most }.is_within(most));
    }
}
