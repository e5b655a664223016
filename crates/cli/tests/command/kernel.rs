//! Runs inside a kernel in virtual time. Without a kernel (`scripts/kernel-host`) only the error message is tested.

use serde_json::{Value, json};

use crate::process::{Ended, run, run_after, scratch};

/// A document of `study plan` with these fields of the scenario.
fn document(name: &str, seed: u64, scenario: &Value) -> String {
    let mut document = json!({
        "schema": 1,
        "study": "test",
        "point": [],
        "seed": seed,
        "scenario": {"clock": "kernel", "hosts": {"flow": "linux-6.12"}},
    });
    let scenario = scenario.as_object().unwrap().clone();
    document["scenario"].as_object_mut().unwrap().extend(scenario);
    let file = scratch(&format!("kernel-{name}.json"));
    std::fs::write(&file, document.to_string()).unwrap();
    file.display().to_string()
}

fn thin(name: &str, seed: u64, transport: &str, link: &str) -> String {
    let scenario = json!({
        "duration": "20s",
        "network": {"forward": link},
        "thin": {"flow": {"traffic": "every 251ms size 100", "transport": transport}},
    });
    document(name, seed, &scenario)
}

/// The output of a run; `None` without a kernel.
fn exec(document: &str) -> Option<Value> {
    exec_bytes(document).map(|ended| ended.json()["quantities"].clone())
}

fn exec_bytes(document: &str) -> Option<Ended> {
    let ended = run(&format!("study exec {document}"));
    if ended.stderr.contains("there is no kernel to run this in") {
        rexmit_testkit::not_run(ended.stderr.trim());
        return None;
    }
    assert!(ended.status.success(), "{ended:?}");
    Some(ended)
}

#[test]
fn without_a_kernel_it_says_how_to_build_one() {
    let document = thin("missing", 1, "tcp", "delay 50ms");
    let ended = run_after("export REXMIT_KERNEL=/nowhere/linux", &format!("study exec {document}"));
    ended.assert_failed(1, "there is no kernel to run this in: scripts/kernel-host builds one");
}

#[test]
fn its_first_program_is_not_for_users() {
    run("kernel-init").assert_failed(2, "not for users");
}

#[test]
fn without_loss_a_message_takes_the_delay_of_the_link() {
    for transport in ["tcp", "sctp"] {
        let name = format!("exact-{transport}");
        let Some(quantities) = exec(&thin(&name, 1, transport, "delay 50ms")) else { return };
        let latency = |part: &str| quantities[format!("flow.latency.{part}")].as_f64().unwrap();
        // The clock of the kernel has steps of microseconds.
        assert!((50.0..50.1).contains(&latency("p50")), "{transport}: {quantities}");
        assert!((50.0..50.1).contains(&latency("max")), "{transport}: {quantities}");
        assert_eq!(quantities["flow.messages"], 80.0);
        assert_eq!(quantities["flow.undelivered"], 0.0);
        assert!(quantities["flow.packets_per_message"].as_f64().unwrap() < 1.1);
    }
}

#[test]
fn a_run_can_be_repeated() {
    for transport in ["tcp", "sctp"] {
        let document = |seed| {
            let name = format!("same-{transport}-{seed}");
            exec_bytes(&thin(&name, seed, transport, "delay 50ms loss 10%"))
        };
        let Some(first) = document(1) else { return };
        assert!(
            first.stdout == document(1).unwrap().stdout,
            "{transport}: another run, other figures"
        );
        assert!(first.stdout != document(2).unwrap().stdout, "{transport}: the seed has no effect");
    }
}

/// Each setting has an effect that its documentation promises.
#[test]
fn settings_of_the_kernel_have_effects() {
    let bulk = |control: &str| {
        let scenario = json!({
            "duration": "8s",
            "network": {"forward": "delay 20ms rate 10mbit limit 1000", "backward": "delay 20ms"},
            "bulk": {"flow": {"transport": "tcp"}},
            "hosts": {"flow": {
                "kernel": "linux-6.12",
                "sysctl": {"net.ipv4.tcp_congestion_control": control},
            }},
        });
        exec(&document(&format!("control-{control}"), 1, &scenario))
    };
    let Some(cubic) = bulk("cubic") else { return };
    let bbr = bulk("bbr").unwrap();
    let queue = |run: &Value| run["network.forward.queue.max"].as_f64().unwrap();
    // CUBIC fills any queue, BBR does not.
    assert!(queue(&cubic) > 2.0 * queue(&bbr), "{} {}", queue(&cubic), queue(&bbr));
    for run in [&cubic, &bbr] {
        assert!(run["flow.goodput"].as_f64().unwrap() > 7e6, "{run}");
    }
    let scenario = json!({
        "duration": "8s",
        "network": {"forward": "delay 20ms"},
        "bulk": {"flow": {"transport": "tcp"}},
        "hosts": {"flow": {"kernel": "linux-6.12", "sysctl": {"net.ipv4.no_such_setting": 1}}},
    });
    let ended = run(&format!("study exec {}", document("unknown", 1, &scenario)));
    ended.assert_failed(1, "the kernel refuses `net.ipv4.no_such_setting = 1`");
}
