//! SYN cookies: the state between SYN and ACK, which a full backlog has no room for, is encoded in the
//! SYN-ACK and returned by the peer (RFC 4987 §3.6).
//!
//! The initial sequence number is a keyed hash of both ends, the peer's initial sequence number and the time,
//! with an index of its MSS in the lowest three bits. Window scale and SACK are in the lowest bits of the
//! timestamp, which the peer echoes; without timestamps the connection has neither.
//!
//! 29 bits are left for the hash. An attacker who guesses them gets a connection from a forged address, as
//! with any initial sequence number; therefore cookies are only accepted while the backlog was full recently.
//! The hash does not cover the bits in the timestamp: they only describe the peer's own capabilities.

use std::collections::VecDeque;
use std::time::Duration;

use rexmit_core::{Instant, Seed};
use rustc_hash::FxHashSet;

use super::four_tuple::{FourTuple, SecretKey};
use crate::wire::{Header, Options};

/// The time for which a cookie's hash is current; cookies of the period before are still accepted.
const PERIOD: Duration = Duration::from_secs(64);
/// Accepted cookies that are remembered; beyond it, the oldest are forgotten.
const MAX_ACCEPTED: usize = 65_536;

/// The values to which an MSS is rounded down: the smallest that we accept, the defaults for IPv4 and IPv6, and those
/// of usual links.
const MSS: [u16; 8] = [88, 536, 1024, 1220, 1360, 1440, 1460, 8960];
const MSS_BITS: u32 = 0b111;

/// The lowest bits of the timestamp: four of the window scale, one of SACK.
const OPTION_BITS: u32 = 0b1_1111;
const SACK_BIT: u32 = 0b1_0000;
const NO_SCALE: u32 = 15;

/// The SYN cookies of an endpoint.
#[derive(Debug)]
pub(super) struct Cookies {
    key: SecretKey,
    last_made: Option<Instant>,
    accepted: Accepted,
}

/// A valid cookie that the peer has returned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Opened {
    /// The SYN, with the options that the cookie contained.
    pub(super) syn: Header,
    /// The whole hash of the cookie, under which [`Cookies::accept`] stores it.
    mark: u64,
}

/// Why the acknowledgment number of a segment is not a valid cookie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Refused {
    /// No cookie was sent recently.
    NoneInUse,
    /// The cookie was used already.
    Used,
    /// The cookie is forged or too old, or the segment is not the first of the connection.
    Unknown,
}

impl Cookies {
    pub(super) fn new(seed: &Seed) -> Self {
        let (key, accepted) = (SecretKey::new(seed, "SYN cookie"), Accepted::default());
        Self { key, last_made: None, accepted }
    }

    /// The initial sequence number that encodes `syn`, as reduced by [`kept`].
    pub(super) fn make(&mut self, now: Instant, tuple: &FourTuple, syn: &Header) -> u32 {
        self.last_made = Some(now);
        let mss = syn.options.mss.unwrap_or(MSS[0]);
        let index = MSS.iter().rposition(|&entry| entry <= mss).unwrap_or(0) as u32;
        cookie(self.hash(period(now), tuple, syn.sequence, index), index)
    }

    /// The SYN encoded in the cookie that `ack` acknowledges, if the cookie is ours, not too old, and was not used
    /// before. `clock` is the present TSval, if timestamps are enabled.
    ///
    /// # Errors
    /// See [`Refused`].
    pub(super) fn open(
        &self,
        now: Instant,
        tuple: &FourTuple,
        ack: &Header,
        clock: Option<u32>,
    ) -> Result<Opened, Refused> {
        if self.last_made.is_none_or(|at| now - at >= 2 * PERIOD) {
            return Err(Refused::NoneInUse);
        }
        let (found, irs) = (ack.acknowledgment.wrapping_sub(1), ack.sequence.wrapping_sub(1));
        let index = found & MSS_BITS;
        let present = period(now);
        let mark = [Some(present), present.checked_sub(1)]
            .into_iter()
            .flatten()
            .map(|period| self.hash(period, tuple, irs, index))
            .find(|&hash| cookie(hash, index) == found)
            .ok_or(Refused::Unknown)?;
        if self.accepted.contains(mark) {
            return Err(Refused::Used);
        }
        let mut options = Options { mss: Some(MSS[index as usize]), ..Options::default() };
        if let (Some(clock), Some(stamps)) = (clock, ack.options.timestamps) {
            let age = clock.wrapping_sub(stamps.echo_reply);
            if u128::from(age) > (2 * PERIOD).as_millis() + u128::from(OPTION_BITS) + 1 {
                return Err(Refused::Unknown);
            }
            let scale = stamps.echo_reply & NO_SCALE;
            options.window_scale = (scale != NO_SCALE).then_some(scale as u8);
            options.sack_permitted = stamps.echo_reply & SACK_BIT != 0;
            options.timestamps = Some(stamps);
        }
        let syn = Header { sequence: irs, options, window: ack.window, ..Header::default() };
        Ok(Opened { syn, mark })
    }

    /// Marks the cookie as used, so that it creates no other connection, however often the network delivers
    /// it.
    pub(super) fn accept(&mut self, now: Instant, opened: &Opened) {
        self.accepted.remember(now, opened.mark);
    }

    /// The hash of a cookie. The period acts as a separate secret: without the key, its hashes cannot be
    /// derived from those of other periods.
    fn hash(&self, period: u64, tuple: &FourTuple, irs: u32, index: u32) -> u64 {
        self.key.hash((period, tuple, irs, index))
    }
}

/// `syn` reduced to what a cookie can encode: an MSS of the table, and the options in the timestamp.
pub(super) fn kept(syn: &Header, is_v6: bool, with_timestamps: bool) -> Header {
    let default = if is_v6 { MSS[3] } else { MSS[1] };
    let mss = Some(syn.options.mss.unwrap_or(default));
    let options = if with_timestamps && syn.options.timestamps.is_some() {
        Options { mss, ..syn.options }
    } else {
        Options { mss, ..Options::default() }
    };
    Header { options, ..*syn }
}

/// The latest timestamp not after `clock` whose lowest bits encode `options`.
pub(super) fn timestamp(clock: u32, options: &Options) -> u32 {
    let scale = options.window_scale.map_or(NO_SCALE, |shift| u32::from(shift.min(14)));
    let sack = if options.sack_permitted { SACK_BIT } else { 0 };
    let value = clock & !OPTION_BITS | scale | sack;
    if value & OPTION_BITS > clock & OPTION_BITS {
        value.wrapping_sub(OPTION_BITS + 1)
    } else {
        value
    }
}

const fn cookie(hash: u64, index: u32) -> u32 {
    hash as u32 & !MSS_BITS | index
}

fn period(now: Instant) -> u64 {
    now.as_nanos() / PERIOD.as_nanos() as u64
}

/// The cookies that have created a connection and have not expired.
#[derive(Debug, Default)]
struct Accepted {
    order: VecDeque<(Instant, u64)>,
    /// By the hash. Hashes are our own, so that a fast hash of them is safe.
    marks: FxHashSet<u64>,
}

impl Accepted {
    fn remember(&mut self, now: Instant, mark: u64) {
        let is_over = |&(until, _): &(Instant, u64)| until <= now;
        while self.order.len() >= MAX_ACCEPTED || self.order.front().is_some_and(is_over) {
            if let Some((_, old)) = self.order.pop_front() {
                self.marks.remove(&old);
            }
        }
        if self.marks.insert(mark) {
            self.order.push_back((now + 2 * PERIOD, mark));
        }
    }

    fn contains(&self, mark: u64) -> bool {
        self.marks.contains(&mark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Flags, Timestamps};

    const CLOCK: u32 = 0x0012_3456;

    fn tuple(remote_port: u16) -> FourTuple {
        FourTuple::new(([192, 0, 2, 1], 80).into(), ([192, 0, 2, 2], remote_port).into())
    }

    fn cookies() -> Cookies {
        Cookies::new(&Seed::from_u64(1))
    }

    fn syn(options: Options) -> Header {
        Header { sequence: u32::MAX, flags: Flags::SYN, options, ..Header::default() }
    }

    /// The ACK to a SYN-ACK with a cookie made at `made`.
    fn ack(cookies: &mut Cookies, made: Instant, syn: &Header) -> Header {
        let kept = kept(syn, false, true);
        let cookie = cookies.make(made, &tuple(1), &kept);
        let echo_reply = timestamp(CLOCK, &kept.options);
        let timestamps = kept.options.timestamps.map(|_| Timestamps { value: 9, echo_reply });
        Header {
            sequence: syn.sequence.wrapping_add(1),
            acknowledgment: cookie.wrapping_add(1),
            flags: Flags::ACK,
            options: Options { timestamps, ..Options::default() },
            ..Header::default()
        }
    }

    #[test]
    fn every_combination_of_options_is_restored_from_a_cookie() {
        let stamps = Timestamps { value: 9, echo_reply: 0 };
        for case in 0..64 {
            let options = Options {
                mss: (case & 1 != 0).then_some(1460),
                sack_permitted: case & 2 != 0,
                timestamps: (case & 4 != 0).then_some(stamps),
                window_scale: (case & 8 != 0).then_some([0, 7, 14, 255][case >> 4]),
                ..Options::default()
            };
            let mut cookies = cookies();
            let ack = ack(&mut cookies, Instant::ZERO, &syn(options));
            let opened = cookies.open(Instant::ZERO, &tuple(1), &ack, Some(CLOCK));
            let read = opened.expect("our own cookie").syn;
            assert_eq!(read.sequence, u32::MAX);
            assert_eq!(read.options.mss, Some(options.mss.unwrap_or(536)));
            let is_stamped = options.timestamps.is_some();
            let scale = options.window_scale.map(|shift| shift.min(14));
            assert_eq!(read.options.window_scale, scale.filter(|_| is_stamped));
            assert_eq!(read.options.sack_permitted, options.sack_permitted && is_stamped);
            assert_eq!(read.options.timestamps.map(|stamps| stamps.value), is_stamped.then_some(9));
        }
    }

    #[test]
    fn an_mss_is_rounded_down() {
        for (mss, rounded) in
            [(0, 88), (535, 88), (536, 536), (1459, 1440), (1461, 1460), (65_535, 8960)]
        {
            let mut cookies = cookies();
            let syn = syn(Options { mss: Some(mss), ..Options::default() });
            let ack = ack(&mut cookies, Instant::ZERO, &syn);
            let opened = cookies.open(Instant::ZERO, &tuple(1), &ack, None).expect("ours");
            assert_eq!(opened.syn.options.mss, Some(rounded));
        }
    }

    #[test]
    fn a_timestamp_that_encodes_options_is_never_ahead_and_hardly_behind() {
        for clock in (0..200).chain(u32::MAX - 100..=u32::MAX) {
            for case in 0..32u8 {
                let window_scale = Some(case & 15).filter(|&shift| shift != 15);
                let options =
                    Options { window_scale, sack_permitted: case > 15, ..Options::default() };
                assert!(clock.wrapping_sub(timestamp(clock, &options)) < 32);
            }
        }
    }

    #[test]
    fn a_cookie_is_valid_until_the_end_of_the_next_period() {
        let made = Instant::from_millis(63_000);
        for (ms, is_good) in [(63_000, true), (64_000, true), (127_999, true), (128_000, false)] {
            let mut cookies = cookies();
            let ack = ack(&mut cookies, made, &syn(Options::default()));
            let now = Instant::from_millis(ms);
            // Another cookie was sent recently, so this one is checked.
            cookies.make(now, &tuple(2), &syn(Options::default()));
            assert_eq!(cookies.open(now, &tuple(1), &ack, None).is_ok(), is_good, "{ms} ms");
        }
    }

    #[test]
    fn any_change_of_a_bit_and_any_other_peer_or_key_is_noticed() {
        let mut cookies = cookies();
        let ack = ack(&mut cookies, Instant::ZERO, &syn(Options::default()));
        let open = |cookies: &Cookies, port, ack: &Header| {
            cookies.open(Instant::ZERO, &tuple(port), ack, None).is_ok()
        };
        assert!(open(&cookies, 1, &ack) && !open(&cookies, 2, &ack));
        for bit in 0..32 {
            let cookie = (ack.acknowledgment - 1) ^ (1 << bit);
            assert!(!open(&cookies, 1, &Header { acknowledgment: cookie + 1, ..ack }), "bit {bit}");
            let sequence = ack.sequence ^ (1 << bit);
            assert!(!open(&cookies, 1, &Header { sequence, ..ack }), "bit {bit}");
        }
        let mut other = Cookies::new(&Seed::from_u64(2));
        other.make(Instant::ZERO, &tuple(3), &syn(Options::default()));
        assert!(!open(&other, 1, &ack));
    }

    #[test]
    fn an_echo_of_another_time_is_refused() {
        let options = Options {
            timestamps: Some(Timestamps { value: 9, echo_reply: 0 }),
            ..Options::default()
        };
        let mut cookies = cookies();
        let ack = ack(&mut cookies, Instant::ZERO, &syn(options));
        let open = |clock| cookies.open(Instant::ZERO, &tuple(1), &ack, Some(clock)).is_ok();
        assert!(open(CLOCK) && open(CLOCK + 128_000));
        assert!(!open(CLOCK + 129_000) && !open(CLOCK - 1000));
    }

    #[test]
    fn a_cookie_creates_one_connection_and_is_checked_only_after_some_were_sent() {
        let mut cookies = cookies();
        let ack = ack(&mut cookies, Instant::ZERO, &syn(Options::default()));
        let opened = cookies.open(Instant::ZERO, &tuple(1), &ack, None).expect("ours");
        cookies.accept(Instant::ZERO, &opened);
        let refused = |cookies: &Cookies| cookies.open(Instant::ZERO, &tuple(1), &ack, None).err();
        assert_eq!(refused(&cookies), Some(Refused::Used));
        assert_eq!(refused(&self::cookies()), Some(Refused::NoneInUse));
    }

    #[test]
    fn accepted_cookies_are_remembered_up_to_a_limit_and_while_they_are_valid() {
        let mut accepted = Accepted::default();
        for mark in 0..=MAX_ACCEPTED as u64 {
            accepted.remember(Instant::ZERO, mark);
        }
        assert_eq!((accepted.order.len(), accepted.marks.len()), (MAX_ACCEPTED, MAX_ACCEPTED));
        assert!(!accepted.contains(0) && accepted.contains(1));
        accepted.remember(Instant::ZERO + 2 * PERIOD, 0);
        assert_eq!((accepted.order.len(), accepted.marks.len()), (1, 1));
    }
}
