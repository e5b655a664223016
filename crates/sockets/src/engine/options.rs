//! Socket options: the table of `docs/preload.md`. Other options fail with `ENOPROTOOPT`, as in a kernel that
//! does not know it.

use std::time::Duration;

use libc::{EINVAL, ENOPROTOOPT, EOPNOTSUPP, SOL_SOCKET};
use rexmit_recovery::PathState;
use rexmit_sctp::PathStatistics;

use super::notifications::Type;
use super::settings::Settings;
use super::socket::{Association, Socket};
use super::{Engine, Failure, Outcome};
use crate::protocol::request::State;
use crate::protocol::{IPPROTO_SCTP, address, bytes_at};

/// The options that are served, by the numbers of Linux's `linux/sctp.h`.
mod name {
    pub(super) const RTO_INFO: i32 = 0;
    pub(super) const ASSOC_INFO: i32 = 1;
    pub(super) const INIT_MSG: i32 = 2;
    pub(super) const NO_DELAY: i32 = 3;
    pub(super) const AUTO_CLOSE: i32 = 4;
    pub(super) const PRIMARY_ADDR: i32 = 6;
    pub(super) const ADAPTATION_LAYER: i32 = 7;
    pub(super) const DISABLE_FRAGMENTS: i32 = 8;
    pub(super) const PEER_ADDR_PARAMS: i32 = 9;
    pub(super) const DEFAULT_SEND_PARAM: i32 = 10;
    pub(super) const EVENTS: i32 = 11;
    pub(super) const MAPPED_V4: i32 = 12;
    pub(super) const MAX_SEG: i32 = 13;
    pub(super) const STATUS: i32 = 14;
    pub(super) const PEER_ADDR_INFO: i32 = 15;
    pub(super) const DELAYED_SACK: i32 = 16;
    pub(super) const CONTEXT: i32 = 17;
    pub(super) const FRAGMENT_INTERLEAVE: i32 = 18;
    pub(super) const PARTIAL_DELIVERY_POINT: i32 = 19;
    pub(super) const MAX_BURST: i32 = 20;
    pub(super) const ASSOC_NUMBER: i32 = 28;
    pub(super) const ASSOC_IDS: i32 = 29;
    pub(super) const AUTO_ASCONF: i32 = 30;
    pub(super) const RECV_RCVINFO: i32 = 32;
    pub(super) const RECV_NXTINFO: i32 = 33;
    pub(super) const DEFAULT_SNDINFO: i32 = 34;
    pub(super) const REUSE_PORT: i32 = 36;
    pub(super) const PEER_ADDRS: i32 = 108;
    pub(super) const LOCAL_ADDRS: i32 = 109;
    pub(super) const EVENT: i32 = 127;
    pub(super) const REMOTE_UDP_PORT: i32 = 132;
}

/// Options that are kept and read back: what they ask for is so anyway, or needs nothing.
const KEPT: &[(i32, u32)] = &[
    (name::NO_DELAY, 0),
    (name::AUTO_CLOSE, 0),
    (name::ADAPTATION_LAYER, 0),
    (name::DISABLE_FRAGMENTS, 0),
    (name::MAPPED_V4, 1),
    (name::FRAGMENT_INTERLEAVE, 0),
    (name::PARTIAL_DELIVERY_POINT, 0),
    (name::AUTO_ASCONF, 0),
    (name::RECV_RCVINFO, 0),
    (name::RECV_NXTINFO, 0),
    (name::REUSE_PORT, 0),
];

fn int(value: &[u8]) -> Result<u32, Failure> {
    if value.len() < 4 {
        return Err(Failure(EINVAL));
    }
    Ok(u32::from_ne_bytes(bytes_at(value, 0)))
}

/// A value that is at least as long as its structure.
fn sized(value: &[u8], length: usize) -> Result<&[u8], Failure> {
    value.get(..length).ok_or(Failure(EINVAL))
}

fn u32_at(value: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes_at(value, at))
}

fn u16_at(value: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes(bytes_at(value, at))
}

/// `sctp_assoc_value`, or the `int` that it was before.
fn assoc_value(value: &[u8]) -> Result<u32, Failure> {
    if value.len() >= 8 { Ok(u32_at(value, 4)) } else { int(value) }
}

fn words(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
}

/// Sets an option that concerns associations to come.
pub(super) fn set(settings: &mut Settings, level: i32, option: i32, value: &[u8]) -> Outcome {
    match level {
        SOL_SOCKET => set_of_socket(settings, option, value),
        IPPROTO_SCTP => set_of_sctp(settings, option, value),
        _ => Err(Failure(ENOPROTOOPT)),
    }
}

fn set_of_socket(settings: &mut Settings, option: i32, value: &[u8]) -> Outcome {
    match option {
        libc::SO_LINGER => {
            let value = sized(value, 8)?;
            settings.aborts_on_close = u32_at(value, 0) != 0 && u32_at(value, 4) == 0;
        }
        // As the kernel, which doubles what is set.
        libc::SO_RCVBUF => settings.set_receive_buffer((int(value)? as usize).saturating_mul(2)),
        libc::SO_SNDBUF => settings.set_send_buffer((int(value)? as usize).saturating_mul(2)),
        _ => return Err(Failure(ENOPROTOOPT)),
    }
    Ok(Vec::new())
}

fn set_of_sctp(settings: &mut Settings, option: i32, value: &[u8]) -> Outcome {
    if KEPT.iter().any(|(kept, _)| *kept == option) {
        settings.kept.insert(option, int(value)?);
        return Ok(Vec::new());
    }
    match option {
        name::RTO_INFO => return set_rto(settings, sized(value, 16)?),
        name::INIT_MSG => return set_init(settings, sized(value, 8)?),
        name::ASSOC_INFO => {
            let most = u16_at(sized(value, 20)?, 4);
            if most != 0 {
                settings.config.association_max_retrans = most.into();
            }
        }
        name::PEER_ADDR_PARAMS => return set_path(settings, sized(value, 152)?),
        name::DEFAULT_SEND_PARAM => {
            let value = sized(value, 32)?;
            let send = &mut settings.send;
            (send.stream, send.flags) = (u16_at(value, 0), u16_at(value, 4));
            (send.ppid, send.context) = (u32_at(value, 8), u32_at(value, 12));
            send.time_to_live = u32_at(value, 16);
        }
        name::DEFAULT_SNDINFO => {
            let value = sized(value, 16)?;
            let send = &mut settings.send;
            (send.stream, send.flags) = (u16_at(value, 0), u16_at(value, 2));
            (send.ppid, send.context) = (u32_at(value, 4), u32_at(value, 8));
        }
        name::EVENTS => {
            if value.is_empty() || value.len() > 16 {
                return Err(Failure(EINVAL));
            }
            let bits = value.iter().zip(0..).map(|(&byte, bit)| u16::from(byte != 0) << bit);
            settings.events = bits.fold(0, |all, bit| all | bit);
        }
        name::EVENT => {
            let value = sized(value, 8)?;
            let number = u16_at(value, 4);
            if !(Type::DataIo as u16..=Type::SendFailedEvent as u16).contains(&number) {
                return Err(Failure(EINVAL));
            }
            let bit = 1 << (number & 0xF);
            settings.events =
                if value[6] == 0 { settings.events & !bit } else { settings.events | bit };
        }
        name::MAX_SEG => settings.max_segment = assoc_value(value)?.min(65_535),
        name::DELAYED_SACK => return set_delayed_sack(settings, value),
        name::CONTEXT | name::MAX_BURST => {
            let value = assoc_value(value)?;
            settings.kept.insert(option, value);
        }
        name::REMOTE_UDP_PORT => {
            let port = u16::from_be_bytes(bytes_at(sized(value, 136)?, 132));
            if port == 0 {
                // Without encapsulation there would be no way to send.
                return Err(Failure(EOPNOTSUPP));
            }
            settings.peer_port = port;
        }
        _ => return Err(Failure(ENOPROTOOPT)),
    }
    Ok(Vec::new())
}

/// `sctp_initmsg`.
fn set_init(settings: &mut Settings, value: &[u8]) -> Outcome {
    let or = |at: usize, default: u16| match u16_at(value, at) {
        0 => default,
        number => number,
    };
    let config = &mut settings.config;
    config.outbound_streams = or(0, config.outbound_streams);
    config.max_inbound_streams = or(2, config.max_inbound_streams);
    config.max_init_retransmits = or(4, config.max_init_retransmits as u16).into();
    settings.max_init_timeout_ms = or(6, settings.max_init_timeout_ms);
    Ok(Vec::new())
}

/// `sctp_sack_info`, or the `sctp_assoc_value` that it was before.
fn set_delayed_sack(settings: &mut Settings, value: &[u8]) -> Outcome {
    let (delay, every) = match value.len() {
        12.. => (u32_at(value, 4), u32_at(value, 8)),
        8.. => (u32_at(value, 4), 0),
        _ => return Err(Failure(EINVAL)),
    };
    if delay > 500 {
        return Err(Failure(EINVAL));
    }
    if every != 0 {
        settings.config.sack.every = every.min(255) as u8;
    }
    // A SACK for every packet needs no delay, and 0 changes none.
    if delay != 0 && every != 1 {
        settings.set_sack_delay(delay);
    }
    Ok(Vec::new())
}

fn set_rto(settings: &mut Settings, value: &[u8]) -> Outcome {
    let mut rto = settings.config.recovery.rto.clone();
    let millis = |at: usize, before: Duration| match u32_at(value, at) {
        0 => before,
        number => Duration::from_millis(number.into()),
    };
    rto.initial = millis(4, rto.initial);
    rto.max = millis(8, rto.max);
    rto.min = millis(12, rto.min);
    let before = std::mem::replace(&mut settings.config.recovery.rto, rto);
    if settings.config.validate().is_err() {
        settings.config.recovery.rto = before;
        return Err(Failure(EINVAL));
    }
    Ok(Vec::new())
}

/// `sctp_paddrparams`, for the paths of associations to come.
fn set_path(settings: &mut Settings, value: &[u8]) -> Outcome {
    const HEARTBEATS: u32 = 1;
    const NO_HEARTBEATS: u32 = 2;
    const SACK_DELAY: u32 = 1 << 5;
    let flags = u32_at(value, 146);
    if flags & (HEARTBEATS | NO_HEARTBEATS) == HEARTBEATS | NO_HEARTBEATS {
        return Err(Failure(EINVAL));
    }
    let config = &mut settings.config;
    if flags & NO_HEARTBEATS != 0 {
        config.heartbeat_interval = None;
    } else if flags & HEARTBEATS != 0 {
        let interval = Duration::from_millis(u32_at(value, 132).into());
        config.heartbeat_interval = Some(match interval {
            Duration::ZERO => config.heartbeat_interval.unwrap_or(Duration::from_secs(30)),
            interval => interval,
        });
    }
    if u16_at(value, 136) != 0 {
        config.path_max_retrans = u16_at(value, 136).into();
    }
    if flags & SACK_DELAY != 0 {
        settings.set_sack_delay(u32_at(value, 142));
    }
    Ok(Vec::new())
}

impl Engine {
    /// The value of an option; `value` is what the program's memory had.
    pub(super) fn option(
        &mut self,
        socket: u64,
        (level, option): (i32, i32),
        value: &[u8],
    ) -> Outcome {
        if level == SOL_SOCKET && option == libc::SO_ERROR && !self.sockets.contains_key(&socket) {
            return Ok(vec![0; 4]);
        }
        let this = self.sockets.get_mut(&socket).ok_or(Failure(libc::ENOTCONN))?;
        if level == SOL_SOCKET {
            return match option {
                libc::SO_ERROR => Ok(std::mem::take(&mut this.error).to_ne_bytes().to_vec()),
                libc::SO_ACCEPTCONN => {
                    Ok(i32::from(this.state == State::Listening).to_ne_bytes().to_vec())
                }
                _ => Err(Failure(ENOPROTOOPT)),
            };
        }
        if level != IPPROTO_SCTP {
            return Err(Failure(ENOPROTOOPT));
        }
        let this = &self.sockets[&socket];
        if let Some((_, default)) = KEPT.iter().find(|(kept, _)| *kept == option) {
            return Ok(words(&[this.settings.kept.get(&option).copied().unwrap_or(*default)]));
        }
        match option {
            name::STATUS => {
                sized(value, 4)?;
                self.status(this, u32_at(value, 0))
            }
            name::PEER_ADDR_INFO => {
                let association = u32_at(sized(value, 152)?, 0);
                let (wanted, _) = address::parse(&value[4..]).ok_or(Failure(EINVAL))?;
                let (number, paths) = self.paths_of(this, association)?;
                let path = paths.iter().find(|path| path.remote.ip() == wanted.ip().to_canonical());
                let path = path.ok_or(Failure(EINVAL))?;
                Ok(self.path_info(number, Some(path)))
            }
            name::ASSOC_NUMBER => Ok(words(&[this.associations.len() as u32])),
            name::ASSOC_IDS => {
                let ids = this.associations.iter().copied();
                Ok(words(
                    &std::iter::once(this.associations.len() as u32).chain(ids).collect::<Vec<_>>(),
                ))
            }
            name::PEER_ADDRS | name::LOCAL_ADDRS => {
                self.addresses_of(this, u32_at(sized(value, 8)?, 0), option == name::PEER_ADDRS)
            }
            name::PRIMARY_ADDR => {
                let association = u32_at(sized(value, 132)?, 0);
                let (number, paths) = self.paths_of(this, association)?;
                let primary = paths.iter().find(|path| path.is_primary);
                let mut bytes = words(&[number]);
                let known = primary.map(|path| self.with_sctp_port(number, path.remote));
                address::write_storage(known, &mut bytes);
                Ok(bytes)
            }
            _ => of_settings(&this.settings, option, value),
        }
    }

    /// The association of this number, or the one of a one-to-one socket, and its paths.
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

    fn association_of(&self, socket: &Socket, number: u32) -> Result<(u32, &Association), Failure> {
        let number = if socket.is_one_to_one() { socket.association } else { Some(number) };
        let number = number.filter(|number| socket.associations.contains(number));
        let number = number.ok_or(Failure(EINVAL))?;
        Ok((number, self.associations.get(&number).ok_or(Failure(EINVAL))?))
    }

    fn with_sctp_port(&self, number: u32, address: std::net::SocketAddr) -> std::net::SocketAddr {
        let port = self.associations.get(&number).map_or(0, |association| association.remote_port);
        (address.ip(), port).into()
    }

    /// `sctp_paddrinfo`.
    fn path_info(&self, number: u32, path: Option<&PathStatistics>) -> Vec<u8> {
        let mut bytes = words(&[number]);
        let address = path.map(|path| self.with_sctp_port(number, path.remote));
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
    fn status(&self, socket: &Socket, number: u32) -> Outcome {
        const COOKIE_WAIT: u32 = 2;
        const ESTABLISHED: u32 = 4;
        const SHUTDOWN_PENDING: u32 = 5;
        const SHUTDOWN_RECEIVED: u32 = 7;
        let (number, association) = self.association_of(socket, number)?;
        let (number, paths) = self.paths_of(socket, number).map(|(_, paths)| (number, paths))?;
        let state = match association {
            Association { is_closing: true, .. } => SHUTDOWN_PENDING,
            Association { peer_has_ended: true, .. } => SHUTDOWN_RECEIVED,
            Association { streams: None, .. } => COOKIE_WAIT,
            _ => ESTABLISHED,
        };
        let (outbound, inbound) = association.streams.unwrap_or((0, 0));
        let in_flight: u32 = paths.iter().map(|path| path.packets_in_flight).sum();
        let config = &socket.settings.config;
        let mut bytes = words(&[number, state, config.receive_buffer_bytes as u32]);
        for count in [in_flight.min(65_535) as u16, 0, inbound, outbound] {
            bytes.extend(count.to_ne_bytes());
        }
        bytes.extend(words(&[socket.settings.fragment_bytes()]));
        bytes.extend(self.path_info(number, paths.iter().find(|path| path.is_primary)));
        Ok(bytes)
    }

    /// `sctp_getaddrs`.
    fn addresses_of(&self, socket: &Socket, number: u32, of_peer: bool) -> Outcome {
        let (number, mut all) = match self.paths_of(socket, number) {
            Ok((number, paths)) if of_peer => {
                let remote = |path: &PathStatistics| self.with_sctp_port(number, path.remote);
                (number, paths.iter().map(remote).collect::<Vec<_>>())
            }
            Ok((number, paths)) => {
                let port = self.associations.get(&number).map_or(0, |known| known.port);
                (number, paths.iter().map(|path| (path.local.ip(), port).into()).collect())
            }
            Err(failure) if of_peer => return Err(failure),
            Err(_) => {
                let bound = socket.bound.as_ref().ok_or(Failure(EINVAL))?;
                let any = socket.any();
                let known = if bound.addresses.is_empty() { &[any][..] } else { &bound.addresses };
                (0, known.iter().map(|ip| (*ip, bound.port).into()).collect())
            }
        };
        all.sort_unstable();
        all.dedup();
        let mut bytes = words(&[number, all.len() as u32]);
        for address in all {
            address::write(address::in_family(address, socket.name.is_ipv6), &mut bytes);
        }
        Ok(bytes)
    }
}

/// Options whose value is what was set.
fn of_settings(settings: &Settings, option: i32, value: &[u8]) -> Outcome {
    let config = &settings.config;
    let millis = |time: Duration| time.as_millis() as u32;
    let association = if value.len() >= 4 { u32_at(value, 0) } else { 0 };
    Ok(match option {
        name::RTO_INFO => {
            let rto = &config.recovery.rto;
            words(&[association, millis(rto.initial), millis(rto.max), millis(rto.min)])
        }
        name::ASSOC_INFO => {
            let mut bytes = words(&[association]);
            bytes.extend((config.association_max_retrans as u16).to_ne_bytes());
            bytes.extend(0_u16.to_ne_bytes());
            bytes.extend(words(&[0, config.receive_buffer_bytes as u32, 60_000]));
            bytes
        }
        name::INIT_MSG => [
            config.outbound_streams,
            config.max_inbound_streams,
            config.max_init_retransmits as u16,
            settings.max_init_timeout_ms,
        ]
        .iter()
        .flat_map(|number| number.to_ne_bytes())
        .collect(),
        name::PEER_ADDR_PARAMS => {
            let mut bytes = sized(value, 132)?.to_vec();
            bytes.extend(words(&[config.heartbeat_interval.map_or(0, millis)]));
            bytes.extend((config.path_max_retrans as u16).to_ne_bytes());
            bytes.extend(words(&[config.max_packet_bytes as u32, millis(config.sack.delay)]));
            bytes
                .extend(words(&[if config.heartbeat_interval.is_some() { 1 } else { 2 } | 1 << 5]));
            bytes.resize(156, 0);
            bytes
        }
        name::DEFAULT_SEND_PARAM | name::DEFAULT_SNDINFO => of_send(settings, option, association),
        name::EVENTS => (0..14).map(|bit| u8::from(settings.events & 1 << bit != 0)).collect(),
        name::EVENT => {
            let mut bytes = sized(value, 8)?.to_vec();
            bytes[6] = u8::from(settings.events & 1 << (u16_at(value, 4) & 0xF) != 0);
            bytes
        }
        name::MAX_SEG if value.len() >= 8 => words(&[association, settings.max_segment]),
        name::MAX_SEG => words(&[settings.max_segment]),
        name::DELAYED_SACK if value.len() >= 12 => {
            words(&[association, millis(config.sack.delay), config.sack.every.into()])
        }
        name::DELAYED_SACK => words(&[association, millis(config.sack.delay)]),
        name::CONTEXT | name::MAX_BURST => {
            let default = if option == name::MAX_BURST { 4 } else { 0 };
            let kept = settings.kept.get(&option).copied().unwrap_or(default);
            if value.len() >= 8 { words(&[association, kept]) } else { words(&[kept]) }
        }
        name::REMOTE_UDP_PORT => {
            let mut bytes = sized(value, 136)?.to_vec();
            bytes[132..134].copy_from_slice(&settings.peer_port.to_be_bytes());
            bytes
        }
        _ => return Err(Failure(ENOPROTOOPT)),
    })
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
