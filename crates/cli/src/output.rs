//! Results on standard output.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use rexmit_study::page::StudyPage;
use rexmit_study::page::study::html;
use serde::Serialize;

use crate::failure::{Failure, Kind, Outcome};

/// The output option of every subcommand with a result.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Format {
    /// Print one JSON document for programs instead of text. Names of measured times end in `_ms`: milliseconds.
    #[arg(long)]
    pub(crate) json: bool,
}

impl Format {
    /// Prints `value` as JSON if `--json` is given, else the text that `text` returns.
    pub(crate) fn print<T: Serialize>(self, value: &T, text: impl FnOnce(&T) -> String) -> Outcome {
        if self.json { json_line(value) } else { print(&text(value)) }
    }
}

/// The option for a page with figures.
#[derive(Clone, Debug, Args)]
pub(crate) struct PageOption {
    /// File to write a page with the distributions to.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

impl PageOption {
    /// Writes the page, if the option is given. To be called last: the results are printed even if this fails.
    pub(crate) fn write(&self, page: &StudyPage) -> Outcome {
        let Some(file) = &self.report else { return Ok(()) };
        let text = html(page).map_err(io::Error::from)?;
        std::fs::write(file, text).map_err(|error| {
            let what = format!("{}: {error}; choose another file with --report", file.display());
            Failure::new(Kind::File, what)
        })
    }
}

/// Prints `value` as one line of JSON.
pub(crate) fn json_line<T: Serialize>(value: &T) -> Outcome {
    print(&format!("{}\n", serde_json::to_string(value).map_err(io::Error::from)?))
}

/// Prints text. A closed pipe is no failure, so that `rexmit … | head` works.
pub(crate) fn print(text: &str) -> Outcome {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// `text` without characters that a terminal takes as commands, or that change the direction in which it writes.
pub(crate) fn printable(text: &str) -> String {
    let is_command = |c: char| c.is_control() && c != '\n';
    let is_direction = |c: char| matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let plain = |c| if is_command(c) || is_direction(c) { char::REPLACEMENT_CHARACTER } else { c };
    text.chars().map(plain).collect()
}
