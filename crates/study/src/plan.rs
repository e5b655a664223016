//! The runs of a study: every cell with every seed.

use crate::cells::{PlannedCell, coordinates};
use crate::document::{DOCUMENT_SCHEMA, RunDocument};
use crate::file::Study;

impl Study {
    /// All runs: every cell with every seed.
    #[must_use]
    pub fn plan(&self) -> Vec<RunDocument> {
        let runs =
            self.cells.iter().flat_map(|cell| self.seeds.iter().map(move |&seed| (cell, seed)));
        runs.map(|(cell, seed)| self.document(cell, seed)).collect()
    }

    /// Whether it has claims, which give it rows on a page of verdicts.
    #[must_use]
    pub const fn has_claims(&self) -> bool {
        !self.claims.is_empty()
    }

    /// The number of runs.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.cells.len() * self.seeds.len()
    }

    pub(crate) fn document(&self, cell: &PlannedCell, seed: u64) -> RunDocument {
        RunDocument {
            schema: DOCUMENT_SCHEMA,
            study: self.name.clone(),
            point: coordinates(&self.axes, &cell.point),
            seed,
            scenario: cell.scenario.clone(),
        }
    }
}
