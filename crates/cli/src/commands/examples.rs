//! How the help of each subcommand ends.

/// The end of a subcommand's help: an example, then the exit codes.
macro_rules! examples {
    ($text:literal) => {
        concat!("Examples:\n", $text, "\n\nExit codes: see `rexmit --help`.")
    };
}
pub(crate) use examples;
