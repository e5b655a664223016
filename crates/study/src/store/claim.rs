//! Claims on results, so that no two processes compute the same result at the same time.
//!
//! A claim is a lock on the temporary file into which the result is written. The system releases it when the process
//! ends, for any reason; the next process overwrites the file of a killed one.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rexmit_lab::scenario::RunOutcome;

use super::{Store, StoreError, entry};
use crate::RunKey;

/// The exclusive right to compute the result of one run, until it is dropped.
#[derive(Debug)]
pub struct Claim<'a> {
    store: &'a Store,
    key: RunKey,
    draft: Draft,
}

/// The locked file, and its path.
#[derive(Debug)]
struct Draft {
    file: File,
    path: PathBuf,
}

impl<'a> Claim<'a> {
    pub(super) fn try_take(store: &'a Store, key: &RunKey) -> Result<Option<Self>, StoreError> {
        let draft = Draft::open(&store.path(key))?;
        let is_ours = match draft.file.try_lock() {
            Ok(()) => draft.is_current(),
            Err(TryLockError::WouldBlock) => false,
            Err(TryLockError::Error(error)) => draft.goes_without_lock(error)?,
        };
        Ok(is_ours.then(|| Self { store, key: key.clone(), draft }))
    }

    pub(super) fn wait(store: &'a Store, key: &RunKey) -> Result<Self, StoreError> {
        loop {
            let draft = Draft::open(&store.path(key))?;
            let is_ours = match draft.file.lock() {
                Ok(()) => draft.is_current(),
                Err(error) => draft.goes_without_lock(error)?,
            };
            if is_ours {
                return Ok(Self { store, key: key.clone(), draft });
            }
        }
    }

    /// Stores the result.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn fulfil(self, outcome: RunOutcome) -> Result<(), StoreError> {
        let Draft { file, path } = &self.draft;
        let write = || {
            file.set_len(0)?;
            entry::write(file, &self.key, &self.store.program, outcome)
        };
        write().map_err(StoreError::at(path))?;
        let place = self.store.path(&self.key);
        fs::rename(path, &place).map_err(StoreError::at(&place))
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        // Removes the file of a run that failed. After `fulfil`, there is no file at the path, or the draft of another
        // process.
        if self.draft.is_current() {
            let _ = fs::remove_file(&self.draft.path);
        }
    }
}

impl Draft {
    /// Opens the temporary file for the result at `place`.
    fn open(place: &Path) -> Result<Self, StoreError> {
        let path = place.with_extension("part");
        let folder = place.parent().unwrap_or(place);
        fs::create_dir_all(folder).map_err(StoreError::at(folder))?;
        let file = File::options().create(true).truncate(false).write(true).open(&path);
        Ok(Self { file: file.map_err(StoreError::at(&path))?, path })
    }

    /// Whether the file is still at its path: the previous owner of the lock may have renamed it to
    /// the result's path, or removed it.
    fn is_current(&self) -> bool {
        let id = |data: fs::Metadata| (data.dev(), data.ino());
        match (self.file.metadata(), fs::metadata(&self.path)) {
            (Ok(ours), Ok(there)) => id(ours) == id(there),
            _ => false,
        }
    }

    /// Handles a file system without locks: some runs may then be executed twice, which is
    /// harmless.
    fn goes_without_lock(&self, error: io::Error) -> Result<bool, StoreError> {
        match error.kind() {
            io::ErrorKind::Unsupported => Ok(true),
            _ => Err(StoreError::at(&self.path)(error)),
        }
    }
}
