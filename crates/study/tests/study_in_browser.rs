//! Opens the page of a synthetic study in headless Chromium: every kind of figure has drawn, the filter applies to all
//! of them and to the table, legend, zoom and tables work, nothing went wrong in the scripts, nothing was requested.

mod browser;
mod synthetic_study;

use rexmit_study::page::{StudyPage, study};
use serde_json::{Value, json};

use browser::{counts, fits};
use synthetic_study::SYSTEMS;

/// The figures of the synthetic study, in their order; the third is of causes and not of systems.
const FIGURES: usize = 8;
const STACKED: usize = 2;
/// The least number of coloured pixels that count as a drawn mark.
const DRAWN: u64 = 100;

fn self_test(name: &str, width: u32) -> Option<Value> {
    let page = study::html(&synthetic_study::page(7)).unwrap();
    assert!(page.len() < 1_000_000, "{} bytes", page.len());
    let script = format!("const SYSTEM = {:?};{}", SYSTEMS[0], include_str!("study_selftest.js"));
    browser::self_test(name, &page, &script, width)
}

fn assert_all_drawn(painted: &Value, groups: usize) {
    for (at, figure) in painted.as_array().unwrap().iter().enumerate() {
        let groups = if at == STACKED { 3 } else { groups };
        let painted = counts(figure);
        assert_eq!(painted.len(), groups, "figure {at}");
        assert!(painted.iter().all(|&count| count > DRAWN), "figure {at}: {painted:?}");
    }
}

#[test]
fn every_figure_draws_every_group_and_claims_have_their_verdicts() {
    let Some(found) = self_test("study-wide", 1200) else { return };
    assert_eq!(found["errors"], json!([]), "{found}");
    assert_eq!(found["claims"], json!(["✓ holds", "✗ does not hold", "? undecided"]));
    // The values that the source states: of bars, of lines over numbers and over names, and a level over time.
    assert_eq!(found["stated"]["legends"], json!([1, 1, 0, 0, 0, 0, 1, 1]), "{found}");
    assert!(found["stated"]["ink"].as_u64().is_some_and(|ink| ink > 15), "{}", found["stated"]);
    assert!(found["stated"]["level"].as_u64().is_some_and(|ink| ink > 500), "{}", found["stated"]);
    assert_eq!(found["instances"], json!([4, 3, 0]));
    let opening = &found["opening"];
    assert_eq!(opening["painted"].as_array().unwrap().len(), FIGURES);
    assert_all_drawn(&opening["painted"], SYSTEMS.len());
    assert_all_drawn(&found["otherScales"], SYSTEMS.len());
    assert_eq!(opening["bars"], 2 * SYSTEMS.len());
    assert_eq!(opening["rows"], 4 * SYSTEMS.len());
    assert!(found["whiskers"].as_u64().unwrap() > DRAWN, "{found}");
    assert!(fits(&found), "{found}");

    filter_hides_everywhere(&found);
    legend_and_zoom_work(&found);
    tables_tell_everything(&found);
}

fn filter_hides_everywhere(found: &Value) {
    let filtered = &found["filtered"];
    assert_all_drawn(&filtered["painted"], SYSTEMS.len() - 1);
    for (at, labels) in filtered["labels"].as_array().unwrap().iter().enumerate() {
        assert!(!labels.as_array().unwrap().contains(&json!(SYSTEMS[0])), "figure {at}");
        if at != STACKED {
            let left = filtered["first"][at].as_u64().unwrap();
            assert!(left < 20, "figure {at} still has {left} pixels of the hidden group");
        }
    }
    assert_eq!(filtered["bars"], 2 * (SYSTEMS.len() - 1), "categories are filtered as well");
    assert_eq!(filtered["rows"], 4 * (SYSTEMS.len() - 1));
    assert_eq!(found["restored"], found["opening"]);
    assert_eq!(found["again"], found["opening"]);

    assert_eq!(found["narrowed"]["rows"], SYSTEMS.len());
    assert_eq!(found["narrowed"]["bars"], json!(SYSTEMS), "pooled values stay");
    let only_lines = json!([true, false, true, true, true, true, true, false]);
    assert_eq!(found["narrowed"]["unreached"], only_lines, "and says so");
    // One point of each line remains: its mark and its whisker.
    let (one, whole) = (counts(&found["narrowed"]["lines"]), &found["opening"]["painted"][1]);
    for (one, whole) in one.iter().zip(counts(whole)) {
        assert!(*one > 15 && *one < whole / 3, "{one} of {whole}");
    }
    assert_eq!(found["nothing"], json!({ "charts": 0, "rows": 0 }));
}

fn legend_and_zoom_work(found: &Value) {
    for (at, toggled) in found["toggled"].as_array().unwrap().iter().enumerate() {
        let [before, without, after] = counts(toggled)[..] else { unreachable!() };
        assert!(before > DRAWN && without < 20, "figure {at}: {before}, {without}");
        assert_eq!(before, after, "figure {at}");
    }
    let [whole, part, again] = counts(&found["zoom"])[..] else { unreachable!() };
    assert!(part > 0 && part < whole / 2, "{whole}, {part}");
    assert_eq!(whole, again);
    let readings: Vec<(&str, &str)> = found["readings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|reading| (reading[0].as_str().unwrap(), reading[1].as_str().unwrap()))
        .collect();
    assert_eq!(readings[0].0, "2nd retransmission, mean");
    for at in [0, 1, STACKED] {
        assert!(readings[at].1.contains(" ± "), "{readings:?}");
    }
    assert!(readings[4].0.starts_with("≤ ") && readings[5].0.starts_with("≥ "), "{readings:?}");
    assert!(readings[4].1.ends_with('%'), "{readings:?}");
}

fn tables_tell_everything(found: &Value) {
    let page = synthetic_study::page(7);
    let collapses = |text: &Value| {
        let mean = text.as_str().unwrap().split(" ±").next().unwrap().replace('\u{202f}', "");
        mean.parse::<u64>().unwrap()
    };
    let sorted: Vec<u64> = found["sorted"].as_array().unwrap().iter().map(collapses).collect();
    assert!(sorted.is_sorted_by(|a, b| a >= b) && sorted[0] > sorted[23], "{sorted:?}");
    assert_eq!(found["quantities"], page.quantities.len());
    assert_eq!(found["searched"], 4);
    let values: usize = page.cells.iter().map(|cell| cell.quantities.len()).sum();
    assert_eq!(found["csv"]["lines"], values);
    assert_eq!(found["csv"]["head"], "system,rtt,quantity,unit,seeds,mean,low,high");
    let first = found["csv"]["first"].as_str().unwrap();
    assert!(
        first.starts_with("lksctp,50 ms,game.wire_bytes_per_payload_byte,ratio,10,"),
        "{first}"
    );
    assert!(found["overflowOpen"].as_i64().unwrap() <= 0, "{found}");
}

#[test]
fn a_phone_needs_no_sideways_scrolling() {
    let Some(found) = self_test("study-narrow", 400) else { return };
    assert_eq!(found["errors"], json!([]), "{found}");
    assert!(fits(&found), "{found}");
    assert!(found["overflowOpen"].as_i64().unwrap() <= 0, "with everything open: {found}");
    assert_all_drawn(&found["opening"]["painted"], SYSTEMS.len());
}

const HOSTILE: &str = "<img src=\"x\"><script>document.title = 'run'</script>{{data}}";

/// `value` with every text made hostile, except the names of enum variants.
fn hostile(value: Value) -> Value {
    match value {
        Value::String(text) => json!(format!("{HOSTILE}{text}")),
        Value::Array(values) => values.into_iter().map(hostile).collect(),
        Value::Object(entries) => {
            let entry = |(key, value): (String, Value)| match key.as_str() {
                "unit" | "kind" | "verdict" => (key, value),
                name if name.starts_with("game.") => (format!("{HOSTILE}{name}"), hostile(value)),
                _ => (key, hostile(value)),
            };
            entries.into_iter().map(entry).collect()
        }
        other => other,
    }
}

const LOOK: &str = "document.querySelectorAll('details').forEach((one) => { one.open = true; }); \
    setTimeout(() => parent.postMessage(JSON.stringify({ errors: window.selftestErrors, \
    title: document.title, h1: document.querySelector('h1').textContent, \
    images: document.images.length, charts: document.querySelectorAll('.figure canvas').length, \
    labels: [...document.querySelectorAll('.figure .entry .label')].map((one) => one.textContent), \
    cells: document.querySelectorAll('#all td').length, csv: csv().split('\\n')[1] ?? '' }), '*'), 300);";

#[test]
fn hostile_text_is_shown_and_does_nothing() {
    let page = serde_json::to_value(synthetic_study::page(7)).unwrap();
    let page: StudyPage = serde_json::from_value(hostile(page)).unwrap();
    let html = study::html(&page).unwrap();
    let Some(found) = browser::self_test("study-hostile", &html, LOOK, 1200) else { return };
    assert_eq!(found["errors"], json!([]), "{found}");
    assert_eq!(found["title"], json!(format!("{} · rexmit", page.study.title)));
    assert_eq!(found["h1"], json!(page.study.title));
    assert_eq!(found["images"], 0, "text has become markup");
    assert_eq!(found["charts"], FIGURES);
    assert_eq!(found["labels"][0], json!(page.figures[0].groups[0].label));
    assert_eq!(found["cells"], page.cells.len() * page.quantities.len());
    let field = format!("\"{}\",", page.axes[0].labels[0].replace('"', "\"\""));
    assert!(found["csv"].as_str().unwrap().starts_with(&field), "{found}");
}

#[test]
fn a_study_of_nothing_has_a_page() {
    let mut page = synthetic_study::page(7);
    for figure in &mut page.figures {
        figure.groups.clear();
    }
    (page.axes, page.cells, page.claims) = (Vec::new(), Vec::new(), Vec::new());
    (page.quantities, page.gains, page.costs) = (Vec::new(), Vec::new(), Vec::new());
    let html = study::html(&page).unwrap();
    let Some(found) = browser::self_test("study-of-nothing", &html, LOOK, 400) else { return };
    assert_eq!(found["errors"], json!([]), "{found}");
    assert_eq!(found["charts"], 0);
}
