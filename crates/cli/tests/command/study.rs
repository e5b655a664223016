//! Studies: which runs are executed, which results are stored, and what is reported.

use std::path::{Path, PathBuf};

use crate::process::{Ended, Rexmit, run, run_after, scratch};

/// Two systems with four seeds, ten minutes of virtual time each.
const STUDY: &str = r#"title = "A small study"
source = "Nobody 2020, Fig. 1"
seeds = 4
costs = ["game.spurious_share"]

[scenario]
duration = "10min"
rows = true
[scenario.network]
forward = "delay 50ms loss 5%"
[scenario.thin.game]
traffic = "every 250ms size 100"
profile = "lksctp"

[[axis]]
name = "system"
[[axis.point]]
label = "lksctp"
[[axis.point]]
label = "thin"
set.thin.game.profile = "thin"

[[claim]]
says = "A thin stream waits less"
quantity = "game.latency.mean"
at = { system = "thin" }
is = "below"
than = { quantity = "game.latency.mean", at = { system = "lksctp" } }
paper = "half"

[[claim]]
says = "A thin stream waits more"
quantity = "game.latency.mean"
at = { system = "thin" }
is = "above"
than = { quantity = "game.latency.mean", at = { system = "lksctp" } }
"#;

/// A directory of one test that contains only the study.
struct Place(PathBuf);

impl Place {
    fn new(name: &str, study: &str) -> Self {
        let folder = scratch(&format!("study-{name}"));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("small.toml"), study).unwrap();
        Self(folder)
    }

    fn study(&self) -> String {
        self.0.join("small.toml").display().to_string()
    }

    /// `rexmit study VERB small.toml`, with separate directories for cache and output.
    fn arguments(&self, verb: &str) -> String {
        let folder = self.0.display();
        format!("study {verb} {} --cache {folder}/cache --out {folder}/out", self.study())
    }

    fn run(&self, verb: &str, more: &str) -> Ended {
        run(&format!("{} {more}", self.arguments(verb)))
    }

    fn out(&self, name: &str) -> PathBuf {
        self.0.join("out").join(name)
    }

    /// Results of runs that are in the cache.
    fn results(&self) -> usize {
        count(&self.0.join("cache"), &|path| path.to_string_lossy().ends_with(".json.gz"))
    }
}

fn count(folder: &Path, is_counted: &dyn Fn(&Path) -> bool) -> usize {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let of = |path: PathBuf| match path.is_dir() {
        true => count(&path, is_counted),
        false => usize::from(is_counted(&path)),
    };
    entries.map(|entry| of(entry.unwrap().path())).sum()
}

#[test]
fn a_study_is_run_judged_and_written() {
    let place = Place::new("run", STUDY);
    let reported = place.run("run", "").text();
    assert!(reported.contains("small: A small study\n  holds          A thin stream waits less"));
    assert!(reported.contains("  does not hold  A thin stream waits more\n  1 of 2 claims hold\n"));
    assert!(reported.contains("8 runs; all reports: "), "{reported}");
    for name in ["study.toml", "version.json", "report.json"] {
        assert!(place.out(&format!("small/{name}")).exists(), "{name}");
    }
    assert_eq!(std::fs::read_to_string(place.out("small/study.toml")).unwrap(), STUDY);
    let report = std::fs::read_to_string(place.out("small/report.html")).unwrap();
    assert!(report.contains("<title>") && report.contains("A small study"));
    assert!(report.contains("<code>rexmit study run small.toml</code>"));
    let index = std::fs::read_to_string(place.out("index.html")).unwrap();
    assert!(index.contains("href=\"small/report.html\""));
    for table in ["small/runs.parquet", "small/messages.parquet"] {
        let bytes = std::fs::read(place.out(table)).unwrap();
        assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"), "{table}");
    }
    // Every run of the plan is in the directory, and nothing is run again.
    let plan = run(&format!("study plan {}", place.study())).text();
    assert_eq!(std::fs::read_to_string(place.out("small/runs.jsonl")).unwrap(), plan);
    let again = place.run("run", "--json").json();
    assert_eq!((&again["runs"], &again["found"]), (&8.into(), &8.into()), "{again}");
    assert_eq!(again["studies"][0]["claims"][0]["verdict"], "holds");
}

#[test]
fn the_same_study_gives_the_same_bytes_whatever_the_number_of_jobs() {
    let one = Place::new("one-job", STUDY);
    let three = Place::new("three-jobs", STUDY);
    one.run("run", "--jobs 1").text();
    three.run("run", "--jobs 3").text();
    for name in ["report.json", "report.html", "runs.parquet", "messages.parquet", "version.json"] {
        let read = |place: &Place| std::fs::read(place.out(&format!("small/{name}"))).unwrap();
        assert!(read(&one) == read(&three), "{name}");
    }
}

#[test]
fn verdicts_are_a_table_and_no_failure() {
    let place = Place::new("verify", STUDY);
    let ended = place.run("verify", "");
    let reported = ended.text();
    assert!(reported.contains("small: A small study (Nobody 2020, Fig. 1)\n"), "{reported}");
    assert!(reported.contains("2 claims: 1 hold, 1 do not, 0 undecided\n"), "{reported}");
    let json = place.run("verify", "--json").json();
    let verdicts: Vec<_> =
        json["studies"][0]["claims"].as_array().unwrap().iter().map(|c| &c["verdict"]).collect();
    assert_eq!(verdicts, ["holds", "does_not_hold"]);
}

#[test]
fn a_page_is_renewed_at_once_and_for_its_own_studies_alone() {
    let place = Place::new("renewed", STUDY);
    let page = place.0.join("page.md");
    let renew = format!("--renew {}", page.display());
    let before = "text\n| `small` | before |\nmore\n";
    std::fs::write(&page, before).unwrap();
    place.run("verify", &renew).text();
    let after = std::fs::read_to_string(&page).unwrap();
    assert!(after.starts_with("text\n| `small` | A thin stream waits less |"), "{after}");
    assert!(after.ends_with("|\nmore\n") && !after.contains("before"), "{after}");
    let names = std::fs::read_dir(&place.0).unwrap();
    let drafts =
        names.filter(|name| name.as_ref().unwrap().path().extension().unwrap_or_default() == "tmp");
    assert_eq!(drafts.count(), 0);

    // Before any run: a page without rows of the study, and a study with the name of another.
    std::fs::write(&page, "no rows\n").unwrap();
    std::fs::remove_dir_all(place.0.join("cache")).unwrap();
    place.run("verify", &renew).assert_failed(5, "page.md: `small` has no row");
    let other = place.0.join("petlund2009-fig4.toml");
    std::fs::copy(place.0.join("small.toml"), &other).unwrap();
    run(&format!("study verify {} {renew}", other.display()))
        .assert_failed(5, "is not the built-in study");
    assert_eq!(std::fs::read_to_string(&page).unwrap(), "no rows\n");
    assert!(!place.0.join("cache").exists(), "nothing has run");
}

#[test]
fn seeds_can_be_fewer_or_more() {
    let place = Place::new("seeds", STUDY);
    assert_eq!(place.run("run", "--seeds 1 --json").json()["runs"], 2);
    let more = place.run("run", "--seeds 6 --json").json();
    assert_eq!((&more["runs"], &more["found"]), (&12.into(), &2.into()));
    run(&format!("study run {} --seeds 0", place.study())).assert_failed(2, "0 is not in 1..=");
}

#[test]
fn a_document_is_run_alone_as_in_its_study() {
    let place = Place::new("exec", STUDY);
    let plan = run(&format!("study plan {}", place.study())).text();
    let document = plan.lines().next().unwrap();
    let exec = |arguments: &str| {
        Rexmit::start(arguments.split_whitespace(), document.as_bytes().to_vec()).end().json()
    };
    let alone = exec("study exec");
    assert_eq!(exec("study exec -"), alone);
    let file = place.0.join("document.json");
    std::fs::write(&file, document).unwrap();
    assert_eq!(run(&format!("study exec {}", file.display())).json(), alone);
    place.run("run", "--seeds 1").text();
    let report = std::fs::read_to_string(place.out("small/report.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let name = "game.latency.mean";
    assert!(alone["quantities"][name].as_f64().unwrap() > 50.0);
    assert_eq!(report["cells"][0]["quantities"][name]["mean"], alone["quantities"][name]);
}

#[test]
fn documents_that_cannot_be_run_are_refused() {
    let exec =
        |document: &str| Rexmit::start(["study", "exec"], document.as_bytes().to_vec()).end();
    exec("").assert_failed(5, "standard input: EOF while parsing a value");
    exec("{\"schema\": 1}")
        .assert_failed(5, "expected one line of the output of `rexmit study plan`");
    let place = Place::new("refused", STUDY);
    let plan = run(&format!("study plan {}", place.study())).text();
    let document = plan.lines().next().unwrap();
    exec(&document.replace("\"schema\":1", "\"schema\":9")).assert_failed(5, "it has format 9");
    exec(&document.replace("\"lksctp\"}", "\"fast\"}")).assert_failed(5, "fast");
    run("study exec no/such/file").assert_failed(5, "no/such/file cannot be read: No such file");
}

/// A study that was killed after two results resumes with the other runs.
#[test]
fn a_killed_study_resumes() {
    let place = Place::new("killed", &STUDY.replace("seeds = 4", "seeds = 12"));
    let arguments = place.arguments("run");
    let process = Rexmit::start_idle(arguments.split_whitespace().chain(["--jobs", "1"]));
    wait_until(|| place.results() >= 2);
    process.signal("KILL");
    process.end();
    let kept = place.results();
    let reported = place.run("run", "--json").json();
    // The process may have completed further runs before it was killed.
    assert!(kept >= 2, "{kept}");
    assert_eq!((&reported["runs"], &reported["found"]), (&24.into(), &kept.into()));
    assert_eq!(reported["studies"][0]["claims"][0]["verdict"], "holds");
    assert_eq!(place.results(), 24);
}

#[test]
fn an_interrupted_study_prints_how_to_resume() {
    let place = Place::new("interrupted", &STUDY.replace("seeds = 4", "seeds = 500"));
    let arguments = place.arguments("run");
    let process = Rexmit::start_idle(arguments.split_whitespace().chain(["--jobs", "1"]));
    wait_until(|| place.results() >= 1);
    process.signal("INT");
    process.end().assert_failed(130, "interrupted: finished runs are kept; repeat the command");
}

#[test]
fn two_at_the_same_time_do_not_disturb_each_other() {
    let place = Place::new("two", STUDY);
    let start = || Rexmit::start(place.arguments("run").split_whitespace(), Vec::new());
    let (first, second) = (start(), start());
    for process in [first, second] {
        assert!(process.end().text().contains("  1 of 2 claims hold\n"));
    }
    assert_eq!(place.results(), 8);
    assert_eq!(count(&place.0, &|path| path.extension().is_some_and(|e| e == "part")), 0);
}

/// Runs that need more sockets than the process may open.
#[test]
fn failed_runs_are_reported_with_the_command_to_run_them_alone() {
    let failing = "label = \"thin\"\nset.clock = \"real\"\nset.thin.game.connections = 64";
    let place = Place::new("failing", &STUDY.replace("label = \"thin\"", failing));
    let arguments = format!("{} --seeds 1", place.arguments("run"));
    let run = |arguments: &str| run_after("ulimit -n 60", arguments);
    let ended = run(&format!("{arguments} --json"));
    ended.assert_failed(1, "1 of 2 runs failed; the others are kept");
    ended.assert_failed(1, "small at system \"thin\", seed 1: the run failed: ");
    ended.assert_failed(
        1,
        "use fewer `connections`, or raise the limit on open files (`ulimit -n`)",
    );
    let reported: serde_json::Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!((&reported["runs"], &reported["failed"]), (&2.into(), &1.into()));
    assert_eq!(reported["studies"][0]["claims"][0]["verdict"], "undecided");
    let document = reported["studies"][0]["failed"][0]["document"].as_str().unwrap();
    let replay = format!("study exec {document}");
    assert!(ended.stderr.contains(&format!("alone: rexmit {replay}\n")), "{ended:?}");
    run(&replay).assert_failed(1, "the run failed: ");
    // The other one is not run again.
    assert!(run(&arguments).stderr.contains("1 of 2 runs failed"));
    assert_eq!(place.results(), 1);
}

/// TCP needs TUN devices, which require privileges.
#[test]
fn a_missing_permission_is_no_failure() {
    let profile = "set.thin.game.profile = \"thin\"";
    let tcp = "set.clock = \"real\"\nset.thin.game.transport = \"tcp\"\n\
               set.thin.game.profile = \"tcp-thin\"";
    let place = Place::new("not-permitted", &STUDY.replace(profile, tcp));
    let arguments = format!("{} --seeds 2", place.arguments("run"));
    let run = |more: &str| {
        let give_up_rights = "[ $(id -u) = 0 ] && by='setpriv --bounding-set=-all'";
        run_after(give_up_rights, &format!("{arguments} {more}"))
    };
    let ended = run("");
    let text = ended.text();
    assert!(text.contains("  undecided      A thin stream waits less\n"), "{text}");
    assert!(text.contains("4 runs, 2 not possible here; all reports: "), "{text}");
    let said = "rexmit: small: 2 runs were not made, and what needs them is undecided: ";
    assert!(ended.stderr.contains(said) && ended.stderr.contains("run as root"), "{ended:?}");
    let reported = run("--json").json();
    assert_eq!((&reported["failed"], &reported["not_permitted"]), (&2.into(), &2.into()));
    assert_eq!(reported["studies"][0]["failed"].as_array().unwrap().len(), 2);
}

/// Without the feature `rivals`, this program does not include other implementations; if it was built with the feature,
/// as when all crates are built together, the runs succeed.
#[test]
fn a_missing_feature_is_reported_and_is_no_failure() {
    let profile = "set.thin.game.profile = \"thin\"";
    let rival = "set.thin.game = { transport = \"dcsctp\", profile = \"default\" }";
    let place = Place::new("not-built", &STUDY.replace(profile, rival));
    let ended = place.run("run", "--seeds 2");
    let text = ended.text();
    if rexmit_lab::rivals::ARE_BUILT {
        assert!(text.contains("4 runs; all reports: ") && ended.stderr.lines().count() == 1);
        return;
    }
    assert!(text.contains("  undecided      A thin stream waits less\n"), "{text}");
    assert!(text.contains("4 runs, 2 not possible here; all reports: "), "{text}");
    let said = "rexmit: small: 2 runs were not made, and what needs them is undecided: \
                this program was built without the rivals: `cargo build --release -p rexmit-cli \
                --features rivals` (Python: `--config-settings build-args=\"--features rivals\"` of pip)\n";
    assert!(ended.stderr.ends_with(said), "{ended:?}");
    let reported = place.run("run", "--seeds 2 --json").json();
    assert_eq!(
        (&reported["found"], &reported["failed"]),
        (&2.into(), &2.into()),
        "the others are kept"
    );
    assert_eq!(reported["not_permitted"], 2);
    for row in reported["studies"][0]["failed"].as_array().unwrap() {
        let file = row["document"].as_str().unwrap();
        assert!(std::fs::read_to_string(file).unwrap().contains("dcsctp"), "{row}");
        run(&format!("study exec {file}")).assert_failed(1, "built without the rivals");
    }
}

#[test]
fn studies_are_listed_and_shown() {
    let place = Place::new("shown", STUDY);
    let folder = place.0.display();
    let line = "small       8 runs  Nobody 2020, Fig. 1  A small study\n";
    assert_eq!(run(&format!("study list {folder}")).text(), line);
    let listed = run("study list --json").json();
    let named = |name: &str| listed.as_array().unwrap().iter().any(|study| study["name"] == name);
    assert!(named("petlund2009-fig8a") && named("petlund2008-fairness"), "{listed}");
    // An invalid study does not hide the others.
    std::fs::write(place.0.join("wrong.toml"), "title = 7\n").unwrap();
    let ended = run(&format!("study list {folder}"));
    ended.assert_failed(5, "wrong.toml:1:9: ");
    assert_eq!(String::from_utf8(ended.stdout).unwrap(), line);
    let shown = format!("study show {} --cache {folder}/cache", place.study());
    let text = run(&shown).text();
    for part in [
        "small: A small study\nNobody 2020, Fig. 1\n",
        "  thin.game.profile = lksctp\n",
        "  system: lksctp | thin\n",
        "  2 points with 4 seeds each: 8 runs, 1.3 h of simulated time\n",
        "  A thin stream waits less\n    ",
    ] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    place.run("run", "--seeds 1").text();
    assert!(run(&shown).text().contains("simulated time; 2 of them are in the cache\n"));
    assert_eq!(run(&format!("{shown} --json")).json()[0]["found"], 2);
}

#[test]
fn several_studies_say_first_how_much_they_are() {
    let place = Place::new("several", STUDY);
    let short = STUDY.replace("10min", "1min").replace("A small study", "A smaller one");
    std::fs::write(place.0.join("smaller.toml"), short).unwrap();
    let folder = place.0.display();
    let ended = run(&format!("study run {folder} --cache {folder}/cache --out {folder}/out"));
    let said = "2 studies: small (8), smaller (8)\n16 runs, about ";
    assert!(ended.stderr.starts_with(said), "{ended:?}");
    assert!(place.run("run", "").stderr.starts_with("8 runs, all in the cache\n"));
    assert!(
        place.run("run", "--seeds 5 --yes").stderr.starts_with("10 runs, 2 not in the cache, ")
    );
}

#[test]
fn unrunnable_scenarios_are_reported_before_anything_runs() {
    run("study run").assert_failed(2, "no study given: name one, or use --all");
    run("study run fig99")
        .assert_failed(2, "there is no study `fig99`: the nearest: petlund2009-fig9");
    run("study run nonsense").assert_failed(2, "study `nonsense`: `rexmit study list` lists all");
    let missing = run("study run no/such.toml");
    missing.assert_failed(5, "no/such.toml cannot be read: No such file");
    missing.assert_failed(5, "name a study of `rexmit study list`");
    let unwritable = run("study run petlund2009-fig5 --cache /proc/no --out /proc/no");
    unwritable.assert_failed(5, "results of runs cannot be kept: /proc/no");
    unwritable.assert_failed(5, "choose another place by --cache, a directory");
    let place = Place::new("wrong", &STUDY.replace("[[axis.point]]", "[[axis.pointt]]"));
    place.run("run", "").assert_failed(5, "small.toml:17:8: an axis has no `pointt`");
    let place = Place::new("wrong-claim", &STUDY.replacen("latency.mean", "latency.men", 1));
    place.run("run", "").assert_failed(5, "did you mean `game.latency.mean`?");
    assert!(!place.0.join("cache").exists());
    let place = Place::new("twice", STUDY);
    let other = place.0.join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::copy(place.study(), other.join("small.toml")).unwrap();
    run(&format!("study run {} {}/small.toml", place.study(), other.display()))
        .assert_failed(2, "two studies are called `small`");
}

#[test]
fn what_is_no_study_is_refused_at_once() {
    let ended = Rexmit::start(["study", "show", ""], Vec::new()).end();
    ended.assert_failed(2, "the name of a study is empty");
    run("study show /dev/zero").assert_failed(5, "it is a pipe, socket or device");
    let place = Place::new("pipe", STUDY);
    let pipe = place.0.join("pipe.toml");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    if made.is_ok_and(|status| status.success()) {
        run(&format!("study show {}", pipe.display()))
            .assert_failed(5, "it is a pipe, socket or device: a study is a regular file");
    }
    let endless = STUDY.replace("10min", "2000h").replace("every 250ms", "every 100us");
    let place = Place::new("endless", &endless);
    place.run("run", "").assert_failed(5, "duration: about 7.2e10 packets of messages in 2000h");
}

#[test]
fn quantities_are_listed_with_unit_and_meaning() {
    let all = run("study quantities --json").json();
    let named = |name: &str| all.as_array().unwrap().iter().find(|one| one["name"] == name);
    let latency = named("game.latency.p99").expect("it is measured");
    assert_eq!((&latency["unit"], &latency["kind"]), (&"milliseconds".into(), &"quantity".into()));
    assert!(named("greedy.goodput").is_some() && named("network.forward.loss_share").is_some());
    let text = run("study quantities --contains UNDELIVERED").text();
    assert!(text.contains("here called `game`"), "{text}");
    assert!(text.contains("count  messages that never reached the application"), "{text}");
    let place = Place::new("quantities", STUDY);
    let text = run(&format!("study quantities {}", place.study())).text();
    assert!(text.starts_with("small, a number per run:\n  game."), "{text}");
    assert!(text.contains("\nsmall, values over time, for figures of kind series:\n"), "{text}");
    run("study quantities --contains nonsense").assert_failed(2, "leave out --contains for all");
}

#[test]
fn messages_that_were_never_delivered_are_reported() {
    // Nothing arrives after the first minute.
    let lossy = STUDY.replace(
        "forward = \"delay 50ms loss 5%\"",
        "forward = \"delay 50ms loss 5%\"\nchanges = [{ at = \"1min\", forward = \"loss 100%\" }]",
    );
    let place = Place::new("undelivered", &lossy.replace("10min", "2min"));
    let text = place.run("run", "--seeds 2").text();
    let note = "Messages of `game` that were never delivered have no latency";
    assert!(text.contains(note) && text.contains(" at system \"thin\""), "{text}");
    let report = std::fs::read_to_string(place.out("small/report.html")).unwrap();
    assert!(report.contains(note));
    assert!(report.contains("<code>rexmit study run small.toml --seeds 2</code>"));
    let json = place.run("run", "--seeds 2 --json").json();
    assert_eq!(json["studies"][0]["notes"].as_array().unwrap().len(), 1);
}

#[test]
fn unwritable_paths_are_reported_with_an_alternative() {
    let place = Place::new("unwritable", STUDY);
    let file = place.study();
    run(&format!("study run {file} --cache {file}/cache"))
        .assert_failed(5, "another place by --cache");
    run(&format!("study run {file} --cache {}/cache --out {file}", place.0.display()))
        .assert_failed(5, "choose another directory with --out");
}

#[expect(clippy::disallowed_methods, reason = "another process is waited for")]
fn wait_until(is_so: impl Fn() -> bool) {
    while !is_so() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}
