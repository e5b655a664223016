//! SCTP ports: each has an endpoint, and the sockets that are bound to it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use libc::{EADDRINUSE, EINVAL, ENOBUFS};
use rexmit_core::{Ecn, Instant, Machine, Route, Seed};
use rexmit_sctp::{
    AssociationConfig, Endpoint, EndpointConfig, MAX_HOST_ADDRESSES, SourceAddresses,
};

use super::host::HostAddresses;
use super::settings::{LOOPBACK_MTU, Settings, Versions};
use super::{Failure, destination_port, wire};

/// The ports for sockets that the program has not bound (Linux's `ip_local_port_range`).
const EPHEMERAL: std::ops::RangeInclusive<u16> = 32_768..=60_999;

/// Bytes of SCTP's common header (RFC 9260 §3.1).
const COMMON_HEADER_BYTES: usize = 12;

/// See the module.
#[derive(Debug)]
pub(super) struct Port {
    pub(super) endpoint: Endpoint,
    /// The sockets that are bound to it, accepted ones included.
    pub(super) sockets: BTreeSet<u64>,
    /// The socket that accepts associations of peers.
    pub(super) listener: Option<u64>,
    /// The addresses to which the socket is bound.
    pub(super) local: Local,
    accepted: Accepted,
    /// The deadline entered in [`Ports::deadlines`].
    deadline: Option<Instant>,
}

/// The addresses to which a socket is bound.
#[derive(Clone, Debug)]
pub(super) enum Local {
    /// All of the host of these versions of IP, as they are when an association begins.
    Wildcard(Versions),
    /// The addresses that the program named, at least one.
    Addresses(Vec<IpAddr>),
}

impl Local {
    fn new(addresses: &[IpAddr], versions: Versions) -> Self {
        match addresses {
            [] => Self::Wildcard(versions),
            addresses => Self::Addresses(addresses.to_vec()),
        }
    }

    /// The addresses that the program named; none for a wildcard.
    pub(super) fn chosen(&self) -> &[IpAddr] {
        match self {
            Self::Wildcard(_) => &[],
            Self::Addresses(addresses) => addresses,
        }
    }

    /// The addresses at which the socket receives.
    pub(super) fn all(&self, host: &mut HostAddresses, now: Instant) -> Vec<IpAddr> {
        match self {
            Self::Addresses(addresses) => addresses.clone(),
            Self::Wildcard(versions) => {
                host.get(now).iter().filter(|ip| versions.include(**ip)).copied().collect()
            }
        }
    }

    const fn source_addresses(&self) -> SourceAddresses {
        match self {
            Self::Wildcard(_) => SourceAddresses::Routed,
            Self::Addresses(_) => SourceAddresses::Paired,
        }
    }
}

/// The configurations of associations that peers set up.
#[derive(Debug)]
struct Accepted {
    of_others: Arc<AssociationConfig>,
    /// Of those of this host with itself, whose packets are larger.
    of_own_host: Arc<AssociationConfig>,
    /// Whether the endpoint has the second one.
    is_own_host: bool,
}

impl Accepted {
    fn new(settings: &Settings) -> Self {
        Self {
            of_others: settings.association(0),
            of_own_host: settings.association(LOOPBACK_MTU),
            is_own_host: false,
        }
    }
}

/// All ports in use.
#[derive(Debug, Default)]
pub(super) struct Ports {
    all: BTreeMap<u16, Port>,
    deadlines: BTreeSet<(Instant, u16)>,
    /// Ports whose endpoints may have events or packets.
    touched: BTreeSet<u16>,
    host: HostAddresses,
}

fn new_endpoint(port: u16, settings: &Settings, local: &Local) -> Result<Endpoint, Failure> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|_| Failure(ENOBUFS))?;
    let mut config = EndpointConfig::default()
        .port(port)
        .addresses(local.chosen().to_vec())
        .source_addresses(local.source_addresses())
        .association(settings.association(0));
    if settings.shares_window {
        config.max_receive_bytes = settings.config.buffers.receive_bytes;
    }
    Endpoint::new(config, &Seed::from_bytes(seed)).map_err(|_| Failure(EINVAL))
}

impl Port {
    /// Whether peers may begin associations at this address.
    fn takes(&self, local: IpAddr) -> bool {
        match &self.local {
            Local::Wildcard(versions) => versions.include(local),
            Local::Addresses(addresses) => local.is_unspecified() || addresses.contains(&local),
        }
    }

    /// Applies these options and the addresses to associations that begin from now on.
    fn configure(&mut self, number: u16, settings: &Settings) -> Result<(), Failure> {
        self.accepted = Accepted::new(settings);
        let endpoint = &mut self.endpoint;
        if endpoint.association_count() == 0 {
            *endpoint = new_endpoint(number, settings, &self.local)?;
            return Ok(());
        }
        let (chosen, source) = (self.local.chosen().to_vec(), self.local.source_addresses());
        let is_applied = endpoint.set_addresses(chosen, source).is_ok()
            && endpoint.set_association_config(Arc::clone(&self.accepted.of_others)).is_ok();
        if is_applied { Ok(()) } else { Err(Failure(EINVAL)) }
    }

    /// Called before an association begins, here or by a packet.
    fn list_addresses(&mut self, host: &mut HostAddresses, now: Instant) {
        if let Local::Wildcard(_) = self.local {
            let mut listed = self.local.all(host, now);
            listed.truncate(MAX_HOST_ADDRESSES);
            let _ = self.endpoint.set_addresses(listed, SourceAddresses::Routed);
        }
    }

    /// Configures associations that are accepted now.
    fn accept_as(&mut self, is_own_host: bool) {
        let accepted = &mut self.accepted;
        if accepted.is_own_host != is_own_host {
            let config = if is_own_host { &accepted.of_own_host } else { &accepted.of_others };
            if self.endpoint.set_association_config(Arc::clone(config)).is_ok() {
                accepted.is_own_host = is_own_host;
            }
        }
    }
}

impl Ports {
    pub(super) fn get(&self, port: &u16) -> Option<&Port> {
        self.all.get(port)
    }

    /// Returns the port for use, and marks its endpoint as possibly having events or packets.
    pub(super) fn touch(&mut self, port: u16) -> Option<&mut Port> {
        let found = self.all.get_mut(&port)?;
        self.touched.insert(port);
        Some(found)
    }

    /// As [`Self::touch`], for an association that begins.
    pub(super) fn begin(&mut self, port: u16, now: Instant) -> Option<&mut Port> {
        let found = self.all.get_mut(&port)?;
        self.touched.insert(port);
        found.list_addresses(&mut self.host, now);
        Some(found)
    }

    /// Handles a packet. Returns whether a port is there for it. Those of associations that exist are not compared with the
    /// addresses: the association may be that of a socket that was bound to others before.
    pub(super) fn receive(
        &mut self,
        now: Instant,
        (route, ecn): (Route, Ecn),
        packet: &[u8],
    ) -> bool {
        const INIT: u8 = 1;
        const COOKIE_ECHO: u8 = 10;
        let Some(number) = destination_port(packet) else { return true };
        let Some(port) = self.all.get_mut(&number) else { return false };
        let first = packet.get(COMMON_HEADER_BYTES);
        if first == Some(&INIT) && !port.takes(route.local.ip()) {
            return false;
        }
        self.touched.insert(number);
        if let Some(&first @ (INIT | COOKIE_ECHO)) = first {
            if first == INIT {
                port.list_addresses(&mut self.host, now);
            }
            let remote = route.remote.ip();
            // The kernel drops packets from outside that claim to come from an address of this host.
            let is_own_host = route.local.ip() == remote && wire::leads_to_own_host(remote);
            port.accept_as(is_own_host);
        }
        port.endpoint.handle_input_with_ecn(now, route, ecn, packet);
        true
    }

    /// Returns the port without marking it.
    pub(super) fn get_mut(&mut self, port: u16) -> Option<&mut Port> {
        self.all.get_mut(&port)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Binds a socket to `port`; 0 chooses a free one.
    pub(super) fn bind(
        &mut self,
        port: u16,
        addresses: &[IpAddr],
        socket: u64,
        settings: &Settings,
    ) -> Result<u16, Failure> {
        let port = if port == 0 { self.free_port()? } else { port };
        let local = Local::new(addresses, settings.versions);
        match self.all.get_mut(&port) {
            Some(taken) if !taken.sockets.is_empty() => return Err(Failure(EADDRINUSE)),
            // Associations of closed sockets still end on it.
            Some(ending) => {
                ending.local = local;
                ending.configure(port, settings)?;
                ending.sockets.insert(socket);
            }
            None => {
                let made = Port {
                    endpoint: new_endpoint(port, settings, &local)?,
                    sockets: BTreeSet::from([socket]),
                    listener: None,
                    local,
                    accepted: Accepted::new(settings),
                    deadline: None,
                };
                self.all.insert(port, made);
            }
        }
        Ok(port)
    }

    /// Applies the options set since the port was bound.
    pub(super) fn renew(&mut self, port: u16, settings: &Settings) -> Result<(), Failure> {
        self.all.get_mut(&port).ok_or(Failure(EINVAL))?.configure(port, settings)
    }

    fn free_port(&self) -> Result<u16, Failure> {
        let mut bytes = [0; 2];
        getrandom::fill(&mut bytes).map_err(|_| Failure(ENOBUFS))?;
        let count = EPHEMERAL.end() - EPHEMERAL.start() + 1;
        let first = u16::from_ne_bytes(bytes) % count;
        let mut candidates = (0..count).map(|more| {
            // Both are below 28,232, so that the sum fits.
            EPHEMERAL.start() + (first + more) % count
        });
        candidates.find(|port| !self.all.contains_key(port)).ok_or(Failure(EADDRINUSE))
    }

    /// Removes a socket; the port is free once its associations have ended, too.
    pub(super) fn release(&mut self, port: u16, socket: u64) {
        if let Some(found) = self.touch(port) {
            found.sockets.remove(&socket);
            if found.listener == Some(socket) {
                found.listener = None;
                found.endpoint.set_accept(false);
            }
        }
    }

    /// A port whose endpoint may have events or packets.
    pub(super) fn take_touched(&mut self) -> Option<u16> {
        self.touched.pop_first()
    }

    /// Marks the port again, for the next round.
    pub(super) fn touch_again(&mut self, port: u16) {
        self.touched.insert(port);
    }

    /// Whether a port has to be processed without waiting.
    pub(super) fn has_touched(&self) -> bool {
        !self.touched.is_empty()
    }

    /// Updates the port's deadline in the table, or removes the port if it is unused.
    pub(super) fn settle(&mut self, number: u16) {
        let Some(port) = self.all.get_mut(&number) else { return };
        let is_over = port.sockets.is_empty() && port.endpoint.association_count() == 0;
        let deadline = port.endpoint.poll_timeout().filter(|_| !is_over);
        if deadline != port.deadline {
            if let Some(before) = port.deadline {
                self.deadlines.remove(&(before, number));
            }
            if let Some(at) = deadline {
                self.deadlines.insert((at, number));
            }
            port.deadline = deadline;
        }
        if is_over {
            self.all.remove(&number);
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// Handles the timers that are due.
    pub(super) fn expire(&mut self, now: Instant) {
        while let Some(&(at, number)) = self.deadlines.first() {
            if at > now {
                return;
            }
            self.deadlines.remove(&(at, number));
            if let Some(port) = self.touch(number) {
                port.deadline = None;
                port.endpoint.handle_timeout(now);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rexmit_sctp::wire::{Chunk, Header, Init, Packet, PacketWriter, Param};

    use super::*;

    const NOW: Instant = Instant::from_millis(1);

    fn settings(streams: u16) -> Settings {
        let mut settings = Settings::new(Versions::V4, AssociationConfig::default(), 9899, 0);
        settings.config.streams.outbound = streams;
        settings
    }

    fn route(local: [u8; 4]) -> Route {
        Route { local: (local, 9899).into(), remote: ([192, 0, 2, 9], 9899).into() }
    }

    fn init() -> Vec<u8> {
        let mut packet = Vec::new();
        let header = Header { source_port: 7, destination_port: 5000, verification_tag: 0 };
        let init = Init {
            initiate_tag: 7,
            a_rwnd: 65_536,
            outbound_streams: 100,
            inbound_streams: 100,
            initial_tsn: 1,
            params: rexmit_sctp::wire::Params::new(&[]),
        };
        let mut writer = PacketWriter::new(&mut packet, 1200, header);
        writer.init(&init, |_| ());
        writer.finish();
        packet
    }

    /// The outgoing streams and the number of addresses of the INIT ACK that answers an INIT; `None` without an answer.
    fn answer(ports: &mut Ports, local: [u8; 4]) -> Option<(u16, usize)> {
        ports.receive(NOW, (route(local), Ecn::NotEct), &init());
        let endpoint = &mut ports.touch(5000)?.endpoint;
        let mut bytes = Vec::new();
        while endpoint.poll_transmit(NOW, &mut bytes).is_some() {
            let packet = Packet::parse(&bytes).ok()?;
            let first = packet.chunks().next()?.ok()?;
            if let Ok(Chunk::InitAck(ack)) = first.decode() {
                let is_address =
                    |param: &Param<'_>| matches!(param, Param::Ipv4(_) | Param::Ipv6(_));
                let params = ack.params().flatten().filter_map(|param| param.decode().ok());
                return Some((ack.outbound_streams, params.filter(is_address).count()));
            }
        }
        None
    }

    /// An association of the previous socket still ends on the port.
    #[test]
    fn a_port_that_is_bound_again_follows_its_new_socket() {
        let (first, second) = ([192, 0, 2, 1], [192, 0, 2, 2]);
        let mut ports = Ports::default();
        ports.bind(5000, &[first.into(), second.into()], 1, &settings(10)).expect("it is free");
        let endpoint = &mut ports.begin(5000, NOW).expect("it is bound").endpoint;
        endpoint.set_accept(true);
        assert_eq!(answer(&mut ports, first), Some((10, 2)));
        let endpoint = &mut ports.touch(5000).expect("it is bound").endpoint;
        let config = settings(10).association(0);
        endpoint.connect_over(NOW, &[route(first)], 99, config).expect("an association");
        ports.release(5000, 1);
        ports.settle(5000);
        ports.bind(5000, &[second.into()], 2, &settings(77)).expect("its socket is closed");
        let endpoint = &mut ports.touch(5000).expect("it is bound").endpoint;
        assert_eq!(endpoint.association_count(), 1, "it still ends");
        endpoint.set_accept(true);
        assert_eq!(answer(&mut ports, second), Some((77, 0)));
        assert_eq!(answer(&mut ports, first), None, "the new socket has another address");
    }
}
