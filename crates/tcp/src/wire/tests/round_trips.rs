//! Written values are read back unchanged.

use super::*;

#[test]
fn every_header_and_payload() {
    let mut rng = rng(1);
    for _ in 0..2_000 {
        let header = random_header(&mut rng);
        let payload = random_bytes(&mut rng, 200);
        for addresses in [V4, V6] {
            let bytes = written(&header, addresses, &payload);
            let segment = parsed(addresses, &bytes);
            assert_eq!(segment, Segment { header, payload: &payload });
        }
    }
}

/// A ring buffer splits a payload at its end.
#[test]
fn a_payload_in_two_parts_is_the_same_wherever_it_is_split() {
    let header = random_header(&mut rng(2));
    let payload: Vec<u8> = (0..37).collect();
    let whole = written(&header, V4, &payload);
    let mut out = vec![0xEE; 999];
    for at in 0..=payload.len() {
        header.write(V4, payload.split_at(at), &mut out);
        assert_eq!(out, whole, "split at {at}");
    }
}

#[test]
fn a_data_segment_is_written_without_allocation() {
    let timestamps = Some(Timestamps { value: 1, echo_reply: 2 });
    let header =
        Header { options: Options { timestamps, ..Options::default() }, ..Header::default() };
    let mut out = Vec::with_capacity(1500);
    let payload = [7; 1448];
    let info = allocation_counter::measure(|| {
        header.write(V4, (&payload[..700], &payload[700..]), &mut out);
    });
    assert_eq!((info.count_total, out.len()), (0, 1480));
}

#[test]
fn sequence_numbers_are_taken_by_payload_syn_and_fin() {
    for (flags, len) in [
        (Flags::default(), 3),
        (Flags::SYN, 4),
        (Flags::FIN, 4),
        (Flags::SYN.and(Flags::FIN), 5),
        (Flags::RST.and(Flags::ACK), 3),
    ] {
        let header = Header { flags, ..Header::default() };
        assert_eq!(Segment { header, payload: b"abc" }.sequence_len(), len);
    }
}
