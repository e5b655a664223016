//! Rates, frames and requests.

use std::time::Duration;

use rexmit_core::{BitRate, Instant, Seed};
use rexmit_netsim::source::{Bursts, ConstantRate, SourceError, VariableRate, WebClient};

const MS: Duration = Duration::from_millis(1);

fn seed() -> Seed {
    Seed::from_u64(1)
}

fn at_ms(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

/// Bits per second until `end`.
fn rate(messages: &[(Instant, usize)], end: Instant) -> f64 {
    let bytes: usize = messages.iter().map(|message| message.1).sum();
    bytes as f64 * 8.0 / end.as_secs_f64()
}

#[test]
fn a_constant_rate_is_exact_from_start_to_stop() {
    // 3 µs and a third between two packets.
    let config = ConstantRate {
        rate: BitRate::new(2_400_000_000).unwrap(),
        packet_bytes: 1000,
        start: at_ms(500),
        stop: at_ms(1500),
        ..ConstantRate::default()
    };
    let packets: Vec<_> = config.source(&seed()).unwrap().collect();
    assert_eq!(packets.len(), 300_000);
    assert_eq!(packets[0], (at_ms(500), 1000));
    assert_eq!(packets[30_000].0, at_ms(600), "no drift");
    assert!(
        packets.windows(2).all(|pair| [3333, 3334].contains(&(pair[1].0 - pair[0].0).as_nanos()))
    );
}

#[test]
fn phase_and_jitter_are_chance_and_keep_order_and_rate() {
    let config = ConstantRate {
        rate: BitRate::new(800_000).unwrap(),
        packet_bytes: 1000,
        stop: at_ms(100_000),
        has_random_phase: true,
        jitter: 1.0,
        ..ConstantRate::default()
    };
    let draw = |seed| config.source(&Seed::from_u64(seed)).unwrap().collect::<Vec<_>>();
    let packets = draw(1);
    assert!(packets.len().abs_diff(10_000) <= 1, "{}", packets.len());
    assert!(packets.windows(2).all(|pair| pair[0].0 <= pair[1].0));
    let gaps = packets.windows(2).map(|pair| pair[1].0 - pair[0].0);
    let (min, max) = (gaps.clone().min().unwrap(), gaps.max().unwrap());
    assert!(min < MS && max > 19 * MS && max <= 20 * MS, "{min:?} {max:?}");
    let phases = [1, 2, 3, 4].map(|seed| draw(seed)[0].0);
    assert!(phases.iter().all(|&phase| phase < at_ms(20)));
    assert!(phases.windows(2).all(|pair| pair[0] != pair[1]));
    assert_eq!(packets, draw(1));
}

#[test]
fn frames_have_the_mean_and_the_variation() {
    let config = VariableRate { stop: at_ms(10_000_000), ..VariableRate::default() };
    let frames: Vec<_> = config.source(&seed()).unwrap().collect();
    assert_eq!(frames.len(), 250_000);
    assert!(frames.windows(2).all(|pair| pair[1].0 - pair[0].0 == 40 * MS));
    let mean = frames.iter().map(|frame| frame.1 as f64).sum::<f64>() / frames.len() as f64;
    let variance = frames.iter().map(|frame| (frame.1 as f64 - mean).powi(2)).sum::<f64>();
    let variation = (variance / frames.len() as f64).sqrt() / mean;
    assert!((mean - 5000.0).abs() < 25.0, "{mean}");
    assert!((variation - 0.5).abs() < 0.01, "{variation}");
    let constant = VariableRate { size_variation: 0.0, ..config };
    assert!(constant.source(&seed()).unwrap().all(|(_, bytes)| bytes == 5000));
}

#[test]
fn bursts_change_the_peak_and_not_the_mean() {
    let mean_on = 400 * MS;
    let bursts = Bursts { mean_on, mean_off: 3 * mean_on };
    let end = at_ms(40_000_000);
    let config = VariableRate { bursts: Some(bursts), stop: end, ..VariableRate::default() };
    assert_eq!(config.mean_frame_bytes(), 20_000.0);
    let frames: Vec<_> = config.source(&seed()).unwrap().collect();
    // 25,000 bursts; the deviation of their number and lengths is around 1 %.
    let rate = rate(&frames, end);
    assert!((rate / 1e6 - 1.0).abs() < 0.03, "{rate}");
    assert!((frames.len() as f64 / 250_000.0 - 1.0).abs() < 0.03);
    // The on times determine the number of back-to-back frames:
    // exp(−40 ms / 400 ms), and rarely one off time fits in between.
    let close = frames.windows(2).filter(|pair| pair[1].0 - pair[0].0 == 40 * MS).count();
    let share = close as f64 / frames.len() as f64;
    assert!((share - 0.905).abs() < 0.01, "{share}");
    assert!(frames.iter().all(|frame| frame.0.as_nanos() % 40_000_000 == 0));
}

#[test]
fn requests_have_exponential_times_and_pareto_sizes() {
    let start = at_ms(1000);
    let end = at_ms(1000 + 655 * 1_000_000);
    let client = WebClient { start, stop: end, ..WebClient::default() };
    let requests: Vec<_> = client.source(&seed()).unwrap().collect();
    let count = requests.len() as f64;
    assert!((count / 1e6 - 1.0).abs() < 0.004, "{count}");
    // An exponential time is over its mean with probability 1/e.
    let long = requests.windows(2).filter(|pair| pair[1].0 - pair[0].0 > 655 * MS).count();
    assert!((long as f64 / count - (-1f64).exp()).abs() < 0.002, "{long}");
    let sizes = requests.iter().map(|request| request.1);
    assert!(sizes.clone().all(|size| (1000..=64_000_000).contains(&size)));
    // The standard deviation of the mean of this many is 2 %.
    let mean = sizes.clone().sum::<usize>() as f64 / count;
    assert!((mean / 9200.0 - 1.0).abs() < 0.06, "{mean}");
    // Pareto: the share above 10,000 over that above 2,000 is that above 5,000 over that above
    // 1,000, which is all.
    let above = |bytes| sizes.clone().filter(|&size| size > bytes).count() as f64;
    let (far, near) = (above(10_000) / above(2000), above(5000) / count);
    assert!((far / near - 1.0).abs() < 0.02, "{far} {near}");
}

#[test]
fn impossible_sources_are_refused() {
    let seed = seed();
    let empty = ConstantRate { packet_bytes: 0, ..ConstantRate::default() };
    assert!(matches!(empty.source(&seed), Err(SourceError::ZeroSize(_))));
    for jitter in [-0.1, 1.1, f64::NAN] {
        let config = ConstantRate { jitter, ..ConstantRate::default() };
        assert!(matches!(config.source(&seed), Err(SourceError::OutOfRange { .. })));
    }
    let standing = VariableRate { frame_interval: Duration::ZERO, ..VariableRate::default() };
    assert!(matches!(standing.source(&seed), Err(SourceError::ZeroInterval(_))));
    let tiny = VariableRate { rate: BitRate::new(100).unwrap(), ..VariableRate::default() };
    assert!(matches!(tiny.source(&seed), Err(SourceError::ZeroSize(_))));
    let flicker = Bursts { mean_on: Duration::ZERO, mean_off: MS };
    let flickering = VariableRate { bursts: Some(flicker), ..VariableRate::default() };
    assert!(matches!(flickering.source(&seed), Err(SourceError::OutOfRange { .. })));
    let web = WebClient { mean_interval: Duration::ZERO, ..WebClient::default() };
    assert!(matches!(web.source(&seed), Err(SourceError::ZeroInterval(_))));
}

#[test]
fn sources_end_at_the_end_of_time() {
    let start = Instant::FAR_FUTURE - Duration::from_secs(1);
    let seed = seed();
    let constant = ConstantRate { start, ..ConstantRate::default() };
    assert_eq!(constant.source(&seed).unwrap().count(), 56);
    let frames = VariableRate { start, ..VariableRate::default() };
    assert_eq!(frames.source(&seed).unwrap().count(), 25);
    let web = WebClient { start, ..WebClient::default() };
    assert!(web.source(&seed).unwrap().count() < 100);
}
