//! Parameters of endpoints and connections.

use std::sync::Arc;
use std::time::Duration;

use rexmit_recovery::{InvalidRecovery, RecoveryConfig};
use serde::Serialize;

/// The smallest MSS that is taken from a peer; less would make every byte cost a packet.
pub const MIN_MSS: u16 = 88;
/// The largest receive buffer: what window scaling can express (RFC 7323 §2.3).
pub const MAX_RECEIVE_BUFFER_BYTES: usize = 1 << 30;
/// The longest delay of an acknowledgement (RFC 9293 §3.8.6.3, MUST-59).
pub const MAX_ACK_DELAY: Duration = Duration::from_millis(500);

/// One TCP endpoint: the addresses of a host and all connections on them.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// Connections at one time, those in TIME-WAIT not counted.
    pub max_connections: usize,
    /// Connections in SYN-RECEIVED per listener that are kept as state; beyond it SYNs are answered
    /// with SYN cookies, which keep none.
    pub syn_backlog: usize,
    /// Established connections per listener that the application has not taken notice of (their
    /// `Connected` event is not yet polled); beyond it new ones are refused by silence.
    pub max_time_wait: usize,
    /// Challenge ACKs per second, over all connections (RFC 5961 §7: 10 in 5 s is its example).
    pub challenge_acks_per_second: u32,
    /// Ephemeral ports, first and last (RFC 6056 §3.2).
    pub ephemeral_ports: (u16, u16),
    /// The initial sequence number of every connection; `None` makes it by RFC 6528. Tests choose
    /// one near the wrap.
    pub initial_sequence: Option<u32>,
    /// The configuration of accepted connections, and of `Endpoint::connect`.
    pub connection: Arc<ConnectionConfig>,
}

/// One connection. The default follows the RFCs' recommendations.
#[derive(Clone, Debug, Serialize)]
pub struct ConnectionConfig {
    /// What is done about loss, and the window.
    pub recovery: RecoveryConfig,
    /// The largest segment's payload and options we take and send, in bytes: the path MTU less IP
    /// and fixed TCP headers (RFC 6691). What the MSS option announces.
    pub mss: u16,
    /// Bytes received and not yet taken by the application at most; the window that is offered.
    pub receive_buffer_bytes: usize,
    /// Bytes accepted from the application and not yet acknowledged at most.
    pub send_buffer_bytes: usize,
    /// Segments that wait for earlier ones at most.
    pub max_held_segments: usize,
    /// Offer window scaling (RFC 7323 §2).
    pub window_scaling: bool,
    /// Offer timestamps, and with them PAWS (RFC 7323 §3, §5).
    pub timestamps: bool,
    /// Offer selective acknowledgements (RFC 2018), and report duplicates with them (RFC 2883).
    pub sack: bool,
    /// Hold back small segments while something is unacknowledged (RFC 9293 §3.7.4).
    pub nagle: bool,
    /// How long an acknowledgement may wait (RFC 9293 §3.8.6.3); zero never waits.
    pub ack_delay: Duration,
    /// Silence after which the peer is probed (RFC 9293 §3.8.4); `None` never does.
    pub keep_alive: Option<KeepAlive>,
    /// The maximum segment lifetime; TIME-WAIT lasts two.
    pub msl: Duration,
    /// How often a SYN or SYN-ACK is repeated (R2 of RFC 9293 §3.8.3 for SYNs).
    pub max_syn_retransmits: u32,
    /// Consecutive timeouts or probes without an answer after which the connection is given up
    /// (R2 of RFC 9293 §3.8.3). A closed window that is still confirmed never counts.
    pub max_retransmits: u32,
    /// How long FIN-WAIT-2 lasts once the application can no longer receive (is gone); `None` is
    /// for ever.
    pub fin_wait_timeout: Option<Duration>,
}

/// How a silent peer is probed (RFC 9293 §3.8.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct KeepAlive {
    /// Silence before the first probe.
    pub idle: Duration,
    /// Time between probes.
    pub interval: Duration,
    /// Probes without an answer that end the connection.
    pub probes: u32,
}
