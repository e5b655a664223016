//! The rival with encryption: the program of `bench/quinn`, which `bench/run` builds.

use super::Peer;

/// The program beside this one.
pub(super) fn peer() -> Result<Peer, String> {
    let program = std::env::current_exe()
        .map_err(|error| error.to_string())?
        .with_file_name("rexmit-bench-quinn");
    if !program.exists() {
        return Err(format!("{} is not there: bench/run builds it", program.display()));
    }
    Ok(Peer { program, first_arguments: Vec::new() })
}
