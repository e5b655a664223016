//! Message boundaries in a byte stream. Both ends know the trace and so the length of each message;
//! nothing is added to the data that a TCP application would send.

use rexmit_netsim::traffic::trace::Message;

/// Splits a stream into the messages of a trace.
pub(in crate::realtime) struct Framing {
    lengths: Vec<usize>,
    /// The index of the message that is being received.
    number: usize,
    /// The part of the current message that has been received.
    begun: Vec<u8>,
}

impl Framing {
    pub(in crate::realtime) fn new(messages: &[Message]) -> Self {
        let lengths = messages.iter().map(|message| message.bytes as usize).collect();
        Self { lengths, number: 0, begun: Vec::new() }
    }

    /// Processes received `bytes`; calls `each` with every message that they complete and its
    /// number. Bytes after the last message are passed as one more message.
    pub(in crate::realtime) fn take<E>(
        &mut self,
        mut bytes: &[u8],
        mut each: impl FnMut(u32, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        while !bytes.is_empty() {
            let len = self.lengths.get(self.number).copied().unwrap_or(bytes.len());
            let missing = len - self.begun.len();
            let (part, rest) = bytes.split_at(missing.min(bytes.len()));
            self.begun.extend_from_slice(part);
            bytes = rest;
            if self.begun.len() == len {
                each(self.number as u32, &self.begun)?;
                self.begun.clear();
                self.number += 1;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::time::Duration;

    use super::*;

    #[test]
    fn messages_are_found_however_the_stream_is_cut() {
        let message = |bytes| Message { at: Duration::ZERO, bytes };
        let lengths = [3, 1, 4, 1, 5];
        let stream: Vec<u8> = (0..14).collect();
        for piece in 1..=14 {
            let mut framing = Framing::new(&lengths.map(message));
            let mut found = Vec::new();
            for bytes in stream.chunks(piece) {
                let each = |number, bytes: &[u8]| {
                    found.push((number, bytes.to_vec()));
                    Ok::<_, Infallible>(())
                };
                framing.take(bytes, each).unwrap();
            }
            let want = [
                (0, vec![0, 1, 2]),
                (1, vec![3]),
                (2, vec![4, 5, 6, 7]),
                (3, vec![8]),
                (4, vec![9, 10, 11, 12, 13]),
            ];
            assert_eq!(found, want, "in pieces of {piece}");
        }
    }

    #[test]
    fn data_after_the_last_message_is_reported() {
        let mut framing = Framing::new(&[]);
        let result = framing.take(&[1, 2], |number, bytes| Err((number, bytes.len())));
        assert_eq!(result, Err((0, 2)));
    }
}
