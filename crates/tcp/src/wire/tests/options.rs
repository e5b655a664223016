//! Options, in any order and of any length.

use super::*;
use crate::wire::{MAX_OPTIONS_LEN, MAX_SACK_BLOCKS};

#[test]
fn each_option_is_read_at_any_place() {
    let table: &[(&[u8], Options)] = &[
        (&[], Options::default()),
        (&[1, 1, 1, 0], Options::default()),
        (&[2, 4, 5, 0xB4], Options { mss: Some(1460), ..Options::default() }),
        (&[3, 3, 14, 0], Options { window_scale: Some(14), ..Options::default() }),
        (&[1, 3, 3, 255], Options { window_scale: Some(255), ..Options::default() }),
        (&[4, 2, 0, 0], Options { sack_permitted: true, ..Options::default() }),
        (&[30, 2, 4, 2], Options { sack_permitted: true, ..Options::default() }),
        // Bytes after the End of Option List are ignored.
        (&[0, 2, 4, 5], Options::default()),
        (&[1, 0, 9, 1], Options::default()),
    ];
    for (bytes, expected) in table {
        assert_eq!(Options::parse(bytes), Some(*expected), "{bytes:?}");
    }
}

#[test]
fn one_of_a_wrong_length_is_passed_over() {
    for bytes in [
        &[2, 3, 5, 4, 2, 0][..],
        &[2, 5, 5, 5, 5, 4, 2],
        &[3, 2, 4, 2],
        &[3, 4, 7, 7, 4, 2],
        &[8, 9, 1, 2, 3, 4, 5, 6, 7, 4, 2],
        &[5, 9, 1, 2, 3, 4, 5, 6, 7, 4, 2],
    ] {
        let expected = Options { sack_permitted: true, ..Options::default() };
        assert_eq!(Options::parse(bytes), Some(expected), "{bytes:?}");
    }
}

#[test]
fn one_of_an_impossible_length_spoils_all() {
    for bytes in [&[2][..], &[2, 0], &[2, 1], &[2, 4, 5], &[1, 1, 99, 3], &[4, 2, 77, 0]] {
        assert_eq!(Options::parse(bytes), None, "{bytes:?}");
    }
}

#[test]
fn any_bytes_are_read_to_their_end() {
    let mut rng = rng(1);
    for _ in 0..20_000 {
        let bytes = random_bytes(&mut rng, 40);
        if let Some(options) = Options::parse(&bytes) {
            assert!(options.sack.as_slice().len() <= MAX_SACK_BLOCKS);
        }
    }
}

#[test]
fn blocks_that_do_not_fit_are_left_out() {
    let mut options = Options {
        mss: Some(1460),
        window_scale: Some(7),
        sack_permitted: true,
        timestamps: Some(Timestamps { value: 1, echo_reply: 2 }),
        ..Options::default()
    };
    for n in 0..MAX_SACK_BLOCKS as u32 + 2 {
        options.sack.push(n, n + 1);
    }
    assert_eq!(options.sack.as_slice().len(), MAX_SACK_BLOCKS);
    for (with_syn, with_stamps, blocks) in
        [(true, true, 1), (true, false, 3), (false, true, 3), (false, false, 4)]
    {
        let mut some = Options { sack: options.sack, ..Options::default() };
        if with_syn {
            some = Options { timestamps: None, ..options };
        }
        some.timestamps = options.timestamps.filter(|_| with_stamps);
        let mut bytes = Vec::new();
        some.write(&mut bytes);
        assert_eq!(bytes.len(), some.wire_len());
        assert!(bytes.len() <= MAX_OPTIONS_LEN && bytes.len() % 4 == 0);
        let read = Options::parse(&bytes).expect("options");
        assert_eq!(read.sack.as_slice(), &options.sack.as_slice()[..blocks]);
    }
}
