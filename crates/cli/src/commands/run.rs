//! `rexmit run`.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Args;
use rexmit_sockets::client::{self, Registration};
use rexmit_sockets::engine::{Engine, MAX_DESCRIPTORS};
use rexmit_sockets::protocol::{
    ENGINE_VARIABLE, KEY_VARIABLE, PEER_PORT_VARIABLE, PROFILE_VARIABLE, TCP_VARIABLE,
};
use rexmit_sockets::transports::Transports;
use rustix::process::{Resource, Rlimit, geteuid, getrlimit, setrlimit};

use crate::commands::examples::examples;
use crate::executable;
use crate::failure::{Failure, Kind, Outcome};
use crate::values;

/// The UDP port of SCTP (RFC 6951 §5.1).
const DEFAULT_PORT: u16 = 9899;
/// The file name of the preloaded library.
const LIBRARY: &str = "librexmit_preload.so";
/// The folders in which it is searched, relative to that of this program.
const FOLDERS: [&str; 3] = [".", "../lib", "../lib/rexmit"];
/// The environment variable with the library's path.
const LIBRARY_VARIABLE: &str = "REXMIT_PRELOAD";
/// The file that selects SCTP over IP or over UDP by peer, and the environment variable that overrides it.
const TRANSPORT_FILE: &str = "/etc/rexmit.conf";
const TRANSPORT_VARIABLE: &str = "REXMIT_TRANSPORT";
/// The transports that use UDP for all peers.
const OVER_UDP: &str = "* udp";
/// The line that a started engine prints when it is ready.
const READY: &str = "ready";
/// Attempts to reach an engine, because an existing one may end in between.
const ATTEMPTS: usize = 5;
/// The exit codes that shells use for commands that are not found or cannot be executed.
const NOT_FOUND: u8 = 127;
const NOT_RUNNABLE: u8 = 126;

/// Run a program whose SCTP sockets are served by rexmit, on a kernel without SCTP.
///
/// The program is unmodified: its calls of the socket API (RFC 6458) are served by a preloaded library and by an
/// engine, a separate process that all programs of a user share. SCTP is sent over IP if that is permitted, otherwise
/// over UDP (RFC 6951); /etc/rexmit.conf and REXMIT_TRANSPORT configure this (docs/preload.md). It is not encrypted, as
/// the programs' peers expect. docs/preload.md lists the supported calls, and the programs that were tested. Programs
/// that are statically linked or make system calls directly (Go) are not supported.
#[derive(Debug, Args)]
#[command(after_help = examples!(
"  rexmit run -- iperf3 -s
  rexmit run -- iperf3 --sctp -c 192.0.2.1
  rexmit run --profile interactive-redundant --udp-port 0 -- sctp_darn -H 0 -P 7000 -h 192.0.2.1 -p 7001 -s"))]
pub(crate) struct Arguments {
    /// Recovery profile of the program's associations: a name of `rexmit profiles`.
    #[arg(long, value_name = "NAME", default_value = "interactive", value_parser = name_of_profile)]
    profile: String,
    /// Local UDP port. Programs with the same port share an engine and its SCTP ports. With 0, the program gets its own
    /// engine on any free port; peers cannot reach it before it has sent something.
    #[arg(long, value_name = "PORT", default_value_t = DEFAULT_PORT)]
    udp_port: u16,
    /// UDP port of the program's peers, unless the program sets SCTP_REMOTE_UDP_ENCAPS_PORT [default: 9899]. With it SCTP is
    /// sent over UDP, unless /etc/rexmit.conf or REXMIT_TRANSPORT says otherwise.
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    peer_udp_port: Option<u16>,
    /// Serve the program even if the kernel has SCTP; without this option it then runs as if it was started directly.
    #[arg(long)]
    always: bool,
    /// Also serve the program's TCP sockets, as SCTP sockets, like withsctp of lksctp-tools: `rexmit run -- withsctp PROGRAM`
    /// does the same. Both sides of a connection need it.
    #[arg(long)]
    tcp_as_sctp: bool,
    /// Be the engine of this number.
    #[arg(long, hide = true, value_name = "NUMBER")]
    engine: Option<u64>,
    /// Start the engine, and leave it running.
    #[arg(long, hide = true, requires = "engine")]
    detach: bool,
    /// The program and its arguments.
    #[arg(trailing_var_arg = true, required_unless_present = "engine", value_name = "PROGRAM")]
    program: Vec<OsString>,
}

fn name_of_profile(text: &str) -> Result<String, String> {
    values::profile(text).map(|_| text.to_owned())
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    if let Some(number) = arguments.engine {
        let port = arguments.udp_port;
        return if arguments.detach { leave_engine(number, port) } else { serve(number, port) };
    }
    let mut command = prepared(arguments, kernel_has_sctp, preload)?;
    // It takes the place of this process, so that signals and the exit code are its own.
    let error = command.exec();
    let not_found = error.kind() == io::ErrorKind::NotFound;
    let code = if not_found { NOT_FOUND } else { NOT_RUNNABLE };
    let program = command.get_program().to_string_lossy();
    Err(Failure::with_code(code, format!("cannot run {program}: {error}")))
}

/// The program as it is run: changed by `preload`, or as it is if the kernel has SCTP and there is no `--always`.
fn prepared(
    arguments: &Arguments,
    kernel_has_sctp: impl FnOnce() -> bool,
    preload: impl FnOnce(&mut Command, &Arguments) -> Outcome,
) -> Result<Command, Failure> {
    let mut words = arguments.program.as_slice();
    let is_served = arguments.always || !kernel_has_sctp();
    // withsctp would replace LD_PRELOAD by a library of its own, which makes TCP sockets SCTP sockets of the kernel.
    let is_withsctp = is_served && words.len() > 1 && is_withsctp(&words[0]);
    if is_withsctp {
        words = &words[1..];
    }
    let Some((program, rest)) = words.split_first() else {
        return Err(Failure::new(Kind::Usage, "there is no program to run"));
    };
    let mut command = Command::new(program);
    command.args(rest);
    if is_served {
        preload(&mut command, arguments)?;
    }
    if is_withsctp || (is_served && arguments.tcp_as_sctp) {
        command.env(TCP_VARIABLE.to_string_lossy().as_ref(), "1");
    }
    Ok(command)
}

fn is_withsctp(program: &OsString) -> bool {
    Path::new(program).file_name().is_some_and(|name| name == "withsctp")
}

/// Makes a program load the library, and starts its engine if it does not run.
fn preload(command: &mut Command, arguments: &Arguments) -> Outcome {
    let library = library()?;
    // Checked here for a precise error message: of the engine, only its failure to start would be reported.
    let (text, origin) = transports_text(arguments.peer_udp_port.is_some())?;
    parsed(&text, origin)?;
    let (number, Registration { key, has_these_transports }) =
        reach_engine(arguments.udp_port, &text)?;
    if !has_these_transports {
        eprintln!(
            "rexmit: the engine on UDP port {} keeps the transports with which it was started; they differ from those of \
             {origin}: choose another --udp-port, or end all programs that it serves",
            arguments.udp_port
        );
    }
    if let Some(reason) = executable::reason_not_preloaded(Path::new(command.get_program())) {
        let program = command.get_program().to_string_lossy();
        eprintln!(
            "rexmit: {program} {reason}: the SCTP sockets of this program itself will not be served"
        );
    }
    command.env("LD_PRELOAD", preloads(&library)?);
    let variables = [
        (ENGINE_VARIABLE, format!("{number:x}")),
        (KEY_VARIABLE, format!("{key:x}")),
        (PROFILE_VARIABLE, arguments.profile.clone()),
        (PEER_PORT_VARIABLE, arguments.peer_udp_port.unwrap_or(DEFAULT_PORT).to_string()),
    ];
    for (name, value) in variables {
        command.env(name.to_string_lossy().as_ref(), value);
    }
    Ok(())
}

/// Runs as the engine until it is not needed any more.
fn serve(number: u64, udp_port: u16) -> Outcome {
    raise_descriptors();
    rexmit_sockets::engine::outlive_programs();
    // As the process that starts it has found them.
    let (text, origin) = transports_text(false)?;
    let mut engine = Engine::new(number, udp_port, parsed(&text, origin)?)
        .map_err(|error| Failure::new(Kind::Address, format!("UDP port {udp_port}: {error}")))?;
    println!("{READY}");
    io::stdout().flush()?;
    Ok(engine.run()?)
}

/// Raises the limit of descriptors, as each socket of a program is one of the engine: to what the most sockets need, if
/// that is permitted (CAP_SYS_RESOURCE), or else to the hard limit.
fn raise_descriptors() {
    let hard = getrlimit(Resource::Nofile).maximum;
    let enough = hard.map(|hard| hard.max(MAX_DESCRIPTORS));
    for most in [enough, hard] {
        if setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most }).is_ok() {
            return;
        }
    }
}

/// The text of the transports of SCTP, and where it comes from: the environment variable or the file.
fn transports_text(is_over_udp: bool) -> Result<(String, &'static str), Failure> {
    Ok(match std::env::var(TRANSPORT_VARIABLE) {
        Ok(text) => (text, TRANSPORT_VARIABLE),
        Err(_) => match std::fs::read_to_string(TRANSPORT_FILE) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let origin = if is_over_udp { "--peer-udp-port" } else { "the default" };
                (default_transports(is_over_udp || kernel_has_sctp()).to_owned(), origin)
            }
            other => (other?, TRANSPORT_FILE),
        },
    })
}

fn parsed(text: &str, origin: &str) -> Result<Transports, Failure> {
    let failed = |error| Failure::new(Kind::Usage, format!("{origin}: {error}"));
    text.parse().map_err(failed)
}

/// The transports without a file: IP is not among them if the user names a UDP port of peers, or if the kernel has SCTP,
/// which would refuse the packets of associations that it does not know.
const fn default_transports(is_over_udp: bool) -> &'static str {
    if is_over_udp { OVER_UDP } else { "" }
}

/// Whether the kernel supports SCTP sockets.
fn kernel_has_sctp() -> bool {
    use rustix::net::{AddressFamily, SocketType, ipproto, socket};
    socket(AddressFamily::INET, SocketType::STREAM, Some(ipproto::SCTP)).is_ok()
}

/// The path of the preloaded library.
fn library() -> Result<PathBuf, Failure> {
    if let Some(path) = std::env::var_os(LIBRARY_VARIABLE).map(PathBuf::from) {
        // ld.so would run the program without it.
        let missing = || format!("{}: {LIBRARY_VARIABLE} names no file", path.display());
        return if path.is_file() { Ok(path) } else { Err(Failure::new(Kind::File, missing())) };
    }
    let program = std::env::current_exe()?;
    let folder = program.parent().unwrap_or(Path::new("/"));
    let found = FOLDERS.iter().map(|to| folder.join(to).join(LIBRARY)).find(|path| path.exists());
    let found = found.and_then(|path| path.canonicalize().ok());
    found.ok_or_else(|| {
        let folder = folder.display();
        let message = format!(
            "{LIBRARY} is not beside {folder}: build it (cargo build --release -p rexmit-preload), or name it by \
             {LIBRARY_VARIABLE}"
        );
        Failure::new(Kind::File, message)
    })
}

/// The value of LD_PRELOAD: the library, then the libraries that it named before.
fn preloads(library: &Path) -> Result<OsString, Failure> {
    let mut all = library.as_os_str().to_owned();
    // ld.so splits the value at spaces and colons, and could then load a library relative to the current directory.
    if all.as_encoded_bytes().iter().any(|byte| b" :".contains(byte)) {
        let message = format!(
            "{}: LD_PRELOAD takes no path with a space or colon: put the library elsewhere, and name it by \
             {LIBRARY_VARIABLE}",
            library.display()
        );
        return Err(Failure::new(Kind::File, message));
    }
    if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
        all.push(":");
        all.push(others);
    }
    Ok(all)
}

/// Connects to the engine for this UDP port, starting it if necessary. It then runs at least as long as this process.
/// Returns its number.
fn reach_engine(udp_port: u16, transports: &str) -> Result<(u64, Registration), Failure> {
    // Users do not share engines; without a port of its own, neither do programs.
    let number = match udp_port {
        0 => 1 << 63 | u64::from(std::process::id()),
        port => u64::from(geteuid().as_raw()) << 16 | u64::from(port),
    };
    let mut started = Ok(());
    for _ in 0..ATTEMPTS {
        match client::register(number, transports) {
            Ok(registration) => return Ok((number, registration)),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
            Err(error) => return Err(error.into()),
        }
        // Another program may start it at the same time.
        started = start_engine(number, udp_port, transports);
    }
    started?;
    Err(Failure::new(Kind::Failed, "the engine ends as soon as it is started"))
}

fn engine_command(number: u64, udp_port: u16) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(["run", "--engine", &number.to_string(), "--udp-port", &udp_port.to_string()])
        .current_dir("/")
        // Signals of the terminal are for the program.
        .process_group(0)
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    Ok(command)
}

/// Starts the engine as an orphan: this process becomes the program, which may wait for all of its children, while the
/// engine waits for the program to end.
fn leave_engine(number: u64, udp_port: u16) -> Outcome {
    // Without the program's descriptors: the reader of an inherited pipe would wait until the engine ends.
    let _ = rexmit_sockets::engine::keep_descriptors();
    engine_command(number, udp_port)?.spawn()?;
    Ok(())
}

fn start_engine(number: u64, udp_port: u16, transports: &str) -> Outcome {
    let mut command = engine_command(number, udp_port)?;
    command.env(TRANSPORT_VARIABLE, transports);
    let mut starter = command.arg("--detach").stdout(Stdio::piped()).spawn()?;
    let output = starter.stdout.take();
    starter.wait()?;
    let mut line = String::new();
    if let Some(output) = output {
        BufReader::new(output).read_line(&mut line)?;
    }
    if line.trim_end() == READY {
        return Ok(());
    }
    let message = format!(
        "cannot start the engine on UDP port {udp_port}: is the port taken by another program or user? choose \
         another by --udp-port"
    );
    Err(Failure::new(Kind::Address, message))
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use clap::error::ErrorKind;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn arguments(line: &[&str]) -> Arguments {
        Line::parse_from([&["run"], line].concat()).arguments
    }

    /// The program, with a variable in place of what preloads the library.
    fn prepared_with(line: &[&str], kernel_has_sctp: impl FnOnce() -> bool) -> Command {
        let preload = |command: &mut Command, _: &Arguments| {
            command.env("LD_PRELOAD", "library");
            Ok(())
        };
        prepared(&arguments(line), kernel_has_sctp, preload).expect("a program")
    }

    #[test]
    fn a_kernel_with_sctp_serves_the_program() {
        let command = prepared_with(&["--", "iperf3", "--sctp"], || true);
        assert_eq!(command.get_program(), "iperf3");
        assert_eq!(command.get_args().collect::<Vec<_>>(), ["--sctp"]);
        assert_eq!(command.get_envs().count(), 0);
    }

    #[test]
    fn the_engine_serves_the_program_of_a_kernel_without_sctp() {
        let command = prepared_with(&["--", "iperf3", "--sctp"], || false);
        assert_eq!(command.get_program(), "iperf3");
        assert_eq!(command.get_envs().count(), 1);
    }

    #[test]
    fn a_program_needs_no_dashes_before_it() {
        let line = arguments(&["--always", "iperf3", "-s", "--always"]);
        assert_eq!(line.program, ["iperf3", "-s", "--always"]);
        // A mistyped option is not taken for the program.
        let mistyped = Line::try_parse_from(["run", "--alway", "iperf3"]);
        assert!(mistyped.is_err_and(|error| error.kind() == ErrorKind::UnknownArgument));
    }

    #[test]
    fn withsctp_is_replaced_by_what_it_does() {
        let words = ["--", "/usr/bin/withsctp", "nc", "-l", "withsctp"];
        let command = prepared_with(&words, || false);
        assert_eq!(command.get_program(), "nc");
        assert_eq!(command.get_args().collect::<Vec<_>>(), ["-l", "withsctp"]);
        let tcp = TCP_VARIABLE.to_string_lossy().into_owned();
        assert!(command.get_envs().any(|(name, value)| *name == *tcp && value.is_some()));
        // The kernel's SCTP is left to it.
        let command = prepared_with(&words, || true);
        assert_eq!(command.get_program(), "/usr/bin/withsctp");
        assert_eq!(command.get_envs().count(), 0);
    }

    /// The kernel is not asked, as the question alone may load its module.
    #[test]
    fn with_always_the_engine_serves_the_program() {
        let command = prepared_with(&["--always", "--", "true"], || panic!("asked"));
        assert_eq!(command.get_envs().count(), 1);
    }

    #[test]
    fn a_port_of_peers_or_sctp_of_the_kernel_leaves_only_udp() {
        for (is_over_udp, over_ip) in [(true, false), (false, true)] {
            let transports: Transports = default_transports(is_over_udp).parse().unwrap();
            assert_eq!(transports.may_use_ip(), over_ip);
        }
    }
}
