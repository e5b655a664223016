//! What all pages are made of: a template with places, text that stays in its place, and the
//! assets that every page embeds.
//!
//! A page is one file that needs nothing else. Its content security policy forbids every request,
//! so that a mistake shows at once.

use serde::Serialize;

pub(crate) const UPLOT_CSS: &str = include_str!("../../assets/uplot/uPlot.min.css");
pub(crate) const UPLOT_JS: &str = include_str!("../../assets/uplot/uPlot.iife.min.js");
pub(crate) const UPLOT_LICENCE: &str = include_str!("../../assets/uplot/LICENSE");
/// Colours, text and controls.
pub(crate) const STYLE: &str = include_str!("../../assets/page.css");
/// The colours for canvases, figures, and small elements.
pub(crate) const THEME_JS: &str = include_str!("../../assets/theme.js");
/// Where axes have their marks.
pub(crate) const SCALES_JS: &str = include_str!("../../assets/scales.js");

/// JSON that may stand in a script element: no `</script>`, no `<!--`.
pub(crate) fn script_json(data: &impl Serialize) -> Result<String, serde_json::Error> {
    // In JSON `<` occurs in strings only, where it may be written as an escape.
    Ok(serde_json::to_string(data)?.replace('<', "\\u003c"))
}

/// `template` with each `{{name}}` replaced once; what is put in is not looked at again.
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

/// `text` as it may stand in an element or in an attribute.
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
