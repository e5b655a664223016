//! The common parts of all pages: a template with placeholders, safe insertion of text, and the
//! assets that every page embeds.
//!
//! A page is one self-contained file. Its content security policy forbids every request, so that a
//! mistake is noticed at once.

use serde::Serialize;

pub(crate) const UPLOT_CSS: &str = include_str!("../../assets/uplot/uPlot.min.css");
pub(crate) const UPLOT_JS: &str = include_str!("../../assets/uplot/uPlot.iife.min.js");
pub(crate) const UPLOT_LICENCE: &str = include_str!("../../assets/uplot/LICENSE");
/// Colours, text and controls.
pub(crate) const STYLE: &str = include_str!("../../assets/page.css");
/// The colours for canvases, figures, and small elements.
pub(crate) const THEME_JS: &str = include_str!("../../assets/theme.js");
/// Computes the tick marks of axes.
pub(crate) const SCALES_JS: &str = include_str!("../../assets/scales.js");

/// JSON that is safe in a script element: it contains no `</script>` and no `<!--`.
pub(crate) fn script_json(data: &impl Serialize) -> Result<String, serde_json::Error> {
    // In JSON `<` occurs in strings only, where it may be written as an escape.
    Ok(serde_json::to_string(data)?.replace('<', "\\u003c"))
}

/// `template` with each `{{name}}` replaced once; inserted text is not scanned again.
pub(crate) fn fill(template: &str, text_of: impl Fn(&str) -> String) -> String {
    let mut parts = template.split("{{");
    let mut page = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once("}}").unwrap_or((part, ""));
        page.push_str(&text_of(name));
        page.push_str(rest);
    }
    page
}

/// `text` escaped for an HTML element or attribute.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Panics if `page` could make a browser ask for anything.
#[cfg(test)]
pub(crate) fn assert_requests_nothing(page: &str) {
    assert!(page.contains("default-src 'none'"));
    // The library names its home in a comment; that is the one address in the file.
    let page = page.replacen("/*! https://github.com/leeoniya/uPlot (", "", 1);
    for request in ["http:", "https:", "//cdn", "src=", "@import", "url(", "fetch(", "XMLHttp"] {
        assert!(!page.contains(request), "the page holds {request}");
    }
}
