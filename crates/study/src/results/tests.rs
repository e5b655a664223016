use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use rexmit_lab::scenario::{ExecuteError, MessageRow, RunOutcome};

use super::*;
use crate::{Coordinate, DOCUMENT_SCHEMA};

fn document(system: &str, seed: u64) -> RunDocument {
    let delay = format!("delay {}ms", system.len());
    let scenario = serde_json::json!({"duration": "1h", "network": {"forward": delay}});
    RunDocument {
        schema: DOCUMENT_SCHEMA,
        study: "fig".into(),
        point: vec![
            Coordinate { axis: "system".into(), label: system.into() },
            Coordinate { axis: "seed".into(), label: "an axis of that name".into() },
        ],
        seed,
        scenario: serde_json::from_value(scenario).unwrap(),
    }
}

/// A page from JSON, in which unneeded fields may be missing.
fn page() -> StudyPage {
    let quantity =
        |name: &str| serde_json::json!({"name": name, "unit": "milliseconds", "about": ""});
    let quantities = ["game.latency.mean", "game.never", "game.rtx1.mean"].map(quantity);
    serde_json::from_value(serde_json::json!({
        "study": {
            "name": "fig", "title": "A figure", "source": "", "about": "", "version": "1.2.3",
            "setting": [], "runs": 3, "simulated_s": 1.0,
        },
        "axes": [{"name": "system", "labels": []}, {"name": "seed", "labels": []}],
        "cells": [],
        "quantities": quantities,
        "costs": [], "figures": [], "claims": [],
    }))
    .unwrap()
}

fn message(number: u64) -> MessageRow {
    MessageRow {
        flow: "game".into(),
        message: number,
        bytes: 100,
        intended_s: number as f64 / 4.0,
        transport_ms: (number != 1).then_some(50.5),
        application_ms: None,
        transmissions: (number != 0).then_some(2),
    }
}

/// Three runs: one with everything, one that never retransmitted, one that failed.
struct Place {
    folder: tempfile::TempDir,
    store: Store,
    documents: Vec<RunDocument>,
    failed: BTreeMap<RunKey, FailedRun>,
    page: StudyPage,
}

impl Place {
    fn new(messages: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = Program::of(&b"a program"[..]).unwrap();
        let store = Store::open(&folder.path().join("cache"), program).unwrap();
        let documents =
            vec![document("thin", 1), document("lksctp", u64::MAX), document("thin", 3)];
        let with = |values: &[(&str, f64)], messages: Vec<MessageRow>| {
            let quantities = values.iter().map(|(name, value)| ((*name).into(), *value)).collect();
            RunOutcome { quantities, messages, ..RunOutcome::default() }
        };
        let all = [("game.latency.mean", 0.1 + 0.2), ("game.rtx1.mean", 7.0)];
        let first = with(&all, (0..messages).map(message).collect());
        let outcomes = [first, with(&[("game.latency.mean", 50.0)], Vec::new())];
        for (document, outcome) in documents.iter().zip(outcomes) {
            store.claim(&document.key()).unwrap().fulfil(outcome).unwrap();
        }
        let last = documents[2].clone();
        let why = ExecuteError::Failed("no way".into());
        let failed = BTreeMap::from([(last.key(), FailedRun { document: last, why })]);
        Self { folder, store, documents, failed, page: page() }
    }

    fn results(&self) -> Results {
        Results::new(&self.folder.path().join("results"), "fig").unwrap()
    }

    fn write(&self) -> Results {
        let Self { documents, failed, page, store, .. } = self;
        let results = self.results();
        let run = StudyRun { text: "title = \"…\"\n", documents, failed, page };
        results.write(&run, store).unwrap();
        results
    }
}

fn rows(results: &Results, name: &str) -> Vec<Row> {
    let file = File::open(results.folder().join(name)).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    reader.get_row_iter(None).unwrap().map(Result::unwrap).collect()
}

fn columns(row: &Row) -> Vec<(String, Field)> {
    row.get_column_iter().map(|(name, field)| (name.clone(), field.clone())).collect()
}

fn named<const N: usize>(fields: [(&str, Field); N]) -> Vec<(String, Field)> {
    fields.map(|(name, field)| (name.to_owned(), field)).into()
}

#[test]
fn each_run_is_a_row_with_every_quantity() {
    let place = Place::new(0);
    let rows = rows(&place.write(), "runs.parquet");
    let text = |text: &str| Field::Str(text.into());
    let row = |system: &str, index: usize, error: Field, mean: Field, rtx1: Field| {
        named([
            ("system", text(system)),
            ("axis.seed", text("an axis of that name")),
            ("seed", Field::ULong(place.documents[index].seed)),
            ("run", text(place.documents[index].key().as_str())),
            ("error", error),
            ("game.latency.mean", mean),
            ("game.never", Field::Null),
            ("game.rtx1.mean", rtx1),
        ])
    };
    let (null, double) = (Field::Null, Field::Double);
    let failed = text("the run failed: no way");
    assert_eq!(rows.len(), 3);
    assert_eq!(columns(&rows[0]), row("thin", 0, null.clone(), double(0.1 + 0.2), double(7.0)));
    assert_eq!(columns(&rows[1]), row("lksctp", 1, null.clone(), double(50.0), null.clone()));
    assert_eq!(columns(&rows[2]), row("thin", 2, failed, null.clone(), null));
}

#[test]
fn each_message_is_a_row_where_they_are_kept() {
    let place = Place::new(3);
    let rows = rows(&place.write(), "messages.parquet");
    assert_eq!(rows.len(), 3);
    let row = |number: u64, transport: Field, transmissions: Field| {
        named([
            ("system", Field::Str("thin".into())),
            ("axis.seed", Field::Str("an axis of that name".into())),
            ("seed", Field::ULong(1)),
            ("flow", Field::Str("game".into())),
            ("message", Field::ULong(number)),
            ("bytes", Field::ULong(100)),
            ("intended_s", Field::Double(number as f64 / 4.0)),
            ("transport_ms", transport),
            ("application_ms", Field::Null),
            ("transmissions", transmissions),
        ])
    };
    assert_eq!(columns(&rows[0]), row(0, Field::Double(50.5), Field::Null));
    assert_eq!(columns(&rows[1]), row(1, Field::Null, Field::ULong(2)));
    assert_eq!(columns(&rows[2]), row(2, Field::Double(50.5), Field::ULong(2)));
}

#[test]
fn more_rows_than_are_held_at_once_are_all_written() {
    const MESSAGES: u64 = 150_000;
    let place = Place::new(MESSAGES);
    let results = place.write();
    let file = File::open(results.folder().join("messages.parquet")).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    assert_eq!(reader.metadata().num_row_groups(), 3);
    let mut count = 0;
    for row in reader.get_row_iter(None).unwrap() {
        assert_eq!(columns(&row.unwrap())[4].1, Field::ULong(count));
        count += 1;
    }
    assert_eq!(count, MESSAGES);
}

#[test]
fn a_study_without_messages_has_no_table_of_them() {
    let place = Place::new(0);
    let results = place.results();
    // A file left by an earlier run of the study.
    fs::write(results.folder().join("messages.parquet"), "").unwrap();
    place.write();
    let mut names: Vec<_> = fs::read_dir(results.folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let expected =
        ["report.html", "report.json", "runs.jsonl", "runs.parquet", "study.toml", "version.json"];
    assert_eq!(names, expected);
}

#[test]
fn the_exact_inputs_are_there() {
    let place = Place::new(0);
    let results = place.write();
    let read = |name: &str| fs::read_to_string(results.folder().join(name)).unwrap();
    assert_eq!(read("study.toml"), "title = \"…\"\n");
    let documents: Vec<RunDocument> =
        read("runs.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(documents, place.documents);
    assert_eq!(serde_json::from_str::<StudyPage>(&read("report.json")).unwrap(), place.page);
    let mut version: serde_json::Value = serde_json::from_str(&read("version.json")).unwrap();
    let files = version.as_object_mut().unwrap().remove("files").unwrap();
    let names: Vec<_> = files.as_object().unwrap().keys().collect();
    assert_eq!(names, ["report.html", "report.json", "runs.jsonl", "runs.parquet", "study.toml"]);
    let expected = serde_json::json!({
        "rexmit": env!("CARGO_PKG_VERSION"),
        "program_sha256": place.store.program().as_str(),
        "runs": 3,
        "failed": 1,
    });
    assert_eq!(version, expected);
}

#[test]
fn results_are_current_while_text_runs_and_program_are_the_same() {
    let mut place = Place::new(0);
    let text = "title = \"…\"\n";
    let program = place.store.program().clone();
    // One of the runs has failed: it is to be tried again.
    assert_eq!(place.write().current(text, &place.documents, &program), None);
    place.documents.truncate(2);
    place.failed.clear();
    let results = place.write();
    let current = |text: &str, documents: &[RunDocument], program: &Program| {
        results.current(text, documents, program).is_some()
    };
    assert_eq!(results.current(text, &place.documents, &program), Some(place.page.clone()));
    assert!(!current("title = \"other\"\n", &place.documents, &program));
    assert!(!current(text, &place.documents[..1], &program));
    let another = Program::of(&b"another"[..]).unwrap();
    assert!(!current(text, &place.documents, &another));
    for lost in ["report.html", "runs.parquet", "version.json"] {
        place.write();
        assert!(current(text, &place.documents, &program));
        fs::remove_file(results.folder().join(lost)).unwrap();
        assert!(!current(text, &place.documents, &program), "{lost}");
    }
    // Of another process that wrote at the same time.
    place.write();
    fs::write(results.folder().join("runs.parquet"), "other runs").unwrap();
    assert!(!current(text, &place.documents, &program));
}

#[test]
fn a_text_is_replaced_where_it_is_and_keeps_its_permissions() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let place = Place::new(0);
    let folder = place.results().folder().to_owned();
    let [page, link] = ["page.md", "link.md"].map(|name| folder.join(name));
    assert!(replace_text(&page, "new").is_err(), "it does not exist");
    fs::write(&page, "old").unwrap();
    fs::set_permissions(&page, fs::Permissions::from_mode(0o640)).unwrap();
    symlink("page.md", &link).unwrap();
    replace_text(&link, "new").unwrap();
    assert_eq!(fs::read_to_string(&page).unwrap(), "new");
    assert_eq!(fs::metadata(&page).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
}

#[test]
fn failed_runs_leave_their_documents_until_they_succeed() {
    let place = Place::new(0);
    let results = place.results();
    let written = results.write_failed(&place.documents, &place.failed).unwrap();
    let [(path, document)] = &written[..] else { panic!("{written:?}") };
    assert_eq!(**document, place.documents[2]);
    let text = fs::read_to_string(path).unwrap();
    assert_eq!(serde_json::from_str::<RunDocument>(&text).unwrap(), place.documents[2]);
    assert!(results.write_failed(&place.documents, &BTreeMap::new()).unwrap().is_empty());
    assert!(!path.exists());
    assert!(results.write_failed(&place.documents[..2], &place.failed).unwrap().is_empty());
}

#[test]
fn a_lost_result_is_reported_and_no_incomplete_table_is_written() {
    let mut place = Place::new(0);
    place.documents.push(document("never run", 1));
    let Place { documents, failed, page, store, .. } = &place;
    let results = place.results();
    let error = results.write(&StudyRun { text: "", documents, failed, page }, store);
    let said = error.unwrap_err().to_string();
    let key = documents[3].key();
    assert!(said.contains("runs.parquet cannot be written"), "{said}");
    assert!(said.contains(&format!("the result of run {key} is lost")), "{said}");
    let left = fs::read_dir(results.folder()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(left.into_iter().all(|name| !name.to_string_lossy().contains("parquet")));
}

#[test]
fn the_index_leads_to_every_study_with_a_page() {
    let place = Place::new(0);
    let fig = place.write();
    let directory = fig.folder().parent().unwrap();
    let mut other = Results::new(directory, "another").unwrap();
    let mut page = place.page.clone();
    page.study.name = "another".into();
    let Place { documents, failed, store, .. } = &place;
    other.write(&StudyRun { text: "", documents, failed, page: &page }, store).unwrap();
    // Files other than studies, and moved ones, are left out.
    Results::new(directory, "empty").unwrap();
    other.folder = directory.join("moved");
    fs::create_dir(&other.folder).unwrap();
    fs::copy(fig.folder().join("report.json"), other.folder.join("report.json")).unwrap();
    let path = write_index(directory).unwrap();
    assert_eq!(path, directory.join("index.html"));
    let page = fs::read_to_string(path).unwrap();
    let links: Vec<&str> =
        page.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert_eq!(links, ["another/report.html", "fig/report.html"]);
}
