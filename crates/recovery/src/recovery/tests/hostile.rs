//! The cost of acknowledgements from a malicious receiver, in lookups of units, with every profile: each unit
//! that is sent pays for a constant number of lookups, and so does each acknowledgement (docs/security.md).

use super::{RecoveryConfig, Sender, UnitState};

const WINDOW: u64 = 10_000;
const ACKS: u64 = 2_000;
/// Units looked at for each unit sent and each acknowledgement: a constant.
const PER_STEP: u64 = 20;

fn with_window(profile: &str) -> Sender {
    let config = RecoveryConfig::profile(profile).expect("it exists");
    let mut s = Sender::with(|its| *its = config.max_burst(None));
    s.push_full(WINDOW as usize);
    s.recovery.outstanding().visits().set(0);
    s
}

/// Applies the ACKs of `acknowledge` with every profile, and checks their cost.
fn expect_cheap(acknowledge: fn(&mut Sender)) {
    let mut costs = Vec::new();
    for (profile, _) in crate::PROFILES {
        let mut s = with_window(profile);
        acknowledge(&mut s);
        costs.push((s.recovery.outstanding().visits().get() / (WINDOW + ACKS), profile));
    }
    assert!(costs.iter().all(|&(visits, _)| visits <= PER_STEP), "{costs:?}");
}

/// SACKs alternate: one acknowledges everything above a gap, the next takes this back, and so on.
#[test]
fn gap_reports_taken_back_and_forth_cost_no_more_than_what_was_sent() {
    expect_cheap(|s| {
        for n in 0..ACKS / 2 {
            s.ack(n, &[(n + 2, WINDOW)]);
            s.ack(n + 1, &[]);
        }
    });
}

#[test]
fn a_receiver_that_drops_more_than_was_sent_is_believed_by_its_cumulative_point_only() {
    let mut s = with_window("rfc9260");
    s.ack(0, &[(2, WINDOW)]);
    assert!(s.ack(1, &[]).has_reneged);
    assert_eq!(s.state(WINDOW), Some(UnitState::InFlight));
    s.ack(1, &[(3, WINDOW)]);
    assert_eq!(s.state(WINDOW), Some(UnitState::Acknowledged), "it is still believed");
    // One unit more than was sent: nothing that it reports here counts either.
    assert!(s.ack(2, &[(5, WINDOW)]).has_reneged);
    assert_eq!(s.state(WINDOW), Some(UnitState::InFlight));
    assert_eq!(s.ack(2, &[(5, WINDOW)]).newly_acked, 0, "no more");
    assert_eq!(s.ack(WINDOW, &[]).newly_acked, WINDOW - 2);
    assert_eq!(s.flight(), (0, 0));
}

/// The first unit above the cumulative point is reported in a block, which no receiver does.
#[test]
fn a_block_without_a_gap_below_costs_nothing() {
    expect_cheap(|s| {
        for _ in 0..ACKS {
            s.ack(0, &[(1, WINDOW)]);
        }
    });
}

#[test]
fn acknowledgements_from_the_back_cost_what_they_acknowledge() {
    expect_cheap(|s| {
        for start in (WINDOW - ACKS..WINDOW).rev() {
            s.ack(0, &[(start, start)]);
        }
    });
}

/// Every second unit is acknowledged, from the front and from the back.
#[test]
fn acknowledgements_of_every_second_unit_cost_what_they_acknowledge() {
    expect_cheap(|s| {
        for n in 1..ACKS / 2 {
            s.ack(0, &[(2 * n, 2 * n)]);
        }
        for n in 1..ACKS / 2 {
            let unit = WINDOW - 2 * n;
            s.ack(0, &[(unit, unit)]);
        }
    });
}
