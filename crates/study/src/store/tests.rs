use std::collections::BTreeMap;
use std::io::Write;

use rexmit_lab::scenario::{Distribution, MessageRow, Series};

use super::*;

fn program(name: &str) -> Program {
    Program::of(name.as_bytes()).unwrap()
}

fn key(number: u64) -> RunKey {
    serde_json::from_value(format!("{number:064x}").into()).unwrap()
}

fn message(number: u64) -> MessageRow {
    MessageRow {
        flow: "game".into(),
        message: number,
        bytes: 100,
        intended_s: number as f64 / 3.0,
        transport_ms: Some(50.1),
        application_ms: None,
        transmissions: Some(2),
    }
}

fn outcome() -> RunOutcome {
    RunOutcome {
        // Many digits, and one whose nearest decimal is easily read as its neighbour.
        quantities: BTreeMap::from([
            ("game.latency.mean".into(), 1.0 / 3.0),
            ("game.goodput".into(), 1.797_693_134_862_315e308),
        ]),
        distributions: BTreeMap::from([(
            "game.latency".into(),
            Distribution { values: vec![50.05, 1e3], counts: vec![7, 1] },
        )]),
        series: BTreeMap::from([(
            "game.rto".into(),
            Series { seconds: vec![0.0, 0.1], values: vec![3e3, 1e3] },
        )]),
        messages: (0..3).map(message).collect(),
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        match entry.unwrap().path() {
            path if path.is_dir() => found.extend(files(&path)),
            path => found.push(path),
        }
    }
    found.retain(|path| !path.ends_with(USED));
    found
}

#[test]
fn a_stored_result_is_read_back_exactly() {
    let place = tempfile::tempdir().unwrap();
    let store = Store::open(place.path(), program("a")).unwrap();
    assert!(matches!(store.look_up(&key(1)), Found::Nothing));
    store.claim(&key(1)).unwrap().fulfil(outcome()).unwrap();
    assert!(matches!(store.look_up(&key(1)), Found::Result));
    let without = RunOutcome { messages: Vec::new(), ..outcome() };
    assert_eq!(store.outcome(&key(1)).unwrap(), without);
    let messages: Result<Vec<_>, _> = store.messages(&key(1)).unwrap().collect();
    assert_eq!(messages.unwrap(), outcome().messages);
    assert!(matches!(store.look_up(&key(2)), Found::Nothing));
    assert_eq!(files(place.path()).len(), 1, "nothing else is left");
}

#[test]
fn programs_do_not_see_the_results_of_others() {
    let place = tempfile::tempdir().unwrap();
    let first = Store::open(place.path(), program("a")).unwrap();
    first.claim(&key(1)).unwrap().fulfil(outcome()).unwrap();
    let other = Store::open(place.path(), program("b")).unwrap();
    assert!(matches!(other.look_up(&key(1)), Found::Nothing));
    let again = Store::open(place.path(), program("a")).unwrap();
    assert!(matches!(again.look_up(&key(1)), Found::Result));
}

#[test]
fn damage_is_noticed_wherever_it_is() {
    let place = tempfile::tempdir().unwrap();
    let store = Store::open(place.path(), program("a")).unwrap();
    store.claim(&key(1)).unwrap().fulfil(outcome()).unwrap();
    let path = store.path(&key(1));
    let sound = fs::read(&path).unwrap();
    let mut harmless = 0;
    for at in 0..sound.len() {
        let mut bytes = sound.clone();
        bytes[at] ^= 0x10;
        fs::write(&path, bytes).unwrap();
        match store.look_up(&key(1)) {
            Found::Damaged(_) => assert!(store.outcome(&key(1)).is_err(), "byte {at}"),
            _ => {
                // Some bits of a gzip file have no effect: the time in its header, and padding at the ends of blocks.
                let messages: Result<Vec<_>, _> = store.messages(&key(1)).unwrap().collect();
                let whole =
                    RunOutcome { messages: messages.unwrap(), ..store.outcome(&key(1)).unwrap() };
                assert_eq!(whole, outcome(), "byte {at}");
                harmless += 1;
            }
        }
    }
    assert!(harmless < 10, "{harmless} of {}", sound.len());
    for length in 0..sound.len() {
        fs::write(&path, &sound[..length]).unwrap();
        assert!(matches!(store.look_up(&key(1)), Found::Damaged(_)), "cut off at {length}");
    }
    store.claim(&key(1)).unwrap().fulfil(outcome()).unwrap();
    assert!(matches!(store.look_up(&key(1)), Found::Result));
}

#[test]
fn results_of_something_else_are_not_believed() {
    let place = tempfile::tempdir().unwrap();
    let store = Store::open(place.path(), program("a")).unwrap();
    store.claim(&key(1)).unwrap().fulfil(outcome()).unwrap();
    let copy = |from: &Store, to: &Store, key: &RunKey| {
        fs::create_dir_all(to.path(key).parent().unwrap()).unwrap();
        fs::copy(from.path(&self::key(1)), to.path(key)).unwrap();
        to.look_up(key)
    };
    assert!(matches!(copy(&store, &store, &key(2)), Found::Damaged(EntryError::Foreign(_))));
    let other = Store::open(place.path(), program("b")).unwrap();
    assert!(matches!(copy(&store, &other, &key(1)), Found::Damaged(EntryError::Foreign(_))));
    let file = File::create(store.path(&key(1))).unwrap();
    let mut gzip = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    gzip.write_all(&vec![b'a'; 1 << 20]).unwrap();
    gzip.finish().unwrap();
    assert!(matches!(store.look_up(&key(1)), Found::Damaged(EntryError::Foreign(_))));
}

#[test]
fn one_claim_at_a_time() {
    let place = tempfile::tempdir().unwrap();
    let store = Store::open(place.path(), program("a")).unwrap();
    let claim = store.try_claim(&key(1)).unwrap().unwrap();
    for _ in 0..2 {
        assert!(store.try_claim(&key(1)).unwrap().is_none());
        assert!(store.try_claim(&key(2)).unwrap().is_some(), "another run is free");
    }
    drop(claim);
    assert!(files(place.path()).is_empty(), "a claim leaves nothing");
    store.try_claim(&key(1)).unwrap().unwrap().fulfil(outcome()).unwrap();
    assert!(store.try_claim(&key(1)).unwrap().is_some());
    assert!(matches!(store.look_up(&key(1)), Found::Result), "a claim alone changes nothing");
}

#[test]
fn waiting_for_a_claim_finds_the_result() {
    let place = tempfile::tempdir().unwrap();
    let store = Store::open(place.path(), program("a")).unwrap();
    let claim = store.claim(&key(1)).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let _claim = store.claim(&key(1)).unwrap();
            store.look_up(&key(1))
        });
        claim.fulfil(outcome()).unwrap();
        assert!(matches!(waiting.join().unwrap(), Found::Result));
    });
}

#[test]
fn files_of_a_killed_process_are_overwritten() {
    let place = tempfile::tempdir().unwrap();
    let store = Store::open(place.path(), program("a")).unwrap();
    drop(store.claim(&key(1)).unwrap());
    let draft = store.path(&key(1)).with_extension("part");
    fs::write(draft, vec![0; 1 << 16]).unwrap();
    store.try_claim(&key(1)).unwrap().unwrap().fulfil(outcome()).unwrap();
    assert!(matches!(store.look_up(&key(1)), Found::Result));
}

#[test]
fn the_least_lately_used_program_makes_room() {
    let place = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..=MAX_PROGRAMS).map(|number| number.to_string()).collect();
    let open = |name: &str| Store::open(place.path(), program(name)).unwrap();
    for name in &names[..MAX_PROGRAMS] {
        open(name).claim(&key(1)).unwrap().fulfil(outcome()).unwrap();
    }
    let change = |name: &str, seconds| {
        let time = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        let file = File::options().write(true).open(open(name).folder.join(USED)).unwrap();
        file.set_modified(time).unwrap();
    };
    for (name, seconds) in names[..MAX_PROGRAMS].iter().zip([10, 0, 20, 40]) {
        change(name, seconds);
    }
    // The least lately used one of all is in use.
    let in_use = open(&names[1]);
    change(&names[1], 0);
    open(&names[MAX_PROGRAMS]);
    in_use.claim(&key(2)).unwrap().fulfil(outcome()).unwrap();
    let left = |name: &str| place.path().join(program(name).short()).exists();
    let left: Vec<bool> = names.iter().map(|name| left(name)).collect();
    assert_eq!(left, [false, true, true, true, true]);
}

#[test]
fn a_place_that_cannot_be_written_to_is_named() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("file");
    fs::write(&file, "").unwrap();
    let error = Store::open(&file, program("a")).unwrap_err();
    assert!(error.to_string().starts_with(file.to_str().unwrap()), "{error}");
}

#[test]
fn the_digest_of_a_program_is_sha_256() {
    // FIPS 180-4, the example of one block.
    let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(program("abc").as_str(), digest);
    assert_eq!(Program::running().unwrap(), Program::running().unwrap());
}

#[test]
fn a_result_of_another_machine_is_added_unless_it_is_of_another_run_or_program() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), program("one")).unwrap();
    let mut file = packed(&program("one"), &key(1), outcome()).unwrap();
    let refused = |store: &Store, number, file: &[u8]| {
        matches!(store.add(&key(number), file), Err(AddError::Refused(..)))
    };
    assert!(refused(&store, 2, &file));
    assert!(refused(&store, 1, &file[..file.len() - 1]));
    assert!(refused(&store, 1, b""));
    let other = Store::open(folder.path(), program("other")).unwrap();
    assert!(refused(&other, 1, &file));
    assert!(matches!(store.look_up(&key(1)), Found::Nothing));
    for _ in 0..2 {
        store.add(&key(1), &file).unwrap();
        assert_eq!(store.messages(&key(1)).unwrap().count(), 3);
        assert_eq!(store.outcome(&key(1)).unwrap().quantities, outcome().quantities);
    }
    assert_eq!(files(folder.path()).len(), 1, "no draft is left");
    let half = file.len() / 2;
    file[half] ^= 1;
    assert!(refused(&store, 1, &file));
    assert!(matches!(store.look_up(&key(1)), Found::Result), "the valid result stays");
}
