//! The identity of the program that computed a result.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Bytes of a file that are read at once.
const CHUNK: usize = 1 << 16;

/// A program, distinguished from all others by the SHA-256 digest of its file.
///
/// A version number would not suffice: two builds of the same version may differ in their code.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Program(String);

impl Program {
    /// The running program.
    ///
    /// # Errors
    /// If its file cannot be read.
    pub fn running() -> io::Result<Self> {
        // On Linux the file that runs, even if there is another one at its path by now.
        let itself = Path::new("/proc/self/exe");
        match File::open(itself) {
            Ok(file) => Self::of(file),
            Err(_) => Self::of(File::open(std::env::current_exe()?)?),
        }
    }

    /// The program whose file is read from `bytes`.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn of(mut bytes: impl Read) -> io::Result<Self> {
        let mut digest = Sha256::new();
        let mut chunk = vec![0; CHUNK];
        loop {
            match bytes.read(&mut chunk)? {
                0 => break,
                read => digest.update(&chunk[..read]),
            }
        }
        Ok(Self(digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// The digest in hexadecimal digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A prefix of the digest, for the name of a directory.
    pub(super) fn short(&self) -> &str {
        &self.0[..16]
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
