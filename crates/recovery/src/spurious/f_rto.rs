//! F-RTO, as enhanced by SACK (RFC 5682 §3.1): after a timeout one packet is retransmitted. If its
//! acknowledgement leaves data outstanding, up to two packets of new data are sent before more is
//! retransmitted, and the next acknowledgement decides: if it covers data that was sent before the timeout
//! and not retransmitted, the timeout was spurious.

/// How far the algorithm is on a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FRto {
    /// No timeout is under examination.
    #[default]
    Off,
    /// Step 2: the first packet was retransmitted, or is about to be.
    Repeating,
    /// Step 3: new data may be sent, and nothing is retransmitted.
    Probing {
        /// Packets of new data that may still be sent.
        packets_left: u8,
        /// `RecoveryPoint`: the highest unit sent when step 3 began.
        highest: u64,
    },
}

/// Packets of new data in step 2 b.
const PROBES: u8 = 2;

/// The part of an acknowledgement that the algorithm uses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// The cumulative point, if it moved.
    pub(crate) advanced_to: Option<u64>,
    /// The highest unit that is acknowledged for the first time.
    pub(crate) highest_newly_acked: Option<u64>,
    /// It covers a unit that was sent once, before the timeout.
    pub(crate) has_acked_original: bool,
    /// The highest unit sent so far.
    pub(crate) highest_sent: u64,
    /// New data could be sent.
    pub(crate) has_new: bool,
}

impl FRto {
    /// An acknowledgement arrives. Returns whether it shows the timeout to be spurious.
    pub(crate) fn on_ack(&mut self, ack: Arrival) -> bool {
        match *self {
            Self::Off => false,
            Self::Repeating => {
                if let Some(cumulative) = ack.advanced_to {
                    let is_open = cumulative < ack.highest_sent && ack.has_new;
                    let probing = Self::Probing { packets_left: PROBES, highest: ack.highest_sent };
                    *self = if is_open { probing } else { Self::Off };
                }
                false
            }
            Self::Probing { highest, .. } => {
                *self = Self::Off;
                let covers_new = ack.highest_newly_acked.is_some_and(|unit| unit > highest);
                ack.has_acked_original && !covers_new
            }
        }
    }

    /// A packet of new data is sent.
    pub(crate) const fn on_sent_new(&mut self) {
        if let Self::Probing { packets_left, .. } = self {
            *packets_left = packets_left.saturating_sub(1);
        }
    }

    /// Whether new data is sent before anything is retransmitted.
    pub(crate) const fn prefers_new(self) -> bool {
        matches!(self, Self::Probing { .. })
    }

    /// Whether step 3 has sent what it may.
    pub(crate) const fn is_waiting(self) -> bool {
        matches!(self, Self::Probing { packets_left: 0, .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACK: Arrival = Arrival {
        advanced_to: None,
        highest_newly_acked: None,
        has_acked_original: false,
        highest_sent: 20,
        has_new: true,
    };

    /// Step 2: an acknowledgement up to 11 of the 20 units sent.
    fn probing() -> FRto {
        let mut f_rto = FRto::Repeating;
        assert!(!f_rto.on_ack(ACK), "without advance it waits on");
        assert!(!f_rto.on_ack(Arrival { advanced_to: Some(11), ..ACK }));
        assert_eq!(f_rto, FRto::Probing { packets_left: 2, highest: 20 });
        f_rto
    }

    /// RFC 5682 §3.1 step 3.
    #[test]
    fn what_left_before_the_timeout_tells_it_was_spurious_unless_new_data_are_covered() {
        let original = Arrival {
            has_acked_original: true,
            highest_newly_acked: Some(12),
            highest_sent: 22,
            ..ACK
        };
        assert!(probing().on_ack(original));
        assert!(!probing().on_ack(Arrival { highest_newly_acked: Some(21), ..original }));
        assert!(!probing().on_ack(Arrival { has_acked_original: false, ..original }));
    }

    /// RFC 5682 §3.1 step 2 a, and b with nothing new to send.
    #[test]
    fn everything_acknowledged_or_nothing_new_leaves_it_to_the_usual_recovery() {
        for ack in [
            Arrival { advanced_to: Some(20), ..ACK },
            Arrival { advanced_to: Some(11), has_new: false, ..ACK },
        ] {
            let mut f_rto = FRto::Repeating;
            assert!(!f_rto.on_ack(ack));
            assert_eq!(f_rto, FRto::Off);
        }
    }

    #[test]
    fn two_packets_of_new_data_leave() {
        let mut f_rto = probing();
        f_rto.on_sent_new();
        assert!(!f_rto.is_waiting());
        f_rto.on_sent_new();
        assert!(f_rto.is_waiting() && f_rto.prefers_new());
    }
}
