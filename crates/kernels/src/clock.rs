//! The protocol by which a kernel asks for time (`time-travel=ext:`): messages of 16 bytes on a Unix socket, each of
//! which the other side acknowledges (Linux, `include/uapi/linux/um_timetravel.h`).

use std::io::{self, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::io::retry_on_intr;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use crate::error::Failure;

/// The length of a message in bytes: operation and number, of 32 bits each, and time.
const LEN: usize = 16;

/// The kinds of messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(crate) enum Op {
    /// The acknowledgement of the message with the same number; of `Get` and `GetTimeOfDay` with the time.
    Ack = 0,
    /// The first message of a kernel.
    Start = 1,
    /// The kernel is to run at this time; replaces its earlier request.
    Request = 2,
    /// The kernel is idle until it receives `Run`.
    Wait = 3,
    /// The kernel asks for the present time.
    Get = 4,
    /// The kernel, which runs freely, has advanced to this time.
    Update = 5,
    /// The kernel runs now, at this time.
    Run = 6,
    /// The kernel may advance to any time before this one without asking.
    FreeUntil = 7,
    /// The kernel asks for the time since 1970.
    GetTimeOfDay = 8,
    /// A number for all participants.
    Broadcast = 9,
}

impl Op {
    const ALL: [Self; 10] = [
        Self::Ack,
        Self::Start,
        Self::Request,
        Self::Wait,
        Self::Get,
        Self::Update,
        Self::Run,
        Self::FreeUntil,
        Self::GetTimeOfDay,
        Self::Broadcast,
    ];
}

/// A message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Message {
    pub(crate) op: Op,
    /// The sender's number for the message.
    pub(crate) seq: u32,
    /// Nanoseconds, or another number.
    pub(crate) time: u64,
}

impl Message {
    fn encode(self) -> [u8; LEN] {
        let mut bytes = [0; LEN];
        bytes[..4].copy_from_slice(&(self.op as u32).to_ne_bytes());
        bytes[4..8].copy_from_slice(&self.seq.to_ne_bytes());
        bytes[8..].copy_from_slice(&self.time.to_ne_bytes());
        bytes
    }

    fn decode(bytes: [u8; LEN]) -> Result<Self, Failure> {
        let [a, b, c, d, e, f, g, h, time @ ..] = bytes;
        let number = u32::from_ne_bytes([a, b, c, d]);
        let op = Op::ALL.into_iter().find(|&op| op as u32 == number);
        let op = op.ok_or_else(|| {
            Failure::Protocol(format!("message {number} on its clock's socket is unknown"))
        })?;
        Ok(Self { op, seq: u32::from_ne_bytes([e, f, g, h]), time: u64::from_ne_bytes(time) })
    }
}

/// Our end of the socket of a kernel's clock.
#[derive(Debug)]
pub(crate) struct ClockSocket {
    stream: UnixStream,
    /// The number of the last message that we sent.
    seq: u32,
}

impl ClockSocket {
    /// A socket on which nothing blocks for longer than `limit`.
    pub(crate) fn new(stream: UnixStream, limit: Duration) -> Result<Self, Failure> {
        stream.set_read_timeout(Some(limit))?;
        stream.set_write_timeout(Some(limit))?;
        Ok(Self { stream, seq: 0 })
    }

    /// The next message of the kernel.
    pub(crate) fn receive(&mut self) -> Result<Message, Failure> {
        let mut bytes = [0; LEN];
        match self.stream.read_exact(&mut bytes) {
            Ok(()) => Message::decode(bytes),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Err(Failure::Closed("it has closed the socket of its clock"))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Acknowledges `message`, with `time`.
    pub(crate) fn acknowledge(&mut self, message: Message, time: u64) -> Result<(), Failure> {
        Ok(self.stream.write_all(&Message { op: Op::Ack, time, ..message }.encode())?)
    }

    /// Acknowledges the first message. The kernel expects two descriptors with it, of a memory that it would share with
    /// the scheduler. It finds that neither can be mapped, and goes on with messages; without descriptors it would close
    /// those with arbitrary numbers (6.12).
    pub(crate) fn acknowledge_start(
        &mut self,
        start: Message,
        descriptor: BorrowedFd<'_>,
    ) -> Result<(), Failure> {
        let bytes = Message { op: Op::Ack, ..start }.encode();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let descriptors = [descriptor, descriptor];
        control.push(SendAncillaryMessage::ScmRights(&descriptors));
        let slices = [IoSlice::new(&bytes)];
        let send = || sendmsg(&self.stream, &slices, &mut control, SendFlags::NOSIGNAL);
        let sent = retry_on_intr(send)?;
        if sent == LEN { Ok(()) } else { Err(Failure::Closed("it reads no messages")) }
    }

    /// Sends a message, and waits until the kernel has acknowledged it. To be called only while the kernel waits for
    /// a message, so that it sends no others before.
    pub(crate) fn command(&mut self, op: Op, time: u64) -> Result<(), Failure> {
        self.seq = self.seq.wrapping_add(1);
        let message = Message { op, seq: self.seq, time };
        self.stream.write_all(&message.encode())?;
        let ack = self.receive()?;
        if (ack.op, ack.seq) != (Op::Ack, self.seq) {
            return Err(Failure::Protocol(format!("it answered {message:?} with {ack:?}")));
        }
        Ok(())
    }
}

impl AsFd for ClockSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_the_layout_of_the_kernel() {
        let message = Message { op: Op::FreeUntil, seq: 0x0102_0304, time: u64::MAX - 1 };
        let bytes = message.encode();
        assert_eq!(bytes[..4], 7_u32.to_ne_bytes());
        assert_eq!(bytes[4..8], 0x0102_0304_u32.to_ne_bytes());
        assert_eq!(bytes[8..], (u64::MAX - 1).to_ne_bytes());
        assert_eq!(Message::decode(bytes).unwrap(), message);
        for (number, op) in Op::ALL.into_iter().enumerate() {
            assert_eq!(op as usize, number);
        }
    }

    #[test]
    fn an_unknown_message_is_an_error() {
        let mut bytes = [0; LEN];
        bytes[0] = 10;
        assert!(matches!(Message::decode(bytes), Err(Failure::Protocol(_))));
    }

    #[test]
    fn a_command_waits_for_its_acknowledgement() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let limit = Duration::from_millis(1);
        let mut clock = ClockSocket::new(ours, limit).unwrap();
        let mut kernel = ClockSocket::new(theirs, limit).unwrap();
        assert!(matches!(clock.command(Op::Run, 5), Err(Failure::Silent)));
        let run = kernel.receive().unwrap();
        assert_eq!(run, Message { op: Op::Run, seq: 1, time: 5 });
        kernel.acknowledge(run, 0).unwrap();
        // The acknowledgement of the first is not that of the second.
        assert!(matches!(clock.command(Op::Run, 6), Err(Failure::Protocol(_))));
        drop(kernel);
        assert!(matches!(clock.command(Op::Run, 7), Err(Failure::Closed(_))));
    }
}
