//! The rival with streams: the program of `bench/quinn`, which `bench/run` builds.

use super::Peer;

/// The program beside this one; `plain` without protection of its packets.
pub(super) fn peer(is_encrypted: bool) -> Result<Peer, String> {
    let program = std::env::current_exe()
        .map_err(|error| error.to_string())?
        .with_file_name("rexmit-bench-quinn");
    if !program.exists() {
        return Err(format!("{} is not there: bench/run builds it", program.display()));
    }
    let first_arguments = if is_encrypted { Vec::new() } else { vec!["plain".to_owned()] };
    Ok(Peer { program, first_arguments })
}
