//! Opens a page of synthetic data in headless Chromium: the charts have drawn, the filter hides a
//! profile everywhere, the switches work, nothing went wrong in the scripts.

mod browser;
mod synthetic;

use serde_json::Value;

use browser::{counts, fits};

/// The result of the self-test in a page with three profiles.
fn self_test(name: &str, width: u32) -> Option<Value> {
    let page = rexmit_study::page::comparison::html(&synthetic::comparison(7, 1200)).unwrap();
    browser::self_test(name, &page, include_str!("selftest.js"), width)
}

#[test]
fn charts_draw_and_the_filter_hides_a_profile_everywhere() {
    let Some(found) = self_test("page-wide", 1200) else { return };
    assert_eq!(found["errors"], serde_json::json!([]), "{found}");
    assert_eq!(found["rows"], serde_json::json!(["rfc9260", "freebsd-efr", "thin"]));
    assert!(counts(&found["curves"]).iter().all(|&count| count > 200), "{found}");
    assert!(counts(&found["linearCurves"]).iter().all(|&count| count > 200), "{found}");
    let stalls = found["stalls"].as_array().unwrap();
    assert_eq!(stalls.len(), 3);
    for stall in stalls {
        let of = |kind: &str| stall[kind].as_u64().unwrap();
        assert!(of("timeouts") > 30 && of("acks") > 200, "{found}");
        // A packet is a bar of 4 by 12 pixels, whose edges are smoothed.
        assert!(of("packets") > 0 && of("sends") >= 24 * of("packets"), "{found}");
    }
    let key = found["key"].as_array().unwrap();
    assert!(key.contains(&"redundant copy".into()), "{found}");
    let copy = found["copy"].as_str().unwrap();
    assert!(
        copy.contains(" redundant copy, +") && copy.contains(" first transmission; "),
        "{found}"
    );
    // Half of the window holds fewer packets, the whole again as many (give or take the smoothing).
    let zoom = counts(&found["zoom"]);
    assert!(zoom[1] < zoom[0] * 9 / 10, "{found}");
    assert!(zoom[2].abs_diff(zoom[0]) < zoom[0] / 20, "{found}");

    let filtered = &found["filtered"];
    assert_eq!(filtered["rows"], serde_json::json!(["freebsd-efr", "thin"]));
    assert_eq!(filtered["stalls"], serde_json::json!(["freebsd-efr", "thin"]));
    assert_eq!(filtered["legend"], 2);
    let curves = counts(&filtered["curves"]);
    assert!(curves[0] < 20 && curves[1] > 200 && curves[2] > 200, "{found}");
    assert_eq!(found["restored"]["rows"], found["rows"]);
    assert!(counts(&found["restored"]["curves"])[0] > 200, "{found}");
    assert!(fits(&found), "{found}");
}

#[test]
fn a_narrow_window_needs_no_sideways_scrolling() {
    let Some(found) = self_test("page-narrow", 400) else { return };
    assert_eq!(found["errors"], serde_json::json!([]), "{found}");
    assert!(fits(&found), "{found}");
    assert!(counts(&found["curves"]).iter().all(|&count| count > 100), "{found}");
}
