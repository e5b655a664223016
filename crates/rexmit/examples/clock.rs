//! Measures how late the two ways of waiting wake up: `cargo run --release -p rexmit --example clock`.

use std::time::Duration;

use hdrhistogram::Histogram;
use rexmit::clock::{Alarm, now, sleep_until};

const ROUNDS: u64 = 1000;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut alarm = Alarm::new()?;
    let mut coarse = Histogram::<u64>::new(3)?;
    let mut precise = Histogram::<u64>::new(3)?;
    for round in 0..ROUNDS {
        let wait = Duration::from_micros(500 + round * 37 % 4000);

        let deadline = now() + wait;
        sleep_until(deadline).await;
        coarse.record((now() - deadline).as_nanos() as u64)?;

        let deadline = now() + wait;
        alarm.arm(deadline);
        alarm.expired().await?;
        precise.record((now() - deadline).as_nanos() as u64)?;
    }
    println!("late by, in microseconds:      p50     p99    p99.9");
    for (name, late) in [("tokio sleep", &coarse), ("alarm", &precise)] {
        let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|q| late.value_at_quantile(q) as f64 / 1e3);
        println!("{name:25} {p50:8.1}{p99:8.1}{p999:9.1}");
    }
    Ok(())
}
