//! The `rexmit` command.
fn main() {}
