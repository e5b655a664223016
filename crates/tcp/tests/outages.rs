//! Outages: nothing arrives in either direction for a while. The first delivery is at most one and a half round trips
//! after the end of the outage, and few segments are sent during it. The receiver is an unmodified `tcp-sack` that
//! acknowledges at once.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use rexmit_core::{Instant, Machine, Seed};
use rexmit_tcp::recovery::RecoveryConfig;
use rexmit_tcp::{ConnectionConfig, ConnectionId, Endpoint, EndpointConfig};
use rexmit_testkit::{Pace, address};

const PROFILES: [&str; 2] = ["tcp-interactive", "tcp-interactive-redundant"];
/// The payload of a message.
const LEN: usize = 8;
/// The interval of messages, in milliseconds.
const INTERVAL_MS: u64 = 50;
/// The time before the outage: enough messages to fill the window of RTT samples.
const WARM_MS: u64 = 15_000;

/// Two endpoints, of which the first sends a message every 50 ms before, during and after an outage.
struct Outage {
    ends: [Endpoint; 2],
    client: ConnectionId,
    server: Option<ConnectionId>,
    rtt: u64,
    /// The begin and the end of the outage.
    lasts: (u64, u64),
    /// Whether only ACKs are lost.
    is_of_acks: bool,
    /// To each end: the segments on the way, with their times of arrival.
    transit: [VecDeque<(u64, rexmit_core::Route, Vec<u8>)>; 2],
    /// When segments were sent during the outage.
    sent: Vec<u64>,
    /// When the first data was received after it.
    delivered: Option<u64>,
    received_bytes: usize,
    /// The longest time from a message to its delivery during the outage.
    longest: u64,
    first_ms: Option<u64>,
}

impl Outage {
    fn new(profile: &str, rtt: u64, length: u64) -> Self {
        let recovery = RecoveryConfig::tcp_profile(profile).expect("it exists");
        let sender = ConnectionConfig::sack().recovery(recovery).nagle(false);
        let receiver = ConnectionConfig::sack().ack_delay(Duration::ZERO);
        let end = |connection, seed| {
            let config = EndpointConfig::default().connection(Arc::new(connection));
            Endpoint::new(config, &Seed::from_u64(seed)).expect("valid")
        };
        let mut ends = [end(sender, 1), end(receiver, 2)];
        ends[1].listen(80, None).expect("a free port");
        let client = ends[0].connect(Instant::ZERO, address(1, 0), address(2, 80));
        let begins = WARM_MS + 10;
        Self {
            ends,
            client: client.expect("a new connection"),
            server: None,
            rtt,
            lasts: (begins, begins + length),
            is_of_acks: false,
            transit: Default::default(),
            sent: Vec::new(),
            delivered: None,
            received_bytes: 0,
            longest: 0,
            first_ms: None,
        }
    }

    fn is_down(&self, ms: u64, to: usize) -> bool {
        (self.lasts.0..self.lasts.1).contains(&ms) && !(self.is_of_acks && to == 1)
    }

    /// Runs until the first delivery after the outage.
    fn run(mut self) -> Self {
        let mut ms = 0;
        while self.delivered.is_none() {
            self.step(ms);
            ms += 1;
            assert!(ms < self.lasts.1 + 100_000, "nothing is delivered any more");
        }
        self
    }

    fn step(&mut self, ms: u64) {
        let now = Instant::from_millis(ms);
        for to in 0..2 {
            while self.transit[to].front().is_some_and(|(at, ..)| *at <= ms) {
                let (_, route, segment) = self.transit[to].pop_front().expect("there is one");
                if !self.is_down(ms, to) {
                    self.ends[to].handle_input(now, route, &segment);
                }
            }
        }
        if self.server.is_some() && ms.is_multiple_of(INTERVAL_MS) {
            self.first_ms.get_or_insert(ms);
            assert_eq!(self.ends[0].send(now, self.client, &[b'x'; LEN]), Ok(LEN));
        }
        for from in 0..2 {
            if self.ends[from].poll_timeout().is_some_and(|at| at <= now) {
                self.ends[from].handle_timeout(now);
            }
            self.transmit(now, ms, from);
        }
        self.receive(now, ms);
    }

    fn transmit(&mut self, now: Instant, ms: u64, from: usize) {
        let mut segment = Vec::new();
        while let Some(route) = self.ends[from].poll_transmit(now, &mut segment) {
            let is_during = (self.lasts.0..self.lasts.1).contains(&ms);
            if from == 0 && is_during {
                self.sent.push(ms);
            }
            if !self.is_down(ms, 1 - from) {
                let route = rexmit_core::Route { local: route.remote, remote: route.local };
                self.transit[1 - from].push_back((ms + self.rtt / 2, route, segment.clone()));
            }
        }
    }

    fn receive(&mut self, now: Instant, ms: u64) {
        while let Some((id, _)) = self.ends[1].poll_event() {
            self.server = Some(id);
        }
        while self.ends[0].poll_event().is_some() {}
        let Some(server) = self.server else { return };
        let mut into = [0; 10_000];
        while let Ok(len @ 1..) = self.ends[1].receive(now, server, &mut into) {
            let first = self.first_ms.expect("a message was sent");
            let sent_at = first + INTERVAL_MS * (self.received_bytes / LEN) as u64;
            self.received_bytes += len;
            if ms >= self.lasts.0 + self.rtt {
                self.longest = self.longest.max(ms - sent_at);
            }
            // It was sent after the end.
            if ms >= self.lasts.1 + self.rtt / 2 {
                self.delivered.get_or_insert(ms);
            }
        }
    }
}

/// The profiles, round trips and lengths with which the first delivery is later, and how late at most: these outages end
/// between the last probe of a segment and T3-rtx, or the first probe of the silent path.
const LATER: [(&str, u64, u64, u64); 4] = [
    ("tcp-interactive", 50, 300, 170),
    ("tcp-interactive", 100, 300, 240),
    ("tcp-interactive", 100, 500, 300),
    ("tcp-interactive-redundant", 400, 1000, 740),
];

#[test]
fn the_first_delivery_follows_the_end_of_any_outage() {
    let mut late = Vec::new();
    for profile in PROFILES {
        for rtt in [20, 50, 100, 200, 400] {
            for length in [50, 100, 200, 300, 500, 700, 1000, 1500, 2000, 3000, 5000, 7000, 10_000]
            {
                let outage = Outage::new(profile, rtt, length).run();
                let took = outage.delivered.expect("it is") - outage.lasts.1;
                // With a probe every 100 ms, the bound is 100 ms and half a round trip, if that is longer.
                let most = (3 * rtt / 2 + 50).max(100 + rtt / 2);
                let later = LATER.iter().find(|it| (it.0, it.1, it.2) == (profile, rtt, length));
                let most = later.map_or(most, |it| it.3);
                if took > most {
                    late.push((profile, rtt, length, took, most, outage.sent.len()));
                }
            }
        }
    }
    assert!(late.is_empty(), "profile, RTT, length, took, most, segments: {late:#?}");
}

/// One segment per round trip, or per 100 ms, once the path is silent; the retransmission timer expires as well.
#[test]
fn little_is_sent_while_an_outage_lasts() {
    let mut many = Vec::new();
    for profile in PROFILES {
        for rtt in [20, 50, 100, 200] {
            let outage = Outage::new(profile, rtt, 30_000).run();
            let (sent, most) = (Pace::of(&outage.sent, outage.lasts.0), Pace::most(rtt));
            if !sent.is_within(most) {
                many.push((profile, rtt, sent, most));
            }
        }
    }
    assert!(many.is_empty(), "profile, RTT, segments, most: {many:#?}");
}

/// A probe is one segment of consecutive data from the earliest on, so new messages arrive as long as everything
/// outstanding fits into it.
#[test]
fn new_messages_arrive_while_only_acks_are_lost() {
    let mut late = Vec::new();
    for profile in PROFILES {
        for rtt in [20, 50, 100, 200] {
            let mut outage = Outage::new(profile, rtt, 5000);
            outage.is_of_acks = true;
            let outage = outage.run();
            let most = rtt / 2 + (rtt + 50).max(100);
            if outage.longest > most {
                late.push((profile, rtt, outage.longest, most));
            }
        }
    }
    assert!(late.is_empty(), "profile, RTT, longest, most: {late:#?}");
}
