//! The named profiles, each a value of [`RecoveryConfig`].

use std::num::NonZeroU8;
use std::time::Duration;

use super::{RecoveryConfig, RtoConfig, SctpConfig, TcpConfig, ThinSctpConfig, ThinTcpConfig};
use crate::{
    BundlingConfig, CongestionControl, LossDetection, Reordering, RetransmissionDestination,
    SpuriousConfig, SpuriousResponse, ThinConfig, TimerRestart,
};

/// The initial `pef`, in percent: nine of ten reordered packets are not retransmitted.
const FIRST_PERCENTILE: u8 = 90;

/// Defines the profiles of one protocol: the list of their names with a line on each, and the function that
/// calls the constructor of each.
macro_rules! profiles {
    (
        $(#[$list_doc:meta])* $list:ident, $(#[$doc:meta])* $lookup:ident;
        $($name:literal => $constructor:ident, $line:literal;)*
    ) => {
        $(#[$list_doc])*
        pub const $list: &[(&str, &str)] = &[$(($name, $line)),*];

        impl RecoveryConfig {
            $(#[$doc])*
            #[must_use]
            pub fn $lookup(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$constructor()),)*
                    _ => None,
                }
            }
        }
    };
}

profiles! {
    /// The names that [`RecoveryConfig::profile`] knows, for SCTP, with a line on each.
    PROFILES,
    /// The profile for SCTP called `name`, one of [`PROFILES`]: for commands and files. A program that
    /// knows its profile calls the constructor of that name, as [`interactive`](Self::interactive).
    profile;
    "rfc9260" => rfc9260, "RFC 9260 with its suggested values";
    "lksctp" => lksctp, "Linux: RTO.initial 3 s, outstanding data bundled into retransmissions";
    "linux" => linux, "Linux 6: lksctp whose T3-rtx keeps running when the oldest chunk is retransmitted fast";
    "freebsd" => freebsd, "FreeBSD 6.2: RTO.initial 3 s, otherwise as rfc9260";
    "freebsd-efr" => freebsd_efr, "freebsd with Early Fast Retransmit";
    "thin" => thin, "thin-2009, with RTT samples of delayed ACKs";
    "thin-2009" => thin_2009, "lksctp with the four mechanisms for thin streams, and nothing else (Petlund 2009)";
    "thin-bundling" => thin_bundling, "thin; copies of data in flight bundled with new data; acknowledgements at once";
    "rr" => rr, "rfc9260, robust to reordering and to sudden delays (RR-SCTP)";
    "thin-rr" => thin_rr, "thin, and robust as rr";
    "f-rto" => f_rto, "rfc9260 with F-RTO: a spurious timeout is detected, and undone (RFC 5682)";
    "interactive" => interactive, "thin streams retransmit data not acknowledged within the measured RTT and its jitter (PTO)";
    "interactive-bundling" => interactive_bundling, "interactive; one redundant copy of most messages, in the packet of the next one";
    "interactive-redundant" => interactive_redundant, "interactive; redundant copies with new data and of retransmissions, within a budget";
    "interactive-multipath" => interactive_multipath, "interactive over several paths: new data over that with the lowest tail, retransmissions over another";
    "rack" => rack, "rfc9260 with the reordering window of RACK: loss is detected by time (RFC 8985)";
    "bulk" => bulk, "large transfers alone: CUBIC, paced; loss is detected by RACK";
    "mixed" => mixed, "interactive beside large transfers: a short queue (Copa), paced; each stream is thin or not by itself";
}

profiles! {
    /// The names that [`RecoveryConfig::tcp_profile`] knows, for TCP, with a line on each.
    TCP_PROFILES,
    /// The profile for TCP called `name`, one of [`TCP_PROFILES`]: for commands and files. A program that
    /// knows its profile calls the constructor of that name, as [`tcp_interactive`](Self::tcp_interactive).
    tcp_profile;
    "tcp-sack" => tcp_sack, "the RFCs of today: SACK scoreboard, NewReno, RTO of 1 s at least";
    "tcp-cubic" => tcp_cubic, "CUBIC over tcp-sack, with the RTO bounds of Linux";
    "tcp-newreno" => tcp_newreno, "TCP of 2009 without SACK: NewReno, RTO.initial 3 s, small initial window";
    "tcp-thin" => tcp_thin, "tcp-cubic with the four mechanisms for thin streams (Petlund 2008)";
    "tcp-rr" => tcp_rr, "tcp-sack, robust to reordering and to sudden delays (RR-TCP), with Eifel detection";
    "tcp-interactive" => tcp_interactive, "tcp-cubic; thin streams retransmit by a probe timer (PTO) from measured RTTs; RACK otherwise";
    "tcp-interactive-redundant" => tcp_interactive_redundant, "tcp-interactive; redundant copies with new data and of retransmissions, within a budget";
    "tcp-thin-rdb" => tcp_thin_rdb, "tcp-thin with Redundant Data Bundling: each segment also carries the previous one";
}

/// The profiles for SCTP.
impl RecoveryConfig {
    /// `rfc9260`: RFC 9260 with its suggested values.
    #[must_use]
    pub fn rfc9260() -> Self {
        Self {
            rto: RtoConfig::default(),
            timer_restart: TimerRestart::default(),
            loss_detection: LossDetection::default(),
            missing_reports: 3,
            congestion: CongestionControl::default(),
            max_burst: NonZeroU8::new(4),
            initial_window_packets: 4,
            initial_window_bytes: 4404,
            single_packet_after_timeout: true,
            bundle_outstanding: false,
            spurious: SpuriousConfig::OFF,
            thin: ThinConfig::OFF,
            sctp: SctpConfig::default(),
            tcp: TcpConfig::default(),
        }
    }

    /// `lksctp`: Linux of 2006. RTO.Initial is 3 s, and a retransmission bundles outstanding data.
    #[must_use]
    pub fn lksctp() -> Self {
        Self {
            rto: RtoConfig::OF_2006,
            single_packet_after_timeout: false,
            bundle_outstanding: true,
            ..Self::rfc9260()
        }
    }

    /// `linux`: the SCTP of Linux 6. As [`lksctp`](Self::lksctp), but a fast retransmission of the oldest
    /// chunk does not restart T3-rtx, unlike in RFC 9260 §7.2.4.
    #[must_use]
    pub fn linux() -> Self {
        Self { timer_restart: TimerRestart::OnAdvance, ..Self::lksctp() }
    }

    /// `freebsd`: FreeBSD 6.2. RTO.Initial is 3 s, otherwise [`rfc9260`](Self::rfc9260).
    #[must_use]
    pub fn freebsd() -> Self {
        Self { rto: RtoConfig::OF_2006, ..Self::rfc9260() }
    }

    /// `freebsd-efr`: [`freebsd`](Self::freebsd) with Early Fast Retransmit.
    #[must_use]
    pub fn freebsd_efr() -> Self {
        Self {
            loss_detection: LossDetection::MissingReports {
                reordering: Reordering::Fixed,
                early_retransmit: true,
            },
            ..Self::freebsd()
        }
    }

    /// `thin-2009`: [`lksctp`](Self::lksctp) with the four mechanisms for thin streams as published (Petlund 2009). Its timeout
    /// does not include the ACK delay of the receiver: a receiver that delays ACKs by 200 ms gets half of the data twice.
    #[must_use]
    pub fn thin_2009() -> Self {
        let thin = ThinConfig { ack_delay_samples: false, ..ThinConfig::M1_TO_M4 };
        Self { thin, ..Self::lksctp() }
    }

    /// `thin`: [`thin_2009`](Self::thin_2009) with RTT samples that include the ACK delay; the timeout
    /// exceeds the smoothed samples by at least 10 ms.
    #[must_use]
    pub fn thin() -> Self {
        let rto = RtoConfig::OF_2006.min_variation(Duration::from_millis(10));
        Self { rto, thin: ThinConfig::M1_TO_M4, ..Self::lksctp() }
    }

    /// `thin-bundling`: [`thin`](Self::thin); packets with new data bundle copies of data in flight, and ask
    /// for an immediate SACK.
    #[must_use]
    pub fn thin_bundling() -> Self {
        let bundling = NonZeroU8::new(2).map(|packets| BundlingConfig { packets, bytes: None });
        let thin = ThinConfig { bundling, ..ThinConfig::M1_TO_M4 }
            .with_sctp(ThinSctpConfig::OFF.sack_immediately(true));
        Self { thin, ..Self::thin() }
    }

    /// `rr`: [`rfc9260`](Self::rfc9260), robust to reordering and to sudden delays (RR-SCTP): an adaptive
    /// reordering threshold, and spurious retransmissions are undone.
    #[must_use]
    pub fn rr() -> Self {
        Self::rfc9260().robust()
    }

    /// `thin-rr`: [`thin`](Self::thin) with the mechanisms of [`rr`](Self::rr).
    #[must_use]
    pub fn thin_rr() -> Self {
        Self::thin().robust()
    }

    /// `f-rto`: [`rfc9260`](Self::rfc9260) with F-RTO: a spurious timeout is detected, and undone (RFC 5682).
    #[must_use]
    pub fn f_rto() -> Self {
        let spurious = SpuriousConfig::OFF.f_rto(Some(SpuriousResponse::Undo));
        Self { spurious, ..Self::rfc9260() }
    }

    /// `interactive`, the default of SCTP: a thin stream retransmits data that is not acknowledged after a round trip and the
    /// measured jitter (probe timer). RACK detects the losses of other streams, and spurious retransmissions are undone.
    #[must_use]
    pub fn interactive() -> Self {
        Self {
            single_packet_after_timeout: false,
            thin: ThinConfig::INTERACTIVE,
            sctp: SctpConfig::default().setup_by_rtt(true),
            ..Self::rfc9260().by_time()
        }
    }

    /// `interactive-bundling`: [`interactive`](Self::interactive); a packet with a new message bundles a copy of the
    /// message before, and of messages that were not acknowledged within a round trip, within a budget.
    #[must_use]
    pub fn interactive_bundling() -> Self {
        let interactive = Self::interactive();
        Self { thin: interactive.thin.with_bundling(), ..interactive }
    }

    /// `interactive-redundant`: [`interactive`](Self::interactive) with redundant copies: data in flight is
    /// bundled with new data, and each retransmission is sent twice, within a budget.
    #[must_use]
    pub fn interactive_redundant() -> Self {
        let interactive = Self::interactive();
        Self { thin: interactive.thin.redundant(), ..interactive }
    }

    /// `interactive-multipath`: [`interactive`](Self::interactive) for associations with several paths. Retransmissions
    /// take the path that loses packets least often when the path of the first transmission has just lost one; new data
    /// takes the path with the lowest tail latency. Both are measured. With one path it is `interactive`.
    #[must_use]
    pub fn interactive_multipath() -> Self {
        let interactive = Self::interactive();
        let destination = RetransmissionDestination::LeastCorrelated;
        let sctp = interactive.sctp.clone().retransmission_destination(destination);
        Self { sctp: sctp.lowest_tail(true), ..interactive }
    }

    /// `rack`: [`rfc9260`](Self::rfc9260) with the reordering window of RACK: a loss is detected by time (RFC 8985).
    #[must_use]
    pub fn rack() -> Self {
        Self { loss_detection: LossDetection::Rack, ..Self::rfc9260() }
    }
}

/// The profiles for SCTP that large transfers need.
impl RecoveryConfig {
    /// `bulk`: for large transfers alone. CUBIC, whose packets are paced; RACK detects losses. It fills the queue of
    /// the path, as TCP does.
    #[must_use]
    pub fn bulk() -> Self {
        Self {
            congestion: CongestionControl::PacedCubic,
            max_burst: None,
            initial_window_packets: 10,
            initial_window_bytes: 14_600,
            single_packet_after_timeout: false,
            sctp: SctpConfig::default().setup_by_rtt(true),
            ..Self::rfc9260().by_time()
        }
    }

    /// `mixed`: [`interactive`](Self::interactive) for associations that also carry large transfers. Copa
    /// keeps the queue of the path short, and each stream is thin or not by its own packets in flight.
    #[must_use]
    pub fn mixed() -> Self {
        let interactive = Self::interactive();
        Self {
            congestion: CongestionControl::Copa,
            max_burst: None,
            thin: ThinConfig {
                sctp: ThinSctpConfig { by_stream: true, ..interactive.thin.sctp },
                ..interactive.thin
            },
            ..interactive
        }
    }
}

/// The profiles for TCP.
impl RecoveryConfig {
    /// `tcp-cubic`: CUBIC over [`tcp_sack`](Self::tcp_sack), with the RTO bounds of Linux.
    #[must_use]
    pub fn tcp_cubic() -> Self {
        Self {
            rto: linux_bounds(Duration::from_secs(1)),
            congestion: CongestionControl::Cubic,
            ..Self::tcp_sack()
        }
    }

    /// `tcp-newreno`: TCP of 2009 without SACK. RTO.Initial is 3 s, the initial window small.
    #[must_use]
    pub fn tcp_newreno() -> Self {
        Self {
            rto: linux_bounds(Duration::from_secs(3)),
            loss_detection: LossDetection::DuplicateAcks,
            initial_window_packets: 4,
            initial_window_bytes: 4380,
            tcp: TcpConfig::default(),
            ..Self::tcp_sack()
        }
    }

    /// `tcp-rr`: [`tcp_sack`](Self::tcp_sack), robust to reordering and to sudden delays (RR-TCP), with Eifel detection.
    #[must_use]
    pub fn tcp_rr() -> Self {
        let robust = Self::tcp_sack().robust();
        Self { tcp: robust.tcp.eifel(Some(SpuriousResponse::Undo)), ..robust }
    }

    /// `tcp-thin`: [`tcp_cubic`](Self::tcp_cubic) with the four mechanisms for thin streams
    /// (Petlund 2008). A stream is thin with few packets in flight, or with small ones.
    #[must_use]
    pub fn tcp_thin() -> Self {
        Self {
            // RFC 6675 §6 allows it, and Linux does it: the first indication leaves so little of
            // the timeout that it would expire before the answer.
            timer_restart: TimerRestart::OnResend,
            thin: ThinConfig { tcp: ThinTcpConfig::PETLUND_2008, ..ThinConfig::M1_TO_M4 },
            ..Self::tcp_cubic()
        }
    }

    /// `tcp-thin-rdb`: [`tcp_thin`](Self::tcp_thin) with Redundant Data Bundling: a packet with new data also
    /// carries the packet before it.
    #[must_use]
    pub fn tcp_thin_rdb() -> Self {
        let tcp_thin = Self::tcp_thin();
        let bundling = Some(BundlingConfig::ONE);
        Self { thin: ThinConfig { bundling, ..tcp_thin.thin }, ..tcp_thin }
    }

    /// `tcp-interactive`, the default of TCP: [`tcp_cubic`](Self::tcp_cubic); a thin stream retransmits data
    /// that is not acknowledged in time (probe timer), RACK detects the losses of others.
    #[must_use]
    pub fn tcp_interactive() -> Self {
        // TCP has no bit that asks for acknowledgements, and no HEARTBEAT. Those that are
        // delayed, by 40 ms often, and those that are not look like a queue that comes and goes.
        let thin = ThinConfig {
            sctp: ThinSctpConfig::OFF,
            queue_delay_limit: Some(Duration::from_millis(100)),
            ..ThinConfig::INTERACTIVE
        };
        Self { thin, ..Self::tcp_thin().by_time() }
    }

    /// `tcp-interactive-redundant`: [`tcp_interactive`](Self::tcp_interactive) with redundant copies: data in
    /// flight is bundled with new data, and each retransmission is sent twice, within a budget.
    #[must_use]
    pub fn tcp_interactive_redundant() -> Self {
        let interactive = Self::tcp_interactive();
        Self { thin: interactive.thin.redundant(), ..interactive }
    }

    /// `tcp-sack`: the current RFCs (RFC 5681, 6298, 6675, 6928).
    #[must_use]
    pub fn tcp_sack() -> Self {
        Self {
            rto: RtoConfig::RFC9260.min_variation(Duration::from_millis(1)),
            timer_restart: TimerRestart::OnAdvance,
            loss_detection: LossDetection::Scoreboard { reordering: Reordering::Fixed },
            missing_reports: 3,
            congestion: CongestionControl::NewReno,
            max_burst: None,
            initial_window_packets: 10,
            initial_window_bytes: 14_600,
            single_packet_after_timeout: false,
            bundle_outstanding: false,
            spurious: SpuriousConfig::OFF,
            thin: ThinConfig::OFF,
            sctp: SctpConfig::default().retransmission_destination(RetransmissionDestination::Same),
            tcp: TcpConfig::default().limited_transmit(true),
        }
    }
}

impl RecoveryConfig {
    /// This configuration with RACK, and with spurious recovery episodes detected and undone.
    fn by_time(self) -> Self {
        let spurious = self.spurious.duplicates(Some(SpuriousResponse::Undo));
        Self { loss_detection: LossDetection::Rack, spurious, ..self }
    }

    /// This configuration with the three parts of RR-SCTP (its §4): duplicate reports detect spurious episodes,
    /// these are undone, and the reordering threshold is adaptive.
    fn robust(self) -> Self {
        Self {
            spurious: self.spurious.duplicates(Some(SpuriousResponse::Undo)),
            loss_detection: self.loss_detection.adaptive(FIRST_PERCENTILE),
            ..self
        }
    }
}

/// The bounds of Linux: RTO.Min and the lower bound of 4 · RTTVAR are 200 ms.
fn linux_bounds(initial: Duration) -> RtoConfig {
    let bound = Duration::from_millis(200);
    RtoConfig::RFC9260.initial(initial).min(bound).min_variation(bound)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linux_differs_from_lksctp_in_the_restart_of_its_timer() {
        let linux = RecoveryConfig::profile("linux").expect("a profile");
        assert_eq!(linux.validate(), Ok(()));
        assert_ne!(linux, RecoveryConfig::lksctp());
        let timer_restart = TimerRestart::OnResend;
        assert_eq!(RecoveryConfig { timer_restart, ..linux }, RecoveryConfig::lksctp());
    }

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
