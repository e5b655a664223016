//! A greedy transfer on a bidirectional stream; messages use unidirectional ones.

use quinn_proto::{Connection, Dir, StreamId};

/// The priority of the transfer's stream; that of the messages is 0.
const PRIORITY: i32 = -1;
/// Bytes of a write.
const WRITE: [u8; 16 * 1024] = [0; 16 * 1024];

/// One side of the transfer.
#[derive(Default)]
pub(super) struct Transfer {
    stream: Option<StreamId>,
    received: u64,
}

impl Transfer {
    /// Writes until a window is full.
    pub(super) fn fill(&mut self, connection: &mut Connection) {
        if self.stream.is_none() {
            self.stream = connection.streams().open(Dir::Bi);
            if let Some(id) = self.stream {
                // It was just opened.
                let _ = connection.send_stream(id).set_priority(PRIORITY);
            }
        }
        let Some(id) = self.stream else { return };
        while connection.send_stream(id).write(&WRITE).is_ok() {}
    }

    /// Reads from a stream that the peer has opened.
    pub(super) fn accept(&mut self, connection: &mut Connection) {
        while let Some(id) = connection.streams().accept(Dir::Bi) {
            self.read(connection, id);
        }
    }

    pub(super) fn read(&mut self, connection: &mut Connection, id: StreamId) {
        let mut stream = connection.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else { return };
        while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
            self.received += chunk.bytes.len() as u64;
        }
        // The packets to be sent are polled afterwards.
        let _ = chunks.finalize();
    }

    pub(super) fn take_received(&mut self) -> u64 {
        std::mem::take(&mut self.received)
    }
}
