//! Statistics of a trace in one row, as in the tables of the thin-stream papers (Table 1).

use std::time::Duration;

use serde::Serialize;

use super::trace::{Message, Sender, Trace};

/// Headers per packet in [`Row::bits_per_second`]: Ethernet 14, IPv4 20, TCP with timestamps 32.
pub const HEADER_BYTES: u32 = 66;

/// The statistics of one side of some flows.
///
/// Interarrival times are those between two messages of the same flow; those of several flows are
/// pooled. A percentile p of n values is the one with the rank nearest to p·(n−1).
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Row {
    /// Number of messages.
    pub packets: u64,
    /// Time from the first to the last message, summed over the flows.
    #[serde(serialize_with = "seconds")]
    pub duration: Duration,
    /// Payload per message in bytes, mean.
    pub payload_mean: f64,
    /// Smallest payload in bytes.
    pub payload_min: u32,
    /// Largest payload in bytes.
    pub payload_max: u32,
    /// Interarrival times; `None` if no flow has two messages.
    pub interarrival: Option<Interarrival>,
    /// Messages per second: the inverse of the mean interarrival time.
    pub packets_per_second: f64,
    /// Bits per second, with [`HEADER_BYTES`] per message.
    pub bits_per_second: f64,
    /// Bits of payload per second.
    pub payload_bits_per_second: f64,
}

/// Interarrival times in milliseconds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Interarrival {
    /// Mean.
    pub mean_ms: f64,
    /// Median.
    pub median_ms: f64,
    /// Shortest.
    pub min_ms: f64,
    /// Longest.
    pub max_ms: f64,
    /// 1st percentile.
    pub p1_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
}

impl Row {
    /// The row of one side of all flows of `trace` together; `None` if that side sent nothing.
    #[must_use]
    pub fn of_trace(trace: &Trace, sender: Sender) -> Option<Self> {
        Self::of_flows(trace.flows.iter().map(|flow| flow.messages(sender)))
    }

    /// The row of some flows, each given by its messages in ascending order of time; `None` without
    /// any message.
    #[must_use]
    pub fn of_flows<'a>(flows: impl IntoIterator<Item = &'a [Message]>) -> Option<Self> {
        let (mut packets, mut payload) = (0u64, 0u64);
        let (mut payload_min, mut payload_max) = (u32::MAX, 0);
        let mut gaps = Vec::new();
        for flow in flows {
            packets += flow.len() as u64;
            for message in flow {
                payload += u64::from(message.bytes);
                payload_min = payload_min.min(message.bytes);
                payload_max = payload_max.max(message.bytes);
            }
            gaps.extend(flow.windows(2).map(|pair| pair[1].at.saturating_sub(pair[0].at)));
        }
        if packets == 0 {
            return None;
        }
        gaps.sort_unstable();
        let duration: Duration = gaps.iter().sum();
        let payload_mean = payload as f64 / packets as f64;
        let packets_per_second =
            if duration.is_zero() { 0.0 } else { gaps.len() as f64 / duration.as_secs_f64() };
        let bits = |bytes: f64| bytes * 8.0 * packets_per_second;
        Some(Self {
            packets,
            duration,
            payload_mean,
            payload_min,
            payload_max,
            interarrival: Interarrival::of_sorted(&gaps),
            packets_per_second,
            bits_per_second: bits(payload_mean + f64::from(HEADER_BYTES)),
            payload_bits_per_second: bits(payload_mean),
        })
    }
}

impl Interarrival {
    fn of_sorted(gaps: &[Duration]) -> Option<Self> {
        let (first, last) = (*gaps.first()?, *gaps.last()?);
        let sum: Duration = gaps.iter().sum();
        let percentile = |p: f64| ms(gaps[(p * (gaps.len() - 1) as f64).round() as usize]);
        let middle = (gaps[(gaps.len() - 1) / 2], gaps[gaps.len() / 2]);
        Some(Self {
            mean_ms: ms(sum) / gaps.len() as f64,
            median_ms: f64::midpoint(ms(middle.0), ms(middle.1)),
            min_ms: ms(first),
            max_ms: ms(last),
            p1_ms: percentile(0.01),
            p99_ms: percentile(0.99),
        })
    }
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

fn seconds<S: serde::Serializer>(duration: &Duration, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_f64(duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_two_flows_by_hand() {
        let flow = |times: &[u64]| -> Vec<Message> {
            let message = |&ms| Message { at: Duration::from_millis(ms), bytes: 10 + ms as u32 };
            times.iter().map(message).collect()
        };
        let flows = [flow(&[0, 10, 40]), flow(&[5, 25])];
        let row = Row::of_flows(flows.iter().map(Vec::as_slice)).unwrap();
        assert_eq!((row.packets, row.duration), (5, Duration::from_millis(60)));
        assert_eq!((row.payload_mean, row.payload_min, row.payload_max), (26.0, 10, 50));
        assert_eq!(row.packets_per_second, 50.0);
        assert_eq!(row.bits_per_second, 92.0 * 8.0 * 50.0);
        let gaps = row.interarrival.unwrap(); // 10, 20, 30
        assert_eq!((gaps.mean_ms, gaps.median_ms), (20.0, 20.0));
        assert_eq!((gaps.min_ms, gaps.max_ms), (10.0, 30.0));
        assert_eq!((gaps.p1_ms, gaps.p99_ms), (10.0, 30.0));
    }

    #[test]
    fn few_messages_have_no_interarrival_times() {
        assert_eq!(Row::of_flows([]), None);
        let one = [Message { at: Duration::ZERO, bytes: 7 }];
        let row = Row::of_flows([&one[..], &[]]).unwrap();
        assert_eq!((row.packets, row.interarrival, row.bits_per_second), (1, None, 0.0));
    }
}
