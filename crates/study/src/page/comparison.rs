//! A comparison as one self-contained HTML file: no network, no other file, no server.
//!
//! The file embeds the comparison as JSON (in serde's form) and the scripts that draw it. Its
//! content security policy forbids every request, so that a mistake is noticed at once.

use rexmit_lab::measure::Comparison;
use rexmit_lab::{finding, table};

use crate::page::template::{self, escaped, fill, script_json};

const PAGE: &str = include_str!("../../assets/comparison.html");

/// The page of `comparison`.
///
/// No content of the comparison can inject markup: text is escaped for HTML, and the JSON contains
/// no `<`.
///
/// # Errors
/// If a figure cannot be written as JSON.
pub fn html(comparison: &Comparison) -> Result<String, serde_json::Error> {
    let data = script_json(comparison)?;
    Ok(fill(PAGE, |name| match name {
        "title" => escaped(&comparison.title),
        "finding" => escaped(&finding::sentence(comparison).unwrap_or_default()),
        "uplot_css" => template::UPLOT_CSS.into(),
        "uplot_js" => template::UPLOT_JS.into(),
        "uplot_licence" => escaped(template::UPLOT_LICENCE),
        "css" => template::STYLE.into(),
        "js" => [
            template::THEME_JS,
            template::SCALES_JS,
            include_str!("../../assets/causes.js"),
            include_str!("../../assets/table.js"),
            include_str!("../../assets/ccdf.js"),
            include_str!("../../assets/timesequence.js"),
            include_str!("../../assets/comparison.js"),
        ]
        .concat(),
        "table" => escaped(&table::render(comparison)),
        "data" => data.clone(),
        other => unreachable!("the page has no place {other}"),
    }))
}

#[cfg(test)]
mod tests {
    use rexmit_core::trace::SendCause;
    use rexmit_sctp::recovery::ByCause;

    use super::*;

    const HOSTILE: &str = "</script><script>alert(1)</script><!-- {{data}} & \"";

    #[test]
    fn text_from_outside_stays_in_its_place() {
        let page = html(&Comparison::new(HOSTILE, 1).with(HOSTILE, HOSTILE)).unwrap();
        assert!(!page.contains("<script>alert"));
        assert!(page.contains("<title>&lt;/script&gt;&lt;script&gt;alert(1)"));
        let (_, rest) = page.split_once("id=\"data\">").unwrap();
        let (json, _) = rest.split_once("</script>").unwrap();
        let read: Comparison = serde_json::from_str(json).unwrap();
        assert_eq!(read.title, HOSTILE);
        assert_eq!(read.parameters[0].value, HOSTILE);
    }

    /// The names of the rows of `CAUSES`, and whether each has a column.
    fn causes_of_the_page() -> Vec<(&'static str, bool)> {
        let (_, rows) =
            include_str!("../../assets/causes.js").split_once("const CAUSES = {\n").unwrap();
        let (rows, _) = rows.split_once("\n};").unwrap();
        let row = |line: &'static str| {
            let (name, look) = line.strip_prefix("  ")?.split_once(": {")?;
            (!name.starts_with(' ')).then(|| (name, look.contains("column:")))
        };
        rows.lines().filter_map(row).collect()
    }

    #[test]
    fn the_page_knows_every_cause_of_a_transmission() {
        let mut known = causes_of_the_page();
        let mut causes: Vec<(&str, bool)> =
            SendCause::ALL.iter().map(|&cause| (cause.name(), cause != SendCause::New)).collect();
        known.sort_unstable();
        causes.sort_unstable();
        assert_eq!(known, causes);
        let counted = serde_json::to_value(ByCause::default()).unwrap();
        let mut counted: Vec<&str> =
            counted.as_object().unwrap().keys().map(String::as_str).collect();
        counted.sort_unstable();
        let columns: Vec<&str> = causes.iter().filter(|row| row.1).map(|row| row.0).collect();
        assert_eq!(counted, columns);
    }

    #[test]
    fn the_page_requests_nothing() {
        template::assert_requests_nothing(&html(&Comparison::new("t", 1)).unwrap());
    }
}
