//! The options negotiated by the two SYNs (RFC 9293 §3.7.1, RFC 7323, RFC 2018).

use super::context::{Identity, Negotiated};
use crate::config::{ConnectionConfig, MIN_MSS};
use crate::wire::{Flags, Header, Options, Timestamps};

/// The largest shift of a window (RFC 7323 §2.3).
const MAX_SHIFT: u8 = 14;
/// The MSS of a peer without an MSS option (RFC 9293 §3.7.1, MUST-15).
const DEFAULT_MSS_V4: u16 = 536;
/// The default MSS of a peer over IPv6 (RFC 9293 §3.7.1).
const DEFAULT_MSS_V6: u16 = 1220;

impl Negotiated {
    /// The options negotiated by our offer and the peer's SYN or SYN-ACK. An option that is missing in the answer to a
    /// SYN is not used.
    pub(crate) fn from_syns(config: &ConnectionConfig, syn: &Header, is_v6: bool) -> Self {
        let options = &syn.options;
        let default_mss = if is_v6 { DEFAULT_MSS_V6 } else { DEFAULT_MSS_V4 };
        let scale = options.window_scale.filter(|_| config.window_scaling);
        Self {
            irs: syn.sequence,
            peer_mss: options.mss.unwrap_or(default_mss).max(MIN_MSS),
            window_scale: scale.map(|shift| (shift.min(MAX_SHIFT), receive_shift(config))),
            sack: config.sack && options.sack_permitted,
            timestamps: options.timestamps.filter(|_| config.timestamps).map(|ts| ts.value),
        }
    }
}

/// The smallest window shift with which the whole receive buffer can be advertised.
fn receive_shift(config: &ConnectionConfig) -> u8 {
    let fits = |shift: &u8| (usize::from(u16::MAX) << shift) >= config.receive_buffer_bytes;
    (0..MAX_SHIFT).find(fits).unwrap_or(MAX_SHIFT)
}

/// The options of our SYN, or of our SYN-ACK with the options `agreed`.
fn syn_options(
    config: &ConnectionConfig,
    is_v6: bool,
    agreed: Option<&Negotiated>,
    timestamp: u32,
) -> Options {
    let scales = agreed.map_or(config.window_scaling, |agreed| agreed.window_scale.is_some());
    let stamps = agreed.map_or(config.timestamps, |agreed| agreed.timestamps.is_some());
    let echo_reply = agreed.and_then(|agreed| agreed.timestamps).unwrap_or(0);
    Options {
        mss: Some(config.mss_over(is_v6)),
        window_scale: scales.then(|| receive_shift(config)),
        sack_permitted: agreed.map_or(config.sack, |agreed| agreed.sack),
        timestamps: stamps.then_some(Timestamps { value: timestamp, echo_reply }),
        ..Options::default()
    }
}

/// The header of a SYN or, with `agreed` options, of a SYN-ACK; the SYN-ACK of a cookie uses it, too. Its window is not
/// scaled (RFC 7323 §2.2).
pub(crate) fn syn_header(
    config: &ConnectionConfig,
    identity: &Identity,
    agreed: Option<&Negotiated>,
    timestamp: u32,
) -> Header {
    let answer = if agreed.is_some() { Flags::ACK } else { Flags::default() };
    Header {
        source_port: identity.local.port(),
        destination_port: identity.remote.port(),
        sequence: identity.iss,
        acknowledgment: agreed.map_or(0, |agreed| agreed.irs.wrapping_add(1)),
        flags: Flags::SYN.and(answer),
        window: u16::try_from(config.receive_buffer_bytes).unwrap_or(u16::MAX),
        urgent_pointer: 0,
        options: syn_options(config, identity.remote.is_ipv6(), agreed, timestamp),
    }
}
