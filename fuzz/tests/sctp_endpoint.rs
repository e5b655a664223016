//! The endpoint under an attacker with its tags: it never panics, becomes
//! idle after each input, sends nothing malformed, and stays within its limits.

use std::collections::BTreeSet;
use std::time::Duration;

use bolero::check;
use rexmit_fuzz::{Act, Aim, Exchange, Handling, PacketDraft, Script, Traffic, profile_of};
use rexmit_sctp::recovery::PROFILES;

/// The number of random inputs per target in `cargo test`.
const ITERATIONS: usize = 3_000;
/// The time limit of a target in `cargo test`: together they take a minute at most.
const TEST_TIME: Duration = Duration::from_secs(7);

#[test]
fn invented_packets_in_every_state() {
    check!()
        .with_type::<(u8, u8, Vec<(PacketDraft, Aim)>)>()
        .with_iterations(ITERATIONS)
        .with_test_time(TEST_TIME)
        .for_each(|(start, profile, packets)| {
            let mut exchange = Exchange::new(*start, *profile);
            for (draft, aim) in packets {
                exchange.act(&Act::Invent(draft.clone(), *aim));
            }
            exchange.run_out();
        });
}

#[test]
fn sequences_of_everything_that_may_happen() {
    check!().with_type::<Script>().with_iterations(ITERATIONS).with_test_time(TEST_TIME).for_each(
        |script| {
            let mut exchange = Exchange::new(script.start, script.profile);
            for act in &script.acts {
                exchange.act(act);
            }
            exchange.run_out();
        },
    );
}

/// Two endpoints with real traffic, each packet of which is delivered, lost, duplicated, delayed or changed.
#[test]
fn valid_traffic_altered_on_the_path() {
    run_traffic(|_| true);
}

/// The same without changes.
#[test]
fn valid_traffic_over_a_bad_network() {
    run_traffic(Handling::is_of_network);
}

fn run_traffic(may_happen: fn(Handling) -> bool) {
    check!().with_type::<Traffic>().with_iterations(ITERATIONS).with_test_time(TEST_TIME).for_each(
        |traffic| {
            let mut exchange = Exchange::new(traffic.start, traffic.profile);
            for handling in traffic.handlings().filter(|&handling| may_happen(handling)) {
                exchange.handle_next(handling);
            }
            exchange.run_out();
        },
    );
}

/// Four bits selected one of sixteen profiles, and there are more.
#[test]
fn every_profile_is_run() {
    let run: BTreeSet<_> = (0..=u8::MAX).map(profile_of).collect();
    assert_eq!(run, PROFILES.iter().map(|(name, _)| *name).collect());
}

/// Found by the target above.
#[test]
fn a_timer_does_not_stay_due_after_an_address_is_lost() {
    let mut exchange = Exchange::new(7, 10);
    for act in [Act::Drop(1), Act::Address(true, 20, 198), Act::Deliver(147)] {
        exchange.act(&act);
    }
    exchange.run_out();
}
