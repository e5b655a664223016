//! The longest waits in a sender's trace, as one self-contained HTML file.
//!
//! It has the graphs of the page of a comparison, and its content security policy.

use rexmit_lab::stalls::Stalls;

use crate::page::template::{self, escaped, fill, script_json};

const PAGE: &str = include_str!("../../assets/trace.html");

/// The page of `stalls`.
///
/// No content of a trace can inject markup: text is escaped for HTML, and the JSON contains no `<`.
///
/// # Errors
/// If a figure cannot be written as JSON.
pub fn html(stalls: &Stalls) -> Result<String, serde_json::Error> {
    let data = script_json(stalls)?;
    Ok(fill(PAGE, |name| match name {
        "title" => escaped(&stalls.title),
        "uplot_css" => template::UPLOT_CSS.into(),
        "uplot_js" => template::UPLOT_JS.into(),
        "uplot_licence" => escaped(template::UPLOT_LICENCE),
        "css" => template::STYLE.into(),
        "js" => [
            template::THEME_JS,
            template::SCALES_JS,
            include_str!("../../assets/causes.js"),
            include_str!("../../assets/timesequence.js"),
            include_str!("../../assets/trace.js"),
        ]
        .concat(),
        "data" => data.clone(),
        other => unreachable!("the page has no place {other}"),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "</script><script>alert(1)</script><!-- {{data}} & \"\u{1b}[31m";

    fn stalls() -> Stalls {
        Stalls { title: HOSTILE.into(), associations: Vec::new(), left_out: 0, is_cut: false }
    }

    #[test]
    fn text_of_a_trace_stays_in_its_place() {
        let page = html(&stalls()).unwrap();
        assert!(!page.contains("<script>alert"));
        let (_, rest) = page.split_once("id=\"data\">").unwrap();
        let (json, _) = rest.split_once("</script>").unwrap();
        let read: serde_json::Value = serde_json::from_str(json).unwrap();
        assert_eq!(read["title"], HOSTILE);
    }

    #[test]
    fn the_page_requests_nothing() {
        template::assert_requests_nothing(&html(&stalls()).unwrap());
    }
}
