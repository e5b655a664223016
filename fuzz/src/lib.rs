//! Fuzzing of parsers and state machines. Each file under `tests/` is one subject, each test in
//! it one target; what targets share in the way of generated input stands here.
//!
//! As part of `cargo test` a target runs for a fixed number of random inputs, and over what lies
//! in its `corpus` and `crashes` folders. A failure prints the input and a `BOLERO_RANDOM_SEED`
//! that repeats it. `BOLERO_RANDOM_ITERATIONS` and `BOLERO_RANDOM_TEST_TIME_MS` make it run
//! longer. Guided by coverage, on stable, after `cargo install cargo-bolero`:
//!
//! ```text
//! cargo bolero test -p rexmit-fuzz nearly_valid_packets --sanitizer NONE --rustc-bootstrap -T 10m
//! ```
//!
//! A failure belongs into the tests of the crate it was found in, under a name that says what
//! broke.

mod endpoint;
mod sctp_packet;
pub mod tcp;

pub use endpoint::{Act, Aim, Exchange, Handling, Script, SendDraft, Traffic};
pub use sctp_packet::{ChunkDraft, PacketDraft};
