//! One loss pattern for every mechanism: a table of the transmissions of a message's bytes, with their times and
//! causes, and of the time at which the peer's application received them. The receiver is an unmodified `tcp-sack`
//! without delayed acknowledgements.

use std::sync::Arc;
use std::time::Duration;

use rexmit_core::trace::TraceSink;
use rexmit_core::{Instant, Machine, Seed};
use rexmit_tcp::recovery::{RecoveryConfig, ThinConfig};
use rexmit_tcp::wire::Segment;
use rexmit_tcp::{ConnectionConfig, ConnectionId, Endpoint, EndpointConfig};
use rexmit_testkit::address;
use rexmit_testkit::thin_pattern::{self, LEN, PATTERNS};

/// The sequence numbers wrap within the third message.
const ISS: u32 = u32::MAX - 250;

/// Each message is a segment.
struct Segments {
    recovery: RecoveryConfig,
    id: Option<ConnectionId>,
    /// The receiver's.
    accepted: Option<ConnectionId>,
    received_bytes: usize,
}

impl thin_pattern::Stream for Segments {
    type Endpoint = Endpoint;

    const FIRST_UNIT: u64 = 1;

    fn endpoints(&self, sink: Box<dyn TraceSink>) -> [Endpoint; 2] {
        let sender = ConnectionConfig::sack().recovery(self.recovery.clone()).nagle(false);
        let receiver = ConnectionConfig::sack().ack_delay(Duration::ZERO);
        let end = |connection, seed| {
            let config = EndpointConfig::default()
                .connection(Arc::new(connection))
                .initial_sequence(Some(ISS));
            Endpoint::new(config, &Seed::from_u64(seed)).expect("valid")
        };
        let (mut sender, mut receiver) = (end(sender, 1), end(receiver, 2));
        sender.set_trace(Some(sink));
        receiver.listen(80, None).expect("a free port");
        [sender, receiver]
    }

    fn connect(&mut self, sender: &mut Endpoint) {
        let connected = sender.connect(Instant::ZERO, address(1, 0), address(2, 80));
        self.id = Some(connected.expect("a new connection"));
    }

    fn send(&mut self, now: Instant, sender: &mut Endpoint) {
        let sent = sender.send(now, self.id.expect("it is connected"), &[b'x'; LEN]);
        assert_eq!(sent, Ok(LEN));
    }

    fn receive(&mut self, now: Instant, receiver: &mut Endpoint) -> usize {
        while let Some((id, _)) = receiver.poll_event() {
            self.accepted = Some(id);
        }
        let before = self.received_bytes / LEN;
        let mut into = [0; 1000];
        while let Some(id) = self.accepted
            && let Ok(len @ 1..) = receiver.receive(now, id, &mut into)
        {
            self.received_bytes += len;
        }
        self.received_bytes / LEN - before
    }

    fn carries(packet: &[u8], message: u64) -> bool {
        let segment = Segment::parse(address(1, 0).ip(), address(2, 0).ip(), packet);
        let segment = segment.expect("it can be read");
        let from = u64::from(segment.header.sequence.wrapping_sub(ISS).wrapping_sub(1));
        let first = (message - 1) * LEN as u64;
        from <= first && first < from + segment.payload.len() as u64
    }
}

#[track_caller]
fn assert_table(recovery: &RecoveryConfig, expected: [&str; PATTERNS.len()]) {
    let stream =
        || Segments { recovery: recovery.clone(), id: None, accepted: None, received_bytes: 0 };
    thin_pattern::assert_table(stream, expected);
}

fn profile(name: &str) -> RecoveryConfig {
    RecoveryConfig::tcp_profile(name).expect("a profile")
}

fn sack_with(thin: ThinConfig) -> RecoveryConfig {
    profile("tcp-sack").with_thin(thin)
}

/// The third SACK with a gap arrives 340 ms after the message was sent. RTO.Min is 1 s, and the ACK of the message
/// before restarts the timer at 20 ms. A retransmission does not restart it (RFC 6298 §5).
#[test]
fn without_mechanisms() {
    assert_table(
        &sack_with(ThinConfig::OFF),
        [
            " 3 x1: new 0, fast 340 -> 390",
            " 3 x2: new 0, fast 340, timeout 1020 -> 1070",
            " 3 x3: new 0, fast 340, timeout 1020, timeout 3020 -> 3070",
            "14 x1: new 0, timeout 1020 -> 1070",
            "14 x3: new 0, timeout 1020, timeout 3020, timeout 7020 -> 7070",
        ],
    );
}

/// TCP of 2009 without SACK: the timeout of SRTT + 200 ms expires before the third duplicate ACK.
#[test]
fn of_2009() {
    assert_table(
        &profile("tcp-newreno"),
        [
            " 3 x1: new 0, timeout 320 -> 370",
            " 3 x2: new 0, timeout 320, timeout 920 -> 970",
            " 3 x3: new 0, timeout 320, timeout 920, timeout 2120 -> 2170",
            "14 x1: new 0, timeout 320 -> 370",
            "14 x3: new 0, timeout 320, timeout 920, timeout 2120 -> 2170",
        ],
    );
}

/// After the handshake and one sample of data, RTTVAR is 37.5 ms and the RTO 250 ms, which runs from the
/// acknowledgement at 20 ms. A SACK after the loss lowers RTTVAR to 28 ms; the backed-off timeout is then twice 212.5
/// ms. Later the RTO is RTO.Min: 200 ms.
#[test]
fn with_m1_alone() {
    let m1 = ThinConfig::OFF.rto_min(Some(Duration::from_millis(200)));
    assert_table(
        &sack_with(m1),
        [
            " 3 x1: new 0, timeout 270 -> 320",
            " 3 x2: new 0, timeout 270, timeout 695 -> 745",
            " 3 x3: new 0, timeout 270, timeout 695, timeout 1545 -> 1595",
            "14 x1: new 0, timeout 220 -> 270",
            "14 x3: new 0, timeout 220, timeout 620, timeout 1420 -> 1470",
        ],
    );
}

/// The timer counts from when the unit was sent, not from the ACK 20 ms later.
#[test]
fn with_m2_alone() {
    assert_table(
        &sack_with(ThinConfig::OFF.restart_by_age(true)),
        [
            " 3 x1: new 0, fast 340 -> 390",
            " 3 x2: new 0, fast 340, timeout 1000 -> 1050",
            " 3 x3: new 0, fast 340, timeout 1000, timeout 3000 -> 3050",
            "14 x1: new 0, timeout 1000 -> 1050",
            "14 x3: new 0, timeout 1000, timeout 3000, timeout 7000 -> 7050",
        ],
    );
}

#[test]
fn with_t1_alone() {
    assert_table(
        &sack_with(ThinConfig::OFF.linear_timeouts(std::num::NonZeroU8::new(6))),
        [
            " 3 x1: new 0, fast 340 -> 390",
            " 3 x2: new 0, fast 340, timeout 1020 -> 1070",
            " 3 x3: new 0, fast 340, timeout 1020, timeout 2020 -> 2070",
            "14 x1: new 0, timeout 1020 -> 1070",
            "14 x3: new 0, timeout 1020, timeout 2020, timeout 3020 -> 3070",
        ],
    );
}

/// The first SACK with a gap comes after 180 ms.
#[test]
fn with_t2_alone() {
    assert_table(
        &sack_with(ThinConfig::OFF.first_indication(true)),
        [
            " 3 x1: new 0, fast 180 -> 230",
            " 3 x2: new 0, fast 180, timeout 1020 -> 1070",
            " 3 x3: new 0, fast 180, timeout 1020, timeout 3020 -> 3070",
            "14 x1: new 0, timeout 1020 -> 1070",
            "14 x3: new 0, timeout 1020, timeout 3020, timeout 7020 -> 7070",
        ],
    );
}

/// The next message, 80 ms later, bundles the one before. If both are lost, so is a copy of the next message, and the
/// SACK after 260 ms reports that: a recovery begins, in which the hole below is retransmitted (RFC 6675 §4, `NextSeg`
/// rule 3).
#[test]
fn with_rdb_alone() {
    assert_table(
        &sack_with(ThinConfig::OFF.bundling(Some(rexmit_tcp::recovery::BundlingConfig::ONE))),
        [
            " 3 x1: new 0, copy 80 -> 130",
            " 3 x2: new 0, copy 80, fast 260 -> 310",
            " 3 x3: new 0, copy 80, fast 260, timeout 1020 -> 1070",
            "14 x1: new 0, timeout 1020 -> 1070",
            "14 x3: new 0, timeout 1020, timeout 3020, timeout 7020 -> 7070",
        ],
    );
}

/// T1, T2, M1 and M2, with the timeout of Linux: SRTT + 200 ms. The fast retransmit restarts the timer, which counts
/// from the transmission of the oldest message in flight, at 160 ms.
#[test]
fn with_all_but_rdb() {
    assert_table(
        &profile("tcp-thin"),
        [
            " 3 x1: new 0, fast 180 -> 230",
            " 3 x2: new 0, fast 180, timeout 460 -> 510",
            " 3 x3: new 0, fast 180, timeout 460, timeout 760 -> 810",
            "14 x1: new 0, timeout 300 -> 350",
            "14 x3: new 0, timeout 300, timeout 600, timeout 900 -> 950",
        ],
    );
}

/// The oldest packet in flight after 260 ms is that of 240 ms.
#[test]
fn with_all() {
    assert_table(
        &profile("tcp-thin-rdb"),
        [
            " 3 x1: new 0, copy 80 -> 130",
            " 3 x2: new 0, copy 80, fast 260 -> 310",
            " 3 x3: new 0, copy 80, fast 260, timeout 540 -> 590",
            "14 x1: new 0, timeout 300 -> 350",
            "14 x3: new 0, timeout 300, timeout 600, timeout 900 -> 950",
        ],
    );
}
