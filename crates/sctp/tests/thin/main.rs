//! Packet scripts of the mechanisms for thin streams (Petlund 2009 §5, §8), in exact virtual time: when each
//! retransmits, and that it does not if it is disabled or the stream is not thin. The peer is an unmodified RFC 9260
//! receiver.

#[path = "../kit/mod.rs"]
mod kit;

mod copies;
mod destinations;
mod interactive;
mod mechanisms;
mod outages;
mod pattern;
mod sampling;
mod setup;
mod streams;

use std::time::Duration;

use kit::*;
use rexmit_sctp::AssociationConfig;
use rexmit_sctp::recovery::{BundlingConfig, ThinConfig, ThinSctpConfig};

/// The `n`th TSN, from 1; `tsn(0)` is the cumulative TSN before the first.
const fn tsn(n: u32) -> u32 {
    kit::tsn(n).wrapping_sub(1)
}

impl Script {
    /// An association with these mechanisms, established at 200 ms by a handshake that measured
    /// two round trips of 100 ms: RTTVAR is 37.5 ms, and SRTT + 4 · RTTVAR 250 ms.
    fn thin(thin: ThinConfig) -> Self {
        Self::measured(|association| association.recovery.thin = thin)
    }

    fn measured(change: impl FnOnce(&mut AssociationConfig)) -> Self {
        let mut script = Self::client_with(|_, association| {
            association.failure.heartbeat_interval = None;
            change(association);
        });
        script.take_init();
        script.at(100).peer_writes(|p| p.init_ack(&peer_init(PEER_TAG), answer_params));
        expect_packet!(script, [CookieEcho(_)]);
        script.at(200).peer_sends([CookieAck]);
        expect_event!(script, rexmit_sctp::Event::Connected { .. });
        script
    }

    /// Sends a message of a few bytes, which must be transmitted at once as chunk `n`, alone in its packet.
    #[track_caller]
    fn send_alone(&mut self, n: u32) {
        self.send(b"payload");
        assert_eq!(self.take_data(), [n]);
    }

    /// A SACK of the peer arrives.
    fn peer_sacks(&mut self, cumulative: u32, blocks: &[(u16, u16)], duplicates: &[u32]) {
        let (blocks, duplicates) = (blocks.iter().copied(), duplicates.iter().copied());
        self.peer_writes(|p| p.sack(cumulative, PEER_RWND, blocks, duplicates));
    }

    /// Reads a packet that contains only DATA; returns the number of each chunk, from 1. TSNs ascend.
    #[track_caller]
    fn take_data(&mut self) -> Vec<u32> {
        self.take_flagged_data().0
    }

    /// The same, with whether each chunk has the I bit.
    #[track_caller]
    fn take_flagged_data(&mut self) -> (Vec<u32>, Vec<bool>) {
        let sent = self.next_packet();
        let data = |chunk: &Chunk<'_>| match chunk {
            Data(data) => (data.tsn.wrapping_sub(tsn(0)), data.flags.immediate),
            other => panic!("{other:?} is no DATA"),
        };
        let (numbers, flags): (Vec<_>, Vec<_>) = sent.chunks().iter().map(data).unzip();
        assert!(numbers.is_sorted(), "{sent:?}");
        (numbers, flags)
    }
}

fn m1() -> ThinConfig {
    ThinConfig::OFF.rto_min(Some(Duration::from_millis(200)))
}
