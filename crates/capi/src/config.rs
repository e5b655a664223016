//! The configuration of an endpoint.

use std::ffi::c_char;
use std::num::NonZeroU16;
use std::time::Duration;

use rexmit_dtls::Encryption;
use rexmit_sctp::recovery::CopyBudget;
use rexmit_sctp::{
    AckCopies, AssociationConfig, ConfigError, EndpointConfig, PathMtuConfig, Scheduling, SharedKey,
};

use crate::address::rexmit_address;
use crate::encryption::Parties;
use crate::message::deadline;
use crate::status::rexmit_status::{self, *};
use crate::status::{Failure, LastError, Outcome, deref, deref_mut, guard, slice};

/// Loss recovery profiles. The command `rexmit profiles` describes each.
#[repr(u32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum rexmit_profile {
    /// For urgent small messages at a low rate; bulk transfers are as fast as without it. The default.
    REXMIT_INTERACTIVE = 0,
    /// REXMIT_INTERACTIVE with redundant copies within a budget, for when latency matters more than bytes.
    REXMIT_INTERACTIVE_REDUNDANT = 1,
    /// RFC 9260 with its suggested values.
    REXMIT_RFC9260 = 2,
    /// RFC 9260 with the loss detection of RACK (RFC 8985).
    REXMIT_RACK = 3,
    /// RFC 9260, robust to reordering and to sudden delays (RR-SCTP).
    REXMIT_RR = 4,
    /// The four mechanisms for thin streams of Petlund 2009, with RTT samples of delayed ACKs.
    REXMIT_THIN = 5,
    /// The SCTP of Linux 6, for comparison.
    REXMIT_LINUX = 6,
    /// Large transfers alone: CUBIC, paced, with RACK.
    REXMIT_BULK = 7,
    /// `REXMIT_INTERACTIVE` for associations that also carry large transfers: it keeps the queue of the path short.
    REXMIT_MIXED = 8,
    /// REXMIT_INTERACTIVE with unacknowledged data bundled with new data: 1.5 times the bytes in the same packets.
    REXMIT_INTERACTIVE_BUNDLING = 9,
    /// REXMIT_INTERACTIVE for two networks: retransmissions take the path whose losses have the least in common.
    REXMIT_INTERACTIVE_MULTIPATH = 10,
}

/// Each profile, with the configuration of associations that use it.
const PROFILES: [(rexmit_profile, fn() -> AssociationConfig); 11] = [
    (rexmit_profile::REXMIT_INTERACTIVE, AssociationConfig::interactive),
    (rexmit_profile::REXMIT_INTERACTIVE_REDUNDANT, AssociationConfig::interactive_redundant),
    (rexmit_profile::REXMIT_RFC9260, AssociationConfig::rfc9260),
    (rexmit_profile::REXMIT_RACK, AssociationConfig::rack),
    (rexmit_profile::REXMIT_RR, AssociationConfig::rr),
    (rexmit_profile::REXMIT_THIN, AssociationConfig::thin),
    (rexmit_profile::REXMIT_LINUX, AssociationConfig::linux),
    (rexmit_profile::REXMIT_BULK, AssociationConfig::bulk),
    (rexmit_profile::REXMIT_MIXED, AssociationConfig::mixed),
    (rexmit_profile::REXMIT_INTERACTIVE_BUNDLING, AssociationConfig::interactive_bundling),
    (rexmit_profile::REXMIT_INTERACTIVE_MULTIPATH, AssociationConfig::interactive_multipath),
];

/// The profile of this number, if there is one.
pub(crate) fn profile(number: u32) -> Result<AssociationConfig, Failure> {
    let found = PROFILES.iter().find(|(profile, _)| *profile as u32 == number);
    let text = || format!("there is no profile {number}: see enum rexmit_profile");
    let (_, constructor) = found.ok_or_else(|| Failure::new(REXMIT_INVALID_ARGUMENT, text()))?;
    Ok(constructor())
}

/// The stream schedulers of RFC 8260 §3: the order in which streams send. Within a stream, messages are sent
/// in the order in which they were accepted.
#[repr(u32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum rexmit_scheduling {
    /// Each stream with data, in turn. The default.
    REXMIT_ROUND_ROBIN = 0,
    /// REXMIT_ROUND_ROBIN with new data of one stream only in each packet.
    REXMIT_ROUND_ROBIN_PER_PACKET = 1,
    /// The order in which messages were accepted.
    REXMIT_FIRST_COME_FIRST_SERVED = 2,
    /// The stream with the highest priority that has data; streams of equal priority in turn.
    REXMIT_PRIORITY = 3,
    /// The same number of bytes for each stream with data.
    REXMIT_FAIR_BANDWIDTH = 4,
    /// Bytes in proportion to the priorities of the streams with data.
    REXMIT_WEIGHTED_FAIR_QUEUEING = 5,
}

/// Each stream scheduler of the C API, with the one of the Rust API.
const SCHEDULERS: [(rexmit_scheduling, Scheduling); 6] = [
    (rexmit_scheduling::REXMIT_ROUND_ROBIN, Scheduling::RoundRobin),
    (rexmit_scheduling::REXMIT_ROUND_ROBIN_PER_PACKET, Scheduling::RoundRobinPerPacket),
    (rexmit_scheduling::REXMIT_FIRST_COME_FIRST_SERVED, Scheduling::FirstComeFirstServed),
    (rexmit_scheduling::REXMIT_PRIORITY, Scheduling::Priority),
    (rexmit_scheduling::REXMIT_FAIR_BANDWIDTH, Scheduling::FairBandwidth),
    (rexmit_scheduling::REXMIT_WEIGHTED_FAIR_QUEUEING, Scheduling::WeightedFairQueueing),
];

/// The stream scheduler of this number, if there is one.
pub(crate) fn scheduling(number: u32) -> Result<Scheduling, Failure> {
    let found = SCHEDULERS.iter().find(|(scheduling, _)| *scheduling as u32 == number);
    let text = || format!("there is no scheduling {number}: see enum rexmit_scheduling");
    found.map(|found| found.1).ok_or_else(|| Failure::new(REXMIT_INVALID_ARGUMENT, text()))
}

/// For which peers the SACKs of thin streams are sent twice.
#[repr(u32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum rexmit_ack_copies {
    /// For none.
    REXMIT_ACK_COPIES_OFF = 0,
    /// For those that ask for it when the association is set up. The default.
    REXMIT_ACK_COPIES_ON_REQUEST = 1,
    /// For all, whatever implementation they run.
    REXMIT_ACK_COPIES_ALWAYS = 2,
}

/// Each choice of the C API, with the one of the Rust API.
const ACK_COPIES: [(rexmit_ack_copies, AckCopies); 3] = [
    (rexmit_ack_copies::REXMIT_ACK_COPIES_OFF, AckCopies::Off),
    (rexmit_ack_copies::REXMIT_ACK_COPIES_ON_REQUEST, AckCopies::OnRequest),
    (rexmit_ack_copies::REXMIT_ACK_COPIES_ALWAYS, AckCopies::Always),
];

/// The choice of this number, if there is one.
fn ack_copies(number: u32) -> Result<AckCopies, Failure> {
    let found = ACK_COPIES.iter().find(|(copies, _)| *copies as u32 == number);
    let text = || format!("there is no choice {number}: see enum rexmit_ack_copies");
    found.map(|found| found.1).ok_or_else(|| Failure::new(REXMIT_INVALID_ARGUMENT, text()))
}

/// The configuration of endpoints and of their associations. Not thread-safe.
#[derive(Debug, Default)]
pub struct rexmit_config {
    endpoint: EndpointConfig,
    pub(crate) association: AssociationConfig,
    pub(crate) parties: Parties,
    pub(crate) error: LastError,
}

impl rexmit_config {
    /// The encryption of the endpoint; `None` if it was not set.
    pub(crate) fn encryption(&self) -> Result<Option<Encryption>, Failure> {
        self.parties.encryption(self.endpoint.max_associations)
    }

    pub(crate) fn build(&self) -> EndpointConfig {
        self.endpoint.clone().association(self.association.clone().into())
    }
}

/// A configuration with the defaults of each setter below. Free it with `rexmit_config_free`.
#[unsafe(no_mangle)]
pub extern "C" fn rexmit_config_new() -> *mut rexmit_config {
    guard(std::ptr::null_mut(), || Box::into_raw(Box::default()))
}

/// Frees a configuration; endpoints made with it keep theirs. NULL is ignored.
///
/// # Safety
/// `config` is NULL, or came from `rexmit_config_new` and was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_config_free(config: *mut rexmit_config) {
    if !config.is_null() {
        // SAFETY: It is a box that was given away.
        guard((), || drop(unsafe { Box::from_raw(config) }));
    }
}

/// Why the last call with this configuration failed, in English; empty if none did. Valid until the next one.
///
/// # Safety
/// `config` came from `rexmit_config_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_config_error(config: *const rexmit_config) -> *const c_char {
    // SAFETY: As this function demands.
    let config = unsafe { deref(config, "the configuration") };
    config.map_or(c"the configuration is NULL".as_ptr(), |config| config.error.as_ptr())
}

/// # Safety
/// `config` is NULL or came from `rexmit_config_new`.
pub(crate) unsafe fn set(
    config: *mut rexmit_config,
    change: impl FnOnce(&mut rexmit_config) -> Outcome,
) -> rexmit_status {
    guard(REXMIT_INTERNAL, || {
        // SAFETY: As the caller promised.
        let Ok(config) = (unsafe { deref_mut(config, "the configuration") }) else {
            return REXMIT_INVALID_ARGUMENT;
        };
        let outcome = change(config);
        config.error.note(outcome)
    })
}

/// The profile, one of `enum rexmit_profile`; also sets `dead_after`, `interleaving`, and whether endpoints with a socket
/// (`rexmit_endpoint_bind`) offer ECN; REXMIT_MIXED sets
/// scheduling by priority, and REXMIT_MIXED and REXMIT_BULK raise buffers to at least 4 MiB, and packets to up to 1500
/// bytes where the path allows them. Default REXMIT_INTERACTIVE. It replaces what `rexmit_config_set_recovery`,
/// `rexmit_config_set_deadline` and `rexmit_config_set_copy_budget` have set: call these after it.
///
/// # Safety
/// `config` came from `rexmit_config_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_config_set_profile(
    config: *mut rexmit_config,
    number: u32,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe {
        set(config, |config| {
            let chosen = profile(number)?;
            config.association.failure.dead_after = chosen.failure.dead_after;
            config.association.extensions.interleaving = chosen.extensions.interleaving;
            config.association.extensions.ecn = chosen.extensions.ecn;
            config.association.recovery = chosen.recovery;
            if chosen.streams.scheduling != Scheduling::default() {
                config.association.streams.scheduling = chosen.streams.scheduling;
            }
            if chosen.path_mtu.is_some() {
                config.association.path_mtu = chosen.path_mtu;
            }
            let association = &mut config.association;
            association.buffers.receive_bytes =
                association.buffers.receive_bytes.max(chosen.buffers.receive_bytes);
            association.buffers.send_bytes =
                association.buffers.send_bytes.max(chosen.buffers.send_bytes);
            Ok(())
        })
    }
}

/// # Safety
/// `config` is NULL or came from `rexmit_config_new`.
pub(crate) unsafe fn assign(
    config: *mut rexmit_config,
    change: impl FnOnce(&mut rexmit_config),
) -> rexmit_status {
    // SAFETY: As the caller promised.
    unsafe {
        set(config, |config| {
            change(config);
            Ok(())
        })
    }
}

/// The local SCTP port. Default 5000.
///
/// # Safety
/// `config` came from `rexmit_config_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_config_set_port(
    config: *mut rexmit_config,
    port: u16,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe { assign(config, |config| config.endpoint.port = port) }
}

/// Whether associations initiated by peers are accepted. Default false.
///
/// # Safety
/// `config` came from `rexmit_config_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_config_set_accept(
    config: *mut rexmit_config,
    accept: bool,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe { assign(config, |config| config.endpoint.accept = accept) }
}

/// The stream scheduler, one of `enum rexmit_scheduling`. Default REXMIT_ROUND_ROBIN.
///
/// # Safety
/// `config` came from `rexmit_config_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_config_set_scheduling(
    config: *mut rexmit_config,
    number: u32,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe {
        set(config, |config| {
            config.association.streams.scheduling = scheduling(number)?;
            Ok(())
        })
    }
}

/// The deadline of messages that have none of their own: the milliseconds within which each should arrive, and the
/// probability, above 0 and below 1. With 0 milliseconds, the default, they have no deadline.
/// `rexmit_config_set_profile` resets it.
///
/// # Safety
/// `config` came from `rexmit_config_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_config_set_deadline(
    config: *mut rexmit_config,
    within: u32,
    probability: f64,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe {
        set(config, |config| {
            let deadline = (within > 0).then(|| deadline(within, probability)).transpose()?;
            config.association.recovery.thin.deadline = deadline;
            Ok(())
        })
    }
}

/// The budget for redundant copies: packets with copies only, in percent of packets with new data, and copied bytes, in
/// percent of new ones; 0 is no limit. Default: that of the profile (none for REXMIT_INTERACTIVE).
/// `rexmit_config_set_profile` resets it.
///
/// # Safety
/// `config` came from `rexmit_config_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_config_set_copy_budget(
    config: *mut rexmit_config,
    packets_percent: u16,
    bytes_percent: u16,
) -> rexmit_status {
    let budget =
        CopyBudget::percent(NonZeroU16::new(packets_percent), NonZeroU16::new(bytes_percent));
    // SAFETY: As this function demands.
    unsafe { assign(config, |config| config.association.recovery.thin.copy_budget = budget) }
}

/// Whether to interleave messages of different streams with peers that can (I-DATA, RFC 8260), so that a large one delays
/// those of other streams by one chunk. Default true with the interactive profiles, otherwise false.
///
/// # Safety
/// `config` came from `rexmit_config_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_config_set_interleaving(
    config: *mut rexmit_config,
    interleaving: bool,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe { assign(config, |config| config.association.extensions.interleaving = interleaving) }
}

/// The most associations at one time. Default 200,000.
///
/// # Safety
/// `config` came from `rexmit_config_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_config_set_max_associations(
    config: *mut rexmit_config,
    limit: usize,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe { assign(config, |config| config.endpoint.max_associations = limit) }
}

/// The most bytes that all associations hold of received data until the application reads it, with 256 more for each chunk and
/// message. At the limit an association holds at most 16 KiB, or what it had; one without a message to read gets one packet at a
/// time beyond that, up to its own receive buffer. Default 256 MiB.
///
/// # Safety
/// `config` came from `rexmit_config_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_config_set_max_receive_bytes(
    config: *mut rexmit_config,
    bytes: usize,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe { assign(config, |config| config.endpoint.max_receive_bytes = bytes) }
}

/// The number of outgoing streams to request. Default 16.
///
/// # Safety
/// `config` came from `rexmit_config_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_config_set_outbound_streams(
    config: *mut rexmit_config,
    streams: u16,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe { assign(config, |config| config.association.streams.outbound = streams) }
}

/// Incoming streams to accept. Default 2048.
///
/// # Safety
/// `config` came from `rexmit_config_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_config_set_max_inbound_streams(
    config: *mut rexmit_config,
    streams: u16,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe { assign(config, |config| config.association.streams.max_inbound = streams) }
}

/// The largest message in bytes, in and out. Default 262,144.
///
/// # Safety
/// `config` came from `rexmit_config_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_config_set_max_message_bytes(
    config: *mut rexmit_config,
    bytes: usize,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe { assign(config, |config| config.association.messages.max_bytes = bytes) }
}

/// The largest SCTP packet in bytes. Default 1232.
///
/// # Safety
/// `config` came from `rexmit_config_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_config_set_max_packet_bytes(
    config: *mut rexmit_config,
    bytes: usize,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe { assign(config, |config| config.association.max_packet_bytes = bytes) }
}

/// The largest path MTU to search for, in bytes of an IP packet; 0, the default, searches for none (RFC 8899). Packets of
/// the size that was found bundle several chunks; none of these is larger than `max_packet_bytes` allows.
///
/// # Safety
/// `config` came from `rexmit_config_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_config_set_path_mtu(
    config: *mut rexmit_config,
    max_mtu: u16,
) -> rexmit_status {
    let search = (max_mtu > 0).then(|| PathMtuConfig::default().max_mtu(max_mtu));
    // SAFETY: As this function demands.
    unsafe { assign(config, |config| config.association.path_mtu = search) }
}

/// Second copies of the SACKs of thin streams, so that the loss of one causes no spurious retransmission: for which peers
/// this side sends them, one of `enum rexmit_ack_copies`, whether it asks its peers for them, and the time between a SACK
/// and its copy in microseconds, 100 to 100,000. Default REXMIT_ACK_COPIES_ON_REQUEST, false and 1000.
///
/// # Safety
/// `config` came from `rexmit_config_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_config_set_ack_copies(
    config: *mut rexmit_config,
    send: u32,
    request: bool,
    delay_us: u32,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe {
        set(config, |config| {
            let copies = &mut config.association.sack.ack_copies;
            copies.send = ack_copies(send)?;
            copies.request = request;
            copies.delay = Duration::from_micros(delay_us.into());
            Ok(())
        })
    }
}

/// The send buffer: the most bytes accepted and not yet acknowledged. Default 1,048,576.
///
/// # Safety
/// `config` came from `rexmit_config_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_config_set_send_buffer_bytes(
    config: *mut rexmit_config,
    bytes: usize,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe { assign(config, |config| config.association.buffers.send_bytes = bytes) }
}

/// The receive buffer in bytes. Default 1,048,576.
///
/// # Safety
/// `config` came from `rexmit_config_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_config_set_receive_buffer_bytes(
    config: *mut rexmit_config,
    bytes: usize,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe { assign(config, |config| config.association.buffers.receive_bytes = bytes) }
}

/// The milliseconds of silence, while data, or the end of the association, is sent to it, after which a peer is unreachable; 0 leaves it to
/// the error counters of RFC 9260 §8.1 (minutes). Default 15,000 with the interactive profiles, else 0.
///
/// # Safety
/// `config` came from `rexmit_config_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_config_set_dead_after(
    config: *mut rexmit_config,
    milliseconds: u32,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe {
        assign(config, |config| {
            config.association.failure.dead_after =
                (milliseconds > 0).then(|| Duration::from_millis(milliseconds.into()));
        })
    }
}

/// HB.interval in milliseconds; 0 sends no HEARTBEAT. Default 30,000.
///
/// # Safety
/// `config` came from `rexmit_config_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_config_set_heartbeat_interval(
    config: *mut rexmit_config,
    milliseconds: u32,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe {
        assign(config, |config| {
            config.association.failure.heartbeat_interval =
                (milliseconds > 0).then(|| Duration::from_millis(milliseconds.into()));
        })
    }
}

/// Max.Init.Retransmits. Default 8.
///
/// # Safety
/// `config` came from `rexmit_config_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_config_set_max_init_retransmits(
    config: *mut rexmit_config,
    count: u32,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe { assign(config, |config| config.association.handshake.max_init_retransmits = count) }
}

/// Offer partial reliability (RFC 3758). Default true.
///
/// # Safety
/// `config` came from `rexmit_config_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_config_set_partial_reliability(
    config: *mut rexmit_config,
    offer: bool,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe { assign(config, |config| config.association.extensions.partial_reliability = offer) }
}

/// Offer stream reset (RFC 6525). Default true.
///
/// # Safety
/// `config` came from `rexmit_config_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_config_set_stream_reset(
    config: *mut rexmit_config,
    offer: bool,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe { assign(config, |config| config.association.extensions.stream_reset = offer) }
}

/// Offer dynamic addresses (RFC 5061). Default true.
///
/// # Safety
/// `config` came from `rexmit_config_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_config_set_dynamic_addresses(
    config: *mut rexmit_config,
    offer: bool,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe { assign(config, |config| config.association.extensions.dynamic_addresses = offer) }
}

/// Report each message whose last chunk was sent (REXMIT_EVENT_MESSAGE_SENT). Default false.
///
/// # Safety
/// `config` came from `rexmit_config_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_config_set_report_sent(
    config: *mut rexmit_config,
    report: bool,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe { assign(config, |config| config.association.messages.report_sent = report) }
}

/// Report each message that was acknowledged (REXMIT_EVENT_MESSAGE_ACKNOWLEDGED). Default false.
///
/// # Safety
/// `config` came from `rexmit_config_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_config_set_report_acknowledged(
    config: *mut rexmit_config,
    report: bool,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe { assign(config, |config| config.association.messages.report_acknowledged = report) }
}

/// Adds a local address, for an endpoint with several; its port is ignored.
///
/// # Safety
/// `config` came from `rexmit_config_new`; `address` points to an address.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_config_add_address(
    config: *mut rexmit_config,
    address: *const rexmit_address,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe {
        set(config, |config| {
            let address = deref(address, "the address")?.to_socket()?;
            config.endpoint.addresses.push(address.ip());
            Ok(())
        })
    }
}

/// Adds a shared key for authenticated chunks (RFC 4895). The first one is used at the beginning.
///
/// # Safety
/// `config` came from `rexmit_config_new`; `key` points to `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_config_add_shared_key(
    config: *mut rexmit_config,
    id: u16,
    key: *const u8,
    length: usize,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe {
        set(config, |config| {
            let key = SharedKey::new(id, slice(key, length, "the key")?);
            config.association.authentication.keys.push(key);
            Ok(())
        })
    }
}

/// Whether an endpoint would accept this configuration; `rexmit_config_error` says why not.
///
/// # Safety
/// `config` came from `rexmit_config_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_config_validate(config: *mut rexmit_config) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe {
        set(config, |config| {
            config.encryption()?;
            // Drivers of other languages draw one.
            if config.endpoint.port == 0 {
                return Err(ConfigError::PortZero.into());
            }
            Ok(config.build().validate()?)
        })
    }
}
