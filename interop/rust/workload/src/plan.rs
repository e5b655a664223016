//! The messages of one direction: stream, order, size and bytes, all from (seed, direction, number).

use crate::splitmix::SplitMix64;

/// The largest message of a plan, in bytes. Both ends must be configured to accept it.
pub const LARGEST_MESSAGE: usize = 65_536;

/// The payload protocol identifier of every message: "WebRTC Binary" of RFC 8831 §8, which
/// implementations made for data channels pass on unchanged.
pub const PPID: u32 = 53;

/// The least size in bytes of messages that contain their whole number; shorter ones contain its low bytes.
pub(crate) const NUMBER_BYTES: usize = 4;

const HEADER_BYTES: usize = 16;
const UNORDERED_SEQUENCE: u32 = u32::MAX;

/// The sending side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the side that connected.
    ClientToServer = 0,
    /// From the side that was connected to.
    ServerToClient = 1,
}

impl Direction {
    /// The opposite direction.
    #[must_use]
    pub const fn reverse(self) -> Self {
        match self {
            Self::ClientToServer => Self::ServerToClient,
            Self::ServerToClient => Self::ClientToServer,
        }
    }
}

/// How one message is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The stream it is sent on.
    pub stream: u16,
    /// The message's index among the ordered messages of its stream, from 0; `None` if it is unordered.
    pub sequence: Option<u32>,
    /// The length of the message in bytes, 1..=[`LARGEST_MESSAGE`].
    pub size: usize,
}

/// All messages of one direction.
#[derive(Clone, Debug)]
pub struct Plan {
    key: u64,
    direction: Direction,
    messages: Vec<Message>,
}

impl Plan {
    /// The plan of `count` messages over `streams` streams (at least one).
    ///
    /// # Panics
    /// If `streams` is 0 or `count` is 2³¹ or more.
    #[must_use]
    pub fn new(seed: u64, direction: Direction, count: u32, streams: u16) -> Self {
        assert!(streams > 0, "a plan needs a stream");
        assert!(count < 1 << 31, "a message's number has 31 bits");
        let key = SplitMix64(seed).draw();
        let mut next_sequence = vec![0; usize::from(streams)];
        let messages = (0..count)
            .map(|number| draw_message(key, direction, number, &mut next_sequence))
            .collect();
        Self { key, direction, messages }
    }

    /// The number of messages.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.messages.len() as u32
    }

    /// Whether there is no message at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// How message `number` is sent.
    ///
    /// # Panics
    /// If the plan has no such message.
    #[must_use]
    pub fn message(&self, number: u32) -> Message {
        self.messages[number as usize]
    }

    /// Replaces the content of `payload` by the bytes of message `number`.
    ///
    /// # Panics
    /// If the plan has no such message.
    pub fn write_payload(&self, number: u32, payload: &mut Vec<u8>) {
        let message = self.message(number);
        let sequence = message.sequence.unwrap_or(UNORDERED_SEQUENCE);
        let first_word = (number << 1) | u32::from(message.sequence.is_none());
        let mut rng = message_generator(self.key, self.direction, number);
        let _ = (rng.draw(), rng.draw()); // Those of `draw_message`.

        payload.clear();
        payload.extend_from_slice(&first_word.to_le_bytes());
        payload.extend_from_slice(&[self.direction as u8, 0]);
        payload.extend_from_slice(&message.stream.to_le_bytes());
        payload.extend_from_slice(&sequence.to_le_bytes());
        payload.extend_from_slice(&(message.size as u32).to_le_bytes());
        debug_assert_eq!(payload.len(), HEADER_BYTES);
        while payload.len() < message.size {
            payload.extend_from_slice(&rng.draw().to_le_bytes());
        }
        payload.truncate(message.size);
    }
}

fn message_generator(key: u64, direction: Direction, number: u32) -> SplitMix64 {
    SplitMix64(key ^ ((direction as u64) << 32) ^ u64::from(number))
}

fn draw_message(key: u64, direction: Direction, number: u32, next: &mut [u32]) -> Message {
    let mut rng = message_generator(key, direction, number);
    let (place, size) = (rng.draw(), rng.draw());
    let stream = (place & 0xffff_ffff) % next.len() as u64;
    let sequence = ((place >> 32) % 3 != 0).then(|| {
        let sequence = &mut next[stream as usize];
        *sequence += 1;
        *sequence - 1
    });
    Message { stream: stream as u16, sequence, size: size_of_message(number, size) }
}

/// The size of a message: mostly small, with a tail. Extreme sizes are assigned by number, so that each of them occurs.
fn size_of_message(number: u32, draw: u64) -> usize {
    if number % 400 == 10 {
        return LARGEST_MESSAGE;
    }
    if number % 100 < 3 {
        return (number % 100) as usize + 1;
    }
    let below = match draw % 100 {
        0..80 => 1 << 10,
        80..98 => 1 << 12,
        _ => 1 << 16,
    };
    1 + ((draw >> 32) % below) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        Plan::new(7, Direction::ClientToServer, 10_000, 8)
    }

    #[test]
    fn sizes_have_their_edges_and_a_small_mean() {
        let sizes: Vec<usize> = plan().messages.iter().map(|message| message.size).collect();
        for edge in [1, 2, 3, LARGEST_MESSAGE] {
            assert!(sizes.iter().filter(|&&size| size == edge).count() >= 25, "{edge}");
        }
        assert!(sizes.iter().all(|size| (1..=LARGEST_MESSAGE).contains(size)));
        let mean = sizes.iter().sum::<usize>() / sizes.len();
        assert!((1024..2048).contains(&mean), "{mean}");
    }

    #[test]
    fn every_stream_carries_ordered_and_unordered_messages() {
        let plan = plan();
        for stream in 0..8 {
            let of_stream = || plan.messages.iter().filter(|message| message.stream == stream);
            assert!(of_stream().filter(|message| message.sequence.is_none()).count() > 300);
            let sequences: Vec<u32> = of_stream().filter_map(|message| message.sequence).collect();
            assert!(sequences.len() > 700);
            assert!(sequences.iter().copied().eq(0..sequences.len() as u32), "{stream}");
        }
    }

    #[test]
    fn payload_is_its_header_and_then_the_pattern() {
        let plan = plan();
        let number = 10; // The first of the largest size.
        let mut payload = Vec::new();
        plan.write_payload(number, &mut payload);
        let message = plan.message(number);
        assert_eq!(payload.len(), LARGEST_MESSAGE);
        assert_eq!(payload[0] & 1, u8::from(message.sequence.is_none()));
        assert_eq!(u32::from_le_bytes(payload[..4].try_into().unwrap()) >> 1, number);
        assert_eq!(u16::from_le_bytes(payload[6..8].try_into().unwrap()), message.stream);
        assert_eq!(payload[12..16], 65_536_u32.to_le_bytes());
        let mut other = Vec::new();
        Plan::new(7, Direction::ServerToClient, 11, 8).write_payload(number, &mut other);
        assert_ne!(payload[16..], other[16..], "the directions differ");
    }

    #[test]
    fn short_messages_are_the_beginning_of_a_long_one() {
        let plan = plan();
        let mut payload = Vec::new();
        for number in [300, 301, 302] {
            plan.write_payload(number, &mut payload);
            let first_word = number << 1 | u32::from(plan.message(number).sequence.is_none());
            assert_eq!(payload, first_word.to_le_bytes()[..(number % 100) as usize + 1]);
        }
    }
}
