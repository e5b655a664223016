//! Measures how late the emulator sends, by load: `cargo run --release -p rexmit --example emulator`;
//! with the argument `normal`, without asking for a better priority.

use std::net::UdpSocket;
use std::time::Duration;

use rexmit::clock::{Alarm, now};
use rexmit::emulator::{Emulator, EmulatorConfig};
use rexmit_netsim::path::{Delay, Jitter};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("packets/s   delivered   late by (us): p50      p99    p99.9      max");
    for rate in [10, 100, 1000, 10_000] {
        measure(rate).await?;
    }
    Ok(())
}

/// Ten seconds of packets of 100 bytes over 50 ms ± 5 ms.
async fn measure(rate: u64) -> Result<(), Box<dyn std::error::Error>> {
    let server = UdpSocket::bind("127.0.0.1:0")?;
    server.set_read_timeout(Some(Duration::from_millis(500)))?;
    let mut config = EmulatorConfig::new("127.0.0.1:0".parse()?, server.local_addr()?);
    config.forward.delay =
        Delay { mean: Duration::from_millis(50), jitter: Jitter::Normal(Duration::from_millis(5)) };
    config.raise_priority = std::env::args().nth(1).as_deref() != Some("normal");
    let emulator = Emulator::start(&config)?;
    let drain = std::thread::spawn(move || while server.recv(&mut [0; 100]).is_ok() {});
    let client = UdpSocket::bind("127.0.0.1:0")?;
    let mut alarm = Alarm::new()?;
    let (start, mut sent) = (now(), 0);
    while now() - start < Duration::from_secs(10) {
        // At high rates several packets at a time, as a protocol would.
        while sent < (now() - start).as_nanos() as u64 * rate / 1_000_000_000 + 1 {
            client.send_to(&[0; 100], emulator.local_addr())?;
            sent += 1;
        }
        alarm.arm(start + Duration::from_nanos(sent * 1_000_000_000 / rate));
        alarm.expired().await?;
    }
    drain.join().map_err(|_| "the receiving thread panicked")?;
    let statistics = emulator.stop()?;
    let late = statistics.lateness;
    let [p50, p99, p999, max] =
        [late.p50, late.p99, late.p999, late.max].map(|time| time.as_nanos() as f64 / 1e3);
    let delivered = statistics.forward.arrivals.delivered;
    println!(
        "{rate:9}{delivered:12}{p50:21.0}{p99:9.0}{p999:9.0}{max:9.0}   {:?}",
        statistics.priority
    );
    Ok(())
}
