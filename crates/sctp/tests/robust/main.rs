//! Packet scripts of the mechanisms that distinguish reordering and delay from loss (RR-SCTP §4, RFC 3708, 4015, 5682,
//! 8985), in exact virtual time. The peer is an unmodified RFC 9260 receiver.

#[path = "../kit/mod.rs"]
mod kit;

mod detection;
mod figure_5;
mod others;
mod threshold;

use kit::*;
use rexmit_sctp::recovery::{RecoveryConfig, SpuriousEvents};

/// The payload of a DATA chunk that fills a packet of the default size, and the size of that chunk (PMDCS).
const FULL: usize = 1204;
const PMDCS: u64 = 1220;

/// The `n`th TSN, from 1, which is two below the wrap; `tsn(0)` is the cumulative TSN before the first.
const fn tsn(n: u32) -> u32 {
    kit::tsn(n).wrapping_sub(1)
}

impl Script {
    /// Established at 200 ms by a handshake that measured two round trips of 100 ms.
    fn with_profile(name: &str) -> Self {
        let profile = RecoveryConfig::profile(name).expect("a profile");
        let mut script = Self::client_with(|_, association| {
            association.failure.heartbeat_interval = None;
            association.recovery = profile.max_burst(None);
        });
        script.take_init();
        script.at(100).peer_writes(|p| p.init_ack(&peer_init(PEER_TAG), answer_params));
        expect_packet!(script, [CookieEcho(_)]);
        script.at(200).peer_sends([CookieAck]);
        expect_event!(script, rexmit_sctp::Event::Connected { .. });
        script
    }

    /// Sends messages that fill `count` packets.
    fn offer(&mut self, count: usize) {
        for _ in 0..count {
            self.send(&[b'x'; FULL]);
        }
    }

    /// A SACK of the peer arrives.
    fn peer_sacks(&mut self, cumulative: u32, blocks: &[(u16, u16)], duplicates: &[u32]) {
        let duplicates: Vec<u32> = duplicates.iter().map(|&n| tsn(n)).collect();
        let cumulative = tsn(cumulative);
        self.peer_writes(|p| p.sack(cumulative, PEER_RWND, blocks.iter().copied(), duplicates));
    }

    /// The same at `ms`; returns the chunks that are transmitted then.
    #[track_caller]
    fn sacked_at(&mut self, ms: u64, cumulative: u32, blocks: &[(u16, u16)]) -> Vec<u32> {
        self.at(ms).peer_sacks(cumulative, blocks, &[]);
        self.take_all()
    }

    /// Reads all chunks that are sent now, by number from 1.
    #[track_caller]
    fn take_all(&mut self) -> Vec<u32> {
        let mut numbers = Vec::new();
        while let Some(sent) = self.poll_packet() {
            numbers.extend(sent.chunks().iter().map(|chunk| match chunk {
                Data(data) => data.tsn.wrapping_sub(tsn(0)),
                other => panic!("{other:?} is no DATA"),
            }));
        }
        numbers
    }

    fn spurious_events(&self) -> SpuriousEvents {
        self.statistics().recovery.spurious_events
    }

    fn ssthresh(&self) -> u64 {
        self.statistics().paths[0].ssthresh
    }

    fn cwnd(&self) -> u64 {
        self.statistics().paths[0].cwnd
    }
}
