//! A page of prose with tables of verdicts, as `docs/studies.md`: the rows of studies are replaced
//! by those of their results, everything else stays as it is.

use crate::page::StudyPage;
use crate::verdict_table::rows;

/// `page` with the rows of these studies renewed; their order in it is kept.
///
/// # Errors
/// The studies without a row in `page`, or with rows in two places of it, one line each.
pub fn renewed<'a>(
    page: &str,
    studies: impl IntoIterator<Item = &'a StudyPage>,
) -> Result<String, Vec<String>> {
    let mut text = page.to_owned();
    let mut wrong = Vec::new();
    for study in studies.into_iter().filter(|study| !study.claims.is_empty()) {
        match replaced(&text, &study.study.name, &rows(study)) {
            Ok(new) => text = new,
            Err(error) => wrong.push(error),
        }
    }
    if wrong.is_empty() { Ok(text) } else { Err(wrong) }
}

/// Checks that the rows of the study `name` in `page` can be renewed, before it is run.
///
/// # Errors
/// As [`renewed`].
pub fn check_rows(page: &str, name: &str) -> Result<(), String> {
    replaced(page, name, "").map(|_| ())
}

/// `page` in which `rows` replace the rows of the study `name`.
fn replaced(page: &str, name: &str, rows: &str) -> Result<String, String> {
    let begin = format!("| `{name}` |");
    let is_row = |line: &&str| line.starts_with(&begin);
    let lines: Vec<&str> = page.split_inclusive('\n').collect();
    let Some(first) = lines.iter().position(&is_row) else {
        return Err(format!(
            "`{name}` has no row: write `| `{name}` |` where its rows are to be, in a table"
        ));
    };
    let after = first + lines[first..].iter().take_while(|line| is_row(line)).count();
    if lines[after..].iter().any(is_row) {
        return Err(format!("`{name}` has rows in two places: leave them in one"));
    }
    Ok([&lines[..first].concat(), rows, &lines[after..].concat()].concat())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use serde::Deserialize;

    use super::*;
    use crate::studies::BUILT_IN;
    use crate::verdict_table::cell;

    #[test]
    fn rows_are_replaced_where_they_are() {
        let page = "a\n| `x` | 1 |\n| `x` | 2 |\n| `xy` | 3 |\nb\n";
        let new = "| `x` | 4 |\n";
        assert_eq!(replaced(page, "x", new).unwrap(), "a\n| `x` | 4 |\n| `xy` | 3 |\nb\n");
        assert!(replaced(page, "y", new).unwrap_err().starts_with("`y` has no row"));
        let twice = format!("{page}| `x` | 5 |\n");
        assert!(replaced(&twice, "x", new).unwrap_err().starts_with("`x` has rows in two places"));
    }

    /// Numbers and verdicts are compared by `make studies-check`, which runs everything.
    #[test]
    fn the_page_in_docs_has_a_row_for_each_claim() {
        #[derive(Deserialize)]
        struct File {
            #[serde(default)]
            claim: Vec<Claim>,
        }
        #[derive(Deserialize)]
        struct Claim {
            says: String,
            paper: Option<String>,
        }
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/studies.md");
        let page = fs::read_to_string(path).unwrap();
        let mut wrong = Vec::new();
        for study in BUILT_IN {
            let file: File = toml::from_str(study.text).unwrap();
            let claims = file.claim.iter().map(|claim| {
                let paper = claim.paper.as_deref().unwrap_or("–");
                (cell(&claim.says), cell(paper))
            });
            let begin = format!("| `{}` | ", study.name);
            let rows =
                page.lines().filter_map(|line| line.strip_prefix(&begin)?.strip_suffix(" |"));
            let rows = rows.map(|row| {
                let cells: Vec<&str> = row.split(" | ").collect();
                let [says, .., paper, _] = cells[..] else { return Default::default() };
                (says.to_owned(), paper.to_owned())
            });
            let (claims, rows): (Vec<_>, Vec<_>) = (claims.collect(), rows.collect());
            if claims != rows {
                let differs = claims.iter().zip(&rows).find(|(claim, row)| claim != row);
                wrong.push(format!(
                    "{}: {} claims, {} rows; {differs:?}",
                    study.name,
                    claims.len(),
                    rows.len()
                ));
            }
        }
        let how = "renew them: rexmit study verify NAME --renew docs/studies.md";
        assert!(wrong.is_empty(), "{}\n{how}", wrong.join("\n"));
    }
}
