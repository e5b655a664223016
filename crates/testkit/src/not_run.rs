//! Tests that need a program, a permission or a device that the machine may not have.

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write as _;

/// Reports that the calling test, or a part of it, did not run, and why.
///
/// The line is written to the standard error output, which the harness shows only for failed tests, and appended to the
/// file that the environment variable `REXMIT_NOT_RUN` names; `make test` prints that file at its end.
pub fn not_run(why: impl Display) {
    let thread = std::thread::current();
    let line = format!("{}: {why}", thread.name().unwrap_or("a test")).replace('\n', " ");
    eprintln!("not run: {line}");
    let Some(path) = std::env::var_os("REXMIT_NOT_RUN") else { return };
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.and_then(|mut file| writeln!(file, "{line}")).expect("REXMIT_NOT_RUN is writable");
}
