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

use super::Sender;
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
}
