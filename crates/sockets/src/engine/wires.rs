//! The sockets of an engine for packets: UDP, and SCTP over IP if it is permitted.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rexmit_core::{Ecn, Route};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, socket_with};

use super::wire::Wire;

/// The most sockets: UDP, and SCTP over IPv4 and IPv6.
pub(super) const MAX_WIRES: u64 = 3;

/// The abstract name held by the engine that uses SCTP over IP: two such engines would refuse each other's packets.
const IP_NAME: &[u8] = b"rexmit-run-ip";

/// The sockets; the first is that of UDP.
#[derive(Debug)]
pub(super) struct Wires {
    all: Vec<Wire>,
    /// Held as long as SCTP over IP is in use.
    _claim: Option<OwnedFd>,
}

fn claim_ip() -> rustix::io::Result<OwnedFd> {
    let claim =
        socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    bind(&claim, &SocketAddrUnix::new_abstract_name(IP_NAME)?)?;
    Ok(claim)
}

impl Wires {
    /// Opens a UDP socket at this port, and sockets for SCTP over IP if `wants_ip` and permitted.
    pub(super) fn open(udp_port: u16, wants_ip: bool) -> io::Result<Self> {
        let mut all = vec![Wire::bind(udp_port)?];
        let claim = if wants_ip { claim_ip().ok() } else { None };
        if claim.is_some() {
            let any: [IpAddr; 2] = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
            all.extend(any.into_iter().filter_map(|any| Wire::over_ip(any).ok()));
        }
        Ok(Self { all, _claim: claim })
    }

    /// Registers the sockets with `epoll`, with their indices as tokens.
    pub(super) fn watch(&self, epoll: &OwnedFd) -> io::Result<()> {
        for (wire, token) in self.all.iter().zip(0..) {
            epoll::add(epoll, wire, EventData::new_u64(token), EventFlags::IN)?;
        }
        Ok(())
    }

    /// Makes `epoll` report when a full socket has room again.
    pub(super) fn watch_room(&self, epoll: &OwnedFd) {
        for (wire, token) in self.all.iter().zip(0..) {
            let room = if wire.is_blocked() { EventFlags::OUT } else { EventFlags::empty() };
            let _ = epoll::modify(epoll, wire, EventData::new_u64(token), EventFlags::IN | room);
        }
    }

    /// There is room again.
    pub(super) fn unblock(&mut self, token: u64) {
        if let Some(wire) = self.all.get_mut(token as usize) {
            wire.unblock();
        }
    }

    pub(super) fn udp_port(&self) -> u16 {
        self.all.first().map_or(0, Wire::port)
    }

    /// Whether SCTP over IP of this family can be sent.
    pub(super) fn has_ip(&self, like: IpAddr) -> bool {
        let route = Route { local: (like, 0).into(), remote: (like, 0).into() };
        self.all.iter().any(|wire| wire.carries(&route))
    }

    /// Whether a socket has no room.
    pub(super) fn is_blocked(&self) -> bool {
        self.all.iter().any(Wire::is_blocked)
    }

    /// Passes the packets of one batch per wire to `take`. Returns whether there were any.
    pub(super) fn receive(&mut self, mut take: impl FnMut(Route, Ecn, &[u8])) -> bool {
        let mut has_received = false;
        for wire in &mut self.all {
            has_received |= matches!(wire.receive(&mut take), Ok(true));
        }
        has_received
    }

    /// Sends a packet, now or together with later ones.
    pub(super) fn send(&mut self, route: Route, ecn: Ecn, packet: &[u8]) {
        if let Some(wire) = self.all.iter_mut().find(|wire| wire.carries(&route)) {
            wire.send(route, ecn, packet);
        }
    }

    /// Sends what [`send`](Self::send) has collected.
    pub(super) fn flush(&mut self) {
        for wire in &mut self.all {
            wire.flush();
        }
    }
}
