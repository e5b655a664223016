//! One run of a study as a self-contained document.

use std::borrow::Borrow;
use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use rexmit_lab::scenario::Scenario;

/// The version of the document's format.
pub const DOCUMENT_SCHEMA: u32 = 1;

/// The position of a run on one axis of its study.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Coordinate {
    /// The axis.
    pub axis: String,
    /// The label of the point.
    pub label: String,
}

/// One run. The document and the program suffice to repeat it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunDocument {
    /// [`DOCUMENT_SCHEMA`].
    pub schema: u32,
    /// The name of the study.
    pub study: String,
    /// The position of the run in the study.
    pub point: Vec<Coordinate>,
    /// The seed of all its randomness.
    pub seed: u64,
    /// The scenario to run.
    pub scenario: Scenario,
}

/// The identity of a run's result: its scenario and its seed. Runs with the same key have the same
/// result in all studies.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunKey(String);

impl RunDocument {
    /// The key of its result.
    ///
    /// # Panics
    /// Never: a scenario has a JSON form.
    #[must_use]
    pub fn key(&self) -> RunKey {
        let what = serde_json::to_vec(&(self.schema, self.seed, &self.scenario));
        let digest = Sha256::digest(what.expect("a scenario has a JSON form"));
        RunKey(digest.iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

impl RunKey {
    /// The key in hexadecimal digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Allows lookups by the digits of a key, whose order is that of the keys.
impl Borrow<str> for RunKey {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RunKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
