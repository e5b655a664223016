//! Our TCP against the kernel's, over TUN devices in namespaces of their own.

mod common;

use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr};
use std::time::Duration;

use common::site::{Site, impatient, in_thread};
use rexmit::tcp::{CloseReason, ConnectError, ConnectionConfig, TcpStream};
use rexmit_core::Seed;
use sha2::{Digest, Sha256};
use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

type Hash = [u8; 32];

/// How long a transfer may take; reached only by a failing test.
const PATIENCE: Duration = Duration::from_secs(300);

async fn patiently<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("it takes too long")
}

/// Bytes each way: enough to lose a hundred packets and more. `make test-long` sets the full
/// length.
fn bulk_bytes() -> usize {
    let megabytes = std::env::var("REXMIT_BULK_MEGABYTES");
    megabytes.map_or(20, |text| text.parse().expect("a number of megabytes")) * 1_000_000
}

/// Random bytes in pieces.
fn pieces(len: usize, seed: u64) -> impl Iterator<Item = Vec<u8>> {
    const PIECE: usize = 60_000;
    let mut rng = Seed::from_u64(seed).rng();
    (0..len.div_ceil(PIECE)).map(move |number| {
        let mut piece = vec![0; PIECE.min(len - number * PIECE)];
        rng.fill(&mut piece);
        piece
    })
}

async fn we_send(stream: &mut TcpStream, len: usize, seed: u64) -> Hash {
    let mut hash = Sha256::new();
    for piece in pieces(len, seed) {
        hash.update(&piece);
        patiently(stream.write_all(&piece)).await.unwrap();
    }
    stream.shutdown().await.unwrap();
    hash.finalize().into()
}

async fn we_receive(stream: &mut TcpStream) -> (usize, Hash) {
    let (mut hash, mut bytes, mut len) = (Sha256::new(), vec![0; 100_000], 0);
    loop {
        match patiently(stream.read(&mut bytes)).await.unwrap() {
            0 => return (len, hash.finalize().into()),
            count => {
                hash.update(&bytes[..count]);
                len += count;
            }
        }
    }
}

fn kernel_sends(stream: &mut std::net::TcpStream, len: usize, seed: u64) -> Hash {
    let mut hash = Sha256::new();
    for piece in pieces(len, seed) {
        hash.update(&piece);
        stream.write_all(&piece).unwrap();
    }
    stream.shutdown(Shutdown::Write).unwrap();
    hash.finalize().into()
}

fn kernel_receives(stream: &mut std::net::TcpStream) -> (usize, Hash) {
    let (mut hash, mut bytes, mut len) = (Sha256::new(), vec![0; 100_000], 0);
    loop {
        match stream.read(&mut bytes).unwrap() {
            0 => return (len, hash.finalize().into()),
            count => {
                hash.update(&bytes[..count]);
                len += count;
            }
        }
    }
}

/// A connection that we began.
async fn we_connect(site: &Site, theirs: IpAddr) -> (TcpStream, std::net::TcpStream) {
    let (listener, address) = site.kernel_listener(theirs);
    let accepting = in_thread(move || listener.accept().unwrap().0);
    let ours = patiently(site.stack.connect(address)).await.unwrap();
    (ours, impatient(patiently(accepting).await.unwrap()))
}

/// A connection that the kernel began.
async fn kernel_connects(site: &Site, ours: IpAddr) -> (TcpStream, std::net::TcpStream) {
    let listener = site.stack.listen(80).unwrap();
    let connecting = site.kernel_connect((ours, 80).into());
    let (ours, peer) = patiently(listener.accept()).await.unwrap();
    let theirs = patiently(connecting).await.unwrap().unwrap();
    assert_eq!((peer, ours.local_addr()), (theirs.local_addr().unwrap(), theirs.peer_addr().unwrap()));
    (ours, theirs)
}

/// Sends `len` bytes each way at once, and compares.
async fn exchange((mut ours, mut theirs): (TcpStream, std::net::TcpStream), len: usize) {
    let mut reading = theirs.try_clone().unwrap();
    let kernel_reads = in_thread(move || kernel_receives(&mut reading));
    let kernel_writes = in_thread(move || {
        let hash = kernel_sends(&mut theirs, len, 2);
        (hash, theirs)
    });
    let (mut read, mut write) = tokio::io::split(&mut ours);
    let writing = async {
        let mut hash = Sha256::new();
        for piece in pieces(len, 1) {
            hash.update(&piece);
            patiently(write.write_all(&piece)).await.unwrap();
        }
        write.shutdown().await.unwrap();
        Hash::from(hash.finalize())
    };
    let reading = async {
        let (mut hash, mut count) = (Sha256::new(), 0);
        let mut bytes = vec![0; 100_000];
        loop {
            match patiently(read.read(&mut bytes)).await.unwrap() {
                0 => break (count, Hash::from(hash.finalize())),
                some => {
                    hash.update(&bytes[..some]);
                    count += some;
                }
            }
        }
    };
    let (sent, received) = tokio::join!(writing, reading);
    assert_eq!(kernel_reads.await.unwrap(), (len, sent));
    let (kernel_sent, _theirs) = kernel_writes.await.unwrap();
    assert_eq!(received, (len, kernel_sent));
    assert_eq!(patiently(ours.closed()).await, CloseReason::Finished);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_kernel_is_client_and_server_over_ipv4_and_ipv6() {
    let Some(site) = Site::direct(ConnectionConfig::default()) else { return };
    for (ours, theirs) in site.ours.into_iter().zip(site.theirs) {
        exchange(we_connect(&site, theirs).await, 1_000_000).await;
        exchange(kernel_connects(&site, ours).await, 1_000_000).await;
    }
    let statistics = site.stack.statistics();
    assert_eq!((statistics.protocol.malformed(), statistics.packets_unsent), (0, 0));
}

/// Loss, reordering and duplicates, both ways.
const BAD_LINK: &str = "delay 1ms loss 1% reorder 1% 1ms duplicate 1%";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bulk_to_the_kernel_arrives_whole_over_a_bad_link() {
    let Some(site) = Site::over(BAD_LINK, ConnectionConfig::default()) else { return };
    let (mut ours, mut theirs) = we_connect(&site, site.theirs[0]).await;
    let receiving = in_thread(move || kernel_receives(&mut theirs));
    let sent = we_send(&mut ours, bulk_bytes(), 1).await;
    assert_eq!(receiving.await.unwrap(), (bulk_bytes(), sent));
    let statistics = ours.statistics();
    println!("{:?}", statistics.recovery);
    assert!(site.link.unwrap().emulator.stop().unwrap().forward.path.lost() > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bulk_from_the_kernel_arrives_whole_over_a_bad_link() {
    let Some(site) = Site::over(BAD_LINK, ConnectionConfig::default()) else { return };
    let (mut ours, mut theirs) = kernel_connects(&site, site.ours[0]).await;
    let sending = in_thread(move || (kernel_sends(&mut theirs, bulk_bytes(), 2), theirs));
    let received = we_receive(&mut ours).await;
    let (sent, _theirs) = sending.await.unwrap();
    assert_eq!(received, (bulk_bytes(), sent));
    let traffic = ours.statistics().traffic;
    assert!(traffic.out_of_order_received > 0 && traffic.duplicates_received > 0, "{traffic:?}");
}
