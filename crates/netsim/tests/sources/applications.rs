//! The models of applications, compared with the tables from which they were made.

use std::time::Duration;

use rexmit_core::{Instant, Seed};
use rexmit_netsim::source::Application;
use rexmit_netsim::traffic::stats::Row;
use rexmit_netsim::traffic::trace::Message;

/// Petlund 2009, Table 1, and Petlund 2008, Table 1, for Age of Conan and BZFlag: payload avg, min, max in bytes; interarrival avg, med, min, max, 1 %,
/// 99 % in ms; packets/s.
const TABLE: &str = "
casa              175 93 572     7287 307 305 29898 305 29898   0.137
rdp               111 8 1417     318 159 1 12254 2 3892         3.145
skype             236 14 1267    34 40 <1 1671 4 80             29.412
ssh               48 16 752      323 159 <1 76610 32 3616       3.096
anarchy-online    98 8 1333      632 449 7 17032 83 4195        1.582
world-of-warcraft 26 6 1228      314 133 <1 14855 <1 3785       3.185
age-of-conan      80 5 1460      86 57 <1 1375 24 386           11.628
bzflag            30 4 1448      24 <1 <1 540 <1 151            41.667
youtube           1446 112 1448  9 <1 <1 1335 <1 127            111.111
http              1447 64 1448   <1 <1 <1 186 <1 8              >1000
ftp               1447 40 1448   <1 <1 <1 339 <1 <1             >1000
";

/// The bandwidth of each row in bit/s, headers included. Those of World of Warcraft and Age of Conan include 54 bytes
/// of headers per packet, without TCP's timestamps; the others include 66.
const BANDWIDTH: [f64; 11] =
    [269.0, 4497.0, 69e3, 2825.0, 2168.0, 2046.0, 12375.0, 31370.0, 1278e3, 14e6, 82e6];

const MESSAGES: usize = 1_000_000;

fn row(application: Application, seed: u64) -> Row {
    let source = application.source(Instant::ZERO, &Seed::from_u64(seed));
    let message = |(at, bytes): (Instant, usize)| Message {
        at: at - Instant::ZERO,
        bytes: u32::try_from(bytes).unwrap(),
    };
    let messages: Vec<_> = source.take(MESSAGES).map(message).collect();
    Row::of_flows([&messages[..]]).unwrap()
}

/// Whether a figure is the published one: within 10 %, or on the stated side of a bound.
fn agrees(figure: f64, published: &str) -> bool {
    if let Some(bound) = published.strip_prefix('<') {
        figure > 0.0 && figure < bound.parse().unwrap()
    } else if let Some(bound) = published.strip_prefix('>') {
        figure > bound.parse().unwrap()
    } else {
        (figure / published.parse::<f64>().unwrap() - 1.0).abs() <= 0.1
    }
}

#[test]
fn every_model_has_every_figure_of_its_row() {
    let rows = TABLE.lines().filter(|line| !line.is_empty());
    let mut wrong = Vec::new();
    for (application, published) in Application::ALL.into_iter().zip(rows) {
        let mut published = published.split_whitespace();
        assert_eq!(published.next(), Some(application.name()));
        let row = row(application, 1);
        let gaps = row.interarrival.unwrap();
        let figures = [
            row.payload_mean,
            f64::from(row.payload_min),
            f64::from(row.payload_max),
            gaps.mean_ms,
            gaps.median_ms,
            gaps.min_ms,
            gaps.max_ms,
            gaps.p1_ms,
            gaps.p99_ms,
            row.packets_per_second,
        ];
        println!("{} {figures:.3?} {:.0} bit/s", application.name(), row.bits_per_second);
        for (figure, published) in figures.into_iter().zip(published.by_ref()) {
            if !agrees(figure, published) {
                wrong.push((application, figure, published));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn every_model_has_the_bandwidth_of_its_row() {
    for (application, published) in Application::ALL.into_iter().zip(BANDWIDTH) {
        let row = row(application, 2);
        let has_no_timestamps =
            matches!(application, Application::WorldOfWarcraft | Application::AgeOfConan);
        let excess = if has_no_timestamps { 12.0 } else { 0.0 };
        let bandwidth = row.bits_per_second - excess * 8.0 * row.packets_per_second;
        assert!(
            (bandwidth / published - 1.0).abs() <= 0.1,
            "{}: {bandwidth} bit/s instead of {published}",
            application.name()
        );
    }
}

#[test]
fn a_radar_sends_bursts_of_four_or_five() {
    let source = Application::Casa.source(Instant::ZERO, &Seed::from_u64(3));
    let times: Vec<_> = source.take(10_000).map(|(at, _)| at).collect();
    let mut len = 1;
    let mut lengths = Vec::new();
    for pair in times.windows(2) {
        if pair[1] - pair[0] > Duration::from_secs(10) {
            lengths.push(len);
            len = 0;
        }
        len += 1;
    }
    let whole = &lengths[1..];
    assert!(whole.iter().all(|len| [4, 5].contains(len)), "{whole:?}");
    assert!(whole.contains(&4) && whole.contains(&5));
}

#[test]
fn names_lead_back_and_seeds_decide() {
    for application in Application::ALL {
        assert_eq!(Application::by_name(application.name()), Some(application));
        let draw = |seed| {
            let source = application.source(Instant::from_millis(5), &Seed::from_u64(seed));
            source.take(100).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        assert_eq!(draw(1)[0].0, Instant::from_millis(5));
    }
    assert_eq!(Application::by_name("quake"), None);
}
