//! Servers by others, as programs that read offers, one line of JSON each, and print the answers.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Mutex;

/// A server of snapshots by others, behind the link.
pub(crate) struct Rival {
    pub(crate) name: String,
    child: Child,
    pipes: Mutex<(ChildStdin, BufReader<ChildStdout>)>,
}

impl Rival {
    /// Starts `name=program argument…`; `at` creates the command for a program.
    pub(crate) fn start(
        text: &str,
        at: impl FnOnce(&str) -> Command,
    ) -> Result<Self, Box<dyn std::error::Error>> {
        let (name, line) = text.split_once('=').ok_or("a rival is NAME=COMMAND")?;
        let mut words = line.split_whitespace();
        let program = words.next().ok_or("a rival is NAME=COMMAND")?;
        let mut command = at(program);
        let mut child = command
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{program}: {error}"))?;
        let input = child.stdin.take().ok_or("no standard input")?;
        let output = BufReader::new(child.stdout.take().ok_or("no standard output")?);
        Ok(Self { name: name.to_owned(), child, pipes: Mutex::new((input, output)) })
    }

    /// The rival's answer to an offer.
    pub(crate) fn answer(&self, offer: &str) -> std::io::Result<String> {
        let mut pipes = self.pipes.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let (input, output) = &mut *pipes;
        writeln!(input, "{}", serde_json::Value::from(offer))?;
        input.flush()?;
        let mut line = String::new();
        output.read_line(&mut line)?;
        serde_json::from_str(&line).map_err(std::io::Error::other)
    }
}

impl Drop for Rival {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
