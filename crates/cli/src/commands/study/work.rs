//! Running studies: the common part of `run` and `verify`.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, IsTerminal as _};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use clap::Args;
use rexmit::clock;
use rexmit::emulator::Priority;
use rexmit_lab::scenario::{Clock, ExecuteError, Scenario};
use rexmit_perf::execute;
use rexmit_study::RunDocument;
use rexmit_study::page::StudyPage;
use rexmit_study::results::{Results, ResultsError, StudyRun, write_index};
use rexmit_study::runner::{Finished, Pacing, Runner, all_cores, estimated_time, weight};
use rexmit_study::store::{Program, Store, StoreError};

use super::bar::{Bar, words};
use super::interrupt;
use super::select::Chosen;
use crate::failure::{Failure, Kind};

/// The options for running, and for the location of results.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// Number of concurrent runs [default: the number of cores]. Runs on real sockets are executed one at a time:
    /// concurrently with the others if real-time priority is permitted, otherwise before them.
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Directory for reports and tables: one subdirectory per study, and an index.
    #[arg(long, value_name = "DIR", default_value = "rexmit-results")]
    out: PathBuf,
    /// Run without asking for confirmation, even on a terminal.
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    cache: Cache,
}

/// The location of the cache of single runs.
#[derive(Debug, Args)]
pub(crate) struct Cache {
    /// Directory in which results of single runs are cached, so that no run is repeated [default:
    /// ~/.cache/rexmit/runs]. It may be removed at any time.
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
}

/// The results of the studies.
pub(super) struct Done {
    pub(super) studies: Vec<StudyDone>,
    pub(super) finished: Finished,
    /// The page that links all reports.
    pub(super) index: PathBuf,
}

/// The result of one study.
pub(super) struct StudyDone {
    pub(super) page: StudyPage,
    pub(super) folder: PathBuf,
    /// The failed runs, and the location of their documents.
    pub(super) failed: Vec<FailedDone>,
}

/// A run that failed.
pub(super) struct FailedDone {
    pub(super) document: RunDocument,
    pub(super) path: PathBuf,
    pub(super) why: ExecuteError,
}

impl Cache {
    pub(crate) fn open(&self) -> Result<Store, Failure> {
        let place = self.cache.clone().or_else(Store::usual_place).ok_or_else(|| {
            let message =
                "there is no home directory for the cache: choose a directory with --cache";
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

/// Runs the missing runs of the studies and writes all results.
pub(super) fn run(chosen: &[Chosen], options: &Options, is_quiet: bool) -> Result<Done, Failure> {
    let store = options.cache.open()?;
    // Created before the runs, which may take hours.
    let places = chosen.iter().map(|chosen| Results::new(&options.out, &chosen.study.name));
    let places = places.collect::<Result<Vec<_>, _>>()?;
    let plans: Vec<Vec<RunDocument>> = chosen.iter().map(|chosen| chosen.study.plan()).collect();
    let documents = plans.concat();
    let extent = Extent::of(&documents, options, &store);
    eprintln!("{}{extent}", sizes(chosen, &plans));
    extent.confirm(options)?;
    let finished =
        run_missing(&documents, options.jobs.unwrap_or_else(all_cores), &store, is_quiet)?;
    let mut studies = Vec::new();
    for ((chosen, documents), results) in chosen.iter().zip(&plans).zip(&places) {
        studies.push(write(chosen, documents, &finished, (results, &store))?);
    }
    let index = write_index(&options.out)?;
    Ok(Done { studies, finished, index })
}

/// The number and duration of the runs that a command is about to start.
struct Extent {
    runs: usize,
    missing: usize,
    time: Duration,
}

impl Extent {
    /// On a terminal, a confirmation is requested for longer work.
    const ASKED: Duration = Duration::from_secs(60);

    fn of(documents: &[RunDocument], options: &Options, store: &Store) -> Self {
        let keyed: BTreeMap<_, _> = documents.iter().map(|one| (one.key(), one)).collect();
        let missing = keyed.iter().filter(|(key, _)| !store.has(key));
        let missing: Vec<_> = missing.map(|(_, document)| &document.scenario).collect();
        let (real, simulated): (Vec<_>, Vec<_>) =
            missing.iter().partition(|scenario| scenario.clock == Clock::Real);
        let time = |list: &[&&Scenario]| -> Duration {
            list.iter().map(|scenario| estimated_time(scenario)).sum()
        };
        let jobs = options.jobs.unwrap_or_else(all_cores);
        let jobs = u32::try_from(jobs.get()).unwrap_or(u32::MAX);
        // Runs on real sockets are one at a time, beside the others.
        let time = time(&real).max(time(&simulated) / jobs);
        Self { runs: keyed.len(), missing: missing.len(), time }
    }

    fn confirm(&self, options: &Options) -> Result<(), Failure> {
        let is_asked = self.time > Self::ASKED && !options.yes;
        if !is_asked || !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return Ok(());
        }
        eprint!("Run them? [y/N] ");
        let mut answer = String::new();
        io::stdin().read_line(&mut answer)?;
        match answer.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => Ok(()),
            _ => {
                Err(Failure::new(Kind::Interrupted, "nothing was run (--yes runs without asking)"))
            }
        }
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { runs, missing, time } = self;
        match missing {
            0 => write!(f, "{runs} runs, all in the cache"),
            _ if missing == runs => write!(f, "{runs} runs, about {}", words(*time)),
            _ => write!(f, "{runs} runs, {missing} not in the cache, about {}", words(*time)),
        }
    }
}

/// Each study with its number of runs; empty for a single study.
fn sizes(chosen: &[Chosen], plans: &[Vec<RunDocument>]) -> String {
    if chosen.len() < 2 {
        return String::new();
    }
    let size = |(chosen, plan): (&Chosen, &Vec<RunDocument>)| {
        format!("{} ({})", chosen.study.name, plan.len())
    };
    let sizes = chosen.iter().zip(plans).map(size).collect::<Vec<_>>().join(", ");
    format!("{} studies: {sizes}\n", chosen.len())
}

/// Executes the runs without a result on `jobs` threads, with a progress bar unless `is_quiet`.
pub(crate) fn run_missing(
    documents: &[RunDocument],
    jobs: NonZeroUsize,
    store: &Store,
    is_quiet: bool,
) -> Result<Finished, Failure> {
    let bar = Bar::new(is_quiet);
    interrupt::watch(&bar)?;
    let weigh = |document: &RunDocument| weight(&document.scenario);
    let runner = Runner { store, jobs, weigh, pacing: pacing(), now: clock::now };
    let finished = runner.run(
        documents,
        |document| execute(&document.scenario, document.seed),
        |progress| bar.show(progress),
    );
    bar.clear();
    Ok(finished?)
}

/// How runs on real sockets are scheduled: concurrent simulated runs would delay them by processor
/// load, unless they may use real-time priority.
fn pacing() -> Pacing {
    let priority = thread::spawn(Priority::raise).join().unwrap_or_default();
    Pacing {
        is_paced: |document| document.scenario.clock == Clock::Real,
        is_alone: priority != Priority::RealTime,
    }
}

/// Writes the results of one study.
fn write(
    chosen: &Chosen,
    documents: &[RunDocument],
    finished: &Finished,
    (results, store): (&Results, &Store),
) -> Result<StudyDone, Failure> {
    let failed = &finished.failed;
    // Results that are as they were need not be read and written again.
    if failed.is_empty()
        && let Some(page) = results.current(&chosen.text, documents, store.program())
        && page.study.arguments == chosen.study.arguments
    {
        return Ok(StudyDone { failed: Vec::new(), page, folder: results.folder().to_owned() });
    }
    let page = chosen.study.page(|document| store.outcome(&document.key()).ok());
    results.write(&StudyRun { text: &chosen.text, documents, failed, page: &page }, store)?;
    let written = results.write_failed(documents, failed)?;
    let failed = written.into_iter().map(|(path, document)| {
        let why = failed[&document.key()].why.clone();
        FailedDone { document: document.clone(), path, why }
    });
    Ok(StudyDone { failed: failed.collect(), page, folder: results.folder().to_owned() })
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let message = format!(
            "{error}; finished runs are kept: make room or choose another place by --cache, and say \
             the same again"
        );
        Self::new(Kind::File, message)
    }
}

impl From<ResultsError> for Failure {
    fn from(error: ResultsError) -> Self {
        Self::new(Kind::File, format!("{error}; choose another directory with --out"))
    }
}
