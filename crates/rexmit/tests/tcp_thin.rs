//! Thin streams sent to the kernel's TCP, an unmodified peer, over lossy links.

mod common;

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use common::in_time;
use common::site::{Site, in_thread, with_time_limit};
use rexmit::RecoveryConfig;
use rexmit::tcp::{CloseReason, ConnectionConfig, TcpStream};
use rexmit_core::Seed;
use tokio::io::AsyncWriteExt;
use tokio::task::JoinHandle;

/// A link with a delay such that about three packets are in flight.
const LINK: &str = "delay 20ms loss 5%";
const INTERVAL: Duration = Duration::from_millis(14);
const MESSAGES: usize = 300;

fn config(profile: &str) -> Arc<ConnectionConfig> {
    let recovery = RecoveryConfig::tcp_profile(profile).unwrap();
    Arc::new(ConnectionConfig::default().recovery(recovery))
}

/// A connection, and the data that the kernel reads until its end.
async fn connect(site: &Site, profile: &str) -> (TcpStream, JoinHandle<Vec<u8>>) {
    let (listener, address) = site.kernel_listener(site.theirs[0]);
    let reading = in_thread(move || {
        let mut read = Vec::new();
        with_time_limit(listener.accept().unwrap().0).read_to_end(&mut read).unwrap();
        read
    });
    let stream = in_time(site.stack.connect_with(None, address, config(profile))).await.unwrap();
    (stream, reading)
}

/// Sends messages of up to 200 bytes, one at a time.
async fn send(stream: &mut TcpStream, messages: usize, seed: u64) -> Vec<u8> {
    send_every(INTERVAL, stream, messages, seed).await
}

async fn send_every(
    interval: Duration,
    stream: &mut TcpStream,
    messages: usize,
    seed: u64,
) -> Vec<u8> {
    let mut rng = Seed::from_u64(seed).rng();
    let mut sent = Vec::new();
    for _ in 0..messages {
        let mut message = vec![0; 1 + rng.below(200) as usize];
        rng.fill(&mut message);
        stream.write_all(&message).await.unwrap();
        sent.extend(message);
        tokio::time::sleep(interval).await;
    }
    sent
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bundled_data_arrive_completely_and_wireshark_reports_no_error() {
    let directory = common::tshark::Directory::new();
    let path = directory.path("capture.pcapng");
    let file = std::fs::File::create(&path).unwrap();
    let Some(site) = Site::over_capturing(LINK, file) else { return };
    let (mut stream, reading) = connect(&site, "tcp-thin-rdb").await;
    let sent = send(&mut stream, MESSAGES, 1).await;
    stream.shutdown().await.unwrap();
    assert!(in_time(reading).await.unwrap() == sent, "something else arrived");
    assert_eq!(in_time(stream.closed()).await, CloseReason::Finished);
    let statistics = stream.statistics();
    let reported = statistics.recovery;
    println!("{reported:?}, {:?}", statistics.traffic);
    let emulator = site.link.unwrap().emulator.stop().unwrap();
    let lost = emulator.forward.path.lost();
    // Nearly every message has one before it in flight.
    assert!(reported.retransmitted.redundant > MESSAGES as u64 / 2, "{reported:?}");
    assert!(statistics.traffic.redundant_segments_sent > MESSAGES as u64 / 2);
    assert!(reported.packets_repaired > 0 && lost > 0, "{reported:?}");
    // The kernel reports duplicates, so that copies are no retransmissions, nor lost packets.
    assert!(
        reported.spurious.redundant == 0
            && reported.spurious.total() <= reported.retransmitted.total()
    );
    assert!(
        reported.packets_lost <= 3 * lost + reported.timeouts * 4,
        "{lost} were lost: {reported:?}"
    );

    let Some(tshark) = common::tshark::find() else { return };
    let count = |filter: &str| tshark.count(&path, &format!("ip.src == 10.91.0.2 and {filter}"));
    assert!(count("tcp.len > 0") > MESSAGES / 2);
    assert_eq!(count("tcp.checksum.status == \"Good\""), count("tcp"));
    assert_eq!(count("_ws.malformed"), 0);
    assert_eq!(count("_ws.expert.severity == error"), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_kernel_receives_data_repaired_at_the_first_indication_completely() {
    let Some(site) = Site::over(LINK, ConnectionConfig::default()) else { return };
    let (mut stream, reading) = connect(&site, "tcp-thin").await;
    let sent = send(&mut stream, MESSAGES, 1).await;
    stream.shutdown().await.unwrap();
    assert!(in_time(reading).await.unwrap() == sent, "something else arrived");
    assert_eq!(in_time(stream.closed()).await, CloseReason::Finished);
    let reported = stream.statistics().recovery;
    println!("{reported:?}");
    assert_eq!(reported.retransmitted.redundant, 0, "nothing is copied");
    assert!(reported.packets_lost > 0);
    assert!(
        reported.retransmitted.fast_retransmit > reported.retransmitted.timeout,
        "{reported:?}"
    );
}

/// Copies in segments of their own: each message is answered before the next, or repeated.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dsacks_of_the_kernel_for_copies_are_attributed_to_copies() {
    let Some(site) = Site::over(LINK, ConnectionConfig::default()) else { return };
    let (mut stream, reading) = connect(&site, "tcp-interactive-redundant").await;
    let sent = send_every(Duration::from_millis(120), &mut stream, 80, 1).await;
    stream.shutdown().await.unwrap();
    assert!(in_time(reading).await.unwrap() == sent, "something else arrived");
    assert_eq!(in_time(stream.closed()).await, CloseReason::Finished);
    let reported = stream.statistics().recovery;
    println!("{reported:?}, {:?}", stream.statistics().srtt);
    assert!(reported.retransmitted.probe > 0 && reported.delayed_copies > 0, "{reported:?}");
    assert_eq!(reported.spurious_events.unexplained_duplicates, 0, "{reported:?}");
    assert!(
        reported.spurious.redundant == 0
            && reported.spurious.total() <= reported.retransmitted.total()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_mechanisms_can_be_changed_while_a_connection_is_up() {
    let Some(site) = Site::over(LINK, ConnectionConfig::default()) else { return };
    let (mut stream, reading) = connect(&site, "tcp-sack").await;
    let mut sent = send(&mut stream, 30, 1).await;
    let copies = |stream: &TcpStream| stream.statistics().traffic.redundant_segments_sent;
    assert_eq!(copies(&stream), 0);
    stream.set_thin(config("tcp-thin-rdb").recovery.thin).unwrap();
    sent.extend(send(&mut stream, 30, 2).await);
    let with_copies = copies(&stream);
    assert!(with_copies > 5, "{with_copies}");
    stream.set_thin(config("tcp-sack").recovery.thin).unwrap();
    sent.extend(send(&mut stream, 30, 3).await);
    assert_eq!(copies(&stream), with_copies);
    stream.shutdown().await.unwrap();
    assert!(in_time(reading).await.unwrap() == sent, "something else arrived");
}
