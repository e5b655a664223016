//! The rival: a small C program, compiled when it is needed.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::Peer;

const SOURCE: &str = include_str!("../../usrsctp/bulk.c");
const OPTIONS: &str = "-std=gnu11 -O2 -x c - -lusrsctp -lpthread";

/// Compiles the C program in this directory.
pub(super) fn peer() -> Result<Peer, String> {
    let program = std::env::current_exe()
        .map_err(|error| error.to_string())?
        .with_file_name("rexmit-bench-usrsctp");
    compile(&program)?;
    Ok(Peer { program, first_arguments: Vec::new(), is_reliable: true })
}

fn compile(program: &PathBuf) -> Result<(), String> {
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let failed = |error: std::io::Error| format!("{compiler}: {error}");
    let mut child = Command::new(&compiler)
        .arg("-o")
        .arg(program)
        .args(OPTIONS.split(' '))
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let mut input = child.stdin.take().ok_or("no input")?;
    // An error here is explained by what the compiler says.
    let _ = input.write_all(SOURCE.as_bytes());
    drop(input);
    let output = child.wait_with_output().map_err(failed)?;
    if output.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&output.stderr);
    if words.contains("usrsctp.h") {
        return Err("usrsctp.h not found: apt-get install libusrsctp-dev".into());
    }
    Err(words.lines().next().unwrap_or("the compiler failed").to_string())
}
