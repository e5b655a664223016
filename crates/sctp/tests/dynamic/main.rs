//! Authenticated chunks (RFC 4895), and addresses that are added and deleted (RFC 5061). The endpoint is at 192.0.2.1,
//! the peer at 192.0.2.2.

#[path = "../kit/mod.rs"]
mod kit;

mod answers;
mod authentication;
mod bad_input;
mod peer;
mod random;
mod requests;

use std::net::IpAddr;

use kit::*;

fn ip(host: u8) -> IpAddr {
    address(host, 0).ip()
}

const ANY: IpAddr = IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED);
