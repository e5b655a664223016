//! Requests to interfaces of the calling thread's namespace that the device library lacks.

use std::ffi::{CString, c_char};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use nix::ifaddrs::getifaddrs;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::TunError;

/// Metric of the kernel's own IPv6 routes (`IP6_RT_PRIO_USER`).
const IPV6_METRIC: u32 = 1024;

/// Linux's `struct in6_rtmsg` (`linux/ipv6_route.h`), whose fields are private in libc.
#[repr(C)]
struct Ipv6Route {
    destination: [u8; 16],
    source: [u8; 16],
    gateway: [u8; 16],
    kind: u32,
    destination_prefix: u16,
    source_prefix: u16,
    metric: u32,
    info: libc::c_ulong,
    flags: u32,
    interface_index: i32,
}

/// Returns an error if another interface of this machine has an address in the network of this address.
pub(super) fn refuse_taken(address: IpAddr, prefix: u8) -> Result<(), TunError> {
    let others = getifaddrs().map_err(|error| TunError::Io {
        doing: "the addresses of this machine cannot be read",
        source: error.into(),
    })?;
    for other in others {
        let Some(taken) = other.address.as_ref().and_then(|found| {
            let v4 = found.as_sockaddr_in().map(|found| IpAddr::V4(found.ip()));
            v4.or_else(|| found.as_sockaddr_in6().map(|found| IpAddr::V6(found.ip())))
        }) else {
            continue;
        };
        if in_one_network(address, taken, prefix) {
            return Err(TunError::AddressTaken { address, interface: other.interface_name, taken });
        }
    }
    Ok(())
}

fn in_one_network(this: IpAddr, that: IpAddr, prefix: u8) -> bool {
    let differ_from_bit = match (this, that) {
        (IpAddr::V4(this), IpAddr::V4(that)) => (this.to_bits() ^ that.to_bits()).leading_zeros(),
        (IpAddr::V6(this), IpAddr::V6(that)) => (this.to_bits() ^ that.to_bits()).leading_zeros(),
        _ => return false,
    };
    differ_from_bit >= u32::from(prefix)
}

/// Disables the kernel's IPv6 at an interface. Best effort: a kernel without IPv6 has nothing to disable, and packets
/// of its neighbour discovery do no harm.
pub(super) fn disable_ipv6(interface: &str) {
    let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{interface}/disable_ipv6"), "1");
}

/// Keeps the kernel from soliciting routers at an interface without any. Best effort, as it only saves a few packets.
pub(super) fn expect_no_routers(interface: &str) {
    let path = format!("/proc/sys/net/ipv6/conf/{interface}/router_solicitations");
    let _ = std::fs::write(path, "0");
}

/// Waits until no IPv6 address of an interface is tentative (RFC 4862 §5.4): before that, no socket can be
/// bound to it. At a TUN device there are no duplicates to detect, but a worker thread of the kernel ends the tentative
/// state, and may be late on a busy machine. Best effort: gives up after some seconds.
#[expect(clippy::disallowed_methods, reason = "set-up of a device, which blocks anyway")]
pub(super) fn await_addresses(interface: &str) {
    const PAUSE: Duration = Duration::from_millis(1);
    const ATTEMPTS: usize = 5000;
    for _ in 0..ATTEMPTS {
        // Of the namespace that this thread is in, and not the process.
        let Ok(table) = std::fs::read_to_string("/proc/thread-self/net/if_inet6") else { return };
        if !has_tentative(&table, interface) {
            return;
        }
        std::thread::sleep(PAUSE);
    }
}

/// Whether the table `/proc/net/if_inet6` has a tentative address of `interface`. Its columns: address, index,
/// prefix length, scope, flags, interface; numbers in hexadecimal.
fn has_tentative(table: &str, interface: &str) -> bool {
    const TENTATIVE: u32 = 0x40; // IFA_F_TENTATIVE
    table.lines().any(|line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let [_, _, _, _, flags, name] = columns[..] else { return false };
        name == interface && u32::from_str_radix(flags, 16).is_ok_and(|f| f & TENTATIVE != 0)
    })
}

/// Switches an interface on.
pub(super) fn switch_on(interface: &str) -> io::Result<()> {
    let socket = control_socket(AddressFamily::INET)?;
    let mut request = request(interface)?;
    ioctl(&socket, libc::SIOCGIFFLAGS, &mut request)?;
    // SAFETY: the kernel has filled in the flags.
    unsafe { request.ifr_ifru.ifru_flags |= libc::IFF_UP as libc::c_short };
    ioctl(&socket, libc::SIOCSIFFLAGS, &mut request)
}

/// Makes an interface, which must be up, the default route of IPv4, of IPv6, or of both.
pub(super) fn add_default_routes(interface: &str, (ipv4, ipv6): (bool, bool)) -> io::Result<()> {
    if ipv4 {
        add_default_route_ipv4(interface)?;
    }
    if ipv6 {
        add_default_route_ipv6(interface)?;
    }
    Ok(())
}

fn add_default_route_ipv4(interface: &str) -> io::Result<()> {
    let socket = control_socket(AddressFamily::INET)?;
    let name = CString::new(interface)?;
    // SAFETY: a structure of numbers and pointers, for which zero stands for "none".
    let mut route: libc::rtentry = unsafe { std::mem::zeroed() };
    for address in [&mut route.rt_dst, &mut route.rt_gateway, &mut route.rt_genmask] {
        // The unspecified address: any destination.
        address.sa_family = libc::AF_INET as libc::sa_family_t;
    }
    route.rt_flags = libc::RTF_UP;
    // The kernel only reads the name, which lives until after the call.
    route.rt_dev = name.as_ptr().cast_mut();
    ioctl(&socket, libc::SIOCADDRT, &mut route)
}

fn add_default_route_ipv6(interface: &str) -> io::Result<()> {
    let socket = control_socket(AddressFamily::INET6)?;
    let index = nix::net::if_::if_nametoindex(interface)?;
    let mut route = Ipv6Route {
        destination: [0; 16],
        source: [0; 16],
        gateway: [0; 16],
        kind: 0,
        destination_prefix: 0,
        source_prefix: 0,
        metric: IPV6_METRIC,
        info: 0,
        flags: u32::from(libc::RTF_UP),
        interface_index: i32::try_from(index).map_err(io::Error::other)?,
    };
    ioctl(&socket, libc::SIOCADDRT, &mut route)
}

/// A socket for requests that configure interfaces; any socket serves.
fn control_socket(family: AddressFamily) -> io::Result<OwnedFd> {
    Ok(socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?)
}

fn request(interface: &str) -> io::Result<libc::ifreq> {
    // SAFETY: a structure of bytes and numbers, all of which may be zero.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays zero: the end of the name.
    if interface.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (place, byte) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *place = byte as c_char;
    }
    Ok(request)
}

/// Performs one of the requests above; `argument` is the structure that it needs.
fn ioctl<T>(socket: &OwnedFd, request: libc::Ioctl, argument: &mut T) -> io::Result<()> {
    let argument = std::ptr::from_mut(argument);
    // SAFETY: private to this module, whose callers pair each request with the structure that the
    // kernel expects for it, alive and exclusively borrowed here.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), request, argument) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_overlap_up_to_their_prefix() {
        let table = [
            ("10.90.0.1", "10.90.0.200", 24, true),
            ("10.90.0.1", "10.90.1.1", 24, false),
            ("10.90.0.1", "10.90.0.1", 32, true),
            ("10.90.0.1", "10.90.0.2", 32, false),
            ("fd00::1", "fd00::ffff", 64, true),
            ("fd00::1", "fd00:0:0:1::1", 64, false),
            ("10.90.0.1", "fd00::1", 1, false),
        ];
        for (this, that, prefix, expected) in table {
            let (a, b) = (this.parse().unwrap(), that.parse().unwrap());
            assert_eq!(in_one_network(a, b, prefix), expected, "{this} {that}/{prefix}");
        }
    }

    #[test]
    fn a_tentative_address_counts_only_for_its_interface() {
        let table = "fd910000000000000000000000000001 02 40 00 c0     tun0\n\
                     fe800000000000000000000000000001 03 40 20 80     tun1\n\
                     00000000000000000000000000000001 01 80 10 80       lo\n";
        assert!(has_tentative(table, "tun0"));
        assert!(!has_tentative(table, "tun1") && !has_tentative(table, "tun"));
        assert!(!has_tentative("", "tun0"));
    }

    #[test]
    fn a_name_that_fills_its_field_has_no_end() {
        assert!(request("fifteen_bytes_x").is_ok());
        assert!(request("sixteen_bytes_xx").is_err());
    }
}
