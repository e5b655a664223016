//! Which crate may import which (ARCHITECTURE.md), checked against Cargo's metadata and, where only one module may be
//! imported, against the source.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The permitted imports: each crate, and the crates that it may import.
const ARROWS: &[(&str, &[&str])] = &[
    ("rexmit-core", &[]),
    ("rexmit-congestion", &["rexmit-core"]),
    ("rexmit-deadline", &["rexmit-core"]),
    ("rexmit-recovery", &["rexmit-core", "rexmit-congestion", "rexmit-deadline"]),
    ("rexmit-sctp", &["rexmit-core", "rexmit-recovery"]),
    ("rexmit-tcp", &["rexmit-core", "rexmit-recovery"]),
    ("rexmit-dtls", &["rexmit-core", "rexmit-sctp"]),
    ("rexmit-udp", &[]),
    ("rexmit-webrtc", &["rexmit-core", "rexmit-sctp", "rexmit-dtls", "rexmit-udp"]),
    ("rexmit-netsim", &["rexmit-core"]),
    ("rexmit-testkit", &["rexmit-core"]),
    ("rexmit-kernels", &["rexmit-core", "rexmit-netsim"]),
    ("rexmit-qlog", &["rexmit-core"]),
    (
        "rexmit",
        &[
            "rexmit-core",
            "rexmit-qlog",
            "rexmit-sctp",
            "rexmit-dtls",
            "rexmit-tcp",
            "rexmit-netsim",
            "rexmit-udp",
        ],
    ),
    ("rexmit-capi", &["rexmit-core", "rexmit-sctp", "rexmit-dtls", "rexmit-udp"]),
    ("rexmit-sockets", &["rexmit-core", "rexmit-recovery", "rexmit-sctp", "rexmit-udp"]),
    ("rexmit-preload", &["rexmit-sockets"]),
    (
        "rexmit-python",
        &[
            "rexmit-core",
            "rexmit-recovery",
            "rexmit-sctp",
            "rexmit-dtls",
            "rexmit-lab",
            "rexmit-study",
        ],
    ),
    ("rexmit-lab", &["rexmit-core", "rexmit-netsim", "rexmit-qlog", "rexmit-sctp", "rexmit-tcp"]),
    ("rexmit-study", &["rexmit-core", "rexmit-lab"]),
    (
        "rexmit-perf",
        &["rexmit-core", "rexmit-netsim", "rexmit-qlog", "rexmit-sctp", "rexmit-lab", "rexmit"],
    ),
    (
        "rexmit-cli",
        &[
            "rexmit-core",
            "rexmit-recovery",
            "rexmit-netsim",
            "rexmit-qlog",
            "rexmit-sctp",
            "rexmit-tcp",
            "rexmit-lab",
            "rexmit-study",
            "rexmit-perf",
            "rexmit-sockets",
            "rexmit",
        ],
    ),
];

/// Crates for tests, measurements and demonstrations, which may import everything and are never imported.
const TEST_ROOMS: &[&str] = &["rexmit-tests", "rexmit-fuzz", "rexmit-bench", "rexmit-web-game"];

/// The modules of netsim that `rexmit` may use: those that import no other module.
const STANDING_ALONE: &[&str] = &["path", "netem", "units", "capture"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a workspace above").to_owned()
}

/// Every member and the members that it imports, without those that only its tests import.
fn imports() -> Vec<(String, BTreeSet<String>)> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(root())
        .output()
        .expect("cargo runs this test");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo writes JSON");
    let name = |value: &Value| value["name"].as_str().expect("a name").to_owned();
    let packages = metadata["packages"].as_array().expect("a list of packages");
    let is_import =
        |dependency: &&Value| dependency["kind"] != "dev" && name(dependency).starts_with("rexmit");
    let imports = |package: &Value| {
        let dependencies = package["dependencies"].as_array().expect("a list of dependencies");
        (name(package), dependencies.iter().filter(is_import).map(name).collect())
    };
    packages.iter().map(imports).collect()
}

#[test]
fn crates_import_only_along_the_arrows() {
    let imports = imports();
    assert!(imports.len() >= ARROWS.len() + TEST_ROOMS.len(), "{imports:?}");
    for (importer, imported) in imports {
        if TEST_ROOMS.contains(&importer.as_str()) {
            continue;
        }
        let (_, allowed) = ARROWS
            .iter()
            .find(|(name, _)| *name == importer)
            .unwrap_or_else(|| panic!("{importer} is a room without arrows: add them here"));
        for name in imported {
            assert!(allowed.contains(&name.as_str()), "{importer} must not import {name}");
        }
    }
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("a readable folder").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The item of netsim that a line of source code names, if any.
fn part_of_netsim(line: &str) -> Option<&str> {
    let code = line.split("//").next()?;
    let at = code.find("rexmit_netsim")?;
    Some(code[at + "rexmit_netsim".len()..].trim_start_matches("::"))
}

#[test]
fn rexmit_imports_only_the_independent_modules_of_netsim() {
    let mut files = Vec::new();
    sources(&root().join("crates/rexmit/src"), &mut files);
    assert!(!files.is_empty());
    for file in files {
        let text = std::fs::read_to_string(&file).expect("readable sources");
        for part in text.lines().filter_map(part_of_netsim) {
            let is_allowed = STANDING_ALONE.iter().any(|allowed| part.starts_with(allowed));
            assert!(is_allowed, "{} uses netsim's {part}", file.display());
        }
    }
    assert_eq!(part_of_netsim("use rexmit_netsim::network::Network;"), Some("network::Network;"));
}
