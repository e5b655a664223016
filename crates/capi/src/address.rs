//! Transport addresses, the same on every system.

use std::ffi::c_char;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

use crate::status::rexmit_status::{self, *};
use crate::status::{Failure, Outcome, deref, guard, slice, store, words};

/// Longest text of `rexmit_address_format`, with the zero byte that ends it.
#[expect(dead_code, reason = "for C")]
pub const REXMIT_ADDRESS_TEXT: usize = 64;

/// An IP address and a UDP port.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct rexmit_address {
    /// 4 or 6; 0 in an address that is not set.
    pub family: u8,
    /// The address in network byte order; IPv4 in the first four bytes.
    pub bytes: [u8; 16],
    /// UDP port, in host byte order.
    pub port: u16,
    /// Scope of a link-local IPv6 address (the index of its interface); else 0.
    pub scope: u32,
}

impl rexmit_address {
    pub(crate) fn to_socket(self) -> Result<SocketAddr, Failure> {
        match self.family {
            4 => {
                let [a, b, c, d, ..] = self.bytes;
                Ok((Ipv4Addr::new(a, b, c, d), self.port).into())
            }
            6 => Ok(SocketAddrV6::new(Ipv6Addr::from(self.bytes), self.port, 0, self.scope).into()),
            other => Err(Failure::new(
                REXMIT_INVALID_ARGUMENT,
                format!("the family of an address is 4 or 6, not {other}"),
            )),
        }
    }
}

impl From<SocketAddr> for rexmit_address {
    fn from(address: SocketAddr) -> Self {
        let mut bytes = [0; 16];
        let (family, scope) = match address {
            SocketAddr::V4(v4) => {
                bytes[..4].copy_from_slice(&v4.ip().octets());
                (4, 0)
            }
            SocketAddr::V6(v6) => {
                bytes = v6.ip().octets();
                (6, v6.scope_id())
            }
        };
        Self { family, bytes, port: address.port(), scope }
    }
}

impl From<IpAddr> for rexmit_address {
    fn from(address: IpAddr) -> Self {
        SocketAddr::new(address, 0).into()
    }
}

/// Reads "192.0.2.1:9899" or "[2001:db8::1]:9899" (no names: resolve those with getaddrinfo).
///
/// # Safety
/// `text` is a text that ends with a zero byte; `address` points to memory for the result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_address_parse(
    text: *const c_char,
    address: *mut rexmit_address,
) -> rexmit_status {
    // SAFETY: As this function demands.
    guard(REXMIT_INTERNAL, || match unsafe { parse(text, address) } {
        Ok(()) => REXMIT_OK,
        Err(failure) => failure.status,
    })
}

/// # Safety
/// As [`rexmit_address_parse`].
unsafe fn parse(text: *const c_char, address: *mut rexmit_address) -> Outcome {
    // SAFETY: As the caller promised.
    let parsed = unsafe { words(text, "the text") }?.parse::<SocketAddr>();
    let parsed =
        parsed.map_err(|error| Failure::new(REXMIT_INVALID_ARGUMENT, error.to_string()))?;
    // SAFETY: As the caller promised.
    unsafe { store(address, parsed.into(), "the address") }
}

/// Writes the address as a text of at most REXMIT_ADDRESS_TEXT bytes, the zero byte at its end included.
/// REXMIT_TOO_LARGE if it does not fit `capacity`.
///
/// # Safety
/// `address` points to an address, `text` to `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_address_format(
    address: *const rexmit_address,
    text: *mut c_char,
    capacity: usize,
) -> rexmit_status {
    guard(REXMIT_INTERNAL, || {
        // SAFETY: As this function demands.
        let address = match unsafe { deref(address, "the address") }.and_then(|it| it.to_socket()) {
            Ok(address) => address.to_string(),
            Err(failure) => return failure.status,
        };
        if text.is_null() {
            return REXMIT_INVALID_ARGUMENT;
        }
        if address.len() >= capacity {
            return REXMIT_TOO_LARGE;
        }
        // SAFETY: There is room for the text and the zero byte, as was just seen.
        unsafe {
            text.cast::<u8>().copy_from_nonoverlapping(address.as_ptr(), address.len());
            text.add(address.len()).write(0);
        }
        REXMIT_OK
    })
}

/// The addresses of a caller.
///
/// # Safety
/// As [`slice`].
pub(crate) unsafe fn addresses(
    pointer: *const rexmit_address,
    length: usize,
) -> Result<Vec<SocketAddr>, Failure> {
    // SAFETY: As the caller promised.
    let all = unsafe { slice(pointer, length, "the addresses") }?;
    all.iter().map(|address| address.to_socket()).collect()
}

/// Makes an IPv4 address of one that is mapped into IPv6, as it comes from a socket of both families.
pub(crate) fn canonicalize(address: &mut SocketAddr) {
    if let IpAddr::V4(ip) = address.ip().to_canonical() {
        *address = (ip, address.port()).into();
    }
}
