//! The endpoint under an attacker with its tags: it never panics, becomes
//! idle after each input, sends nothing malformed, and stays within its limits.

use bolero::check;
use rexmit_fuzz::{Act, Aim, Exchange, PacketDraft, Script};

/// Random inputs per target as part of `cargo test`.
const ITERATIONS: usize = 3_000;

#[test]
fn invented_packets_in_every_state() {
    check!().with_type::<(u8, Vec<(PacketDraft, Aim)>)>().with_iterations(ITERATIONS).for_each(
        |(start, packets)| {
            let mut exchange = Exchange::new(*start);
            for (draft, aim) in packets {
                exchange.act(&Act::Invent(draft.clone(), *aim));
            }
            exchange.run_out();
        },
    );
}

#[test]
fn sequences_of_everything_that_may_happen() {
    check!().with_type::<Script>().with_iterations(ITERATIONS).for_each(|script| {
        let mut exchange = Exchange::new(script.start);
        for act in &script.acts {
            exchange.act(act);
        }
        exchange.run_out();
    });
}
