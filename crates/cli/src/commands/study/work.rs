//! Running studies: what `run` and `verify` have in common.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::thread;

use clap::Args;
use rexmit::emulator::Priority;
use rexmit_lab::results::{Results, ResultsError, StudyRun, write_index};
use rexmit_lab::runner::{Finished, Pacing, Runner, all_cores, weight};
use rexmit_lab::scenario::{Clock, ExecuteError, execute};
use rexmit_lab::store::{Program, Store, StoreError};
use rexmit_lab::study::{RunDocument, StudyReport};

use super::bar::Bar;
use super::interrupt;
use super::select::Chosen;
use crate::failure::{Failure, Kind};

/// How to run, and where results go.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// How many runs at a time [default: as many as there are cores]. Runs on real sockets do not
    /// count: they go one at a time beside the others, or before them without the right to
    /// real-time priority.
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Where reports and tables go: a directory per study, and an index of all.
    #[arg(long, value_name = "DIR", default_value = "rexmit-results")]
    out: PathBuf,
    #[command(flatten)]
    cache: Cache,
}

/// Where results of single runs are kept.
#[derive(Debug, Args)]
pub(super) struct Cache {
    /// Where results of single runs are kept, so that nothing is run twice [default:
    /// ~/.cache/rexmit/runs]. It may be removed at any time.
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
}

/// What came of the studies.
pub(super) struct Done {
    pub(super) studies: Vec<StudyDone>,
    pub(super) finished: Finished,
    /// The page that leads to all reports.
    pub(super) index: PathBuf,
}

/// What came of one.
pub(super) struct StudyDone {
    pub(super) report: StudyReport,
    pub(super) folder: PathBuf,
    /// What failed, and where its documents are.
    pub(super) failed: Vec<FailedDone>,
}

/// A run that failed.
pub(super) struct FailedDone {
    pub(super) document: RunDocument,
    pub(super) path: PathBuf,
    pub(super) why: ExecuteError,
}

impl Cache {
    pub(super) fn open(&self) -> Result<Store, Failure> {
        let place = self.cache.clone().or_else(Store::usual_place).ok_or_else(|| {
            let message =
                "there is no home directory to keep results in: choose a place by --cache";
            Failure::new(Kind::File, message)
        })?;
        Store::open(&place, Program::running()?).map_err(|error| {
            let message = format!(
                "results of runs cannot be kept: {error}; choose another place by --cache, a directory \
                 that can be written to"
            );
            Failure::new(Kind::File, message)
        })
    }
}

/// Runs what is missing of the studies and writes everything they have found.
pub(super) fn run(chosen: &[Chosen], options: &Options, is_quiet: bool) -> Result<Done, Failure> {
    let store = options.cache.open()?;
    // Before hours of runs rather than after them.
    let places = chosen.iter().map(|chosen| Results::new(&options.out, &chosen.study.name));
    let places = places.collect::<Result<Vec<_>, _>>()?;
    let plans: Vec<Vec<RunDocument>> = chosen.iter().map(|chosen| chosen.study.plan()).collect();
    if let [_, _, ..] = chosen {
        let runs: usize = plans.iter().map(Vec::len).sum();
        eprintln!("{} studies, {runs} runs: {}", chosen.len(), sizes(chosen, &plans));
    }
    let finished = run_missing(&plans.concat(), options, &store, is_quiet)?;
    let mut studies = Vec::new();
    for ((chosen, documents), results) in chosen.iter().zip(&plans).zip(&places) {
        studies.push(write(chosen, documents, &finished, (results, &store))?);
    }
    let index = write_index(&options.out)?;
    Ok(Done { studies, finished, index })
}

/// Each study with its runs, so that whoever meant less can say so before hours of them.
fn sizes(chosen: &[Chosen], plans: &[Vec<RunDocument>]) -> String {
    let size = |(chosen, plan): (&Chosen, &Vec<RunDocument>)| {
        format!("{} ({})", chosen.study.name, plan.len())
    };
    chosen.iter().zip(plans).map(size).collect::<Vec<_>>().join(", ")
}

fn run_missing(
    documents: &[RunDocument],
    options: &Options,
    store: &Store,
    is_quiet: bool,
) -> Result<Finished, Failure> {
    let jobs = options.jobs.unwrap_or_else(all_cores);
    let bar = Bar::new(is_quiet);
    interrupt::watch(&bar)?;
    let runner =
        Runner { store, jobs, weigh: |document| weight(&document.scenario), pacing: pacing() };
    let finished = runner.run(
        documents,
        |document| execute(&document.scenario, document.seed),
        |progress| bar.show(progress),
    );
    bar.clear();
    Ok(finished?)
}

/// Runs on real sockets are late if others take the processor from them, unless the kernel lets
/// theirs go first.
fn pacing() -> Pacing {
    let priority = thread::spawn(Priority::raise).join().unwrap_or_default();
    Pacing {
        is_paced: |document| document.scenario.clock == Clock::Real,
        is_alone: priority != Priority::RealTime,
    }
}

/// Writes what one study has found.
fn write(
    chosen: &Chosen,
    documents: &[RunDocument],
    finished: &Finished,
    (results, store): (&Results, &Store),
) -> Result<StudyDone, Failure> {
    let failed = &finished.failed;
    let report = chosen.study.report(|document| store.outcome(&document.key()).ok());
    results.write(&StudyRun { text: &chosen.text, documents, failed, report: &report }, store)?;
    let written = results.write_failed(documents, failed)?;
    let failed = written.into_iter().map(|(path, document)| {
        let why = failed[&document.key()].why.clone();
        FailedDone { document: document.clone(), path, why }
    });
    Ok(StudyDone { failed: failed.collect(), report, folder: results.folder().to_owned() })
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let message = format!(
            "{error}; what was run is kept: make room or choose another place by --cache, and say \
             the same again"
        );
        Self::new(Kind::File, message)
    }
}

impl From<ResultsError> for Failure {
    fn from(error: ResultsError) -> Self {
        Self::new(Kind::File, format!("{error}; choose another place by --out"))
    }
}
