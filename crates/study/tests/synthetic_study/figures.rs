//! A figure of each kind.

use rexmit_core::Rng;
use rexmit_lab::scenario::Unit;
use rexmit_study::{
    AxisPlace, DrawnAxis, DrawnFigure, DrawnGroup, DrawnPoint, FigureKind, StatedValue,
};

use super::{RTTS, SLOWNESS, SYSTEMS, at, estimate, near, rtt_label};

pub(crate) fn all(rng: &mut Rng) -> Vec<DrawnFigure> {
    vec![
        bars(rng),
        lines(rng),
        stacked(rng),
        scatter(rng),
        tails(rng, FigureKind::Cdf),
        tails(rng, FigureKind::Ccdf),
        series(rng),
        lines_over_names(rng),
    ]
}

fn axis(label: &str, unit: Unit, log: bool) -> DrawnAxis {
    let (categories, places) = (Vec::new(), Vec::new());
    DrawnAxis { label: label.into(), unit, log, range: None, categories, places }
}

fn categories(label: &str, categories: Vec<String>) -> DrawnAxis {
    DrawnAxis { categories, ..axis(label, Unit::Count, false) }
}

fn figure(
    title: &str,
    kind: FigureKind,
    axes: [DrawnAxis; 2],
    groups: Vec<DrawnGroup>,
) -> DrawnFigure {
    let [x, y] = axes;
    let about = "Made up by a generator. Lower is better.".into();
    DrawnFigure { title: title.into(), about, kind, x, y, groups, stated: Vec::new() }
}

/// One group per system, with the points that `points` returns for its slowness.
fn by_system(mut points: impl FnMut(f64) -> Vec<DrawnPoint>) -> Vec<DrawnGroup> {
    let group = |(system, slowness): (&&str, f64)| DrawnGroup {
        label: (*system).into(),
        point: vec![at("system", system)],
        points: points(slowness),
    };
    SYSTEMS.iter().zip(SLOWNESS).map(group).collect()
}

fn measured(rng: &mut Rng, x: f64, about: f64) -> DrawnPoint {
    let estimate = estimate(rng, about);
    DrawnPoint { x, y: estimate.mean, interval: estimate.interval }
}

fn bars(rng: &mut Rng) -> DrawnFigure {
    let names =
        ["1st retransmission, mean", "2nd retransmission, mean", "3rd retransmission, mean"];
    let groups = by_system(|slowness| {
        (0..3).map(|k| measured(rng, f64::from(k), 900.0 * slowness * f64::from(1 << k))).collect()
    });
    let axes = [
        categories("", names.map(String::from).to_vec()),
        axis("delivery latency", Unit::Milliseconds, false),
    ];
    let stated = vec![StatedValue { x: Some(1.0), y: 1500.0, of: Some(SYSTEMS[0].into()) }];
    let bars = figure("Latency by the number of retransmissions", FigureKind::Bars, axes, groups);
    DrawnFigure { stated, ..bars }
}

fn lines(rng: &mut Rng) -> DrawnFigure {
    let groups = by_system(|slowness| {
        RTTS.iter()
            .map(|&rtt| measured(rng, rtt.into(), slowness * (900.0 + 2.0 * f64::from(rtt))))
            .collect()
    });
    let place = |&rtt: &u32| AxisPlace { at: rtt.into(), point: vec![at("rtt", &rtt_label(rtt))] };
    let x = DrawnAxis {
        places: RTTS.iter().map(place).collect(),
        ..axis("round-trip time", Unit::Milliseconds, false)
    };
    let y = axis("mean of the first retransmission", Unit::Milliseconds, false);
    let stated = vec![StatedValue { x: Some(RTTS[0].into()), y: 1200.0, of: None }];
    let lines = figure("Latency over the round-trip time", FigureKind::Lines, [x, y], groups);
    DrawnFigure { stated, ..lines }
}

/// The same with a category axis.
fn lines_over_names(rng: &mut Rng) -> DrawnFigure {
    let mut figure = lines(rng);
    figure.title = "Latency over names".into();
    let place = |(at, place): (usize, AxisPlace)| AxisPlace { at: at as f64, ..place };
    figure.x.places = figure.x.places.into_iter().enumerate().map(place).collect();
    figure.x.categories = RTTS.map(rtt_label).to_vec();
    figure.stated[0].x = Some(0.0);
    for group in &mut figure.groups {
        for (at, point) in group.points.iter_mut().enumerate() {
            point.x = at as f64;
        }
    }
    figure
}

fn stacked(rng: &mut Rng) -> DrawnFigure {
    let mut names = Vec::new();
    let mut places = Vec::new();
    for system in SYSTEMS {
        for nth in ["1st", "2nd"] {
            places.push(AxisPlace { at: names.len() as f64, point: vec![at("system", system)] });
            names.push(format!("{system}, {nth}"));
        }
    }
    let shares = [("timeout", 0.3), ("fast retransmit", 0.45), ("bundled", 0.15)];
    let group = |(label, share): (&str, f64)| DrawnGroup {
        label: label.into(),
        point: Vec::new(),
        points: (0..names.len()).map(|x| measured(rng, x as f64, share)).collect(),
    };
    let groups = shares.into_iter().map(group).collect();
    let x = DrawnAxis { places, ..categories("", names) };
    let y = axis("share of retransmissions", Unit::Share, false);
    figure("What sent them again", FigureKind::StackedBars, [x, y], groups)
}

fn scatter(rng: &mut Rng) -> DrawnFigure {
    let groups = by_system(|slowness| {
        let mut point = || {
            let x = near(rng, 0.05, 0.5);
            let y = near(rng, 900.0 * slowness, 0.4) * (1.0 + 200.0 * x * rng.unit().powi(4));
            DrawnPoint { x, y, interval: None }
        };
        (0..170).map(|_| point()).collect()
    });
    let axes =
        [axis("loss", Unit::Share, false), axis("maximum latency", Unit::Milliseconds, true)];
    figure("Loss and the maximum latency of each stream", FigureKind::Scatter, axes, groups)
}

fn tails(rng: &mut Rng, kind: FigureKind) -> DrawnFigure {
    let is_falling = kind == FigureKind::Ccdf;
    let groups = by_system(|slowness| {
        let mut waits: Vec<f64> = (0..40_000).map(|_| wait(rng, slowness)).collect();
        waits.sort_by(f64::total_cmp);
        let count = waits.len() as f64;
        let point = |(at, &x): (usize, &f64)| {
            let y =
                if is_falling { (count - at as f64) / count } else { (at as f64 + 1.0) / count };
            DrawnPoint { x, y, interval: None }
        };
        // The largest values one by one, as on pages of real runs.
        let is_drawn = |(at, _): &(usize, &f64)| at % 40 == 0 || at + 500 > waits.len();
        waits.iter().enumerate().filter(is_drawn).map(point).collect()
    });
    let range = (!is_falling).then_some((0.0, 600.0));
    let x = DrawnAxis { range, ..axis("delivery latency", Unit::Milliseconds, is_falling) };
    let label = if is_falling {
        "share that waited at least so long"
    } else {
        "share that waited at most so long"
    };
    let y = axis(label, Unit::Share, is_falling);
    figure(
        if is_falling { "The tail of the latency" } else { "Distribution of the latency" },
        kind,
        [x, y],
        groups,
    )
}

/// The path with its queue, and a waiting time per loss, each longer than the previous one.
fn wait(rng: &mut Rng, slowness: f64) -> f64 {
    let mut wait = 50.0 + 250.0 * slowness * rng.unit();
    let mut timeout = 1000.0 * slowness;
    while rng.chance(0.05) {
        wait += near(rng, timeout, 0.3);
        timeout *= 2.0;
    }
    wait
}

fn series(rng: &mut Rng) -> DrawnFigure {
    let groups = by_system(|slowness| {
        let mut rto = 1000.0 * slowness;
        let mut next = |second: u32| {
            rto = if rng.chance(0.03) { rto * 2.0 } else { 0.9 * rto + 100.0 * slowness };
            DrawnPoint { x: f64::from(second), y: rto, interval: None }
        };
        (0..600).map(&mut next).collect()
    });
    let axes = [
        axis("time since the run began", Unit::Seconds, false),
        axis("retransmission timeout", Unit::Milliseconds, false),
    ];
    let stated = vec![StatedValue { x: None, y: 1000.0, of: None }];
    let series = figure("The retransmission timeout over time", FigureKind::Series, axes, groups);
    DrawnFigure { stated, ..series }
}
