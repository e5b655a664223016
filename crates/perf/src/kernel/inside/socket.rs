//! One connection over a socket of the kernel.

use std::io::{self, IoSliceMut};
use std::os::fd::AsRawFd;

use rexmit_lab::hosts::{ConnectionEvent, ReadResult};
use rexmit_lab::kernel::{HostPlan, KernelProtocol};
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvFlags, ReturnFlags, recvmsg};
use socket2::{Domain, Protocol, Socket, Type};

/// SCTP's number among the protocols of IP, and the level of its socket options.
const SCTP: i32 = 132;
/// RFC 6458 §8.1.5, in `linux/sctp.h`.
const SCTP_NODELAY: i32 = 3;
/// RFC 6458 §8.1.31, in `linux/sctp.h`.
const SCTP_DEFAULT_SNDINFO: i32 = 34;
/// RFC 6458 §5.3.4.
const SCTP_UNORDERED: u16 = 1;

/// A connection.
pub(super) struct Connection {
    socket: Socket,
    protocol: KernelProtocol,
    state: State,
    /// Whether data waits for room in the send buffer.
    is_full: bool,
    /// Whether the peer has finished sending.
    has_end: bool,
    /// The beginning of a message that was received in part.
    part: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Connecting,
    Established,
    Closed,
}

/// The number of a protocol in IP packets.
pub(super) const fn ip_protocol(protocol: KernelProtocol) -> u8 {
    match protocol {
        KernelProtocol::Tcp => 6,
        KernelProtocol::Sctp { .. } => SCTP as u8,
    }
}

/// A socket in the namespace of the calling thread.
pub(super) fn open(plan: &HostPlan) -> io::Result<Socket> {
    let protocol = Protocol::from(i32::from(ip_protocol(plan.protocol)));
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(protocol))?;
    configure(&socket, plan)?;
    Ok(socket)
}

/// Sets the options of a new socket.
pub(super) fn configure(socket: &Socket, plan: &HostPlan) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    match plan.protocol {
        KernelProtocol::Tcp => socket.set_tcp_nodelay(!plan.has_nagle),
        KernelProtocol::Sctp { is_unordered } => {
            set_option(socket, SCTP_NODELAY, &i32::from(!plan.has_nagle))?;
            let flags = if is_unordered { SCTP_UNORDERED } else { 0 };
            set_option(socket, SCTP_DEFAULT_SNDINFO, &SendInfo { flags, ..SendInfo::default() })
        }
    }
}

/// `struct sctp_sndinfo` of RFC 6458 §5.3.4.
#[repr(C)]
#[derive(Default)]
struct SendInfo {
    stream: u16,
    flags: u16,
    ppid: u32,
    context: u32,
    association: i32,
}

fn set_option<T>(socket: &Socket, option: i32, value: &T) -> io::Result<()> {
    let bytes = size_of::<T>() as libc::socklen_t;
    let value = std::ptr::from_ref(value).cast();
    // SAFETY: `value` is borrowed for the call, and has so many bytes without padding.
    match unsafe { libc::setsockopt(socket.as_raw_fd(), SCTP, option, value, bytes) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

impl Connection {
    pub(super) fn new(socket: Socket, protocol: KernelProtocol, is_established: bool) -> Self {
        let state = if is_established { State::Established } else { State::Connecting };
        Self { socket, protocol, state, is_full: false, has_end: false, part: Vec::new() }
    }

    pub(super) const fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Translates an event of the kernel, and passes it to `report`.
    pub(super) fn on_event(&mut self, flags: EventFlags, report: &mut dyn FnMut(ConnectionEvent)) {
        if self.state == State::Closed {
            return;
        }
        let error = flags.contains(EventFlags::ERR).then(|| self.socket.take_error());
        if error.is_some_and(|error| !matches!(error, Ok(None))) {
            self.state = State::Closed;
            report(ConnectionEvent::Closed { is_graceful: false });
            return;
        }
        if self.state == State::Connecting && flags.contains(EventFlags::OUT) {
            self.state = State::Established;
            report(ConnectionEvent::Connected { incoming: false });
        }
        self.has_end |= flags.contains(EventFlags::RDHUP);
        if flags.intersects(EventFlags::IN | EventFlags::RDHUP) {
            report(ConnectionEvent::Readable);
        }
        if flags.contains(EventFlags::OUT) && self.is_full {
            self.is_full = false;
            report(ConnectionEvent::Writable);
        }
        if flags.contains(EventFlags::HUP) && self.state == State::Established {
            self.state = State::Closed;
            report(ConnectionEvent::Closed { is_graceful: true });
        }
    }

    /// Passes bytes to the kernel; returns how many it has accepted.
    pub(super) fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sent = self.socket.send_with_flags(bytes, libc::MSG_NOSIGNAL);
        self.is_full = matches!(&sent, Err(error) if error.kind() == io::ErrorKind::WouldBlock);
        sent
    }

    /// Reads all available data through `buffer`; messages of SCTP as a whole.
    pub(super) fn receive(&mut self, buffer: &mut [u8], each: &mut dyn FnMut(&[u8])) -> ReadResult {
        loop {
            match self.read(buffer) {
                Ok((0, _)) => return ReadResult::End,
                // Less than was asked for: the stream has no more, and the next bytes are reported.
                Ok((read, _)) if self.is_stream() && read < buffer.len() => {
                    each(&buffer[..read]);
                    return ReadResult::Open;
                }
                Ok((read, true)) if self.part.is_empty() => each(&buffer[..read]),
                Ok((read, is_end)) => {
                    self.part.extend_from_slice(&buffer[..read]);
                    if is_end {
                        each(&std::mem::take(&mut self.part));
                    }
                }
                Err(Errno::AGAIN) => return ReadResult::Open,
                Err(_) => return ReadResult::End,
            }
        }
    }

    /// Whether data is read without message boundaries, and the end was not reached.
    fn is_stream(&self) -> bool {
        self.protocol == KernelProtocol::Tcp && !self.has_end
    }

    /// Reads once. Returns the number of bytes, and whether a message ends with them.
    fn read(&self, buffer: &mut [u8]) -> Result<(usize, bool), Errno> {
        let mut none = RecvAncillaryBuffer::default();
        let mut parts = [IoSliceMut::new(buffer)];
        let read = recvmsg(&self.socket, &mut parts, &mut none, RecvFlags::empty())?;
        let is_end = self.protocol == KernelProtocol::Tcp || read.flags.contains(ReturnFlags::EOR);
        Ok((read.bytes, is_end))
    }

    pub(super) fn finish(&self) {
        // It may have ended already.
        let _ = self.socket.shutdown(std::net::Shutdown::Write);
    }

    pub(super) fn abort(&mut self) {
        self.state = State::Closed;
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
    }
}
