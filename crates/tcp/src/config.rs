//! Parameters of endpoints and connections.

use std::sync::Arc;
use std::time::Duration;

use rexmit_core::config;
use rexmit_recovery::{InvalidRecovery, RecoveryConfig};
#[cfg(feature = "serde")]
use serde::Serialize;

/// The least MSS accepted from a peer; a smaller one is raised to it, because it would make every byte cost a
/// packet.
pub const MIN_MSS: u16 = 88;
/// The largest MSS, in bytes: the longest IPv4 packet less the fixed headers.
pub const MAX_MSS: u16 = 65_495;
/// Length of an IPv6 header beyond that of an IPv4 header, in bytes.
const IPV6_SURPLUS: u16 = 20;
/// The largest receive buffer, in bytes, that window scaling can advertise (RFC 7323 §2.3).
pub const MAX_RECEIVE_BUFFER_BYTES: usize = 1 << 30;
/// The longest delay of an acknowledgement (RFC 9293 §3.8.6.3, MUST-40).
pub const MAX_ACK_DELAY: Duration = Duration::from_millis(500);

config! {
    /// A TCP endpoint: all connections of a host.
    #[derive(Clone, Debug)]
    pub struct EndpointConfig {
        /// The most connections at one time, including those being set up, without those in TIME-WAIT. Beyond
        /// it SYNs are dropped, so that the peer retries. Default 200,000.
        pub max_connections: usize,
        /// The most connections in SYN-RECEIVED per listening port. Beyond it SYNs are answered with SYN
        /// cookies, which need no state; zero always does so. A SYN that reopens a connection in TIME-WAIT
        /// replaces that one, and always has state. Default 1024.
        pub syn_backlog: usize,
        /// The most connections in TIME-WAIT; beyond it the oldest are forgotten early. Default 65,536.
        pub max_time_wait: usize,
        /// The most challenge ACKs per second, over all connections (RFC 5961 §7). Default 1000.
        pub challenge_acks_per_second: u32,
        /// The most responses per second to segments that belong to no open connection, so that an attacker cannot use
        /// this host to flood another. The limit applies separately to RSTs (RFC 9293 §3.10.7.1) and to ACKs of
        /// connections in TIME-WAIT. Default 1000.
        pub out_of_the_blue_responses_per_second: u32,
        /// The first and last ephemeral port (RFC 6056 §3.2). Default 49,152 to 65,535.
        pub ephemeral_ports: (u16, u16),
        /// The initial sequence number of every connection; `None` computes it as in RFC 6528, as an open
        /// network requires. Only for tests, which choose one near the wrap. Default `None`.
        pub initial_sequence: Option<u32>,
        /// The configuration of accepted connections, and of [`Endpoint::connect`](crate::Endpoint::connect). Default
        /// [`ConnectionConfig::interactive`].
        pub connection: Arc<ConnectionConfig>,
    }
}

config! {
    /// The configuration of a connection: a recovery profile, and the recommendations of the RFCs for
    /// everything else. The default is [`interactive`](Self::interactive).
    #[derive(Clone, Debug)]
    #[cfg_attr(feature = "serde", derive(Serialize))]
    pub struct ConnectionConfig {
        /// Loss recovery and congestion control. The default is the profile `tcp-interactive`.
        pub recovery: RecoveryConfig,
        /// The most bytes of payload and TCP options in a segment over IPv4, sent or received: the path MTU less 40 for
        /// the fixed IP and TCP headers (RFC 6691). The MSS option announces it. Over IPv6, with its longer header, it
        /// is 20 less. Default 1460.
        pub mss: u16,
        /// The receive buffer in bytes, and so the largest window advertised. Default 1 MiB.
        pub receive_buffer_bytes: usize,
        /// The send buffer in bytes: the most bytes accepted from the application and not yet acknowledged.
        /// Default 1 MiB.
        pub send_buffer_bytes: usize,
        /// The most segments received out of order that wait for earlier ones. Default 4096.
        pub max_held_segments: usize,
        /// Whether to offer window scaling (RFC 7323 §2). Default true.
        pub window_scaling: bool,
        /// Whether to offer timestamps, and with them PAWS (RFC 7323 §3, §5). Default true.
        pub timestamps: bool,
        /// Whether to offer selective acknowledgements (RFC 2018), and to report duplicates with them (RFC
        /// 2883). Default true.
        pub sack: bool as with_sack,
        /// Nagle's algorithm: whether small segments wait while data is unacknowledged (RFC 9293 §3.7.4). Not
        /// while the connection is thin, if [`recovery`](Self::recovery) has
        /// [`no_delay`](crate::recovery::ThinTcpConfig::no_delay). Default true.
        pub nagle: bool,
        /// The maximum delay of an ACK (RFC 9293 §3.8.6.3); zero disables the delay. Default 40 ms, far below
        /// the 500 ms allowed: a thin stream has no second segment that would end the delay, and the peer's
        /// retransmission timeout must exceed it.
        pub ack_delay: Duration,
        /// Keep-alive: when a silent peer is probed (RFC 9293 §3.8.4); `None` never probes. Default `None`.
        pub keep_alive: Option<KeepAlive>,
        /// The maximum segment lifetime (MSL); TIME-WAIT lasts twice as long. Default 30 s.
        pub msl: Duration,
        /// How often a SYN or SYN-ACK is retransmitted. With the default of 7 it is attempted for the three minutes
        /// that RFC 9293 §3.8.3 requires for SYNs (R2): the first timeout is 1 s, the last ones are 60 s. Not counted are the
        /// two earlier retransmissions of profiles with a probe timer, such as `tcp-interactive`, 250 and 750 ms after the SYN.
        pub max_syn_retransmits: u32,
        /// The number of consecutive timeouts or unanswered probes after which the connection is aborted (R2
        /// of RFC 9293 §3.8.3). Probes of a closed window that the peer acknowledges do not count while the
        /// application has the connection open. Default 15.
        pub max_retransmits: u32,
        /// How long FIN-WAIT-2 lasts after the application has closed the connection; `None` is unlimited.
        /// Default 60 s.
        pub fin_wait_timeout: Option<Duration>,
    }
}

config! {
    const
    /// When and how often a silent peer is probed (RFC 9293 §3.8.4).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[cfg_attr(feature = "serde", derive(Serialize))]
    pub struct KeepAlive {
        /// The silence of the peer before the first probe. Default 2 h.
        pub idle: Duration,
        /// The time between probes. Default 75 s.
        pub interval: Duration,
        /// The number of unanswered probes after which the connection is aborted. Default 9.
        pub probes: u32,
    }
}

impl Default for EndpointConfig {
    fn default() -> Self {
        Self {
            max_connections: 200_000,
            syn_backlog: 1024,
            max_time_wait: 65_536,
            challenge_acks_per_second: 1000,
            out_of_the_blue_responses_per_second: 1000,
            ephemeral_ports: (49_152, 65_535),
            initial_sequence: None,
            connection: Arc::default(),
        }
    }
}

impl Default for ConnectionConfig {
    fn default() -> Self {
        Self::interactive()
    }
}

/// A constructor for each profile of TCP.
macro_rules! profiles {
    ($($(#[$meaning:meta])* $name:ident => $recovery:ident)*) => {
        impl ConnectionConfig {
            $(
                $(#[$meaning])*
                ///
                #[doc = concat!("The recovery is [`RecoveryConfig::", stringify!($recovery), "`].")]
                #[must_use]
                pub fn $name() -> Self {
                    Self::new(RecoveryConfig::$recovery())
                }
            )*
        }
    };
}

profiles! {
    /// The current RFCs: a SACK scoreboard, NewReno, an RTO of at least 1 s.
    sack => tcp_sack
    /// CUBIC, with the RTO bounds of Linux.
    cubic => tcp_cubic
    /// TCP of 2009 without SACK.
    newreno => tcp_newreno
    /// The four mechanisms for thin streams of Petlund 2008.
    thin => tcp_thin
    /// `sack`, robust to reordering and to sudden delays (RR-TCP), with Eifel detection.
    rr => tcp_rr
    /// CUBIC for bulk data, and for thin streams retransmissions after a round trip and the jitter
    /// measured. The default.
    interactive => tcp_interactive
    /// `interactive` with redundant copies within a budget, for when latency matters more than bytes.
    interactive_redundant => tcp_interactive_redundant
    /// `thin` with Redundant Data Bundling.
    thin_rdb => tcp_thin_rdb
}

impl Default for KeepAlive {
    /// Two hours of silence (RFC 9293 §3.8.4, MUST-28), then 9 probes, 75 s apart.
    fn default() -> Self {
        Self { idle: Duration::from_secs(7200), interval: Duration::from_secs(75), probes: 9 }
    }
}

/// Why a configuration is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A value is out of its range.
    #[error("{name} is {value}; it must be from {min} to {max}")]
    OutOfBounds {
        /// The field.
        name: &'static str,
        /// The value given.
        value: usize,
        /// The least it may be.
        min: usize,
        /// The most it may be.
        max: usize,
    },
    /// The first ephemeral port is 0 or above the last.
    #[error("the ephemeral ports {0}-{1} are not a valid range")]
    EphemeralPorts(u16, u16),
    /// The delay of acknowledgements must not be above 500 ms (RFC 9293 §3.8.6.3).
    #[error("ack_delay is above 500 ms, which RFC 9293 §3.8.6.3 forbids")]
    AckDelay,
    /// A value of the keep-alive configuration is zero.
    #[error("keep_alive needs an idle time, an interval and a number of probes above zero")]
    KeepAlive,
    /// The recovery configuration is invalid.
    #[error("recovery: {0}")]
    Recovery(#[from] InvalidRecovery),
}

fn bound(name: &'static str, value: usize, min: usize, max: usize) -> Result<(), ConfigError> {
    if (min..=max).contains(&value) {
        Ok(())
    } else {
        Err(ConfigError::OutOfBounds { name, value, min, max })
    }
}

impl EndpointConfig {
    /// Checks that all values are within their ranges and fit together.
    ///
    /// # Errors
    /// The first violation found.
    pub fn validate(&self) -> Result<(), ConfigError> {
        bound("max_connections", self.max_connections, 1, 16 << 20)?;
        bound("syn_backlog", self.syn_backlog, 0, 1 << 20)?;
        bound("max_time_wait", self.max_time_wait, 0, 16 << 20)?;
        let (first, last) = self.ephemeral_ports;
        if first == 0 || first > last {
            return Err(ConfigError::EphemeralPorts(first, last));
        }
        self.connection.validate()
    }
}

impl ConnectionConfig {
    /// The recommendations of the RFCs with the given loss recovery.
    #[must_use]
    pub fn new(recovery: RecoveryConfig) -> Self {
        Self {
            recovery,
            mss: 1460,
            receive_buffer_bytes: 1024 * 1024,
            send_buffer_bytes: 1024 * 1024,
            max_held_segments: 4096,
            window_scaling: true,
            timestamps: true,
            sack: true,
            nagle: true,
            ack_delay: Duration::from_millis(40),
            keep_alive: None,
            msl: Duration::from_secs(30),
            max_syn_retransmits: 7,
            max_retransmits: 15,
            fin_wait_timeout: Some(Duration::from_secs(60)),
        }
    }

    /// Checks that all values are within their ranges and fit together.
    ///
    /// # Errors
    /// The first violation found.
    pub fn validate(&self) -> Result<(), ConfigError> {
        bound("mss", self.mss.into(), (MIN_MSS + IPV6_SURPLUS).into(), MAX_MSS.into())?;
        bound("receive_buffer_bytes", self.receive_buffer_bytes, 1024, MAX_RECEIVE_BUFFER_BYTES)?;
        bound("send_buffer_bytes", self.send_buffer_bytes, 1, 1 << 30)?;
        bound("max_held_segments", self.max_held_segments, 1, 1 << 20)?;
        bound("msl (ms)", self.msl.as_millis() as usize, 1, 3_600_000)?;
        bound("max_syn_retransmits", self.max_syn_retransmits as usize, 0, 255)?;
        bound("max_retransmits", self.max_retransmits as usize, 1, 255)?;
        if self.ack_delay > MAX_ACK_DELAY {
            return Err(ConfigError::AckDelay);
        }
        if self.keep_alive.is_some_and(|keep_alive| !keep_alive.is_possible()) {
            return Err(ConfigError::KeepAlive);
        }
        Ok(self.recovery.validate_for_tcp()?)
    }

    /// The value of the MSS option: smaller over IPv6 than over IPv4, so that packets have the same size.
    pub(crate) const fn mss_over(&self, is_v6: bool) -> u16 {
        if is_v6 { self.mss - IPV6_SURPLUS } else { self.mss }
    }
}

impl KeepAlive {
    const fn is_possible(self) -> bool {
        !self.idle.is_zero() && !self.interval.is_zero() && self.probes > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_valid_and_within_the_rfcs() {
        assert_eq!(EndpointConfig::default().validate(), Ok(()));
        let config = ConnectionConfig::default();
        assert_eq!(Some(&config.recovery), RecoveryConfig::tcp_profile("tcp-interactive").as_ref());
        assert_eq!((config.mss_over(false), config.mss_over(true)), (1460, 1440));
        assert!(config.keep_alive.is_none(), "MUST-25: off");
        assert!(KeepAlive::default().idle >= Duration::from_secs(7200), "MUST-28");
        // MUST-23: a SYN is tried for three minutes; SHLD-11: data for 100 s.
        let spent = |attempts: u32| -> u64 { (0..=attempts).map(|n| (1 << n).min(60)).sum() };
        assert!(spent(config.max_syn_retransmits) >= 180);
        assert!(spent(config.max_retransmits) >= 100);
    }

    #[test]
    fn each_constructor_is_the_profile_of_its_name() {
        let constructors = [
            ConnectionConfig::sack,
            ConnectionConfig::cubic,
            ConnectionConfig::newreno,
            ConnectionConfig::thin,
            ConnectionConfig::rr,
            ConnectionConfig::interactive,
            ConnectionConfig::interactive_redundant,
            ConnectionConfig::thin_rdb,
        ];
        let names: Vec<_> = rexmit_recovery::TCP_PROFILES.iter().map(|(name, _)| *name).collect();
        assert_eq!(names.len(), constructors.len());
        for (name, constructor) in names.into_iter().zip(constructors) {
            let by_name = RecoveryConfig::tcp_profile(name);
            assert_eq!(by_name, Some(constructor().recovery), "{name}");
            assert_eq!(constructor().validate(), Ok(()), "{name}");
        }
    }

    #[test]
    fn each_bound_of_a_connection_is_checked() {
        let refused = |change: fn(&mut ConnectionConfig)| {
            let mut config = ConnectionConfig::default();
            change(&mut config);
            config.validate().is_err()
        };
        assert!(refused(|c| c.mss = 107));
        assert!(refused(|c| c.mss = MAX_MSS + 1));
        assert!(refused(|c| c.receive_buffer_bytes = 1023));
        assert!(refused(|c| c.receive_buffer_bytes = MAX_RECEIVE_BUFFER_BYTES + 1));
        assert!(refused(|c| c.send_buffer_bytes = 0));
        assert!(refused(|c| c.max_held_segments = 0));
        assert!(refused(|c| c.msl = Duration::ZERO));
        assert!(refused(|c| c.max_retransmits = 0));
        assert!(refused(|c| c.max_syn_retransmits = 256));
        assert!(refused(|c| c.ack_delay = Duration::from_millis(501)));
        assert!(refused(|c| c.recovery.missing_reports = 0));
        assert!(refused(|c| {
            c.keep_alive = Some(KeepAlive { probes: 0, ..KeepAlive::default() });
        }));
    }

    #[test]
    fn the_detector_of_sctp_is_refused() {
        use rexmit_recovery::{LossDetection, Reordering};
        let check = |loss_detection| {
            let mut config = ConnectionConfig::default();
            config.recovery.loss_detection = loss_detection;
            config.validate().map_err(|error| error.to_string())
        };
        let scoreboard = LossDetection::Scoreboard { reordering: Reordering::Fixed };
        for detection in [scoreboard, LossDetection::DuplicateAcks, LossDetection::Rack] {
            assert_eq!(check(detection), Ok(()));
        }
        let error = check(LossDetection::RFC_9260).expect_err("it is of SCTP");
        assert!(error.contains("use scoreboard, duplicate_acks or rack"), "{error}");
    }

    #[test]
    fn each_bound_of_an_endpoint_is_checked() {
        let refused = |change: fn(&mut EndpointConfig)| {
            let mut config = EndpointConfig::default();
            change(&mut config);
            config.validate().is_err()
        };
        assert!(refused(|c| c.max_connections = 0));
        assert!(refused(|c| c.syn_backlog = usize::MAX));
        assert!(refused(|c| c.max_time_wait = usize::MAX));
        assert!(refused(|c| c.ephemeral_ports = (0, 5)));
        assert!(refused(|c| c.ephemeral_ports = (6, 5)));
    }
}
