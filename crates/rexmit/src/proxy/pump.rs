//! One direction of a connection: data read from one side is written to the other.

use std::io;
use std::net::Shutdown;
use std::sync::atomic::{AtomicU64, Ordering};

use socket2::SockRef;

use crate::tcp::TcpStream;

/// The most bytes read from one side at a time, large enough that the overhead per read is small.
const BUFFER_BYTES: usize = 16 * 1024;

/// One side: our TCP, or the kernel's.
pub(super) trait Side {
    fn try_read(&self, into: &mut [u8]) -> io::Result<usize>;
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize>;
    async fn readable(&self) -> io::Result<()>;
    async fn writable(&self) -> io::Result<()>;
    /// Half-close: nothing more is sent, data is still received.
    fn finish(&self) -> io::Result<()>;
}

impl Side for TcpStream {
    fn try_read(&self, into: &mut [u8]) -> io::Result<usize> {
        Self::try_read(self, into)
    }

    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        Self::try_write(self, bytes)
    }

    async fn readable(&self) -> io::Result<()> {
        Self::readable(self).await;
        Ok(())
    }

    async fn writable(&self) -> io::Result<()> {
        Self::writable(self).await;
        Ok(())
    }

    fn finish(&self) -> io::Result<()> {
        Self::finish(self);
        Ok(())
    }
}

impl Side for tokio::net::TcpStream {
    fn try_read(&self, into: &mut [u8]) -> io::Result<usize> {
        Self::try_read(self, into)
    }

    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        Self::try_write(self, bytes)
    }

    async fn readable(&self) -> io::Result<()> {
        Self::readable(self).await
    }

    async fn writable(&self) -> io::Result<()> {
        Self::writable(self).await
    }

    fn finish(&self) -> io::Result<()> {
        SockRef::from(self).shutdown(Shutdown::Write)
    }
}

/// Which side no longer works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Broken {
    Source,
    Sink,
}

/// The state of one direction.
#[derive(Debug)]
pub(super) struct Pump<'a> {
    buffer: Box<[u8]>,
    /// The beginning of the data that was read and not written yet.
    start: usize,
    end: usize,
    /// Bytes written so far.
    written: &'a AtomicU64,
}

impl<'a> Pump<'a> {
    pub(super) fn new(written: &'a AtomicU64) -> Self {
        Self { buffer: vec![0; BUFFER_BYTES].into(), start: 0, end: 0, written }
    }

    /// Queues `bytes` to be written before the data of the source.
    pub(super) fn put_first(&mut self, bytes: &[u8]) {
        self.buffer[..bytes.len()].copy_from_slice(bytes);
        (self.start, self.end) = (0, bytes.len());
    }

    /// Transfers data until the source has finished, and then finishes the sink.
    ///
    /// Dropping the future loses nothing: buffered data stays in the buffer.
    pub(super) async fn run(&mut self, source: &impl Side, sink: &impl Side) -> Result<(), Broken> {
        loop {
            match self.turn(source, sink)? {
                Turn::Moved => tokio::task::coop::consume_budget().await,
                Turn::Finished => return sink.finish().map_err(|_| Broken::Sink),
                Turn::SourceEmpty => source.readable().await.map_err(|_| Broken::Source)?,
                Turn::SinkFull => sink.writable().await.map_err(|_| Broken::Sink)?,
            }
        }
    }

    /// Transfers all data that can be transferred without waiting, after the source has failed. The end of the source
    /// is not passed on: after an error, the kernel's sockets report an end that looks orderly.
    pub(super) fn flush(&mut self, source: &impl Side, sink: &impl Side) {
        while let Ok(Turn::Moved) = self.turn(source, sink) {}
    }

    fn turn(&mut self, source: &impl Side, sink: &impl Side) -> Result<Turn, Broken> {
        if self.start == self.end {
            match source.try_read(&mut self.buffer) {
                Ok(0) => return Ok(Turn::Finished),
                Ok(len) => (self.start, self.end) = (0, len),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(Turn::SourceEmpty);
                }
                Err(_) => return Err(Broken::Source),
            }
        }
        match sink.try_write(&self.buffer[self.start..self.end]) {
            Ok(len) => {
                self.start += len;
                self.written.fetch_add(len as u64, Ordering::Relaxed);
                Ok(Turn::Moved)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Turn::SinkFull),
            Err(_) => Err(Broken::Sink),
        }
    }
}

enum Turn {
    Moved,
    Finished,
    SourceEmpty,
    SinkFull,
}
