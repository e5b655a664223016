//! The states of a connection (RFC 9293 §3.3.2), and what each allows.

/// A state of RFC 9293 §3.3.2. LISTEN is not among them: a listener creates connections in SYN-RECEIVED.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum State {
    /// Our SYN was sent.
    SynSent,
    /// Both SYNs were sent; ours is not acknowledged.
    SynReceived,
    /// The connection is established.
    Established,
    /// We have finished sending; our FIN is not acknowledged.
    FinWait1,
    /// Our FIN is acknowledged; the peer has not finished.
    FinWait2,
    /// The peer has finished sending; we have not.
    CloseWait,
    /// Both have finished at the same time; our FIN is not acknowledged.
    Closing,
    /// We finished after the peer; our FIN is not acknowledged.
    LastAck,
    /// Both have finished; the last acknowledgement may have been lost.
    TimeWait,
    /// There is no connection.
    Closed,
}

impl State {
    /// The name in RFC 9293, such as "ESTABLISHED".
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SynSent => "SYN-SENT",
            Self::SynReceived => "SYN-RECEIVED",
            Self::Established => "ESTABLISHED",
            Self::FinWait1 => "FIN-WAIT-1",
            Self::FinWait2 => "FIN-WAIT-2",
            Self::CloseWait => "CLOSE-WAIT",
            Self::Closing => "CLOSING",
            Self::LastAck => "LAST-ACK",
            Self::TimeWait => "TIME-WAIT",
            Self::Closed => "CLOSED",
        }
    }

    /// The state after the application has finished, when our FIN is to be sent (RFC 9293 §3.10.4). Before
    /// the connection is established, the FIN waits.
    pub(super) const fn after_our_fin(self) -> Self {
        match self {
            Self::Established => Self::FinWait1,
            Self::CloseWait => Self::LastAck,
            state => state,
        }
    }

    /// The state after the FIN of the peer (RFC 9293 §3.10.7.4, eighth check).
    pub(super) const fn after_peer_fin(self) -> Self {
        match self {
            Self::Established => Self::CloseWait,
            Self::FinWait1 => Self::Closing,
            Self::FinWait2 => Self::TimeWait,
            state => state,
        }
    }

    /// Whether both SYNs are acknowledged, and it has not ended.
    pub(super) const fn is_synchronized(self) -> bool {
        !matches!(self, Self::SynSent | Self::SynReceived | Self::Closed)
    }

    /// Whether data or a FIN may be sent, including data accepted before the application finished.
    pub(super) const fn may_send_data(self) -> bool {
        matches!(
            self,
            Self::Established | Self::CloseWait | Self::FinWait1 | Self::Closing | Self::LastAck
        )
    }

    /// Whether the application may read: data that came with a SYN waits until the connection is
    /// established.
    pub(super) const fn may_read(self) -> bool {
        !matches!(self, Self::SynSent | Self::SynReceived)
    }

    /// Whether the peer may still send data.
    pub(super) const fn may_receive_data(self) -> bool {
        matches!(self, Self::SynReceived | Self::Established | Self::FinWait1 | Self::FinWait2)
    }
}
