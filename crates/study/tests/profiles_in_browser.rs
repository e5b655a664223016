//! Opens the demo's page for every recovery profile in headless Chromium: a short thin stream over a lossy
//! link in virtual time. No script reports an error, every profile has a row and a stall chart with marks,
//! and every cause of a retransmission that was counted has its column and its number.

mod browser;

use std::net::SocketAddr;
use std::sync::Arc;

use rexmit_core::trace::SendCause;
use rexmit_core::{Instant, Seed};
use rexmit_lab::hosts::{Host, Layer, Thin, ThinPlan, ThinReceiver, ThinSender, Transport};
use rexmit_lab::measure::{Comparison, Counters, Recorder, Run};
use rexmit_netsim::network::{Network, PointToPoint};
use rexmit_netsim::path::PathConfig;
use rexmit_sctp::recovery::{PROFILES, RecoveryConfig, RecoveryStatistics};
use rexmit_tcp::recovery::TCP_PROFILES;
use serde_json::{Value, json};

use browser::{counts, fits};

const PORT: u16 = 7000;

fn sctp(profile: &str, seed: &Seed) -> rexmit_sctp::Endpoint {
    let recovery = RecoveryConfig::profile(profile).expect("a known profile");
    let mut association = rexmit_sctp::AssociationConfig::default();
    association.recovery = recovery;
    let mut config = rexmit_sctp::EndpointConfig::default().port(PORT).accept(true);
    config.association = Arc::new(association);
    rexmit_sctp::Endpoint::new(config, seed).expect("a valid configuration")
}

fn tcp(profile: &str, seed: &Seed) -> rexmit_tcp::Endpoint {
    let recovery = RecoveryConfig::tcp_profile(profile).expect("a known profile");
    let mut connection = rexmit_tcp::ConnectionConfig::default();
    (connection.recovery, connection.nagle) = (recovery, false);
    let mut config = rexmit_tcp::EndpointConfig::default();
    config.connection = Arc::new(connection);
    let mut endpoint = rexmit_tcp::Endpoint::new(config, seed).expect("a valid configuration");
    endpoint.listen(PORT, None).expect("a free port");
    endpoint
}

/// 100 bytes every 60 ms for a minute, over 50 ms each way with 8 % loss.
fn run<T: Transport>(
    profile: &str,
    endpoint: impl Fn(&Seed) -> T,
    set_trace: impl Fn(&mut T, &Recorder),
    statistics: impl Fn(&T, &ThinSender<T>) -> RecoveryStatistics,
) -> Run {
    let seed = Seed::from_u64(3);
    let source = (0..1000).map(|n| (Instant::from_millis(500 + 60 * n), 100));
    let plan = ThinPlan::new(source, Instant::from_millis(70_000));
    let [from, to] = PointToPoint::ADDRESSES.map(|ip| SocketAddr::new(ip, PORT));
    let thin = Thin { stays_open: true, ..Thin::new(from, to) };
    let recorder = Recorder::default();
    let mut sender = endpoint(&seed.split("a"));
    set_trace(&mut sender, &recorder);
    let machines = [
        Host::new(sender, ThinSender::<T>::new(thin, plan.clone())),
        Host::new(endpoint(&seed.split("b")), ThinReceiver::<T>::new(plan)),
    ];
    let mut network = Network::new(&seed);
    let path: PathConfig = "delay 50ms loss 8%".parse().expect("the words of a path");
    let hosts = PointToPoint::build(&mut network, machines, &path).unwrap().hosts;
    let ended = Instant::from_millis(70_000);
    network.run_until(ended, |_, _| {}).expect("the network becomes idle");
    let host = network.machine(hosts[0]);
    let program = host.program::<ThinSender<T>>().unwrap();
    let mut counters = Counters::from(&statistics(host.transport::<T>().unwrap(), program));
    for host in hosts {
        let sent = network.host_stats(host);
        counters.on_wire(sent.packets_out, sent.bytes_out);
    }
    let receiver = network.machine(hosts[1]).program::<ThinReceiver<T>>().unwrap();
    Run {
        profile: profile.into(),
        ended,
        messages: receiver.records(Layer::Application, 0),
        counters,
        trace: recorder.take(),
        ..Run::default()
    }
}

fn of_sctp(profile: &str) -> Run {
    run(
        profile,
        |seed| sctp(profile, seed),
        |endpoint, recorder| endpoint.set_trace(Some(recorder.sink())),
        |endpoint, sender| endpoint.statistics(sender.id().unwrap()).unwrap().recovery,
    )
}

fn of_tcp(profile: &str) -> Run {
    run(
        profile,
        |seed| tcp(profile, seed),
        |endpoint, recorder| endpoint.set_trace(Some(recorder.sink())),
        |endpoint, sender| endpoint.statistics(sender.id().unwrap()).unwrap().recovery,
    )
}

fn comparison(runs: impl Iterator<Item = Run>) -> Comparison {
    runs.fold(Comparison::new("Every profile", 3), |all, run| all.with_run(&run))
}

/// Reads from the page the cells of each profile's row by their headings, the text of each stall chart, and the number
/// of its pixels that have a mark's colour.
const LOOK: &str = r##"(async () => {
  const found = { errors: window.selftestErrors };
  const only = (all) => [...document.querySelectorAll(all)];
  await new Promise((done) => setTimeout(done, 50));
  try {
    const table = wideTable(REPORT.runs.map((run, index) => ({ run, index })), measures(REPORT.runs));
    const heads = [...table.querySelectorAll("thead tr:last-child th")].map((head) => head.textContent);
    found.rows = Object.fromEntries([...table.querySelectorAll("tbody tr")].map((row) =>
      [row.dataset.profile, Object.fromEntries([...row.children].map((cell, at) => [heads[at], cell.firstChild?.textContent ?? ""]))]));
    found.columns = Object.fromEntries(Object.entries(CAUSES).map(([cause, look]) => [cause, look.column ?? null]));
    found.texts = Object.fromEntries(Object.entries(CAUSES).map(([cause, look]) => [cause, look.text]));
    found.key = only("#key li").map((entry) => entry.textContent);
    found.stalls = only("article").map((article) => [article.dataset.profile, article.textContent]);
    found.marks = only(".stall canvas").map((canvas) => {
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      let count = 0;
      for (let at = 3; at < data.length; at += 4) count += data[at] > 200 ? 1 : 0;
      return count;
    });
    found.readings = REPORT.runs.flatMap((run) => readings(run.worst_stall).map((mark) => mark.text));
    const box = document.getElementById("table");
    const right = Math.max(...[...box.querySelectorAll("td, th")].map((cell) => cell.getBoundingClientRect().right));
    found.cut = Math.ceil(right - box.getBoundingClientRect().right);
    found.overflow = document.documentElement.scrollWidth - window.innerWidth;
  } catch (error) {
    found.errors.push(String(error));
  }
  parent.postMessage(JSON.stringify(found), "*");
})();"##;

fn page(name: &str, comparison: &Comparison, width: u32) -> Option<Value> {
    let html = rexmit_study::page::comparison::html(comparison).unwrap();
    browser::self_test(name, &html, LOOK, width)
}

fn assert_shows(found: &Value, comparison: &Comparison) {
    assert_eq!(found["errors"], json!([]), "{found}");
    for run in &comparison.runs {
        let row = &found["rows"][&run.profile];
        let counted = serde_json::to_value(run.retransmissions).unwrap();
        for cause in SendCause::ALL.iter().filter(|cause| **cause != SendCause::New) {
            let count = counted[cause.name()].as_u64().expect("a count for every cause");
            let column = found["columns"][cause.name()].as_str().expect("a column");
            let shown = row[column].as_str().unwrap_or("0").replace('\u{202f}', "");
            assert_eq!(shown, count.to_string(), "{}, {column}", run.profile);
        }
        let stall = run.worst_stall.as_ref().expect("a trace of the sender");
        for (_, _, cause) in stall.sends.iter().flat_map(|send| &send.runs) {
            let text = &found["texts"][cause.name()];
            assert!(found["key"].as_array().unwrap().contains(text), "{cause:?} has no key");
        }
    }
    let said = format!("{} {}", found["readings"], found["stalls"]);
    for wrong in ["undefined", "NaN", "null"] {
        assert!(!said.contains(wrong), "{said}");
    }
    let marks = counts(&found["marks"]);
    assert_eq!(marks.len(), comparison.runs.len());
    assert!(marks.iter().all(|&pixels| pixels > 1000), "an empty stall chart: {marks:?}");
    assert!(fits(found), "{found}");
}

#[test]
fn every_profile_of_sctp_has_its_rows_and_its_stall() {
    let comparison = comparison(PROFILES.iter().map(|(name, _)| of_sctp(name)));
    let probes = |name: &str| {
        let run = comparison.runs.iter().find(|run| run.profile == name);
        run.expect("it ran").retransmissions.probe
    };
    assert!(probes("interactive") > 0 && probes("interactive-redundant") > 0);
    if let Some(found) = page("profiles-sctp", &comparison, 1200) {
        assert_shows(&found, &comparison);
    }
}

#[test]
fn every_profile_of_tcp_has_its_rows_and_its_stall() {
    let comparison = comparison(TCP_PROFILES.iter().map(|(name, _)| of_tcp(name)));
    if let Some(found) = page("profiles-tcp", &comparison, 1200) {
        assert_shows(&found, &comparison);
    }
}

/// Shows that the other tests detect errors.
#[test]
fn every_kind_of_page_error_is_found() {
    let page = "<!doctype html><body><script>\
        setTimeout(() => { throw new Error('thrown'); }); \
        Promise.reject(new Error('late')); \
        console.error('written', 7);</script></body>";
    let look = "setTimeout(() => parent.postMessage(\
        JSON.stringify({ errors: window.selftestErrors.sort() }), '*'), 50);";
    if let Some(found) = browser::self_test("watched", page, look, 400) {
        let expected = ["Uncaught Error: thrown", "console: written 7", "rejected: Error: late"];
        assert_eq!(found["errors"], json!(expected));
    }
}

/// The page has as many profiles as that of the demo, including the longest name.
#[test]
fn a_phone_shows_the_last_column_completely() {
    let shown =
        ["rfc9260", "lksctp", "thin", "thin-bundling", "interactive", "interactive-redundant"];
    let comparison = comparison(shown.iter().map(|name| of_sctp(name)));
    for (name, width) in [("profiles-360", 360), ("profiles-412", 412), ("profiles-800", 800)] {
        let Some(found) = page(name, &comparison, width) else { return };
        assert_eq!(found["errors"], json!([]), "{found}");
        let cut = found["cut"].as_i64().expect("pixels");
        assert!(cut <= 0, "at {width} pixels {cut} of the last column are cut off");
    }
}
