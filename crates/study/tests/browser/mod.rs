//! Opens a page in headless Chromium, in a frame of any width, and runs a script in it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Collects the errors of a page: errors of scripts, rejected promises that nothing handles, what is written to the console as
/// an error, and requests that the page's own policy forbids.
const WATCH: &str = "<script>window.selftestErrors = []; window.addEventListener('error', \
    (event) => window.selftestErrors.push(event.message)); \
    window.addEventListener('unhandledrejection', \
    (event) => window.selftestErrors.push('rejected: ' + event.reason)); \
    console.error = (...told) => window.selftestErrors.push('console: ' + told.join(' ')); \
    console.assert = (is, ...told) => { if (!is) console.error(...told); }; \
    document.addEventListener('securitypolicyviolation', \
    (event) => window.selftestErrors.push('request: ' + event.blockedURI));</script>";

/// The document around the page, which records the page's final message.
const HOST: &str = "<!doctype html><meta charset=\"utf-8\"><body><script>\
    addEventListener('message', ({ data }) => { const found = document.createElement('pre'); \
    found.id = 'selftest'; found.textContent = data; document.body.append(found); });</script>";

/// A directory for one test, inside the build directory, removed at the end.
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

/// The message that `script` has posted to the document around `page`, which is `width` pixels wide. `None`
/// where there is no browser.
///
/// It uses a frame, because the least width of a window is larger than that of a phone.
pub(crate) fn self_test(name: &str, page: &str, script: &str, width: u32) -> Option<Value> {
    let Some(browser) = browser() else {
        rexmit_testkit::not_run("chromium is not installed (apt-get install chromium)");
        return None;
    };
    let scratch = Scratch::new(name);
    let page = page.replacen("<body>", &format!("<body>{WATCH}"), 1).replacen(
        "</body>",
        &format!("<script>{script}</script></body>"),
        1,
    );
    std::fs::write(scratch.0.join("page.html"), page).unwrap();
    let frame = format!("<iframe src=\"page.html\" width=\"{width}\" height=\"1600\"></iframe>");
    let host = scratch.0.join("host.html");
    std::fs::write(&host, format!("{HOST}{frame}")).unwrap();
    let document = document_after_run(browser, &scratch, &host);
    let (_, rest) = document.split_once("<pre id=\"selftest\">").expect("the self-test has run");
    let (found, _) = rest.split_once("</pre>").unwrap();
    // The dump escapes text as HTML; none of it is in the JSON but these.
    let found = found.replace("&gt;", ">").replace("&lt;", "<").replace("&nbsp;", "\u{a0}");
    Some(serde_json::from_str(&found.replace("&amp;", "&")).unwrap())
}

fn document_after_run(browser: &str, scratch: &Scratch, host: &Path) -> String {
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .arg(format!("--user-data-dir={}", scratch.0.join("profile").display()))
        .args(["--window-size=1400,1700", "--virtual-time-budget=20000", "--dump-dom"])
        .arg(format!("file://{}", host.display()))
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// An array of counts.
pub(crate) fn counts(found: &Value) -> Vec<u64> {
    found.as_array().unwrap().iter().map(|count| count.as_u64().unwrap()).collect()
}

/// Whether the page is no wider than its frame.
pub(crate) fn fits(found: &Value) -> bool {
    found["overflow"].as_i64().is_some_and(|pixels| pixels <= 0)
}
