//! The studies that come with the program, and those of a directory.

use std::io;
use std::path::{Path, PathBuf};

/// Name and text of each, by `studies/` at the root of the project.
const SHIPPED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/studies.rs"));

/// The name and the text of every study that comes with the program, by name.
pub fn shipped() -> impl Iterator<Item = (&'static str, &'static str)> {
    SHIPPED.iter().copied()
}

/// The study files in `directory`, by name.
///
/// # Errors
/// If the directory cannot be read.
pub fn study_files(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in directory.read_dir()? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::Study;

    #[test]
    fn what_comes_with_the_program_is_right_and_is_the_directory() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies");
        let files = study_files(&directory).unwrap();
        let names = files.iter().map(|file| file.file_stem().unwrap().to_str().unwrap());
        assert!(names.eq(shipped().map(|(name, _)| name)));
        let mut mistakes = Vec::new();
        for (file, (name, text)) in files.iter().zip(shipped()) {
            match Study::parse(name, text) {
                Ok(parsed) => assert_eq!(Study::load(file).unwrap(), parsed),
                Err(wrong) => mistakes.push(wrong.to_string()),
            }
        }
        assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
    }
}
