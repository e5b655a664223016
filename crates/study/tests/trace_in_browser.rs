//! Opens the page of a trace in headless Chromium, as wide as a desktop's window and as a phone: the graphs have drawn, nothing
//! is cut off, and a hostile title stays text.

mod browser;
mod synthetic;

use rexmit_lab::stalls::{AssociationStalls, Stalls};
use serde_json::Value;

use browser::{counts, fits};

/// Markup, and a word that is longer than any line.
fn hostile() -> String {
    format!("<img src=x onerror=alert(1)></script><script>alert(1)</script>{}", "w".repeat(2000))
}

/// The result of the self-test in a page of two associations, one with two waits.
fn shown(name: &str, width: u32) -> Option<Value> {
    let runs = synthetic::comparison(7, 1200).runs;
    let mut stalls = runs.into_iter().filter_map(|run| run.worst_stall);
    let mut association = |name: String, waits: usize| AssociationStalls {
        name,
        packets: 1200,
        retransmissions: 30,
        acknowledged: 1190,
        unacknowledged: 10,
        stalls: stalls.by_ref().take(waits).collect(),
    };
    let associations = vec![association("association 0".into(), 2), association(hostile(), 1)];
    let stalls = Stalls { title: hostile(), associations, left_out: 3, is_cut: true };
    let page = rexmit_study::page::trace::html(&stalls).unwrap();
    browser::self_test(name, &page, include_str!("trace_selftest.js"), width)
}

fn assert_complete(found: &Value) {
    assert_eq!(found["errors"], serde_json::json!([]), "{found}");
    assert!(fits(found), "{found}");
    let drawn = counts(&found["drawn"]);
    assert_eq!(drawn.len(), 3, "{found}");
    assert!(drawn.iter().all(|&pixels| pixels > 500), "{found}");
    assert_eq!(found["images"], 0, "{found}");
    assert_eq!(found["title"].as_str(), Some(hostile().as_str()));
}

#[test]
fn the_page_of_a_trace_draws_all_waits() {
    let Some(found) = shown("trace-wide", 1280) else { return };
    assert_complete(&found);
    let cut = found["cut"].as_str().unwrap();
    assert!(cut.contains("3 associations") && cut.contains("more events than are read"), "{cut}");
}

#[test]
fn the_page_of_a_trace_fits_a_phone() {
    let Some(found) = shown("trace-narrow", 390) else { return };
    assert_complete(&found);
}
