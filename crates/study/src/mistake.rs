//! Mistakes in a study file with their positions. All are reported at once, each with the known
//! alternatives.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;
use std::io;

use thiserror::Error;

pub(crate) use rexmit_core::settings::alternatives;

/// Largest number of mistakes reported for one file.
pub const MAX_MISTAKES: usize = 40;

/// Why a study cannot be read.
#[derive(Debug, Error)]
pub enum StudyError {
    /// The file cannot be read.
    #[error("{file} cannot be read: {error}")]
    Unreadable {
        /// The path of the file.
        file: String,
        /// The reason.
        error: io::Error,
    },
    /// The file is not a valid study.
    #[error(transparent)]
    Mistaken(#[from] Mistakes),
}

/// All mistakes in a study file, in the order of their positions. Printed as one line each:
/// `FILE:LINE:COLUMN: WHAT`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mistakes {
    /// The file.
    pub file: String,
    /// At least one, at most [`MAX_MISTAKES`].
    pub list: Vec<Mistake>,
}

/// One mistake.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mistake {
    /// The line, from 1.
    pub line: usize,
    /// The character in it, from 1.
    pub column: usize,
    /// A description of the mistake, and the expected values.
    pub what: String,
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, mistake) in self.list.iter().enumerate() {
            let newline = if index > 0 { "\n" } else { "" };
            let Mistake { line, column, what } = mistake;
            write!(f, "{newline}{}:{line}:{column}: {what}", self.file)?;
        }
        Ok(())
    }
}

impl std::error::Error for Mistakes {}

/// Collects mistakes while a file is read, by their position in the text.
#[derive(Default)]
pub(crate) struct Notes {
    list: RefCell<BTreeSet<(usize, String)>>,
}

impl Notes {
    /// Notes the mistake `what` at byte `at` of the text. Duplicates are ignored.
    pub(crate) fn add(&self, at: usize, what: impl Into<String>) {
        self.list.borrow_mut().insert((at, what.into()));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.borrow().is_empty()
    }

    /// All mistakes with their positions.
    pub(crate) fn into_list(self) -> impl Iterator<Item = (usize, String)> {
        self.list.into_inner().into_iter()
    }

    /// `Ok` if there are no mistakes.
    pub(crate) fn into_result(self, file: &str, text: &str) -> Result<(), Mistakes> {
        let list = self.list.into_inner();
        if list.is_empty() {
            return Ok(());
        }
        let first = list.into_iter().take(MAX_MISTAKES);
        let list = first.map(|(at, what)| mistake(text, at, what)).collect();
        Err(Mistakes { file: file.into(), list })
    }
}

fn mistake(text: &str, at: usize, what: String) -> Mistake {
    let before = &text[..text.floor_char_boundary(at)];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = before.bytes().filter(|&byte| byte == b'\n').count() + 1;
    Mistake { line, column: before[line_start..].chars().count() + 1, what }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_in_lines_and_characters() {
        let text = "a\nüx = 1\n";
        let notes = Notes::default();
        for at in [0, 2, 4, 3, 99] {
            notes.add(at, at.to_string());
        }
        let mistakes = notes.into_result("f.toml", text).unwrap_err();
        let places: Vec<_> = mistakes.list.iter().map(|m| (m.line, m.column)).collect();
        assert_eq!(places, [(1, 1), (2, 1), (2, 1), (2, 2), (3, 1)]);
        assert!(mistakes.to_string().starts_with("f.toml:1:1: 0\nf.toml:2:1: 2\n"));
    }
}
