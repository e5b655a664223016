//! Puts the studies of the project into the library, so that its command has them wherever it is
//! installed.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    let root = env::var("CARGO_MANIFEST_DIR").expect("cargo says it");
    let folder = Path::new(&root).join("../../studies");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)
        .expect("the folder of studies is part of the project")
        .map(|entry| entry.expect("it can be read").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    files.sort();
    let mut list = String::from("&[\n");
    for file in files {
        println!("cargo::rerun-if-changed={}", file.display());
        let name = file.file_stem().expect("it has an extension").to_str().expect("in UTF-8");
        let path = file.to_str().expect("in UTF-8");
        writeln!(list, "    ({name:?}, include_str!({path:?})),").expect("memory takes it");
    }
    list.push_str("]\n");
    let out = env::var("OUT_DIR").expect("cargo says it");
    fs::write(Path::new(&out).join("studies.rs"), list).expect("cargo's folder can be written");
}
