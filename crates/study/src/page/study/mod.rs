//! A study as one self-contained HTML file, and an index of all studies.
//!
//! The data is embedded as JSON, in the form of `embedded`, with the scripts that draw it. Only the
//! head and, for readers without scripts, the verdicts are rendered as HTML here.

mod embedded;
mod index;

pub use index::{ClaimSummary, Summary, index};

pub(super) use self::embedded::Embedded;
use crate::page::StudyPage;
use crate::page::template::{self, escaped, fill, script_json};
use crate::verdict::VerdictKind;

const PAGE: &str = include_str!("../../../assets/study/study.html");
const STYLE: &str = include_str!("../../../assets/study/study.css");

/// The page of a study.
///
/// No content of the study can inject markup: text is escaped for HTML, and the JSON contains no
/// `<`. All points are drawn, and numbers have six digits.
///
/// # Errors
/// If a number cannot be written as JSON.
pub fn html(page: &StudyPage) -> Result<String, serde_json::Error> {
    let data = script_json(&Embedded::new(page))?;
    Ok(fill(PAGE, |name| match name {
        "title" => escaped(&page.study.title),
        "source" => escaped(&page.study.source),
        "name" => escaped(&page.study.name),
        "arguments" => escaped(&page.study.arguments),
        "uplot_css" => template::UPLOT_CSS.into(),
        "uplot_js" => template::UPLOT_JS.into(),
        "uplot_licence" => escaped(template::UPLOT_LICENCE),
        "css" => [template::STYLE, STYLE].concat(),
        "js" => [
            template::THEME_JS,
            template::SCALES_JS,
            include_str!("../../../assets/study/data.js"),
            include_str!("../../../assets/study/numbers.js"),
            include_str!("../../../assets/study/filter.js"),
            include_str!("../../../assets/study/claims.js"),
            include_str!("../../../assets/study/marks.js"),
            include_str!("../../../assets/study/shown.js"),
            include_str!("../../../assets/study/axes.js"),
            include_str!("../../../assets/study/chart.js"),
            include_str!("../../../assets/study/reading.js"),
            include_str!("../../../assets/study/figure.js"),
            include_str!("../../../assets/study/tables.js"),
            include_str!("../../../assets/study/study.js"),
        ]
        .concat(),
        "verdicts" => escaped(&verdicts(page)),
        "data" => data.clone(),
        other => unreachable!("the page has no place {other}"),
    }))
}

/// The claims as plain text, one line each.
fn verdicts(page: &StudyPage) -> String {
    let line = |claim: &crate::Verdict| {
        format!("{} {}: {}\n", sign(claim.verdict), word(claim.verdict), claim.says)
    };
    page.claims.iter().map(line).collect()
}

fn word(verdict: VerdictKind) -> &'static str {
    match verdict {
        VerdictKind::Holds => "holds",
        VerdictKind::DoesNotHold => "does not hold",
        VerdictKind::Undecided => "undecided",
    }
}

/// A symbol for the verdict, for readers who cannot distinguish the colours.
fn sign(verdict: VerdictKind) -> char {
    match verdict {
        VerdictKind::Holds => '✓',
        VerdictKind::DoesNotHold => '✗',
        VerdictKind::Undecided => '?',
    }
}

#[cfg(test)]
mod tests;
