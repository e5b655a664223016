//! The cost of a connection: memory while idle, allocations while data flow.

use allocation_counter::measure;

use super::*;

/// The memory of an idle connection in bytes: its state and its heap allocations, without the configuration, which
/// connections share.
const MAX_IDLE_BYTES: u64 = 2048;

/// Sends `len` bytes from `a` to `b` over a link without delay.
fn stream(pair: &mut Pair, len: usize, packet: &mut Vec<u8>, into: &mut [u8]) {
    let bytes = [7; 20_000];
    let Pair { now, a, b, .. } = pair;
    let (mut sent, mut got) = (0, 0);
    while got < len {
        *now += Duration::from_micros(100);
        sent += a.send(*now, &bytes[..bytes.len().min(len - sent)]);
        hand_over(*now, a, b, packet);
        while let Ok(count @ 1..) = b.call(*now, |c, cx| c.receive(cx, into)) {
            got += count;
        }
        hand_over(*now, b, a, packet);
        a.call(*now, Connection::on_timeout);
        b.call(*now, Connection::on_timeout);
        a.events.clear();
        b.events.clear();
    }
}

fn hand_over(now: Instant, from: &mut End, to: &mut End, packet: &mut Vec<u8>) {
    while from.call(now, |c, cx| c.poll_transmit(cx, packet)) {
        to.input(now, packet);
    }
}

#[test]
fn nothing_is_allocated_while_data_flow() {
    let mut pair = Pair::established(config(), config());
    let (mut packet, mut into) = (Vec::with_capacity(2000), vec![0; 8000]);
    stream(&mut pair, 3_000_000, &mut packet, &mut into);
    let before = pair.b.connection.traffic.segments_received;
    let info = measure(|| stream(&mut pair, 1_000_000, &mut packet, &mut into));
    assert!(pair.b.connection.traffic.segments_received > before + 690, "a thousand kilobytes");
    assert_eq!(info.count_total, 0);
}

#[test]
fn an_idle_connection_uses_less_than_two_kilobytes() {
    let mut pair = Pair::established(config(), config());
    let (mut packet, mut into) = (Vec::with_capacity(2000), vec![0; 8000]);
    stream(&mut pair, 500_000, &mut packet, &mut into);
    // The last acknowledgement.
    let now = pair.now + Duration::from_millis(100);
    pair.b.call(now, Connection::on_timeout);
    hand_over(now, &mut pair.b, &mut pair.a, &mut packet);
    let now = now + Duration::from_secs(60);
    let shared = Arc::new(config());
    for mut end in [pair.a, pair.b] {
        end.call(now, Connection::on_timeout);
        end.connection.config = Arc::clone(&shared);
        let held = -measure(|| drop(end.connection)).bytes_current;
        let total = held as u64 + std::mem::size_of::<Connection>() as u64;
        assert!(held > 0 && total <= MAX_IDLE_BYTES, "{total} bytes, {held} of them on the heap");
    }
}
