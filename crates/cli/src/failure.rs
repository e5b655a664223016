//! The failure of a command: a message for people, and an exit code for programs.

use std::fmt;
use std::io;
use std::process::ExitCode;

/// The list of exit codes at the end of every `--help`.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  failed: the error message says why and what to do
  2  wrong arguments
  3  an address cannot be used: taken, not of this machine, or not permitted
  4  the peer does not answer, or refuses
  5  a file cannot be read or written, or is not what was expected
  130  interrupted before the end";

/// The kind of a failure, which is its exit code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Any failure without its own exit code.
    Failed = 1,
    /// Invalid arguments that clap cannot detect.
    Usage = 2,
    /// A local address cannot be bound.
    Address = 3,
    /// The peer does not answer, or refuses.
    Peer = 4,
    /// A file cannot be read or written.
    File = 5,
    /// Interrupted by SIGINT or SIGTERM.
    Interrupted = 130,
}

/// The reason for a command's failure, and what to do about it.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    /// `None` if the reason was printed already.
    message: Option<String>,
}

impl Failure {
    /// A failure of this kind with a message.
    pub(crate) fn new(kind: Kind, message: impl fmt::Display) -> Self {
        Self::with_code(kind as u8, message)
    }

    /// A failure with the exit code of another program.
    pub(crate) fn with_code(code: u8, message: impl fmt::Display) -> Self {
        Self { code, message: Some(message.to_string()) }
    }

    /// The exit code of a command started by `rexmit`.
    pub(crate) const fn exit(code: u8) -> Self {
        Self { code, message: None }
    }

    /// The exit code.
    pub(crate) const fn code(&self) -> u8 {
        self.code
    }

    /// Prints the message and returns the exit code.
    pub(crate) fn tell(&self) -> ExitCode {
        if let Some(message) = &self.message {
            eprintln!("rexmit: {message}");
        }
        ExitCode::from(self.code)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::new(Kind::Failed, error)
    }
}

impl From<rexmit::BindError> for Failure {
    fn from(error: rexmit::BindError) -> Self {
        let kind = match error {
            rexmit::BindError::Config(_) => Kind::Usage,
            _ => Kind::Address,
        };
        Self::new(kind, error)
    }
}

impl From<rexmit::ConnectError> for Failure {
    fn from(error: rexmit::ConnectError) -> Self {
        Self::new(Kind::Peer, error)
    }
}

impl From<rexmit::emulator::EmulatorError> for Failure {
    fn from(error: rexmit::emulator::EmulatorError) -> Self {
        use rexmit::emulator::EmulatorError;
        match error {
            EmulatorError::Bind(error) => error.into(),
            EmulatorError::Path { .. }
            | EmulatorError::BatchTooLong(_)
            | EmulatorError::SamePort(_)
            | EmulatorError::OtherFamily => Self::new(Kind::Usage, error),
            _ => Self::new(Kind::Failed, error),
        }
    }
}

/// The result of a subcommand's `run`.
pub(crate) type Outcome = Result<(), Failure>;
