//! Windows, algorithm by algorithm.

mod newreno;
mod rfc9260;
mod usage;

use crate::{CongestionControl, WindowConfig};

/// RFC 9260 §7.2.1.
pub(crate) const RFC_9260: WindowConfig =
    WindowConfig { control: CongestionControl::Rfc9260, initial_packets: 4, initial_bytes: 4404 };
