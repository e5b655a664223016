//! The verdicts of studies as a table for a terminal, or in Markdown.

use comfy_table::{ContentArrangement, Table, presets};

use crate::page::StudyPage;
use crate::sweep::place;
use crate::verdict::{Instance, Verdict, VerdictKind};

/// Columns of the table if the width of the terminal is unknown.
const WIDTH: u16 = 100;

/// A table of every claim of every study: its verdict, the number of comparisons with that verdict,
/// and the numbers of the deciding comparison. The last line counts the verdicts. Ends with a
/// newline; at most `width` columns, or 100.
#[must_use]
pub fn verdict_table<'a>(
    pages: impl IntoIterator<Item = &'a StudyPage>,
    width: Option<u16>,
) -> String {
    let mut text = String::new();
    let mut verdicts = Vec::new();
    for page in pages {
        let source = &page.study.source;
        let source = if source.is_empty() { String::new() } else { format!(" ({source})") };
        text += &format!("{}: {}{source}\n", page.study.name, page.study.title);
        if !page.claims.is_empty() {
            text += &table(&page.claims, width.unwrap_or(WIDTH));
        }
        text.extend(page.notes.iter().map(|note| format!("  {note}\n")));
        text.push('\n');
        verdicts.extend(page.claims.iter().map(|claim| claim.verdict));
    }
    text + &sum(&verdicts)
}

fn table(claims: &[Verdict], width: u16) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(width);
    for claim in claims {
        let of = |kind| claim.instances.iter().filter(|instance| instance.verdict == kind).count();
        let holding = format!("{} of {}", of(VerdictKind::Holds), claim.instances.len());
        table.add_row([claim.verdict.words().into(), holding, words(claim)]);
    }
    for column in table.column_iter_mut() {
        column.set_padding((2, 0));
    }
    table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// The same table in Markdown, one line per claim.
#[must_use]
pub fn verdict_markdown<'a>(pages: impl IntoIterator<Item = &'a StudyPage>) -> String {
    let head = "| figure | claim | measured | source | verdict |\n|---|---|---|---|---|\n";
    head.to_owned() + &pages.into_iter().map(rows).collect::<String>()
}

/// The rows of one study in such a table.
pub(crate) fn rows(page: &StudyPage) -> String {
    let row = |claim: &Verdict| {
        let decided = decisive(claim)
            .map_or_else(String::new, |one| format!("{}{}", one.finding, place(&one.point)));
        let says = claim.source_value.as_deref().unwrap_or("–");
        let name = format!("`{}`", page.study.name);
        let cells = [&name, &claim.says, &decided, says, claim.verdict.words()].map(cell);
        format!("| {} |\n", cells.join(" | "))
    };
    page.claims.iter().map(row).collect()
}

/// `text` escaped for a Markdown table cell.
pub(crate) fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

/// The first comparison with the verdict of the claim.
fn decisive(claim: &Verdict) -> Option<&Instance> {
    claim.instances.iter().find(|instance| instance.verdict == claim.verdict)
}

/// The claim, and below it the deciding numbers and those of the source.
fn words(claim: &Verdict) -> String {
    let mut words = claim.says.clone();
    if let Some(Instance { point, finding, .. }) = decisive(claim) {
        words += &format!("\n{finding}{}", place(point));
    }
    if let Some(value) = &claim.source_value {
        words += &format!("\nsource: {value}");
    }
    words
}

fn sum(verdicts: &[VerdictKind]) -> String {
    let of = |kind| verdicts.iter().filter(|verdict| **verdict == kind).count();
    let [hold, not, undecided] =
        [VerdictKind::Holds, VerdictKind::DoesNotHold, VerdictKind::Undecided].map(of);
    format!("{} claims: {hold} hold, {not} do not, {undecided} undecided\n", verdicts.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_breaks_out_of_a_cell() {
        assert_eq!(cell("a | b\nc"), "a \\| b c");
    }
}
