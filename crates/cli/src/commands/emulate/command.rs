//! Programs at the ends of the link.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rexmit::clock::{now, sleep_until};
use rexmit::tun::{NetNamespace, end_with_parent};
use rexmit_perf::listening::is_anybody_listening;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::process::{Child, Command};

use crate::failure::Failure;
use crate::signals::{Signals, after};

/// Time limit for a server to start listening, and for it to exit.
const TIME_LIMIT: Duration = Duration::from_secs(3);
/// Interval of the checks whether the server listens.
const LOOK: Duration = Duration::from_millis(10);
/// The exit codes that shells use for commands that are not found or cannot be executed.
const NOT_FOUND: u8 = 127;
const NOT_RUNNABLE: u8 = 126;
/// Added to the number of the signal that ended a command, as shells do, to form the exit code.
const BY_SIGNAL: i32 = 128;

/// How COMMAND ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Ended {
    /// The exit code of the command.
    pub(super) code: u8,
}

impl From<ExitStatus> for Ended {
    fn from(status: ExitStatus) -> Self {
        let code = status.code().or_else(|| Some(BY_SIGNAL + status.signal()?)).unwrap_or(1);
        Self { code: u8::try_from(code).unwrap_or(1) }
    }
}

/// Starts COMMAND in a namespace, with the standard streams of this process.
pub(super) fn start(namespace: &NetNamespace, command: &[OsString]) -> Result<Child, Failure> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(io::Error::from(io::ErrorKind::InvalidInput).into());
    };
    let mut command = namespace.command(program);
    end_with_parent(&mut command);
    command.args(arguments);
    Command::from(command).spawn().map_err(|error| {
        let not_found = error.kind() == io::ErrorKind::NotFound;
        let code = if not_found { NOT_FOUND } else { NOT_RUNNABLE };
        Failure::with_code(code, format!("cannot run {}: {error}", program.to_string_lossy()))
    })
}

/// Starts a server with the shell; its output goes to standard error.
pub(super) fn serve(namespace: &NetNamespace, line: &str) -> Result<Child, Failure> {
    let mut command = namespace.command("sh");
    end_with_parent(&mut command);
    command.arg("-c").arg(line).stdin(Stdio::null()).stdout(io::stderr());
    // A group of its own, so that what the shell starts can be ended with it.
    let mut command = Command::from(command);
    Ok(command.process_group(0).kill_on_drop(true).spawn()?)
}

/// Waits until a socket listens in the namespace, at most [`TIME_LIMIT`]: some servers do not listen.
pub(super) async fn until_listening(
    namespace: &NetNamespace,
    server: Option<&mut Child>,
) -> Result<(), Failure> {
    let Some(server) = server else { return Ok(()) };
    let deadline = now() + TIME_LIMIT;
    while now() < deadline && !namespace.run(is_anybody_listening)? {
        if let Some(status) = server.try_wait()? {
            let message = format!("the server of --serve ended at once: {status}");
            return Err(Failure::with_code(1, message));
        }
        sleep_until(now() + LOOK).await;
    }
    Ok(())
}

/// Waits until COMMAND ends; forwards signals to it, and ends it after `duration`.
pub(super) async fn wait(
    mut child: Child,
    signals: &Signals,
    duration: Option<Duration>,
) -> io::Result<Ended> {
    let signal = tokio::select! {
        status = child.wait() => return Ok(status?.into()),
        signal = signals.signal() => signal,
        () = after(duration) => Signal::TERM,
    };
    // A terminal sends the signal to COMMAND itself.
    if signal != Signal::INT || !io::stdin().is_terminal() {
        tell(&child, signal, kill_process);
    }
    Ok(child.wait().await?.into())
}

/// Ends a server: with SIGTERM first, then with SIGKILL.
pub(super) async fn end(mut server: Child) {
    tell(&server, Signal::TERM, kill_process_group);
    if tokio::time::timeout(TIME_LIMIT, server.wait()).await.is_err() {
        tell(&server, Signal::KILL, kill_process_group);
        // SIGKILL always ends the process.
        let _ = server.wait().await;
    }
}

fn tell(child: &Child, signal: Signal, kill: fn(Pid, Signal) -> rustix::io::Result<()>) {
    let pid = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
    // It may have ended meanwhile.
    let _ = pid.map(|pid| kill(pid, signal));
}
