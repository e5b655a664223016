//! The states of RFC 9260 §4, each with what only it has.

use std::time::Duration;

use bytes::Bytes;
use rexmit_core::Instant;

/// The least that INIT and COOKIE ECHO wait for their answer.
const MIN_SETUP_TIMEOUT: Duration = Duration::from_millis(10);

/// Where an association stands.
#[derive(Debug)]
pub(super) enum State {
    /// INIT was sent; T1-init runs.
    CookieWait(Setup),
    /// COOKIE ECHO was sent; T1-cookie runs.
    CookieEchoed(Setup, Box<EchoedCookie>),
    Established,
    ShutdownPending,
    ShutdownSent,
    ShutdownReceived,
    ShutdownAckSent,
    /// Ended; a last packet may still have to leave.
    Closed(Option<Farewell>),
}

/// What the setup keeps until its answer comes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Setup {
    /// Times the present chunk was retransmitted at the RTO's pace.
    pub(super) attempts: u32,
    /// Times it was before, by the round-trip time: sooner than Max.Init.Retransmits counts on.
    pub(super) early_attempts: u32,
    /// When it was first sent, for a round-trip sample.
    pub(super) sent_at: Option<Instant>,
    /// The round-trip time, where the setup goes by it.
    pub(super) rtt: Option<Duration>,
    /// Attempts with a new INIT after a stale cookie.
    pub(super) stale_cookies: u32,
}

impl Setup {
    /// T1: `rto`, after what comes earlier.
    pub(super) fn timeout(&self, rto: Duration) -> Duration {
        self.early_timeout(rto).unwrap_or(rto)
    }

    /// T1 where the round-trip time is known: half as much again, doubling until that is no sooner than
    /// `rto`.
    pub(super) fn early_timeout(&self, rto: Duration) -> Option<Duration> {
        let rtt = self.rtt.filter(|_| self.attempts == 0)?;
        let first = rtt.saturating_add(rtt / 2).max(MIN_SETUP_TIMEOUT);
        let doubled = first.saturating_mul(1 << self.early_attempts.min(31));
        Some(doubled).filter(|&doubled| doubled < rto)
    }

    pub(super) const fn was_repeated(&self) -> bool {
        self.attempts > 0 || self.early_attempts > 0
    }
}

#[derive(Debug)]
pub(super) struct EchoedCookie {
    /// What COOKIE ECHO carries.
    pub(super) cookie: Vec<u8>,
    /// Parameters of the INIT ACK to be reported, whole (RFC 9260 §3.3.10.8).
    pub(super) unrecognized: Vec<u8>,
}

/// The last packet of an association.
#[derive(Debug)]
pub(super) enum Farewell {
    Abort { t_bit: bool, cause: AbortCause },
    ShutdownComplete,
}

/// Why we abort.
#[derive(Clone, Debug)]
pub(super) enum AbortCause {
    User(Bytes),
    Violation(&'static str),
    NoUserData(u32),
    MissingStateCookie,
    InvalidMandatoryParameter,
    UnresolvableAddress(Vec<u8>),
    IllegalAsconfAck,
}

impl AbortCause {
    /// What the application is told.
    pub(super) fn words(&self) -> Bytes {
        match self {
            Self::User(reason) => reason.clone(),
            Self::Violation(what) => Bytes::from_static(what.as_bytes()),
            Self::NoUserData(_) => Bytes::from_static(b"a DATA chunk had no user data"),
            Self::MissingStateCookie => Bytes::from_static(b"INIT ACK had no state cookie"),
            Self::InvalidMandatoryParameter => {
                Bytes::from_static(b"a mandatory parameter of INIT ACK was invalid")
            }
            Self::IllegalAsconfAck => Bytes::from_static(b"an ASCONF-ACK for what was never asked"),
            Self::UnresolvableAddress(_) => {
                Bytes::from_static(b"INIT ACK had a host name, which RFC 9260 forbids")
            }
        }
    }
}

impl State {
    /// The RFC's name.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::CookieWait(_) => "COOKIE-WAIT",
            Self::CookieEchoed(..) => "COOKIE-ECHOED",
            Self::Established => "ESTABLISHED",
            Self::ShutdownPending => "SHUTDOWN-PENDING",
            Self::ShutdownSent => "SHUTDOWN-SENT",
            Self::ShutdownReceived => "SHUTDOWN-RECEIVED",
            Self::ShutdownAckSent => "SHUTDOWN-ACK-SENT",
            Self::Closed(_) => "CLOSED",
        }
    }

    /// Whether the application may still send (RFC 9260 §9.2).
    pub(super) const fn may_accept_messages(&self) -> bool {
        matches!(self, Self::CookieWait(_) | Self::CookieEchoed(..) | Self::Established)
    }

    /// Whether DATA may leave in packets of their own (RFC 9260 §6).
    pub(super) const fn may_send_data(&self) -> bool {
        matches!(self, Self::Established | Self::ShutdownPending | Self::ShutdownReceived)
    }

    /// Whether DATA is taken (RFC 9260 §6).
    pub(super) const fn may_receive_data(&self) -> bool {
        matches!(self, Self::Established | Self::ShutdownPending | Self::ShutdownSent)
    }

    /// Whether a SACK is processed (RFC 9260 §6).
    pub(super) const fn may_process_sack(&self) -> bool {
        matches!(
            self,
            Self::CookieEchoed(..)
                | Self::Established
                | Self::ShutdownPending
                | Self::ShutdownReceived
        )
    }

    /// Whether a HEARTBEAT is answered (RFC 9260 §8.3).
    pub(super) const fn may_answer_heartbeat(&self) -> bool {
        matches!(
            self,
            Self::CookieEchoed(..)
                | Self::Established
                | Self::ShutdownPending
                | Self::ShutdownSent
                | Self::ShutdownReceived
        )
    }

    /// Whether HEARTBEATs are sent (RFC 9260 §8.3).
    pub(super) const fn may_heartbeat(&self) -> bool {
        matches!(self, Self::Established | Self::ShutdownPending | Self::ShutdownReceived)
    }

    /// Whether ASCONF and ASCONF-ACK are exchanged (RFC 5061 §5.1.1 C4).
    pub(super) const fn may_change_addresses(&self) -> bool {
        matches!(
            self,
            Self::Established | Self::ShutdownPending | Self::ShutdownSent | Self::ShutdownReceived
        )
    }

    pub(super) const fn is_setting_up(&self) -> bool {
        matches!(self, Self::CookieWait(_) | Self::CookieEchoed(..))
    }

    pub(super) const fn is_closed(&self) -> bool {
        matches!(self, Self::Closed(_))
    }
}
