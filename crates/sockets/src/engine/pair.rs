//! The engine's end of a socket pair.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, ioctl_fionbio};
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, Shutdown,
    SocketAddrUnix, SocketFlags, SocketType, bind, recv, sendmsg, shutdown, socket_with,
    socketpair, sockopt,
};
use rustix::time::Timespec;

use crate::protocol::frame::{HEADER_BYTES, Header};
use crate::protocol::marks::Marks;
use crate::protocol::name::SocketName;

/// The largest message that a program can send at once: the kernel's `net.core.wmem_default` on most machines.
pub(super) const MAX_MESSAGE_BYTES: usize = 212_992;
/// The most bytes that wait in a pair for the program: the engine's send buffer.
pub(super) const PAIR_BYTES: usize = 1 << 20;

/// See the module.
#[derive(Debug)]
pub(super) struct Pair {
    ours: OwnedFd,
    /// The name of the program's end.
    name: SocketName,
}

/// What ends for the program when its association has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The data that it receives: the peer has ended the association, and everything was delivered.
    Data,
    /// The data that it sends: the association was aborted, or the program has ended it.
    Sending,
}

/// A message or event read from a socket pair.
#[derive(Debug)]
pub(super) enum Received<'a> {
    Message(Header, &'a [u8]),
    /// Nothing now.
    Nothing,
    /// The program has shut down or closed its end.
    End,
    /// The program has closed its end with unread data. Reported once; the data that it sent before follows.
    Reset,
}

impl Pair {
    /// A pair whose program's end is bound to this name.
    pub(super) fn new(name: SocketName, marks: Marks) -> rustix::io::Result<(Self, OwnedFd)> {
        let flags = SocketFlags::CLOEXEC;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        bind(&theirs, &SocketAddrUnix::new_abstract_name(&name.to_bytes())?)?;
        set_marks(&theirs, marks)?;
        ioctl_fionbio(&ours, true)?;
        // The kernel takes 32 bytes for itself, and doubles what it is given.
        let least = MAX_MESSAGE_BYTES + HEADER_BYTES + 32;
        if sockopt::socket_send_buffer_size(&theirs)? < least {
            sockopt::set_socket_send_buffer_size(&theirs, least.div_ceil(2))?;
        }
        // As root it may be more than the system's limit.
        let _ = sockopt::set_socket_send_buffer_size_force(&ours, PAIR_BYTES)
            .or_else(|_| sockopt::set_socket_send_buffer_size(&ours, PAIR_BYTES));
        Ok((Self { ours, name }, theirs))
    }

    /// Sends a message, with a descriptor. Any error but `AGAIN` means that the program has closed its end.
    pub(super) fn send(
        &self,
        header: &Header,
        payload: &[u8],
        descriptor: Option<&OwnedFd>,
    ) -> Result<(), Errno> {
        let header = header.to_bytes();
        let parts = [IoSlice::new(&header), IoSlice::new(payload)];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let descriptors = descriptor.map(AsFd::as_fd);
        if let Some(descriptor) = &descriptors {
            let rights = SendAncillaryMessage::ScmRights(std::slice::from_ref(descriptor));
            if !ancillary.push(rights) {
                return Err(Errno::INVAL);
            }
        }
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        sendmsg(&self.ours, &parts, &mut ancillary, flags).map(drop)
    }

    /// Whether the program has read all data sent to it.
    pub(super) fn is_read(&self) -> bool {
        let mut unread: libc::c_int = 0;
        // SAFETY: the kernel writes one number.
        let result = unsafe { libc::ioctl(self.ours.as_raw_fd(), libc::TIOCOUTQ, &raw mut unread) };
        result == 0 && unread == 0
    }

    /// The next message of the program, in `buffer`.
    pub(super) fn receive<'a>(&self, buffer: &'a mut [u8]) -> Received<'a> {
        match recv(&self.ours, &mut *buffer, RecvFlags::DONTWAIT) {
            Ok((0, _)) => Received::End,
            Ok((length, _)) => match Header::parse(&buffer[..length]) {
                Some(header) => Received::Message(header, &buffer[HEADER_BYTES..length]),
                // Not of our library: the program has found the pair by itself.
                None => Received::Message(Header::of_error(0), &[]),
            },
            Err(Errno::AGAIN | Errno::INTR) => Received::Nothing,
            Err(_) => Received::Reset,
        }
    }

    /// Whether the program has no descriptor of its end left: both directions are shut down, and its name is free.
    pub(super) fn is_closed(&self) -> bool {
        let mut ours = [PollFd::new(&self.ours, PollFlags::empty())];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let has_hung_up =
            poll(&mut ours, Some(&now)).is_ok() && ours[0].revents().contains(PollFlags::HUP);
        has_hung_up && !is_taken(self.name)
    }

    /// Ends the association for the program, after what was already sent to it. By the name of our end it sees that nothing
    /// can be sent any more. Its end stays: only one direction is shut down.
    pub(super) fn end(&self, end: End) {
        let direction = if end == End::Data { Shutdown::Write } else { Shutdown::Read };
        let _ = shutdown(&self.ours, direction);
        // Last: a call that sees the name and neither a message nor the end of data fails.
        let _ = bind(&self.ours, &SocketAddrUnix::new_unnamed());
    }
}

impl AsFd for Pair {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ours.as_fd()
    }
}

/// Stores the marks in the kernel, with the program's end.
fn set_marks(theirs: &OwnedFd, marks: Marks) -> rustix::io::Result<()> {
    let number = marks.to_number();
    let length = size_of_val(&number) as libc::socklen_t;
    let (fd, at) = (theirs.as_raw_fd(), (&raw const number).cast());
    // SAFETY: the number lives and has this length.
    let result = unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_RCVLOWAT, at, length) };
    if result == 0 {
        Ok(())
    } else {
        Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO))
    }
}

/// Whether a socket has this name.
fn is_taken(name: SocketName) -> bool {
    let another =
        socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
    let name = SocketAddrUnix::new_abstract_name(&name.to_bytes());
    match (another, name) {
        (Ok(another), Ok(name)) => bind(&another, &name) == Err(Errno::ADDRINUSE),
        // There is no descriptor left.
        _ => false,
    }
}

/// A buffer that is large enough for every message of a program.
pub(super) fn buffer() -> Vec<u8> {
    vec![0; HEADER_BYTES + MAX_MESSAGE_BYTES * 2]
}
