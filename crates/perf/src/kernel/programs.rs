//! Any two programs at the ends of a link inside a kernel, in virtual time.
//!
//! The programs are unmodified. A [`Carry`] defines how their messages are recognised.

use std::path::PathBuf;
use std::time::Duration;

use rexmit_lab::connections::SocketsError;
use serde::{Deserialize, Serialize};

use super::boot::{execute, failure};
use super::{Answer, Order, What};

/// The address of the server, as the programs see it; also in the variable `REXMIT_SERVER`.
pub const SERVER: &str = "10.90.0.1";
/// The address of the client; also in the variable `REXMIT_CLIENT`.
pub const CLIENT: &str = "10.90.0.2";
/// The environment variable with the name of the file for [`Carry::Stamps`].
pub const STAMPS: &str = "REXMIT_STAMPS";
/// The least size of a message of [`Carry::Lines`] in bytes: `rexmit`, a number, and the end of the line.
pub const LEAST_LINE: u32 = 16;

/// How messages pass through the programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Carry {
    /// Each message is a line of the client's standard input, and is delivered when the server prints it.
    Lines,
    /// The programs write `sent ID` and `received ID`, a line each, to the file that [`STAMPS`] names.
    Stamps,
    /// The client is run once per message, which is delivered when the client ends successfully.
    Runs,
}

/// Two programs, the link between them, and the messages.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Programs {
    /// The command line of the server, for the shell.
    pub server: String,
    /// The command line of the client, for the shell.
    pub client: String,
    /// How messages pass.
    pub carry: Carry,
    /// Both directions of the link, in netem's notation.
    pub link: String,
    /// The time of each message in microseconds, ascending, and its size in bytes. With [`Carry::Stamps`] only the last
    /// time matters, as that of the end.
    pub messages: Vec<(u64, u32)>,
    /// How long to wait for missing messages after the last one is sent.
    pub drain: Duration,
    /// The current directory of the programs, which is read-only for them.
    pub folder: PathBuf,
    /// The value of PATH.
    pub path: String,
}

/// The measurements.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ProgramsOutcome {
    /// The number of messages sent.
    pub sent: u64,
    /// The time from the intended sending of each delivered message to its delivery, in nanoseconds.
    pub latencies: Vec<u64>,
    /// IP packets sent over the link, in both directions.
    pub packets: u64,
    /// The bytes of these packets.
    pub bytes: u64,
    /// How a program ended that should have continued, or ended without success.
    pub failed: Option<String>,
    /// The end of what the programs printed to their standard error output.
    pub errors: String,
}

/// Runs the programs in a kernel that is booted for it; `seed` is that of the link and of the kernel's random numbers.
///
/// # Errors
/// If there is no kernel, it does not boot, or the programs cannot be started.
pub fn run(programs: &Programs, seed: u64) -> Result<ProgramsOutcome, SocketsError> {
    match execute(&Order { what: What::Programs(programs.clone()), seed })? {
        Answer::Programs(outcome) => Ok(outcome),
        answer => Err(failure(answer)),
    }
}
