//! Parsers of option values, in netem's notation: `50ms`, `5%`, `10mbit`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::time::Duration;

use crate::failure::{Failure, Kind};
use crate::names::unknown;
use clap::builder::TypedValueParser;
use rexmit::emulator::{LinkConfig, netem};
use rexmit::recovery::{RecoveryConfig, TCP_PROFILES};
use rexmit::{AssociationConfig, ENCAPSULATION_PORT, MessageConfig, PROFILES};

/// `50ms`, `1.5s`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    netem::parse_duration(text).map_err(|error| error.to_string())
}

/// A duration above zero.
pub(crate) fn interval(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("it must be longer than 0".into()),
        interval => Ok(interval),
    }
}

/// The longest time of `--batch`.
const MAX_BATCH: Duration = LinkConfig::MAX_BATCH;

/// A time in which packets or messages gather.
pub(crate) fn batch(text: &str) -> Result<Duration, String> {
    match interval(text)? {
        batch if batch <= MAX_BATCH => Ok(batch),
        _ => Err(format!("at most {}", netem::format_duration(MAX_BATCH))),
    }
}

/// The number of addresses of `--addresses`: each has a socket and a timer.
pub(crate) fn addresses() -> impl TypedValueParser<Value = u32> {
    clap::value_parser!(u32).range(1..=4096)
}

/// The number of shards of `--shards`.
pub(crate) fn shards() -> impl TypedValueParser<Value = usize> {
    clap::value_parser!(u32).range(1..=rexmit::MAX_SHARDS as i64).map(|shards| shards as usize)
}

/// `count` consecutive addresses, the first of which is `first`.
pub(crate) fn consecutive(first: IpAddr, count: u32) -> Result<Vec<IpAddr>, Failure> {
    let nth = |number: u32| match first {
        IpAddr::V4(ip) => ip.to_bits().checked_add(number).map(|it| Ipv4Addr::from_bits(it).into()),
        IpAddr::V6(ip) => {
            ip.to_bits().checked_add(number.into()).map(|it| Ipv6Addr::from_bits(it).into())
        }
    };
    (0..count).map(nth).collect::<Option<_>>().ok_or_else(|| {
        Failure::new(
            Kind::Usage,
            format!("--addresses: there are fewer than {count} from {first} on"),
        )
    })
}

/// Parses `5%` or `0.1%` as a number from 0 to 1.
pub(crate) fn probability(text: &str) -> Result<f64, String> {
    netem::parse_probability(text).map_err(|error| error.to_string())
}

/// Parses a size above zero: bytes such as `100`, or `64kb`.
pub(crate) fn size(text: &str) -> Result<usize, String> {
    let bytes = match text.parse() {
        Ok(bytes) => bytes,
        Err(_) => netem::parse_size(text).map_err(|error| error.to_string())?,
    };
    if bytes == 0 { Err("it must be above 0".into()) } else { Ok(bytes) }
}

/// The size of a message.
pub(crate) fn message_size(text: &str) -> Result<usize, String> {
    let most = MessageConfig::default().max_bytes;
    let bytes = size(text)?;
    if bytes > most { Err(format!("a message has at most {most} bytes")) } else { Ok(bytes) }
}

/// `ADDRESS:PORT` or `ADDRESS`, where the address may be a name, which is resolved later.
#[derive(Clone, Debug)]
pub(crate) struct Host {
    name: String,
    port: u16,
}

/// Parses a [`Host`].
pub(crate) fn host(text: &str) -> Result<Host, String> {
    const EXPECTED: &str =
        "expected ADDRESS:PORT, such as 192.0.2.1:9899, [2001:db8::1]:9899 or localhost:9899";
    let host = |name: &str, port| Host { name: name.to_owned(), port };
    if text.parse::<IpAddr>().is_ok() {
        return Ok(host(text, ENCAPSULATION_PORT));
    }
    let (name, port) = match text.rsplit_once(':') {
        Some((name, port)) => (name, port.parse().map_err(|_| EXPECTED)?),
        None => (text, ENCAPSULATION_PORT),
    };
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    match address {
        Some(address) if address.parse::<IpAddr>().is_ok() => Ok(host(address, port)),
        None if !name.is_empty() && !name.contains([':', '[', ']']) => Ok(host(name, port)),
        _ => Err(EXPECTED.into()),
    }
}

impl Host {
    /// The address to listen on.
    pub(crate) fn local(&self) -> Result<SocketAddr, Failure> {
        Ok(self.resolve(Kind::Address)?[0])
    }

    /// The address of a peer; of several the first.
    pub(crate) fn peer(&self) -> Result<SocketAddr, Failure> {
        Ok(self.peers()?[0])
    }

    /// The addresses of a peer, at least one.
    pub(crate) fn peers(&self) -> Result<Vec<SocketAddr>, Failure> {
        self.resolve(Kind::Peer)
    }

    fn resolve(&self, kind: Kind) -> Result<Vec<SocketAddr>, Failure> {
        let failed = |reason: &dyn std::fmt::Display| {
            Failure::new(kind, format!("the host `{}` is not known: {reason}", self.name))
        };
        let found = (self.name.as_str(), self.port).to_socket_addrs();
        let found: Vec<_> = found.map_err(|error| failed(&error))?.collect();
        if found.is_empty() { Err(failed(&"it has no address")) } else { Ok(found) }
    }
}

/// Parses an address to listen on: a port alone is one of 127.0.0.1.
pub(crate) fn local_address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.parse::<u16>() {
        return Ok((Ipv4Addr::LOCALHOST, port).into());
    }
    text.parse().map_err(|_| "give a port of this machine, or an IP address and port".into())
}

/// The association configuration of the recovery profile of this name.
pub(crate) fn profile(text: &str) -> Result<AssociationConfig, String> {
    AssociationConfig::profile(text).ok_or_else(|| {
        if RecoveryConfig::tcp_profile(text).is_some() {
            return format!(
                "`{text}` is a profile of TCP, for `proxy`, `demo --tcp` and studies: choose one of SCTP, such as \
                 interactive (see `rexmit profiles`)"
            );
        }
        let known = PROFILES.iter().map(|(name, _)| *name);
        format!("{} (see `rexmit profiles`)", unknown("profile", text, known))
    })
}

/// The recovery configuration of the TCP profile of this name.
pub(crate) fn tcp_profile(name: &str) -> Result<RecoveryConfig, String> {
    RecoveryConfig::tcp_profile(name).ok_or_else(|| {
        if AssociationConfig::profile(name).is_some() {
            return format!(
                "`{name}` is a profile of SCTP, for `listen`, `connect`, `perf` and `demo`: choose one of TCP, such as \
                 tcp-interactive (see `rexmit profiles`)"
            );
        }
        unknown("TCP profile", name, TCP_PROFILES.iter().map(|(name, _)| *name))
    })
}

/// An IP network: its address, all bits beyond the prefix zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Network {
    pub(crate) address: IpAddr,
    pub(crate) prefix: u8,
}

impl Network {
    /// The address of the first host.
    pub(crate) fn first(&self) -> IpAddr {
        self.host(1)
    }

    /// The address of the second host.
    pub(crate) fn second(&self) -> IpAddr {
        self.host(2)
    }

    fn host(&self, number: u8) -> IpAddr {
        match self.address {
            IpAddr::V4(address) => {
                Ipv4Addr::from_bits(address.to_bits() + u32::from(number)).into()
            }
            IpAddr::V6(address) => {
                Ipv6Addr::from_bits(address.to_bits() + u128::from(number)).into()
            }
        }
    }
}

/// Parses a network such as `10.90.0.0/24` or `fd90::/64`; it must have room for two hosts.
pub(crate) fn network(text: &str) -> Result<Network, String> {
    const EXPECTED: &str = "expected a network such as 10.90.0.0/24 or fd90::/64";
    let (address, prefix) = text.split_once('/').ok_or(EXPECTED)?;
    let address: IpAddr = address.parse().map_err(|_| EXPECTED)?;
    let prefix: u8 = prefix.parse().map_err(|_| EXPECTED)?;
    let longest = if address.is_ipv4() { 30 } else { 126 };
    if !(1..=longest).contains(&prefix) {
        return Err(format!("its prefix must be from 1 to {longest}; {EXPECTED}"));
    }
    let address = match address {
        IpAddr::V4(address) => {
            Ipv4Addr::from_bits(address.to_bits() >> (32 - prefix) << (32 - prefix)).into()
        }
        IpAddr::V6(address) => {
            Ipv6Addr::from_bits(address.to_bits() >> (128 - prefix) << (128 - prefix)).into()
        }
    };
    Ok(Network { address, prefix })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_reached_from_this_machine_only() {
        assert_eq!(local_address("9100"), Ok(([127, 0, 0, 1], 9100).into()));
        assert_eq!(local_address("192.0.2.1:9100"), Ok(([192, 0, 2, 1], 9100).into()));
        assert_eq!(local_address("[::]:9100").map(|it| it.port()), Ok(9100));
        for wrong in ["", "65536", "-1", "localhost:9100", "127.0.0.1", ":9100"] {
            assert!(local_address(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_host_has_a_port_or_the_one_of_encapsulation() {
        let table = [
            ("192.0.2.1:7", "192.0.2.1:7"),
            ("192.0.2.1", "192.0.2.1:9899"),
            ("2001:db8::1", "[2001:db8::1]:9899"),
            ("[2001:db8::1]:7", "[2001:db8::1]:7"),
        ];
        for (text, address) in table {
            assert_eq!(host(text).unwrap().local().unwrap(), address.parse().unwrap());
        }
        assert_eq!(host("localhost:7").unwrap().peer().unwrap().port(), 7);
        for wrong in ["", ":7", "host:port", "host:70000", "[host]:7", "2001:db8::1]:7", "a:b:7"] {
            host(wrong).unwrap_err();
        }
    }

    #[test]
    fn a_network_has_a_first_and_a_second_host() {
        let table = [
            ("10.90.0.0/24", "10.90.0.1", "10.90.0.2"),
            ("10.90.7.77/16", "10.90.0.1", "10.90.0.2"),
            ("192.0.2.252/30", "192.0.2.253", "192.0.2.254"),
            ("fd90::/64", "fd90::1", "fd90::2"),
        ];
        for (text, first, second) in table {
            let network = network(text).unwrap();
            assert_eq!(network.first(), first.parse::<IpAddr>().unwrap());
            assert_eq!(network.second(), second.parse::<IpAddr>().unwrap());
        }
        for wrong in ["10.90.0.0", "10.90.0.0/31", "10.90.0.0/0", "fd90::/127", "a/24", "1.2.3.4/x"]
        {
            network(wrong).unwrap_err();
        }
    }
}
