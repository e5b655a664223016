//! Failures found by random runs, each reduced to the smallest run that shows it. The seed in the comment is that of
//! the original run, at the commit that fixed it.

use std::time::Duration;

use rexmit_core::Instant;
use rexmit_netsim::path::Loss;
use rexmit_sctp::{CloseReason, Reliability};
use rexmit_tests::plan::{Burst, Op, Plan, Step};
use rexmit_tests::run;

/// Seed 2.
#[test]
fn messages_to_streams_that_the_peer_refuses_fail_before_they_are_bundled_with_the_cookie() {
    let mut plan = Plan::by_hand(vec![
        Step::new(0, 0, Op::Connect),
        Step::new(1, 0, Op::Send(Burst::new(5, 3, 100))),
    ]);
    plan.association_mut(1).streams.max_inbound = 1;
    assert_eq!(run(&plan, false, false).counts, (3, 0, 3));
}

/// Seed 36: "an SSN comes a second time".
#[test]
fn messages_that_fail_during_setup_do_not_restart_other_streams() {
    let mut plan = Plan::by_hand(vec![
        Step::new(0, 0, Op::Connect),
        Step::new(1, 0, Op::Send(Burst::new(0, 3, 100))),
        Step::new(2, 0, Op::Send(Burst::new(5, 3, 100))),
        Step::new(3, 0, Op::Send(Burst::new(0, 30, 100))),
    ]);
    plan.association_mut(1).streams.max_inbound = 1;
    assert_eq!(run(&plan, false, false).counts, (36, 33, 3));
}

/// Seed 26: a sender that waited for room was not notified.
#[test]
fn room_made_by_failed_messages_is_reported() {
    let mut plan = Plan::by_hand(vec![
        Step::new(0, 0, Op::Connect),
        Step::new(1, 0, Op::Send(Burst::new(5, 100, 100))),
    ]);
    plan.association_mut(0).buffers.send_bytes = 1000;
    plan.association_mut(1).streams.max_inbound = 1;
    assert_eq!(run(&plan, false, false).counts, (10, 0, 10));
}

/// Seed 55: the last piece had arrived, so the skipped message counted as acknowledged.
#[test]
fn a_failed_message_is_not_also_acknowledged() {
    let burst = Burst { reliability: Reliability::MaxRetransmissions(0), ..Burst::new(0, 1, 3000) };
    let mut plan = Plan::by_hand(vec![
        Step::new(0, 0, Op::Connect),
        Step::new(1000, 0, Op::Send(burst)),
        Step::new(1001, 0, Op::Send(Burst::new(0, 3, 1000))),
    ]);
    // After INIT and COOKIE ECHO comes the first of the three pieces.
    plan.paths[0].1[0].loss = Loss { packets: vec![2], ..Loss::default() };
    assert_eq!(run(&plan, false, false).counts, (4, 3, 1));
}

/// Seeds 51, 205 and 319: COOKIE ECHO arrives again after its association was aborted.
#[test]
fn a_late_cookie_does_not_begin_an_association_a_second_time() {
    let mut plan = Plan::by_hand(vec![
        Step::new(0, 0, Op::Connect),
        Step::new(1, 0, Op::Send(Burst::new(0, 1, 100))),
        Step::new(500, 1, Op::Abort),
    ]);
    // After INIT ACK come COOKIE ACK and ABORT: the cookie is repeated.
    plan.paths[0].1[1].loss = Loss { packets: vec![1, 2], ..Loss::default() };
    let outcome = run(&plan, false, false);
    assert_eq!(outcome.counts, (1, 1, 1));
    let ignorant = CloseReason::AbortedByPeer { cause: 0, reason: "".into() };
    assert_eq!(outcome.closed.last(), Some(&ignorant));
}

/// Seed 1303: the reset ends while the window is closed, and the window update is lost.
#[test]
fn a_window_is_probed_for_messages_that_a_reset_has_let_go() {
    let mut plan = Plan::by_hand(vec![
        Step::new(0, 0, Op::Connect),
        Step::new(500, 1, Op::Pause),
        Step::new(1000, 0, Op::Send(Burst::new(0, 4, 1024))),
        Step::new(2000, 0, Op::Reset(vec![0])),
        Step::new(2001, 0, Op::Send(Burst::new(0, 4, 1024))),
        Step::new(5000, 1, Op::Resume),
    ]);
    plan.association_mut(1).buffers.receive_bytes = 4096;
    for host in 0..2 {
        plan.association_mut(host).messages.max_bytes = 4096;
        plan.association_mut(host).failure.heartbeat_interval = None;
    }
    let open = plan.paths[0].1.clone();
    let [there, mut back] = open.clone();
    back.loss.uniform = 1.0;
    plan.paths.push((Instant::from_millis(4900), [there, back]));
    plan.paths.push((Instant::from_millis(5100), open));
    assert_eq!(run(&plan, false, false).counts, (8, 8, 0));
}

/// Seed 5124: messages that were abandoned but not skipped yet filled the buffer, and did not fail a second time.
#[test]
fn room_made_by_a_restart_is_reported() {
    let expiring =
        Burst { reliability: Reliability::Timed(Duration::ZERO), ..Burst::new(0, 1, 1000) };
    let mut plan = Plan::by_hand(vec![
        Step::new(0, 0, Op::Connect),
        Step::new(1000, 0, Op::Send(expiring)),
        Step::new(1001, 0, Op::Send(Burst::new(0, 1, 1000))),
        Step::new(4000, 1, Op::Restart),
        Step::new(4001, 1, Op::Connect),
    ]);
    plan.association_mut(0).buffers.send_bytes = 1000;
    // Nothing reaches the peer before it has begun anew.
    let open = plan.paths[0].1.clone();
    let [mut there, back] = open.clone();
    there.loss.uniform = 1.0;
    plan.paths.push((Instant::from_millis(900), [there, back]));
    plan.paths.push((Instant::from_millis(3900), open));
    let outcome = run(&plan, false, false);
    assert_eq!(outcome.counts, (1, 0, 1));
}
