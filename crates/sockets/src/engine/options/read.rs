//! Options that are read.

use std::net::SocketAddr;
use std::time::Duration;

use libc::{EINVAL, ENOMEM, ENOPROTOOPT, EOPNOTSUPP, SOL_SOCKET};
use rexmit_recovery::PathState;
use rexmit_sctp::PathStatistics;

use super::super::host::HostAddresses;
use super::super::option_names as name;
use super::super::settings::{Settings, Versions};
use super::super::socket::{Association, Socket};
use super::super::{Engine, Failure, Outcome};
use super::set::check_path_address;
use super::{
    KEPT, UDP_ENCAPS_BYTES, UDP_PORT_AT, association_at, other_number, refused, sized, statistics,
    u16_at, u32_at, words,
};
use crate::protocol::request::{MAX_BODY_BYTES, State};
use crate::protocol::{IPPROTO_SCTP, address};

/// Options with the number of an association that cannot be read, whatever the number.
const SET_ONLY: &[i32] =
    &[name::AUTH_DEACTIVATE_KEY, name::RESET_STREAMS, name::RESET_ASSOC, name::ADD_STREAMS];

impl Engine {
    /// The value of an option; `value` is the content of the program's buffer.
    pub(in super::super) fn option(
        &mut self,
        socket: u64,
        (level, option): (i32, i32),
        value: &[u8],
    ) -> Outcome {
        if level == SOL_SOCKET && option == libc::SO_ERROR && !self.sockets.contains_key(&socket) {
            return Ok(vec![0; 4]);
        }
        let this = self.sockets.get_mut(&socket).ok_or(Failure(EINVAL))?;
        if level != IPPROTO_SCTP {
            return of_other_level(this, (level, option));
        }
        let this = &self.sockets[&socket];
        let of_many = [name::AUTO_CLOSE, name::ASSOC_NUMBER, name::ASSOC_IDS];
        if of_many.contains(&option) && this.is_one_to_one() {
            return Err(Failure(EOPNOTSUPP));
        }
        let is_read = !SET_ONLY.contains(&option);
        if is_read && other_number(this, option, value).is_some_and(|number| number != 0) {
            return Err(Failure(EINVAL));
        }
        if let Some((_, default)) = KEPT.iter().find(|(kept, _)| *kept == option) {
            return Ok(words(&[this.settings.kept.get(&option).copied().unwrap_or(*default)]));
        }
        let number = if value.len() >= 4 { u32_at(value, 0) } else { 0 };
        refused::check_read(option, value.len(), self.association_of(this, number).is_ok())?;
        match option {
            name::ASSOC_STATS => statistics::of_association(self, this, value),
            name::STATUS => {
                sized(value, 4)?;
                status(self, this, u32_at(value, 0))
            }
            name::PEER_ADDR_INFO => {
                let association = u32_at(sized(value, 152)?, 0);
                let (wanted, _) = address::parse(&value[4..]).ok_or(Failure(EINVAL))?;
                let (number, paths) = self.paths_of(this, association)?;
                let (_, path) = self.path_to(this, association, wanted)?;
                Ok(path_info(self, number, paths.get(usize::from(path))))
            }
            name::ASSOC_NUMBER => Ok(words(&[this.associations.len() as u32])),
            name::ASSOC_IDS => {
                let ids = this.associations.iter().copied();
                Ok(words(
                    &std::iter::once(this.associations.len() as u32).chain(ids).collect::<Vec<_>>(),
                ))
            }
            name::PEER_ADDRS => addresses_of(self, this, u32_at(sized(value, 8)?, 0), true),
            name::LOCAL_ADDRS => local_addresses(self, this, sized(value, 8)?),
            name::PRIMARY_ADDR => {
                let association = u32_at(sized(value, 132)?, 0);
                let (number, paths) = self.paths_of(this, association)?;
                let primary = paths.iter().find(|path| path.is_primary);
                let mut bytes = words(&[number]);
                let known = primary.map(|path| with_sctp_port(self, number, path.remote));
                address::write_storage(known, &mut bytes);
                Ok(bytes)
            }
            name::PEER_ADDR_PARAMS => {
                check_path_address(self, socket, value)?;
                of_settings(&this.settings, option, value)
            }
            _ => of_settings(&this.settings, option, value),
        }
    }

    /// The association of this number (for a one-to-one socket, its own), and its paths.
    fn paths_of(
        &self,
        socket: &Socket,
        number: u32,
    ) -> Result<(u32, Vec<PathStatistics>), Failure> {
        let (number, association) = self.association_of(socket, number)?;
        let port = self.ports.get(&association.port);
        let paths = port.and_then(|port| port.endpoint.paths(association.id));
        Ok((number, paths.ok_or(Failure(EINVAL))?))
    }

    /// The association of this number, and the number of its path to this address.
    pub(super) fn path_to(
        &self,
        socket: &Socket,
        number: u32,
        to: SocketAddr,
    ) -> Result<(u32, u8), Failure> {
        let (number, paths) = self.paths_of(socket, number)?;
        let is_port =
            self.associations.get(&number).map(|known| known.remote_port) == Some(to.port());
        let path = paths.iter().position(|path| path.remote.ip() == to.ip().to_canonical());
        let path = path.filter(|_| is_port).ok_or(Failure(EINVAL))?;
        Ok((number, u8::try_from(path).map_err(|_| Failure(EINVAL))?))
    }

    pub(super) fn association_of(
        &self,
        socket: &Socket,
        number: u32,
    ) -> Result<(u32, &Association), Failure> {
        let number = if socket.is_one_to_one() { socket.association } else { Some(number) };
        let number = number.filter(|number| socket.associations.contains(number));
        let number = number.ok_or(Failure(EINVAL))?;
        Ok((number, self.associations.get(&number).ok_or(Failure(EINVAL))?))
    }
}

/// Options of other levels than SCTP's.
fn of_other_level(socket: &mut Socket, option: (i32, i32)) -> Outcome {
    let number = match option {
        (SOL_SOCKET, libc::SO_ERROR) => std::mem::take(&mut socket.error),
        (SOL_SOCKET, libc::SO_REUSEPORT) => socket.settings.reuses_port.into(),
        (libc::IPPROTO_IPV6, libc::IPV6_V6ONLY) => {
            (socket.settings.versions == Versions::V6).into()
        }
        (SOL_SOCKET, libc::SO_RCVLOWAT) => socket.settings.low_water,
        (SOL_SOCKET, libc::SO_ACCEPTCONN) => (socket.state == State::Listening).into(),
        _ => return Err(Failure(ENOPROTOOPT)),
    };
    Ok(number.to_ne_bytes().to_vec())
}

fn with_sctp_port(engine: &Engine, number: u32, address: SocketAddr) -> SocketAddr {
    let port = engine.associations.get(&number).map_or(0, |association| association.remote_port);
    (address.ip(), port).into()
}

/// `sctp_paddrinfo`.
fn path_info(engine: &Engine, number: u32, path: Option<&PathStatistics>) -> Vec<u8> {
    let mut bytes = words(&[number]);
    let address = path.map(|path| with_sctp_port(engine, number, path.remote));
    address::write_storage(address, &mut bytes);
    let Some(path) = path else {
        bytes.resize(152, 0);
        return bytes;
    };
    let state = match path.state {
        PathState::Active => 2,
        PathState::Inactive => 0,
        PathState::PotentiallyFailed => 1,
        _ => 3,
    };
    let millis = |time: Duration| time.as_millis() as u32;
    bytes.extend(words(&[
        state,
        path.cwnd as u32,
        path.srtt.map_or(0, millis),
        millis(path.rto),
        1500,
    ]));
    bytes
}

/// `sctp_status`.
fn status(engine: &Engine, socket: &Socket, number: u32) -> Outcome {
    const COOKIE_WAIT: u32 = 2;
    const ESTABLISHED: u32 = 4;
    const SHUTDOWN_PENDING: u32 = 5;
    const SHUTDOWN_RECEIVED: u32 = 7;
    let (number, association) = engine.association_of(socket, number)?;
    let (number, paths) = engine.paths_of(socket, number).map(|(_, paths)| (number, paths))?;
    let state = match association {
        Association { is_closing: true, .. } => SHUTDOWN_PENDING,
        Association { peer_has_ended: true, .. } => SHUTDOWN_RECEIVED,
        Association { streams: None, .. } => COOKIE_WAIT,
        _ => ESTABLISHED,
    };
    let (outbound, inbound) = association.streams.unwrap_or((0, 0));
    let in_flight: u32 = paths.iter().map(|path| path.packets_in_flight).sum();
    let config = &socket.settings.config;
    let mut bytes = words(&[number, state, config.buffers.receive_bytes as u32]);
    for count in [in_flight.min(65_535) as u16, 0, inbound, outbound] {
        bytes.extend(count.to_ne_bytes());
    }
    let primary = paths.iter().find(|path| path.is_primary);
    bytes.extend(words(&[socket.settings.fragment_of(primary.map(|path| path.max_packet_bytes))]));
    bytes.extend(path_info(engine, number, primary));
    Ok(bytes)
}

/// `sctp_getladdrs`: of an association, or of the socket (0). The number stays as it was.
fn local_addresses(engine: &Engine, socket: &Socket, value: &[u8]) -> Outcome {
    let number = u32_at(value, 0);
    if number != 0 {
        engine.association_of(socket, number)?;
    }
    let mut bytes = if number == 0 && socket.bound.is_none() {
        vec![0; 8]
    } else {
        addresses_of(engine, socket, number, false)?
    };
    bytes[..4].copy_from_slice(&value[..4]);
    Ok(bytes)
}

/// `sctp_getpaddrs` and `sctp_getladdrs`.
fn addresses_of(engine: &Engine, socket: &Socket, number: u32, of_peer: bool) -> Outcome {
    let known = engine.paths_of(socket, number);
    let (number, mut all): (_, Vec<SocketAddr>) = if of_peer {
        let (number, paths) = known?;
        let remotes = paths.iter().map(|path| with_sctp_port(engine, number, path.remote));
        (number, remotes.collect())
    } else {
        let bound = socket.bound.as_ref().ok_or(Failure(EINVAL))?;
        let port = engine.ports.get(&bound.port).ok_or(Failure(EINVAL))?;
        let locals = port.local.all(&mut HostAddresses::default(), engine.now).into_iter();
        let number = known.map_or(0, |(number, _)| number);
        (number, locals.map(|ip| (ip, bound.port).into()).collect())
    };
    all.sort_unstable();
    all.dedup();
    let mut bytes = words(&[number, all.len() as u32]);
    for address in all {
        address::write(address::in_family(address, socket.name.is_ipv6), &mut bytes);
    }
    if bytes.len() > MAX_BODY_BYTES { Err(Failure(ENOMEM)) } else { Ok(bytes) }
}

/// Options whose value is the one that was set.
fn of_settings(settings: &Settings, option: i32, value: &[u8]) -> Outcome {
    let config = &settings.config;
    let millis = |time: Duration| time.as_millis() as u32;
    let association = association_at(option, value.len());
    let association = association.map_or(0, |at| u32_at(value, at));
    Ok(match option {
        name::RTO_INFO => {
            let rto = &config.recovery.rto;
            words(&[association, millis(rto.initial), millis(rto.max), millis(rto.min)])
        }
        name::ASSOC_INFO => {
            let mut bytes = words(&[association]);
            bytes.extend((config.failure.association_max_retrans as u16).to_ne_bytes());
            bytes.extend(0_u16.to_ne_bytes());
            bytes.extend(words(&[0, config.buffers.receive_bytes as u32, settings.cookie_life_ms]));
            bytes
        }
        name::INIT_MSG => [
            config.streams.outbound,
            config.streams.max_inbound,
            config.handshake.max_init_retransmits as u16,
            settings.max_init_timeout_ms,
        ]
        .iter()
        .flat_map(|number| number.to_ne_bytes())
        .collect(),
        name::PEER_ADDR_PARAMS => {
            let mut bytes = sized(value, 132)?.to_vec();
            bytes.extend(words(&[config.failure.heartbeat_interval.map_or(0, millis)]));
            bytes.extend((config.failure.path_max_retrans as u16).to_ne_bytes());
            bytes.extend(words(&[config.max_packet_bytes as u32, millis(config.sack.delay)]));
            bytes.extend(words(&[
                if config.failure.heartbeat_interval.is_some() { 1 } else { 2 } | 1 << 5
            ]));
            // With and without the members that came later.
            bytes.resize(if value.len() < 156 { 152 } else { 156 }, 0);
            bytes
        }
        name::DEFAULT_SEND_PARAM | name::DEFAULT_SNDINFO => of_send(settings, option, association),
        name::EVENTS if value.is_empty() => return Err(Failure(EINVAL)),
        name::EVENTS => (0..14).map(|bit| u8::from(settings.events & 1 << bit != 0)).collect(),
        name::EVENT => {
            let mut bytes = sized(value, 8)?.to_vec();
            bytes[6] = u8::from(settings.events & 1 << (u16_at(value, 4) & 0xF) != 0);
            bytes
        }
        name::MAX_SEG => number_of(value, association, settings.max_segment)?,
        name::DELAYED_SACK if value.len() >= 12 => {
            words(&[association, millis(config.sack.delay), config.sack.every.into()])
        }
        name::DELAYED_SACK if value.len() == 8 => words(&[association, millis(config.sack.delay)]),
        name::DELAYED_SACK => return Err(Failure(EINVAL)),
        name::INTERLEAVING => words(&[association, 0]),
        name::RECONFIG_SUPPORTED | name::ENABLE_RESET => {
            sized(value, 8)?;
            words(&[association, settings.kept.get(&option).copied().unwrap_or(0)])
        }
        name::CONTEXT => words(&[association, settings.kept.get(&option).copied().unwrap_or(0)]),
        name::MAX_BURST => {
            let kept = settings.kept.get(&option).copied().unwrap_or(4);
            let mut bytes = number_of(value, association, kept)?;
            // Linux leaves the length as it was.
            bytes.extend_from_slice(value.get(bytes.len()..).unwrap_or_default());
            bytes
        }
        name::REMOTE_UDP_PORT => {
            let mut bytes = sized(value, UDP_ENCAPS_BYTES)?.to_vec();
            bytes[UDP_PORT_AT..][..2].copy_from_slice(&settings.peer_port.to_be_bytes());
            bytes
        }
        _ => return Err(Failure(ENOPROTOOPT)),
    })
}

/// A `sctp_assoc_value`, or the `int` that the option was before.
fn number_of(value: &[u8], association: u32, number: u32) -> Outcome {
    match value.len() {
        4 => Ok(words(&[number])),
        8.. => Ok(words(&[association, number])),
        _ => Err(Failure(EINVAL)),
    }
}

/// `sctp_sndrcvinfo`, or `sctp_sndinfo`.
fn of_send(settings: &Settings, option: i32, association: u32) -> Vec<u8> {
    let send = &settings.send;
    let mut bytes = send.stream.to_ne_bytes().to_vec();
    if option == name::DEFAULT_SNDINFO {
        bytes.extend(send.flags.to_ne_bytes());
        bytes.extend(words(&[send.ppid, send.context, association]));
    } else {
        bytes.extend([0; 2]);
        bytes.extend(send.flags.to_ne_bytes());
        bytes.extend([0; 2]);
        bytes.extend(words(&[send.ppid, send.context, send.time_to_live, 0, 0, association]));
    }
    bytes
}
