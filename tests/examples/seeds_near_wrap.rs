//! Searches for endpoint seeds whose first association has an initial TSN just below the wrap, for
//! `rexmit_tests::seeds::NEAR_WRAP`. Prints each with the distance to the wrap.
//!
//! ```text
//! cargo run --release -p rexmit-tests --example seeds_near_wrap [FIRST_SEED]
//! ```

use rexmit_tests::seeds::{MOST_BELOW_WRAP, first_tsn};

fn main() {
    let first = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(0);
    for seed in first.. {
        let below = first_tsn(seed).wrapping_neg();
        if (1..=MOST_BELOW_WRAP).contains(&below) {
            println!("{seed}, // {below} below the wrap");
        }
    }
}
