//! Random runs: two SCTP endpoints over a simulated path, driven by random operations, and
//! checkers of the applications' events and of the packets.
//!
//! A run is a function of its seed: [`Plan::draw`] makes a plan from it, and [`run`] executes the plan and reports
//! violations. [`plan`] defines the plans, [`messages`] checks the applications' events, [`watch`] checks the packets,
//! and [`world`] combines them. [`golden`] compares the endpoints' packets with recorded hashes.
//!
//! ```text
//! cargo test -p rexmit-tests                                  the usual number of seeds
//! REXMIT_SEEDS=5000 cargo test --release -p rexmit-tests      more of them
//! REXMIT_SEED=17 cargo test -p rexmit-tests keep_every -- --nocapture    one, with its story
//! ```

pub mod golden;
pub mod messages;
pub mod paths;
pub mod plan;
pub mod seeds;
pub mod watch;
pub mod world;

pub use plan::Plan;
pub use world::{Outcome, run};

/// The code of the README and the book, compiled and run by `cargo test --doc`.
#[cfg(doctest)]
mod book {
    #[doc = include_str!("../../README.md")]
    struct Readme;
    #[doc = include_str!("../../docs/quick-start.md")]
    struct QuickStart;
    #[doc = include_str!("../../docs/which-profile.md")]
    struct WhichProfile;
    #[doc = include_str!("../../docs/priorities.md")]
    struct Priorities;
}
