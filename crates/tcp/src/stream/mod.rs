//! The outgoing and the incoming byte stream of a connection, by unwrapped sequence numbers. Nothing here
//! depends on segments.

mod receive_buffer;
mod ring;
mod send_buffer;

pub(crate) use receive_buffer::{Inserted, ReceiveBuffer};
pub(crate) use send_buffer::SendBuffer;
