//! The verdicts on claims, as listed in `docs/studies.md`.

use std::collections::BTreeMap;

use super::selects;
use crate::verdict::VerdictKind;

const PAGE: &str = include_str!("../../../../docs/studies.md");

/// Verdicts by study and claim; the text of a claim may end with `*`, as in the register.
pub(super) struct Verdicts {
    rows: BTreeMap<String, Vec<(String, VerdictKind)>>,
}

impl Verdicts {
    /// Reads the verdicts in `docs/studies.md`.
    pub(super) fn read() -> Self {
        Self::of(PAGE)
    }

    /// Reads the tables in `text`, whose columns are the study, the claim, the measurement, the source, and the
    /// verdict.
    fn of(text: &str) -> Self {
        let mut rows: BTreeMap<String, Vec<_>> = BTreeMap::new();
        for line in text.lines() {
            let cells: Vec<&str> = line.split(" | ").collect();
            let [study, says, .., verdict] = cells[..] else { continue };
            let Some(study) = study.split('`').nth(1) else { continue };
            let Some(verdict) = kind(verdict.trim_end_matches('|').trim()) else { continue };
            let claim = (says.replace("\\|", "|"), verdict);
            rows.entry(study.to_owned()).or_default().push(claim);
        }
        Self { rows }
    }

    /// The verdict on the claim `says` of `study`: that in its own row, otherwise that in a row for several claims;
    /// `None` if there is neither.
    pub(super) fn on(&self, study: &str, says: &str) -> Option<VerdictKind> {
        let rows = self.rows.get(study)?;
        let row = rows.iter().find(|(text, _)| text == says);
        let row = row.or_else(|| rows.iter().find(|(text, _)| selects(text, says)));
        row.map(|(_, verdict)| *verdict)
    }
}

fn kind(words: &str) -> Option<VerdictKind> {
    let all = [VerdictKind::Holds, VerdictKind::DoesNotHold, VerdictKind::Undecided];
    all.into_iter().find(|kind| kind.words() == words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_its_own_precedes_one_for_several() {
        let verdicts = Verdicts::of(
            "| figure | claim | measured | source | verdict |\n|---|---|---|---|---|\n\
             | `a` | Casa: * | 10 comparisons | – | holds |\n\
             | Fig. 1 (`a`) | Casa: mean | 3 against 4 | – | does not hold |\n\
             | `b` | x \\| y | 1 | – | undecided |\n",
        );
        assert_eq!(verdicts.on("a", "Casa: mean"), Some(VerdictKind::DoesNotHold));
        assert_eq!(verdicts.on("a", "Casa: median"), Some(VerdictKind::Holds));
        assert_eq!(verdicts.on("b", "x | y"), Some(VerdictKind::Undecided));
        assert_eq!(verdicts.on("a", "SSH: mean"), None);
        assert_eq!(verdicts.on("c", "Casa: mean"), None);
    }
}
