//! `sockaddr_in` and `sockaddr_in6`, as bytes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use super::bytes_at;

/// `AF_INET`.
pub const AF_INET: u16 = 2;
/// `AF_INET6`.
pub const AF_INET6: u16 = 10;
/// Bytes of a `sockaddr_in`.
pub const IPV4_BYTES: usize = 16;
/// Bytes of a `sockaddr_in6`.
pub const IPV6_BYTES: usize = 28;
/// Bytes of a `sockaddr_storage`.
pub const STORAGE_BYTES: usize = 128;

/// The address at the beginning of `bytes`, and its length.
#[must_use]
pub fn parse(bytes: &[u8]) -> Option<(SocketAddr, usize)> {
    let port = u16::from_be_bytes(bytes_at(bytes, 2));
    match u16::from_ne_bytes(bytes_at(bytes, 0)) {
        AF_INET if bytes.len() >= IPV4_BYTES => {
            let ip = Ipv4Addr::from(bytes_at::<4>(bytes, 4));
            Some((SocketAddrV4::new(ip, port).into(), IPV4_BYTES))
        }
        AF_INET6 if bytes.len() >= IPV6_BYTES => {
            let ip = Ipv6Addr::from(bytes_at::<16>(bytes, 8));
            let scope = u32::from_ne_bytes(bytes_at(bytes, 24));
            Some((SocketAddrV6::new(ip, port, 0, scope).into(), IPV6_BYTES))
        }
        _ => None,
    }
}

/// All addresses in `bytes`; `None` for no address, and for other content.
#[must_use]
pub fn parse_all(mut bytes: &[u8]) -> Option<Vec<SocketAddr>> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let (address, length) = parse(bytes)?;
        all.push(address);
        bytes = &bytes[length..];
    }
    (!all.is_empty()).then_some(all)
}

/// Appends `address` as `sockaddr_in` or `sockaddr_in6`.
pub fn write(address: SocketAddr, to: &mut Vec<u8>) {
    match address {
        SocketAddr::V4(address) => {
            to.extend(AF_INET.to_ne_bytes());
            to.extend(address.port().to_be_bytes());
            to.extend(address.ip().octets());
            to.extend([0; 8]);
        }
        SocketAddr::V6(address) => {
            to.extend(AF_INET6.to_ne_bytes());
            to.extend(address.port().to_be_bytes());
            to.extend([0; 4]);
            to.extend(address.ip().octets());
            to.extend(address.scope_id().to_ne_bytes());
        }
    }
}

/// Writes `address` as `sockaddr_in6`, one of IPv4 mapped.
pub fn copy_as_ipv6(address: SocketAddr, to: &mut [u8; IPV6_BYTES]) {
    let (ip, scope) = match address {
        SocketAddr::V4(address) => (address.ip().to_ipv6_mapped(), 0),
        SocketAddr::V6(address) => (*address.ip(), address.scope_id()),
    };
    to[..2].copy_from_slice(&AF_INET6.to_ne_bytes());
    to[2..4].copy_from_slice(&address.port().to_be_bytes());
    to[8..24].copy_from_slice(&ip.octets());
    to[24..].copy_from_slice(&scope.to_ne_bytes());
}

/// Appends `address` as `sockaddr_storage`; zeros without an address.
pub fn write_storage(address: Option<SocketAddr>, to: &mut Vec<u8>) {
    let end = to.len() + STORAGE_BYTES;
    if let Some(address) = address {
        write(address, to);
    }
    to.resize(end, 0);
}

/// The address in the form that a socket of the family `AF_INET6`, or of `AF_INET`, shows.
#[must_use]
pub fn in_family(address: SocketAddr, is_ipv6: bool) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if is_ipv6 => SocketAddr::new(ip.to_ipv6_mapped().into(), address.port()),
        _ => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_it_was_written() {
        let all = ["192.0.2.1:5000", "[2001:db8::1]:9"].map(|text| text.parse().expect("valid"));
        let mut bytes = Vec::new();
        for address in all {
            write(address, &mut bytes);
        }
        assert_eq!(parse_all(&bytes).as_deref(), Some(&all[..]));
        assert_eq!(parse_all(&bytes[..bytes.len() - 1]), None);
        assert_eq!(parse_all(&[]), None);
    }
}
