//! An endpoint, and the calls that drive it.

use std::ffi::c_char;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use rexmit_core::{Instant, Machine, Route, Seed};
use rexmit_dtls::MaybeEncrypted;
use rexmit_sctp::{AssociationConfig, AssociationId};

use crate::address::rexmit_address;
use crate::config::rexmit_config;
use crate::event::Held;
#[cfg(target_os = "linux")]
use crate::socket::Socket;
use crate::status::rexmit_status::{self, *};
use crate::status::{Failure, LastError, Outcome, deref, deref_mut, guard, slice, store};

/// An SCTP endpoint with its associations, encrypted by DTLS 1.3 if the configuration says so. Not thread-safe: it may move between threads, but only one may use it at a
/// time.
#[derive(Debug)]
pub struct rexmit_endpoint {
    pub(crate) sctp: MaybeEncrypted,
    /// The configuration of its associations.
    pub(crate) association: Arc<AssociationConfig>,
    /// Whether associations are to offer ECN once the endpoint has a socket.
    #[cfg(target_os = "linux")]
    offers_ecn: bool,
    /// The latest time passed by a call: time does not go back.
    now: Instant,
    /// The memory that the latest event points to.
    pub(crate) held: Held,
    #[cfg(target_os = "linux")]
    pub(crate) socket: Option<Socket>,
    packet: Vec<u8>,
    /// Whether a call is in progress, or one panicked.
    is_broken: bool,
    pub(crate) error: LastError,
}

impl rexmit_endpoint {
    /// The association of this number, if there is one.
    pub(crate) fn known(&self, association: u64) -> Result<AssociationId, Failure> {
        let id = AssociationId::from_bits(association);
        let missing = || Failure::new(REXMIT_NO_ASSOCIATION, "there is no such association");
        self.sctp.paths(id).map(|_| id).ok_or_else(missing)
    }

    /// The local address of routes to `remotes`: that of the socket, or one that the program or the system chooses.
    pub(crate) fn local_for(&self, remotes: &[SocketAddr]) -> Result<SocketAddr, Failure> {
        let Some(first) = remotes.first() else {
            return Err(Failure::new(REXMIT_INVALID_ARGUMENT, "no address of the peer"));
        };
        let unspecified: IpAddr = match first {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        #[cfg(target_os = "linux")]
        let local = self.socket.as_ref().map(Socket::local);
        #[cfg(not(target_os = "linux"))]
        let local: Option<SocketAddr> = None;
        for remote in remotes {
            check_remote(*remote, local)?;
        }
        Ok(local.unwrap_or((unspecified, 0).into()))
    }

    /// Transmits the packets that the previous call caused, if the endpoint has a socket.
    fn flush(&mut self) -> Outcome {
        #[cfg(target_os = "linux")]
        if let Some(socket) = &mut self.socket {
            socket.transmit(&mut self.sctp, self.now)?;
        }
        Ok(())
    }
}

/// Checks that one host may have the address `remote`, and that a socket bound to `local` reaches it.
fn check_remote(remote: SocketAddr, local: Option<SocketAddr>) -> Outcome {
    let ip = remote.ip().to_canonical();
    let is_broadcast = matches!(ip, IpAddr::V4(ip) if ip.is_broadcast());
    let text = if ip.is_unspecified() || ip.is_multicast() || is_broadcast {
        format!("{remote}: {ip} is not the address of a host")
    } else if remote.port() == 0 {
        format!("{remote}: the UDP port of a peer is not 0")
    } else {
        match local {
            // A socket bound to :: has both families.
            Some(local) if !local.ip().is_unspecified() || local.is_ipv4() => {
                if local.ip().to_canonical().is_ipv4() == ip.is_ipv4() {
                    return Ok(());
                }
                format!("{remote} cannot be reached from the endpoint's address {local}")
            }
            _ => return Ok(()),
        }
    };
    Err(Failure::new(REXMIT_INVALID_ARGUMENT, text))
}

/// Runs a call at `now`, and transmits what it causes.
///
/// # Safety
/// `endpoint` is NULL or came from [`rexmit_endpoint_new`], and is not used elsewhere.
pub(crate) unsafe fn call(
    endpoint: *mut rexmit_endpoint,
    now: u64,
    act: impl FnOnce(&mut rexmit_endpoint, Instant) -> Outcome,
) -> rexmit_status {
    guard(REXMIT_INTERNAL, || {
        // SAFETY: As the caller promised.
        let Ok(endpoint) = (unsafe { deref_mut(endpoint, "the endpoint") }) else {
            return REXMIT_INVALID_ARGUMENT;
        };
        if std::mem::replace(&mut endpoint.is_broken, true) {
            return REXMIT_INTERNAL;
        }
        endpoint.now = endpoint.now.max(Instant::from_nanos(now));
        let now = endpoint.now;
        let outcome = act(endpoint, now);
        let flushed = endpoint.flush();
        endpoint.is_broken = false;
        endpoint.error.note(outcome.and(flushed))
    })
}

/// The monotonic clock, in nanoseconds: the `now` of all calls of an endpoint with a socket. A program that drives the
/// endpoint itself may use any clock that does not go back.
#[cfg(target_os = "linux")]
#[unsafe(no_mangle)]
pub extern "C" fn rexmit_now() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // libc's clock, since valgrind has no vDSO, which rustix would read by itself.
    // SAFETY: It writes to `now`, and the clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Makes an endpoint, which encrypts if the configuration has an identity or trusted peers. `seed` points to 32 bytes
/// of full entropy; if it is NULL, the system provides them. (A fixed seed is for simulations: tags and cookies are
/// drawn from it, encryption keys are not.) On failure `rexmit_config_error` says why.
///
/// ```c
/// rexmit_config *config = rexmit_config_new();
/// rexmit_endpoint *endpoint;
/// rexmit_config_set_profile(config, REXMIT_INTERACTIVE_REDUNDANT);
/// if (rexmit_endpoint_new(config, NULL, &endpoint) != REXMIT_OK)
///     fprintf(stderr, "%s\n", rexmit_config_error(config));
/// rexmit_config_free(config);
/// ```
///
/// # Safety
/// `config` came from `rexmit_config_new`; `seed` is NULL or points to 32 bytes; `endpoint` to memory for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_endpoint_new(
    config: *mut rexmit_config,
    seed: *const u8,
    endpoint: *mut *mut rexmit_endpoint,
) -> rexmit_status {
    guard(REXMIT_INTERNAL, || {
        // SAFETY: As this function demands.
        let Ok(config) = (unsafe { deref_mut(config, "the configuration") }) else {
            return REXMIT_INVALID_ARGUMENT;
        };
        // SAFETY: As this function demands.
        let outcome = unsafe { new(config, seed, endpoint) };
        config.error.note(outcome)
    })
}

/// # Safety
/// As [`rexmit_endpoint_new`].
unsafe fn new(
    config: &rexmit_config,
    seed: *const u8,
    endpoint: *mut *mut rexmit_endpoint,
) -> Outcome {
    let mut bytes = [0; 32];
    if seed.is_null() {
        let failed = |error: getrandom::Error| Failure::new(REXMIT_SYSTEM, error.to_string());
        getrandom::fill(&mut bytes).map_err(failed)?;
    } else {
        // SAFETY: As the caller promised.
        bytes.copy_from_slice(unsafe { slice(seed, 32, "the seed") }?);
    }
    let encryption = config.encryption()?;
    let config = config.build();
    #[cfg(target_os = "linux")]
    let offers_ecn = config.association.extensions.ecn;
    // A program that moves datagrams itself does not pass the ECN field on.
    let association = Arc::new((*config.association).clone().ecn(false));
    let config = config.association(Arc::clone(&association));
    let sctp = MaybeEncrypted::new(config, encryption, &Seed::from_bytes(bytes))?;
    let made = Box::new(rexmit_endpoint {
        sctp,
        association,
        #[cfg(target_os = "linux")]
        offers_ecn,
        now: Instant::ZERO,
        held: Held::default(),
        #[cfg(target_os = "linux")]
        socket: None,
        packet: Vec::new(),
        is_broken: false,
        error: LastError::default(),
    });
    // SAFETY: As the caller promised.
    unsafe { store(endpoint, std::ptr::null_mut(), "where the endpoint goes")? };
    // SAFETY: It is not NULL, as was just seen.
    unsafe { endpoint.write(Box::into_raw(made)) };
    Ok(())
}

/// Frees an endpoint and closes its socket. Its associations vanish without notice to their peers: shut them
/// down or abort them before. NULL is ignored.
///
/// # Safety
/// `endpoint` is NULL, or came from `rexmit_endpoint_new` and was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_endpoint_free(endpoint: *mut rexmit_endpoint) {
    if !endpoint.is_null() {
        // SAFETY: It is a box that was given away.
        guard((), || drop(unsafe { Box::from_raw(endpoint) }));
    }
}

/// Why the last failed call failed, in English. Valid until the next call.
///
/// # Safety
/// `endpoint` came from `rexmit_endpoint_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_endpoint_error(endpoint: *const rexmit_endpoint) -> *const c_char {
    // SAFETY: As this function demands.
    let endpoint = unsafe { deref(endpoint, "the endpoint") };
    endpoint.map_or(c"the endpoint is NULL".as_ptr(), |endpoint| endpoint.error.as_ptr())
}

/// Sans-IO: a UDP datagram arrived at `local` (as the program knows its own address) from `remote`.
///
/// # Safety
/// `endpoint` came from `rexmit_endpoint_new`; the others point to two addresses and to `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_endpoint_handle_input(
    endpoint: *mut rexmit_endpoint,
    now: u64,
    local: *const rexmit_address,
    remote: *const rexmit_address,
    datagram: *const u8,
    length: usize,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe {
        call(endpoint, now, |endpoint, now| {
            let local = deref(local, "the local address")?.to_socket()?;
            let remote = deref(remote, "the remote address")?.to_socket()?;
            // Nothing can be answered to port 0.
            if remote.port() != 0 {
                let datagram = slice(datagram, length, "the datagram")?;
                endpoint.sctp.handle_input(now, Route { local, remote }, datagram);
            }
            Ok(())
        })
    }
}

/// Sans-IO: to be called when the time of `rexmit_endpoint_poll_timeout` is reached. Harmless when called
/// early.
///
/// # Safety
/// `endpoint` came from `rexmit_endpoint_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_endpoint_handle_timeout(
    endpoint: *mut rexmit_endpoint,
    now: u64,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe {
        call(endpoint, now, |endpoint, now| {
            endpoint.sctp.handle_timeout(now);
            Ok(())
        })
    }
}

/// Sans-IO: the next datagram to send, with its addresses; REXMIT_NOTHING if no datagram is left. `capacity` of at
/// least the configured packet size (default 1232) always suffices; a datagram that does not fit is dropped
/// (REXMIT_TOO_LARGE), and treated as lost. An unspecified `local` leaves the choice to the program.
///
/// ```c
/// uint8_t packet[65536];
/// size_t length;
/// rexmit_address local, remote;
/// while (rexmit_endpoint_poll_transmit(endpoint, now, &local, &remote, packet, sizeof packet, &length) == REXMIT_OK)
///     send_datagram(packet, length, &remote);
/// set_timer(rexmit_endpoint_poll_timeout(endpoint));
/// ```
///
/// # Safety
/// `endpoint` came from `rexmit_endpoint_new`; `datagram` points to `capacity` bytes; the others to memory for results.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_endpoint_poll_transmit(
    endpoint: *mut rexmit_endpoint,
    now: u64,
    local: *mut rexmit_address,
    remote: *mut rexmit_address,
    datagram: *mut u8,
    capacity: usize,
    length: *mut usize,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe {
        call(endpoint, now, |endpoint, now| {
            if datagram.is_null() {
                return Err(Failure::null("the datagram"));
            }
            // Checked before the packet is taken, which would be lost otherwise.
            store(length, 0, "the length")?;
            store(local, rexmit_address::default(), "the local address")?;
            store(remote, rexmit_address::default(), "the remote address")?;
            let route = endpoint.sctp.poll_transmit(now, &mut endpoint.packet);
            let route = route.ok_or_else(|| Failure::new(REXMIT_NOTHING, "nothing to send"))?;
            let packet = &endpoint.packet;
            if packet.len() > capacity {
                let text =
                    format!("a datagram has {} bytes, there is room for {capacity}", packet.len());
                return Err(Failure::new(REXMIT_TOO_LARGE, text));
            }
            datagram.copy_from_nonoverlapping(packet.as_ptr(), packet.len());
            store(length, packet.len(), "the length")?;
            store(local, route.local.into(), "the local address")?;
            store(remote, route.remote.into(), "the remote address")
        })
    }
}

/// Sans-IO: when `rexmit_endpoint_handle_timeout` is to be called at the latest; UINT64_MAX if nothing is due.
///
/// # Safety
/// `endpoint` came from `rexmit_endpoint_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_endpoint_poll_timeout(endpoint: *const rexmit_endpoint) -> u64 {
    guard(u64::MAX, || {
        // SAFETY: As this function demands.
        let endpoint = unsafe { deref(endpoint, "the endpoint") };
        let deadline = endpoint.ok().and_then(|endpoint| endpoint.sctp.poll_timeout());
        deadline.map_or(u64::MAX, Instant::as_nanos)
    })
}

/// Event loop: gives the endpoint a UDP socket bound to `address` (port 0: any). From now on, each call also transmits.
///
/// # Safety
/// `endpoint` came from `rexmit_endpoint_new`; `address` points to an address.
#[cfg(target_os = "linux")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_endpoint_bind(
    endpoint: *mut rexmit_endpoint,
    address: *const rexmit_address,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe {
        call(endpoint, 0, |endpoint, _| {
            if endpoint.socket.is_some() {
                return Err(Failure::new(REXMIT_ALREADY, "the endpoint has a socket"));
            }
            let address = deref(address, "the address")?.to_socket()?;
            endpoint.socket = Some(Socket::bind(address)?);
            if endpoint.offers_ecn {
                endpoint.association = Arc::new((*endpoint.association).clone().ecn(true));
                endpoint.sctp.set_association_config(Arc::clone(&endpoint.association))?;
            }
            Ok(())
        })
    }
}

/// Event loop: the address to which the socket is bound.
///
/// # Safety
/// `endpoint` came from `rexmit_endpoint_new`; `address` points to memory for the result.
#[cfg(target_os = "linux")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_endpoint_local_address(
    endpoint: *mut rexmit_endpoint,
    address: *mut rexmit_address,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe {
        call(endpoint, 0, |endpoint, _| {
            store(address, bound(endpoint)?.local().into(), "the address")
        })
    }
}

/// Event loop: the descriptor to wait for with poll, select or epoll, until it is readable; then call
/// `rexmit_endpoint_process`. -1 without a socket. The endpoint owns it: neither read nor close it.
///
/// # Safety
/// `endpoint` came from `rexmit_endpoint_new`.
#[cfg(target_os = "linux")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_endpoint_fd(endpoint: *const rexmit_endpoint) -> i32 {
    guard(-1, || {
        // SAFETY: As this function demands.
        let endpoint = unsafe { deref(endpoint, "the endpoint") };
        endpoint.ok().and_then(|endpoint| endpoint.socket.as_ref()).map_or(-1, Socket::descriptor)
    })
}

/// Event loop: receives, lets timers expire and transmits, without waiting. Then call `rexmit_endpoint_poll_event`
/// until it returns REXMIT_NOTHING.
///
/// # Safety
/// `endpoint` came from `rexmit_endpoint_new`.
#[cfg(target_os = "linux")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_endpoint_process(
    endpoint: *mut rexmit_endpoint,
    now: u64,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe {
        call(endpoint, now, |endpoint, now| {
            bound(endpoint)?;
            let rexmit_endpoint { sctp, socket, .. } = endpoint;
            socket.as_mut().map_or(Ok(()), |socket| socket.process(sctp, now))
        })
    }
}

#[cfg(target_os = "linux")]
fn bound(endpoint: &rexmit_endpoint) -> Result<&Socket, Failure> {
    let missing = || Failure::new(REXMIT_NOT_ESTABLISHED, "call rexmit_endpoint_bind first");
    endpoint.socket.as_ref().ok_or_else(missing)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::config::{rexmit_config_free, rexmit_config_new};
    use crate::status::rexmit_status::REXMIT_OK;

    /// Otherwise the marks of routers would be lost between a program and the endpoint.
    #[test]
    fn ecn_is_offered_once_there_is_a_socket() {
        let config = rexmit_config_new();
        let mut endpoint = std::ptr::null_mut();
        let address = std::net::SocketAddr::from(([127, 0, 0, 1], 0)).into();
        // SAFETY: the pointers are valid until they are freed.
        unsafe {
            assert_eq!(rexmit_endpoint_new(config, std::ptr::null(), &raw mut endpoint), REXMIT_OK);
            rexmit_config_free(config);
            assert!(!endpoint.as_ref().unwrap().association.extensions.ecn);
            assert_eq!(rexmit_endpoint_bind(endpoint, &raw const address), REXMIT_OK);
            assert!(endpoint.as_ref().unwrap().association.extensions.ecn);
            rexmit_endpoint_free(endpoint);
        }
    }
}
