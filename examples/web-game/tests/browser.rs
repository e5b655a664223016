//! The page in Chromium: snapshots arrive in every column.

use std::process::Command;

#[test]
fn every_kind_of_connection_gets_snapshots() {
    let probe = Command::new("chromium").arg("--version").output();
    if !probe.is_ok_and(|output| output.status.success()) {
        eprintln!("not run: chromium is not installed (apt-get install chromium)");
        return;
    }
    let output = Command::new(env!("CARGO_BIN_EXE_rexmit-web-game"))
        .args(["--listen", "127.0.0.1:0", "--measure", "3", "--copies", "1"])
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
        let row = table.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        let row = row.unwrap_or_else(|| panic!("{name} in {table}"));
        let count = row.split_whitespace().next().and_then(|count| count.parse::<u32>().ok());
        // 60, less those that a busy machine has not sent or shown.
        assert!(count.is_some_and(|count| count >= 10), "{table}");
    }
}
