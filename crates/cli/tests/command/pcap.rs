//! `emulate --pcap`, as tshark reads it.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::process::{Rexmit, run, scratch};

const EMULATE: &str = "emulate --listen 127.0.0.1:0 --to";

fn tshark(file: &Path, server: &str, arguments: &[&str]) -> String {
    let (_, port) = server.rsplit_once(':').unwrap();
    let output = Command::new("tshark")
        .arg("-r")
        .arg(file)
        .args(["-d", &format!("udp.port=={port},sctp")])
        .args(["-o", "sctp.checksum:CRC 32c", "-o", "udp.check_checksum:TRUE"])
        .args(["-o", "ip.check_checksum:TRUE"])
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Captures an exchange over a lossy link; returns the address of the server, and the report.
fn lossy_exchange(file: &Path) -> (String, Value) {
    let (listener, server) = Rexmit::listen_idle("listen 127.0.0.1:0 --unencrypted");
    let options = "--delay 2ms --loss 5% --duplicate 2% --json --pcap";
    let emulate = format!("{EMULATE} {server} {options} {}", file.display());
    let (emulator, address) = Rexmit::listen_idle(&emulate);
    let text = "a line of text over a link that loses\n".repeat(3000);
    let arguments = ["connect".to_owned(), address, "--unencrypted".to_owned()];
    let sent = Rexmit::start(arguments, text.clone().into_bytes()).end();
    assert_eq!(sent.text(), "");
    assert_eq!(listener.end().text(), text);
    emulator.signal("TERM");
    (server, emulator.end().json())
}

#[test]
fn a_capture_decodes_and_agrees_with_the_report() {
    if Command::new("tshark").arg("--version").output().is_err() {
        println!("NOT RUN: tshark is not installed; the library's tests read captures without it");
        return;
    }
    let file = scratch("lossy.pcapng");
    let (server, report) = lossy_exchange(&file);
    let statistics = &report["statistics"];
    assert_eq!(statistics["uncaptured"], 0, "{report}");
    let lines = |filter: &str| tshark(&file, &server, &["-Y", filter]).lines().count() as u64;
    for (direction, interface) in [("forward", "to the server"), ("backward", "to the clients")] {
        let counts = &statistics[direction];
        let count = |of: &Value| of.as_u64().unwrap();
        let lost = ["uniform", "burst", "listed", "queue"]
            .map(|cause| count(&counts["path"][format!("lost_{cause}")]))
            .iter()
            .sum::<u64>();
        assert_eq!(counts["unsent"], 0, "{report}");
        let here = format!("frame.interface_name == \"{interface}\"");
        assert_eq!(
            lines(&format!("{here} && !frame.comment")),
            count(&counts["arrivals"]["delivered"])
        );
        assert_eq!(lines(&format!("{here} && frame.comment contains \"lost\"")), lost);
        assert!(lost > 0, "{report}");
    }
    // Status 1 is a good checksum.
    let good = "sctp.checksum.status == 1 && udp.checksum.status == 1 && ip.checksum.status == 1";
    assert_eq!(lines(good), lines("frame"));
    assert_eq!(tshark(&file, &server, &["-Y", "_ws.malformed"]), "");
    // I-DATA (RFC 8260) and SACK.
    assert!(lines("sctp.chunk_type == 64") > 0 && lines("sctp.chunk_type == 3") > 0);
}

#[test]
fn a_capture_that_cannot_be_written() {
    run(&format!("{EMULATE} 127.0.0.1:9 --pcap no/such/folder/file"))
        .assert_failed(5, "cannot write no/such/folder/file: No such file or directory (os error 2); create its folder first");
    let ended = run(&format!("{EMULATE} 127.0.0.1:9 --duration 10ms --pcap /dev/full"));
    ended.assert_failed(5, "free some space or choose a file on another disk");
    assert!(!ended.stdout.is_empty(), "the report all the same");
}
