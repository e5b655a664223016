//! Whether a stream is thin: too little of it is in flight for a loss to show in time
//! (Petlund 2009 §5.1), and what is done about loss while it is.

use std::time::Duration;

use rexmit_core::words;
use serde::{Deserialize, Serialize};

use crate::{CopyBudget, RecoveryTimer, SpacedCopies};

/// How a thin stream is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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

/// What a sender does about loss while a stream is thin: each field is a mechanism of its own, and
/// the default has none of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ThinConfig {
    /// How a thin stream is told.
    pub test: ThinTest,
    /// M1: the lower bound of the retransmission timeout instead of RTO.Min (Petlund 2009 §5.2:
    /// 200 ms).
    #[serde(with = "words::optional_duration")]
    pub rto_min: Option<Duration>,
    /// M2: the retransmission timer runs from when the oldest copy in flight left, so that none
    /// waits for more than one timeout (Petlund 2009 §5.2, RFC 7765).
    pub restart_by_age: bool,
    /// M3, T1: so many timeouts over the same unit do not double the timeout; those beyond do. Zero
    /// doubles from the first (Petlund 2009 §5.3; Linux: 6).
    pub linear_timeouts: u8,
    /// M4, T2: the first missing report, or duplicate acknowledgement, makes a loss (Petlund 2009
    /// §5.4).
    pub first_indication: bool,
    /// A packet with new data also carries what is in flight of so many packets before it; zero
    /// carries none (Petlund 2008, RDB; Petlund 2009 §8).
    pub max_bundle_packets: u8,
    /// Bytes of units in a packet that carries such copies, the new ones included; zero is as many
    /// as fit.
    pub max_bundle_bytes: u32,
    /// A loss that a copy repaired is not answered as congestion: RDB as it was published.
    pub loss_hiding: bool,
    /// Small segments do not wait for what is unacknowledged (TCP: Nagle's algorithm off).
    pub no_delay: bool,
    /// Ask the peer to acknowledge without delay (SCTP: the I bit, RFC 7053).
    pub sack_immediately: bool,
    /// When an acknowledgement cannot tell the round-trip time because of a retransmission, measure
    /// it by a HEARTBEAT, one per timeout at most (SCTP).
    pub heartbeat_samples: bool,
    /// When a report of a duplicate shows that both copies of what left twice have arrived, measure
    /// the round trip of the first (Karn's algorithm forbids what is ambiguous, and this is not).
    pub duplicate_samples: bool,
    /// What is not acknowledged when it should be leaves again.
    pub recovery_timer: RecoveryTimer,
    /// Copies on purpose in packets of their own.
    pub spaced_copies: SpacedCopies,
    /// What copies on purpose may cost, those beside new data included.
    pub copy_budget: CopyBudget,
    /// A queue that delays by so much, or three tenths of the packets lost, stops copies on purpose. With
    /// the queue, or two fifths lost, repetitions of the recovery timer wait twice as long from the
    /// first one in vain, and after each what is new waits for the next acknowledgement and leaves
    /// together. Of a shorter queue, copies take the part of the budget that is left: half at half of it. More is faster beside greedy senders, at
    /// their cost. Zero does not look at queues.
    #[serde(with = "words::duration")]
    pub yield_to_queue: Duration,
}

impl ThinConfig {
    /// No mechanism: the same sender, thin or not.
    pub const OFF: Self = Self {
        test: ThinTest::PacketsInFlight,
        rto_min: None,
        restart_by_age: false,
        linear_timeouts: 0,
        first_indication: false,
        max_bundle_packets: 0,
        max_bundle_bytes: 0,
        loss_hiding: false,
        no_delay: false,
        sack_immediately: false,
        heartbeat_samples: false,
        duplicate_samples: false,
        recovery_timer: RecoveryTimer::OFF,
        spaced_copies: SpacedCopies::OFF,
        copy_budget: CopyBudget::UNLIMITED,
        yield_to_queue: Duration::ZERO,
    };

    /// M1 to M4 with the values of the papers and of Linux; and the round trips that duplicates tell,
    /// without which M1 and M3 would leave the timeout for ever below a delayed acknowledgement.
    pub const M1_TO_M4: Self = Self {
        rto_min: Some(Duration::from_millis(200)),
        restart_by_age: true,
        linear_timeouts: 6,
        first_indication: true,
        duplicate_samples: true,
        ..Self::OFF
    };

    /// The recovery timer, for up to 16 packets in flight, with the round trips kept clean that it
    /// waits for; and M1 and M2 for T3-rtx, which only comes after it.
    pub const INTERACTIVE: Self = Self {
        test: ThinTest::Packets(16),
        rto_min: Some(Duration::from_millis(200)),
        restart_by_age: true,
        no_delay: true,
        sack_immediately: true,
        heartbeat_samples: true,
        duplicate_samples: true,
        recovery_timer: RecoveryTimer::ON,
        yield_to_queue: Duration::from_millis(25),
        ..Self::OFF
    };

    /// The same with copies: of all that is in flight and fits beside new data, and one of each
    /// retransmission. The budget allows for losses of a tenth each way, and for two copies
    /// of all that is new.
    pub(crate) const fn redundant(self) -> Self {
        let copies = SpacedCopies { of_retransmissions: 1, ..SpacedCopies::OFF };
        let copy_budget = CopyBudget { packets_percent: 20, bytes_percent: 200 };
        Self { max_bundle_packets: u8::MAX, spaced_copies: copies, copy_budget, ..self }
    }

    /// Whether the values make sense.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        let is_rto_min_valid =
            self.rto_min.is_none_or(|min| !min.is_zero() && min <= Duration::from_secs(60));
        let is_queue_valid = self.yield_to_queue <= Duration::from_secs(60);
        is_rto_min_valid && is_queue_valid && self.recovery_timer.is_valid()
    }

    /// Whether any mechanism is on.
    #[must_use]
    pub const fn is_any(&self) -> bool {
        self.rto_min.is_some()
            || self.restart_by_age
            || self.linear_timeouts > 0
            || self.first_indication
            || self.max_bundle_packets > 0
            || self.no_delay
            || self.sack_immediately
            || self.heartbeat_samples
            || self.duplicate_samples
            || self.recovery_timer.is_on
            || self.spaced_copies.is_any()
    }
}

/// What the thin test looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThinInputs {
    /// Packets in flight: neither acknowledged nor judged lost.
    pub in_flight: u32,
    /// Packets sent so far, and of these the ones judged lost: their ratio is `lossrate`.
    pub packets: (u64, u64),
    /// Packets that trigger a fast retransmit: `pttfr`.
    pub pttfr: u8,
    /// No window was reduced so far.
    pub is_initial_slow_start: bool,
}

/// The outcome of the thin test, with what it rests on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Thinness {
    /// Whether the stream is thin.
    pub is_thin: bool,
    /// Packets in flight.
    pub in_flight: u32,
    /// The fraction of packets judged lost.
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
    /// packet is judged lost: what is sent until then only lowers the loss rate.
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
                // It is told by the exact test, too, unless the other allows more.
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

    #[test]
    fn the_default_has_no_mechanism() {
        assert_eq!(ThinConfig::default(), ThinConfig::OFF);
        assert!(!ThinConfig::OFF.is_any() && ThinConfig::M1_TO_M4.is_any());
    }

    #[test]
    fn a_queue_of_more_than_a_minute_is_refused() {
        let yielding = |seconds| ThinConfig {
            yield_to_queue: Duration::from_secs(seconds),
            ..ThinConfig::INTERACTIVE
        };
        assert!(yielding(60).is_valid() && !yielding(61).is_valid());
    }
}
