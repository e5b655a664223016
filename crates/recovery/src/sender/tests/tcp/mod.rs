//! The sender as TCP uses it: laws and tables of the profiles for TCP.
//!
//! Units of [`FULL`](super::FULL) bytes are segments of SMSS bytes; the first window holds ten with
//! SACK, four without.

mod duplicates;
mod limits;
mod random;
mod rescue;
mod round_trips;
mod scoreboard;
mod timeout;

use rexmit_core::trace::Tracer;

use super::{BASE, Sender};
use crate::RecoveryConfig;

impl Sender {
    fn tcp(profile: &str) -> Self {
        Self::with(|config| *config = RecoveryConfig::tcp_profile(profile).expect("a profile"))
    }

    fn sack() -> Self {
        Self::tcp("tcp-sack")
    }

    fn newreno() -> Self {
        Self::tcp("tcp-newreno")
    }

    /// `count` duplicate acknowledgements.
    fn duplicates(&mut self, count: usize) {
        for _ in 0..count {
            self.recovery.on_duplicate_ack(&mut Tracer::off());
        }
    }

    /// What leaves as the last resort.
    fn rescue(&mut self) -> Option<u64> {
        let unit = self.recovery.next_to_rescue(0)?;
        self.recovery.begin_packet(0);
        assert!(self.recovery.rescue(self.now, unit).is_some());
        self.recovery.end_packet(self.now, &mut Tracer::off());
        Some(unit - BASE)
    }

    /// Everything judged lost that may leave, packet by packet.
    pub(in super::super) fn resend_all(&mut self) -> Vec<u64> {
        let mut resent = Vec::new();
        loop {
            let packet = self.resend();
            if packet.is_empty() {
                return resent;
            }
            resent.extend(packet);
            assert!(resent.len() < 100_000, "nothing limits the sender");
        }
    }
}
