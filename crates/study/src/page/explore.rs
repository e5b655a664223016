//! The page of `rexmit lab serve`: controls for [`Settings`], and the results that the server returns for them.
//!
//! Like other pages it is one file. Its content security policy allows requests to its own server only.

use rexmit_lab::load::BUNDLED;
use rexmit_lab::rivals::{ARE_BUILT, HOW_TO_BUILD};
use rexmit_lab::scenario::profiles;
use serde::Serialize;

use super::study::Embedded;
use crate::explore::{CONTROLS, Control, MAX_SEEDS, NAME, Settings, systems};
use crate::page::StudyPage;
use crate::page::template::{self, escaped, fill, script_json};

const PAGE: &str = include_str!("../../assets/explore/explore.html");

/// The settings, limits and systems that the page shows.
#[derive(Serialize)]
struct Offer {
    controls: &'static [Control],
    traces: Vec<OfferedTrace>,
    systems: Vec<OfferedSystem>,
    seeds: u32,
    /// The settings of a page whose address contains none.
    settings: Settings,
    /// How to get other implementations, if this program has none.
    how_to_build: Option<&'static str>,
    /// The name of the file.
    file: String,
}

#[derive(Serialize)]
struct OfferedTrace {
    name: &'static str,
    about: &'static str,
}

#[derive(Serialize)]
struct OfferedSystem {
    name: &'static str,
    /// The description of the profile; `None`: another implementation.
    about: Option<&'static str>,
    is_ordered_only: bool,
    is_rival: bool,
}

/// The page.
///
/// # Errors
/// Never: its data have a JSON form.
pub fn html() -> Result<String, serde_json::Error> {
    let traces = BUNDLED.iter().map(|it| OfferedTrace { name: it.name, about: it.about });
    let systems = systems().map(|it| OfferedSystem {
        name: it.label,
        about: profiles().find(|(name, _)| *name == it.label).map(|(_, about)| about),
        is_ordered_only: it.is_ordered_only(),
        is_rival: it.is_rival(),
    });
    let data = script_json(&Offer {
        controls: &CONTROLS,
        traces: traces.collect(),
        systems: systems.collect(),
        seeds: MAX_SEEDS,
        settings: Settings::default(),
        how_to_build: (!ARE_BUILT).then_some(HOW_TO_BUILD),
        file: format!("{NAME}.toml"),
    })?;
    Ok(fill(PAGE, |name| match name {
        "uplot_css" => template::UPLOT_CSS.into(),
        "uplot_js" => template::UPLOT_JS.into(),
        "uplot_licence" => escaped(template::UPLOT_LICENCE),
        "css" => [
            template::STYLE,
            include_str!("../../assets/study/study.css"),
            include_str!("../../assets/explore/explore.css"),
        ]
        .concat(),
        "js" => [
            template::THEME_JS,
            template::SCALES_JS,
            include_str!("../../assets/explore/data.js"),
            include_str!("../../assets/study/numbers.js"),
            include_str!("../../assets/study/marks.js"),
            include_str!("../../assets/study/shown.js"),
            include_str!("../../assets/study/axes.js"),
            include_str!("../../assets/study/chart.js"),
            include_str!("../../assets/study/reading.js"),
            include_str!("../../assets/study/figure.js"),
            include_str!("../../assets/explore/settings.js"),
            include_str!("../../assets/explore/answer.js"),
            include_str!("../../assets/explore/explore.js"),
        ]
        .concat(),
        "data" => data.clone(),
        other => unreachable!("the page has no place {other}"),
    }))
}

/// The results of a study in the form that the scripts of the page read.
///
/// # Errors
/// If a number cannot be written as JSON.
pub fn answer(page: &StudyPage) -> Result<String, serde_json::Error> {
    serde_json::to_string(&Embedded::new(page))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_requests_only_its_own_server() {
        let page = html().unwrap();
        assert!(page.contains("default-src 'none'; connect-src 'self';"));
        let page = page.replacen("/*! https://github.com/leeoniya/uPlot (", "", 1);
        for request in ["http:", "https:", "//cdn", "src=", "@import", "url("] {
            assert!(!page.contains(request), "the page holds {request}");
        }
    }
}
