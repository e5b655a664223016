//! Fuzzing of parsers and state machines. Each file under `tests/` is one subject, each test in it one target; this
//! crate generates their inputs.
//!
//! In `cargo test`, a target runs with a fixed number of random inputs, and with the files in its `corpus` and
//! `crashes` folders. A failure prints the input and a `BOLERO_RANDOM_SEED` that repeats it. `BOLERO_RANDOM_ITERATIONS`
//! and `BOLERO_RANDOM_TEST_TIME_MS` make it run longer. `make fuzz` (`scripts/fuzz`) runs all targets guided by
//! coverage, and those inside other crates, too.
//!
//! The DTLS library draws its own keys: the target of changed records sees other bytes in each run, so that reproducing
//! a failure may take several runs.
//!
//! For a failure that was found, a test is added to the crate concerned, whose name describes the failure.

pub mod dtls;
mod endpoint;
mod filled;
mod inputs;
mod sctp_packet;
pub mod tcp;
mod timers;

pub use endpoint::{Act, Aim, Exchange, Handling, Script, SendDraft, Traffic, profile_of};
pub use filled::Filled;
pub use sctp_packet::{ChunkDraft, PacketDraft};
