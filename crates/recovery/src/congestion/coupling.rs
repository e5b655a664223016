//! Windows of several paths at once that together are as aggressive as one: resource pooling
//! (Dreibholz, Becke, Adhari and Rathgeb 2011; draft-tuexen-tsvwg-sctp-multipath, "CMT/RPv2").
//!
//! With cᵢ for the window of path i and rᵢ for its smoothed round-trip time, path P has the part
//!
//! > î = (c_P / r_P) / Σ (cᵢ / rᵢ)
//!
//! of the association's rate. Its window grows by î times what it would on its own, and a loss takes
//! half of the *whole* rate from it: d̂ = max(½, ½ Σ (cᵢ / rᵢ) / (c_P / r_P)) of its own window.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The coupling of the windows of paths used at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Coupling {
    /// Nothing: each is that of a flow of its own, so that paths that meet at a bottleneck take one
    /// flow's share each.
    #[default]
    None,
    /// Together they are as aggressive as one flow (resource pooling v2). Paths that meet take one
    /// flow's share there; others are filled if their queues hold some round trips, and less with
    /// shorter ones, since a loss on either takes half of the rate of both.
    ResourcePoolingV2,
}

/// Bytes per second that a window makes of its path.
pub(crate) fn rate(cwnd: u64, srtt: Duration) -> f64 {
    cwnd as f64 / srtt.max(Duration::from_nanos(1)).as_secs_f64()
}

/// The part of its association's rate that a path has: î, above 0 and 1 at most.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct RateShare(f64);

impl RateShare {
    /// `rate` of `total`, which it is a part of.
    pub(crate) fn of(rate: f64, total: f64) -> Self {
        Self(rate / total)
    }

    /// By how much a window grows that would grow by `bytes` on its own: ⌈î · bytes⌉.
    pub(super) fn increase(self, bytes: u64) -> u64 {
        (self.0 * bytes as f64).ceil() as u64
    }

    /// The window after a loss: max(c − ⌈d̂ · c⌉, ⌈î · 4 · MTU⌉, MTU). The second of these is
    /// the least that RFC 9260 §7.2.3 leaves, of which a path has its part as well; it makes a path
    /// that is alone behave as there.
    pub(super) fn after_loss(self, cwnd: u64, packet: u64) -> u64 {
        // 1 / î is 1 at least, so that this is the larger one.
        let decrease = (0.5 / self.0 * cwnd as f64).ceil() as u64;
        cwnd.saturating_sub(decrease).max(self.increase(4 * packet)).max(packet)
    }
}
