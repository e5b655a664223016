//! One loss pattern for every mechanism: a table of the transmissions of each chunk, with their times and causes, and
//! of the time of its delivery. The receiver is an unmodified `rfc9260` without SACK delay.

use std::sync::Arc;

use rexmit_core::trace::TraceSink;
use rexmit_core::{Instant, Machine, Route, Seed};
use rexmit_sctp::recovery::RecoveryConfig;
use rexmit_sctp::{AssociationId, Endpoint, EndpointConfig, OutboundMessage};
use rexmit_testkit::thin_pattern::{self, LEN, PATTERNS};

use super::*;

/// Each message is a DATA chunk.
struct Chunks {
    recovery: RecoveryConfig,
    id: Option<AssociationId>,
}

impl thin_pattern::Stream for Chunks {
    type Endpoint = Endpoint;

    const FIRST_UNIT: u64 = (1 << 32) + FIRST_TSN as u64;

    fn endpoints(&self, sink: Box<dyn TraceSink>) -> [Endpoint; 2] {
        let recovery = self.recovery.clone();
        let association = AssociationConfig::rfc9260().recovery(recovery).heartbeat_interval(None);
        let receiver = AssociationConfig::rfc9260().sack_delay(Duration::ZERO);
        let end = |association, accept, seed| {
            let config = EndpointConfig::default()
                .association(Arc::new(association))
                .accept(accept)
                .initial_tsn(Some(FIRST_TSN));
            Endpoint::new(config, &Seed::from_u64(seed)).expect("valid")
        };
        let mut sender = end(association, false, 1);
        sender.set_trace(Some(sink));
        [sender, end(receiver, true, 2)]
    }

    fn connect(&mut self, sender: &mut Endpoint) {
        let route = Route { local: address(1, 9899), remote: address(2, 9899) };
        self.id = Some(sender.connect(Instant::ZERO, route, 5000).expect("a new association"));
    }

    fn send(&mut self, now: Instant, sender: &mut Endpoint) {
        let message = OutboundMessage::new(0, vec![b'x'; LEN]);
        sender.send(now, self.id.expect("it is connected"), message).expect("accepted");
    }

    fn receive(&mut self, now: Instant, receiver: &mut Endpoint) -> usize {
        let mut received = 0;
        while let Some((id, event)) = receiver.poll_event() {
            let is_readable = matches!(event, rexmit_sctp::Event::Readable);
            while is_readable && receiver.receive(now, id).is_some() {
                received += 1;
            }
        }
        received
    }

    fn carries(packet: &[u8], message: u64) -> bool {
        let packet = wire::Packet::parse(packet).expect("it can be read");
        packet.chunks().flatten().any(|raw| match raw.decode() {
            Ok(Data(data)) => u64::from(data.tsn.wrapping_sub(tsn(0))) == message,
            _ => false,
        })
    }
}

#[track_caller]
fn assert_table(recovery: &RecoveryConfig, expected: [&str; PATTERNS.len()]) {
    let stream = || Chunks { recovery: recovery.clone(), id: None };
    thin_pattern::assert_table(stream, expected);
}

fn lksctp_with(thin: ThinConfig) -> RecoveryConfig {
    RecoveryConfig::profile("lksctp").expect("a profile").with_thin(thin)
}

/// The third SACK with a gap arrives 340 ms after the chunk was sent; RTO.Min is 1 s.
#[test]
fn without_mechanisms() {
    assert_table(
        &lksctp_with(ThinConfig::OFF),
        [
            " 3 x1: new 0, fast 340 -> 390",
            " 3 x2: new 0, fast 340, timeout 1340 -> 1390",
            " 3 x3: new 0, fast 340, timeout 1340, timeout 3340 -> 3390",
            // The SACK of the chunk before restarts the timer after 20 ms.
            "14 x1: new 0, timeout 1020 -> 1070",
            "14 x3: new 0, timeout 1020, timeout 3020, timeout 7020 -> 7070",
        ],
    );
}

/// After two round trips in the handshake and one of data, RTTVAR is 50 · (3/4)² = 28 ms, and the timeout 212 ms after
/// the SACK at 20 ms. Later it is RTO.Min: 200 ms.
#[test]
fn with_m1_alone() {
    assert_table(
        &lksctp_with(m1()),
        [
            " 3 x1: new 0, timeout 232 -> 282",
            // Missing reports are counted anew after the timeout; three are needed.
            " 3 x2: new 0, timeout 232, fast 420 -> 470",
            " 3 x3: new 0, timeout 232, fast 420, timeout 620 -> 670",
            "14 x1: new 0, timeout 220 -> 270",
            "14 x3: new 0, timeout 220, timeout 620, timeout 1420 -> 1470",
        ],
    );
}

/// The timer counts from when the unit was sent, not from the ACK 20 ms later.
#[test]
fn with_m2_alone() {
    assert_table(
        &lksctp_with(ThinConfig::OFF.restart_by_age(true)),
        [
            " 3 x1: new 0, fast 340 -> 390",
            " 3 x2: new 0, fast 340, timeout 1340 -> 1390",
            " 3 x3: new 0, fast 340, timeout 1340, timeout 3340 -> 3390",
            "14 x1: new 0, timeout 1000 -> 1050",
            "14 x3: new 0, timeout 1000, timeout 3000, timeout 7000 -> 7050",
        ],
    );
}

#[test]
fn with_m3_alone() {
    assert_table(
        &lksctp_with(ThinConfig::OFF.linear_timeouts(std::num::NonZeroU8::new(6))),
        [
            " 3 x1: new 0, fast 340 -> 390",
            " 3 x2: new 0, fast 340, timeout 1340 -> 1390",
            " 3 x3: new 0, fast 340, timeout 1340, timeout 2340 -> 2390",
            "14 x1: new 0, timeout 1020 -> 1070",
            "14 x3: new 0, timeout 1020, timeout 2020, timeout 3020 -> 3070",
        ],
    );
}

/// The first SACK with a gap comes after 180 ms. A chunk has one fast retransmit.
#[test]
fn with_m4_alone() {
    assert_table(
        &lksctp_with(ThinConfig::OFF.first_indication(true)),
        [
            " 3 x1: new 0, fast 180 -> 230",
            " 3 x2: new 0, fast 180, timeout 1180 -> 1230",
            " 3 x3: new 0, fast 180, timeout 1180, timeout 3180 -> 3230",
            "14 x1: new 0, timeout 1020 -> 1070",
            "14 x3: new 0, timeout 1020, timeout 3020, timeout 7020 -> 7070",
        ],
    );
}

#[test]
fn with_all_four() {
    assert_table(
        &lksctp_with(ThinConfig::M1_TO_M4),
        [
            " 3 x1: new 0, fast 180 -> 230",
            " 3 x2: new 0, fast 180, timeout 380 -> 430",
            " 3 x3: new 0, fast 180, timeout 380, timeout 580 -> 630",
            "14 x1: new 0, timeout 200 -> 250",
            "14 x3: new 0, timeout 200, timeout 400, timeout 600 -> 650",
        ],
    );
}

/// The next message, 80 ms later, has a copy of the chunk in the last packet. This repairs neither two losses in a row
/// nor the loss of the last chunk.
#[test]
fn with_copies_alone() {
    assert_table(
        &lksctp_with(ThinConfig::OFF.bundling(Some(rexmit_sctp::recovery::BundlingConfig::ONE))),
        [
            " 3 x1: new 0, copy 80 -> 130",
            " 3 x2: new 0, copy 80, fast 420, copy 480 -> 470",
            " 3 x3: new 0, copy 80, fast 420, copy 480 -> 530",
            "14 x1: new 0, timeout 1020 -> 1070",
            "14 x3: new 0, timeout 1020, timeout 3020, timeout 7020 -> 7070",
        ],
    );
}

/// The timer runs from the transmission of the chunk: 212 ms. The SACK at 260 ms, for data sent before that timeout,
/// still counts as a missing report (RFC 9260 §7.2.4).
#[test]
fn with_all_four_and_copies() {
    assert_table(
        &lksctp_with(
            ThinConfig::M1_TO_M4.bundling(Some(rexmit_sctp::recovery::BundlingConfig::ONE)),
        ),
        [
            " 3 x1: new 0, copy 80 -> 130",
            " 3 x2: new 0, copy 80, timeout 212, copy 240, fast 260 -> 262",
            " 3 x3: new 0, copy 80, timeout 212, copy 240, fast 260, copy 320 -> 290",
            "14 x1: new 0, timeout 200 -> 250",
            "14 x3: new 0, timeout 200, timeout 400, timeout 600 -> 650",
        ],
    );
}

/// SRTT + 2 RTTVAR is below the lower bound of 250 ms; no bundling, RTO.Min 1 s. Each new message, and each SACK, starts
/// the timer anew: while messages follow each other it does not expire. The last one is sent 880 ms after the third, and
/// its SACK arrives at 980 ms.
#[test]
fn with_early_fast_retransmit() {
    assert_table(
        &RecoveryConfig::profile("freebsd-efr").expect("a profile"),
        [
            " 3 x1: new 0, fast 340 -> 390",
            " 3 x2: new 0, fast 340, early 1230 -> 1280",
            // Only the fast retransmission restarts T3-rtx.
            " 3 x3: new 0, fast 340, early 1230, timeout 1340 -> 1390",
            // The SACK of the chunk before starts the timer after 20 ms.
            "14 x1: new 0, early 270 -> 320",
            "14 x3: new 0, early 270, early 520, early 770 -> 820",
        ],
    );
}
