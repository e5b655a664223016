//! Opens a report of synthetic data in headless Chromium: the charts have drawn, the filter hides a
//! profile everywhere, the switches work, nothing went wrong in the scripts.

mod synthetic;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// A directory of this test's own under the build's, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn browser() -> Option<&'static str> {
    BROWSERS.into_iter().find(|browser| {
        let probe = Command::new(browser)
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        probe.is_ok_and(|status| status.success())
    })
}

/// The document of `page` after its scripts have run in a window of `width` pixels.
fn document_after_run(browser: &str, scratch: &Scratch, page: &str, width: u32) -> String {
    let file = scratch.0.join("report.html");
    std::fs::write(&file, page).unwrap();
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .arg(format!("--user-data-dir={}", scratch.0.join("profile").display()))
        .arg(format!("--window-size={width},1600"))
        .args(["--virtual-time-budget=10000", "--dump-dom"])
        .arg(format!("file://{}", file.display()))
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What the self-test found in a report with three profiles.
fn self_test(name: &str, width: u32) -> Option<Value> {
    let Some(browser) = browser() else {
        eprintln!("not run: chromium is not installed (apt-get install chromium)");
        return None;
    };
    let scratch = Scratch::new(name);
    let report = rexmit_lab::report::html(&synthetic::comparison(7, 1200)).unwrap();
    let watch = "<script>window.selftestErrors = []; window.addEventListener('error', \
                 (event) => window.selftestErrors.push(event.message)); \
                 document.addEventListener('securitypolicyviolation', \
                 (event) => window.selftestErrors.push('request: ' + event.blockedURI));</script>";
    let check = format!("<script>{}</script>", include_str!("selftest.js"));
    let page = report.replacen("<body>", &format!("<body>{watch}"), 1).replacen(
        "</body>",
        &format!("{check}</body>"),
        1,
    );
    let document = document_after_run(browser, &scratch, &page, width);
    let (_, rest) = document.split_once("<pre id=\"selftest\">").expect("the self-test has run");
    let (found, _) = rest.split_once("</pre>").unwrap();
    // The dump escapes text as HTML; none of it is in the JSON but these.
    let found = found.replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&");
    Some(serde_json::from_str(&found).unwrap())
}

fn pixels(found: &Value) -> Vec<u64> {
    found.as_array().unwrap().iter().map(|count| count.as_u64().unwrap()).collect()
}

#[test]
fn charts_draw_and_the_filter_hides_a_profile_everywhere() {
    let Some(found) = self_test("report-wide", 1200) else { return };
    assert_eq!(found["errors"], serde_json::json!([]), "{found}");
    assert_eq!(found["rows"], serde_json::json!(["rfc9260", "freebsd-efr", "thin"]));
    assert!(pixels(&found["curves"]).iter().all(|&count| count > 200), "{found}");
    assert!(pixels(&found["linearCurves"]).iter().all(|&count| count > 200), "{found}");
    let stalls = found["stalls"].as_array().unwrap();
    assert_eq!(stalls.len(), 3);
    for stall in stalls {
        let of = |kind: &str| stall[kind].as_u64().unwrap();
        assert!(of("timeouts") > 30 && of("acks") > 200, "{found}");
        // A packet is a bar of 4 by 12 pixels, whose edges are smoothed.
        assert!(of("packets") > 0 && of("sends") >= 24 * of("packets"), "{found}");
    }
    let key = found["key"].as_array().unwrap();
    assert!(key.contains(&"copied on purpose".into()), "{found}");
    let copy = found["copy"].as_str().unwrap();
    assert!(copy.contains(" copied on purpose, +") && copy.contains(" sent first; "), "{found}");
    // Half of the window holds fewer packets, the whole again as many (give or take the smoothing).
    let zoom = pixels(&found["zoom"]);
    assert!(zoom[1] < zoom[0] * 9 / 10, "{found}");
    assert!(zoom[2].abs_diff(zoom[0]) < zoom[0] / 20, "{found}");

    let filtered = &found["filtered"];
    assert_eq!(filtered["rows"], serde_json::json!(["freebsd-efr", "thin"]));
    assert_eq!(filtered["stalls"], serde_json::json!(["freebsd-efr", "thin"]));
    assert_eq!(filtered["legend"], 2);
    let curves = pixels(&filtered["curves"]);
    assert!(curves[0] < 20 && curves[1] > 200 && curves[2] > 200, "{found}");
    assert_eq!(found["restored"]["rows"], found["rows"]);
    assert!(pixels(&found["restored"]["curves"])[0] > 200, "{found}");
    assert_eq!(found["overflow"].as_i64().map(|pixels| pixels <= 0), Some(true), "{found}");
}

#[test]
fn a_narrow_window_needs_no_sideways_scrolling() {
    let Some(found) = self_test("report-narrow", 500) else { return };
    assert_eq!(found["errors"], serde_json::json!([]), "{found}");
    assert_eq!(found["overflow"].as_i64().map(|pixels| pixels <= 0), Some(true), "{found}");
    assert!(pixels(&found["curves"]).iter().all(|&count| count > 100), "{found}");
}
