//! Messages on QUIC streams.

use std::collections::{BTreeMap, VecDeque};

use bytes::{Buf, Bytes, BytesMut};
use quinn_proto::{Connection, Dir, ReadError, StreamId};

use crate::hosts::WriteResult;

/// Bytes of the length prefix of a message of an ordered flow.
const LENGTH_BYTES: usize = 2;

/// Writes messages to streams, and reads them.
pub(super) struct Messages {
    is_unordered: bool,
    /// The stream on which an ordered flow is sent.
    stream: Option<StreamId>,
    /// Data received on unfinished streams.
    partial: BTreeMap<StreamId, BytesMut>,
    whole: VecDeque<Bytes>,
}

impl Messages {
    pub(super) fn new(is_unordered: bool) -> Self {
        Self { is_unordered, stream: None, partial: BTreeMap::new(), whole: VecDeque::new() }
    }

    pub(super) fn are_waiting(&self) -> bool {
        !self.whole.is_empty()
    }

    pub(super) fn take(&mut self, each: &mut dyn FnMut(&[u8])) {
        self.whole.drain(..).for_each(|message| each(&message));
    }

    /// Sends a message, as a whole or not at all.
    pub(super) fn write(&mut self, connection: &mut Connection, message: &Bytes) -> WriteResult {
        if self.is_unordered {
            let Some(id) = connection.streams().open(Dir::Uni) else { return WriteResult::Full };
            return match connection.send_stream(id).write(message) {
                Ok(written) if written == message.len() => {
                    let finished = connection.send_stream(id).finish();
                    if finished.is_ok() { WriteResult::All } else { WriteResult::Ended }
                }
                // Its windows hold thousands of messages of thin streams.
                _ => WriteResult::Ended,
            };
        }
        let Ok(length) = u16::try_from(message.len()) else { return WriteResult::Ended };
        if self.stream.is_none() {
            self.stream = connection.streams().open(Dir::Uni);
        }
        let Some(id) = self.stream else { return WriteResult::Full };
        let mut framed = BytesMut::with_capacity(LENGTH_BYTES + message.len());
        framed.extend_from_slice(&length.to_be_bytes());
        framed.extend_from_slice(message);
        match connection.send_stream(id).write(&framed) {
            Ok(written) if written == framed.len() => WriteResult::All,
            _ => WriteResult::Ended,
        }
    }

    /// Reads from the streams that the peer has opened.
    pub(super) fn accept(&mut self, connection: &mut Connection) {
        while let Some(id) = connection.streams().accept(Dir::Uni) {
            self.read(connection, id);
        }
    }

    /// Reads from a stream.
    pub(super) fn read(&mut self, connection: &mut Connection, id: StreamId) {
        let mut stream = connection.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else { return };
        let came = self.partial.entry(id).or_default();
        let is_through = loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => came.extend_from_slice(&chunk.bytes),
                Ok(None) | Err(ReadError::Reset(_)) => break true,
                Err(ReadError::Blocked) => break false,
            }
        };
        // The packets to be sent are polled afterwards.
        let _ = chunks.finalize();
        if !self.is_unordered {
            while let Some((length, rest)) = came.split_first_chunk() {
                let length = usize::from(u16::from_be_bytes(*length));
                if rest.len() < length {
                    break;
                }
                came.advance(LENGTH_BYTES);
                self.whole.push_back(came.split_to(length).freeze());
            }
        }
        if is_through {
            let message = self.partial.remove(&id).unwrap_or_default();
            if self.is_unordered {
                self.whole.push_back(message.freeze());
            }
        }
    }
}
