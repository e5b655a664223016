//! A comparison as one HTML file that needs nothing else: no network, no other file, no server.
//!
//! The file embeds the comparison as JSON (the same that serde writes) and the scripts that draw
//! it. Its content security policy forbids every request, so that a mistake here shows at once.

use crate::measure::Comparison;
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
        "uplot_css" => include_str!("../assets/uplot/uPlot.min.css").into(),
        "uplot_js" => include_str!("../assets/uplot/uPlot.iife.min.js").into(),
        "uplot_licence" => escaped(include_str!("../assets/uplot/LICENSE")),
        "report_css" => include_str!("../assets/report.css").into(),
        "report_js" => [
            include_str!("../assets/theme.js"),
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

/// JSON that may stand in a script element: no `</script>`, no `<!--`.
fn script_json(comparison: &Comparison) -> Result<String, serde_json::Error> {
    // In JSON `<` occurs in strings only, where it may be written as an escape.
    Ok(serde_json::to_string(comparison)?.replace('<', "\\u003c"))
}

/// `template` with each `{{name}}` replaced once; what is put in is not looked at again.
fn fill(template: &str, text_of: impl Fn(&str) -> String) -> String {
    let mut parts = template.split("{{");
    let mut page = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once("}}").unwrap_or((part, ""));
        page.push_str(&text_of(name));
        page.push_str(rest);
    }
    page
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
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
        let page = html(&Comparison::new("t", 1)).unwrap();
        assert!(page.contains("default-src 'none'"));
        // The library names its home in a comment; that is the one address in the file.
        let page = page.replacen("/*! https://github.com/leeoniya/uPlot (", "", 1);
        for request in ["http:", "https:", "//cdn", "src=", "@import", "url(", "fetch(", "XMLHttp"]
        {
            assert!(!page.contains(request), "the page holds {request}");
        }
    }
}
