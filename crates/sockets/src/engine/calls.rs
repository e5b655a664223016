//! The implementation of each call of the protocol.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;

use libc::{
    EACCES, EADDRINUSE, EADDRNOTAVAIL, EAFNOSUPPORT, EALREADY, EBUSY, ECONNREFUSED, EINVAL,
    EISCONN, ENETUNREACH, ENFILE, ENOBUFS, ENOTCONN, EOPNOTSUPP, EPIPE, ESOCKTNOSUPPORT,
};
use rexmit_core::Route;
use rexmit_sctp::{AssociationConfig, ConnectError};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::thread::{CapabilitySet, capabilities};

use super::pair::Pair;
use super::settings::{Settings, Versions};
use super::socket::{Association, Bound, Socket};
use super::transfer::association_with;
use super::{Engine, FIRST_REQUEST_TOKEN, Failure, MAX_SOCKETS, Outcome, wire};
use crate::protocol::name::SocketName;
use crate::protocol::request::{Call, Key, Request, State};
use crate::protocol::{Style, address, bytes_at};
use crate::transports::Transport;

/// The most sockets that wait to be accepted, whatever backlog `listen` requests.
const MAX_BACKLOG: usize = 128;

impl Socket {
    /// The unspecified address of the same family.
    pub(super) fn any(&self) -> IpAddr {
        match self.name.is_ipv6 {
            true => Ipv6Addr::UNSPECIFIED.into(),
            false => Ipv4Addr::UNSPECIFIED.into(),
        }
    }

    /// Whether the socket can use addresses of this family.
    fn takes(&self, address: &SocketAddr) -> bool {
        self.settings.versions.include(address.ip())
    }
}

/// Binds to other addresses at the same port.
fn bind_again(engine: &mut Engine, number: u64, addresses: Vec<IpAddr>) -> Outcome {
    let this = engine.sockets.get_mut(&number).ok_or(Failure(ENOTCONN))?;
    let port = this.bound.take().ok_or(Failure(EINVAL))?.port;
    engine.ports.release(port, number);
    engine.bind(number, port, addresses)
}

/// Checks that `sctp_bindx` may add these addresses: of one port, none of them twice, and none to which the socket is bound. A
/// wildcard is equal to all addresses.
fn check_added(bound: Option<&Bound>, added: &[SocketAddr]) -> Result<(), Failure> {
    let has_wildcard = added.iter().any(|address| address.ip().is_unspecified());
    let is_bound = bound.is_some_and(|bound| has_wildcard || bound.is_to_any_of(added));
    let is_repeated = BTreeSet::from_iter(added).len() < added.len();
    let has_more = added.len() > 1 && has_wildcard;
    let has_other_port = added.iter().any(|address| address.port() != added[0].port());
    if is_bound || is_repeated || has_more || has_other_port {
        return Err(Failure(EINVAL));
    }
    Ok(())
}

/// The addresses of `bound` without those that are named: at least one, and only before anything depends on them.
fn addresses_left(
    socket: &Socket,
    bound: &Bound,
    (port, named): (u16, &[IpAddr]),
) -> Result<Vec<IpAddr>, Failure> {
    let left = bound.addresses.iter().filter(|ip| !named.contains(ip)).copied();
    let left: Vec<_> = left.collect();
    if bound.addresses.len() <= 1 {
        return Err(Failure(EBUSY));
    } else if port != bound.port || !named.iter().all(|ip| bound.addresses.contains(ip)) {
        return Err(Failure(EINVAL));
    } else if left.is_empty() {
        return Err(Failure(EBUSY));
    } else if socket.state != State::Idle || !socket.associations.is_empty() {
        return Err(Failure(EOPNOTSUPP));
    }
    Ok(left)
}

/// Whether only the privileged may bind to `port`, and this process is not (`CAP_NET_BIND_SERVICE`), as for the kernel's
/// sockets.
fn is_reserved(port: u16) -> bool {
    let first = number_in("/proc/sys/net/ipv4/ip_unprivileged_port_start").unwrap_or(1024);
    let may =
        || capabilities(None).map(|sets| sets.effective.contains(CapabilitySet::NET_BIND_SERVICE));
    port != 0 && port < first && !may().unwrap_or(false)
}

/// The default of `IPV6_V6ONLY`.
const BIND_V6_ONLY: &str = "/proc/sys/net/ipv6/bindv6only";

/// A setting of the system.
fn number_in(path: &str) -> Option<u16> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

impl Engine {
    /// Executes a request, and answers it now or later.
    pub(super) fn call(&mut self, token: u64, request: &Request, key: Key, body: &[u8]) {
        let Request { call, socket, first, second } = *request;
        // Messages that the program sent before the call come first, with their effects on this machine.
        if self.sockets.contains_key(&socket) {
            self.take_messages(socket, false);
            self.watch(socket);
        }
        self.catch_up();
        let outcome = match call {
            Call::Register => self.requests.register(&self.epoll, token, key).map(|mut value| {
                if first != 0 {
                    value.push(self.transports.differ_from(body).into());
                }
                value
            }),
            Call::Socket => {
                let made = self.make_socket((first, second), key, body);
                return self.answer_with_descriptor(token, made);
            }
            Call::PeelOff => {
                let made = self.peel_off(socket, first as u32);
                return self.answer_with_descriptor(token, made);
            }
            Call::Bind => self.bind_call(socket, first, body),
            Call::Listen => self.listen(socket, first),
            Call::Connect => match self.connect_call(socket, first != 0, body, token) {
                Some(outcome) => outcome,
                None => return,
            },
            Call::Linger => {
                if self.sockets.get(&socket).is_some_and(|this| this.pair.is_closed()) {
                    self.on_socket_ready(socket, EventFlags::HUP);
                    self.catch_up();
                }
                return self.requests.linger(socket, token);
            }
            Call::SetOption => self.set_option(socket, (first, second), body),
            Call::Option => self.option(socket, (first, second), body),
            Call::Name => self.name(socket, first != 0),
            Call::State => self.state_of(socket),
            Call::Association => match (self.sockets.get(&socket), address::parse(body)) {
                (Some(this), Some((peer, _)))
                    if association_with(self, this, canonical(peer)).is_some() =>
                {
                    Ok(Vec::new())
                }
                (Some(this), None) if this.associations.contains(&(first as u32)) => Ok(Vec::new()),
                _ => Err(Failure(EPIPE)),
            },
            Call::Fragment => match self.sockets.get(&socket) {
                Some(this) => Ok(this.settings.fragment_bytes().to_ne_bytes().to_vec()),
                None => Err(Failure(EPIPE)),
            },
        };
        self.requests.answer(token, &outcome, None);
    }

    fn answer_with_descriptor(&mut self, token: u64, made: Result<OwnedFd, Failure>) {
        match made {
            Ok(theirs) => self.requests.answer(token, &Ok(Vec::new()), Some(&theirs)),
            Err(failure) => self.requests.answer(token, &Err(failure), None),
        }
    }

    fn make_socket(
        &mut self,
        (domain, kind): (i32, i32),
        key: Key,
        body: &[u8],
    ) -> Result<OwnedFd, Failure> {
        let is_ipv6 = match domain {
            libc::AF_INET => false,
            libc::AF_INET6 => true,
            _ => return Err(Failure(EAFNOSUPPORT)),
        };
        let style = match kind {
            libc::SOCK_STREAM => Style::OneToOne,
            libc::SOCK_SEQPACKET => Style::OneToMany,
            _ => return Err(Failure(ESOCKTNOSUPPORT)),
        };
        let peer_port = u16::from_ne_bytes(bytes_at(body, 0));
        let profile = std::str::from_utf8(body.get(2..).unwrap_or_default()).ok();
        let profile = profile.filter(|name| !name.is_empty()).unwrap_or("interactive");
        let profile = AssociationConfig::profile(profile).ok_or(Failure(EINVAL))?;
        let versions = match is_ipv6 {
            false => Versions::V4,
            true if number_in(BIND_V6_ONLY) == Some(1) => Versions::V6,
            true => Versions::Both,
        };
        let mut settings = Settings::new(versions, profile, peer_port, key);
        settings.shares_window = style == Style::OneToMany;
        let (_, theirs) = self.new_socket(style, is_ipv6, settings)?;
        Ok(theirs)
    }

    /// Creates a socket; returns the program's end of its pair.
    pub(super) fn new_socket(
        &mut self,
        style: Style,
        is_ipv6: bool,
        settings: Settings,
    ) -> Result<(u64, OwnedFd), Failure> {
        if self.sockets.len() >= MAX_SOCKETS {
            return Err(Failure(ENFILE));
        }
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes).map_err(|_| Failure(ENOBUFS))?;
        // Above the tokens of other descriptors, and below those of requests.
        let number = u64::from_ne_bytes(bytes) % (FIRST_REQUEST_TOKEN - 16) + 16;
        if self.sockets.contains_key(&number) {
            return Err(Failure(ENOBUFS));
        }
        let name = SocketName { engine: self.number, socket: number, style, is_ipv6 };
        let (pair, theirs) = Pair::new(name, settings.marks())?;
        epoll::add(&self.epoll, &pair, EventData::new_u64(number), EventFlags::empty())?;
        self.sockets.insert(number, Socket::new(name, pair, settings));
        self.watch(number);
        Ok((number, theirs))
    }

    fn bind_call(&mut self, number: u64, mode: i32, body: &[u8]) -> Outcome {
        const ADD: i32 = 1;
        const REMOVE: i32 = 2;
        let this = self.sockets.get(&number).ok_or(Failure(ENOTCONN))?;
        let addresses = address::parse_all(body).ok_or(Failure(EINVAL))?;
        if !addresses.iter().all(|address| this.takes(address)) {
            return Err(Failure(EINVAL));
        }
        let addresses: Vec<_> = addresses.into_iter().map(canonical).collect();
        let port = addresses[0].port();
        let has_wildcard = addresses.iter().any(|address| address.ip().is_unspecified());
        if mode == ADD {
            check_added(this.bound.as_ref(), &addresses)?;
        }
        let named = addresses.iter().map(SocketAddr::ip).filter(|ip| !ip.is_unspecified());
        let named: Vec<_> = named.collect();
        if mode != REMOVE && !named.iter().all(|ip| is_unicast(*ip) && is_local(*ip)) {
            return Err(Failure(EADDRNOTAVAIL));
        }
        match (&this.bound, mode) {
            (None, 0 | ADD) => self.bind(number, port, named),
            // More addresses, before anything depends on them.
            (Some(bound), ADD) if this.state == State::Idle && this.associations.is_empty() => {
                if port != 0 && port != bound.port {
                    return Err(Failure(EINVAL));
                }
                let mut all = bound.addresses.clone();
                all.extend(named);
                bind_again(self, number, all)
            }
            (Some(bound), REMOVE) => {
                if bound.addresses.len() > 1 && has_wildcard {
                    return Err(Failure(EADDRNOTAVAIL));
                }
                let left = addresses_left(this, bound, (port, &named))?;
                bind_again(self, number, left)
            }
            (None, REMOVE) => Err(Failure(EBUSY)),
            (Some(_), 0) => Err(Failure(EINVAL)),
            // Changes of what is in use.
            _ => Err(Failure(EOPNOTSUPP)),
        }
    }

    fn bind(&mut self, number: u64, port: u16, addresses: Vec<IpAddr>) -> Outcome {
        if addresses.len() > rexmit_sctp::MAX_ADDRESSES {
            return Err(Failure(ENOBUFS));
        } else if is_reserved(port) {
            return Err(Failure(EACCES));
        }
        let Self { sockets, ports, .. } = self;
        let this = sockets.get_mut(&number).ok_or(Failure(ENOTCONN))?;
        let port = ports.bind(port, &addresses, number, &this.settings)?;
        this.bound = Some(Bound { port, addresses });
        Ok(Vec::new())
    }

    /// The port of the socket, which is bound to an ephemeral one if it was not bound.
    fn port_of(&mut self, number: u64) -> Result<u16, Failure> {
        let this = self.sockets.get(&number).ok_or(Failure(ENOTCONN))?;
        if this.bound.is_none() {
            self.bind(number, 0, Vec::new())?;
        }
        let bound = self.sockets[&number].bound.as_ref();
        bound.map(|bound| bound.port).ok_or(Failure(EINVAL))
    }

    fn listen(&mut self, number: u64, backlog: i32) -> Outcome {
        let this = self.sockets.get(&number).ok_or(Failure(ENOTCONN))?;
        if this.is_one_to_one() && !matches!(this.state, State::Idle | State::Listening) {
            return Err(Failure(EINVAL));
        }
        if backlog == 0 && this.is_one_to_one() && this.state == State::Idle {
            return Ok(Vec::new());
        }
        let port = self.port_of(number)?;
        let Self { sockets, ports, .. } = self;
        let this = sockets.get_mut(&number).ok_or(Failure(ENOTCONN))?;
        let taken = ports.get(&port).and_then(|port| port.listener);
        if taken.is_some_and(|listener| listener != number) {
            return Err(Failure(EADDRINUSE));
        }
        // `listen(fd, 0)` ends it (RFC 6458 §3.1.3).
        let is_listening = backlog != 0;
        if is_listening && taken.is_none() {
            ports.renew(port, &this.settings)?;
        }
        this.listening.backlog =
            usize::try_from(backlog).unwrap_or(MAX_BACKLOG).clamp(1, MAX_BACKLOG);
        if this.is_one_to_one() {
            this.state = if is_listening { State::Listening } else { State::Idle };
        }
        if let Some(port) = ports.touch(port) {
            port.listener = is_listening.then_some(number);
            port.endpoint.set_accept(is_listening && !this.is_backlog_full());
        }
        Ok(Vec::new())
    }

    /// Begins a connection; `None` if the request is answered later, when the attempt has succeeded or failed.
    fn connect_call(
        &mut self,
        number: u64,
        is_non_blocking: bool,
        body: &[u8],
        token: u64,
    ) -> Option<Outcome> {
        let is_taken = self.sockets.get(&number).is_some_and(|this| {
            let is_taken = matches!(this.state, State::Listening | State::Connected);
            this.is_one_to_one() && is_taken && !body.is_empty()
        });
        let invalid = Failure(if is_taken { EISCONN } else { EINVAL });
        let begun = address::parse_all(body).ok_or(invalid);
        let begun = begun.and_then(|peers| self.connect(number, &peers));
        if let (Ok(_), Some(this)) = (&begun, self.sockets.get_mut(&number)) {
            this.error = 0;
        }
        let association = match begun {
            Ok(association) => association,
            Err(failure) => return Some(Err(failure)),
        };
        if is_non_blocking {
            // An association with this machine is there at once, as in a kernel.
            self.catch_up();
            return Some(Ok(association.to_ne_bytes().to_vec()));
        }
        self.sockets.get_mut(&number)?.connecting.push((association, token));
        None
    }

    /// Begins an association with a peer at these addresses.
    pub(super) fn connect(&mut self, number: u64, peers: &[SocketAddr]) -> Result<u32, Failure> {
        let this = self.sockets.get(&number).ok_or(Failure(ENOTCONN))?;
        match this.state {
            State::Idle => {}
            _ if !this.is_one_to_one() => {}
            State::Listening | State::Connected => return Err(Failure(EISCONN)),
            State::Connecting => return Err(Failure(EALREADY)),
        }
        let remote_port = peers[0].port();
        if peers.iter().any(|peer| peer.port() != remote_port) {
            return Err(Failure(EINVAL));
        }
        if !peers.iter().all(|peer| this.takes(peer) && is_unicast(peer.ip().to_canonical())) {
            return Err(Failure(EINVAL));
        }
        if remote_port == 0 {
            // As by the peer, to which a kernel would send an INIT for this port.
            return Err(Failure(ECONNREFUSED));
        }
        let peer_port = this.settings.peer_port;
        let remotes = peers.iter().map(|peer| {
            let ip = peer.ip().to_canonical();
            (ip, transport_to(self, ip, peer_port)).into()
        });
        let remotes: Vec<SocketAddr> = remotes.collect();
        let is_own = this.peers.contains_key(&canonical(peers[0]));
        let port = self.port_of(number)?;
        let (routes, mtu) = self.routes(port, &remotes)?;
        let now = self.now;
        let Self { sockets, ports, .. } = self;
        let this = sockets.get_mut(&number).ok_or(Failure(ENOTCONN))?;
        let config = this.settings.association(mtu);
        let endpoint = &mut ports.begin(port, now).ok_or(Failure(EINVAL))?.endpoint;
        let id = endpoint.connect_over(now, &routes, remote_port, config).map_err(|error| {
            Failure(match error {
                ConnectError::AlreadyConnected if is_own => EISCONN,
                // Its association is another socket's, which was peeled off or accepted.
                ConnectError::AlreadyConnected => EADDRNOTAVAIL,
                ConnectError::TooManyAssociations => ENOBUFS,
                _ => EINVAL,
            })
        })?;
        self.last_number += 1;
        let association = self.last_number;
        let peer = (remotes[0].ip(), remote_port).into();
        let local = (routes[0].local.ip(), port).into();
        if this.is_one_to_one() {
            this.state = State::Connecting;
            this.association = Some(association);
            this.names = Some((local, peer));
        }
        this.own(association, peer);
        self.numbers.insert((port, id.to_bits()), association);
        let made = Association {
            port,
            id,
            socket: Some(number),
            remote_port,
            peer,
            streams: None,
            peer_has_ended: false,
            is_closing: false,
            has_sent: false,
            autoclose: None,
            last_used: self.now,
            closed: None,
            failed: Vec::new(),
        };
        self.associations.insert(association, made);
        self.watch(number);
        Ok(association)
    }

    /// The routes to these addresses, and the least of their MTUs.
    fn routes(&self, port: u16, remotes: &[SocketAddr]) -> Result<(Vec<Route>, usize), Failure> {
        let own = self.ports.get(&port).map(|port| port.local.chosen()).unwrap_or_default();
        let mut least = usize::MAX;
        let mut routes = Vec::new();
        for remote in remotes {
            let (chosen, mtu) = wire::way_to(remote.ip()).ok_or(Failure(ENETUNREACH))?;
            least = least.min(mtu);
            let local = match own {
                [] => chosen,
                own if own.contains(&chosen) => chosen,
                own => {
                    let same_family = own.iter().find(|ip| ip.is_ipv4() == remote.is_ipv4());
                    *same_family.ok_or(Failure(ENETUNREACH))?
                }
            };
            let port = if remote.port() == 0 { 0 } else { self.wires.udp_port() };
            let local = SocketAddr::new(local, port);
            routes.push(Route { local, remote: *remote });
        }
        Ok((routes, least))
    }

    fn name(&self, number: u64, is_peer: bool) -> Outcome {
        let this = self.sockets.get(&number).ok_or(Failure(ENOTCONN))?;
        let is_connected = matches!(this.state, State::Connected);
        let shown = match (this.names, &this.bound) {
            (Some((_, peer)), _) if is_peer && is_connected => peer,
            _ if is_peer => return Err(Failure(ENOTCONN)),
            (Some((local, _)), _) => local,
            (None, Some(bound)) => {
                let ip = bound.addresses.first().copied().unwrap_or_else(|| this.any());
                (ip, bound.port).into()
            }
            (None, None) => (this.any(), 0).into(),
        };
        let mut bytes = Vec::new();
        address::write(address::in_family(shown, this.name.is_ipv6), &mut bytes);
        Ok(bytes)
    }

    fn state_of(&mut self, number: u64) -> Outcome {
        // The engine lets go of a socket when its association has ended.
        let Some(this) = self.sockets.get_mut(&number) else {
            return Ok((State::Connected as u32).to_ne_bytes().to_vec());
        };
        let mut state = this.state;
        let listener = this.listening.accepted_from.take();
        if !this.is_one_to_one() {
            let port = this.bound.as_ref().and_then(|bound| self.ports.get(&bound.port));
            let is_listening = port.is_some_and(|port| port.listener == Some(number));
            state = match (is_listening, this.associations.is_empty()) {
                (true, _) => State::Listening,
                (false, false) => State::Connected,
                (false, true) => State::Idle,
            };
        }
        if let Some(listener) = listener {
            self.on_accepted(listener, number);
        }
        Ok((state as u32).to_ne_bytes().to_vec())
    }

    /// Called when a socket was accepted, which may make room in the backlog.
    pub(super) fn on_accepted(&mut self, listener: u64, number: u64) {
        let Some(this) = self.sockets.get_mut(&listener) else { return };
        this.listening.unaccepted.remove(&number);
        let has_room = !this.is_backlog_full();
        let port = this.bound.as_ref().map(|bound| bound.port);
        let port = port.and_then(|port| self.ports.touch(port));
        if let Some(port) = port.filter(|port| port.listener == Some(listener)) {
            port.endpoint.set_accept(has_room);
        }
    }

    /// `sctp_peeloff` (RFC 6458 §9.2).
    fn peel_off(&mut self, number: u64, association: u32) -> Result<OwnedFd, Failure> {
        let this = self.sockets.get(&number).ok_or(Failure(ENOTCONN))?;
        let known = self.associations.get(&association);
        let known = known.filter(|_| this.associations.contains(&association));
        let known = known.ok_or(Failure(EINVAL))?;
        if this.is_one_to_one() || known.streams.is_none() || known.closed.is_some() {
            return Err(Failure(EINVAL));
        }
        let (is_ipv6, settings) = (this.name.is_ipv6, this.settings.clone());
        let (port, id, peer) = (known.port, known.id, known.peer);
        let endpoint = self.ports.get(&port).map(|port| &port.endpoint);
        let paths = endpoint.and_then(|endpoint| endpoint.paths(id)).unwrap_or_default();
        let local = paths.first().map_or(this.any(), |path| path.local.ip());
        let (made, theirs) = self.new_socket(Style::PeeledOff, is_ipv6, settings)?;
        if let Some(this) = self.sockets.get_mut(&number) {
            this.disown(association, peer);
            this.readable.retain(|other| *other != association);
        }
        self.give(association, made, (local, port).into(), peer);
        if let Some(new) = self.sockets.get_mut(&made) {
            // What SCTP holds is received from here on.
            new.readable.push_back(association);
        }
        self.receive_messages(made);
        self.watch(made);
        Ok(theirs)
    }

    /// Makes `socket` the owner of an established association.
    pub(super) fn give(
        &mut self,
        association: u32,
        socket: u64,
        local: SocketAddr,
        peer: SocketAddr,
    ) {
        let Some(known) = self.associations.get_mut(&association) else { return };
        known.socket = Some(socket);
        let port = known.port;
        if let Some(port) = self.ports.touch(port) {
            port.sockets.insert(socket);
        }
        if let Some(this) = self.sockets.get_mut(&socket) {
            this.state = State::Connected;
            this.association = Some(association);
            this.own(association, peer);
            this.names = Some((local, peer));
            this.bound = Some(Bound { port, addresses: Vec::new() });
        }
    }
}

/// The UDP port of a peer; 0 for SCTP over IP. `peer_port` is the one configured for the socket.
pub(super) fn transport_to(engine: &Engine, ip: IpAddr, peer_port: u16) -> u16 {
    // With itself the machine speaks the faster one, which needs no capability.
    if wire::leads_to_own_host(ip) {
        return peer_port;
    }
    match engine.transports.to(ip, engine.wires.has_ip(ip)) {
        Transport::Ip => 0,
        Transport::Udp(port) => port.unwrap_or(peer_port),
    }
}

/// Whether the address can be that of a peer.
fn is_unicast(ip: IpAddr) -> bool {
    let is_broadcast = matches!(ip, IpAddr::V4(ip) if ip.is_broadcast());
    !(ip.is_unspecified() || ip.is_multicast() || is_broadcast)
}

/// Whether a socket may be bound to the address: this host has it, or `ip_nonlocal_bind` is set.
fn is_local(ip: IpAddr) -> bool {
    std::net::UdpSocket::bind((ip, 0)).is_ok()
}
