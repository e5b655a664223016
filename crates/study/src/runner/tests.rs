use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex, mpsc};

use rexmit_lab::scenario::Distribution;

use super::*;
use crate::store::Program;
use crate::{Coordinate, DOCUMENT_SCHEMA};

fn document(study: &str, seed: u64) -> RunDocument {
    let scenario = r#"{"duration": "1h", "network": {"forward": "delay 50ms"}}"#;
    RunDocument {
        schema: DOCUMENT_SCHEMA,
        study: study.into(),
        point: vec![Coordinate { axis: "rtt".into(), label: study.into() }],
        seed,
        scenario: serde_json::from_str(scenario).unwrap(),
    }
}

fn documents(seeds: std::ops::RangeInclusive<u64>) -> Vec<RunDocument> {
    seeds.map(|seed| document("a", seed)).collect()
}

fn outcome(document: &RunDocument) -> RunOutcome {
    let quantities = BTreeMap::from([("game.latency.mean".into(), document.seed as f64)]);
    RunOutcome { quantities, ..RunOutcome::default() }
}

/// Counts the runs that it executes.
#[derive(Default)]
struct Counting {
    seeds: Mutex<Vec<u64>>,
}

impl Counting {
    fn run(&self, document: &RunDocument) -> Result<RunOutcome, ExecuteError> {
        locked(&self.seeds).push(document.seed);
        Ok(outcome(document))
    }

    fn seeds(&self) -> Vec<u64> {
        let mut seeds = std::mem::take(&mut *locked(&self.seeds));
        seeds.sort_unstable();
        seeds
    }
}

fn store(place: &Path) -> Store {
    Store::open(place, Program::of(&b"a program"[..]).unwrap()).unwrap()
}

const NOT_PACED: Pacing = Pacing { is_paced: |_| false, is_alone: false };

fn runner(store: &Store, jobs: usize) -> Runner<'_> {
    let jobs = NonZeroUsize::new(jobs).unwrap();
    Runner { store, jobs, weigh: |_| 1.0, pacing: NOT_PACED, now: || Instant::ZERO }
}

fn unwatched(_: &Progress) {}

#[test]
fn runs_with_a_result_are_not_repeated() {
    let place = tempfile::tempdir().unwrap();
    let store = store(place.path());
    let counting = Counting::default();
    let run = |documents: &[RunDocument]| {
        runner(&store, 2).run(documents, |document| counting.run(document), unwatched).unwrap()
    };
    let first = run(&documents(1..=5));
    assert_eq!((first.runs, first.found, counting.seeds()), (5, 0, vec![1, 2, 3, 4, 5]));
    let second = run(&documents(3..=7));
    assert_eq!((second.runs, second.found, counting.seeds()), (5, 3, vec![6, 7]));
    for document in documents(1..=7) {
        assert_eq!(store.outcome(&document.key()).unwrap(), outcome(&document));
    }
}

/// The system would refuse as many threads as `jobs`.
#[test]
fn there_are_no_more_threads_than_runs() {
    let place = tempfile::tempdir().unwrap();
    let store = store(place.path());
    let counting = Counting::default();
    let all = documents(1..=5);
    let runner = runner(&store, usize::MAX);
    let finished = runner.run(&all, |document| counting.run(document), unwatched).unwrap();
    assert_eq!((finished.runs, counting.seeds()), (5, vec![1, 2, 3, 4, 5]));
}

#[test]
fn studies_that_ask_for_the_same_share_it() {
    let place = tempfile::tempdir().unwrap();
    let store = store(place.path());
    let counting = Counting::default();
    let both: Vec<_> = ["a", "b"].iter().flat_map(|s| [document(s, 1), document(s, 2)]).collect();
    let finished =
        runner(&store, 1).run(&both, |document| counting.run(document), unwatched).unwrap();
    assert_eq!((finished.runs, counting.seeds()), (2, vec![1, 2]));
}

#[test]
fn results_before_a_failure_are_kept_and_other_runs_continue() {
    let place = tempfile::tempdir().unwrap();
    let store = store(place.path());
    let counting = Counting::default();
    let run = |fails: bool| {
        let execute = |document: &RunDocument| match document.seed {
            3 if fails => Err(ExecuteError::Failed("no way".into())),
            5 if fails => panic!("seed {} is cursed", document.seed),
            _ => counting.run(document),
        };
        runner(&store, 2).run(&documents(1..=6), execute, unwatched).unwrap()
    };
    let finished = run(true);
    assert_eq!(counting.seeds(), [1, 2, 4, 6]);
    let failed: Vec<_> =
        finished.failed.values().map(|run| (run.document.seed, run.why.to_string())).collect();
    assert_eq!(failed.len(), 2);
    assert!(failed.contains(&(3, "the run failed: no way".into())), "{failed:?}");
    assert!(failed.contains(&(5, "the run failed: it panicked: seed 5 is cursed".into())));
    for (key, run) in &finished.failed {
        assert_eq!(*key, run.document.key());
    }
    let finished = run(false);
    assert!(finished.failed.is_empty());
    assert_eq!((finished.found, counting.seeds()), (4, vec![3, 5]));
}

/// Simulates a killed process, which ends in the middle of runs without unwinding: here the runs in progress block
/// while the results of the others are checked.
#[test]
fn results_are_there_as_soon_as_they_are_made() {
    let place = tempfile::tempdir().unwrap();
    let store = store(place.path());
    let (reached, at_third) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    let may_go_on = Mutex::new(may_go_on);
    let begun = AtomicUsize::new(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            let execute = |document: &RunDocument| {
                if begun.fetch_add(1, Ordering::SeqCst) == 2 {
                    reached.send(()).unwrap();
                    locked(&may_go_on).recv().unwrap();
                }
                Ok(outcome(document))
            };
            runner(&store, 1).run(&documents(1..=4), execute, unwatched).unwrap();
        });
        at_third.recv().unwrap();
        let there = |document: &RunDocument| store.outcome(&document.key()).is_ok();
        let there = documents(1..=4).iter().filter(|document| there(document)).count();
        go_on.send(()).unwrap();
        assert_eq!(there, 2);
    });
}

#[test]
fn a_damaged_result_is_made_again() {
    let place = tempfile::tempdir().unwrap();
    let store = store(place.path());
    let counting = Counting::default();
    let run = || {
        let execute = |document: &RunDocument| counting.run(document);
        runner(&store, 2).run(&documents(1..=3), execute, unwatched).unwrap()
    };
    run();
    counting.seeds();
    let damaged = documents(2..=2)[0].key();
    let (first, rest) = damaged.as_str().split_at(2);
    let path = std::fs::read_dir(place.path()).unwrap().next().unwrap().unwrap().path();
    let path = path.join(first).join(format!("{rest}.json.gz"));
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let finished = run();
    assert_eq!((finished.damaged, finished.found, counting.seeds()), (1, 2, vec![2]));
    assert_eq!(store.outcome(&damaged).unwrap().quantities["game.latency.mean"], 2.0);
}

#[test]
fn jobs_run_side_by_side() {
    let place = tempfile::tempdir().unwrap();
    let store = store(place.path());
    // Each run waits for another one that runs at the same time.
    let barrier = Barrier::new(2);
    let execute = |document: &RunDocument| {
        barrier.wait();
        Ok(outcome(document))
    };
    runner(&store, 2).run(&documents(1..=4), execute, unwatched).unwrap();
}

#[test]
fn no_more_run_at_a_time_than_asked_for() {
    let place = tempfile::tempdir().unwrap();
    let store = store(place.path());
    let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let execute = |document: &RunDocument| {
        most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        thread::yield_now();
        now.fetch_sub(1, Ordering::SeqCst);
        Ok(outcome(document))
    };
    runner(&store, 1).run(&documents(1..=50), execute, unwatched).unwrap();
    assert_eq!(most.load(Ordering::SeqCst), 1);
}

#[test]
fn two_that_want_the_same_at_the_same_time_run_it_once() {
    let place = tempfile::tempdir().unwrap();
    let counting = Counting::default();
    // Stores of their own, as two processes have.
    let (first, second) = (store(place.path()), store(place.path()));
    let start = Barrier::new(2);
    thread::scope(|scope| {
        for store in [&first, &second] {
            let (counting, start) = (&counting, &start);
            scope.spawn(move || {
                start.wait();
                let execute = |document: &RunDocument| counting.run(document);
                let finished = runner(store, 2).run(&documents(1..=60), execute, unwatched);
                assert!(finished.unwrap().failed.is_empty());
            });
        }
    });
    assert_eq!(counting.seeds(), (1..=60).collect::<Vec<_>>());
    for document in documents(1..=60) {
        assert_eq!(first.outcome(&document.key()).unwrap(), outcome(&document));
    }
}

#[test]
fn the_heaviest_begin_first() {
    let place = tempfile::tempdir().unwrap();
    let store = store(place.path());
    let order = Mutex::new(Vec::new());
    let execute = |document: &RunDocument| {
        locked(&order).push(document.seed);
        Ok(outcome(document))
    };
    let weigh = |document: &RunDocument| (document.seed % 10) as f64;
    let runner = Runner { weigh, ..runner(&store, 1) };
    let documents: Vec<_> = [3, 19, 1, 7].map(|seed| document("a", seed)).into();
    runner.run(&documents, execute, unwatched).unwrap();
    assert_eq!(*locked(&order), [19, 7, 3, 1]);
}

/// For each run, the seeds of the other runs in progress when it began.
fn companions(is_alone: bool) -> Vec<(u64, Vec<u64>)> {
    let place = tempfile::tempdir().unwrap();
    let store = store(place.path());
    let (under_way, begun) = (Mutex::new(BTreeSet::new()), Mutex::new(Vec::new()));
    // If they may run concurrently, one run of each kind runs at the same time.
    let both = Barrier::new(if is_alone { 1 } else { 2 });
    let execute = |document: &RunDocument| {
        let seed = document.seed;
        let others: Vec<u64> = locked(&under_way).iter().copied().collect();
        locked(&under_way).insert(seed);
        locked(&begun).push((seed, others));
        if [10, 20].contains(&seed) {
            both.wait();
        }
        thread::yield_now();
        locked(&under_way).remove(&seed);
        match seed {
            13 => Err(ExecuteError::Failed("no way".into())),
            _ => Ok(outcome(document)),
        }
    };
    let pacing = Pacing { is_paced: |document| document.seed < 20, is_alone };
    let finished =
        Runner { pacing, ..runner(&store, 2) }.run(&documents(10..=49), execute, unwatched);
    assert_eq!(finished.unwrap().failed.len(), 1);
    begun.into_inner().unwrap()
}

#[test]
fn paced_runs_are_executed_one_at_a_time_while_others_run() {
    let begun = companions(false);
    assert_eq!(begun.len(), 40);
    for (seed, others) in begun {
        let paced = others.iter().filter(|&&other| other < 20).count();
        assert!(paced + usize::from(seed < 20) <= 1, "{seed} beside {others:?}");
        let unpaced = others.len() - paced;
        assert!(unpaced + usize::from(seed >= 20) <= 2, "{seed} beside {others:?}");
    }
}

#[test]
fn paced_runs_can_be_alone() {
    let begun = companions(true);
    assert_eq!(begun.len(), 40);
    assert!(begun.iter().all(|(seed, others)| *seed >= 20 || others.is_empty()), "{begun:?}");
    assert!(begun[..10].iter().all(|(seed, _)| *seed < 20), "{begun:?}");
}

#[test]
fn a_number_that_cannot_be_kept_is_a_failure() {
    let place = tempfile::tempdir().unwrap();
    let store = store(place.path());
    let execute = |document: &RunDocument| {
        let mut outcome = outcome(document);
        match document.seed {
            1 => outcome.quantities.insert("game.goodput".into(), f64::NAN).map(drop),
            _ => {
                let infinite = Distribution { values: vec![f64::INFINITY], counts: vec![1] };
                outcome.distributions.insert("game.latency".into(), infinite).map(drop)
            }
        };
        Ok(outcome)
    };
    let finished = runner(&store, 1).run(&documents(1..=2), execute, unwatched).unwrap();
    let mut why: Vec<_> = finished.failed.values().map(|run| run.why.to_string()).collect();
    why.sort();
    let wrong = |name| format!("the run failed: {name} is not a finite number");
    assert_eq!(why, [wrong("game.goodput"), wrong("game.latency")]);
}

#[test]
fn progress_counts_to_the_end() {
    let place = tempfile::tempdir().unwrap();
    let store = store(place.path());
    let seen = Mutex::new(Vec::new());
    let run = || {
        let execute = |document: &RunDocument| match document.seed {
            4 => Err(ExecuteError::Failed("no way".into())),
            _ => Ok(outcome(document)),
        };
        let watch = |progress: &Progress| {
            locked(&seen).push((progress.runs, progress.done, progress.failed));
        };
        runner(&store, 2).run(&documents(1..=4), execute, watch).unwrap();
        std::mem::take(&mut *locked(&seen))
    };
    let first = run();
    assert_eq!(first.first(), Some(&(4, 0, 0)));
    assert_eq!(first.last(), Some(&(4, 3, 1)));
    assert!(first.is_sorted(), "{first:?}");
    // Found results count as done at once.
    assert_eq!(run(), [(4, 1, 0), (4, 2, 0), (4, 3, 0), (4, 3, 0), (4, 3, 1)]);
}

#[test]
fn a_full_disk_ends_it_with_an_error() {
    let place = tempfile::tempdir().unwrap();
    let store = store(place.path());
    let documents = documents(1..=3);
    // A file where the folder of a result would be.
    let folder = std::fs::read_dir(place.path()).unwrap().next().unwrap().unwrap().path();
    for document in &documents {
        std::fs::write(folder.join(&document.key().as_str()[..2]), "").unwrap();
    }
    let execute = |_: &RunDocument| unreachable!("there is no place for its result");
    let error = runner(&store, 2).run(&documents, execute, unwatched).unwrap_err();
    assert!(error.path.starts_with(&folder), "{error}");
}
