//! Transfers in which every copy is computed by hand: 100 bytes every 80 ms over 50 ms each way, with acknowledgements
//! at once. Message n (from 0) is in packet n + 2 of the sender, behind the handshake.

use SendCause::{Bundled, FastRetransmit, New, Redundant, Timeout};
use rexmit_sctp::recovery::ThinConfig;

use super::*;

/// The number of messages in most scripts; TCP's FIN is sent with the last one.
const MESSAGES: u64 = 10;

/// The ledger of a number of messages over the forward path `what`.
fn measured<T: Traced>(recovery: &RecoveryConfig, messages: u64, what: &str) -> CopyStatistics {
    let forward = format!("delay 50ms {what}");
    measured_with::<T>(recovery, messages, &forward, |_| {})
}

fn measured_with<T: Traced>(
    recovery: &RecoveryConfig,
    messages: u64,
    forward: &str,
    change: impl FnOnce(&mut Flow),
) -> CopyStatistics {
    let source = (0..messages).map(|n| (Instant::from_millis(1000 + 80 * n), 100));
    let plan = ThinPlan::new(source, Instant::FAR_FUTURE);
    let ledger = T::ledger();
    let paths = [forward, "delay 50ms"];
    let mut flow = Flow::new::<T>(recovery, &plan, paths, &Seed::from_u64(1), ledger.sink());
    change(&mut flow);
    flow.network.add_observer(ledger.observer(flow.hosts[0]));
    flow.run(Instant::from_millis(30_000));
    let copies = ledger.statistics();
    assert_eq!((copies.units, copies.delivered()), (messages, messages));
    assert_eq!(ledger.kept(), (0, 0), "everything is settled");
    copies
}

/// Asserts what the k-th retransmissions delivered: by cause, the number of units and their latency in ms.
#[track_caller]
fn assert_brought(copies: &CopyStatistics, number: usize, expected: &[(SendCause, u64, u64)]) {
    let by_number = &copies.by_retransmission[number];
    let counts: Vec<_> = expected.iter().map(|&(cause, count, _)| (cause, count)).collect();
    assert_eq!(by_number.delivered, per_cause(&counts), "number {number}");
    let sum: u64 = expected.iter().map(|&(_, count, ms)| count * ms).sum();
    let latency = &by_number.latency;
    let mean = latency.mean().map_or(0.0, |mean| mean.as_secs_f64() * 1000.0);
    assert_eq!((mean * latency.count() as f64).round() as u64, sum, "number {number}");
}

#[track_caller]
fn assert_sent(
    copies: &CopyStatistics,
    number: usize,
    sent: &[(SendCause, u64)],
    spurious: &[(SendCause, u64)],
) {
    let by_number = &copies.by_retransmission[number];
    assert_eq!(by_number.sent, per_cause(sent), "number {number}");
    assert_eq!(by_number.spurious, per_cause(spurious), "number {number}, spuriously");
}

fn profile(name: &str) -> RecoveryConfig {
    let of_tcp = || RecoveryConfig::tcp_profile(name);
    RecoveryConfig::profile(name).or_else(of_tcp).expect("a profile")
}

/// No message follows the last one, so no later data can report its loss. The ACK of the message before restarts the
/// timer of 1 s after 20 ms, and the next timeout is 2 s: retransmissions at 1020 and 3020 ms.
fn twice_lost<T: Traced>(recovery: &RecoveryConfig) {
    let copies = measured::<T>(recovery, 3, "loss list 4,5");
    assert_eq!((copies.packets, copies.packets_lost), (5, 2));
    assert_sent(&copies, 0, &[(New, 3)], &[]);
    assert_sent(&copies, 1, &[(Timeout, 1)], &[]);
    assert_sent(&copies, 2, &[(Timeout, 1)], &[]);
    assert_brought(&copies, 0, &[(New, 2, 50)]);
    assert_brought(&copies, 1, &[]);
    assert_brought(&copies, 2, &[(Timeout, 1, 3070)]);
    let of = |cause| copies.latency_by_cause[cause].mean();
    assert_eq!(of(New), Some(Duration::from_millis(50)));
    assert_eq!(of(Timeout), Some(Duration::from_millis(3070)));
    assert_eq!(of(FastRetransmit), None);
}

#[test]
fn a_message_lost_twice_is_brought_by_the_second_timeout() {
    twice_lost::<Sctp>(&profile("rfc9260"));
    twice_lost::<Tcp>(&profile("tcp-sack"));
}

/// Message 2 is lost six times in all: later retransmissions count together.
#[test]
fn from_the_fourth_on_retransmissions_count_together() {
    let linear = ThinConfig::OFF.linear_timeouts(std::num::NonZeroU8::new(6));
    let recovery = profile("rfc9260").with_thin(linear);
    let copies = measured::<Sctp>(&recovery, 3, "loss list 4,5,6,7,8,9");
    for number in 1..=3 {
        assert_sent(&copies, number, &[(Timeout, 1)], &[]);
    }
    assert_sent(&copies, 4, &[(Timeout, 3)], &[]);
    assert_brought(&copies, 4, &[(Timeout, 1, 6 * 1000 + 20 + 50)]);
}

/// Message 2 is held back until the given number of later packets has passed. The third report of it arrives after 340
/// ms, because message 5 was sent after 240 ms. Message 6 arrives after 370 ms, the copy after 390 ms.
fn reordered<T: Traced>(recovery: &RecoveryConfig) {
    let copies = measured::<T>(recovery, MESSAGES, "hold 4 4");
    assert_sent(&copies, 0, &[(New, MESSAGES)], &[]);
    assert_sent(&copies, 1, &[(FastRetransmit, 1)], &[(FastRetransmit, 1)]);
    assert_brought(&copies, 0, &[(New, 9, 50), (New, 1, 370)]);
    assert_brought(&copies, 1, &[]);
    assert_eq!(copies.packets_lost, 0);
    // The copy overtakes the original and delivers the message, but it was sent spuriously.
    let copies = measured::<T>(recovery, MESSAGES, "hold 4 5");
    assert_sent(&copies, 1, &[(FastRetransmit, 1)], &[(FastRetransmit, 1)]);
    assert_brought(&copies, 0, &[(New, 9, 50)]);
    assert_brought(&copies, 1, &[(FastRetransmit, 1, 390)]);
    // If the message is lost instead, the same copy is necessary.
    let copies = measured::<T>(recovery, MESSAGES, "loss list 4");
    assert_sent(&copies, 1, &[(FastRetransmit, 1)], &[]);
    assert_brought(&copies, 1, &[(FastRetransmit, 1, 390)]);
}

#[test]
fn a_fast_retransmit_that_reordering_provoked_is_spurious() {
    reordered::<Sctp>(&profile("rfc9260"));
    reordered::<Tcp>(&profile("tcp-sack"));
}

/// Message 2 is lost; at its third missing report, message 6, sent 20 ms before, is bundled with its retransmission.
#[test]
fn data_bundled_with_a_retransmission_counts_as_bundled() {
    let copies = measured::<Sctp>(&profile("lksctp"), MESSAGES, "loss list 4");
    assert_sent(&copies, 1, &[(FastRetransmit, 1), (Bundled, 1)], &[(Bundled, 1)]);
    assert_brought(&copies, 0, &[(New, 9, 50)]);
    assert_brought(&copies, 1, &[(FastRetransmit, 1, 390)]);
}

/// Message 6 is lost as well; the bundled copy delivers it, 70 ms after it was sent.
#[test]
fn a_bundled_copy_may_repair_a_loss() {
    let copies = measured::<Sctp>(&profile("lksctp"), MESSAGES, "loss list 4,8");
    assert_sent(&copies, 1, &[(FastRetransmit, 1), (Bundled, 1)], &[]);
    assert_brought(&copies, 0, &[(New, 8, 50)]);
    assert_brought(&copies, 1, &[(FastRetransmit, 1, 390), (Bundled, 1, 70)]);
}

/// Without SACK, messages 3 to 6 are outstanding at the third duplicate ACK.
#[test]
fn a_retransmission_of_tcp_bundles_all_following_segments() {
    let loss_detection = LossDetection::DuplicateAcks;
    let recovery = profile("tcp-sack").bundle_outstanding(true).loss_detection(loss_detection);
    let copies = measured::<Tcp>(&recovery, MESSAGES, "loss list 4");
    assert_sent(&copies, 1, &[(FastRetransmit, 1), (Bundled, 4)], &[(Bundled, 4)]);
    assert_brought(&copies, 0, &[(New, 9, 50)]);
    assert_brought(&copies, 1, &[(FastRetransmit, 1, 390)]);
}

/// Every message except the last is bundled with the next one. Message 2 is lost and arrives with message 3, 80 ms
/// later; no other copy is needed.
fn bundled_redundantly<T: Traced>(recovery: &RecoveryConfig) {
    let thin = ThinConfig::OFF.bundling(Some(rexmit_sctp::recovery::BundlingConfig::ONE));
    let recovery = recovery.clone().with_thin(thin);
    let copies = measured::<T>(&recovery, MESSAGES, "loss list 4");
    assert_sent(&copies, 0, &[(New, MESSAGES), (Redundant, 9)], &[(Redundant, 8)]);
    assert_sent(&copies, 1, &[], &[]);
    assert_brought(&copies, 0, &[(New, 9, 50), (Redundant, 1, 130)]);
    let redundant = &copies.latency_by_cause[Redundant];
    assert_eq!((redundant.count(), redundant.mean()), (1, Some(Duration::from_millis(130))));
    assert_eq!((copies.packets, copies.packets_lost), (MESSAGES, 1));
}

#[test]
fn a_redundant_copy_repairs_an_earlier_loss() {
    bundled_redundantly::<Sctp>(&profile("lksctp"));
    bundled_redundantly::<Tcp>(&profile("tcp-sack"));
}

#[test]
fn a_packet_duplicated_by_the_network_counts_once() {
    let copies = measured::<Sctp>(&profile("rfc9260"), 3, "duplicate 100%");
    assert_eq!((copies.packets, copies.packets_lost), (3, 0));
    assert_brought(&copies, 0, &[(New, 3, 50)]);
    assert_eq!(copies.spurious().total(), 0);
}

/// A bit of the last packet and of its duplicate is flipped, which is equivalent to a loss.
#[test]
fn a_corrupted_packet_counts_as_not_arrived() {
    let copies = measured_with::<Sctp>(&profile("rfc9260"), 3, "delay 50ms", |flow| {
        flow.change(Direction::Forward, 1100, "delay 50ms duplicate 100% corrupt 100%");
        flow.change(Direction::Forward, 1200, "delay 50ms");
    });
    assert_eq!((copies.packets, copies.packets_lost), (4, 1));
    assert_brought(&copies, 1, &[(Timeout, 1, 1070)]);
    assert_eq!(copies.spurious().total(), 0);
}

/// The first transmission of the last message takes 5 s, and two timeouts pass meanwhile.
#[test]
fn packets_in_flight_at_the_end_are_not_lost() {
    let source = (0..3).map(|n| (Instant::from_millis(1000 + 80 * n), 100));
    let plan = ThinPlan::new(source, Instant::FAR_FUTURE);
    let ledger = CopyLedger::of_sctp();
    let (recovery, seed) = (profile("rfc9260"), Seed::from_u64(1));
    let paths = ["delay 50ms", "delay 50ms"];
    let mut flow = Flow::new::<Sctp>(&recovery, &plan, paths, &seed, ledger.sink());
    flow.network.add_observer(ledger.observer(flow.hosts[0]));
    flow.change(Direction::Forward, 1100, "delay 5s");
    flow.run(Instant::from_millis(4500));
    assert_eq!(ledger.kept(), (3, 1));
    let copies = ledger.statistics();
    assert_eq!((copies.units, copies.delivered()), (3, 2));
    for number in [1, 2] {
        assert_sent(&copies, number, &[(Timeout, 1)], &[(Timeout, 1)]);
    }
}
