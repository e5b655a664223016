//! The named profiles, each a value of [`RecoveryConfig`].

use std::time::Duration;

use super::{RecoveryConfig, RtoConfig};
use crate::{
    CmtConfig, CongestionControl, LossDetection, Reordering, RetransmissionDestination,
    SpuriousConfig, ThinConfig, TimerRestart,
};

/// The names that [`RecoveryConfig::profile`] knows, for SCTP, with a line on each.
pub const PROFILES: &[(&str, &str)] = &[
    ("rfc9260", "RFC 9260 with its suggested values"),
    ("lksctp", "Linux: RTO.initial 3 s, outstanding data bundled into retransmissions"),
    ("freebsd", "FreeBSD 6.2: RTO.initial 3 s, otherwise as rfc9260"),
    ("freebsd-efr", "freebsd with Early Fast Retransmit"),
    ("thin", "lksctp with the four mechanisms for thin streams (Petlund 2009)"),
    (
        "thin-bundling",
        "thin; copies of what is in flight beside new data; acknowledgements at once",
    ),
    ("rr", "rfc9260, robust to reordering and to sudden delays (RR-SCTP)"),
    ("thin-rr", "thin, and robust as rr"),
    ("f-rto", "rfc9260 with F-RTO: a spurious timeout is detected, and undone (RFC 5682)"),
    (
        "interactive",
        "thin streams repeat what is not acknowledged after a round trip and the jitter measured",
    ),
    (
        "interactive-redundant",
        "interactive; copies beside new data, and of what is sent again, within a budget",
    ),
    ("rack", "rfc9260 with the reordering window of RACK: loss is told by time (RFC 8985)"),
];

/// The names that [`RecoveryConfig::tcp_profile`] knows, for TCP, with a line on each.
pub const TCP_PROFILES: &[(&str, &str)] = &[
    ("tcp-sack", "the RFCs of today: SACK scoreboard, NewReno, RTO of 1 s at least"),
    ("tcp-cubic", "CUBIC over tcp-sack, with the RTO bounds of Linux"),
    ("tcp-newreno", "TCP of 2009 without SACK: NewReno, RTO.initial 3 s, small initial window"),
    ("tcp-thin", "tcp-cubic with the four mechanisms for thin streams (Petlund 2008)"),
    (
        "tcp-rr",
        "tcp-sack, robust to reordering and to sudden delays (RR-TCP), with Eifel detection",
    ),
    (
        "tcp-interactive",
        "tcp-cubic; thin streams repeat what is not acknowledged when it should be; RACK beyond",
    ),
    (
        "tcp-interactive-redundant",
        "tcp-interactive; copies beside new data, and of what is sent again, within a budget",
    ),
    ("tcp-thin-rdb", "tcp-thin with Redundant Data Bundling: the packet before goes with the next"),
];

/// `pef` before anything is known of costs: of ten reordered packets nine are not sent again.
const FIRST_PERCENTILE: u8 = 90;

impl RecoveryConfig {
    /// The profile for SCTP called `name`, one of [`PROFILES`].
    #[must_use]
    pub fn profile(name: &str) -> Option<Self> {
        let slow_start_of_timer =
            RtoConfig { initial: Duration::from_secs(3), ..RtoConfig::default() };
        match name {
            "rfc9260" => Some(Self::default()),
            "lksctp" => Some(Self {
                rto: slow_start_of_timer,
                single_packet_after_timeout: false,
                bundle_outstanding: true,
                ..Self::default()
            }),
            "freebsd" => Some(Self { rto: slow_start_of_timer, ..Self::default() }),
            "freebsd-efr" => Some(Self { early_retransmit: true, ..Self::profile("freebsd")? }),
            "thin" => Some(Self { thin: ThinConfig::M1_TO_M4, ..Self::profile("lksctp")? }),
            "thin-bundling" => Some(Self {
                thin: ThinConfig {
                    max_bundle_packets: 2,
                    sack_immediately: true,
                    ..ThinConfig::M1_TO_M4
                },
                ..Self::profile("thin")?
            }),
            "rr" => Some(Self::default().robust()),
            "thin-rr" => Some(Self::profile("thin")?.robust()),
            "f-rto" => Some(Self {
                spurious: SpuriousConfig { f_rto: true, ..SpuriousConfig::OFF },
                undo: true,
                ..Self::default()
            }),
            "interactive" => Some(Self::interactive()),
            "interactive-redundant" => {
                let interactive = Self::interactive();
                Some(Self { thin: interactive.thin.redundant(), ..interactive })
            }
            "rack" => Some(Self { reordering: Reordering::Rack, ..Self::default() }),
            _ => None,
        }
    }

    /// The profile for TCP called `name`, one of [`TCP_PROFILES`].
    #[must_use]
    pub fn tcp_profile(name: &str) -> Option<Self> {
        match name {
            "tcp-sack" => Some(Self::tcp_sack()),
            "tcp-cubic" => Some(Self {
                rto: linux_bounds(Duration::from_secs(1)),
                congestion: CongestionControl::Cubic,
                ..Self::tcp_sack()
            }),
            "tcp-newreno" => Some(Self {
                rto: linux_bounds(Duration::from_secs(3)),
                loss_detection: LossDetection::DuplicateAcks,
                limited_transmit: false,
                initial_window_packets: 4,
                initial_window_bytes: 4380,
                ..Self::tcp_sack()
            }),
            "tcp-rr" => {
                let robust = Self::tcp_sack().robust();
                let spurious = SpuriousConfig { eifel: true, ..robust.spurious };
                Some(Self { spurious, ..robust })
            }
            "tcp-thin" => Some(Self {
                // RFC 6675 §6 allows it, and Linux does it: the first indication leaves so little of
                // the timeout that it would expire before the answer.
                timer_restart: TimerRestart::OnResend,
                thin: ThinConfig { no_delay: true, ..ThinConfig::M1_TO_M4 },
                ..Self::tcp_profile("tcp-cubic")?
            }),
            "tcp-interactive" => {
                // TCP has no bit that asks for acknowledgements, and no HEARTBEAT. Those that are
                // delayed, by 40 ms often, and those that are not look like a queue that comes and goes.
                let thin = ThinConfig {
                    sack_immediately: false,
                    heartbeat_samples: false,
                    yield_to_queue: Duration::from_millis(100),
                    ..ThinConfig::INTERACTIVE
                };
                let tcp_thin = Self::tcp_profile("tcp-thin")?;
                Some(Self { thin, ..tcp_thin.by_time() })
            }
            "tcp-interactive-redundant" => {
                let interactive = Self::tcp_profile("tcp-interactive")?;
                Some(Self { thin: interactive.thin.redundant(), ..interactive })
            }
            "tcp-thin-rdb" => {
                let tcp_thin = Self::tcp_profile("tcp-thin")?;
                let thin = ThinConfig { max_bundle_packets: 1, ..tcp_thin.thin };
                Some(Self { thin, ..tcp_thin })
            }
            _ => None,
        }
    }

    /// The profile `tcp-sack`, the default of TCP: RFC 5681, 6298, 6675, 6928.
    #[must_use]
    pub fn tcp_sack() -> Self {
        Self {
            rto: RtoConfig { min_variation: Duration::from_millis(1), ..RtoConfig::default() },
            timer_restart: TimerRestart::OnAdvance,
            loss_detection: LossDetection::Scoreboard,
            missing_reports: 3,
            reordering: Reordering::Fixed,
            limited_transmit: true,
            congestion: CongestionControl::NewReno,
            max_burst: 0,
            initial_window_packets: 10,
            initial_window_bytes: 14_600,
            single_packet_after_timeout: false,
            bundle_outstanding: false,
            early_retransmit: false,
            retransmission_destination: RetransmissionDestination::Same,
            potentially_failed_max_retrans: None,
            cmt: CmtConfig::default(),
            spurious: SpuriousConfig::OFF,
            undo: false,
            setup_by_rtt: false,
            thin: ThinConfig::OFF,
        }
    }

    /// The profile `interactive`: beyond thin streams, and for those with more in flight, RACK tells
    /// what is lost, and what proves needless is undone.
    fn interactive() -> Self {
        Self {
            single_packet_after_timeout: false,
            setup_by_rtt: true,
            thin: ThinConfig::INTERACTIVE,
            ..Self::default().by_time()
        }
    }

    /// The same where RACK tells losses, and what proves needless is undone.
    fn by_time(self) -> Self {
        let spurious = SpuriousConfig { duplicates: true, ..self.spurious };
        Self { reordering: Reordering::Rack, spurious, undo: true, ..self }
    }

    /// The same with the three parts of RR-SCTP (§4): duplicate reports detect spurious events, which
    /// are undone, and the threshold follows reordering.
    fn robust(self) -> Self {
        Self {
            spurious: SpuriousConfig { duplicates: true, ..self.spurious },
            undo: true,
            reordering: Reordering::Adaptive { percentile: FIRST_PERCENTILE },
            ..self
        }
    }
}

/// Linux: the timeout and the variation in it are 200 ms at least.
fn linux_bounds(initial: Duration) -> RtoConfig {
    let bound = Duration::from_millis(200);
    RtoConfig { initial, min: bound, min_variation: bound, ..RtoConfig::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_profile_exists_and_is_valid() {
        type Lookup = fn(&str) -> Option<RecoveryConfig>;
        let tables: [(_, Lookup, Lookup); 2] = [
            (PROFILES, RecoveryConfig::profile, RecoveryConfig::tcp_profile),
            (TCP_PROFILES, RecoveryConfig::tcp_profile, RecoveryConfig::profile),
        ];
        for (names, of_protocol, of_other) in tables {
            for (name, _) in names {
                let profile = of_protocol(name).unwrap_or_else(|| panic!("no {name}"));
                assert_eq!(profile.validate(), Ok(()), "{name}");
                assert_eq!(of_other(name), None, "{name} is for one protocol");
            }
            assert_eq!(of_protocol("no such profile"), None);
        }
    }
}
