//! A store of results, so that no run is executed twice.
//!
//! A result is identified by the [`RunKey`] (scenario and seed) and the [`Program`] that ran it.
//! Each result is a file that is created atomically, so that a killed process loses only its runs
//! in progress. A file that is damaged, or whose content does not match its name, counts as
//! missing. Several processes may use one store: a process holds a [`Claim`] on each run that it
//! executes.

mod claim;
mod entry;
mod program;

use std::fs::{self, File, TryLockError};
use std::io::{self, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use etcetera::BaseStrategy;
use etcetera::base_strategy::Xdg;
use rexmit_lab::scenario::RunOutcome;
use thiserror::Error;

pub use self::claim::Claim;
use self::entry::Entry;
pub use self::entry::{EntryError, MessageRows};
pub use self::program::Program;
use crate::RunKey;

/// Number of builds of the program whose results are kept; the least recently used of those that no process uses is
/// removed when another one is added.
pub const MAX_PROGRAMS: usize = 4;

/// The file whose modification time is the time of the last use by a program. Each process that uses the results has a
/// shared lock on it.
const USED: &str = "used";

/// The results of one program.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
    program: Program,
    #[expect(dead_code, reason = "its lock is released when it is dropped")]
    in_use: Arc<File>,
}

/// The file of a result, made by a program on another machine that has no access to the store.
///
/// # Errors
/// Never for an outcome of finite numbers.
pub fn packed(program: &Program, key: &RunKey, outcome: RunOutcome) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    entry::write(&mut bytes, key, program, outcome)?;
    Ok(bytes)
}

/// A result was not added to the store.
#[derive(Debug, Error)]
pub enum AddError {
    /// The result is damaged, or that of another run or program.
    #[error("the result of run {0} was refused: {1}")]
    Refused(RunKey, #[source] EntryError),
    /// The store cannot be written to.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The state of a key in the store.
#[derive(Debug)]
pub enum Found {
    /// A complete and valid result.
    Result,
    /// No result.
    Nothing,
    /// An invalid result, and the reason.
    Damaged(EntryError),
}

/// The store cannot be written to.
#[derive(Debug, Error)]
#[error("{} cannot be written: {source}", path.display())]
pub struct StoreError {
    /// The path that could not be written.
    pub path: PathBuf,
    /// The reason.
    pub source: io::Error,
}

impl StoreError {
    pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self { path, source }
    }
}

impl Store {
    /// The default directory of a user's store: `rexmit/runs` in the cache directory
    /// (`$XDG_CACHE_HOME`, or `~/.cache`). `None` for a user without a home directory.
    #[must_use]
    pub fn usual_place() -> Option<PathBuf> {
        Some(Xdg::new().ok()?.cache_dir().join("rexmit").join("runs"))
    }

    /// Opens the results of `program` in the store at `place`, which is created if necessary.
    ///
    /// # Errors
    /// If it cannot be written to.
    pub fn open(place: &Path, program: Program) -> Result<Self, StoreError> {
        let folder = place.join(program.short());
        if !folder.exists() {
            forget_oldest(place);
        }
        fs::create_dir_all(&folder).map_err(StoreError::at(&folder))?;
        // Only writing, not opening, updates the modification time.
        let used = folder.join(USED);
        let options = File::options().create(true).truncate(false).write(true).open(&used);
        let mut in_use = options.map_err(StoreError::at(&used))?;
        in_use.write_all(program.as_str().as_bytes()).map_err(StoreError::at(&used))?;
        // A file system without locks has the times of the last use alone.
        let _ = in_use.lock_shared();
        Ok(Self { folder, program, in_use: Arc::new(in_use) })
    }

    /// The program whose results these are.
    #[must_use]
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Whether there is a file for `key`, valid or not.
    #[must_use]
    pub fn has(&self, key: &RunKey) -> bool {
        self.path(key).exists()
    }

    /// Looks up the result for `key` and validates the whole file.
    #[must_use]
    pub fn look_up(&self, key: &RunKey) -> Found {
        match self.open_entry(key).and_then(Entry::check) {
            Ok(()) => Found::Result,
            Err(EntryError::Missing) => Found::Nothing,
            Err(why) => Found::Damaged(why),
        }
    }

    /// The result for `key`, without its messages: see [`messages`](Self::messages).
    ///
    /// # Errors
    /// If there is no valid result.
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

    /// Adds the result for `key` from a file that [`packed`] has made. A result that is already there is replaced; both
    /// are the same.
    ///
    /// # Errors
    /// If it is damaged, of another run or of another program, or the store cannot be written to.
    pub fn add(&self, key: &RunKey, file: &[u8]) -> Result<(), AddError> {
        let entry = Entry::of(file, key, &self.program).and_then(Entry::check);
        entry.map_err(|why| AddError::Refused(key.clone(), why))?;
        let path = self.path(key);
        let folder = path.parent().unwrap_or(&path);
        fs::create_dir_all(folder).map_err(StoreError::at(folder))?;
        // Of a name that no other process has.
        let draft = path.with_extension(format!("{}.part", std::process::id()));
        fs::write(&draft, file).map_err(StoreError::at(&draft))?;
        Ok(fs::rename(&draft, &path).map_err(StoreError::at(&path))?)
    }

    /// Claims the result for `key`; `None` if another process or thread holds the claim.
    ///
    /// # Errors
    /// If the store cannot be written to.
    pub fn try_claim(&self, key: &RunKey) -> Result<Option<Claim<'_>>, StoreError> {
        Claim::try_take(self, key)
    }

    /// As [`try_claim`](Self::try_claim), but waits until the owner releases the claim. The other owner may have stored
    /// a result by then.
    ///
    /// # Errors
    /// If the store cannot be written to.
    pub fn claim(&self, key: &RunKey) -> Result<Claim<'_>, StoreError> {
        Claim::wait(self, key)
    }

    fn open_entry(&self, key: &RunKey) -> Result<Entry<BufReader<File>>, EntryError> {
        Entry::open(&self.path(key), key, &self.program)
    }

    /// The path of the file for `key`. There is a directory for each first byte, which keeps
    /// directories small.
    fn path(&self, key: &RunKey) -> PathBuf {
        let (first, rest) = key.as_str().split_at(2);
        self.folder.join(first).join(format!("{rest}.json.gz"))
    }
}

/// Removes the results of the least recently used programs, but not those in use. Failures to remove them are ignored.
fn forget_oldest(place: &Path) {
    let Ok(entries) = fs::read_dir(place) else { return };
    let used = |folder: PathBuf| {
        let file = File::open(folder.join(USED)).ok()?;
        let is_in_use = matches!(file.try_lock(), Err(TryLockError::WouldBlock));
        Some((is_in_use, file.metadata().ok()?.modified().ok()?, folder))
    };
    let mut programs: Vec<_> = entries.flatten().filter_map(|entry| used(entry.path())).collect();
    programs.sort();
    let surplus = (programs.len() + 1).saturating_sub(MAX_PROGRAMS);
    let unused = programs.into_iter().filter(|(is_in_use, ..)| !is_in_use);
    for (_, _, folder) in unused.take(surplus) {
        let _ = fs::remove_dir_all(folder);
    }
}

#[cfg(test)]
mod tests;
