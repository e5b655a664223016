//! What a run cost: packets and bytes on the wire, retransmissions by cause, spurious ones.

use rexmit_core::trace::{SendCause, TraceEvent};
use serde::{Deserialize, Serialize};

/// Packets that carried data again, by what caused the first data unit in them to be repeated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Retransmissions {
    /// The retransmission timer had expired.
    pub timeout: u64,
    /// Enough missing reports had come.
    pub fast_retransmit: u64,
    /// A probe of a closed receive window.
    pub window_probe: u64,
}

impl Retransmissions {
    /// All of them.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.timeout + self.fast_retransmit + self.window_probe
    }
}

/// Counts of one run, fed with the sender's events and with what its driver put on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Counters {
    /// Retransmissions by cause.
    pub retransmissions: Retransmissions,
    /// Packets that were judged lost and had arrived: their retransmission was in vain.
    pub spurious: u64,
    /// Packets on the wire, of any kind, in the directions that the driver counts.
    pub packets: u64,
    /// Bytes of those packets, with the headers that the driver counts.
    pub wire_bytes: u64,
}

impl Counters {
    /// Counts what the endpoint did.
    pub fn on_event(&mut self, event: &TraceEvent) {
        match event {
            TraceEvent::PacketSent { cause, .. } => match cause {
                SendCause::New => {}
                SendCause::Timeout => self.retransmissions.timeout += 1,
                SendCause::FastRetransmit => self.retransmissions.fast_retransmit += 1,
                SendCause::WindowProbe => self.retransmissions.window_probe += 1,
            },
            TraceEvent::PacketSpurious { .. } => self.spurious += 1,
            _ => {}
        }
    }

    /// Counts `packets` on the wire of `bytes` together.
    pub const fn on_wire(&mut self, packets: u64, bytes: u64) {
        self.packets += packets;
        self.wire_bytes += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(cause: SendCause) -> TraceEvent {
        TraceEvent::PacketSent { packet: 1, path: 0, cause, units: 1, bytes: 100, sequence: (7, 7) }
    }

    #[test]
    fn each_cause_has_its_own_count_and_new_data_has_none() {
        use SendCause::{FastRetransmit, New, Timeout, WindowProbe};
        let mut counters = Counters::default();
        for cause in [New, New, Timeout, Timeout, Timeout, FastRetransmit, FastRetransmit] {
            counters.on_event(&sent(cause));
        }
        counters.on_event(&sent(WindowProbe));
        counters.on_event(&TraceEvent::PacketLost { packet: 1, cause: Timeout });
        counters.on_event(&TraceEvent::PacketSpurious { packet: 1 });
        counters.on_wire(2, 300);
        counters.on_wire(1, 50);
        assert_eq!(
            counters,
            Counters {
                retransmissions: Retransmissions {
                    timeout: 3,
                    fast_retransmit: 2,
                    window_probe: 1
                },
                spurious: 1,
                packets: 3,
                wire_bytes: 350,
            }
        );
        assert_eq!(counters.retransmissions.total(), 6);
    }
}
