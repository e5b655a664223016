//! Running the binary.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread::JoinHandle;

const BINARY: &str = env!("CARGO_BIN_EXE_rexmit");

/// A running `rexmit`. It is killed if the test fails before its end.
pub(crate) struct Rexmit {
    child: Child,
    /// The first line of its standard error, if the test waited for it.
    told: String,
    stdout: Option<JoinHandle<Vec<u8>>>,
    /// Gets a value when the process prints its first line on standard output.
    first_line: mpsc::Receiver<()>,
    stderr: BufReader<ChildStderr>,
}

/// Exit status and output of a process that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Rexmit {
    /// Starts with `input` on standard input.
    pub(crate) fn start<S: AsRef<OsStr>>(
        arguments: impl IntoIterator<Item = S>,
        input: Vec<u8>,
    ) -> Self {
        Self::start_reading(arguments, std::io::Cursor::new(input))
    }

    /// Starts with the output of `input` as standard input.
    pub(crate) fn start_reading<S: AsRef<OsStr>>(
        arguments: impl IntoIterator<Item = S>,
        mut input: impl Read + Send + 'static,
    ) -> Self {
        let mut process = Self::start_idle(arguments);
        let mut stdin = process.child.stdin.take().unwrap();
        // The process may end without reading it.
        std::thread::spawn(move || std::io::copy(&mut input, &mut stdin));
        process
    }

    /// Starts with a standard input that stays open.
    pub(crate) fn start_idle<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Self {
        let mut command = Command::new(BINARY);
        command.args(arguments);
        Self::spawn(command)
    }

    fn spawn(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let (has_line, first_line) = mpsc::channel();
        let stdout = Some(std::thread::spawn(move || {
            let mut bytes = Vec::new();
            if stdout.read_until(b'\n', &mut bytes).unwrap() > 0 {
                // A test that does not wait for it may have ended.
                let _ = has_line.send(());
            }
            stdout.read_to_end(&mut bytes).unwrap();
            bytes
        }));
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Self { child, told: String::new(), stdout, first_line, stderr }
    }

    /// Starts a subcommand that listens on a free port of 127.0.0.1, and returns the address.
    pub(crate) fn listen(arguments: &str, input: Vec<u8>) -> (Self, String) {
        Self::start(arguments.split_whitespace(), input).address()
    }

    /// As [`listen`](Self::listen), with a standard input that stays open.
    pub(crate) fn listen_idle(arguments: &str) -> (Self, String) {
        Self::start_idle(arguments.split_whitespace()).address()
    }

    /// As [`listen_idle`](Self::listen_idle), with arguments that contain spaces.
    pub(crate) fn listen_with<'a>(arguments: impl IntoIterator<Item = &'a str>) -> (Self, String) {
        Self::start_idle(arguments).address()
    }

    fn address(mut self) -> (Self, String) {
        let line = self.next_line();
        let address = line.strip_prefix("listening on ").and_then(|rest| {
            let address = rest.split([',', '\n']).next()?;
            address.parse::<std::net::SocketAddr>().ok()
        });
        let address = address.unwrap_or_else(|| panic!("said: {line}"));
        (self, address.to_string())
    }

    /// Waits until it prints `what` on standard error.
    pub(crate) fn wait_for(&mut self, what: &str) {
        while !self.next_line().contains(what) {}
    }

    /// Waits until it has printed a line on standard output.
    pub(crate) fn wait_for_output(&self) {
        self.first_line.recv().expect("it ended without a line of output");
    }

    /// The next line that it prints on standard error.
    pub(crate) fn next_line(&mut self) -> String {
        let mut line = String::new();
        let read = self.stderr.read_line(&mut line).unwrap();
        self.told.push_str(&line);
        assert!(read > 0, "it ended after saying: {}", self.told);
        line
    }

    /// Sends a signal: SIGINT or SIGTERM.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
    }

    /// Waits for the end.
    pub(crate) fn end(mut self) -> Ended {
        let mut stderr = std::mem::take(&mut self.told);
        self.stderr.read_to_string(&mut stderr).unwrap();
        let status = self.child.wait().unwrap();
        let stdout = self.stdout.take().unwrap().join().unwrap();
        Ended { status, stdout, stderr }
    }
}

impl Drop for Rexmit {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Ended {
    /// The standard output as text; the run must have succeeded.
    pub(crate) fn text(&self) -> String {
        assert!(self.status.success(), "{self:?}");
        String::from_utf8(self.stdout.clone()).unwrap()
    }

    /// The last line of the standard output as JSON; the run must have succeeded.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(self.text().lines().last().unwrap()).unwrap()
    }

    /// Asserts that it failed with this exit code and this message.
    pub(crate) fn assert_failed(&self, code: i32, said: &str) {
        assert_eq!(self.status.code(), Some(code), "{self:?}");
        assert!(self.stderr.contains(said), "{said:?} is not in {self:?}");
    }
}

/// Runs to the end, with an empty standard input.
pub(crate) fn run(arguments: &str) -> Ended {
    Rexmit::start(arguments.split_whitespace(), Vec::new()).end()
}

/// As [`run`], by a shell that executes `before` first. A command that `before` stores in `$by` is used to start
/// `rexmit`.
pub(crate) fn run_after(before: &str, arguments: &str) -> Ended {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{before}; exec $by {BINARY} \"$@\""), "rexmit"]);
    command.args(arguments.split_whitespace());
    Rexmit::spawn(command).end()
}

/// A file of these tests.
pub(crate) fn scratch(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// Waits until a file has this many lines.
pub(crate) fn wait_for_lines(path: &std::path::Path, count: usize) {
    while std::fs::read_to_string(path).is_ok_and(|text| text.lines().count() < count) {
        pause();
    }
}

#[expect(clippy::disallowed_methods, reason = "another process is waited for")]
fn pause() {
    std::thread::sleep(std::time::Duration::from_millis(20));
}
