//! Invariants of every run.

use std::collections::BTreeSet;

use rexmit_lab::scenario::{Catalogue, Clock, Scenario, execute};
use serde_json::{Value, json};

use crate::{run, scenario};

/// A thin stream of ten minutes over a lossy path.
fn lossy(game: &Value) -> Value {
    let mut flow = json!({ "traffic": "every 150ms size 100" });
    let fields = flow.as_object_mut().expect("it is one");
    fields.extend(game.as_object().expect("it is one").clone());
    let forward = "delay 50ms 10ms loss 8% duplicate 1%";
    json!({
        "duration": "10min",
        "network": { "forward": forward, "backward": "delay 50ms loss 8%" },
        "thin": { "game": flow },
    })
}

const PROFILES: [&str; 6] =
    ["rfc9260", "lksctp", "freebsd", "freebsd-efr", "thin", "thin-bundling"];
const NUMBERS: [&str; 5] = ["rtx0", "rtx1", "rtx2", "rtx3", "rtx4plus"];
const CAUSES: [&str; 7] =
    ["timeout", "fast_retransmit", "bundled", "redundant", "early", "probe", "window_probe"];

/// Flows of all kinds over one bottleneck.
fn everything() -> Value {
    json!({
        "duration": "60s",
        "network": { "forward": "delay 45ms rate 2mbit limit 50", "edge": "delay 5ms" },
        "second_network": { "forward": "delay 45ms rate 1mbit" },
        "thin": {
            "game": {
                "traffic": "application anarchy-online",
                "profile": "thin",
                "late": ["150ms"],
            },
            "tanks": { "traffic": "trace bzflag-tcp", "transport": "tcp", "profile": "tcp-thin-rdb" },
        },
        "bulk": { "greedy": { "profile": "lksctp", "start": "5s", "over": "first" }, "tcp": { "transport": "tcp" } },
        "web": { "clients": { "count": 5 } },
        "udp": { "video": { "traffic": "video 200kbit frame 40ms variation 0.5 on 1s off 1s" } },
    })
}

fn names(catalogue: &Catalogue) -> [BTreeSet<&str>; 3] {
    let lists = [&catalogue.quantities, &catalogue.distributions, &catalogue.series];
    lists.map(|list| {
        let names: BTreeSet<_> = list.iter().map(|described| described.name.as_str()).collect();
        assert_eq!(names.len(), list.len(), "a name stands for one thing");
        names
    })
}

/// On a perfect path several connections differ from one only in their number.
#[test]
fn several_connections_are_measured_as_one() {
    let of = |connections: u32, transport: &str| {
        run(
            json!({
                "duration": "100s",
                "rows": true,
                "network": { "forward": "delay 50ms" },
                "thin": { "game": {
                    "traffic": "every 250ms size 100",
                    "connections": connections,
                    "transport": transport,
                } },
            }),
            7,
        )
    };
    for transport in ["sctp", "tcp"] {
        let (one, four) = (of(1, transport), of(4, transport));
        let values = ["messages", "latency.mean", "rtt.mean", "rtx0.count", "packets_per_message"];
        let [one_of, four_of] = [&one, &four]
            .map(|outcome| values.map(|name| outcome.quantities[&format!("game.{name}")]));
        // Connection n begins n/4 s later, and sends n messages less.
        assert_eq!((one_of[0], four_of[0]), (400.0, 1600.0 - 6.0));
        assert_eq!((one_of[3], four_of[3]), (one_of[0], four_of[0]), "{transport}");
        for (name, (one, four)) in values.iter().zip(one_of.iter().zip(four_of)).skip(1) {
            let is_near = *name == "rtx0.count" || (one - four).abs() <= 0.02 * one;
            assert!(is_near, "{transport} {name}: {one} and {four}");
        }
        assert_eq!(four.messages.len(), 1594);
        let goodput = four.quantities["game.goodput"] * 100.0 / 8.0;
        assert!((158_900.0..=159_400.0).contains(&goodput), "{goodput}");
    }
}

#[test]
fn every_unit_is_delivered_by_one_of_its_copies() {
    for (profile, seed) in PROFILES.iter().flat_map(|profile| [(profile, 0), (profile, 1)]) {
        let outcome = run(lossy(&json!({ "profile": profile })), seed);
        let value = |name: &str| outcome.quantities[&format!("game.{name}")];
        let delivered: f64 = NUMBERS.map(|k| value(&format!("{k}.count"))).iter().sum();
        assert_eq!(value("undelivered"), 0.0);
        assert_eq!(delivered, value("messages"), "{profile}, seed {seed}");
        let latencies = outcome.distributions["game.latency"].counts.iter().sum::<u64>();
        assert_eq!(latencies as f64, value("messages"));
        let sent: f64 = NUMBERS.map(|k| value(&format!("{k}.sent"))).iter().sum();
        assert_eq!(sent, value("messages") + value("retransmissions.all"));
        for k in NUMBERS[1..].iter().filter(|k| value(&format!("{k}.sent")) > 0.0) {
            let sum = |what: &str| -> f64 {
                CAUSES.map(|cause| value(&format!("{k}.{what}.{cause}"))).iter().sum()
            };
            assert!((sum("share") - 1.0).abs() < 1e-9, "{profile} {k}");
            let spurious = value(&format!("{k}.spurious_share"));
            assert!((sum("spurious_share") - spurious).abs() < 1e-9, "{profile} {k}");
        }
        assert!((0.06..0.1).contains(&value("loss_share")), "{}", value("loss_share"));
        let (arrival, delivery) = (value("transport_latency.mean"), value("latency.mean"));
        // With copies of two packets before, hardly anything arrives out of order.
        let is_in_order = *profile == "thin-bundling" && arrival == delivery;
        assert!(
            is_in_order || arrival < delivery,
            "{profile}, seed {seed}: {arrival} and {delivery}"
        );
    }
}

#[test]
fn spurious_classes_add_up_to_all_spurious_retransmissions() {
    const PARTS: [&str; 4] = ["premature", "crossed", "unacknowledged", "redundant"];
    let profiles = PROFILES.into_iter().chain(["interactive", "interactive-redundant"]);
    let mut most = [0.0_f64; 4];
    for (profile, seed) in profiles.flat_map(|profile| [(profile, 0), (profile, 1)]) {
        let outcome = run(lossy(&json!({ "profile": profile })), seed);
        let value = |name: &str| outcome.quantities[&format!("game.{name}")];
        let parts = PARTS.map(|part| value(&format!("{part}_share")));
        let sum: f64 = parts.iter().sum();
        assert!((sum - value("spurious_share")).abs() < 1e-12, "{profile}, seed {seed}: {parts:?}");
        let on_purpose = value("spurious.redundant") / value("spurious.all");
        assert!((parts[3] - on_purpose * sum).abs() < 1e-12, "{profile}, seed {seed}: {parts:?}");
        most.iter_mut().zip(parts).for_each(|(most, part)| *most = most.max(part));
    }
    assert!(most.iter().all(|&share| share > 0.003), "{most:?}");
}

#[test]
fn the_catalogue_lists_exactly_what_is_measured() {
    let everything = scenario(everything());
    let catalogue = everything.catalogue();
    let outcome = execute(&everything, 1).expect("it runs");
    let [quantities, distributions, series] = names(&catalogue);
    let missing = |known: &BTreeSet<&str>, measured: Vec<&String>| -> Vec<String> {
        assert!(measured.iter().all(|name| known.contains(name.as_str())), "{measured:?}");
        let is_missing = |name: &&&str| !measured.iter().any(|measured| *measured == **name);
        known.iter().filter(is_missing).map(|name| (*name).to_owned()).collect()
    };
    let missing = [
        missing(&quantities, outcome.quantities.keys().collect()),
        missing(&distributions, outcome.distributions.keys().collect()),
        missing(&series, outcome.series.keys().collect()),
    ];
    // In a minute, a unit may not have this many retransmissions, and no event may be spurious; no profile here adapts
    // to reordering; and the window of a path that is used only after timeouts may not change.
    let rare =
        [".rtx", ".nth_retransmission", ".detected_share", ".missing_reports", ".path2.cwnd"];
    let is_rare = |name: &&String| rare.iter().any(|part| name.contains(part));
    let unexpected: Vec<_> = missing.iter().flatten().filter(|name| !is_rare(name)).collect();
    assert!(unexpected.is_empty(), "{unexpected:?}");
    assert!(outcome.quantities.values().all(|value| value.is_finite()));
    for distribution in outcome.distributions.values() {
        assert!(distribution.values.is_sorted_by(|a, b| a < b));
        assert_eq!(distribution.values.len(), distribution.counts.len());
    }
    for series in outcome.series.values() {
        assert!(series.seconds.is_sorted() && series.seconds.len() == series.values.len());
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    for document in [everything(), lossy(&json!({ "profile": "thin", "late": ["1s"] }))] {
        let bytes = |seed| serde_json::to_string(&run(document.clone(), seed)).expect("JSON");
        let first = bytes(1);
        assert!(first == bytes(1));
        assert!(first != bytes(2));
    }
}

#[test]
fn a_scenario_survives_a_file_word_for_word() {
    let mut document = everything();
    document["drain"] = "5min".into();
    document["bin"] = "0.5s".into();
    document["rows"] = true.into();
    document["clock"] = "real".into();
    let greedy = &mut document["bulk"]["greedy"];
    greedy["recovery"] = json!({ "rto": { "min": "0.2s" }, "missing_reports": 2 });
    greedy["mtu"] = "1500b".into();
    greedy["send_buffer"] = "64kb".into();
    greedy["receiver"] = json!({ "ack_delay": "0s", "receive_buffer": "32kb", "profile": "thin" });
    document["network"]["changes"] = json!([{ "at": "1min", "backward": "delay 1s 1ms" }]);
    let read: Scenario = scenario(document.clone());
    assert_eq!(serde_json::to_value(&read).expect("JSON"), document);
    let simulated = Scenario { clock: Clock::Virtual, ..read };
    assert_eq!(simulated.validate(), Ok(()));
}

/// The greedy flow has a queue of its own, and CoDel keeps that short.
#[test]
fn with_fq_codel_a_thin_flow_does_not_wait_for_a_greedy_one() {
    let run = |queue: &str| {
        let network = json!({ "forward": format!("delay 20ms rate 2mbit {queue}"),
            "backward": "delay 20ms" });
        let outcome = run(
            json!({
                "duration": "1min",
                "network": network,
                "thin": { "game": { "traffic": "every 50ms size 100", "profile": "thin" } },
                "bulk": { "greedy": { "transport": "tcp", "profile": "tcp-cubic" } },
            }),
            1,
        );
        let of = |name: &str| outcome.quantities[name];
        let network = |name: &str| of(&format!("network.forward.{name}"));
        assert_eq!(network("mark_share"), 0.0, "TCP sends without ECN");
        assert!(of("greedy.goodput") > 1.6e6, "{}", of("greedy.goodput"));
        (of("game.latency.p99"), network("loss_share"), network("queue_loss_share"))
    };
    let (fair, lost, overflowed) = run("limit 100 fq_codel");
    // 20 ms of delay, and a packet of the other flow in transmission for 6 ms.
    assert!(fair < 35.0 && lost > 0.001 && overflowed == 0.0, "{fair} ms, {lost}, {overflowed}");
    let (drop_tail, ..) = run("limit 100");
    assert!(drop_tail > 200.0, "{drop_tail} ms");
}

#[test]
fn a_greedy_flow_uses_the_remaining_bandwidth() {
    let outcome = run(
        json!({
            "duration": "2min",
            "network": { "forward": "delay 50ms rate 1mbit limit 50" },
            "thin": { "probe": { "traffic": "rate 20kbit size 1000", "profile": "thin" } },
            "bulk": { "greedy": { "profile": "lksctp" } },
        }),
        1,
    );
    let value = |name: &str| outcome.quantities[name];
    assert!((value("probe.goodput") / 20e3 - 1.0).abs() < 0.05, "{}", value("probe.goodput"));
    let both = value("probe.goodput") + value("greedy.goodput");
    assert!((0.8e6..1e6).contains(&both), "{both}");
    assert!(value("network.forward.queue_loss_share") > 0.0);
    assert_eq!(value("network.forward.loss_share"), value("network.forward.queue_loss_share"));
    assert!((0.0..0.1).contains(&value("greedy.loss_share")));
    let bins = &outcome.distributions["greedy.goodput_bins"];
    assert_eq!(bins.counts.iter().sum::<u64>(), 1200);
}

#[test]
fn bounds_are_drawn_with_the_measurements() {
    let outcome = run(
        json!({
            "duration": "10min",
            "network": { "forward": "delay 50ms loss 5%", "backward": "delay 50ms" },
            "thin": { "game": {
                "traffic": "every 50ms size 100",
                "profile": "thin",
                "unordered": true,
                "bounds": ["reactive", "doubled", "bundled"],
            } },
        }),
        1,
    );
    let of = |name: &str| outcome.quantities[&format!("game.{name}")];
    let quantiles =
        |name: &str| ["p50", "p99", "p999", "p9999"].map(|part| of(&format!("{name}.{part}")));
    assert_eq!(quantiles("bound.reactive"), [50.0, 150.0, 250.0, 350.0]);
    assert_eq!(quantiles("bound.doubled"), [50.0, 150.0, 150.0, 250.0]);
    assert_eq!(quantiles("bound.bundled"), [50.0, 100.0, 150.0, 200.0]);
    let [measured, over] = ["latency", "over_bound.reactive"].map(quantiles);
    assert_eq!(over, [0, 1, 2, 3].map(|n| measured[n] - [50.0, 150.0, 250.0, 350.0][n]));
    assert!(over[1] > 0.0, "a loss is not known after one round trip: {over:?}");
    let drawn = &outcome.distributions["game.bound.reactive"];
    assert_eq!(drawn.values[..3], [50.0, 150.0, 250.0]);
    assert_eq!(drawn.counts[..3], [950_000_000, 47_500_000, 2_375_000]);
}

#[test]
fn the_least_cost_of_a_quantile_is_reported_with_the_actual_cost() {
    let outcome = |interval: &str| {
        run(
            json!({
                "duration": "10min",
                "network": { "forward": "delay 50ms loss 5%", "backward": "delay 50ms loss 5%" },
                "thin": { "game": {
                    "traffic": format!("{interval} size 100"),
                    "profile": "interactive",
                    "unordered": true,
                    "bounds": ["reactive"],
                } },
            }),
            1,
        )
    };
    let apart = outcome("every 250ms");
    let of = |name: &str| apart.quantities[&format!("game.{name}")];
    let least = of("bound.packets_per_message.p999");
    assert!((least - 1.163_608).abs() < 1e-6, "{least}");
    // One retransmission is enough for the 99th percentile.
    assert!((of("bound.packets_per_message.p99") - 1.0 / 0.9025).abs() < 1e-9);
    let over = of("over_bound.packets_per_message.p999");
    assert!((over - (of("packets_per_message") - least)).abs() < 1e-12, "{over}");
    // Here other messages report a loss early, and the minimum is unknown.
    for interval in ["every 50ms", "poisson 250ms"] {
        let quantities = outcome(interval).quantities;
        assert!(!quantities.keys().any(|name| name.contains("bound.packets_per_message")));
    }
}

/// `interactive-bundling` sends a copy of each message with the next one, and further copies only of messages not
/// acknowledged within a round trip. Its bytes are near the least possible, also if the round-trip time is close to a
/// multiple of the interval.
#[test]
fn one_bundled_copy_costs_hardly_more_than_the_least() {
    for (delay, over_all_copies) in [("46.5ms", 0.0), ("51.5ms", 50.0)] {
        let link = format!("delay {delay} loss 5%");
        let outcome = run(
            json!({
                "duration": "30min",
                "network": { "forward": link, "backward": link },
                "thin": { "game": {
                    "traffic": "every 50ms fast 50ppm size 100",
                    "profile": "interactive-bundling",
                    "unordered": true,
                    "encapsulation": "udp",
                    "bounds": ["bundled", "bundled_once"],
                } },
            }),
            1,
        );
        let of = |name: &str| outcome.quantities[&format!("game.{name}")];
        let packets = of("packets_per_message");
        assert!((1.0..1.03).contains(&packets), "{delay}: {packets} packets");
        let bytes = of("wire_bytes_per_payload_byte");
        assert!(bytes < 2.9, "{delay}: {bytes} bytes");
        let over_least = of("over_bound.wire_bytes_per_payload_byte.p99");
        assert!((1.0..1.15).contains(&over_least), "{delay}: {over_least}");
        for part in ["p99", "p999"] {
            let over = of(&format!("over_bound.bundled_once.{part}"));
            assert!((0.0..5.0).contains(&over), "{delay}, {part}: {over} ms over the bound");
        }
        let over = of("over_bound.bundled.p999") - over_all_copies;
        assert!((0.0..5.0).contains(&over), "{delay}: {over} ms");
    }
}

/// A lost ACK must not count as a slow one, although the copies of the retransmission are later reported as duplicates.
/// With a copy of each retransmission, the second loss of a message is repaired as fast as the first.
#[test]
fn redundant_copies_repair_within_two_round_trips() {
    for interval in ["every 250ms", "every 237ms"] {
        let outcome = run(
            json!({
                "duration": "30min",
                "network": { "forward": "delay 50ms loss 5%", "backward": "delay 50ms loss 5%" },
                "thin": { "game": {
                    "traffic": format!("{interval} size 100"),
                    "profile": "interactive-redundant",
                    "unordered": true,
                    "bounds": ["doubled"],
                } },
            }),
            1,
        );
        let of = |name: &str| outcome.quantities[&format!("game.{name}")];
        assert!(of("retransmissions.redundant") > 100.0, "copies were sent");
        let over = of("over_bound.doubled.p999");
        assert!(over < 10.0, "{interval}: {over} ms over the bound");
    }
}

/// Greedy flows use the whole rate of the bottleneck, headers included.
#[test]
fn the_goodput_of_all_flows_is_the_bottleneck_rate() {
    for encapsulation in ["none", "udp"] {
        let outcome = run(
            json!({
                "duration": "60s",
                "network": { "forward": "delay 20ms rate 1mbit limit 20", "backward": "delay 20ms" },
                "thin": { "game": {
                    "traffic": "every 20ms size 100",
                    "profile": "interactive-redundant",
                    "encapsulation": encapsulation,
                    "connections": 3,
                } },
                "bulk": { "greedy": { "transport": "tcp" } },
            }),
            3,
        );
        let of = |name: &str| outcome.quantities[name];
        let arrived = of("game.arrived_wire_rate") + of("greedy.arrived_wire_rate");
        assert!((970_000.0..=1_000_000.0).contains(&arrived), "{arrived}");
        for flow in ["game", "greedy"] {
            let offered = of(&format!("{flow}.wire_rate"));
            assert!(offered > of(&format!("{flow}.arrived_wire_rate")), "some were lost");
            assert!(of(&format!("{flow}.arrived_wire_rate")) > of(&format!("{flow}.goodput")));
        }
    }
}

/// Repeated SACKs count neither as missing reports nor as any other sign of loss.
#[test]
fn copies_of_sacks_make_no_profile_retransmit() {
    for (profile, _) in rexmit_sctp::recovery::PROFILES {
        let measured = |receiver: &Value| {
            let game = json!({ "traffic": "every 20ms size 100", "profile": profile, "receiver": receiver });
            let flow = json!({
                "duration": "10s",
                "network": { "forward": "delay 50ms" },
                "thin": { "game": game },
            });
            let outcome = run(flow, 1);
            ["retransmissions.all", "two_way.packets_per_message"]
                .map(|name| outcome.quantities[&format!("game.{name}")])
        };
        let ([before, sacks], [after, more]) =
            (measured(&json!({})), measured(&json!({ "ack_copies": "2ms" })));
        assert_eq!(before, after, "{profile}");
        assert!(more > sacks + 0.4, "{profile}: {more} and {sacks} packets");
    }
}

/// A queue of three packets at 1 Mbit/s and 20 ms: the outstanding bytes of a recovery that lasts are many times the window, and a
/// window that followed them would send fifty times the rate of the path.
#[test]
fn a_transfer_through_a_short_queue_does_not_flood_the_path() {
    for (transport, profile) in [
        ("sctp", "mixed"),
        ("sctp", "bulk"),
        ("sctp", "rfc9260"),
        ("tcp", "tcp-cubic"),
        ("tcp", "tcp-sack"),
        ("tcp", "tcp-newreno"),
    ] {
        let flow = json!({ "transport": transport, "profile": profile, "send_buffer": "4mb",
            "receiver": { "receive_buffer": "4mb" } });
        let forward = "delay 10ms rate 1mbit limit 5000b";
        let outcome = run(
            json!({
                "duration": "60s",
                "network": { "forward": forward, "backward": "delay 10ms" },
                "bulk": { "transfer": flow },
            }),
            1,
        );
        let lost = outcome.quantities["network.forward.queue_loss_share"];
        let goodput = outcome.quantities["transfer.goodput"];
        assert!(lost < 0.15, "{profile} loses {lost} of its packets");
        assert!(goodput > 0.75e6, "{profile} has {goodput} bit/s");
    }
}

/// An outage that costs a whole window: ACKs of what is retransmitted have no sample of the round trip, and a window that waited for
/// one would repair itself by a packet per round trip, with all messages behind it.
#[test]
fn messages_beside_a_transfer_arrive_soon_after_an_outage() {
    for profile in ["mixed", "bulk"] {
        let forward = "delay 50ms rate 20mbit limit 250000b loss burst 1% 300ms";
        let outcome = run(
            json!({
                "duration": "60s",
                "drain": "20s",
                "network": { "forward": forward, "backward": "delay 50ms" },
                "thin": { "game": { "traffic": "every 50.0025ms size 60", "unordered": true,
                    "transfer": true, "profile": profile } },
            }),
            1,
        );
        let longest = outcome.quantities["game.latency.max"];
        assert!(longest < 6000.0, "{profile} needs {longest} ms");
        assert!(outcome.quantities["game.undelivered"] < 1.0, "{profile}");
    }
}

/// Ten streams that double their bytes by copies fill a bottleneck of 0.5 Mbit/s with a transfer. Routers that mark make them stop.
#[test]
fn copies_pause_where_routers_mark() {
    let measured = |red: &str| {
        let forward = format!("delay 50ms rate 500kbit limit 20 red 3 9 10% 0.02 {red}");
        let outcome = run(
            json!({
                "duration": "60s",
                "network": { "forward": forward, "backward": "delay 50ms" },
                "bulk": { "greedy": { "transport": "tcp", "profile": "tcp-cubic" } },
                "thin": { "game": { "traffic": "poisson 50ms size 100", "unordered": true,
                    "connections": 10, "profile": "interactive-redundant" } },
            }),
            1,
        );
        let of = |name: &str| outcome.quantities[name];
        (
            of("network.forward.mark_share"),
            of("game.wire_bytes_per_payload_byte"),
            of("greedy.goodput"),
        )
    };
    let (none, with_copies, beside_copies) = measured("");
    let (marked, paused, beside_pauses) = measured("ecn");
    assert!(none == 0.0 && marked > 0.01, "{marked}");
    assert!(paused < 0.8 * with_copies, "{paused} and {with_copies} bytes per byte");
    assert!(beside_pauses > 1.5 * beside_copies, "{beside_pauses} and {beside_copies} bit/s");
}
