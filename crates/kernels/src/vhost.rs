//! Messages of vhost-user between a kernel and its network device: a header of 12 bytes (request, flags, length of the
//! payload), the payload, and descriptors of files. The specification is QEMU's `docs/interop/vhost-user.rst`; what the
//! kernel sends is in `arch/um/drivers/virtio_uml.c`.

use std::io::{IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::io::retry_on_intr;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, recvmsg};

use crate::error::Failure;

/// The length of a header in bytes.
const HEADER: usize = 12;
/// The longest payload that is accepted; the kernel's longest is a table of two memory regions.
const MAX_PAYLOAD: usize = 512;
/// The most descriptors of a message: one per memory region.
pub(crate) const MAX_FILES: usize = 2;

/// The version of the protocol, in the flags.
const VERSION: u32 = 1;
const VERSION_MASK: u32 = 0b11;
/// The message is an answer.
const REPLY: u32 = 1 << 2;
/// The sender waits for an answer.
const NEED_REPLY: u32 = 1 << 3;

/// Feature of a device: it knows features of the protocol.
pub(crate) const F_PROTOCOL_FEATURES: u64 = 1 << 30;
/// Protocol feature: messages are acknowledged if the sender asks for it.
pub(crate) const PROTOCOL_REPLY_ACK: u64 = 1 << 3;
/// Protocol feature: the device has a socket for its own requests.
pub(crate) const PROTOCOL_BACKEND_REQUESTS: u64 = 1 << 5;
/// Protocol feature: the kernel asks for the configuration of the device.
pub(crate) const PROTOCOL_CONFIG: u64 = 1 << 9;
/// Protocol feature: notifications of queues are messages, which are acknowledged, instead of event descriptors.
pub(crate) const PROTOCOL_IN_BAND: u64 = 1 << 14;

/// The only request of a device: the kernel is to look at a queue.
const VRING_CALL: u32 = 4;

/// A request of the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Request {
    GetFeatures,
    SetFeatures,
    SetOwner,
    SetMemTable,
    SetVringNum,
    SetVringAddr,
    SetVringBase,
    GetProtocolFeatures,
    SetProtocolFeatures,
    SetVringEnable,
    SetBackendRequestFd,
    GetConfig,
    SetConfig,
    VringKick,
}

impl Request {
    fn of(number: u32) -> Result<Self, Failure> {
        Ok(match number {
            1 => Self::GetFeatures,
            2 => Self::SetFeatures,
            3 => Self::SetOwner,
            5 => Self::SetMemTable,
            8 => Self::SetVringNum,
            9 => Self::SetVringAddr,
            10 => Self::SetVringBase,
            15 => Self::GetProtocolFeatures,
            16 => Self::SetProtocolFeatures,
            18 => Self::SetVringEnable,
            21 => Self::SetBackendRequestFd,
            24 => Self::GetConfig,
            25 => Self::SetConfig,
            35 => Self::VringKick,
            _ => {
                let what = format!("request {number} to its network device is not implemented");
                return Err(Failure::Protocol(what));
            }
        })
    }
}

/// A message of the kernel.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) request: Request,
    number: u32,
    /// Whether the kernel waits for an acknowledgement.
    pub(crate) needs_reply: bool,
    payload: Vec<u8>,
    pub(crate) files: Vec<OwnedFd>,
}

impl Message {
    /// The first numbers of 32 bits of the payload.
    pub(crate) fn u32s<const N: usize>(&self) -> Result<[u32; N], Failure> {
        let mut numbers = self.payload.chunks_exact(4);
        let mut next = || Some(u32::from_ne_bytes(numbers.next()?.try_into().ok()?));
        let mut found = [0; N];
        for number in &mut found {
            *number = next().ok_or_else(|| self.is_short())?;
        }
        Ok(found)
    }

    /// The numbers of 64 bits of the payload that follow its first `skipped` bytes.
    pub(crate) fn u64s<const N: usize>(&self, skipped: usize) -> Result<[u64; N], Failure> {
        let mut numbers = self.payload.get(skipped..).unwrap_or_default().chunks_exact(8);
        let mut next = || Some(u64::from_ne_bytes(numbers.next()?.try_into().ok()?));
        let mut found = [0; N];
        for number in &mut found {
            *number = next().ok_or_else(|| self.is_short())?;
        }
        Ok(found)
    }

    /// The whole payload.
    pub(crate) fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// A request for a test.
    #[cfg(test)]
    pub(crate) fn example(request: Request, payload: &[u8], files: Vec<OwnedFd>) -> Self {
        Self { request, number: 0, needs_reply: true, payload: payload.to_vec(), files }
    }

    fn is_short(&self) -> Failure {
        let Self { request, payload, .. } = self;
        Failure::Protocol(format!("the payload of {request:?} has only {} bytes", payload.len()))
    }
}

/// Our end of the socket on which the kernel sends its requests.
#[derive(Debug)]
pub(crate) struct DeviceSocket(UnixStream);

impl DeviceSocket {
    /// A socket on which nothing blocks for longer than `limit`.
    pub(crate) fn new(stream: UnixStream, limit: Duration) -> Result<Self, Failure> {
        stream.set_read_timeout(Some(limit))?;
        stream.set_write_timeout(Some(limit))?;
        Ok(Self(stream))
    }

    /// The next request; `None` if the kernel has closed the socket.
    pub(crate) fn receive(&mut self) -> Result<Option<Message>, Failure> {
        let mut header = [0; HEADER];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FILES))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let slices = &mut [IoSliceMut::new(&mut header)];
        let receive = || recvmsg(&self.0, slices, &mut control, RecvFlags::CMSG_CLOEXEC);
        let received = retry_on_intr(receive)?;
        if received.bytes == 0 {
            return Ok(None);
        }
        if received.flags.contains(ReturnFlags::CTRUNC) {
            return Err(Failure::Protocol("a message has too many descriptors".into()));
        }
        let mut files = Vec::new();
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                files.extend(descriptors);
            }
        }
        self.0.read_exact(&mut header[received.bytes..])?;
        let [number, flags, len] = header_of(header);
        if flags & VERSION_MASK != VERSION || flags & REPLY != 0 {
            return Err(Failure::Protocol(format!("request {number} has the flags {flags:#x}")));
        }
        let len = len as usize;
        if len > MAX_PAYLOAD {
            return Err(Failure::Protocol(format!("request {number} has {len} bytes")));
        }
        let mut payload = vec![0; len];
        self.0.read_exact(&mut payload)?;
        let needs_reply = flags & NEED_REPLY != 0;
        Ok(Some(Message { request: Request::of(number)?, number, needs_reply, payload, files }))
    }

    /// Answers `message`.
    pub(crate) fn reply(&mut self, message: &Message, payload: &[u8]) -> Result<(), Failure> {
        Ok(self.0.write_all(&encode(message.number, VERSION | REPLY, payload))?)
    }
}

impl AsFd for DeviceSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Our end of the socket for requests to the kernel.
#[derive(Debug)]
pub(crate) struct RequestSocket(UnixStream);

impl RequestSocket {
    /// The socket `descriptor`, which the kernel sent.
    pub(crate) fn new(descriptor: OwnedFd, limit: Duration) -> Result<Self, Failure> {
        let stream = UnixStream::from(descriptor);
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(limit))?;
        stream.set_write_timeout(Some(limit))?;
        Ok(Self(stream))
    }

    /// Asks the kernel to look at the queue `index`. Before it answers it asks for the time on the socket of its clock.
    pub(crate) fn call(&mut self, index: u32) -> Result<(), Failure> {
        let payload = [index.to_ne_bytes(), [0; 4]].concat();
        Ok(self.0.write_all(&encode(VRING_CALL, VERSION | NEED_REPLY, &payload))?)
    }

    /// Reads the answer to [`call`](Self::call).
    pub(crate) fn called(&mut self) -> Result<(), Failure> {
        let mut answer = [0; HEADER + 8];
        self.0.read_exact(&mut answer)?;
        let [header @ .., _, _, _, _, _, _, _, _] = answer;
        let [_, _, _, _, _, _, _, _, _, _, _, _, status @ ..] = answer;
        if header_of(header) != [VRING_CALL, VERSION | REPLY, 8] {
            return Err(Failure::Protocol(format!("it answered a notification with {answer:?}")));
        }
        match u64::from_ne_bytes(status) {
            0 => Ok(()),
            status => Err(Failure::Protocol(format!("it refused a notification: status {status}"))),
        }
    }
}

impl AsFd for RequestSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn header_of(bytes: [u8; HEADER]) -> [u32; 3] {
    let [a, b, c, d, e, f, g, h, i, j, k, l] = bytes;
    [[a, b, c, d], [e, f, g, h], [i, j, k, l]].map(u32::from_ne_bytes)
}

fn encode(number: u32, flags: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + payload.len());
    for part in [number, flags, payload.len() as u32] {
        bytes.extend_from_slice(&part.to_ne_bytes());
    }
    bytes.extend_from_slice(payload);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_millis(1);

    fn pair() -> (DeviceSocket, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (DeviceSocket::new(ours, LIMIT).unwrap(), theirs)
    }

    #[test]
    fn a_request_is_read_and_answered() {
        let (mut device, mut kernel) = pair();
        let payload = [1_u32.to_ne_bytes(), 256_u32.to_ne_bytes()].concat();
        kernel.write_all(&encode(8, VERSION | NEED_REPLY, &payload)).unwrap();
        let message = device.receive().unwrap().unwrap();
        assert_eq!(message.request, Request::SetVringNum);
        assert!(message.needs_reply);
        assert_eq!(message.u32s().unwrap(), [1, 256]);
        assert!(matches!(message.u32s::<3>(), Err(Failure::Protocol(_))));
        assert!(matches!(message.u64s::<2>(0), Err(Failure::Protocol(_))));
        device.reply(&message, &[0; 8]).unwrap();
        let mut answer = [0; HEADER + 8];
        kernel.read_exact(&mut answer).unwrap();
        assert_eq!(answer[..HEADER], encode(8, VERSION | REPLY, &[0; 8])[..HEADER]);
        drop(kernel);
        assert!(device.receive().unwrap().is_none());
    }

    #[test]
    fn malformed_requests_are_errors() {
        let cases = [
            encode(99, VERSION, &[]),
            encode(8, VERSION | REPLY, &[]),
            encode(8, 0, &[]),
            encode(8, VERSION, &[0; MAX_PAYLOAD + 1]),
        ];
        for bytes in cases {
            let (mut device, mut kernel) = pair();
            kernel.write_all(&bytes).unwrap();
            assert!(matches!(device.receive(), Err(Failure::Protocol(_))), "{bytes:?}");
        }
        let (mut device, mut kernel) = pair();
        kernel.write_all(&encode(8, VERSION, &[0; 8])[..14]).unwrap();
        assert!(matches!(device.receive(), Err(Failure::Silent)));
    }

    #[test]
    fn a_refused_notification_is_an_error() {
        for (status, is_accepted) in [(0_u64, true), (1, false)] {
            let (ours, mut kernel) = UnixStream::pair().unwrap();
            let mut requests = RequestSocket::new(ours.into(), LIMIT).unwrap();
            requests.call(1).unwrap();
            let mut call = [0; HEADER + 8];
            kernel.read_exact(&mut call).unwrap();
            kernel.write_all(&encode(VRING_CALL, VERSION | REPLY, &status.to_ne_bytes())).unwrap();
            assert_eq!(requests.called().is_ok(), is_accepted);
        }
    }
}
