//! The statements of the papers: for each, the claims of studies that test it, or why none can.
//!
//! The register is the files in `studies/statements/`, one per paper; [`page`](page()) renders it as
//! `docs/claims.md`. The verdicts on the claims are those of `docs/studies.md`, so that no run is
//! needed.

mod page;
mod verdicts;

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::mistake::alternatives;
use crate::studies::BUILT_IN;

pub use page::{page, totals, unexplained};

/// The statements of one paper.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// The name of the paper in the register, with which those of its statements begin: `S1`.
    pub id: String,
    /// The paper's subject and its short name.
    pub title: String,
    /// The full reference: title, authors, year and place of publication, as far as its text has them.
    pub reference: String,
    /// The beginning of the names of its studies.
    pub studies: Vec<String>,
    /// The statements, in the order of the paper.
    #[serde(rename = "statement")]
    pub statements: Vec<Statement>,
    /// Claims of its studies that go beyond the paper.
    #[serde(default)]
    pub beyond: Selected,
    /// Why statements do not hold, or are undecided.
    #[serde(default, rename = "why")]
    pub reasons: Vec<Reason>,
}

/// Why some statements do not hold, or are undecided.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reason {
    /// The names of the statements.
    pub of: Vec<String>,
    /// The reason, in a sentence or two.
    pub says: String,
}

/// Claims by study: each text is that of a claim, or its beginning followed by `*`.
pub type Selected = BTreeMap<String, Vec<String>>;

/// A quantitative or testable statement, in our words.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    /// The statement's name in the register.
    pub id: String,
    /// Section, figure or table of the paper.
    #[serde(rename = "where")]
    pub place: String,
    /// The paper's statement.
    pub says: String,
    /// The claims that test it.
    #[serde(default)]
    pub claims: Selected,
    /// The reason why no claim is possible.
    pub none: Option<String>,
    /// The statement of another paper that this one repeats, with the same claims: `S1-10`.
    pub repeats: Option<String>,
}

/// The text of the register, a file per paper.
const FILES: [(&str, &str); 4] = [
    ("petlund2009", include_str!("../../../../studies/statements/petlund2009.toml")),
    ("petlund2008", include_str!("../../../../studies/statements/petlund2008.toml")),
    ("rr-sctp", include_str!("../../../../studies/statements/rr-sctp.toml")),
    ("rtx-csi", include_str!("../../../../studies/statements/rtx-csi.toml")),
];

/// The register, in the order of the papers in `docs/studies.md`.
///
/// # Errors
/// All its errors, one line each: a file that cannot be read, a statement without claim and reason, a claim that does
/// not exist, or a claim of a paper's study in no statement.
pub fn papers() -> Result<Vec<Paper>, Vec<String>> {
    let mut papers = Vec::new();
    let mut wrong = Vec::new();
    for (name, text) in FILES {
        match toml::from_str::<Paper>(text) {
            Ok(paper) => papers.push(paper),
            Err(error) => wrong.push(format!("studies/statements/{name}.toml: {error}")),
        }
    }
    if wrong.is_empty() {
        wrong = mistakes(&papers, &claims_of_studies());
    }
    if wrong.is_empty() { Ok(papers) } else { Err(wrong) }
}

/// The texts of the claims of each built-in study.
fn claims_of_studies() -> BTreeMap<&'static str, Vec<String>> {
    #[derive(Deserialize)]
    struct File {
        #[serde(default)]
        claim: Vec<Says>,
    }
    #[derive(Deserialize)]
    struct Says {
        says: String,
    }
    let claims = |text| {
        let file: File = toml::from_str(text).expect("built-in studies are valid");
        file.claim.into_iter().map(|claim| claim.says).collect()
    };
    BUILT_IN.iter().map(|study| (study.name, claims(study.text))).collect()
}

/// Whether `pattern` selects the claim `says`.
fn selects(pattern: &str, says: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == says, |beginning| says.starts_with(beginning))
}

/// All errors of the register, given the claims of each study.
fn mistakes(papers: &[Paper], known: &BTreeMap<&str, Vec<String>>) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut ids = BTreeSet::new();
    for paper in papers {
        for statement in &paper.statements {
            let Statement { id, claims, none, .. } = statement;
            if !ids.insert(id) {
                wrong.push(format!("{id}: there are two of that name"));
            }
            if claims.is_empty() == none.is_none() {
                wrong.push(format!("{id}: give either claims or the reason for having no claim"));
            }
            if !id.starts_with(&format!("{}-", paper.id)) {
                wrong.push(format!(
                    "{id}: names of statements of this paper begin with {}-",
                    paper.id
                ));
            }
            unknown(id, claims, known, &mut wrong);
        }
        unknown("beyond", &paper.beyond, known, &mut wrong);
        for id in paper.reasons.iter().flat_map(|reason| &reason.of) {
            if !paper.statements.iter().any(|statement| statement.id == *id) {
                wrong.push(format!("why: the paper has no statement {id}"));
            }
        }
    }
    wrong.extend(repeated_otherwise(papers));
    wrong.extend(forgotten(papers, known));
    wrong
}

/// A line for every statement that repeats none, or one with other claims.
fn repeated_otherwise(papers: &[Paper]) -> Vec<String> {
    let all = || papers.iter().flat_map(|paper| &paper.statements);
    let wrong = |statement: &Statement| {
        let (id, repeats) = (&statement.id, statement.repeats.as_ref()?);
        let other = all().find(|other| other.id == *repeats && other.repeats.is_none());
        let Some(other) = other else {
            return Some(format!("{id}: there is no statement {repeats} that it could repeat"));
        };
        (other.id == *id || other.claims != statement.claims)
            .then(|| format!("{id}: it does not repeat {repeats}, which has other claims"))
    };
    all().filter_map(wrong).collect()
}

/// Notes the selections of `selected` that select nothing.
fn unknown(
    id: &str,
    selected: &Selected,
    known: &BTreeMap<&str, Vec<String>>,
    wrong: &mut Vec<String>,
) {
    for (study, patterns) in selected {
        let Some(claims) = known.get(study.as_str()) else {
            let other = alternatives(study, known.keys().copied());
            wrong.push(format!("{id}: there is no study `{study}`; {other}"));
            continue;
        };
        if patterns.is_empty() {
            wrong.push(format!("{id}: no claim of `{study}` is named"));
        }
        for pattern in patterns {
            if !claims.iter().any(|says| selects(pattern, says)) {
                let other = alternatives(pattern, claims.iter().map(String::as_str));
                wrong.push(format!("{id}: `{study}` has no claim `{pattern}`; {other}"));
            }
        }
    }
}

/// A line for every claim of a paper's studies that no statement of any paper names, and that is not listed
/// as going beyond the papers.
fn forgotten(papers: &[Paper], known: &BTreeMap<&str, Vec<String>>) -> Vec<String> {
    let statements = papers.iter().flat_map(|paper| &paper.statements);
    let selected = statements.map(|statement| &statement.claims);
    let selected: Vec<&Selected> =
        selected.chain(papers.iter().map(|paper| &paper.beyond)).collect();
    let is_selected = |study: &str, says: &str| {
        let mut patterns = selected.iter().filter_map(|selected| selected.get(study)).flatten();
        patterns.any(|pattern| selects(pattern, says))
    };
    let beginnings = || papers.iter().flat_map(|paper| &paper.studies);
    let is_own = |study: &str| beginnings().any(|beginning| study.starts_with(beginning));
    let mut lines = Vec::new();
    for (study, claims) in known.iter().filter(|(study, _)| is_own(study)) {
        let claims = claims.iter().filter(|says| !is_selected(study, says));
        lines.extend(claims.map(|says| format!("`{study}`: in no statement: {says}")));
    }
    lines
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    fn papers_of(text: &str) -> Vec<Paper> {
        vec![toml::from_str(text).unwrap()]
    }

    fn mistakes_in(statements: &str) -> Vec<String> {
        let text = format!(
            "id = \"P\"\ntitle = \"t\"\nreference = \"r\"\nstudies = [\"a-\"]\n{statements}"
        );
        let known = [("a-fig1", vec!["x rises".to_owned(), "x: mean".to_owned()])];
        mistakes(&papers_of(&text), &known.into_iter().collect())
    }

    #[test]
    fn the_register_is_right() {
        let wrong = papers().err().unwrap_or_default();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn the_page_in_docs_is_the_one_rendered() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/claims.md");
        let is_current = fs::read_to_string(path).unwrap() == page(&papers().unwrap());
        assert!(is_current, "renew it: rexmit study statements --markdown >docs/claims.md");
    }

    #[test]
    fn what_does_not_hold_has_a_reason() {
        let wrong = unexplained(&papers().unwrap());
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        let mut without = papers().unwrap();
        without[0].reasons.remove(0);
        assert!(unexplained(&without)[0].ends_with("give a reason in [[why]]"));
    }

    #[test]
    fn a_reason_is_that_of_statements_of_the_paper() {
        let statement =
            "[[statement]]\nid = \"P-1\"\nwhere = \"§1\"\nsays = \"s\"\nclaims.a-fig1 = [\"x*\"]\n";
        let of =
            |id: &str| mistakes_in(&format!("{statement}[[why]]\nof = [\"{id}\"]\nsays = \"w\""));
        assert!(of("P-1").is_empty());
        assert_eq!(of("P-2"), ["why: the paper has no statement P-2"]);
    }

    #[test]
    fn each_claim_belongs_to_a_statement() {
        let whole = "[[statement]]\nid = \"P-1\"\nwhere = \"§1\"\nsays = \"s\"\n\
                     claims.a-fig1 = [\"x rises\", \"x: *\"]";
        assert!(mistakes_in(whole).is_empty());
        let part = whole.replace(", \"x: *\"", "");
        assert_eq!(mistakes_in(&part), ["`a-fig1`: in no statement: x: mean"]);
        let beyond = format!("{part}\n[beyond]\na-fig1 = [\"x: *\"]");
        assert!(mistakes_in(&beyond).is_empty());
    }

    #[test]
    fn a_statement_names_claims_that_exist_or_a_reason() {
        let head = "[beyond]\na-fig1 = [\"*\"]\n\
                    [[statement]]\nid = \"P-1\"\nwhere = \"§1\"\nsays = \"s\"\n";
        let of = |rest: &str| mistakes_in(&format!("{head}{rest}"));
        assert!(of("none = \"lost\"").is_empty());
        assert_eq!(of(""), ["P-1: give either claims or the reason for having no claim"]);
        assert_eq!(of("none = \"lost\"\nclaims.a-fig1 = [\"*\"]").len(), 1);
        let misspelt = of("claims.a-fig1 = [\"x rise\"]");
        assert_eq!(misspelt, ["P-1: `a-fig1` has no claim `x rise`; did you mean `x rises`?"]);
        let unknown = of("claims.a-fig2 = [\"*\"]");
        assert_eq!(unknown, ["P-1: there is no study `a-fig2`; did you mean `a-fig1`?"]);
        assert_eq!(of("claims.a-fig1 = []"), ["P-1: no claim of `a-fig1` is named"]);
        let twice = "[[statement]]\nid = \"P-1\"\nwhere = \"§1\"\nsays = \"s\"\nnone = \"lost\"\n";
        assert_eq!(of(&format!("none = \"lost\"\n{twice}")), ["P-1: there are two of that name"]);
    }

    #[test]
    fn names_begin_with_that_of_the_paper() {
        let wrong = mistakes_in(
            "[beyond]\na-fig1 = [\"*\"]\n[[statement]]\nid = \"Q-1\"\nwhere = \"§1\"\nsays = \"s\"\nnone = \"lost\"",
        );
        assert_eq!(wrong, ["Q-1: names of statements of this paper begin with P-"]);
    }

    #[test]
    fn what_repeats_a_statement_has_its_claims() {
        let of = |repeats: &str, claims: &str| {
            let statement = |id: &str, claims: &str, more: &str| {
                format!(
                    "[[statement]]\nid = \"{id}\"\nwhere = \"§1\"\nsays = \"s\"\nclaims.a-fig1 = [\"{claims}\"]\n{more}"
                )
            };
            let repeats = format!("repeats = \"{repeats}\"\n");
            mistakes_in(&format!(
                "[beyond]\na-fig1 = [\"*\"]\n{}{}",
                statement("P-1", "x rises", ""),
                statement("P-2", claims, &repeats)
            ))
        };
        assert!(of("P-1", "x rises").is_empty());
        assert_eq!(of("P-1", "x: *"), ["P-2: it does not repeat P-1, which has other claims"]);
        for other in ["P-2", "P-3"] {
            let line = format!("P-2: there is no statement {other} that it could repeat");
            assert_eq!(of(other, "x rises"), [line]);
        }
    }

    #[test]
    fn statements_that_two_papers_have_count_once_in_all() {
        let papers = papers().unwrap();
        let (table, all) =
            (totals(&papers), papers.iter().map(|paper| paper.statements.len()).sum::<usize>());
        let statements = papers.iter().flat_map(|paper| &paper.statements);
        let repeated = statements.filter(|statement| statement.repeats.is_some()).count();
        assert_eq!(repeated, 6, "rows of Table 1 that the papers of 2008 and 2009 share");
        assert!(table.contains(&format!("| all | {} |", all - repeated)), "{table}");
    }

    #[test]
    fn each_paper_is_defined_on_the_page() {
        let papers = papers().unwrap();
        let page = page(&papers);
        for Paper { id, reference, .. } in &papers {
            assert!(page.contains(&format!("- **{id}**: {reference}")), "{id}");
        }
    }
}
