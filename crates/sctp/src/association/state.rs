//! The states of RFC 9260 §4, each with the data that only this state has.

use std::time::Duration;

use bytes::Bytes;
use rexmit_core::Instant;

use super::setup::Setup;
use super::shutdown::Shutdown;
use super::timers::{Deadline, Timer};
use crate::wire::PacketWriter;

/// The state of an association.
#[derive(Debug)]
pub(crate) enum State {
    /// INIT was sent; T1-init runs.
    CookieWait(Box<Setup>),
    /// COOKIE ECHO was sent; T1-cookie runs.
    CookieEchoed(Box<Setup>, Box<EchoedCookie>),
    Established,
    ShutdownPending,
    ShutdownSent(Shutdown),
    ShutdownReceived,
    ShutdownAckSent(Shutdown),
    /// The association has ended; a last packet may have to be sent.
    Closed(Option<Box<Farewell>>),
}

#[derive(Debug)]
pub(crate) struct EchoedCookie {
    /// The State Cookie that COOKIE ECHO carries.
    pub(super) cookie: Vec<u8>,
    /// Parameters of the INIT ACK to be reported, whole (RFC 9260 §3.3.10.8).
    pub(super) unrecognized: Vec<u8>,
}

/// The last packet of an association.
#[derive(Debug)]
pub(crate) enum Farewell {
    Abort { t_bit: bool, cause: AbortCause },
    ShutdownComplete,
}

/// Why we abort.
#[derive(Clone, Debug)]
pub(crate) enum AbortCause {
    User(Bytes),
    Violation(&'static str),
    NoUserData(u32),
    MissingStateCookie,
    InvalidMandatoryParameter,
    UnresolvableAddress(Vec<u8>),
    IllegalAsconfAck,
}

impl AbortCause {
    /// The reason of the abort, for the application.
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
            Self::ShutdownSent(_) => "SHUTDOWN-SENT",
            Self::ShutdownReceived => "SHUTDOWN-RECEIVED",
            Self::ShutdownAckSent(_) => "SHUTDOWN-ACK-SENT",
            Self::Closed(_) => "CLOSED",
        }
    }

    /// Whether the application may still send (RFC 9260 §9.2).
    pub(super) const fn may_accept_messages(&self) -> bool {
        matches!(self, Self::CookieWait(_) | Self::CookieEchoed(..) | Self::Established)
    }

    /// Whether DATA may be sent in packets without control chunks (RFC 9260 §6).
    pub(super) const fn may_send_data(&self) -> bool {
        matches!(self, Self::Established | Self::ShutdownPending | Self::ShutdownReceived)
    }

    /// Whether DATA is accepted (RFC 9260 §6).
    pub(super) const fn may_receive_data(&self) -> bool {
        matches!(self, Self::Established | Self::ShutdownPending | Self::ShutdownSent(_))
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
                | Self::ShutdownSent(_)
                | Self::ShutdownReceived
        )
    }

    /// Whether ASCONF and ASCONF-ACK are exchanged (RFC 5061 §5.1.1 C4).
    pub(super) const fn may_change_addresses(&self) -> bool {
        matches!(
            self,
            Self::Established
                | Self::ShutdownPending
                | Self::ShutdownSent(_)
                | Self::ShutdownReceived
        )
    }

    pub(crate) const fn is_setting_up(&self) -> bool {
        matches!(self, Self::CookieWait(_) | Self::CookieEchoed(..))
    }

    pub(crate) const fn is_closed(&self) -> bool {
        matches!(self, Self::Closed(_))
    }

    /// Whether the association has ended with a SHUTDOWN COMPLETE of ours, which was not written yet.
    pub(crate) fn completes_shutdown(&self) -> bool {
        matches!(self, Self::Closed(Some(farewell)) if matches!(**farewell, Farewell::ShutdownComplete))
    }

    /// Whether an INIT may add unknown addresses: only while nothing is known of the peer (RFC 9260 §5.2.1, §5.2.2).
    pub(crate) const fn may_learn_addresses(&self) -> bool {
        matches!(self, Self::CookieWait(_))
    }

    pub(crate) const fn is_shutdown_ack_sent(&self) -> bool {
        matches!(self, Self::ShutdownAckSent(_))
    }

    /// Whether SHUTDOWN ACK is expected.
    pub(super) const fn is_shutting_down(&self) -> bool {
        matches!(self, Self::ShutdownSent(_) | Self::ShutdownAckSent(_))
    }

    /// Writes a pending SHUTDOWN, with `cumulative` as its Cumulative TSN Ack, or SHUTDOWN ACK. Returns
    /// whether one was written.
    pub(super) fn write_shutdown(&self, cumulative: u32, writer: &mut PacketWriter<'_>) -> bool {
        match self {
            Self::ShutdownSent(shutdown) => shutdown.is_owed() && writer.shutdown(cumulative),
            Self::ShutdownAckSent(shutdown) => shutdown.is_owed() && writer.shutdown_ack(),
            _ => false,
        }
    }

    /// Called when INIT, COOKIE ECHO, SHUTDOWN or SHUTDOWN ACK was sent over a path with this RTO.
    pub(super) fn on_chunk_sent(&mut self, now: Instant, rto: Duration) {
        match self {
            Self::CookieWait(setup) | Self::CookieEchoed(setup, _) => setup.on_sent(now, rto),
            Self::ShutdownSent(shutdown) | Self::ShutdownAckSent(shutdown) => {
                shutdown.on_sent(now, rto);
            }
            _ => {}
        }
    }

    /// The retransmission state of INIT or COOKIE ECHO, while either waits for its answer.
    pub(super) fn setup_mut(&mut self) -> Option<&mut Setup> {
        match self {
            Self::CookieWait(setup) | Self::CookieEchoed(setup, _) => Some(setup),
            _ => None,
        }
    }

    /// The retransmission state of SHUTDOWN or SHUTDOWN ACK, once either is to be sent.
    pub(super) const fn shutdown_mut(&mut self) -> Option<&mut Shutdown> {
        match self {
            Self::ShutdownSent(shutdown) | Self::ShutdownAckSent(shutdown) => Some(shutdown),
            _ => None,
        }
    }

    /// Whether INIT, COOKIE ECHO, SHUTDOWN or SHUTDOWN ACK is to be sent.
    pub(super) fn is_chunk_owed(&self) -> bool {
        match self {
            Self::CookieWait(setup) | Self::CookieEchoed(setup, _) => setup.is_owed(),
            Self::ShutdownSent(shutdown) | Self::ShutdownAckSent(shutdown) => shutdown.is_owed(),
            _ => false,
        }
    }

    /// The timers that exist only in some states.
    pub(super) fn timers(&self) -> [(Timer, Deadline); 3] {
        let (t1, t2, t5) = match self {
            Self::CookieWait(setup) | Self::CookieEchoed(setup, _) => {
                (setup.t1(), Deadline::OFF, Deadline::OFF)
            }
            Self::ShutdownSent(shutdown) | Self::ShutdownAckSent(shutdown) => {
                (Deadline::OFF, shutdown.t2(), shutdown.t5())
            }
            _ => (Deadline::OFF, Deadline::OFF, Deadline::OFF),
        };
        [(Timer::T1, t1), (Timer::T2Shutdown, t2), (Timer::T5ShutdownGuard, t5)]
    }
}
