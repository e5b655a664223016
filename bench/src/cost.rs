//! The cost of idle mechanisms: a bulk transfer in memory without loss, so that no stream is thin, with all mechanisms
//! of a profile, compared with the same profile without them.
//!
//! Both run alternately in one process, in slices of equal work, so that other load on the machine affects both. The
//! cost of disabled mechanisms cannot be measured in one run, because code without them is another program.

use std::time::Duration;

use rexmit_tcp::recovery::{LossDetection, RecoveryConfig, Reordering, SpuriousConfig, ThinConfig};

use crate::report::{Row, Target};
use crate::sample::{cpu_time, median, median_ratio};
use crate::{bulk, tcp};

/// The profiles with mechanisms, and the largest cost ratio of each.
const PROFILES: [(&str, f64); 6] = [
    ("thin", 1.02),
    ("thin-bundling", 1.02),
    ("tcp-thin", 1.02),
    ("tcp-thin-rdb", 1.02),
    ("rr", 1.01),
    ("tcp-rr", 1.01),
];
const MESSAGE_BYTES: usize = 1024;
/// The bytes transferred before the other configuration runs.
const SLICE_BYTES: u64 = 64 << 20;
/// The number of slices of each configuration in one repetition.
const SLICES: usize = 6;
const NOTE: &str = "Processor time per byte, all mechanisms on against all off, in turns within one \
    process.";

/// Transfers this many bytes at each call.
type Carry = Box<dyn FnMut(u64)>;

/// A bulk transfer with `profile`, whose mechanisms are enabled or disabled; `None` if there is no such profile.
#[must_use]
pub fn carry(profile: &str, is_on: bool) -> Option<Carry> {
    let with = |recovery: RecoveryConfig, loss_detection| {
        if is_on {
            return recovery;
        }
        let tcp = recovery.tcp.eifel(None);
        recovery
            .with_tcp(tcp)
            .with_thin(ThinConfig::OFF)
            .spurious(SpuriousConfig::OFF)
            .loss_detection(loss_detection)
    };
    if let Some(recovery) = RecoveryConfig::tcp_profile(profile) {
        let plain = LossDetection::Scoreboard { reordering: Reordering::Fixed };
        return Some(Box::new(tcp::ours_with(&with(recovery, plain))));
    }
    let recovery = with(RecoveryConfig::profile(profile)?, LossDetection::RFC_9260);
    let mut carry = bulk::ours_with(&recovery, MESSAGE_BYTES);
    Some(Box::new(move |bytes| carry(bytes / MESSAGE_BYTES as u64)))
}

/// Every profile with mechanisms, `repetitions` times.
#[must_use]
pub fn measure(repetitions: usize) -> Vec<Row> {
    PROFILES.iter().map(|&(profile, most)| row(profile, most, repetitions)).collect()
}

fn row(profile: &str, most: f64, repetitions: usize) -> Row {
    let (mut on, mut off) = (Vec::new(), Vec::new());
    for repetition in 0..repetitions {
        let [with, without] = turns(profile, repetition % 2 == 0);
        on.push(with.as_secs_f64());
        off.push(without.as_secs_f64());
    }
    let speed = |seconds: &[f64]| {
        let bytes = (SLICE_BYTES * SLICES as u64) as f64;
        format!("{:.0} MB/s", bytes / median(seconds) / 1e6)
    };
    Row {
        what: format!("bulk with {profile}, thick, nothing lost"),
        ours: speed(&on),
        against: "mechanisms off".into(),
        theirs: speed(&off),
        ratio: Some(median_ratio(&on, &off)),
        target: Target::AtMost(most),
        note: NOTE.into(),
    }
}

/// The processor time of all slices with enabled and with disabled mechanisms, with new endpoints.
fn turns(profile: &str, is_on_first: bool) -> [Duration; 2] {
    let ready = |is_on| {
        let mut carry = carry(profile, is_on).expect("a profile");
        carry(SLICE_BYTES);
        carry
    };
    let mut contestants = [(true, ready(true)), (false, ready(false))];
    if !is_on_first {
        contestants.reverse();
    }
    let mut times = [Duration::ZERO; 2];
    for _ in 0..SLICES {
        for (is_on, carry) in &mut contestants {
            let ((), elapsed) = cpu_time(|| carry(SLICE_BYTES));
            times[usize::from(!*is_on)] += elapsed;
        }
    }
    times
}
