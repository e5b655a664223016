//! Our TCP against the kernel's, over TUN devices in namespaces of their own.

mod common;

use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown};
use std::os::fd::AsRawFd;
use std::time::Duration;

use common::site::{Site, in_thread, with_time_limit};
use rexmit::tcp::{CloseReason, ConnectError, ConnectionConfig, TcpStream};
use rexmit_core::Seed;
use sha2::{Digest, Sha256};
use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

type Hash = [u8; 32];

/// Time limit of a transfer; reached only by a failing test.
const TIME_LIMIT: Duration = Duration::from_secs(300);

async fn in_time<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(TIME_LIMIT, future).await.expect("it takes too long")
}

/// Bytes each way over the bad link: enough to lose hundreds of packets, retransmissions among them.
const BULK_BYTES: usize = 100_000_000;

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
        in_time(stream.write_all(&piece)).await.unwrap();
    }
    stream.shutdown().await.unwrap();
    hash.finalize().into()
}

async fn we_receive(stream: &mut TcpStream) -> (usize, Hash) {
    let (mut hash, mut bytes, mut len) = (Sha256::new(), vec![0; 100_000], 0);
    loop {
        match in_time(stream.read(&mut bytes)).await.unwrap() {
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
    let ours = in_time(site.stack.connect(address)).await.unwrap();
    (ours, with_time_limit(in_time(accepting).await.unwrap()))
}

/// A connection initiated by the kernel.
async fn kernel_connects(site: &Site, ours: IpAddr) -> (TcpStream, std::net::TcpStream) {
    let listener = site.stack.listen(80).unwrap();
    let connecting = site.kernel_connect((ours, 80).into());
    let (ours, peer) = in_time(listener.accept()).await.unwrap();
    let theirs = in_time(connecting).await.unwrap().unwrap();
    assert_eq!(
        (peer, ours.local_addr()),
        (theirs.local_addr().unwrap(), theirs.peer_addr().unwrap())
    );
    (ours, theirs)
}

/// Sends `len` bytes each way at the same time, and compares them.
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
            in_time(write.write_all(&piece)).await.unwrap();
        }
        write.shutdown().await.unwrap();
        Hash::from(hash.finalize())
    };
    let reading = async {
        let (mut hash, mut count) = (Sha256::new(), 0);
        let mut bytes = vec![0; 100_000];
        loop {
            match in_time(read.read(&mut bytes)).await.unwrap() {
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
    assert_eq!(in_time(ours.closed()).await, CloseReason::Finished);
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
async fn bulk_to_the_kernel_arrives_completely_over_a_bad_link() {
    let Some(site) = Site::over(BAD_LINK, ConnectionConfig::default()) else { return };
    let (mut ours, mut theirs) = we_connect(&site, site.theirs[0]).await;
    let receiving = in_thread(move || kernel_receives(&mut theirs));
    let sent = we_send(&mut ours, BULK_BYTES, 1).await;
    assert_eq!(receiving.await.unwrap(), (BULK_BYTES, sent));
    let statistics = ours.statistics();
    println!("{:?}", statistics.recovery);
    assert!(site.link.unwrap().emulator.stop().unwrap().forward.path.lost() > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bulk_from_the_kernel_arrives_completely_over_a_bad_link() {
    let Some(site) = Site::over(BAD_LINK, ConnectionConfig::default()) else { return };
    let (mut ours, mut theirs) = kernel_connects(&site, site.ours[0]).await;
    let sending = in_thread(move || (kernel_sends(&mut theirs, BULK_BYTES, 2), theirs));
    let received = we_receive(&mut ours).await;
    let (sent, _theirs) = sending.await.unwrap();
    assert_eq!(received, (BULK_BYTES, sent));
    let traffic = ours.statistics().traffic;
    assert!(traffic.out_of_order_received > 0 && traffic.duplicates_received > 0, "{traffic:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kernel_without_options_is_a_peer_too() {
    let Some(site) = Site::over(BAD_LINK, ConnectionConfig::default()) else { return };
    for switch in ["tcp_sack", "tcp_timestamps", "tcp_window_scaling"] {
        site.set_kernel(switch, "0");
    }
    exchange(we_connect(&site, site.theirs[0]).await, 1_000_000).await;
    exchange(kernel_connects(&site, site.ours[0]).await, 1_000_000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn either_side_finishes_first_and_still_receives() {
    let Some(site) = Site::direct(ConnectionConfig::default()) else { return };
    // We finish first.
    let (mut ours, mut theirs) = we_connect(&site, site.theirs[0]).await;
    ours.write_all(b"question").await.unwrap();
    ours.shutdown().await.unwrap();
    let answering = in_thread(move || {
        let mut question = String::new();
        theirs.read_to_string(&mut question).unwrap();
        theirs.write_all(b"answer").unwrap();
        question
    });
    let mut answer = String::new();
    in_time(ours.read_to_string(&mut answer)).await.unwrap();
    assert_eq!((heard(answering).await, &answer[..]), ("question".into(), "answer"));
    assert_eq!(in_time(ours.closed()).await, CloseReason::Finished);

    // The kernel does.
    let (mut ours, mut theirs) = kernel_connects(&site, site.ours[0]).await;
    let asking = in_thread(move || {
        theirs.write_all(b"question").unwrap();
        theirs.shutdown(Shutdown::Write).unwrap();
        let mut answer = String::new();
        theirs.read_to_string(&mut answer).unwrap();
        answer
    });
    let mut question = String::new();
    in_time(ours.read_to_string(&mut question)).await.unwrap();
    ours.write_all(b"answer").await.unwrap();
    ours.shutdown().await.unwrap();
    assert_eq!((heard(asking).await, &question[..]), ("answer".into(), "question"));
    assert_eq!(in_time(ours.closed()).await, CloseReason::Finished);
}

/// Data received by the kernel's side.
async fn heard(thread: tokio::task::JoinHandle<String>) -> String {
    in_time(thread).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_port_on_which_nobody_listens_refuses() {
    let Some(site) = Site::direct(ConnectionConfig::default()) else { return };
    for (ours, theirs) in site.ours.into_iter().zip(site.theirs) {
        let error = in_time(site.stack.connect((theirs, 81).into())).await.expect_err("refused");
        assert!(matches!(error, ConnectError::RefusedByPeer { .. }), "{error}");
        let error = in_time(site.kernel_connect((ours, 81).into())).await.unwrap();
        assert_eq!(error.expect_err("refused").kind(), io::ErrorKind::ConnectionRefused);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_abort_is_seen_as_a_reset_on_the_other_side() {
    let Some(site) = Site::direct(ConnectionConfig::default()) else { return };
    // The kernel aborts.
    let (mut ours, theirs) = we_connect(&site, site.theirs[0]).await;
    SockRef::from(&theirs).set_linger(Some(Duration::ZERO)).unwrap();
    drop(theirs);
    let error = in_time(ours.read(&mut [0; 10])).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    assert_eq!(ours.close_reason(), Some(CloseReason::Reset));
    // We do.
    let (ours, mut theirs) = we_connect(&site, site.theirs[0]).await;
    ours.abort();
    let error = in_thread(move || theirs.read(&mut [0; 10]).unwrap_err());
    assert_eq!(in_time(error).await.unwrap().kind(), io::ErrorKind::ConnectionReset);
    // We drop what has not been read (RFC 9293 §3.6.1).
    let (ours, mut theirs) = kernel_connects(&site, site.ours[0]).await;
    theirs.write_all(b"unheard").unwrap();
    in_time(ours.readable()).await;
    drop(ours);
    let error = in_thread(move || theirs.read(&mut [0; 10]).unwrap_err());
    assert_eq!(in_time(error).await.unwrap().kind(), io::ErrorKind::ConnectionReset);
}

/// Bytes sent by the kernel and not yet acknowledged.
fn kernel_unacknowledged(stream: &std::net::TcpStream) -> usize {
    // RFC 9293 calls it SND.NXT - SND.UNA; the queue also has what has not left.
    let mut queued: libc::c_int = 0;
    let mut unsent: libc::c_int = 0;
    // SAFETY: both calls write one int.
    let results = unsafe {
        [
            libc::ioctl(stream.as_raw_fd(), libc::TIOCOUTQ, &raw mut queued),
            libc::ioctl(stream.as_raw_fd(), SIOCOUTQNSD, &raw mut unsent),
        ]
    };
    assert_eq!(results, [0, 0]);
    usize::try_from(queued - unsent).unwrap_or(0)
}

/// Linux: unsent bytes in the send queue (`linux/sockios.h`).
const SIOCOUTQNSD: libc::Ioctl = 0x894b;

/// The largest window without scaling (RFC 7323 §1.1).
const UNSCALED: usize = 65_535;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scaled_windows_are_used_in_both_directions() {
    const LEN: usize = 4_000_000;
    let Some(site) = Site::over("delay 20ms", ConnectionConfig::default()) else { return };
    let (mut ours, mut theirs) = we_connect(&site, site.theirs[0]).await;
    let mut reading = theirs.try_clone().unwrap();
    let kernel_reads = in_thread(move || kernel_receives(&mut reading));
    let mut most_of_ours = 0;
    for piece in pieces(LEN, 1) {
        in_time(ours.write_all(&piece)).await.unwrap();
        most_of_ours = most_of_ours.max(ours.statistics().bytes_in_flight);
    }
    assert!(most_of_ours > UNSCALED as u64, "{most_of_ours} bytes in flight at most");
    ours.shutdown().await.unwrap();
    assert_eq!(in_time(kernel_reads).await.unwrap().0, LEN);

    let kernel_writes = in_thread(move || {
        let mut most = 0;
        for piece in pieces(LEN, 2) {
            theirs.write_all(&piece).unwrap();
            most = most.max(kernel_unacknowledged(&theirs));
        }
        most
    });
    assert_eq!(in_time(we_receive(&mut ours)).await.0, LEN);
    let most = in_time(kernel_writes).await.unwrap();
    assert!(most > UNSCALED, "{most} bytes in flight at most");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_stops_blocks_the_writer_and_loses_nothing() {
    let Some(site) = Site::direct(ConnectionConfig::default()) else { return };
    // The kernel does not read.
    let (mut ours, mut theirs) = we_connect(&site, site.theirs[0]).await;
    SockRef::from(&theirs).set_recv_buffer_size(50_000).unwrap();
    let sending = tokio::spawn(async move {
        let hash = we_send(&mut ours, 10_000_000, 1).await;
        (hash, ours)
    });
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(!sending.is_finished(), "nothing holds us back");
    let receiving = in_thread(move || (kernel_receives(&mut theirs), theirs));
    let (received, _theirs) = in_time(receiving).await.unwrap();
    let (sent, ours) = in_time(sending).await.unwrap();
    assert_eq!(received, (10_000_000, sent));
    assert!(ours.statistics().traffic.zero_windows.received > 0);

    // We do not.
    let (mut ours, mut theirs) = we_connect(&site, site.theirs[0]).await;
    let sending = in_thread(move || (kernel_sends(&mut theirs, 10_000_000, 2), theirs));
    let limit = ConnectionConfig::default().receive_buffer_bytes;
    let is_full = async {
        while ours.statistics().receive_buffered_bytes < limit / 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    in_time(is_full).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(!sending.is_finished(), "nothing holds the kernel back");
    let buffered = ours.statistics().receive_buffered_bytes;
    assert!(buffered <= limit, "{buffered} of {limit}");
    let received = in_time(we_receive(&mut ours)).await;
    let (sent, _theirs) = in_time(sending).await.unwrap();
    assert_eq!(received, (10_000_000, sent));
    assert!(ours.statistics().traffic.zero_windows.sent > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wireshark_finds_no_fault_in_what_we_send() {
    let Some(tshark) = common::tshark::find() else { return };
    let directory = common::tshark::Directory::new();
    let path = directory.path("capture.pcapng");
    let Some(site) = Site::over_capturing(BAD_LINK, std::fs::File::create(&path).unwrap()) else {
        return;
    };
    for (ours, theirs) in site.ours.into_iter().zip(site.theirs) {
        exchange(we_connect(&site, theirs).await, 300_000).await;
        exchange(kernel_connects(&site, ours).await, 300_000).await;
    }
    // A reset each way, too.
    let _ = in_time(site.stack.connect((site.theirs[0], 81).into())).await;
    let _ = in_time(site.kernel_connect((site.ours[0], 81).into())).await;
    site.link.unwrap().emulator.stop().unwrap();

    let from_us = "(ip.src == 10.91.0.2 or ipv6.src == fd91::2)";
    let count = |filter: &str| tshark.count(&path, &format!("tcp and {from_us} and {filter}"));
    assert!(count("tcp.len > 0") > 400);
    // Each of these gets through in the end, some twice.
    assert!(count("tcp.flags.syn == 1") >= 5 && count("tcp.flags.reset == 1") >= 1);
    assert!(count("tcp.options.sack_le") > 0, "nothing was reported");
    assert_eq!(count("tcp.checksum.status == \"Good\""), count("tcp"));
    assert_eq!(count("_ws.malformed"), 0);
    assert_eq!(count("tcp.options.unknown or tcp.option.len.invalid"), 0);
    let errors = format!("tcp and {from_us} and _ws.expert.severity == error");
    assert_eq!(tshark.field(&path, &errors, "_ws.expert.message"), "");
}
