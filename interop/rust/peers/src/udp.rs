//! One UDP socket towards one other address.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

/// A bound socket, and the address with which it exchanges packets.
#[derive(Debug)]
pub(crate) struct Udp {
    socket: UdpSocket,
    remote: Option<SocketAddr>,
    buffer: Vec<u8>,
}

impl Udp {
    /// Binds `local`. If there is no `remote`, the source of the first packet becomes the remote.
    pub(crate) fn bind(local: SocketAddr, remote: Option<SocketAddr>) -> io::Result<Self> {
        Ok(Self { socket: UdpSocket::bind(local)?, remote, buffer: vec![0; 1 << 16] })
    }

    /// Sends a packet; drops it if the remote is unknown or the network refuses it.
    pub(crate) fn send(&self, packet: &[u8]) {
        if let Some(remote) = self.remote {
            let _ = self.socket.send_to(packet, remote);
        }
    }

    /// Waits for a packet; `None` after `timeout`.
    pub(crate) fn wait(&mut self, timeout: Duration) -> io::Result<Option<(SocketAddr, &[u8])>> {
        self.socket.set_nonblocking(false)?;
        self.socket.set_read_timeout(Some(timeout.max(Duration::from_millis(1))))?;
        self.receive()
    }

    /// Returns a packet that has already arrived.
    pub(crate) fn take(&mut self) -> io::Result<Option<(SocketAddr, &[u8])>> {
        self.socket.set_nonblocking(true)?;
        self.receive()
    }

    fn receive(&mut self) -> io::Result<Option<(SocketAddr, &[u8])>> {
        match self.socket.recv_from(&mut self.buffer) {
            Ok((length, from)) => {
                self.remote = Some(from);
                Ok(Some((from, &self.buffer[..length])))
            }
            Err(error) => match error.kind() {
                // Refused: the other side has not bound its port yet, or has closed it.
                ErrorKind::WouldBlock
                | ErrorKind::TimedOut
                | ErrorKind::Interrupted
                | ErrorKind::ConnectionRefused => Ok(None),
                _ => Err(error),
            },
        }
    }
}
