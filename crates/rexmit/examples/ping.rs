//! Round-trip times of small messages over UDP on loopback, through one association:
//! `cargo run --release -p rexmit --example ping`.

use std::time::Duration;

use hdrhistogram::Histogram;
use rexmit::clock::{Alarm, now};
use rexmit::{Endpoint, EndpointConfig};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let config = EndpointConfig::default().accept(true);
    let server = Endpoint::bind_unencrypted("127.0.0.1:0".parse()?, config)?;
    let config = EndpointConfig::default().port(0);
    let client = Endpoint::bind_unencrypted("127.0.0.1:0".parse()?, config)?;
    let (ours, theirs) = tokio::join!(client.connect(server.local_addr(), 5000), server.accept());
    let (ours, theirs) = (ours?.stream(0), theirs.ok_or("the server was shut down")?);
    tokio::spawn(async move {
        while let Some(message) = theirs.recv().await {
            let _ = theirs.stream(0).send(message.payload).await;
        }
    });
    let mut alarm = Alarm::new()?;
    let mut times = Histogram::<u64>::new(3)?;
    for _ in 0..5000 {
        alarm.arm(now() + Duration::from_millis(1));
        alarm.expired().await?;
        let start = now();
        ours.send(vec![0; 100]).await?;
        ours.association().recv().await.ok_or("the server closed")?;
        times.record((now() - start).as_nanos() as u64)?;
    }
    let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|q| times.value_at_quantile(q) as f64 / 1e3);
    println!("round trip in microseconds: p50 {p50:.0}, p99 {p99:.0}, p99.9 {p999:.0}");
    Ok(())
}
