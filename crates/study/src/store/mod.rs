//! Results of runs, kept so that nothing is run twice.
//!
//! A result is found by what made it: the [`RunKey`] (scenario and seed) and the [`Program`] that
//! ran it. Each is a file of its own that is created atomically, so that a killed process loses
//! only the runs that were under way. A file that is damaged, or is not what its name says, counts
//! as missing. Several processes may work on one store: who runs something holds a [`Claim`] to it.

mod claim;
mod entry;
mod program;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;
use etcetera::base_strategy::Xdg;
use rexmit_lab::scenario::RunOutcome;
use thiserror::Error;

pub use self::claim::Claim;
use self::entry::Entry;
pub use self::entry::{EntryError, MessageRows};
pub use self::program::Program;
use crate::RunKey;

/// The results of so many builds of the program are kept; the one that was used least lately goes
/// when another one comes.
pub const MAX_PROGRAMS: usize = 4;

/// The file whose time of change says when a program used the store last.
const USED: &str = "used";

/// The results that one program has made.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
    program: Program,
}

/// The entry of a store for a key.
#[derive(Debug)]
pub enum Found {
    /// A result, all of which was read and is sound.
    Result,
    /// Nothing.
    Nothing,
    /// Something that is not to be believed, and why.
    Damaged(EntryError),
}

/// A store cannot be written to.
#[derive(Debug, Error)]
#[error("{} cannot be written: {source}", path.display())]
pub struct StoreError {
    /// What could not be written.
    pub path: PathBuf,
    /// Why.
    pub source: io::Error,
}

impl StoreError {
    pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self { path, source }
    }
}

impl Store {
    /// Where the results of a user are kept: `rexmit/runs` in the directory for caches
    /// (`$XDG_CACHE_HOME`, or `~/.cache`). `None` for a user without a home.
    #[must_use]
    pub fn usual_place() -> Option<PathBuf> {
        Some(Xdg::new().ok()?.cache_dir().join("rexmit").join("runs"))
    }

    /// Opens the results that `program` has made among those kept in `place`, making it if need be.
    ///
    /// # Errors
    /// If it cannot be written to.
    pub fn open(place: &Path, program: Program) -> Result<Self, StoreError> {
        let folder = place.join(program.short());
        if !folder.exists() {
            forget_oldest(place);
        }
        fs::create_dir_all(&folder).map_err(StoreError::at(&folder))?;
        // Writing, unlike opening, moves the time of change.
        let used = folder.join(USED);
        fs::write(&used, program.as_str()).map_err(StoreError::at(&used))?;
        Ok(Self { folder, program })
    }

    /// The program whose results these are.
    #[must_use]
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Whether there is a file for `key`, sound or not.
    #[must_use]
    pub fn has(&self, key: &RunKey) -> bool {
        self.path(key).exists()
    }

    /// Whether there is a sound result for `key`. Reads the whole file.
    #[must_use]
    pub fn look_up(&self, key: &RunKey) -> Found {
        match self.open_entry(key).and_then(Entry::check) {
            Ok(()) => Found::Result,
            Err(EntryError::Missing) => Found::Nothing,
            Err(why) => Found::Damaged(why),
        }
    }

    /// The result for `key`, without its messages, which may be many: see
    /// [`messages`](Self::messages).
    ///
    /// # Errors
    /// Without a sound one.
    pub fn outcome(&self, key: &RunKey) -> Result<RunOutcome, EntryError> {
        self.open_entry(key)?.outcome()
    }

    /// The messages of the result for `key`, one after the other.
    ///
    /// # Errors
    /// If there is no result, or it is not one for this key.
    pub fn messages(&self, key: &RunKey) -> Result<MessageRows, EntryError> {
        self.open_entry(key)?.messages()
    }

    /// Takes the right to make the result for `key`; `None` if another process or thread has it.
    ///
    /// # Errors
    /// If the store cannot be written to.
    pub fn try_claim(&self, key: &RunKey) -> Result<Option<Claim<'_>>, StoreError> {
        Claim::try_take(self, key)
    }

    /// As [`try_claim`](Self::try_claim), but waits until its owner is done. There may be a
    /// result then.
    ///
    /// # Errors
    /// If the store cannot be written to.
    pub fn claim(&self, key: &RunKey) -> Result<Claim<'_>, StoreError> {
        Claim::wait(self, key)
    }

    fn open_entry(&self, key: &RunKey) -> Result<Entry, EntryError> {
        Entry::open(&self.path(key), key, &self.program)
    }

    /// The file for `key`; a folder for each first byte keeps the folders small.
    fn path(&self, key: &RunKey) -> PathBuf {
        let (first, rest) = key.as_str().split_at(2);
        self.folder.join(first).join(format!("{rest}.json.gz"))
    }
}

/// Makes room for one more program. What cannot be removed stays: that is no reason to run nothing.
fn forget_oldest(place: &Path) {
    let Ok(entries) = fs::read_dir(place) else { return };
    let used = |folder: PathBuf| {
        let changed = File::open(folder.join(USED)).and_then(|file| file.metadata()?.modified());
        Some((changed.ok()?, folder))
    };
    let mut programs: Vec<_> = entries.flatten().filter_map(|entry| used(entry.path())).collect();
    programs.sort();
    let surplus = (programs.len() + 1).saturating_sub(MAX_PROGRAMS);
    for (_, folder) in programs.into_iter().take(surplus) {
        let _ = fs::remove_dir_all(folder);
    }
}

#[cfg(test)]
mod tests;
