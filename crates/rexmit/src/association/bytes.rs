//! Streams of bytes of any length, over messages of bounded size on an ordered stream.
//!
//! A writer sends messages of at most 16 KiB with [`BYTES_PPID`]. The last message is one byte with
//! [`END_PPID`], since SCTP has no empty messages: 0 after `shutdown`, 1 if the writer was dropped before.
//! The sender buffers at most `send_buffer_bytes` and one message, the receiver `receive_buffer_bytes` and one message.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use rexmit_sctp::{InboundMessage, OutboundMessage};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{Association, Stream};
use crate::{SendError, TrySendError};

/// The Payload Protocol Identifier of the messages of a stream of bytes.
const BYTES_PPID: u32 = u32::from_be_bytes(*b"rxmb");
/// The Payload Protocol Identifier of the message that ends a stream of bytes.
const END_PPID: u32 = u32::from_be_bytes(*b"rxme");

/// The largest message of a stream of bytes, if `max_message_bytes` allows it.
const MESSAGE_BYTES: usize = 16 * 1024;
const COMPLETE: &[u8] = &[0];
const ABANDONED: &[u8] = &[1];

type Sending = Pin<Box<dyn Future<Output = Result<(), SendError>> + Send>>;
type Receiving = Pin<Box<dyn Future<Output = Option<InboundMessage>> + Send>>;

/// Writes a stream of bytes; made by [`Stream::writer`].
///
/// A write waits while the association's send buffer is full. `shutdown` ends the stream. If the writer is
/// dropped before, the reader gets an error, because the stream is incomplete.
pub struct ByteWriter {
    stream: Stream,
    /// Bytes of a message at most.
    most: usize,
    /// A message that waits for room.
    sending: Option<Sending>,
    has_ended: bool,
}

/// Reads a stream of bytes; made by [`Stream::reader`].
///
/// Reading ends with the writer's `shutdown`. A stream that ends otherwise is an error: `UnexpectedEof` if the writer
/// was dropped or the association has ended, `InvalidData` if a message was not sent by a [`ByteWriter`].
pub struct ByteReader {
    stream: Stream,
    /// The unread rest of the last message.
    rest: Bytes,
    receiving: Option<Receiving>,
    end: Option<Result<(), (io::ErrorKind, &'static str)>>,
}

impl std::fmt::Debug for ByteWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ByteWriter").field("stream", &self.stream).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for ByteReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ByteReader").field("stream", &self.stream).finish_non_exhaustive()
    }
}

impl Stream {
    /// A stream of bytes of any length to the peer, which reads it with a [`reader`](Self::reader). Nothing else may be
    /// sent on this stream meanwhile, and the peer must not have more than one writer for it.
    ///
    /// ```
    /// # async fn example(association: rexmit::Association) -> std::io::Result<()> {
    /// use tokio::io::AsyncWriteExt as _;
    ///
    /// let mut writer = association.stream(1).writer();
    /// writer.write_all(b"any number of bytes").await?;
    /// writer.shutdown().await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn writer(&self) -> ByteWriter {
        ByteWriter::new(self.clone())
    }

    /// The stream of bytes that the peer writes on its stream of this number. Until it has ended or the reader is
    /// dropped, [`Association::recv`] returns no messages of this stream. Create the reader before the peer can write,
    /// because it misses messages received earlier. Messages are delivered in the order of their arrival: an unread
    /// message delays all later ones, including those of other streams.
    ///
    /// ```
    /// # async fn example(association: rexmit::Association) -> std::io::Result<()> {
    /// use tokio::io::AsyncReadExt as _;
    ///
    /// let mut reader = association.stream(1).reader();
    /// let mut all = Vec::new();
    /// reader.read_to_end(&mut all).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn reader(&self) -> ByteReader {
        ByteReader::new(self.clone())
    }
}

impl ByteWriter {
    fn new(stream: Stream) -> Self {
        Self { stream, most: MESSAGE_BYTES, sending: None, has_ended: false }
    }

    /// Passes a message to the association, or keeps it until there is room.
    fn send(&mut self, message: OutboundMessage) -> Result<(), SendError> {
        let association = self.stream.association();
        match association.try_send(message.clone()) {
            Ok(_) => {}
            Err(TrySendError::Refused(error)) => return Err(error),
            Err(TrySendError::Full) => {
                let association = association.clone();
                self.sending =
                    Some(Box::pin(async move { association.send(message).await.map(drop) }));
            }
        }
        Ok(())
    }

    fn marker(&self, content: &'static [u8]) -> OutboundMessage {
        self.stream.message(content).ppid(END_PPID)
    }

    fn poll_sent(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(sending) = &mut self.sending else { return Poll::Ready(Ok(())) };
        let sent = ready!(sending.as_mut().poll(cx));
        self.sending = None;
        Poll::Ready(sent.map_err(broken))
    }
}

fn broken(error: SendError) -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, error)
}

impl AsyncWrite for ByteWriter {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_sent(cx))?;
        if self.has_ended {
            return Poll::Ready(Err(broken(SendError::Closing)));
        }
        loop {
            let len = bytes.len().min(self.most);
            if len == 0 {
                return Poll::Ready(Ok(0));
            }
            let message = self.stream.message(Bytes::copy_from_slice(&bytes[..len]));
            match self.send(message.ppid(BYTES_PPID)) {
                Ok(()) => return Poll::Ready(Ok(len)),
                Err(SendError::TooLarge { limit }) if limit < self.most => self.most = limit,
                Err(error) => return Poll::Ready(Err(broken(error))),
            }
        }
    }

    /// Waits until the association has accepted everything, which does not mean that it has arrived.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_sent(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_sent(cx))?;
        if !self.has_ended {
            let marker = self.marker(COMPLETE);
            self.send(marker).map_err(broken)?;
            self.has_ended = true;
        }
        self.poll_sent(cx)
    }
}

impl Drop for ByteWriter {
    fn drop(&mut self) {
        let marker = (!self.has_ended).then(|| self.marker(ABANDONED));
        let (waiting, mut last) = (self.sending.take(), None);
        if let Some(marker) = marker {
            if waiting.is_none() {
                _ = self.send(marker); // An error is that of the association, which the reader sees, too.
                last = self.sending.take();
            } else {
                let association = self.stream.association().clone();
                let send = async move { association.send(marker).await.map(drop) };
                last = Some(Box::pin(send) as Sending);
            }
        }
        if waiting.is_none() && last.is_none() {
            return;
        }
        let finish = async move {
            for sending in [waiting, last].into_iter().flatten() {
                sending.await?;
            }
            Ok::<_, SendError>(())
        };
        // Without a runtime nothing else is sent, either.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(finish);
        }
    }
}

impl ByteReader {
    fn new(stream: Stream) -> Self {
        stream.association().add_reader(stream.number());
        Self { stream, rest: Bytes::new(), receiving: None, end: None }
    }

    /// Takes over a message, or the end of the association.
    fn on_received(&mut self, message: Option<InboundMessage>) {
        let Some(message) = message else {
            let what = "the association has ended before the stream of bytes";
            return self.end_with(Err((io::ErrorKind::UnexpectedEof, what)));
        };
        let is_complete = &*message.payload == COMPLETE;
        match message.ppid {
            BYTES_PPID if !message.unordered => self.rest = message.payload,
            END_PPID if is_complete => self.end_with(Ok(())),
            END_PPID => {
                let what = "the writer was dropped before the end of the stream of bytes";
                self.end_with(Err((io::ErrorKind::UnexpectedEof, what)));
            }
            _ => {
                let what = "a message that is no part of a stream of bytes";
                self.end_with(Err((io::ErrorKind::InvalidData, what)));
            }
        }
    }

    /// Ends reading. Messages that the peer still sends on this stream are returned by `recv` from now on: unread, they
    /// would delay the messages of all streams for as long as the reader exists.
    fn end_with(&mut self, end: Result<(), (io::ErrorKind, &'static str)>) {
        self.end = Some(end);
        self.stream.association().remove_reader(self.stream.number());
    }
}

impl AsyncRead for ByteReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let len = self.rest.len().min(into.remaining());
            if len > 0 || into.remaining() == 0 {
                into.put_slice(&self.rest[..len]);
                self.rest.advance(len);
                return Poll::Ready(Ok(()));
            } else if let Some(end) = self.end {
                return Poll::Ready(end.map_err(|(kind, what)| io::Error::new(kind, what)));
            }
            let receiving = match self.receiving.take() {
                Some(receiving) => receiving,
                None => receive(self.stream.association().clone(), self.stream.number()),
            };
            let receiving = self.receiving.insert(receiving);
            let message = ready!(receiving.as_mut().poll(cx));
            self.receiving = None;
            self.on_received(message);
        }
    }
}

fn receive(association: Association, stream: u16) -> Receiving {
    Box::pin(async move { association.recv_of(Some(stream)).await })
}

impl Drop for ByteReader {
    fn drop(&mut self) {
        self.receiving = None;
        if self.end.is_none() {
            self.stream.association().remove_reader(self.stream.number());
        }
    }
}
