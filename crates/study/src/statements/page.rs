//! The register as a page in Markdown, and its totals.

use std::collections::BTreeMap;

use super::verdicts::Verdicts;
use super::{Paper, Reason, Selected, Statement, claims_of_studies, selects};
use crate::verdict::VerdictKind;
use crate::verdict_table::cell;

/// The text above the tables.
const HEAD: &str = "# The papers, statement by statement

Every quantitative or testable statement of the four papers, in our words, with the claims that test it, or the
reason why none can; below each table, why the others do not hold or are undecided. Written by
`rexmit study statements --markdown` from `studies/statements/`; a test compares them. A
statement holds if all its claims hold, does not hold if one does not, and is undecided otherwise. The verdicts are
those of [studies.md](studies.md), which has the numbers and explains what does not hold. `Casa: *` stands for all
claims that begin so.

The papers, as far as the texts that we have say:
";

/// The text below the totals.
const REPEATED: &str = "
A statement that repeats one of another paper, with the same numbers, is tested by the same claims: it counts for its paper, and not
again in the last row.
";

/// The verdicts of some claims, or statements.
#[derive(Clone, Copy, Default)]
struct Tally {
    holds: usize,
    does_not: usize,
    undecided: usize,
    /// The number of claims without a verdict in `docs/studies.md`.
    open: usize,
}

impl Tally {
    fn add(&mut self, verdict: Option<VerdictKind>) {
        *match verdict {
            Some(VerdictKind::Holds) => &mut self.holds,
            Some(VerdictKind::DoesNotHold) => &mut self.does_not,
            Some(VerdictKind::Undecided) => &mut self.undecided,
            None => &mut self.open,
        } += 1;
    }

    fn of(verdicts: impl IntoIterator<Item = Option<VerdictKind>>) -> Self {
        let mut tally = Self::default();
        verdicts.into_iter().for_each(|verdict| tally.add(verdict));
        tally
    }

    fn all(self) -> usize {
        self.holds + self.does_not + self.undecided + self.open
    }

    /// The verdict on a statement with these claims.
    fn verdict(self) -> Option<VerdictKind> {
        match self {
            _ if self.does_not > 0 => Some(VerdictKind::DoesNotHold),
            _ if self.open > 0 => None,
            _ if self.undecided > 0 => Some(VerdictKind::Undecided),
            _ => Some(VerdictKind::Holds),
        }
    }

    /// The verdicts as text: `holds` if all do, otherwise the number of each.
    fn words(self) -> String {
        let parts = [
            (self.holds, "holds", "hold"),
            (self.does_not, "does not hold", "do not hold"),
            (self.undecided, "undecided", "undecided"),
            (self.open, "no verdict yet", "no verdict yet"),
        ];
        let parts = parts.into_iter().filter(|(count, ..)| *count > 0);
        let one = |(count, one, many): (usize, &'static str, &'static str)| match count {
            _ if count == self.all() => if count == 1 { one } else { many }.to_owned(),
            1 => format!("1 {one}"),
            _ => format!("{count} {many}"),
        };
        parts.map(one).collect::<Vec<_>>().join(", ")
    }
}

/// Renders the register.
struct Renderer {
    claims: BTreeMap<&'static str, Vec<String>>,
    verdicts: Verdicts,
}

impl Renderer {
    fn new() -> Self {
        Self { claims: claims_of_studies(), verdicts: Verdicts::read() }
    }

    /// The claims of `study` that `pattern` selects.
    fn selected<'a>(&'a self, study: &str, pattern: &'a str) -> impl Iterator<Item = &'a str> {
        let claims = self.claims.get(study).map_or(&[][..], Vec::as_slice);
        claims.iter().map(String::as_str).filter(move |says| selects(pattern, says))
    }

    fn tally(&self, study: &str, pattern: &str) -> Tally {
        Tally::of(self.selected(study, pattern).map(|says| self.verdicts.on(study, says)))
    }

    fn verdict(&self, statement: &Statement) -> Option<VerdictKind> {
        let patterns = statement.claims.iter();
        let each = patterns.flat_map(|(study, all)| all.iter().map(move |one| (study, one)));
        let verdicts = each.map(|(study, pattern)| self.tally(study, pattern).verdict());
        Tally::of(verdicts).verdict()
    }

    /// Each study with its claims, and the verdict on each claim if there are several.
    fn claims(&self, selected: &Selected) -> String {
        let is_one = selected.values().map(Vec::len).sum::<usize>() == 1;
        let mut lines = Vec::new();
        for (study, patterns) in selected {
            for pattern in patterns {
                let verdicts = self.tally(study, pattern);
                let mut claims = self.selected(study, pattern);
                let shown = match (claims.next(), claims.next()) {
                    (Some(says), None) if is_one => says.to_owned(),
                    (Some(says), None) => format!("{says} ({})", verdicts.words()),
                    _ => format!("{pattern} ({} claims: {})", verdicts.all(), verdicts.words()),
                };
                let shown = shown.replace('*', "\\*");
                lines.push(format!("`{study}`: {}", cell(&shown)));
            }
        }
        lines.join("<br>")
    }

    fn row(&self, statement: &Statement) -> String {
        let Statement { id, place, says, claims, none, repeats } = statement;
        let says = match repeats {
            Some(other) => format!("{says} (as {other})"),
            None => says.clone(),
        };
        let (tested, verdict) = match none {
            Some(reason) => (format!("none possible: {}", cell(reason)), "–"),
            None => {
                let verdict = self.verdict(statement);
                (self.claims(claims), verdict.map_or("no verdict yet", VerdictKind::words))
            }
        };
        format!("| {id} | {} | {} | {tested} | {verdict} |\n", cell(place), cell(&says))
    }

    /// Why statements do not hold or are undecided: a line for each reason.
    fn reasons(&self, paper: &Paper) -> String {
        let mut text = String::new();
        for Reason { of, says } in &paper.reasons {
            let named = |id: &String| paper.statements.iter().find(|statement| statement.id == *id);
            let open = |statement: &&Statement| self.is_open(statement);
            let ids: Vec<&str> =
                of.iter().filter_map(named).filter(open).map(|statement| &*statement.id).collect();
            if !ids.is_empty() {
                text += &format!("- {}: {says}.\n", ids.join(", "));
            }
        }
        if text.is_empty() {
            text
        } else {
            format!("\nWhy these do not hold, or are undecided:\n{text}")
        }
    }

    /// Whether a statement has claims, of which not all hold.
    fn is_open(&self, statement: &Statement) -> bool {
        let verdict = self.verdict(statement);
        statement.none.is_none() && verdict.is_some_and(|verdict| verdict != VerdictKind::Holds)
    }

    /// The numbers of statements: all, claimed and their verdicts, and not possible.
    fn counts<'a>(&self, statements: impl IntoIterator<Item = &'a Statement>) -> [usize; 7] {
        let statements: Vec<&Statement> = statements.into_iter().collect();
        let claimed = statements.iter().filter(|statement| statement.none.is_none());
        let tally = Tally::of(claimed.map(|statement| self.verdict(statement)));
        let (all, Tally { holds, does_not, undecided, open }) = (statements.len(), tally);
        [all, tally.all(), holds, does_not, undecided, open, all - tally.all()]
    }

    /// The table of totals: a row per paper, and their sum.
    fn totals(&self, papers: &[Paper]) -> String {
        let mut text = String::from(
            "| paper | statements | claimed | hold | do not | undecided | no verdict yet | not possible |\n\
             |---|---|---|---|---|---|---|---|\n",
        );
        for paper in papers {
            let title = format!("{}: {}", paper.id, paper.title);
            text += &row_of(&title, &self.counts(&paper.statements));
        }
        let own = papers.iter().flat_map(|paper| &paper.statements);
        let own = own.filter(|statement| statement.repeats.is_none());
        text + &row_of("all", &self.counts(own))
    }
}

fn row_of(title: &str, numbers: &[usize]) -> String {
    let numbers: Vec<String> = numbers.iter().map(usize::to_string).collect();
    format!("| {} | {} |\n", cell(title), numbers.join(" | "))
}

/// Number of statements, of those tested with each verdict, and of those that cannot be tested: by paper, as a table
/// in Markdown.
#[must_use]
pub fn totals(papers: &[Paper]) -> String {
    Renderer::new().totals(papers)
}

/// A line for each statement that does not hold or is undecided, and has no reason for that.
#[must_use]
pub fn unexplained(papers: &[Paper]) -> Vec<String> {
    let renderer = Renderer::new();
    let mut lines = Vec::new();
    for paper in papers {
        let has_reason = |id: &String| paper.reasons.iter().any(|reason| reason.of.contains(id));
        let open = paper.statements.iter().filter(|statement| renderer.is_open(statement));
        let open = open.filter(|statement| !has_reason(&statement.id));
        lines.extend(open.map(|statement| {
            format!("{}: it does not hold, or is undecided: give a reason in [[why]]", statement.id)
        }));
    }
    lines
}

/// The page `docs/claims.md`.
#[must_use]
pub fn page(papers: &[Paper]) -> String {
    let renderer = Renderer::new();
    let reference = |paper: &Paper| format!("- **{}**: {}\n", paper.id, paper.reference);
    let references: String = papers.iter().map(reference).collect();
    let mut text = format!("{HEAD}{references}\n{}{REPEATED}", renderer.totals(papers));
    for paper in papers {
        text += &format!("\n## {}: {}\n\n", paper.id, paper.title);
        text += "| | where | statement | claims | verdict |\n|---|---|---|---|---|\n";
        text.extend(paper.statements.iter().map(|statement| renderer.row(statement)));
        text += &renderer.reasons(paper);
        if !paper.beyond.is_empty() {
            let beyond = renderer.claims(&paper.beyond);
            text += &format!("\nBeyond the paper:\n- {}\n", beyond.replace("<br>", "\n- "));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_holds_if_all_its_claims_do() {
        use VerdictKind::{DoesNotHold, Holds, Undecided};
        let of = |verdicts: &[Option<VerdictKind>]| Tally::of(verdicts.iter().copied());
        assert_eq!(of(&[Some(Holds), Some(Holds)]).verdict(), Some(Holds));
        assert_eq!(of(&[Some(Holds), Some(Undecided)]).verdict(), Some(Undecided));
        assert_eq!(of(&[Some(DoesNotHold), None, Some(Holds)]).verdict(), Some(DoesNotHold));
        assert_eq!(of(&[Some(Holds), None]).verdict(), None);
        assert_eq!(of(&[Some(Holds)]).words(), "holds");
        assert_eq!(of(&[Some(Holds), Some(Holds)]).words(), "hold");
        let mixed = of(&[Some(Holds), Some(Holds), Some(DoesNotHold), None]);
        assert_eq!(mixed.words(), "2 hold, 1 does not hold, 1 no verdict yet");
    }
}
