//! Runs a scenario, from a file in JSON or else the standard thin stream, and prints the
//! measured quantities, without distributions and series.
//!
//! `cargo run --release -p rexmit-lab --example scenario [FILE [SEED]]`

use rexmit_lab::scenario::{Scenario, execute};

const STANDARD: &str = r#"{
    "duration": "2h",
    "network": { "forward": "delay 50ms loss 5%" },
    "thin": {
        "game": {
            "traffic": "every 250ms size 100",
            "profile": "lksctp",
            "receiver": { "ack_delay": "0ms" }
        }
    }
}"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let text = match arguments.next() {
        Some(file) => std::fs::read_to_string(file)?,
        None => STANDARD.to_owned(),
    };
    let seed = arguments.next().map_or(Ok(1), |seed| seed.parse())?;
    let scenario: Scenario = serde_json::from_str(&text)?;
    let outcome = execute(&scenario, seed)?;
    for described in scenario.catalogue().quantities {
        match outcome.quantities.get(&described.name) {
            Some(value) => println!("{:<40} {value:>14.4}  {}", described.name, described.about),
            None => println!("{:<40} {:>14}  {}", described.name, "–", described.about),
        }
    }
    Ok(())
}
