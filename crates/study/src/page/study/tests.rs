//! A page of hostile text, which must appear as text and never as markup.

use std::collections::BTreeMap;

use rexmit_lab::scenario::{Described, Unit};

use super::*;
use crate::page::{AxisHead, Cell, StudyHead};
use crate::{
    AxisPlace, Coordinate, DrawnAxis, DrawnFigure, DrawnGroup, DrawnPoint, Estimate, FigureKind,
    Instance, StatedValue, Verdict,
};

const HOSTILE: &str = "</script><script>alert(1)</script><!-- {{data}} & \"";

fn text() -> String {
    HOSTILE.into()
}

fn point() -> Vec<Coordinate> {
    vec![Coordinate { axis: text(), label: text() }]
}

fn axis() -> DrawnAxis {
    DrawnAxis {
        label: text(),
        unit: Unit::Count,
        log: false,
        range: None,
        categories: vec![text()],
        places: vec![AxisPlace { at: 0.0, point: point() }],
    }
}

/// A page in which every text is hostile.
fn hostile() -> StudyPage {
    let estimate = Estimate { seeds: 2, mean: 1.0, interval: Some((0.5, 1.5)), range: (0.5, 1.5) };
    let group = DrawnGroup {
        label: text(),
        point: point(),
        points: vec![DrawnPoint { x: 0.0, y: 1.0, interval: None }],
    };
    let instance = Instance {
        point: point(),
        verdict: VerdictKind::Holds,
        left: Some(estimate),
        right: None,
        finding: text(),
    };
    StudyPage {
        study: StudyHead {
            name: text(),
            title: text(),
            source: text(),
            about: text(),
            version: text(),
            setting: point(),
            runs: 1,
            simulated_s: 1.0,
            seeds: vec![1],
            arguments: text(),
            file: text(),
        },
        axes: vec![AxisHead { name: text(), labels: vec![text(), "other".into()] }],
        cells: vec![Cell { point: point(), quantities: BTreeMap::from([(text(), estimate)]) }],
        quantities: vec![Described { name: text(), unit: Unit::Count, about: text() }],
        gains: vec![text()],
        costs: vec![text()],
        figures: vec![DrawnFigure {
            title: text(),
            about: text(),
            kind: FigureKind::Bars,
            x: axis(),
            y: axis(),
            groups: vec![group],
            stated: vec![StatedValue { x: Some(0.0), y: 1.0, of: Some(text()) }],
        }],
        claims: vec![Verdict {
            says: text(),
            means: text(),
            source_value: Some(text()),
            verdict: VerdictKind::Undecided,
            instances: vec![instance],
        }],
        notes: vec![text()],
    }
}

/// The page without its data, and the data.
fn page_and_data(page: &StudyPage) -> (String, serde_json::Value) {
    let page = html(page).unwrap();
    let (before, rest) = page.split_once("id=\"data\">").unwrap();
    let (json, after) = rest.split_once("</script>").unwrap();
    (format!("{before}{after}"), serde_json::from_str(json).unwrap())
}

#[test]
fn text_of_a_study_stays_in_its_place() {
    let (page, data) = page_and_data(&hostile());
    let (harmless, _) = page_and_data(&StudyPage {
        study: StudyHead {
            title: "t".into(),
            source: "s".into(),
            name: "n".into(),
            ..hostile().study
        },
        claims: Vec::new(),
        ..hostile()
    });
    assert_eq!(page.matches("<script").count(), harmless.matches("<script").count());
    assert_eq!(page.matches("<!--").count(), harmless.matches("<!--").count());
    assert!(page.contains("<title>&lt;/script&gt;&lt;script&gt;alert(1)"));
    assert!(page.contains("? undecided: &lt;/script&gt;"));
    for place in [
        "/study/title",
        "/study/about",
        "/study/file",
        "/axes/0/labels/0",
        "/cells/0/point/0/axis",
        "/quantities/0/about",
        "/figures/0/groups/0/label",
        "/figures/0/stated/0/of",
        "/figures/0/x/places/0/point/0/label",
        "/claims/0/says",
        "/claims/0/instances/0/finding",
    ] {
        assert_eq!(data.pointer(place).and_then(|text| text.as_str()), Some(HOSTILE), "{place}");
    }
}

#[test]
fn the_page_requests_nothing() {
    let mut page = hostile();
    page.study.about = "About".into();
    template::assert_requests_nothing(&html(&page).unwrap());
}

#[test]
fn cells_have_a_value_for_each_quantity_in_their_order() {
    let mut page = hostile();
    let missing = Described { name: "none".into(), unit: Unit::Count, about: String::new() };
    page.quantities.insert(0, missing);
    let (_, data) = page_and_data(&page);
    assert_eq!(data["cells"][0]["values"], serde_json::json!([null, [1.0, [0.5, 1.5], 2]]));
}
