//! Fuzzing of parsers and state machines. Each file under `tests/` is one subject, each test in
//! it one target; what targets share in the way of generated input stands here.
//!
//! As part of `cargo test` a target runs for a fixed number of random inputs, and over what lies
//! in its `corpus` and `crashes` folders. A failure prints the input and a `BOLERO_RANDOM_SEED`
//! that repeats it. `BOLERO_RANDOM_ITERATIONS` and `BOLERO_RANDOM_TEST_TIME_MS` make it run
//! longer. `make fuzz` (`scripts/fuzz`) runs all targets guided by coverage, and those inside other crates, too.
//!
//! DTLS draws its keys itself: inputs of the target of changed records meet other bytes in each run, and a failure
//! may need several runs to come back.
//!
//! A failure belongs into the tests of the crate it was found in, under a name that says what
//! broke.

pub mod dtls;
mod endpoint;
mod sctp_packet;
pub mod tcp;

pub use endpoint::{Act, Aim, Exchange, Handling, Script, SendDraft, Traffic};
pub use sctp_packet::{ChunkDraft, PacketDraft};
