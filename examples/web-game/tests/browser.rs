//! The page in Chromium and Firefox: every column gets snapshots, and a picture of Chromium's shows it. With
//! `REXMIT_SCREENSHOT=1` the picture is the one of the README, `docs/web-demo.png`, after a minute.

use std::path::Path;
use std::process::Command;

/// A larger picture does not belong into the repository.
const MAX_SCREENSHOT_BYTES: usize = 150_000;

/// The width and the height of a PNG file (RFC 2083 §4.1.1).
fn size_of(png: &[u8]) -> Option<(u32, u32)> {
    let header = png.strip_prefix(b"\x89PNG\r\n\x1a\n")?.strip_prefix(b"\0\0\0\rIHDR")?;
    let (width, rest) = header.split_first_chunk()?;
    let (height, _) = rest.split_first_chunk()?;
    Some((u32::from_be_bytes(*width), u32::from_be_bytes(*height)))
}

fn is_installed(browser: &str) -> bool {
    let probe = Command::new(browser).arg("--version").output();
    let is_installed = probe.is_ok_and(|output| output.status.success());
    if !is_installed {
        rexmit_testkit::not_run(format_args!(
            "{browser} is not installed (apt-get install {browser})"
        ));
    }
    is_installed
}

/// Measures for some seconds in this many browsers, and checks the tables that are printed.
fn every_column_gets_snapshots(browsers: usize, seconds: &str, options: &[&str]) {
    let output = Command::new(env!("CARGO_BIN_EXE_rexmit-web-game"))
        .args(["--listen", "127.0.0.1:0", "--measure", seconds, "--copies", "1"])
        .args(["--browsers", &browsers.to_string()])
        .args(options)
        .output()
        .expect("the server");
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{table}{}", String::from_utf8_lossy(&output.stderr));
    for name in [
        "data channel, rfc9260",
        "data channel, interactive",
        "data channel, interactive-redundant",
        "WebSocket",
    ] {
        let rows = table.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        let counts = rows.map(|row| row.split_whitespace().next()?.parse::<u32>().ok());
        let counts: Vec<_> = counts.collect();
        // A page waits for that many.
        let are_enough = counts.iter().all(|count| count.is_some_and(|count| count >= 20));
        assert!(counts.len() == browsers && are_enough, "{name} in {table}");
    }
}

#[test]
fn every_kind_of_connection_gets_snapshots_in_chromium() {
    if !is_installed("chromium") {
        return;
    }
    let is_renewed = std::env::var_os("REXMIT_SCREENSHOT").is_some();
    let folder = tempfile::tempdir().expect("a directory");
    let file = if is_renewed {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/web-demo.png")
    } else {
        folder.path().join("page.png")
    };
    let seconds = if is_renewed { "60" } else { "3" };
    every_column_gets_snapshots(1, seconds, &["--screenshot", &file.display().to_string()]);
    let picture = std::fs::read(&file).expect("a picture");
    let (width, height) = size_of(&picture).expect("a PNG file");
    assert!(width >= 900 && height >= 500, "{width} x {height}");
    // An empty page of this size has 5 kB.
    let bytes = picture.len();
    assert!((15_000..MAX_SCREENSHOT_BYTES).contains(&bytes), "{bytes} bytes");
}

#[test]
fn three_browsers_get_snapshots_at_the_same_time() {
    if is_installed("chromium") {
        every_column_gets_snapshots(3, "3", &[]);
    }
}

#[test]
fn every_kind_of_connection_gets_snapshots_in_firefox() {
    if is_installed("firefox-esr") {
        every_column_gets_snapshots(1, "3", &["--browser", "firefox"]);
    }
}

#[test]
fn firefox_connects_to_servers_on_the_same_machine() {
    if is_installed("firefox-esr") {
        every_column_gets_snapshots(1, "3", &["--browser", "firefox", "--clear"]);
    }
}
