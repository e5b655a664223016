//! The end of each subcommand's help.

/// The end of a subcommand's help: an example, then the exit codes.
macro_rules! examples {
    ($text:literal) => {
        concat!("Examples:\n", $text, "\n\nExit codes: see `rexmit --help`.")
    };
}
pub(crate) use examples;
