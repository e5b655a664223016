//! SCTP implementations by others, each as an executable over UDP: the code that these executables share.
//!
//! An implementation is a [`Stack`]; [`run`] drives it over one UDP socket whose payloads are SCTP
//! packets (RFC 6951) and checks what it delivers.

mod exchange;
mod out_of_the_blue;
mod packet;
mod stack;
mod udp;

pub use exchange::run;
pub use stack::{Notice, Stack};
