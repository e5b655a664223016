//! HEARTBEAT: its state on one path, and its content (RFC 9260 §8.3).

use rexmit_core::Instant;

/// Nonce, path index, time of sending.
const INFO_LEN: usize = 8 + 1 + 8;

/// The heartbeat of one path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Heartbeat {
    Off,
    /// The next HEARTBEAT is due at this time, if the path stays idle. A HEARTBEAT ACK for the previous one is still
    /// accepted.
    Resting {
        until: Instant,
        unanswered: Option<u64>,
    },
    /// Waits until fewer addresses are being probed (HB.Max.Burst). A HEARTBEAT ACK for the previous one is still
    /// accepted.
    Queued {
        unanswered: Option<u64>,
    },
    /// The HEARTBEAT is to be sent at the next opportunity.
    Due,
    /// Sent; the HEARTBEAT ACK is awaited until the deadline.
    Awaiting {
        nonce: u64,
        deadline: Instant,
    },
}

impl Heartbeat {
    pub(super) const fn deadline(self) -> Option<Instant> {
        match self {
            Self::Off | Self::Queued { .. } | Self::Due => None,
            Self::Resting { until, .. } => Some(until),
            Self::Awaiting { deadline, .. } => Some(deadline),
        }
    }

    /// The nonce that an answer must have.
    pub(super) const fn nonce(self) -> Option<u64> {
        match self {
            Self::Awaiting { nonce, .. } => Some(nonce),
            Self::Resting { unanswered, .. } | Self::Queued { unanswered } => unanswered,
            Self::Off | Self::Due => None,
        }
    }
}

/// The Heartbeat Info of a HEARTBEAT on `path`, which the HEARTBEAT ACK returns.
pub(super) fn heartbeat_info(nonce: u64, path: u8, now: Instant) -> [u8; INFO_LEN] {
    let mut info = [0; INFO_LEN];
    info[..8].copy_from_slice(&nonce.to_be_bytes());
    info[8] = path;
    info[9..].copy_from_slice(&now.as_nanos().to_be_bytes());
    info
}

/// The Heartbeat Info of a HEARTBEAT of ours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct HeartbeatInfo {
    pub(super) nonce: u64,
    pub(super) path: u8,
    pub(super) sent_at: Instant,
}

/// Parses the Heartbeat Info of a HEARTBEAT ACK. `None` if it is not in our format.
pub(super) fn read_heartbeat_info(info: &[u8]) -> Option<HeartbeatInfo> {
    let info = <&[u8; INFO_LEN]>::try_from(info).ok()?;
    let number = |bytes: &[u8]| bytes.iter().fold(0u64, |n, &b| n << 8 | u64::from(b));
    let sent_at = Instant::from_nanos(number(&info[9..]));
    Some(HeartbeatInfo { nonce: number(&info[..8]), path: info[8], sent_at })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_brings_back_what_was_sent() {
        let now = Instant::from_millis(7);
        let nonce = 0x0102_0304_0506_0708;
        let info = heartbeat_info(nonce, 3, now);
        let expected = HeartbeatInfo { nonce, path: 3, sent_at: now };
        assert_eq!(read_heartbeat_info(&info), Some(expected));
        assert_eq!(read_heartbeat_info(&info[1..]), None);
    }
}
