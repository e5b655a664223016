//! The endpoint under an attacker with its tags: it never panics, becomes
//! idle after each input, sends nothing malformed, and stays within its limits.

use std::collections::BTreeSet;
use std::time::Duration;

use bolero::generator::bolero_generator::driver::{ByteSliceDriver, Options};
use bolero::{TypeGenerator as _, check};
use rexmit_fuzz::{Act, Aim, Exchange, Filled, Handling, PacketDraft, Script, Traffic, profile_of};
use rexmit_sctp::recovery::PROFILES;

/// The number of random inputs per target in `cargo test`.
const ITERATIONS: usize = 3_000;
/// The time limit of a target in `cargo test`: together they take a minute at most.
const TEST_TIME: Duration = Duration::from_secs(7);

#[test]
fn invented_packets_in_every_state() {
    check!()
        .with_type::<Filled<(u8, u8, Vec<(PacketDraft, Aim)>)>>()
        .with_iterations(ITERATIONS)
        .with_test_time(TEST_TIME)
        .for_each(|Filled((start, profile, packets))| {
            let mut exchange = Exchange::new(*start, *profile);
            for (draft, aim) in packets {
                exchange.act(&Act::Invent(draft.clone(), *aim));
            }
            exchange.run_out();
        });
}

#[test]
fn sequences_of_everything_that_may_happen() {
    check!()
        .with_type::<Filled<Script>>()
        .with_iterations(ITERATIONS)
        .with_test_time(TEST_TIME)
        .for_each(|Filled(script)| {
            let mut exchange = Exchange::new(script.start, script.profile);
            for act in &script.acts {
                exchange.act(act);
            }
            exchange.run_out();
        });
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
    check!()
        .with_type::<Filled<Traffic>>()
        .with_iterations(ITERATIONS)
        .with_test_time(TEST_TIME)
        .for_each(|Filled(traffic)| {
            let mut exchange = Exchange::new(traffic.start, traffic.profile);
            for handling in traffic.handlings().filter(|&handling| may_happen(handling)) {
                exchange.handle_next(handling);
            }
            exchange.run_out();
        });
}

/// Four bits selected one of sixteen profiles, and there are more.
#[test]
fn every_profile_is_run() {
    let run: BTreeSet<_> = (0..=u8::MAX).map(profile_of).collect();
    assert_eq!(run, PROFILES.iter().map(|(name, _)| *name).collect());
}

/// libFuzzer prefers short inputs. Without [`Filled`], all packets after the end of one arrived as they were sent.
#[test]
fn short_inputs_are_long_conversations() {
    let attacks = |input: u8| {
        let Filled(traffic) =
            Filled::<Traffic>::generate(&mut ByteSliceDriver::new(&[input], &Options::default()))
                .expect("no value is rejected");
        traffic.handlings().filter(|handling| !matches!(handling, Handling::Deliver)).count()
    };
    let attacked: usize = (0..=u8::MAX).map(attacks).sum();
    assert!(attacked > 256 * 50, "{attacked}");
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
