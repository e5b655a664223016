//! `trace stats` prints the same rows that other software computed from the bundled traces.

use crate::process::{run, scratch};

/// Direction, packets, mean payload, largest payload, median and 99th percentile of interarrival
/// times in ms, packets/s: from traces/README.md.
const SSH: [&str; 2] = [
    "all c2s 2948 39 16 1448 168.2 3907.8 3.068 2573",
    "all s2c 4236 312 28 1448 123.3 3016.1 4.410 13350",
];

fn bundled(name: &str) -> String {
    format!("{}/../../traces/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn rows_of_a_trace_and_of_its_capture_are_the_published_ones() {
    for name in ["ssh.csv.gz", "ssh.pcap.gz"] {
        let text = run(&format!("trace stats {}", bundled(name))).text();
        let rows: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split_whitespace().collect())
            .filter(|cells: &Vec<&str>| cells.len() == 14 && cells[1] != "dir")
            .collect();
        assert_eq!(rows.len(), 2 * 2 + 2, "{text}");
        for (cells, expected) in rows[4..].iter().zip(SSH) {
            // Those of the README have one decimal.
            let rounded = |cell: &str| format!("{:.1}", cell.parse::<f64>().unwrap());
            let mut row: Vec<String> = cells.iter().map(ToString::to_string).collect();
            (row[7], row[11]) = (rounded(cells[7]), rounded(cells[11]));
            row.drain(8..11);
            row.remove(6);
            assert_eq!(row.join(" "), expected, "{text}");
        }
    }
}

#[test]
fn json_has_each_flow_and_the_total() {
    let json = run(&format!("trace stats --json {}", bundled("crossfire.csv.gz"))).json();
    assert_eq!(json["trace"], "crossfire");
    assert_eq!(json["flows"].as_array().unwrap().len(), 8);
    assert_eq!(json["total"][1]["direction"], "s2c");
    assert_eq!(json["total"][1]["packets"], 26_102);
    let flows = json["flows"].as_array().unwrap().iter();
    let packets = flows.filter(|flow| flow["direction"] == "s2c");
    assert_eq!(packets.map(|flow| flow["packets"].as_u64().unwrap()).sum::<u64>(), 26_102);
}

/// Wireshark finds the same retransmissions in it (`tcp.analysis.retransmission`); the receiver reported each as a duplicate.
#[test]
fn a_capture_is_analysed() {
    let ranges = scratch("ranges.csv");
    let command = format!("trace analyse {}", bundled("crossfire.pcap.gz"));
    let text = run(&format!("{command} --ranges {}", ranges.display())).text();
    assert!(text.contains("estimated from ACKs"), "{text}");
    let json = run(&format!("{command} --json")).json();
    let directions = json["directions"].as_array().unwrap();
    let numbers = |of: &str, name: &str| -> Vec<u64> {
        directions.iter().map(|it| it[of][name].as_u64().unwrap()).collect()
    };
    let again = [0, 8, 0, 1, 0, 3, 0, 2];
    assert_eq!(numbers("sent", "repeating_packets"), again);
    let timers = directions.iter().map(|it| it["repeated"]["timer"]["spurious"].as_u64());
    assert_eq!(timers.map(|it| it.unwrap_or(0)).collect::<Vec<_>>(), again);
    let rows = std::fs::read_to_string(ranges).unwrap();
    assert_eq!(rows.lines().count() as u64, 1 + numbers("sent", "ranges").iter().sum::<u64>());
    assert_eq!(rows.lines().filter(|row| row.ends_with(",timer")).count(), 14);
    let one = run(&format!("{command} --json --flow 2")).json();
    assert_eq!(one["directions"].as_array().unwrap().len(), 2);
    run(&format!("{command} --flow 9")).assert_failed(2, "there is no flow 9");
    run(&format!("trace analyse {}", bundled("ssh.csv.gz")))
        .assert_failed(5, "only pcap and pcapng files have packets");
}

#[test]
fn a_profile_is_recommended_for_a_capture() {
    let folder = scratch("advise");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let (cache, report) = (folder.join("cache"), folder.join("advice.html"));
    let command = |rest: &str| {
        format!(
            "advise {} --rtt 100ms --loss 5% --seeds 1 --cache {} {rest}",
            bundled("ssh.csv.gz"),
            cache.display()
        )
    };
    let text = run(&command(&format!("--report {}", report.display()))).text();
    let json = run(&command("--json")).json();
    let recommended = json["recommended"].as_str().unwrap();
    assert!(text.contains(&format!("Choose {recommended}: 99.9 % of the messages")), "{text}");
    assert_eq!(json["rows"][0]["profile"], "rfc9260");
    assert!(std::fs::read_to_string(report).unwrap().contains("Share of messages"));
    run(&command("--flow 77")).assert_failed(2, "ssh has no flow 77: choose one of 0, 1");
    run(&command("--link fast").replace(" --rtt 100ms --loss 5%", "")).assert_failed(2, "fast");
}
