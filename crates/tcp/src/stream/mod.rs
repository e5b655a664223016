//! The two byte streams of a connection: outgoing and incoming. Knows
//! sequence numbers, unwrapped, and nothing of segments.

mod receive_buffer;
mod ring;
mod send_buffer;

pub(crate) use receive_buffer::{Inserted, ReceiveBuffer};
pub(crate) use send_buffer::SendBuffer;
