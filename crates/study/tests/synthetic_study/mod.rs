//! A made-up page of a study, with a figure of each kind, for viewing and testing the page.
//!
//! None of this is a measurement: the numbers are drawn around guesses of plausible size.

mod figures;

use std::collections::BTreeMap;

use rexmit_core::{Rng, Seed};
use rexmit_lab::scenario::{Described, Unit};
use rexmit_study::page::{AxisHead, Cell, StudyHead, StudyPage};
use rexmit_study::{Coordinate, Estimate, Instance, Verdict, VerdictKind};

pub(crate) const SYSTEMS: [&str; 6] = [
    "lksctp",
    "linear timeouts only",
    "RTO.min 200 ms only",
    "fast retransmit on the first indication only",
    "all modifications",
    "TCP New Reno",
];
/// The latency of each system as a fraction of the first one's.
const SLOWNESS: [f64; 6] = [1.0, 0.93, 0.52, 0.61, 0.27, 0.44];
const RTTS: [u32; 4] = [50, 100, 200, 400];
const SEEDS: u64 = 10;

/// The whole page.
pub(crate) fn page(seed: u64) -> StudyPage {
    let mut rng = Seed::from_u64(seed).rng();
    StudyPage {
        study: head(),
        axes: vec![
            AxisHead { name: "system".into(), labels: SYSTEMS.map(String::from).to_vec() },
            AxisHead { name: "rtt".into(), labels: RTTS.map(rtt_label).to_vec() },
        ],
        cells: cells(&mut rng),
        quantities: quantities(),
        gains: ["game.rtx1.mean", "game.rtx1.p99", "game.latency.max"].map(String::from).to_vec(),
        costs: ["game.wire_bytes_per_payload_byte", "game.spurious_share", "game.collapses"]
            .map(String::from)
            .to_vec(),
        figures: figures::all(&mut rng),
        claims: claims(),
        notes: Vec::new(),
    }
}

fn head() -> StudyHead {
    StudyHead {
        name: "synthetic-fig8a".into(),
        title: "Synthetic data: latency by the number of retransmissions, uniform loss".into(),
        source: "Nobody 2009, Fig. 8a".into(),
        about:
            "Messages of 100 bytes leave every 250 ms over a path that loses 5 % of all packets; \
                what is shown is when those arrived that had to be sent again.\n\nNothing of this \
                was measured: a generator made it up, so that the page can be looked at."
                .into(),
        version: "0.0.0-synthetic".into(),
        setting: vec![
            at("duration", "2h"),
            at("network.forward", "delay 50ms loss 5%"),
            at("network.backward", "delay 50ms loss 5%"),
            at("thin.game.traffic", "every 250ms size 100"),
        ],
        runs: SYSTEMS.len() as u64 * RTTS.len() as u64 * SEEDS,
        simulated_s: 240.0 * 7200.0,
        seeds: (1..=SEEDS).collect(),
        arguments: "synthetic-fig8a".into(),
        file: "title = \"Latency by the number of retransmissions\"\nseeds = 10\n\n[scenario]\n\
               duration = \"2h\"\n"
            .into(),
    }
}

pub(crate) fn at(axis: &str, label: &str) -> Coordinate {
    Coordinate { axis: axis.into(), label: label.into() }
}

pub(crate) fn rtt_label(rtt: u32) -> String {
    format!("{rtt} ms")
}

/// A number near `about`.
pub(crate) fn near(rng: &mut Rng, about: f64, spread: f64) -> f64 {
    about * (1.0 + spread * (rng.unit() + rng.unit() + rng.unit() - 1.5))
}

fn quantities() -> Vec<Described> {
    let described = |name: &str, unit, about: &str| Described {
        name: format!("game.{name}"),
        unit,
        about: about.into(),
    };
    let mut all = vec![
        described(
            "wire_bytes_per_payload_byte",
            Unit::Ratio,
            "Bytes on the wire per byte of payload",
        ),
        described("spurious_share", Unit::Share, "Retransmissions that were spurious, of all"),
        described("collapses", Unit::Count, "How often the window fell to one packet"),
        described("goodput", Unit::BitsPerSecond, "Payload delivered per second"),
        described("undelivered", Unit::Count, "Messages that never arrived"),
    ];
    for what in ["latency", "transport_latency", "rtx1", "rtx2", "rtx3"] {
        for statistic in ["mean", "p50", "p99", "max"] {
            let about = format!("Delivery latency of {what}, {statistic}");
            all.push(described(&format!("{what}.{statistic}"), Unit::Milliseconds, &about));
        }
    }
    all
}

fn cells(rng: &mut Rng) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (system, slowness) in SYSTEMS.iter().zip(SLOWNESS) {
        for rtt in RTTS {
            let point = vec![at("system", system), at("rtt", &rtt_label(rtt))];
            let base = slowness * (900.0 + 2.0 * f64::from(rtt));
            cells.push(Cell { point, quantities: measured(rng, base, slowness) });
        }
    }
    cells
}

fn measured(rng: &mut Rng, base: f64, slowness: f64) -> BTreeMap<String, Estimate> {
    let about = |name: &str| match name.rsplit('.').next() {
        Some("mean") => base,
        Some("p50") => base * 0.8,
        Some("p99") => base * 3.1,
        Some("max") => base * 11.0,
        Some("spurious_share") => 0.0003 + 0.07 * (1.0 - slowness),
        Some("collapses") => 1200.0 / slowness,
        Some("goodput") => 3199.0,
        Some("undelivered") => 0.0,
        _ => 1.6 + 0.5 * (1.0 - slowness),
    };
    let quantities = quantities().into_iter();
    let mut all: BTreeMap<String, Estimate> =
        quantities.map(|of| (of.name.clone(), estimate(rng, about(&of.name)))).collect();
    // Where there were few losses, some had no third retransmission.
    if slowness < 0.3 {
        all.remove("game.rtx3.p99");
    }
    all
}

pub(crate) fn estimate(rng: &mut Rng, about: f64) -> Estimate {
    let mean = near(rng, about, 0.06);
    let half = near(rng, about * 0.03, 0.5).abs();
    Estimate {
        seeds: SEEDS,
        mean,
        interval: Some((mean - half, mean + half)),
        range: (mean - 2.0 * half, mean + 2.0 * half),
    }
}

fn claims() -> Vec<Verdict> {
    let instance = |rtt, verdict, finding: &str| Instance {
        point: vec![at("rtt", &rtt_label(rtt))],
        verdict,
        left: None,
        right: None,
        finding: finding.into(),
    };
    let holds = "312.4 ± 3.1 ms against 1019 ± 8 ms, paired over 10 seeds: 706 ± 9 ms less";
    vec![
        Verdict {
            says: "All modifications together give the lowest mean of the first retransmission".into(),
            means: "game.rtx1.mean at system = all modifications is below that at system = lksctp".into(),
            source_value: Some("1725 ms against 3521 ms".into()),
            verdict: VerdictKind::Holds,
            instances: RTTS.map(|rtt| instance(rtt, VerdictKind::Holds, holds)).to_vec(),
        },
        Verdict {
            says: "The maximum of the second retransmission is at most a third".into(),
            means: "game.rtx2.max at system = all modifications is below 0.33 times that at lksctp".into(),
            source_value: None,
            verdict: VerdictKind::DoesNotHold,
            instances: vec![
                instance(50, VerdictKind::Holds, holds),
                instance(100, VerdictKind::DoesNotHold, "4120 ± 310 ms against 2870 ± 140 ms"),
                instance(200, VerdictKind::Undecided, "3020 ± 450 ms against 2990 ± 310 ms"),
            ],
        },
        Verdict {
            says: "Early fast retransmit has more spurious retransmissions".into(),
            means: "game.spurious_share at system = fast retransmit on the first indication only is above 0.05".into(),
            source_value: Some("6.7 % against 0.03 %".into()),
            verdict: VerdictKind::Undecided,
            instances: vec![instance(100, VerdictKind::Undecided, "5.10 ± 0.24 % against 5 %")],
        },
    ]
}
