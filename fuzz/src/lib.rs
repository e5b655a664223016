//! Fuzzing of parsers and state machines. Each file under `tests/` is one subject, each test in
//! it one target; what targets share in the way of generated input stands here.
//!
//! As part of `cargo test` a target runs for a fixed number of random inputs, and over what lies
//! in its `corpus` and `crashes` folders. A failure prints the input and a `BOLERO_RANDOM_SEED`
//! that repeats it. `BOLERO_RANDOM_ITERATIONS` and `BOLERO_RANDOM_TEST_TIME_MS` make it run
//! longer; `cargo bolero test -p rexmit-fuzz TARGET` runs it guided by coverage, for as long as
//! wanted (`cargo install cargo-bolero` once). A failure found that way belongs into the tests of
//! the crate it was found in, under a name that says what broke.

mod sctp_packet;

pub use sctp_packet::{ChunkDraft, PacketDraft};
