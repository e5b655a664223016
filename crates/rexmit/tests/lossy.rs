//! Endpoints with the emulator between them.

mod common;

use std::time::Duration;

use common::{bind, client_config, in_time, server_config};
use rexmit::emulator::{Emulator, EmulatorConfig};
use rexmit::{CloseReason, OutboundMessage};
use rexmit_netsim::path::{Delay, Jitter, Loss, PathConfig, Reorder};

const MESSAGES: u32 = 10_000;
const STREAMS: u32 = 4;

/// 2 % loss; jitter and random extra delays reorder.
fn path() -> PathConfig {
    let ms = Duration::from_millis;
    PathConfig {
        delay: Delay { mean: ms(3), jitter: Jitter::Uniform(ms(1)) },
        loss: Loss { uniform: 0.02, ..Loss::default() },
        reorder: Reorder { probability: 0.02, extra: Delay::constant(ms(5)) },
        duplicate: 0.01,
        ..PathConfig::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_messages_arrive_once_and_in_order_over_a_bad_path() {
    let server = bind(server_config());
    let emulator = Emulator::start(
        &EmulatorConfig::new("127.0.0.1:0".parse().unwrap(), server.local_addr())
            .forward(path())
            .backward(path()),
    )
    .unwrap();
    let client = bind(client_config());
    let connecting = client.connect(emulator.local_addr(), server.port());
    let (ours, theirs) = in_time(async { tokio::join!(connecting, server.accept()) }).await;
    let (ours, theirs) = (ours.unwrap(), theirs.unwrap());

    let sender = tokio::spawn(async move {
        for number in 0..MESSAGES {
            let mut payload = vec![number as u8; 4 + (number as usize * 7919) % 1500];
            payload[..4].copy_from_slice(&number.to_be_bytes());
            let message = OutboundMessage::new((number % STREAMS) as u16, payload);
            ours.send(message).await.unwrap();
        }
        assert_eq!(ours.shutdown().await, CloseReason::Shutdown);
    });
    let mut next: [u32; STREAMS as usize] = std::array::from_fn(|stream| stream as u32);
    while let Some(message) = in_time(theirs.recv()).await {
        let next = &mut next[usize::from(message.stream)];
        let (number, rest) = message.payload.split_at(4);
        assert_eq!(number, next.to_be_bytes());
        assert_eq!(rest, vec![*next as u8; (*next as usize * 7919) % 1500]);
        *next += STREAMS;
    }
    assert_eq!(next, std::array::from_fn(|stream| MESSAGES + stream as u32));
    in_time(sender).await.unwrap();

    let statistics = emulator.stop().unwrap();
    assert!(
        statistics.forward.path.lost_uniform > 50 && statistics.forward.arrivals.reordered > 50
    );
    println!("late by {:?} (p99) of {:?}", statistics.lateness.p99, statistics.lateness);
}
