//! The analysis of captures, compared with the ledger of the same flows.

use std::path::PathBuf;

use rexmit_lab::analysis::{Analysis, Cause, DirectionAnalysis};
use rexmit_netsim::network::{SharedBuffer, TapPoint};
use rexmit_sctp::recovery::ThinConfig;

use super::*;

/// A flow with three captures: one file with both hosts, one of the sender, and one of the receiver.
struct Captured {
    copies: CopyStatistics,
    both: PathBuf,
    ends: [PathBuf; 2],
}

fn captured<T: Traced>(
    name: &str,
    recovery: &RecoveryConfig,
    plan: &ThinPlan,
    paths: [&str; 2],
    number: u64,
) -> Captured {
    let ledger = T::ledger();
    let seed = Seed::from_u64(number);
    let mut flow = Flow::new::<T>(recovery, plan, paths, &seed, ledger.sink());
    rexmit_lab::hosts::set_ip_protocols(&mut flow.network, flow.hosts);
    flow.network.add_observer(ledger.observer(flow.hosts[0]));
    let [sender, receiver] = flow.hosts.map(TapPoint::Host);
    let taps = [vec![sender, receiver], vec![sender], vec![receiver]].map(|points| {
        let buffer = SharedBuffer::default();
        (flow.network.tap(&points, buffer.clone()).unwrap(), buffer)
    });
    flow.run(Instant::from_millis(400_000));
    let files = ["both", "sender", "receiver"].map(|end| {
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{number}-{end}.pcapng"))
    });
    for ((tap, buffer), file) in taps.into_iter().zip(&files) {
        flow.network.finish_tap(tap).unwrap();
        std::fs::write(file, buffer.bytes()).unwrap();
    }
    let [both, sender, receiver] = files;
    Captured { copies: ledger.statistics(), both, ends: [sender, receiver] }
}

fn every(interval_ms: u64, count: u64) -> ThinPlan {
    let source = (0..count).map(move |n| (Instant::from_millis(1000 + interval_ms * n), 100));
    ThinPlan::new(source, Instant::FAR_FUTURE)
}

fn one(file: &std::path::Path, other_end: Option<&std::path::Path>) -> DirectionAnalysis {
    let mut directions = Analysis::open(file, other_end).unwrap().directions;
    assert_eq!(directions.len(), 1, "only one side sends data");
    directions.remove(0)
}

fn profile(name: &str) -> RecoveryConfig {
    let of_tcp = || RecoveryConfig::tcp_profile(name);
    RecoveryConfig::profile(name).or_else(of_tcp).expect("a profile")
}

const MESSAGES: u64 = 1500;

/// With the packets of both hosts, every figure equals that of the ledger.
fn agrees<T: Traced>(name: &str) -> DirectionAnalysis {
    let paths = ["delay 50ms loss 5%", "delay 50ms loss 5%"];
    let captured = captured::<T>(name, &profile(name), &every(80, MESSAGES), paths, 7);
    let (copies, found) = (&captured.copies, one(&captured.both, None));
    assert!(found.is_exact);
    assert_eq!((found.sent.ranges, found.sent.new_bytes), (copies.units, MESSAGES * 100));
    assert_eq!(found.sent.packets, copies.packets, "{name}");
    assert_eq!(found.path.lost, copies.packets_lost, "{name}");
    assert!(found.path.lost > 30, "{name}");
    let sent = copies.sent();
    let again = sent.total() - sent[SendCause::New];
    assert_eq!(found.retransmissions() + found.redundancy.copies, again, "{name}");
    let latency = copies.latency().summary().unwrap();
    let arrival = found.latency.arrival.unwrap();
    assert_eq!(arrival.max, latency.max, "{name}");
    if copies.units == MESSAGES {
        // All of the same size.
        assert_eq!((arrival.p50, arrival.p99), (latency.p50, latency.p99), "{name}");
    }
    assert!(found.latency.delivery.unwrap().max >= arrival.max);
    // A retransmission with new data may look like a bundle; each is one or the other.
    let brought = |cause| copies.latency_by_cause[cause].count();
    let redundant = brought(SendCause::Bundled) + brought(SendCause::Redundant);
    let copies_sent = sent[SendCause::Bundled] + sent[SendCause::Redundant];
    if copies_sent == found.redundancy.copies {
        assert_eq!(found.redundancy.hits.unwrap_or(0), redundant, "{name}");
        let on_purpose = [SendCause::Bundled, SendCause::Redundant];
        let spurious = copies.spurious();
        let expected =
            spurious.total() - on_purpose.map(|cause| spurious[cause]).iter().sum::<u64>();
        assert_eq!(found.spurious(), expected, "{name}");
    }
    assert_eq!(found.path.rtt_ms, Some(100.0), "{name}");
    found
}

#[test]
fn with_captures_of_both_ends_every_figure_is_exact() {
    for name in ["rfc9260", "thin", "interactive"] {
        assert!(agrees::<Sctp>(name).retransmissions() > 50);
    }
    for name in ["tcp-newreno", "tcp-sack", "tcp-interactive"] {
        assert!(agrees::<Tcp>(name).retransmissions() > 20);
    }
    assert!(agrees::<Sctp>("interactive-redundant").redundancy.hits.unwrap() > 30);
    assert!(agrees::<Tcp>("tcp-interactive-redundant").redundancy.hits.unwrap() > 30);
}

/// For each cause, the number of retransmitted ranges and of spurious ones; then the number of lost packets, and the
/// longest latency to the ACK.
fn known<T: Traced>(recovery: &RecoveryConfig, forward: &str) -> ([u64; 3], u64, u64, u64) {
    let name = forward.replace([' ', ','], "-");
    let captured = captured::<T>(&name, recovery, &every(80, 10), [forward, "delay 50ms"], 1);
    let found = one(&captured.ends[0], None);
    assert!(!found.is_exact);
    let cause = |cause| found.repeated.get(&cause).map_or(0, |it| it.ranges);
    let causes = [Cause::Fast, Cause::Early, Cause::Timer].map(cause);
    let longest = found.latency.ack.unwrap().max.as_millis() as u64;
    (causes, found.spurious(), found.path.lost, longest)
}

/// 100 bytes every 80 ms over 50 ms each way; message n (from 0) is in packet n + 2 of the sender, and acknowledged at once.
fn courses<T: Traced>(recovery: &RecoveryConfig) {
    // The third report comes 340 ms after message 2 was sent, and the ACK of the retransmission 100 ms later.
    assert_eq!(known::<T>(recovery, "delay 50ms loss list 4"), ([1, 0, 0], 0, 1, 440));
    // Held back until four packets have passed: it arrives after 370 ms.
    assert_eq!(known::<T>(recovery, "delay 50ms hold 4 4"), ([1, 0, 0], 1, 0, 420));
    // The last message is reported by none: its timer of one second was started 20 ms after it was sent.
    assert_eq!(known::<T>(recovery, "delay 50ms loss list 11"), ([0, 0, 1], 0, 1, 1120));
    assert_eq!(known::<T>(recovery, "delay 50ms"), ([0, 0, 0], 0, 0, 100));
}

#[test]
fn a_capture_of_the_sender_shows_causes_and_losses() {
    courses::<Sctp>(&profile("rfc9260"));
    courses::<Tcp>(&profile("tcp-sack"));
    // After one report instead of three, 180 ms after it was sent.
    let early = profile("rfc9260").with_thin(ThinConfig::OFF.first_indication(true));
    assert_eq!(known::<Sctp>(&early, "delay 50ms loss list 4"), ([0, 1, 0], 0, 1, 280));
}

/// Losses, round trips and hits estimated from ACKs alone are near the known values.
#[test]
fn a_capture_of_the_sender_gives_an_estimate_of_the_path() {
    fn near<T: Traced>(name: &str, forward: &str) {
        let paths = [forward, "delay 50ms loss 2%"];
        let captured = captured::<T>(name, &profile(name), &every(80, MESSAGES), paths, 11);
        let (known, found) = (one(&captured.both, None), one(&captured.ends[0], None));
        assert_eq!(found.path.rtt_ms, Some(100.0), "{name}");
        let ratio = found.path.lost as f64 / known.path.lost as f64;
        assert!((0.8..1.25).contains(&ratio), "{name}: {ratio} of {}", known.path.lost);
        let bursts = (found.path.burst.unwrap(), known.path.burst.unwrap());
        assert!((bursts.0 / bursts.1 - 1.0).abs() < 0.35, "{name}: {bursts:?}");
        // `interactive` has few copies, of outages only: too few for a ratio.
        let hits = known.redundancy.hits.filter(|hits| *hits >= 20);
        assert_eq!(hits.is_some(), name == "interactive-redundant", "{name}: {hits:?}");
        if let Some(hits) = hits {
            let found = found.redundancy.hits.unwrap() as f64;
            assert!((0.7..1.4).contains(&(found / hits as f64)), "{name}: {found} of {hits}");
        }
        // A capture of the receiver lacks lost packets: a loss is found if later data arrives before the
        // retransmission. With a probe timer, or a window filled by a burst, no later data may arrive before.
        if name != "interactive" && forward.ends_with("loss 5%") {
            let found = one(&captured.ends[1], None);
            let ratio = found.path.lost as f64 / known.path.lost as f64;
            assert!(
                (0.8..1.25).contains(&ratio),
                "{name}, receiver: {ratio} of {}",
                known.path.lost
            );
        }
    }
    for forward in ["delay 50ms loss 5%", "delay 50ms loss gemodel 2% 40%"] {
        near::<Sctp>("rfc9260", forward);
        near::<Sctp>("interactive", forward);
        near::<Tcp>("tcp-sack", forward);
    }
    near::<Sctp>("interactive-redundant", "delay 50ms loss 5.0%");
}

/// Data in one direction shows the part of the round trip on one side of the place of capture; the handshake has the rest,
/// even if its first packets were repeated.
#[test]
fn a_round_trip_is_whole_wherever_it_is_captured() {
    fn whole<T: Traced>(name: &str) {
        for (lost, number) in [("", 1), (" loss list 1", 2)] {
            let paths = ["delay 50ms", &format!("delay 50ms{lost}")];
            let captured = captured::<T>(name, &profile(name), &every(80, 20), paths, number);
            for end in &captured.ends {
                assert_eq!(one(end, None).path.rtt_ms, Some(100.0), "{name}{lost}: {end:?}");
            }
        }
    }
    whole::<Sctp>("rfc9260");
    whole::<Tcp>("tcp-sack");
}

/// The bytes of a capture whose clock is `ahead` by this much. All its blocks are the writer's: little-endian,
/// nanoseconds.
fn with_clock_ahead(mut bytes: Vec<u8>, ahead: Duration) -> Vec<u8> {
    let mut at = 0;
    while at < bytes.len() {
        let word =
            |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        if word(&bytes, at) == 6 {
            let time = u64::from(word(&bytes, at + 12)) << 32 | u64::from(word(&bytes, at + 16));
            let time = time + ahead.as_nanos() as u64;
            bytes[at + 12..at + 16].copy_from_slice(&((time >> 32) as u32).to_le_bytes());
            bytes[at + 16..at + 20].copy_from_slice(&(time as u32).to_le_bytes());
        }
        at += word(&bytes, at + 4) as usize;
    }
    bytes
}

#[test]
fn captures_of_both_ends_are_one_whatever_their_clocks_show() {
    fn same<T: Traced>(name: &str) {
        let paths = ["delay 50ms 3ms loss 5%", "delay 50ms loss 5%"];
        let captured = captured::<T>(name, &profile(name), &every(80, 500), paths, 3);
        let [sender, receiver] = &captured.ends;
        let shifted = receiver.with_extension("shifted.pcapng");
        let ahead = Duration::from_millis(123_456);
        std::fs::write(&shifted, with_clock_ahead(std::fs::read(receiver).unwrap(), ahead))
            .unwrap();
        let known = one(&captured.both, None);
        for (file, other) in [(sender, &shifted), (&shifted, sender)] {
            let found = one(file, Some(other));
            assert_eq!((found.sent, &found.repeated), (known.sent, &known.repeated), "{name}");
            assert_eq!((found.path.lost, found.direction), (known.path.lost, known.direction));
            let [found, known] =
                [&found, &known].map(|it| it.latency.arrival.unwrap().p50.as_secs_f64());
            // Its jitter makes one direction 0 to 3 ms longer than it is at best.
            assert!((found - known).abs() < 0.002, "{name}: {found}, {known}");
        }
    }
    same::<Sctp>("rfc9260");
    same::<Tcp>("tcp-sack");
}

#[test]
fn files_that_cannot_be_analysed_are_refused() {
    let file = |name: &str, bytes: &[u8]| {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let refused = |file: &std::path::Path, other: Option<&std::path::Path>| {
        Analysis::open(file, other).unwrap_err().to_string()
    };
    let rows = file("rows.csv", b"trace,flow_id,direction,time_us,payload_bytes\na,0,c2s,1,1\n");
    assert!(refused(&rows, None).contains("only pcap and pcapng files have packets"));
    let plan = every(80, 5);
    let paths = ["delay 50ms", "delay 50ms"];
    let tcp = captured::<Tcp>("refused", &profile("tcp-sack"), &plan, paths, 1);
    let sctp = captured::<Sctp>("refused", &profile("rfc9260"), &plan, paths, 2);
    assert!(refused(&tcp.ends[0], Some(&sctp.ends[1])).contains("in common"));
    let bytes = std::fs::read(&sctp.both).unwrap();
    let cut = file("cut.pcapng", &bytes[..bytes.len() - 5]);
    assert!(refused(&cut, None).contains("the file ends within it"));
    // 152 bytes: the header and two interfaces, without a packet.
    let first = bytes.windows(8).position(|block| block[..4] == [6, 0, 0, 0]).unwrap();
    let empty = file("empty.pcapng", &bytes[..first / 4 * 4]);
    assert!(refused(&empty, None).contains("no data of TCP or SCTP"));
}

/// The analysis of arbitrary packets terminates without a panic.
#[test]
fn damaged_captures_are_analysed_or_refused() {
    let paths = ["delay 50ms loss 10%", "delay 50ms loss 10%"];
    let mut random = Seed::from_u64(5).rng();
    for (name, is_tcp) in [("damaged-tcp", true), ("damaged-sctp", false)] {
        let captured = if is_tcp {
            captured::<Tcp>(name, &profile("tcp-sack"), &every(80, 60), paths, 1)
        } else {
            captured::<Sctp>(name, &profile("thin"), &every(80, 60), paths, 1)
        };
        let whole = std::fs::read(&captured.both).unwrap();
        let file = captured.both.with_extension("damaged");
        for _ in 0..500 {
            let mut bytes = whole.clone();
            for _ in 0..20 {
                // Behind the header of the file and of its interfaces.
                let at = 200 + (random.u64() as usize) % (bytes.len() - 200);
                bytes[at] = random.u64() as u8;
            }
            std::fs::write(&file, &bytes).unwrap();
            if let Ok(analysis) = Analysis::open(&file, None) {
                assert!(!analysis.to_string().is_empty());
            }
        }
    }
}
