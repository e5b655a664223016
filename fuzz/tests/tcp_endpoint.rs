//! The TCP endpoint under an attacker who sees everything: it never panics, becomes
//! idle after each input, sends nothing malformed, stays within its limits, and without forgeries
//! delivers what was sent and nothing else.

use bolero::check;
use rexmit_fuzz::tcp::{Act, Aim, Exchange, Script, SegmentDraft};

/// Random inputs per target as part of `cargo test`.
const ITERATIONS: usize = 3_000;

#[test]
fn invented_segments_in_every_state() {
    check!().with_type::<(u8, Vec<(SegmentDraft, Aim)>)>().with_iterations(ITERATIONS).for_each(
        |(start, segments)| {
            let mut exchange = Exchange::new(*start);
            for (draft, aim) in segments {
                exchange.act(&Act::Invent(draft.clone(), *aim));
            }
            exchange.run_out();
        },
    );
}

#[test]
fn sequences_of_everything_that_may_happen() {
    run(|_| true);
}

#[test]
fn sequences_of_what_a_network_may_do() {
    run(|act| !matches!(act, Act::Invent(..) | Act::Alter(..)));
}

fn run(may_happen: fn(&Act) -> bool) {
    check!().with_type::<Script>().with_iterations(ITERATIONS).for_each(|script| {
        let mut exchange = Exchange::new(script.start);
        for act in script.acts.iter().filter(|act| may_happen(act)) {
            exchange.act(act);
        }
        exchange.run_out();
    });
}
