//! The rival with streams and datagrams: the program of `bench/quinn`, which `bench/run` builds.

use super::Peer;

/// The argument for packets without protection.
pub(super) const PLAIN: &str = "plain";
/// The argument for datagrams (RFC 9221) instead of a stream.
pub(super) const DATAGRAMS: &str = "datagrams";

/// The program beside this one, with these arguments.
pub(super) fn peer(arguments: &[&str]) -> Result<Peer, String> {
    let program = std::env::current_exe()
        .map_err(|error| error.to_string())?
        .with_file_name("rexmit-bench-quinn");
    if !program.exists() {
        return Err(format!("{} is not there: bench/run builds it", program.display()));
    }
    Ok(Peer {
        program,
        first_arguments: arguments.iter().map(|&it| it.to_owned()).collect(),
        is_reliable: !arguments.contains(&DATAGRAMS),
    })
}
