//! Laws of the receive buffer, against a stream that is known in full.

use rexmit_core::Seed;

use super::*;

/// Two below the wrap of the numbers on the wire.
const BASE: u64 = (2 << 32) - 2;

fn byte_at(offset: u64) -> u8 {
    (offset * 31 % 251) as u8
}

fn bytes(from: u64, to: u64) -> Vec<u8> {
    (from..to).map(byte_at).collect()
}

fn put(buffer: &mut ReceiveBuffer, from: u64, to: u64) -> Inserted {
    buffer.insert(BASE + from, &bytes(from, to), BASE + 1_000_000)
}

fn blocks(buffer: &ReceiveBuffer, count: usize) -> Vec<(u64, u64)> {
    let mut blocks = SackBlocks::default();
    buffer.report(count, &mut blocks);
    let offset = |edge: u32| u64::from(edge.wrapping_sub(BASE as u32));
    blocks.as_slice().iter().map(|&(left, right)| (offset(left), offset(right))).collect()
}

#[test]
fn agrees_with_a_plain_set_of_bytes_under_random_operations() {
    for seed in 0..300 {
        let mut rng = Seed::from_u64(seed).rng();
        let mut buffer = ReceiveBuffer::new(BASE, 1 << 20, 1000);
        let mut arrived = vec![false; 600];
        let (mut read, mut in_order) = (0u64, 0u64);
        for _ in 0..200 {
            if rng.below(3) == 0 {
                let mut into = vec![0; rng.below(50) as usize];
                let count = buffer.read(&mut into) as u64;
                assert_eq!(count, (into.len() as u64).min(in_order - read));
                assert_eq!(into[..count as usize], bytes(read, read + count));
                read += count;
                let most = rng.below(30) as usize;
                let lent = buffer.lend(|lent| {
                    assert!(!lent.is_empty() || read == in_order);
                    assert_eq!(lent, bytes(read, read + lent.len() as u64));
                    lent.len().min(most)
                });
                assert!(lent <= most);
                read += lent as u64;
                continue;
            }
            let from = in_order.saturating_sub(10) + rng.below(60);
            let (to, edge) = (from + rng.below(40), (read + 100).min(600));
            let had: Vec<u64> = (from..to.min(600)).filter(|&at| arrived[at as usize]).collect();
            let inserted = buffer.insert(BASE + from, &bytes(from, to), BASE + edge);
            for at in from..to.min(edge) {
                arrived[at as usize] = true;
            }
            let before = in_order;
            while arrived.get(in_order as usize) == Some(&true) {
                in_order += 1;
            }
            assert_eq!(inserted.advanced, in_order - before);
            let first = inserted.duplicate.map(|(first, _)| first - BASE);
            assert_eq!(first, had.first().copied());
            assert_eq!(buffer.next(), BASE + in_order);
            assert_eq!(buffer.readable() as u64, in_order - read);
            assert_eq!(buffer.has_gap(), arrived[in_order as usize..].contains(&true));
            assert!(buffer.len() <= 100, "more than the window is kept");
            for (left, right) in blocks(&buffer, 4) {
                assert!(arrived[left as usize..right as usize].iter().all(|&has| has));
                assert!(!arrived[left as usize - 1] && arrived.get(right as usize) != Some(&true));
            }
        }
    }
}

#[test]
fn of_two_versions_of_a_byte_the_first_is_kept() {
    let mut buffer = ReceiveBuffer::new(BASE, 1 << 20, 10);
    buffer.insert(BASE + 2, b"CD", BASE + 100);
    buffer.insert(BASE, b"abcdef", BASE + 100);
    let mut into = [0; 6];
    assert_eq!(buffer.read(&mut into), 6);
    assert_eq!(&into, b"abCDef");
}

#[test]
fn reports_the_newest_run_first_then_those_reported_last() {
    let mut buffer = ReceiveBuffer::new(BASE, 1 << 20, 100);
    for from in [10, 50, 30, 70, 90] {
        put(&mut buffer, from, from + 5);
    }
    assert_eq!(blocks(&buffer, 3), [(90, 95), (70, 75), (30, 35)]);
    assert_eq!(blocks(&buffer, 4), [(90, 95), (70, 75), (30, 35), (50, 55)]);
    put(&mut buffer, 55, 58);
    assert_eq!(blocks(&buffer, 4), [(50, 58), (90, 95), (70, 75), (30, 35)]);
    // A run that joins two is reported as one block, and there is room for another.
    put(&mut buffer, 35, 50);
    assert_eq!(blocks(&buffer, 4), [(30, 58), (90, 95), (70, 75), (10, 15)]);
    put(&mut buffer, 0, 70);
    assert_eq!(blocks(&buffer, 4), [(90, 95)]);
}

#[test]
fn a_range_that_grows_is_listed_once_among_the_recent_ones() {
    let mut buffer = ReceiveBuffer::new(BASE, 1 << 20, 100);
    for from in [30, 10, 90, 70, 50, 55] {
        put(&mut buffer, from, from + 5);
    }
    assert_eq!(blocks(&buffer, 4), [(50, 60), (70, 75), (90, 95), (10, 15)]);
}

#[test]
fn ranges_beyond_gaps_are_limited_and_data_that_extends_one_is_still_accepted() {
    let mut buffer = ReceiveBuffer::new(BASE, 1 << 20, 2);
    put(&mut buffer, 10, 15);
    put(&mut buffer, 20, 25);
    assert!(put(&mut buffer, 30, 35).is_dropped);
    assert!(!put(&mut buffer, 15, 18).is_dropped);
    assert!(!put(&mut buffer, 8, 10).is_dropped);
    assert_eq!(put(&mut buffer, 0, 8).advanced, 18);
    assert!(!put(&mut buffer, 30, 35).is_dropped);
}

#[test]
fn duplicates_below_and_beyond_the_gap_are_distinguished() {
    let mut buffer = ReceiveBuffer::new(BASE, 1 << 20, 10);
    put(&mut buffer, 0, 10);
    put(&mut buffer, 20, 30);
    let run = |from: u64, to: u64| Some((BASE + from, BASE + to));
    assert_eq!(put(&mut buffer, 5, 9).duplicate, run(5, 9));
    assert_eq!(put(&mut buffer, 5, 12).duplicate, run(5, 10));
    assert_eq!(put(&mut buffer, 22, 40).duplicate, run(22, 30));
    assert_eq!(put(&mut buffer, 45, 50).duplicate, None);
    // The run around a duplicate is reported next (RFC 2883 §4).
    assert_eq!(put(&mut buffer, 24, 26).duplicate, run(24, 26));
    assert_eq!(blocks(&buffer, 4), [(20, 40), (45, 50)]);
}

#[test]
fn release_memory_frees_an_empty_buffer() {
    let mut buffer = ReceiveBuffer::new(BASE, 1 << 20, 10);
    put(&mut buffer, 0, 5000);
    buffer.read(&mut [0; 5000]);
    assert!(buffer.ring.capacity() >= 5000);
    buffer.release_memory();
    assert_eq!(buffer.ring.capacity(), 0);
}
