//! The same seed gives the same bytes, and Wireshark decodes the packets as SCTP.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use rexmit_sctp::wire::kind;
use rexmit_tests::{Plan, run};

/// Plans whose runs together send every known type of chunk.
fn plans_with_every_chunk() -> Vec<Plan> {
    // Corrupted packets are captured where they arrive, and are malformed indeed.
    let is_clean = |plan: &Plan| {
        plan.paths.iter().all(|(_, paths)| paths.iter().all(|path| path.corrupt == 0.0))
    };
    let ours = |kind: &u8| !matches!(*kind, kind::ECNE | kind::CWR);
    let more = [kind::RE_CONFIG, kind::FORWARD_TSN];
    let mut missing: BTreeSet<u8> =
        (kind::DATA..=kind::SHUTDOWN_COMPLETE).filter(ours).chain(more).collect();
    let mut plans = Vec::new();
    for plan in (0..500).map(Plan::draw).filter(is_clean) {
        let before = missing.len();
        for kind in run(&plan, false, false).chunks.keys() {
            missing.remove(kind);
        }
        if missing.len() < before {
            plans.push(plan);
        }
        if missing.is_empty() {
            return plans;
        }
    }
    panic!("never sent in 500 runs: {missing:?}")
}

#[test]
fn the_same_seed_gives_the_same_capture() {
    for seed in 0..50 {
        let capture = || run(&Plan::draw(seed), false, true).capture.expect("it was asked for");
        assert!(capture() == capture(), "seed {seed}");
    }
    let [one, other] = [0, 1].map(|seed| run(&Plan::draw(seed), false, true).capture);
    assert!(one != other);
}

#[test]
fn wireshark_finds_nothing_wrong_in_runs_with_every_chunk_type() {
    for plan in plans_with_every_chunk() {
        let capture = run(&plan, false, true).capture.expect("it was asked for");
        let name = format!("seed-{}.pcapng", plan.seed);
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::write(&file, capture).expect("the target directory is writable");
        let Some(all) = tshark(&file, "sctp") else {
            rexmit_testkit::not_run("tshark is not installed");
            return;
        };
        assert!(all.lines().count() > 10, "hardly any SCTP in the capture:\n{all}");
        let bad = "_ws.malformed || sctp.checksum.status == \"Bad\"";
        assert_eq!(tshark(&file, bad).as_deref(), Some(""), "{}", file.display());
        // The filter can find what it is to find: every checksum was looked at.
        let good = tshark(&file, "sctp.checksum.status == \"Good\"").expect("it is there");
        assert_eq!(good.lines().count(), all.lines().count());
    }
}

/// A line for each packet that matches the filter; `None` if there is no tshark.
fn tshark(file: &Path, filter: &str) -> Option<String> {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(file).args(["-o", "sctp.checksum:CRC-32C", "-Y", filter]);
    Some(String::from_utf8_lossy(&command.output().ok()?.stdout).into_owned())
}
