//! Setting socket options.

use std::time::Duration;

use libc::{EFAULT, EINVAL, ENOPROTOOPT, EOPNOTSUPP, SOL_SOCKET};

use super::super::notifications::Type;
use super::super::option_names as name;
use super::super::settings::{Settings, Versions};
use super::super::{Engine, Failure, Outcome};
use super::{
    KEPT, UDP_ENCAPS_BYTES, UDP_PORT_AT, assoc_value, int, other_number, refused, sized, streams,
    u16_at, u32_at,
};
use crate::protocol::{IPPROTO_SCTP, address, bytes_at};

/// Bytes of `sctp_event_subscribe`.
const EVENTS_BYTES: usize = 14;
/// The longest delay of SACKs (RFC 9260 §6.2).
const MAX_SACK_DELAY_MS: u32 = 500;

/// The sizes that the value of an option may have, as in Linux; empty for options that take longer ones.
const fn sizes(option: i32) -> &'static [usize] {
    match option {
        name::AUTO_CLOSE
        | name::ADAPTATION_LAYER
        | name::FRAGMENT_INTERLEAVE
        | name::PARTIAL_DELIVERY_POINT => &[4],
        name::INIT_MSG | name::CONTEXT | name::RECONFIG_SUPPORTED | name::ENABLE_RESET => &[8],
        name::MAX_SEG | name::MAX_BURST => &[4, 8],
        name::DELAYED_SACK => &[8, 12],
        name::RTO_INFO | name::DEFAULT_SNDINFO => &[16],
        name::ASSOC_INFO => &[20],
        name::DEFAULT_SEND_PARAM => &[32],
        name::REMOTE_UDP_PORT => &[UDP_ENCAPS_BYTES],
        _ => &[],
    }
}

/// Whether the option takes the number of an association or of all future ones (`SCTP_FUTURE_ASSOC`), but not of all present
/// ones.
const fn is_for_future(option: i32) -> bool {
    matches!(
        option,
        name::RTO_INFO
            | name::ASSOC_INFO
            | name::PEER_ADDR_PARAMS
            | name::MAX_SEG
            | name::RECONFIG_SUPPORTED
            | name::INTERLEAVING
            | name::REMOTE_UDP_PORT
    )
}

/// Options that are on or off; others of [`KEPT`] are numbers.
const fn is_switch(option: i32) -> bool {
    !matches!(option, name::AUTO_CLOSE | name::ADAPTATION_LAYER | name::PARTIAL_DELIVERY_POINT)
}

impl Engine {
    /// Sets an option; returns the marks that the library has to know.
    pub(in super::super) fn set_option(
        &mut self,
        socket: u64,
        (level, option): (i32, i32),
        value: &[u8],
    ) -> Outcome {
        /// The greatest number that does not name an association (`SCTP_ALL_ASSOC`).
        const ALL_ASSOCIATIONS: i32 = 2;
        let this = self.sockets.get(&socket).ok_or(Failure(EINVAL))?;
        if level == IPPROTO_SCTP {
            if option == name::AUTO_CLOSE && this.is_one_to_one() {
                return Err(Failure(EOPNOTSUPP));
            }
            let sizes = sizes(option);
            if !sizes.is_empty() && !sizes.contains(&value.len()) {
                return Err(Failure(EINVAL));
            }
            // Such a value changes nothing.
            let is_idle = option == name::DELAYED_SACK && value.len() == 12 && value[4..] == [0; 8];
            let most = if is_for_future(option) { 0 } else { ALL_ASSOCIATIONS };
            let unknown = other_number(this, option, value).filter(|_| !is_idle);
            if unknown.is_some_and(|number| number as i32 > most || number != 0 && most == 0) {
                return Err(Failure(EINVAL));
            }
            if option == name::REUSE_PORT && !this.is_one_to_one() {
                return Err(Failure(EOPNOTSUPP));
            } else if option == name::REUSE_PORT && this.bound.is_some() {
                return Err(Failure(EFAULT));
            }
            refused::check_set(option, value.len())?;
            match option {
                name::RESET_STREAMS => return streams::reset(self, socket, value),
                name::RESET_ASSOC | name::ADD_STREAMS => {
                    // Not implemented: as by a peer that does not support it, if there is one.
                    let length = if option == name::ADD_STREAMS { 8 } else { 4 };
                    self.association_of(this, u32_at(sized(value, length)?, 0))?;
                    return Err(Failure(ENOPROTOOPT));
                }
                name::PRIMARY_ADDR => return set_primary(self, socket, sized(value, 132)?),
                name::PEER_ADDR_PARAMS => check_path_address(self, socket, value)?,
                _ => {}
            }
        }
        let this = self.sockets.get_mut(&socket).ok_or(Failure(EINVAL))?;
        match level {
            SOL_SOCKET => set_of_socket(&mut this.settings, option, value)?,
            IPPROTO_SCTP => set_of_sctp(&mut this.settings, option, value)?,
            libc::IPPROTO_IPV6 if option == libc::IPV6_V6ONLY => {
                let is_on = int(value)? != 0;
                if !this.name.is_ipv6 || this.bound.is_some() {
                    return Err(Failure(EINVAL));
                }
                this.settings.versions = if is_on { Versions::V6 } else { Versions::Both };
            }
            _ => return Err(Failure(ENOPROTOOPT)),
        };
        Ok(this.settings.marks().to_number().to_ne_bytes().to_vec())
    }
}

/// `sctp_prim`: the path of new data.
fn set_primary(engine: &mut Engine, socket: u64, value: &[u8]) -> Outcome {
    let this = engine.sockets.get(&socket).ok_or(Failure(EINVAL))?;
    let (wanted, _) = address::parse(&value[4..]).ok_or(Failure(EINVAL))?;
    let (number, path) = engine.path_to(this, u32_at(value, 0), wanted)?;
    let known = engine.associations.get(&number).ok_or(Failure(EINVAL))?;
    let (port, id, now) = (known.port, known.id, engine.now);
    let port = engine.ports.touch(port).ok_or(Failure(EINVAL))?;
    port.endpoint.set_primary(now, id, path).map_err(|_| Failure(EINVAL))?;
    Ok(Vec::new())
}

/// Fails if the value of `SCTP_PEER_ADDR_PARAMS` names an address that is none of the peer of its association.
pub(super) fn check_path_address(
    engine: &Engine,
    socket: u64,
    value: &[u8],
) -> Result<(), Failure> {
    let this = engine.sockets.get(&socket).ok_or(Failure(EINVAL))?;
    let value = sized(value, 132)?;
    if u16_at(value, 4) == 0 {
        return Ok(());
    }
    let (address, _) = address::parse(&value[4..]).ok_or(Failure(EINVAL))?;
    if address.ip().to_canonical().is_unspecified() {
        return Ok(());
    }
    engine.path_to(this, u32_at(value, 0), address).map(drop)
}

fn set_of_socket(settings: &mut Settings, option: i32, value: &[u8]) -> Result<(), Failure> {
    match option {
        libc::SO_LINGER => {
            let value = sized(value, 8)?;
            let (is_on, seconds) = (u32_at(value, 0) != 0, u32_at(value, 4));
            settings.aborts_on_close = is_on && seconds == 0;
            settings.lingers = is_on && seconds != 0;
        }
        // As the kernel, which doubles what is set.
        libc::SO_RCVBUF => settings.set_receive_buffer((int(value)? as usize).saturating_mul(2)),
        libc::SO_SNDBUF => settings.set_send_buffer((int(value)? as usize).saturating_mul(2)),
        libc::SO_RCVLOWAT => {
            settings.low_water = match int(value)? as i32 {
                0 => 1,
                ..0 => i32::MAX,
                bytes => bytes,
            };
        }
        libc::SO_REUSEPORT => settings.reuses_port = int(value)? != 0,
        _ => return Err(Failure(ENOPROTOOPT)),
    }
    Ok(())
}

fn set_of_sctp(settings: &mut Settings, option: i32, value: &[u8]) -> Result<(), Failure> {
    if KEPT.iter().any(|(kept, _)| *kept == option) {
        let number = int(value)?;
        let number = if is_switch(option) { u32::from(number != 0) } else { number };
        settings.kept.insert(option, number);
        return Ok(());
    }
    match option {
        name::RTO_INFO => return set_rto(settings, sized(value, 16)?),
        name::INIT_MSG => return set_init(settings, sized(value, 8)?),
        name::ASSOC_INFO => {
            let most = u16_at(sized(value, 20)?, 4);
            if most != 0 {
                settings.config.failure.association_max_retrans = most.into();
            }
            if u32_at(value, 16) != 0 {
                settings.cookie_life_ms = u32_at(value, 16);
            }
        }
        name::PEER_ADDR_PARAMS => return set_path(settings, value),
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
            if value.len() > EVENTS_BYTES {
                return Err(Failure(EINVAL));
            }
            // The events behind a shorter value stay as they are.
            for (&byte, bit) in value.iter().zip(0..) {
                let others = settings.events & !(1 << bit);
                settings.events = others | u16::from(byte != 0) << bit;
            }
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
        name::RECONFIG_SUPPORTED | name::ENABLE_RESET => {
            return streams::allow_resets(settings, option, sized(value, 8)?);
        }
        name::REMOTE_UDP_PORT => {
            let port = u16::from_be_bytes(bytes_at(sized(value, UDP_ENCAPS_BYTES)?, UDP_PORT_AT));
            if port == 0 {
                // Without encapsulation there would be no way to send.
                return Err(Failure(EOPNOTSUPP));
            }
            settings.peer_port = port;
        }
        _ => return Err(Failure(ENOPROTOOPT)),
    }
    Ok(())
}

/// `sctp_initmsg`.
fn set_init(settings: &mut Settings, value: &[u8]) -> Result<(), Failure> {
    let or = |at: usize, default: u16| match u16_at(value, at) {
        0 => default,
        number => number,
    };
    let config = &mut settings.config;
    config.streams.outbound = or(0, config.streams.outbound);
    config.streams.max_inbound = or(2, config.streams.max_inbound);
    config.handshake.max_init_retransmits =
        or(4, config.handshake.max_init_retransmits as u16).into();
    settings.max_init_timeout_ms = or(6, settings.max_init_timeout_ms);
    Ok(())
}

/// Takes an `sctp_sack_info`, or the `sctp_assoc_value` of older versions of the interface.
fn set_delayed_sack(settings: &mut Settings, value: &[u8]) -> Result<(), Failure> {
    let (delay, every) = match value.len() {
        12.. => (u32_at(value, 4), u32_at(value, 8)),
        8.. => (u32_at(value, 4), 0),
        _ => return Err(Failure(EINVAL)),
    };
    if delay > MAX_SACK_DELAY_MS {
        return Err(Failure(EINVAL));
    }
    if every != 0 {
        settings.config.sack.every = every.min(255) as u8;
    }
    // A SACK for every packet needs no delay, and 0 changes none.
    if delay != 0 && every != 1 {
        settings.set_sack_delay(delay);
    }
    Ok(())
}

fn set_rto(settings: &mut Settings, value: &[u8]) -> Result<(), Failure> {
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
    Ok(())
}

/// `sctp_paddrparams`, for the paths of future associations.
fn set_path(settings: &mut Settings, value: &[u8]) -> Result<(), Failure> {
    const HEARTBEATS: u32 = 1;
    const NO_HEARTBEATS: u32 = 2;
    const HEARTBEAT_NOW: u32 = 1 << 2;
    const MTU_DISCOVERY: u32 = 1 << 3;
    const SACK_DELAY: u32 = 1 << 5;
    const NO_SACK_DELAY: u32 = 1 << 6;
    // A flag beside the one that says the opposite.
    const OPPOSITES: [u32; 3] = [
        HEARTBEATS | NO_HEARTBEATS,
        MTU_DISCOVERY | MTU_DISCOVERY << 1,
        SACK_DELAY | NO_SACK_DELAY,
    ];
    const LEAST_MTU: u32 = 512;
    // With and without the members of RFC 6458 §8.1.12 that came later.
    if ![152, 156].contains(&value.len()) {
        return Err(Failure(EINVAL));
    }
    let (mtu, sack_delay, flags) = (u32_at(value, 138), u32_at(value, 142), u32_at(value, 146));
    let has_opposites = OPPOSITES.iter().any(|both| flags & both == *both);
    // A HEARTBEAT now is for an association.
    let is_futile = flags & HEARTBEAT_NOW != 0 && u32_at(value, 0) == 0;
    if has_opposites || is_futile || sack_delay > MAX_SACK_DELAY_MS || (mtu != 0 && mtu < LEAST_MTU)
    {
        return Err(Failure(EINVAL));
    }
    let config = &mut settings.config;
    if flags & NO_HEARTBEATS != 0 {
        config.failure.heartbeat_interval = None;
    } else if flags & HEARTBEATS != 0 {
        let interval = Duration::from_millis(u32_at(value, 132).into());
        config.failure.heartbeat_interval = Some(match interval {
            Duration::ZERO => config.failure.heartbeat_interval.unwrap_or(Duration::from_secs(30)),
            interval => interval,
        });
    }
    if u16_at(value, 136) != 0 {
        config.failure.path_max_retrans = u16_at(value, 136).into();
    }
    if flags & SACK_DELAY != 0 {
        settings.set_sack_delay(sack_delay);
    }
    Ok(())
}
