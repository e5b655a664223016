//! A comparison as one HTML file that needs nothing else: no network, no other file, no server.
//!
//! The file embeds the comparison as JSON (the same that serde writes) and the scripts that draw
//! it. Its content security policy forbids every request, so that a mistake here shows at once.

use crate::measure::Comparison;
use crate::page::{self, escaped, fill, script_json};
use crate::{finding, table};

const PAGE: &str = include_str!("../assets/report.html");

/// The report of `comparison`.
///
/// Nothing in the comparison can break out of its place in the file: text is escaped for HTML, and
/// the JSON holds no `<`.
///
/// # Errors
/// If a figure cannot be written as JSON.
pub fn html(comparison: &Comparison) -> Result<String, serde_json::Error> {
    let data = script_json(comparison)?;
    Ok(fill(PAGE, |name| match name {
        "title" => escaped(&comparison.title),
        "finding" => escaped(&finding::sentence(comparison).unwrap_or_default()),
        "uplot_css" => page::UPLOT_CSS.into(),
        "uplot_js" => page::UPLOT_JS.into(),
        "uplot_licence" => escaped(page::UPLOT_LICENCE),
        "report_css" => page::STYLE.into(),
        "report_js" => [
            page::THEME_JS,
            page::SCALES_JS,
            include_str!("../assets/table.js"),
            include_str!("../assets/ccdf.js"),
            include_str!("../assets/timesequence.js"),
            include_str!("../assets/report.js"),
        ]
        .concat(),
        "table" => escaped(&table::render(comparison)),
        "data" => data.clone(),
        other => unreachable!("the page has no place {other}"),
    }))
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn the_page_requests_nothing() {
        page::assert_requests_nothing(&html(&Comparison::new("t", 1)).unwrap());
    }
}
