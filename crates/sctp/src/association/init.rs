//! The content of our INIT and INIT ACK (RFC 9260 §3.3.2).

use std::net::IpAddr;

use super::addresses::is_in_scope;
use super::identity::Identity;
use crate::config::{AssociationConfig, MAX_ADDRESSES};
use crate::wire::{Init, Param, Params, ParamsWriter, SCTP_OVER_DTLS, kind};

/// The fixed part.
pub(crate) fn init_chunk(identity: &Identity, config: &AssociationConfig) -> Init<'static> {
    Init {
        initiate_tag: identity.local_tag,
        a_rwnd: config.a_rwnd(),
        outbound_streams: config.streams.outbound,
        inbound_streams: config.streams.max_inbound,
        initial_tsn: identity.local_initial_tsn,
        params: Params::default(),
    }
}

/// Announces the extensions that are switched on (RFC 5061 §4.2.7, RFC 3758 §3.1, RFC 8260 §2.2.1).
pub(crate) fn push_extensions(params: &mut ParamsWriter<'_, '_>, config: &AssociationConfig) {
    if config.extensions.partial_reliability {
        params.push(&Param::ForwardTsnSupported);
    }
    if config.extensions.ecn {
        params.push(&Param::EcnCapable);
    }
    if config.extensions.zero_checksum {
        params.push(&Param::ZeroChecksumAcceptable(SCTP_OVER_DTLS));
    }
    if config.sack.ack_copies.request {
        params.push(&Param::AckCopiesRequested);
    }
    let mut kinds = Vec::with_capacity(7);
    kinds.extend(config.extensions.stream_reset.then_some(kind::RE_CONFIG));
    kinds.extend(config.extensions.partial_reliability.then_some(kind::FORWARD_TSN));
    kinds.extend(config.offers_authentication().then_some(kind::AUTH));
    if config.extensions.dynamic_addresses {
        kinds.extend([kind::ASCONF, kind::ASCONF_ACK]);
    }
    kinds.extend(config.extensions.interleaving.then_some(kind::I_DATA));
    let forwards_mids = config.extensions.interleaving && config.extensions.partial_reliability;
    kinds.extend(forwards_mids.then_some(kind::I_FORWARD_TSN));
    if !kinds.is_empty() {
        params.push(&Param::SupportedExtensions(&kinds));
    }
}

/// Writes those of our addresses that are valid in the scope of a peer at `peer`. A single one is not listed: the peer
/// takes the address that the packet comes from (RFC 9260 §5.1.2 A), which a NAT may have changed.
pub(crate) fn push_addresses(params: &mut ParamsWriter<'_, '_>, own: &[IpAddr], peer: IpAddr) {
    let in_scope = || own.iter().filter(|&&address| is_in_scope(address, peer));
    if in_scope().count() > 1 {
        for &address in in_scope().take(MAX_ADDRESSES) {
            params.push(&Param::from(address));
        }
    }
}
