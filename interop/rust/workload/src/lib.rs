//! The messages of two SCTP peers in an interoperability run, and the check of those received.
//!
//! Every message is a pure function of the seed, the direction and its number ([`Plan`]), so the receiver knows the
//! expected messages without help of the sender. `interop/README.md` describes the rules, which the C and Go peers
//! implement, too.

mod fault;
mod options;
mod plan;
mod report;
mod sender;
mod splitmix;
mod verifier;

pub use fault::{Fault, FaultKind};
pub use options::{Mode, Options, Over, Paths, Role, USAGE};
pub use plan::{Direction, LARGEST_MESSAGE, Message, PPID, Plan};
pub use report::Report;
pub use sender::{Outgoing, Sender};
pub use verifier::{Counts, Verifier};
