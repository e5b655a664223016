//! Writes IP headers.

use std::net::IpAddr;
use std::ops::Deref;

use etherparse::{IpNumber, Ipv4Header, Ipv6FlowLabel, Ipv6Header};
use rexmit_core::{Route, config};
use thiserror::Error;

config! {
    const
    /// The fields that all IP headers of a protocol share.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct HeaderConfig {
        /// The IANA protocol number: 6 for TCP, 132 for SCTP.
        pub protocol: u8,
        /// IPv4's time to live, IPv6's hop limit. Default 64 (RFC 1700).
        pub hop_limit: u8,
        /// DSCP and ECN: IPv4's type of service, IPv6's traffic class. Default 0.
        pub traffic_class: u8,
    }
}

/// Why a header cannot be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// One address is IPv4, the other IPv6.
    #[error("the addresses are of different families")]
    TwoFamilies,
    /// The packet would be longer than IP allows; its length in bytes.
    #[error("{0} bytes do not fit into an IP packet")]
    TooLong(usize),
}

/// The header of one packet, as bytes. It lives on the stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    bytes: [u8; Ipv6Header::LEN],
    len: usize,
}

impl HeaderConfig {
    /// The fields for the packets of an IP protocol (132 for SCTP, 6 for TCP): hop limit 64, traffic class 0.
    #[must_use]
    pub const fn new(protocol: u8) -> Self {
        Self { protocol, hop_limit: 64, traffic_class: 0 }
    }

    /// The length in bytes of a header to or from this address.
    #[must_use]
    pub const fn header_bytes(address: IpAddr) -> usize {
        match address {
            IpAddr::V4(_) => Ipv4Header::MIN_LEN,
            IpAddr::V6(_) => Ipv6Header::LEN,
        }
    }

    /// The header of a packet over `route` that carries `payload_bytes` bytes. The ports of the route are
    /// ignored.
    ///
    /// ```
    /// use rexmit::tun::ip::{HeaderConfig, Route};
    /// let route = Route { local: "10.0.0.1:0".parse()?, remote: "10.0.0.2:0".parse()? };
    /// let header = HeaderConfig::new(6).header(route, 20)?;
    /// assert_eq!(header[..4], [0x45, 0, 0, 40]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// See [`HeaderError`].
    pub fn header(&self, route: Route, payload_bytes: usize) -> Result<Header, HeaderError> {
        let too_long = |_| HeaderError::TooLong(payload_bytes);
        let payload_length = u16::try_from(payload_bytes).map_err(too_long)?;
        match (route.local.ip(), route.remote.ip()) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let (source, destination) = (source.octets(), destination.octets());
                let protocol = IpNumber(self.protocol);
                let mut header =
                    Ipv4Header::new(payload_length, self.hop_limit, protocol, source, destination)
                        .map_err(|_| HeaderError::TooLong(payload_bytes))?;
                header.dont_fragment = true;
                header.dscp = (self.traffic_class >> 2).try_into().unwrap_or_default();
                header.ecn = (self.traffic_class & 3).try_into().unwrap_or_default();
                header.header_checksum = header.calc_header_checksum();
                Ok(Header::new(&header.to_bytes()))
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                let header = Ipv6Header {
                    traffic_class: self.traffic_class,
                    flow_label: Ipv6FlowLabel::ZERO,
                    payload_length,
                    next_header: IpNumber(self.protocol),
                    hop_limit: self.hop_limit,
                    source: source.octets(),
                    destination: destination.octets(),
                };
                Ok(Header::new(&header.to_bytes()))
            }
            _ => Err(HeaderError::TwoFamilies),
        }
    }
}

impl Header {
    fn new(header: &[u8]) -> Self {
        let mut bytes = [0; Ipv6Header::LEN];
        bytes[..header.len()].copy_from_slice(header);
        Self { bytes, len: header.len() }
    }
}

impl Deref for Header {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(local: &str, remote: &str) -> Route {
        let address = |text: &str| (text.parse::<IpAddr>().unwrap(), 7).into();
        Route { local: address(local), remote: address(remote) }
    }

    #[test]
    fn an_ipv4_header_is_the_one_of_rfc_791() {
        let config = HeaderConfig { traffic_class: 0xb9, ..HeaderConfig::new(6) };
        let header = config.header(route("10.0.0.1", "192.0.2.200"), 1000).unwrap();
        #[rustfmt::skip]
        let fields = [
            0x45, 0xb9, 0x03, 0xfc, // 20 + 1000 bytes
            0, 0, 0x40, 0, // DF
            64, 6,
        ];
        assert_eq!(header[..10], fields);
        assert_eq!(header[12..], [10, 0, 0, 1, 192, 0, 2, 200]);
        // RFC 791 §3.1: the ones' complement sum of all words, the checksum included.
        let words = header.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
        let sum: u32 = words.sum();
        assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
    }

    #[test]
    fn an_ipv6_header_is_the_one_of_rfc_8200() {
        let config = HeaderConfig { hop_limit: 3, traffic_class: 0x12, ..HeaderConfig::new(132) };
        let header = config.header(route("fd00::1", "fd00::2"), 8).unwrap();
        assert_eq!(header[..8], [0x61, 0x20, 0, 0, 0, 8, 132, 3]);
        assert_eq!((header[8], header[23], header[39], header.len()), (0xfd, 1, 2, 40));
    }

    #[test]
    fn an_unsendable_packet_has_no_header() {
        let config = HeaderConfig::new(6);
        let two = config.header(route("10.0.0.1", "fd00::2"), 8);
        assert_eq!(two, Err(HeaderError::TwoFamilies));
        let v4 = route("10.0.0.1", "10.0.0.2");
        assert!(config.header(v4, 65_515).is_ok());
        assert_eq!(config.header(v4, 65_516), Err(HeaderError::TooLong(65_516)));
        let v6 = route("fd00::1", "fd00::2");
        assert!(config.header(v6, 65_535).is_ok());
        assert_eq!(config.header(v6, 65_536), Err(HeaderError::TooLong(65_536)));
    }
}
