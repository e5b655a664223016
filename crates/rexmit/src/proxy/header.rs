//! The header of the PROXY protocol, version 2 ("The PROXY protocol, Versions 1 & 2", §2.2), which reports
//! the client's address before its data.

use std::net::SocketAddr;

/// The signature at the start of every header.
const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
/// Version 2, command PROXY: the connection was made on behalf of another host.
const VERSION_AND_COMMAND: u8 = 0x21;
/// TCP over IPv4, TCP over IPv6.
const FAMILIES: [u8; 2] = [0x11, 0x21];

/// The header of a connection from `client` to `public_address`, which must be of one family.
pub(super) fn header(client: SocketAddr, public_address: SocketAddr) -> Vec<u8> {
    let mut addresses = Vec::with_capacity(36);
    let family = match (client, public_address) {
        (SocketAddr::V4(client), SocketAddr::V4(public_address)) => {
            addresses.extend(client.ip().octets());
            addresses.extend(public_address.ip().octets());
            FAMILIES[0]
        }
        _ => {
            addresses.extend(as_v6(client));
            addresses.extend(as_v6(public_address));
            FAMILIES[1]
        }
    };
    addresses.extend(client.port().to_be_bytes());
    addresses.extend(public_address.port().to_be_bytes());
    let mut header = SIGNATURE.to_vec();
    header.extend([VERSION_AND_COMMAND, family, 0, addresses.len() as u8]);
    header.extend(addresses);
    header
}

fn as_v6(address: SocketAddr) -> [u8; 16] {
    match address {
        SocketAddr::V4(address) => address.ip().to_ipv6_mapped().octets(),
        SocketAddr::V6(address) => address.ip().octets(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Written down by the layout of §2.2, byte by byte.
    #[test]
    fn the_header_has_the_layout_of_the_specification() {
        let signature = [0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A];
        let v4 = header("192.0.2.7:51234".parse().unwrap(), "198.51.100.1:22".parse().unwrap());
        assert_eq!(v4.len(), 28);
        assert_eq!(v4[..12], signature);
        assert_eq!(v4[12..16], [0x21, 0x11, 0, 12]);
        assert_eq!(v4[16..24], [192, 0, 2, 7, 198, 51, 100, 1]);
        assert_eq!(v4[24..], [0xC8, 0x22, 0, 22]);

        let v6 = header("[2001:db8::7]:256".parse().unwrap(), "[2001:db8::1]:443".parse().unwrap());
        assert_eq!(v6.len(), 52);
        assert_eq!(v6[..12], signature);
        assert_eq!(v6[12..16], [0x21, 0x21, 0, 36]);
        let address = |last| [0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last];
        assert_eq!(v6[16..32], address(7));
        assert_eq!(v6[32..48], address(1));
        assert_eq!(v6[48..], [1, 0, 1, 0xBB]);
    }
}
