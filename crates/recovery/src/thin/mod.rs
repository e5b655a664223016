//! Whether a stream is thin: too little of it is in flight for a loss to show in time
//! (Petlund 2009 §5.1), and what is done about loss while it is.

mod groups;

use serde::{Deserialize, Serialize};

pub(crate) use groups::Groups;
pub use groups::{GroupLimit, MAX_GROUPS};

/// How a thin stream is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ThinTest {
    /// `in_flight <= (pttfr + 1) / (1 - lossrate)`, over packets (Petlund 2009 §5.1, Fig. 3).
    #[default]
    PacketsInFlight,
    /// Fewer than four packets in flight, but not in the slow start that a connection begins with:
    /// the test of Linux (`tcp_stream_is_thin`).
    Linux,
    /// So many packets in flight at most: for a sender that does not rely on what later packets tell.
    Packets(u8),
}

/// The criterion of the thin test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThinInputs {
    /// Packets in flight: neither acknowledged nor declared lost.
    pub in_flight: u32,
    /// Packets sent so far, and of these the ones declared lost: their ratio is `lossrate`.
    pub packets: (u64, u64),
    /// Packets that trigger a fast retransmit: `pttfr`.
    pub pttfr: u8,
    /// No window was reduced so far.
    pub is_initial_slow_start: bool,
}

/// The outcome of the thin test, with what it rests on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Thinness {
    /// Whether the stream is thin.
    pub is_thin: bool,
    /// Packets in flight.
    pub in_flight: u32,
    /// The fraction of packets declared lost.
    pub loss_rate: f64,
    /// The most packets in flight of a thin stream; infinite if every packet was lost.
    pub bound: f64,
}

impl ThinTest {
    /// Whether a stream is thin. Exact: no rounding decides.
    #[must_use]
    pub fn is_thin(self, inputs: &ThinInputs) -> bool {
        match self {
            Self::PacketsInFlight => {
                let (sent, lost) = inputs.packets;
                // The bound without loss is the least; most of the time nothing else is needed.
                let least = u32::from(inputs.pttfr) + 1;
                if inputs.in_flight <= least || lost == 0 {
                    return inputs.in_flight <= least;
                }
                let arrived = u128::from(sent.max(1) - lost.min(sent));
                let bound = (u128::from(inputs.pttfr) + 1) * u128::from(sent.max(1));
                u128::from(inputs.in_flight) * arrived <= bound
            }
            Self::Linux => inputs.in_flight < 4 && !inputs.is_initial_slow_start,
            Self::Packets(most) => inputs.in_flight <= u32::from(most),
        }
    }

    /// Neither of the first two tests calls a stream with more packets in flight thin, until a further
    /// packet is declared lost: packets sent until then only lower the loss rate.
    #[must_use]
    pub fn most_when_thin(pttfr: u8, (sent, lost): (u64, u64)) -> u32 {
        const LINUX: u64 = 3;
        let bound = (u64::from(pttfr) + 1).saturating_mul(sent.max(1));
        let most = match sent.max(1) - lost.min(sent) {
            0 => u64::MAX,
            arrived => bound / arrived,
        };
        u32::try_from(most.max(LINUX)).unwrap_or(u32::MAX)
    }

    /// The same, with the figures behind it.
    #[must_use]
    pub fn explain(self, inputs: &ThinInputs) -> Thinness {
        let (sent, lost) = inputs.packets;
        let loss_rate = if sent == 0 { 0.0 } else { lost as f64 / sent as f64 };
        let bound = match self {
            Self::PacketsInFlight => (f64::from(inputs.pttfr) + 1.0) / (1.0 - loss_rate),
            Self::Linux if inputs.is_initial_slow_start => 0.0,
            Self::Linux => 3.0,
            Self::Packets(most) => most.into(),
        };
        Thinness { is_thin: self.is_thin(inputs), in_flight: inputs.in_flight, loss_rate, bound }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(in_flight: u32, packets: (u64, u64)) -> ThinInputs {
        ThinInputs { in_flight, packets, pttfr: 3, is_initial_slow_start: false }
    }

    /// Petlund 2009 §5.1: four packets without loss; one more at 20 %, eight at 50 %.
    #[test]
    fn the_bound_grows_with_the_loss_rate() {
        let most = |sent, lost| {
            let is_thin = |&n: &u32| ThinTest::default().is_thin(&inputs(n, (sent, lost)));
            (0..100).take_while(is_thin).last()
        };
        let table = [((0, 0), 4), ((100, 0), 4), ((100, 19), 4), ((100, 20), 5), ((2, 1), 8)];
        for ((sent, lost), bound) in table {
            assert_eq!(most(sent, lost), Some(bound), "{lost} of {sent}");
        }
        assert_eq!(most(3, 3), Some(99), "every packet was lost: thin, however many");
    }

    #[test]
    fn linux_asks_for_fewer_than_four_outside_the_initial_slow_start() {
        let is_thin = |in_flight, is_initial_slow_start| {
            let inputs = ThinInputs { is_initial_slow_start, ..inputs(in_flight, (100, 50)) };
            ThinTest::Linux.is_thin(&inputs)
        };
        assert!(is_thin(0, false) && is_thin(3, false));
        assert!(!is_thin(4, false) && !is_thin(0, true));
    }

    #[test]
    fn no_stream_is_thin_with_more_in_flight_than_the_most() {
        for sent in 0..40 {
            for (lost, pttfr) in (0..=sent).flat_map(|lost| [(lost, 1), (lost, 3), (lost, 255)]) {
                let most = ThinTest::most_when_thin(pttfr, (sent, lost));
                let is_thin = |test: ThinTest, in_flight, sent| {
                    test.is_thin(&ThinInputs { pttfr, ..inputs(in_flight, (sent, lost)) })
                };
                // It is detected by the exact test, too, unless the other allows more.
                assert!(is_thin(ThinTest::PacketsInFlight, most, sent) || most == 3);
                for more in [1, 2, 100].map(|more| most.saturating_add(more)) {
                    let is_any = [ThinTest::PacketsInFlight, ThinTest::Linux]
                        .iter()
                        .any(|test| (sent..sent + 3).any(|sent| is_thin(*test, more, sent)));
                    assert!(!is_any || most == u32::MAX, "{more} with {lost} of {sent}");
                }
            }
        }
    }

    #[test]
    fn the_figures_explain_the_verdict() {
        let told = ThinTest::default().explain(&inputs(5, (100, 20)));
        assert_eq!((told.is_thin, told.in_flight, told.loss_rate), (true, 5, 0.2));
        assert!((told.bound - 5.0).abs() < 1e-9);
    }
}
