//! The state of a UDP socket: what `quinn-udp` knows of it, with two corrections on Linux. The drivers own their sockets,
//! batches and buffers; they ask here for the system calls.
//!
//! - The library enables time stamps, with which the control messages of a coalesced batch do not fit into its buffer: the ECN
//!   field would be missing. They are switched off.
//! - After EINVAL or EIO of one destination the library sends no ECN field over IPv4 any more, and no batches, to any
//!   destination. Its state is replaced.

use std::io::{self, IoSliceMut};
use std::sync::{PoisonError, RwLock};

use quinn_udp::UdpSocketState;
use socket2::SockRef;

pub use quinn_udp::{EcnCodepoint, RecvMeta, Transmit, UdpSockRef};

/// The state of one UDP socket, or of a raw one, which refuses the options that only UDP has.
#[derive(Debug)]
pub struct UdpState {
    library: RwLock<UdpSocketState>,
    max_segments: usize,
}

impl UdpState {
    /// Sets the options of a socket, which does not block from then on.
    ///
    /// # Errors
    /// If the system refuses an option that cannot be done without.
    pub fn new<S>(socket: &S) -> io::Result<Self>
    where
        for<'s> UdpSockRef<'s>: From<&'s S>,
        for<'s> SockRef<'s>: From<&'s S>,
    {
        let state = library_state(socket)?;
        Ok(Self { max_segments: state.max_gso_segments(), library: RwLock::new(state) })
    }

    /// The most datagrams of a batch, as the system reported when the state was created: errors do not change it.
    #[must_use]
    pub const fn max_segments(&self) -> usize {
        self.max_segments
    }

    /// Requests `bytes` of the kernel for each buffer of the socket; it grants what its limits allow (`net.core.rmem_max` and
    /// `wmem_max`).
    pub fn request_buffers<S>(&self, socket: &S, bytes: usize)
    where
        for<'s> UdpSockRef<'s>: From<&'s S>,
    {
        let state = self.library.read().unwrap_or_else(PoisonError::into_inner);
        let _ = state.set_recv_buffer_size(socket.into(), bytes);
        let _ = state.set_send_buffer_size(socket.into(), bytes);
    }

    /// Receives batches, one into each buffer, and what the system says of them. Returns their number.
    ///
    /// # Errors
    /// The error of the system; `WouldBlock` if nothing has arrived.
    pub fn recv<S>(
        &self,
        socket: &S,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> io::Result<usize>
    where
        for<'s> UdpSockRef<'s>: From<&'s S>,
    {
        let state = self.library.read().unwrap_or_else(PoisonError::into_inner);
        state.recv(socket.into(), buffers, meta)
    }

    /// Sends a datagram or a batch, or nothing. An error does not change later packets.
    ///
    /// # Errors
    /// The error of the system; `WouldBlock` if the socket's buffer is full.
    pub fn try_send<S>(&self, socket: &S, transmit: &Transmit<'_>) -> io::Result<()>
    where
        for<'s> UdpSockRef<'s>: From<&'s S>,
        for<'s> SockRef<'s>: From<&'s S>,
    {
        let state = self.library.read().unwrap_or_else(PoisonError::into_inner);
        let result = state.try_send(socket.into(), transmit);
        drop(state);
        if result.as_ref().is_err_and(may_concern_batches)
            && let Ok(state) = library_state(socket)
        {
            *self.library.write().unwrap_or_else(PoisonError::into_inner) = state;
        }
        result
    }
}

/// Whether the system may have refused a batch because it cannot cut batches. On Linux the library takes these errors (EINVAL,
/// EIO) for a sign that it cannot set the ECN field either; other systems have no such errors.
#[must_use]
pub fn may_concern_batches(error: &io::Error) -> bool {
    #[cfg(target_os = "linux")]
    return matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EIO));
    #[cfg(not(target_os = "linux"))]
    return {
        _ = error;
        false
    };
}

/// The library's state for a socket, with the socket's options set.
fn library_state<S>(socket: &S) -> io::Result<UdpSocketState>
where
    for<'s> UdpSockRef<'s>: From<&'s S>,
    for<'s> SockRef<'s>: From<&'s S>,
{
    let state = UdpSocketState::new(socket.into())?;
    #[cfg(target_os = "linux")]
    disable_time_stamps(&SockRef::from(socket))?;
    Ok(state)
}

#[cfg(target_os = "linux")]
fn disable_time_stamps(socket: &SockRef<'_>) -> io::Result<()> {
    use std::os::fd::AsRawFd as _;
    let off: libc::c_int = 0;
    let (value, len) = ((&raw const off).cast(), size_of::<libc::c_int>() as libc::socklen_t);
    let (level, option) = (libc::SOL_SOCKET, libc::SO_TIMESTAMPNS);
    // SAFETY: the kernel reads `len` bytes at `value`, which are those of `off`.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, value, len) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
    use std::time::Duration;

    use super::*;

    const PACKETS: usize = 5;

    fn pair() -> [(UdpSocket, UdpState); 2] {
        [(); 2].map(|()| {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let state = UdpState::new(&socket).unwrap();
            (socket, state)
        })
    }

    fn batch(destination: SocketAddr) -> Transmit<'static> {
        Transmit {
            destination,
            ecn: Some(EcnCodepoint::Ce),
            contents: &[0; 100 * PACKETS],
            segment_size: Some(100),
            src_ip: None,
        }
    }

    /// The ECN fields of `PACKETS` datagrams, and the number of batches in which they were received.
    fn receive((socket, state): &(UdpSocket, UdpState)) -> (Vec<Option<EcnCodepoint>>, usize) {
        socket.set_nonblocking(false).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let (mut fields, mut batches) = (Vec::new(), 0);
        while fields.len() < PACKETS {
            let (mut buffer, mut meta) = ([0; 2000], [RecvMeta::default()]);
            state.recv(socket, &mut [IoSliceMut::new(&mut buffer)], &mut meta).unwrap();
            batches += 1;
            fields.extend(buffer[..meta[0].len].chunks(meta[0].stride).map(|_| meta[0].ecn));
        }
        (fields, batches)
    }

    #[test]
    fn the_field_of_a_coalesced_batch_is_reported() {
        let [sender, receiver] = pair();
        assert!(sender.1.max_segments() >= PACKETS, "this kernel does not cut batches");
        let to = receiver.0.local_addr().unwrap();
        sender.1.try_send(&sender.0, &batch(to)).unwrap();
        assert_eq!(receive(&receiver), (vec![Some(EcnCodepoint::Ce); PACKETS], 1));
    }

    #[test]
    fn an_error_of_one_destination_ends_neither_fields_nor_batches() {
        let [sender, receiver] = pair();
        let to = receiver.0.local_addr().unwrap();
        let most = sender.1.max_segments();
        let error = sender.1.try_send(&sender.0, &batch((to.ip(), 0).into())).unwrap_err();
        assert!(may_concern_batches(&error), "{error}");
        assert_eq!(sender.1.max_segments(), most);
        assert_eq!(sender.1.library.read().unwrap().max_gso_segments(), most);
        sender.1.try_send(&sender.0, &batch(to)).unwrap();
        assert_eq!(receive(&receiver).0, [Some(EcnCodepoint::Ce); PACKETS]);
    }
}
