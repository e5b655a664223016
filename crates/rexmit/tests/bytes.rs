//! Streams of bytes over an association: bounded memory, back-pressure, and how they end.

mod common;

use std::io::ErrorKind;
use std::time::Duration;

use common::{Pair, in_time};
use rexmit::{AssociationConfig, CloseReason};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};

/// The value of `send_buffer_bytes` and `receive_buffer_bytes` in these tests.
const BUFFER_BYTES: usize = 256 * 1024;

async fn pair() -> Pair {
    let config = AssociationConfig::default();
    Pair::connect_with(config.send_buffer_bytes(BUFFER_BYTES).receive_buffer_bytes(BUFFER_BYTES))
        .await
}

/// The byte at `place` of every stream in these tests.
fn byte(place: usize) -> u8 {
    (place.wrapping_mul(0x9E37_79B9) >> 13) as u8
}

/// Reads to the end, and compares each byte. Returns their number.
async fn read_all(reader: &mut (impl AsyncRead + Unpin)) -> usize {
    let (mut piece, mut place) = (vec![0; 50_000], 0);
    loop {
        let len = reader.read(&mut piece).await.unwrap();
        if len == 0 {
            return place;
        }
        assert!(piece[..len].iter().zip(place..).all(|(&it, place)| it == byte(place)));
        place += len;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_byte_stream_arrives_completely_among_messages_of_other_streams() {
    const TOTAL: usize = 64 << 20;
    let pair = pair().await;
    let mut reader = pair.theirs.stream(1).reader();
    let ours = pair.ours.clone();
    let write = async move {
        let mut writer = ours.stream(1).writer();
        let mut piece = vec![0; 100_000];
        for start in (0..TOTAL).step_by(piece.len()) {
            let len = piece.len().min(TOTAL - start);
            piece.iter_mut().zip(start..).for_each(|(it, place)| *it = byte(place));
            writer.write_all(&piece[..len]).await.unwrap();
            ours.stream(2).send("beside").await.unwrap();
        }
        writer.shutdown().await.unwrap();
        assert_eq!(writer.write(b"more").await.unwrap_err().kind(), ErrorKind::BrokenPipe);
        ours.shutdown().await
    };
    let theirs = pair.theirs.clone();
    let messages = async move {
        let mut count = 0;
        while let Some(message) = theirs.recv().await {
            assert_eq!((message.stream, &message.payload[..]), (2, &b"beside"[..]));
            count += 1;
        }
        count
    };
    let all =
        async { tokio::join!(tokio::spawn(write), tokio::spawn(messages), read_all(&mut reader)) };
    let (written, messages, read) = in_time(all).await;
    assert_eq!((read, messages.unwrap()), (TOTAL, TOTAL.div_ceil(100_000)));
    assert_eq!(written.unwrap(), CloseReason::Shutdown);
}

/// A value of `/proc/self/status`, in bytes.
#[cfg(target_os = "linux")]
fn memory(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("it can be read");
    let line = status.lines().find(|line| line.starts_with(name)).expect("it is there");
    let kib: u64 = line.split_whitespace().nth(1).and_then(|it| it.parse().ok()).expect("kB");
    kib * 1024
}

/// A gigabyte needs the memory of the buffers. Alone in its process, because the peak is that of the process: `make test-long`
/// runs it.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "it takes a minute, and measures the memory of the process"]
async fn a_gigabyte_needs_no_gigabyte() {
    const TOTAL: usize = 1 << 30;
    const MOST_BYTES: u64 = 32 << 20;
    let pair = pair().await;
    let mut reader = pair.theirs.stream(1).reader();
    let mut writer = pair.ours.stream(1).writer();
    let before = memory("VmRSS");
    let write = async {
        let mut piece = vec![0; 1 << 16];
        for start in (0..TOTAL).step_by(piece.len()) {
            piece.iter_mut().zip(start..).for_each(|(it, place)| *it = byte(place));
            writer.write_all(&piece).await.unwrap();
        }
        writer.shutdown().await.unwrap();
    };
    let ((), read) = tokio::join!(write, read_all(&mut reader));
    let peak = memory("VmHWM").saturating_sub(before);
    println!("{peak} bytes at most");
    assert_eq!(read, TOTAL);
    assert!(peak < MOST_BYTES, "{peak}");
}

/// The writer accepts at most the bytes of both buffers and two messages.
#[tokio::test]
async fn a_reader_that_does_not_read_makes_the_writer_wait() {
    let pair = pair().await;
    let mut reader = pair.theirs.stream(0).reader();
    let mut writer = pair.ours.stream(0).writer();
    let mut accepted = 0;
    let rest = Duration::from_secs(1);
    in_time(async {
        loop {
            match tokio::time::timeout(rest, writer.write(&[7; 10_000])).await {
                Ok(len) => accepted += len.unwrap(),
                // On a busy machine a pause alone does not show that the buffers are full.
                Err(_) if accepted >= BUFFER_BYTES => break,
                Err(_) => {}
            }
            assert!(accepted <= 2 * BUFFER_BYTES + 2 * 16_384, "{accepted} bytes are held");
        }
    })
    .await;
    let end = async { writer.shutdown().await.unwrap() };
    let mut all = Vec::new();
    let (_, read) = in_time(async { tokio::join!(end, reader.read_to_end(&mut all)) }).await;
    assert_eq!((read.unwrap(), all == vec![7; accepted]), (accepted, true));
}

#[tokio::test]
async fn a_stream_that_is_not_complete_is_an_error() {
    let pair = pair().await;
    for has_full_buffer in [false, true] {
        let mut reader = pair.theirs.stream(3).reader();
        let mut writer = pair.ours.stream(3).writer();
        let mut written = 0;
        let wait = Duration::from_secs(1);
        in_time(async {
            loop {
                match tokio::time::timeout(wait, writer.write(&[1; 16_384])).await {
                    Ok(len) => written += len.unwrap(),
                    Err(_) if written >= BUFFER_BYTES => break,
                    Err(_) => {}
                }
                if !has_full_buffer && written > 0 {
                    break;
                }
            }
        })
        .await;
        assert_eq!(written >= BUFFER_BYTES, has_full_buffer, "{written}");
        drop(writer);
        let mut all = Vec::new();
        let error = in_time(reader.read_to_end(&mut all)).await.unwrap_err();
        assert_eq!((error.kind(), all.len()), (ErrorKind::UnexpectedEof, written), "{error}");
        let error = reader.read(&mut [0]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnexpectedEof, "and it stays one");
    }
}

#[tokio::test]
async fn an_association_that_ends_ends_its_streams_of_bytes() {
    let pair = pair().await;
    let mut reader = pair.theirs.stream(0).reader();
    let mut writer = pair.ours.stream(0).writer();
    writer.write_all(b"half").await.unwrap();
    pair.ours.abort(b"over");
    let mut all = Vec::new();
    let error = in_time(reader.read_to_end(&mut all)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
    assert_eq!(writer.write(b"more").await.unwrap_err().kind(), ErrorKind::BrokenPipe);
}

#[tokio::test]
async fn a_message_that_is_no_part_of_a_stream_of_bytes_is_an_error() {
    let pair = pair().await;
    let mut reader = pair.theirs.stream(0).reader();
    pair.ours.stream(0).send("a message").await.unwrap();
    let error = in_time(reader.read(&mut [0; 10])).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidData);
    // Without a reader messages are for `recv` again.
    drop(reader);
    pair.ours.stream(0).send("another").await.unwrap();
    assert_eq!(in_time(pair.theirs.recv()).await.unwrap().payload, "another");
}

/// Data that the peer sends on the stream after its end is discarded: the reader reads no more, and would block all
/// data after it.
#[tokio::test]
async fn a_reader_whose_stream_has_ended_delays_nothing() {
    let pair = pair().await;
    let mut reader = pair.theirs.stream(0).reader();
    let mut writer = pair.ours.stream(0).writer();
    writer.write_all(b"all").await.unwrap();
    writer.shutdown().await.unwrap();
    pair.ours.stream(0).send("after the end").await.unwrap();
    pair.ours.stream(1).send("behind it").await.unwrap();
    let mut all = Vec::new();
    assert_eq!(in_time(reader.read_to_end(&mut all)).await.unwrap(), 3);
    for wanted in ["after the end", "behind it"] {
        assert_eq!(in_time(pair.theirs.recv()).await.unwrap().payload, wanted);
    }
    assert_eq!(reader.read(&mut [0]).await.unwrap(), 0, "the end stays the end");
}
