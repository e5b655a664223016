//! Throughput of one association over UDP on loopback:
//! `cargo run --release -p rexmit --example bulk [MESSAGE_BYTES [SECONDS]]`.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rexmit::clock::now;
use rexmit::{AssociationConfig, Endpoint, EndpointConfig};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let size: usize = arguments.next().map_or(Ok(1024), |size| size.parse())?;
    let seconds: u64 = arguments.next().map_or(Ok(5), |seconds| seconds.parse())?;
    let association = Arc::new(
        AssociationConfig::default()
            .max_packet_bytes(1452)
            .receive_buffer_bytes(4 << 20)
            .send_buffer_bytes(4 << 20),
    );
    let config = |port, accept| {
        EndpointConfig::default().port(port).accept(accept).association(Arc::clone(&association))
    };
    let server = Endpoint::bind_unencrypted("127.0.0.1:0".parse()?, config(5000, true))?;
    let client = Endpoint::bind_unencrypted("127.0.0.1:0".parse()?, config(0, false))?;
    let (ours, theirs) = tokio::join!(client.connect(server.local_addr(), 5000), server.accept());
    let (ours, theirs) = (ours?, theirs.ok_or("the server was shut down")?);
    let start = now();
    let sender = tokio::spawn(async move {
        let payload = Bytes::from(vec![0; size]);
        while now() - start < Duration::from_secs(seconds) {
            ours.stream(0).send(payload.clone()).await?;
        }
        let statistics = ours.statistics();
        ours.shutdown().await;
        Ok::<_, rexmit::SendError>(statistics)
    });
    let (mut messages, mut bytes) = (0_u64, 0);
    while let Some(message) = theirs.recv().await {
        messages += 1;
        bytes += message.payload.len();
    }
    let elapsed = (now() - start).as_secs_f64();
    let statistics = sender.await??;
    println!(
        "{size} B: {:.0} Mbit/s, {:.0} messages/s, {:?}",
        bytes as f64 * 8e-6 / elapsed,
        messages as f64 / elapsed,
        statistics.recovery
    );
    println!("client {:?}\nserver {:?}", client.statistics(), server.statistics());
    println!("{:?}\n{:?}", statistics.traffic, statistics.paths);
    Ok(())
}
