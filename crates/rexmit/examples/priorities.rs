//! Small messages on time during a large transfer, over one association:
//! `cargo run --release -p rexmit --example priorities [PACKETS]`.
//!
//! A client sends 60 bytes every 50 ms on stream 0 and meanwhile two messages of 1 MB on stream 1, over an
//! emulated link of 10 Mbit/s with 10 ms each way and a queue of 20 packets (or PACKETS). The latency of the small
//! ones is printed four times: with the profile `mixed`, which keeps the queue of the link short; with
//! `interactive`, messages interleaved and stream 0 first; with a peer that cannot interleave; and in the order of the calls.
//! A longer queue of the link shows its own delay with all but the first.

use std::time::Duration;

use rexmit::clock::now;
use rexmit::emulator::{Emulator, EmulatorConfig};
use rexmit::path::BitRate;
use rexmit::path::{Delay, PathConfig, QueueLimit};
use rexmit::{AssociationConfig, Endpoint, EndpointConfig, Scheduling};

const INPUTS: u16 = 0;
const BULK: u16 = 1;
const BULK_BYTES: usize = 1_000_000;
const EVERY: Duration = Duration::from_millis(50);

type Error = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let queue = std::env::args().nth(1).map_or(Ok(20), |packets| packets.parse())?;
    println!("latency in ms                      p50    p90    max");
    let interactive = AssociationConfig::interactive; // It interleaves if the peer does, too.
    for (name, association) in [
        ("mixed", AssociationConfig::mixed()),
        ("interleaved, inputs first", interactive().scheduling(Scheduling::Priority)),
        (
            "whole messages, inputs first",
            interactive().interleaving(false).scheduling(Scheduling::Priority),
        ),
        (
            "in the order of the calls",
            interactive().interleaving(false).scheduling(Scheduling::FirstComeFirstServed),
        ),
    ] {
        let latencies = measure(association, queue).await?;
        let ms = |share: usize| latencies[(latencies.len() - 1) * share / 100].as_secs_f64() * 1e3;
        println!("{name:30}{:8.0}{:7.0}{:7.0}", ms(50), ms(90), ms(100));
    }
    Ok(())
}

/// The latencies of the inputs sent during the transfer, ascending.
pub(crate) async fn measure(
    association: AssociationConfig,
    queue_packets: usize,
) -> Result<Vec<Duration>, Error> {
    let association = association
        .max_message_bytes(BULK_BYTES)
        .receive_buffer_bytes(4 << 20)
        .send_buffer_bytes(4 << 20);
    let config = EndpointConfig::default().association(association.into());
    let server = Endpoint::bind_unencrypted("127.0.0.1:0".parse()?, config.clone().accept(true))?;
    let path = PathConfig {
        delay: Delay::constant(Duration::from_millis(10)),
        rate: BitRate::new(10_000_000),
        queue: QueueLimit::Packets(queue_packets),
        ..PathConfig::default()
    };
    let link = EmulatorConfig::new("127.0.0.1:0".parse()?, server.local_addr());
    let emulator = Emulator::start(&link.forward(path.clone()).backward(path))?;

    let start = now();
    let port = server.port();
    let receiving = tokio::spawn(async move {
        let Some(association) = server.accept().await else { return Vec::new() };
        let (mut latencies, mut transfers, mut end) = (Vec::new(), 0, Duration::MAX);
        // Until both large messages have arrived, and the inputs that were sent before.
        while let Some(message) = association.recv().await {
            if message.stream == BULK {
                transfers += 1;
                end = if transfers == 2 { now() - start } else { end };
            } else if let Some(sent_at) = message.payload.first_chunk() {
                let sent_at = Duration::from_nanos(u64::from_be_bytes(*sent_at));
                if sent_at > end {
                    break;
                }
                latencies.push(now() - start - sent_at);
            }
        }
        latencies.sort_unstable();
        latencies
    });

    let client = Endpoint::bind_unencrypted("127.0.0.1:0".parse()?, config.port(0))?;
    let association = client.connect(emulator.local_addr(), port).await?;
    let (inputs, bulk) = (association.stream(INPUTS), association.stream(BULK));
    inputs.set_priority(1000)?; // Streams begin with 256.
    for _ in 0..2 {
        bulk.send(vec![0; BULK_BYTES]).await?;
    }
    let sending = tokio::spawn(async move {
        let mut tick = tokio::time::interval(EVERY);
        loop {
            tick.tick().await;
            let mut input = vec![0; 60];
            input[..8].copy_from_slice(&((now() - start).as_nanos() as u64).to_be_bytes());
            if inputs.send(input).await.is_err() {
                return;
            }
        }
    });
    let latencies = receiving.await?;
    sending.abort();
    association.abort(b"it is measured");
    emulator.stop()?;
    Ok(latencies)
}
