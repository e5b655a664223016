//! The peer, as its INIT or INIT ACK describes it (RFC 9260 §3.3.2, §5.1.1, §5.1.2).

use std::net::IpAddr;

use rexmit_core::Instant;

use super::addresses::is_in_scope;
use super::auth::{AuthOffer, OfferReader};
use crate::config::{AssociationConfig, MAX_ADDRESSES};
use crate::wire::{Init, Param, SCTP_OVER_DTLS, kind};

/// The least window that a peer may offer (RFC 9260 §3.3.2).
const MIN_A_RWND: u32 = 1500;

/// The peer's parameters, as its INIT or INIT ACK gave them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PeerParameters {
    pub(crate) tag: u32,
    pub(crate) a_rwnd: u32,
    /// OS: the number of outgoing streams that it requests.
    pub(crate) outbound_streams: u16,
    /// MIS: the number of incoming streams that it accepts.
    pub(crate) inbound_streams: u16,
    pub(crate) initial_tsn: u32,
    /// Addresses beyond the one its packet came from, at most [`MAX_ADDRESSES`].
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) supports_forward_tsn: bool,
    pub(crate) supports_re_config: bool,
    /// Whether the peer lists I-DATA and I-FORWARD-TSN (RFC 8260 §2.2.1, §2.3.1).
    pub(crate) supports_i_data: bool,
    pub(crate) supports_i_forward_tsn: bool,
    /// Whether the peer accepts packets without a checksum over DTLS (RFC 9653 §5.1).
    pub(crate) accepts_zero_checksum: bool,
    /// Whether both sides use ECN (RFC 4960 appendix A).
    pub(crate) uses_ecn: bool,
    /// Whether the peer requests second copies of SACKs.
    pub(crate) wants_ack_copies: bool,
    /// Whether the peer lists ASCONF and ASCONF-ACK. Counts only together with `auth` (RFC 5061 §4.2.7).
    pub(crate) supports_asconf: bool,
    pub(crate) auth: Option<AuthOffer>,
}

impl PeerParameters {
    /// The description of a peer that supports no extension.
    const fn of(init: &Init<'_>) -> Self {
        Self {
            tag: init.initiate_tag,
            a_rwnd: init.a_rwnd,
            outbound_streams: init.outbound_streams,
            inbound_streams: init.inbound_streams,
            initial_tsn: init.initial_tsn,
            addresses: Vec::new(),
            supports_forward_tsn: false,
            supports_re_config: false,
            supports_i_data: false,
            supports_i_forward_tsn: false,
            accepts_zero_checksum: false,
            uses_ecn: false,
            wants_ack_copies: false,
            supports_asconf: false,
            auth: None,
        }
    }
}

/// The state of the peer other than its paths.
#[derive(Debug)]
pub(crate) struct Peer {
    /// The peer's verification tag; 0 while unknown.
    tag: u32,
    /// The peer's initial TSN, once the tag is known.
    initial_tsn: u32,
    /// The creation time of the newest cookie that was used for this association.
    newest_cookie: Instant,
    /// Whether both sides support RFC 5061 and RFC 4895.
    changes_addresses: bool,
    /// Whether the peer accepts packets without a checksum.
    accepts_zero_checksum: bool,
}

impl Peer {
    pub(super) const UNKNOWN: Self = Self {
        tag: 0,
        initial_tsn: 0,
        newest_cookie: Instant::ZERO,
        changes_addresses: false,
        accepts_zero_checksum: false,
    };

    pub(crate) const fn tag(&self) -> u32 {
        self.tag
    }

    pub(super) const fn set_tag(&mut self, tag: u32) {
        self.tag = tag;
    }

    pub(super) const fn initial_tsn(&self) -> u32 {
        self.initial_tsn
    }

    pub(super) const fn changes_addresses(&self) -> bool {
        self.changes_addresses
    }

    pub(super) const fn accepts_zero_checksum(&self) -> bool {
        self.accepts_zero_checksum
    }

    /// Adopts the parameters of the peer's INIT or INIT ACK.
    pub(super) const fn adopt(&mut self, peer: &PeerParameters, changes_addresses: bool) {
        self.tag = peer.tag;
        self.initial_tsn = peer.initial_tsn;
        self.changes_addresses = changes_addresses;
        self.accepts_zero_checksum = peer.accepts_zero_checksum;
    }

    /// Whether `peer`, with our tag and a new tag of its own, has restarted. A peer that sent an INIT and answered ours
    /// with another tag has used the same initial TSN in both (RFC 9260 §5.2.1).
    pub(crate) const fn has_restarted_as(&self, peer: &PeerParameters) -> bool {
        peer.initial_tsn != self.initial_tsn
    }

    /// Called when a valid cookie made at `created` was used for this association.
    pub(super) fn on_cookie_used(&mut self, created: Instant) {
        self.newest_cookie = self.newest_cookie.max(created);
    }

    /// Whether a cookie made after `created` was used for this association.
    pub(crate) fn is_newer_than(&self, created: Instant) -> bool {
        created < self.newest_cookie
    }
}

/// Other parameters of the INIT or INIT ACK, needed only during the handshake.
#[derive(Debug, Default)]
pub(crate) struct Extras<'a> {
    /// The State Cookie of the INIT ACK.
    pub(crate) state_cookie: Option<&'a [u8]>,
    /// The Cookie Preservative of the INIT: by how much the cookie's life should be longer, in milliseconds.
    pub(crate) cookie_preservative_ms: u32,
    /// The number of addresses that were refused.
    pub(crate) refused_addresses: u64,
    /// Parameters to be reported, complete, each but the last padded: the length of the error cause does not count the
    /// padding of the last (RFC 9260 §3.2).
    pub(crate) unrecognized: Vec<u8>,
}

impl Extras<'_> {
    /// Adds `param`, complete and without padding, to the unrecognized parameters to report, if there is room.
    fn report(&mut self, param: &[u8]) {
        let start = crate::wire::padded(self.unrecognized.len());
        if crate::wire::padded(start + param.len()) <= MAX_REPORT_BYTES {
            self.unrecognized.resize(start, 0);
            self.unrecognized.extend_from_slice(param);
        }
    }
}

/// Why INIT or INIT ACK cannot set up an association.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum InitError {
    /// Initiate Tag 0.
    TagZero,
    /// The number of streams is 0.
    NoStreams,
    /// A window below [`MIN_A_RWND`].
    WindowTooSmall,
    /// A host name; whole parameter (RFC 9260 §5.1.2 B).
    HostName(Vec<u8>),
    /// A random number of a wrong length (RFC 4895 §6.1).
    Random,
    /// A parameter's length does not fit.
    Malformed,
}

/// The most bytes of unrecognized parameters that are reported.
const MAX_REPORT_BYTES: usize = 512;

/// Reads INIT or INIT ACK that came from `source`; parameters of extensions that `config` disables count as unknown.
pub(crate) fn read_init<'a>(
    init: &Init<'a>,
    source: IpAddr,
    config: &AssociationConfig,
) -> Result<(PeerParameters, Extras<'a>), InitError> {
    if init.initiate_tag == 0 {
        return Err(InitError::TagZero);
    }
    if init.outbound_streams == 0 || init.inbound_streams == 0 {
        return Err(InitError::NoStreams);
    } else if init.a_rwnd < MIN_A_RWND {
        return Err(InitError::WindowTooSmall);
    }
    let mut peer = PeerParameters::of(init);
    let mut offer = OfferReader::default();
    let mut extras = Extras::default();
    let mut addresses = Addresses { source, taken: Vec::new(), refused: 0 };
    for param in init.params {
        let param = param.map_err(|_| InitError::Malformed)?;
        let decoded = param.decode().map_err(|_| InitError::Malformed)?;
        match decoded {
            Param::Ipv4(address) => addresses.note(address.into()),
            Param::Ipv6(address) => addresses.note(address.into()),
            Param::HostName(_) => return Err(InitError::HostName(param.bytes.to_vec())),
            Param::StateCookie(cookie) => extras.state_cookie = Some(cookie),
            Param::CookiePreservative(ms) => extras.cookie_preservative_ms = ms,
            Param::ForwardTsnSupported if config.extensions.partial_reliability => {
                peer.supports_forward_tsn = true;
            }
            Param::SupportedExtensions(kinds) => {
                peer.supports_re_config |= kinds.contains(&kind::RE_CONFIG);
                peer.supports_i_data |= kinds.contains(&kind::I_DATA);
                peer.supports_i_forward_tsn |= kinds.contains(&kind::I_FORWARD_TSN);
                peer.supports_forward_tsn |= kinds.contains(&kind::FORWARD_TSN);
                peer.supports_asconf |=
                    kinds.contains(&kind::ASCONF) && kinds.contains(&kind::ASCONF_ACK);
            }
            Param::Random(_) | Param::Chunks(_) | Param::HmacAlgo(_) => {
                offer.note(param, &decoded);
            }
            Param::ZeroChecksumAcceptable(method) if config.extensions.zero_checksum => {
                peer.accepts_zero_checksum = method == SCTP_OVER_DTLS;
            }
            Param::AckCopiesRequested => peer.wants_ack_copies = true,
            Param::EcnCapable => peer.uses_ecn = config.extensions.ecn,
            Param::SupportedAddressTypes(_)
            | Param::UnrecognizedParameter(_)
            | Param::HeartbeatInfo(_) => {}
            // RFC 3758 §3.3.2: without partial reliability, Forward-TSN-Supported is unknown; so is Zero
            // Checksum Acceptable where it is not offered.
            Param::Unknown | Param::ForwardTsnSupported | Param::ZeroChecksumAcceptable(_) => {
                let action = param.unknown_action();
                if action.report {
                    extras.report(param.bytes);
                }
                if action.stop {
                    break;
                }
            }
        }
    }
    if offer.is_violated() {
        return Err(InitError::Random);
    }
    peer.auth = offer.finish();
    peer.addresses = addresses.taken;
    extras.refused_addresses = addresses.refused;
    Ok((peer, extras))
}

/// The addresses that a peer lists.
struct Addresses {
    source: IpAddr,
    taken: Vec<IpAddr>,
    refused: u64,
}

impl Addresses {
    /// Adds an address, unless it is a repetition or one that the peer cannot have.
    fn note(&mut self, address: IpAddr) {
        if address == self.source {
            return;
        }
        let is_usable = is_in_scope(address, self.source) && !self.taken.contains(&address);
        if is_usable && self.taken.len() < MAX_ADDRESSES {
            self.taken.push(address);
        } else {
            self.refused += 1;
        }
    }
}
