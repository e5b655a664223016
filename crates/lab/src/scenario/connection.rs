//! Creates the endpoints of a flow from its configuration.

use std::net::IpAddr;
use std::sync::{Arc, LazyLock};

use rexmit_core::Seed;
use rexmit_sctp::recovery::{LossDetection, PROFILES, RecoveryConfig, TCP_PROFILES};
use rexmit_sctp::wire::{COMMON_HEADER_LEN, DATA_HEADER_LEN};
use rexmit_sctp::{AssociationConfig, Endpoint as Sctp, Scheduling};
use rexmit_tcp::{ConnectionConfig, Endpoint as Tcp};

use super::overrides::Overrides;
use super::problem::{Problem, Problems};
use super::spec::{
    BulkFlow, Encapsulation, Over, ReceiverSpec, Scenario, ThinFlow, TransportKind, WebFlow,
};
use super::traffic::list;
use super::words::{Size, Words};

/// The most unacknowledged bytes of a transfer that shares a connection with messages.
pub(super) const TRANSFER_BUFFER_BYTES: usize = 4 << 20;
/// The port of every receiver.
pub(super) const PORT: u16 = 7000;
/// Bytes of the IP header of each packet.
const IP_BYTES: usize = 20;
/// Bytes of the UDP header of each encapsulated packet.
const UDP_BYTES: usize = 8;
/// Bytes of IP and TCP headers, without options.
const IP_AND_TCP_BYTES: usize = 40;

/// The connection settings of a flow.
#[derive(Clone, Copy)]
pub(super) struct Connection<'a> {
    pub(super) transport: TransportKind,
    pub(super) encapsulation: Encapsulation,
    pub(super) profile: Option<&'a str>,
    pub(super) recovery: &'a Overrides,
    pub(super) mtu: Option<&'a Words<Size>>,
    pub(super) send_buffer: Option<&'a Words<Size>>,
    pub(super) nagle: bool,
    /// Whether another stream of the association carries a transfer.
    pub(super) has_transfer: bool,
    pub(super) receiver: &'a ReceiverSpec,
}

impl ThinFlow {
    /// The networks that the flow uses.
    pub(super) fn over(&self, scenario: &Scenario) -> Over {
        scenario.over(self.transport, self.over)
    }

    pub(super) fn connection(&self) -> Connection<'_> {
        Connection {
            transport: self.transport,
            encapsulation: self.encapsulation,
            profile: self.profile.as_deref(),
            recovery: &self.recovery,
            mtu: self.mtu.as_ref(),
            send_buffer: self.send_buffer.as_ref(),
            nagle: self.nagle,
            has_transfer: self.transfer,
            receiver: &self.receiver,
        }
    }
}

impl BulkFlow {
    /// The networks that the flow uses.
    pub(super) fn over(&self, scenario: &Scenario) -> Over {
        scenario.over(self.transport, self.over)
    }

    pub(super) fn connection(&self) -> Connection<'_> {
        Connection {
            transport: self.transport,
            encapsulation: Encapsulation::None,
            profile: self.profile.as_deref(),
            recovery: &self.recovery,
            mtu: self.mtu.as_ref(),
            send_buffer: self.send_buffer.as_ref(),
            nagle: false,
            has_transfer: false,
            receiver: &self.receiver,
        }
    }
}

impl WebFlow {
    pub(super) fn connection(&self) -> Connection<'_> {
        static RECEIVER: LazyLock<ReceiverSpec> = LazyLock::new(ReceiverSpec::default);
        Connection {
            transport: TransportKind::Tcp,
            encapsulation: Encapsulation::None,
            profile: self.profile.as_deref(),
            recovery: &self.recovery,
            mtu: None,
            send_buffer: None,
            nagle: false,
            has_transfer: false,
            receiver: &RECEIVER,
        }
    }
}

/// The configurations of both ends.
pub(super) struct Ends<C> {
    pub(super) sender: C,
    pub(super) receiver: C,
}

impl Connection<'_> {
    /// The payload of a full SCTP packet; `None` for the default.
    pub(super) fn payload_bytes(&self) -> Option<usize> {
        let Size(mtu) = **self.mtu?;
        Some(mtu.saturating_sub(IP_BYTES + COMMON_HEADER_LEN + DATA_HEADER_LEN) & !3)
    }

    /// The recovery configuration of the sender.
    fn recovery(&self, problems: &mut Problems) -> RecoveryConfig {
        let profile = profile(self.transport, self.profile, "profile", problems);
        changed(profile, self.recovery, "recovery", problems)
    }

    /// The recovery configuration of the receiver.
    fn receiver_recovery(&self, problems: &mut Problems) -> RecoveryConfig {
        let profile = match self.receiver.profile.as_deref() {
            Some(name) => profile(self.transport, Some(name), "receiver.profile", problems),
            None => profile(self.transport, self.profile, "profile", problems),
        };
        changed(profile, &self.receiver.recovery, "receiver.recovery", problems)
    }

    pub(super) fn sctp(&self, problems: &mut Problems) -> Ends<AssociationConfig> {
        let mut both =
            if self.has_transfer { self.with_transfer() } else { AssociationConfig::rfc9260() };
        if let Some(profile) = self.profile.and_then(AssociationConfig::profile) {
            both.path_mtu = profile.path_mtu;
            both.extensions.ecn = profile.extensions.ecn;
        }
        if let Some(Size(mtu)) = self.mtu.map(|mtu| **mtu) {
            let is_in_udp = self.encapsulation == Encapsulation::Udp;
            let headers = if is_in_udp { IP_BYTES + UDP_BYTES } else { IP_BYTES };
            both.max_packet_bytes = mtu.saturating_sub(headers);
            both.path_mtu = None;
        }
        let mut sender = both.clone().recovery(self.recovery(problems));
        set(&mut sender.buffers.send_bytes, self.send_buffer);
        let recovery = self.receiver_recovery(problems);
        let mut receiver = both.recovery(recovery);
        set(&mut receiver.buffers.receive_bytes, self.receiver.receive_buffer.as_ref());
        receiver.messages.max_bytes =
            receiver.messages.max_bytes.min(receiver.buffers.receive_bytes);
        if let Some(delay) = &self.receiver.ack_delay {
            receiver.sack.delay = ***delay;
        }
        if let Some(delay) = &self.receiver.ack_copies {
            sender.sack.ack_copies.request = true;
            receiver.sack.ack_copies.delay = ***delay;
        }
        problems.check_ends(sender.validate(), receiver.validate());
        Ends { sender, receiver }
    }

    /// The settings of an association with a transfer on a separate stream: those of the profile, interleaving
    /// included, with scheduling by priority and buffers for both.
    fn with_transfer(&self) -> AssociationConfig {
        let profile = self.profile.and_then(AssociationConfig::profile);
        profile
            .unwrap_or_else(AssociationConfig::rfc9260)
            .scheduling(Scheduling::Priority)
            .receive_buffer_bytes(2 * TRANSFER_BUFFER_BYTES)
            .send_buffer_bytes(2 * TRANSFER_BUFFER_BYTES)
            .report_acknowledged(true)
    }

    pub(super) fn tcp(&self, problems: &mut Problems) -> Ends<ConnectionConfig> {
        if self.receiver.ack_copies.is_some() {
            problems.add("receiver.ack_copies", "only the SCTP of rexmit sends copies of SACKs");
        }
        let mut both = ConnectionConfig::sack().nagle(self.nagle);
        if let Some(Size(mtu)) = self.mtu.map(|mtu| **mtu) {
            both.mss = u16::try_from(mtu.saturating_sub(IP_AND_TCP_BYTES)).unwrap_or(u16::MAX);
        }
        let mut sender = both.clone().recovery(self.recovery(problems));
        sender.sack = sender.recovery.loss_detection != LossDetection::DuplicateAcks;
        set(&mut sender.send_buffer_bytes, self.send_buffer);
        let recovery = self.receiver_recovery(problems);
        let mut receiver = both.recovery(recovery);
        set(&mut receiver.receive_buffer_bytes, self.receiver.receive_buffer.as_ref());
        if let Some(delay) = &self.receiver.ack_delay {
            receiver.ack_delay = ***delay;
        }
        problems.check_ends(sender.validate(), receiver.validate());
        Ends { sender, receiver }
    }
}

fn set(bytes: &mut usize, size: Option<&Words<Size>>) {
    if let Some(Size(size)) = size.map(|size| **size) {
        *bytes = size;
    }
}

/// `profile` with the overrides of `field`.
fn changed(
    profile: RecoveryConfig,
    overrides: &Overrides,
    field: &str,
    problems: &mut Problems,
) -> RecoveryConfig {
    overrides.apply(&profile).unwrap_or_else(|what| {
        problems.add(field, what);
        profile
    })
}

/// The SCTP or TCP profile called `name`, or the default one.
fn profile(
    transport: TransportKind,
    name: Option<&str>,
    field: &str,
    problems: &mut Problems,
) -> RecoveryConfig {
    type Parts = (
        &'static [(&'static str, &'static str)],
        fn(&str) -> Option<RecoveryConfig>,
        fn() -> RecoveryConfig,
    );
    let (known, find, standard): Parts = match transport {
        TransportKind::Tcp => (TCP_PROFILES, RecoveryConfig::tcp_profile, RecoveryConfig::tcp_sack),
        _ => (PROFILES, RecoveryConfig::profile, RecoveryConfig::rfc9260),
    };
    let Some(name) = name else { return standard() };
    find(name).unwrap_or_else(|| {
        let known = || known.iter().map(|(name, _)| *name);
        let likeness = |other: &&str| strsim::jaro(name, other);
        let nearest =
            known().max_by(|a, b| likeness(a).total_cmp(&likeness(b))).unwrap_or_default();
        let (what, all) = (format!("there is no profile `{name}`"), list(known()));
        problems.add(field, format!("{what}; did you mean `{nearest}`? Choose {all}"));
        standard()
    })
}

/// The profiles of both protocols, with a line on each.
pub fn profiles() -> impl Iterator<Item = (&'static str, &'static str)> {
    PROFILES.iter().chain(TCP_PROFILES).copied()
}

/// An SCTP endpoint with this configuration and, if there are several, these addresses.
pub(super) fn sctp(
    config: AssociationConfig,
    addresses: Vec<IpAddr>,
    seed: &Seed,
) -> Result<Sctp, Problem> {
    let config = rexmit_sctp::EndpointConfig::default()
        .port(PORT)
        .accept(true)
        .addresses(addresses)
        .association(Arc::new(config));
    Sctp::new(config, seed).map_err(|error| Problem::of("", error))
}

/// A listening TCP endpoint with this configuration.
pub(super) fn tcp(config: ConnectionConfig, seed: &Seed) -> Result<Tcp, Problem> {
    let config = rexmit_tcp::EndpointConfig::default().connection(Arc::new(config));
    let mut endpoint = Tcp::new(config, seed).map_err(|error| Problem::of("", error))?;
    endpoint.listen(PORT, None).map_err(|error| Problem::of("", error))?;
    Ok(endpoint)
}
