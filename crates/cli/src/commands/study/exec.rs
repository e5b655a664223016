//! `rexmit study exec`.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use rexmit_lab::scenario::{ExecuteError, execute_with_logs};
use rexmit_perf::execute;
use rexmit_study::{DOCUMENT_SCHEMA, RunDocument};

use crate::commands::examples::examples;
use crate::failure::{Failure, Kind, Outcome};
use crate::output;
use crate::qlog::Directory;

/// Run one document of `rexmit study plan`, and print its measurements as JSON.
///
/// Neither reads nor writes the cache: for running a study's runs on other machines, and for
/// examining a run that failed.
#[derive(Debug, Args)]
#[command(after_help = examples!(
"  rexmit study plan petlund2009-fig8a | head -1 | rexmit study exec
  rexmit study exec rexmit-results/petlund2009-fig8a/failed/3f1c7a90b2d4.json
  rexmit study plan petlund2009-fig8a | head -1 | rexmit study exec --qlog logs"))]
pub(super) struct Arguments {
    /// File with the document; standard input if it is `-` or not given.
    file: Option<PathBuf>,
    /// Directory to write a qlog file of each sender to, for qvis and `rexmit trace page`: for simulated flows over
    /// our SCTP and TCP. At most 64 files.
    #[arg(long, value_name = "DIR")]
    qlog: Option<PathBuf>,
}

pub(super) fn run(arguments: &Arguments) -> Outcome {
    let file = arguments.file.as_deref().filter(|file| *file != Path::new("-"));
    let name = file.map_or_else(|| "standard input".into(), |file| file.display().to_string());
    let text = read(file)
        .map_err(|error| Failure::new(Kind::File, format!("{name} cannot be read: {error}")))?;
    let document = parse(&text).map_err(|what| {
        let hint = "expected one line of the output of `rexmit study plan`";
        Failure::new(Kind::File, format!("{name}: {what}; {hint}"))
    })?;
    if let Err(problems) = document.scenario.validate() {
        let lines: Vec<String> =
            problems.iter().map(|problem| format!("{name}: scenario.{problem}")).collect();
        return Err(Failure::new(Kind::File, lines.join("\n")));
    }
    let directory = arguments.qlog.as_deref().map(Directory::create).transpose()?;
    let outcome = match &directory {
        Some(logs) => execute_with_logs(&document.scenario, document.seed, logs),
        None => execute(&document.scenario, document.seed),
    };
    let outcome = outcome.map_err(|error| match error {
        ExecuteError::Scenario(problem) => {
            Failure::new(Kind::File, format!("{name}: scenario.{problem}"))
        }
        ExecuteError::Failed(_) | ExecuteError::NotPermitted(_) | ExecuteError::NotBuilt(_) => {
            Failure::new(Kind::Failed, error)
        }
    })?;
    output::json_line(&outcome)?;
    directory.map_or(Ok(()), |directory| directory.finish())
}

fn read(file: Option<&Path>) -> io::Result<String> {
    match file {
        Some(file) => fs::read_to_string(file),
        None => {
            let mut text = String::new();
            io::stdin().read_to_string(&mut text)?;
            Ok(text)
        }
    }
}

fn parse(text: &str) -> Result<RunDocument, String> {
    let document: RunDocument = serde_json::from_str(text).map_err(|error| error.to_string())?;
    match document.schema {
        DOCUMENT_SCHEMA => Ok(document),
        other => Err(format!(
            "it has format {other}, but this version of rexmit supports {DOCUMENT_SCHEMA}"
        )),
    }
}
