//! The result of a comparison in one or two sentences.

use std::time::Duration;

use crate::measure::{Comparison, LatencySummary, ProfileOutcome};

/// The share by which a profile's tail latency must be shorter to be named as better than the first
/// profile.
const NOTICEABLE: f64 = 0.05;

/// A sentence with the latency of the first profile, and of the profile with the lowest. `None` if
/// the first run delivered nothing.
#[must_use]
pub fn sentence(comparison: &Comparison) -> Option<String> {
    let first = comparison.runs.first()?;
    let latency = first.latency.as_ref()?;
    let (share, tail) = tail(first, latency);
    let mut text = format!(
        "With {}, half of the messages took {} or less, but 1 in {share} waited {} or longer, and \
         one {}.",
        first.profile,
        words(latency.p50),
        words(tail),
        words(latency.max)
    );
    // Undelivered messages waited longest.
    let is_comparable = |run: &&ProfileOutcome| {
        run.messages == first.messages && run.undelivered <= first.undelivered
    };
    let others = comparison.runs[1..].iter().filter(is_comparable);
    let tails = others.filter_map(|run| Some((run, self::tail(run, run.latency.as_ref()?).1)));
    if let Some((best, least)) = tails.min_by_key(|(_, tail)| *tail) {
        let is_better = least.as_secs_f64() < tail.as_secs_f64() * (1.0 - NOTICEABLE);
        if is_better {
            let least = words(least);
            text += &format!(" With {}, 1 in {share} waited {least} or longer.", best.profile);
        } else {
            text += " No other profile reduced this noticeably.";
        }
    }
    Some(text)
}

/// The rarest share of messages that several messages of the run represent, 1 in 1000 or 1 in 100,
/// and its latency.
fn tail(run: &ProfileOutcome, latency: &LatencySummary) -> (u32, Duration) {
    if run.messages >= 2000 { (1000, latency.p999) } else { (100, latency.p99) }
}

fn words(duration: Duration) -> String {
    match duration.as_secs_f64() {
        seconds if seconds < 1.0 => format!("{:.0} ms", seconds * 1e3),
        seconds => format!("{seconds:.1} s"),
    }
}

#[cfg(test)]
mod tests {
    use rexmit_core::Instant;

    use super::*;
    use crate::measure::{MessageRecord, Run};

    /// 98 messages of 50 ms, two of `worst`.
    fn run(profile: &str, worst_ms: u64) -> Run {
        let record = |sequence: u64| MessageRecord {
            connection: 0,
            stream: 0,
            sequence,
            payload_bytes: 100,
            intended: Instant::ZERO,
            delivered: Some(Instant::from_millis(if sequence < 98 { 50 } else { worst_ms })),
            transmissions: None,
        };
        Run { profile: profile.into(), messages: (0..100).map(record).collect(), ..Run::default() }
    }

    #[test]
    fn names_the_tail_and_the_profile_with_the_shortest() {
        let comparison = Comparison::new("t", 1).with_run(&run("rfc9260", 1250));
        let alone = "With rfc9260, half of the messages took 50 ms or less, but 1 in 100 waited \
                     1.2 s or longer, and one 1.2 s.";
        assert_eq!(sentence(&comparison).as_deref(), Some(alone));
        let mut broken = run("broken", 60);
        broken.messages[99].delivered = None;
        let worse = comparison.clone().with_run(&run("slow", 2000)).with_run(&broken);
        let same = format!("{alone} No other profile reduced this noticeably.");
        assert_eq!(sentence(&worse), Some(same));
        let better = worse.with_run(&run("thin", 300)).with_run(&run("thick", 800));
        let better = sentence(&better).unwrap();
        assert_eq!(better, format!("{alone} With thin, 1 in 100 waited 300 ms or longer."));
    }

    #[test]
    fn no_sentence_without_deliveries() {
        assert_eq!(sentence(&Comparison::new("t", 1)), None);
        assert_eq!(sentence(&Comparison::new("t", 1).with_run(&Run::default())), None);
    }
}
