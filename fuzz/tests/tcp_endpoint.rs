//! The TCP endpoint under an attacker who sees everything: it never panics, becomes idle after each input, sends
//! nothing malformed, and stays within its limits. Without forged segments it delivers exactly the bytes that were
//! sent.

use std::time::Duration;

use bolero::check;
use rexmit_fuzz::Filled;
use rexmit_fuzz::tcp::{Act, Aim, Exchange, Handling, Script, SegmentDraft, Traffic};

/// The number of random inputs per target in `cargo test`.
const ITERATIONS: usize = 3_000;
/// The time limit of a target in `cargo test`: together they take a minute at most.
const TEST_TIME: Duration = Duration::from_secs(7);

#[test]
fn invented_segments_in_every_state() {
    check!()
        .with_type::<Filled<(u8, u8, Vec<(SegmentDraft, Aim)>)>>()
        .with_iterations(ITERATIONS)
        .with_test_time(TEST_TIME)
        .for_each(|Filled((start, profile, segments))| {
            let mut exchange = Exchange::new(*start, *profile);
            for (draft, aim) in segments {
                exchange.act(&Act::Invent(draft.clone(), *aim));
            }
            exchange.run_out();
        });
}

#[test]
fn sequences_of_everything_that_may_happen() {
    run(|_| true);
}

#[test]
fn sequences_of_what_a_network_may_do() {
    run(|act| !matches!(act, Act::Invent(..) | Act::Alter(..)));
}

/// Two endpoints with real traffic, each segment of which is delivered, lost, duplicated, delayed or changed.
#[test]
fn valid_traffic_altered_on_the_path() {
    run_traffic(|_| true);
}

/// The same without changed segments: the received bytes equal the sent ones.
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

fn run(may_happen: fn(&Act) -> bool) {
    check!()
        .with_type::<Filled<Script>>()
        .with_iterations(ITERATIONS)
        .with_test_time(TEST_TIME)
        .for_each(|Filled(script)| {
            let mut exchange = Exchange::new(script.start, script.profile);
            for act in script.acts.iter().filter(|act| may_happen(act)) {
                exchange.act(act);
            }
            exchange.run_out();
        });
}
