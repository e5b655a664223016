//! Outages: nothing arrives in either direction for a while. The first delivery is at most one and a half round trips
//! after the end of the outage, and few packets are sent during it. If only ACKs do not arrive, new messages do.

use rexmit_sctp::Event;
use rexmit_sctp::recovery::RecoveryConfig;
use rexmit_testkit::Pace;

use super::*;

/// A message every 50 ms before, during and after an outage, over a path with this round-trip time.
struct Outage {
    script: Script,
    rtt: u64,
    /// The begin and the end of the outage.
    lasts: (u64, u64),
    /// Whether only ACKs are lost.
    is_of_acks: bool,
    /// TSNs that arrived, and the SACKs in flight with their times.
    arrived: std::collections::BTreeSet<u32>,
    acks: std::collections::VecDeque<(u64, u32)>,
    /// When DATA was sent during the outage.
    sent: Vec<u64>,
    /// When the first DATA arrived after it.
    delivered: Option<u64>,
    /// The longest time between a message of the outage and its arrival.
    latest: u64,
}

/// The time before the first message.
const FIRST_MS: u64 = 250;
/// The time before the outage: enough messages to fill the window of RTT samples.
const WARM_MS: u64 = 15_000;

impl Outage {
    fn new(profile: &str, rtt: u64, length: u64) -> Self {
        let script = Script::measured(|association| {
            association.recovery = RecoveryConfig::profile(profile).expect("it exists");
        });
        let begins = WARM_MS + 10;
        let (arrived, acks) = Default::default();
        let lasts = (begins, begins + length);
        let (sent, delivered, latest, is_of_acks) = (Vec::new(), None, 0, false);
        Self { script, rtt, lasts, is_of_acks, arrived, acks, sent, delivered, latest }
    }

    fn is_down(&self, ms: u64) -> bool {
        (self.lasts.0..self.lasts.1).contains(&ms)
    }

    /// Runs until the first delivery after the outage.
    fn run(mut self) -> Self {
        let mut ms = FIRST_MS;
        while self.delivered.is_none() {
            self.step(ms);
            ms += 1;
            assert!(ms < self.lasts.1 + 100_000, "nothing is delivered any more");
        }
        self
    }

    fn step(&mut self, ms: u64) {
        if ms.is_multiple_of(50) {
            self.script.send(b"position");
        }
        while let Some(&(_, ack)) = self.acks.front().filter(|(at, _)| *at <= ms) {
            self.acks.pop_front();
            self.script.peer_acknowledges(tsn(ack));
        }
        let mut sent = Vec::new();
        self.script.each_until(ms + 1, |_, packet| {
            let data = packet.chunks().into_iter().filter_map(|chunk| match chunk {
                Data(data) => Some(data.tsn.wrapping_sub(tsn(0))),
                _ => None,
            });
            sent.push(data.collect::<Vec<u32>>());
        });
        assert!(!self.script.events().iter().any(|event| matches!(event, Event::Closed(_))));
        for tsns in sent.into_iter().filter(|tsns| !tsns.is_empty()) {
            self.transmit(ms, &tsns);
        }
    }

    fn transmit(&mut self, ms: u64, tsns: &[u32]) {
        if self.is_down(ms) {
            self.sent.push(ms);
        }
        let (arrives, answered) = (ms + self.rtt / 2, ms + self.rtt);
        if !self.is_of_acks && (self.is_down(ms) || self.is_down(arrives)) {
            return;
        }
        for &tsn in tsns {
            let due = FIRST_MS + 50 * u64::from(tsn - 1);
            if self.arrived.insert(tsn) && self.is_down(due) {
                self.latest = self.latest.max(arrives - due);
            }
        }
        let cumulative =
            (1..).find(|tsn| !self.arrived.contains(tsn)).expect("some are missing") - 1;
        if !self.is_down(answered) {
            self.acks.push_back((answered, cumulative));
        }
        if ms >= self.lasts.1 {
            self.delivered.get_or_insert(arrives);
        }
    }
}

#[test]
fn the_first_delivery_follows_the_end_of_any_outage() {
    let mut late = Vec::new();
    for profile in ["interactive", "interactive-redundant"] {
        for rtt in [20, 50, 100, 200, 400] {
            for length in [50, 100, 200, 300, 500, 700, 1000, 1500, 2000, 3000, 5000, 7000, 10_000]
            {
                let outage = Outage::new(profile, rtt, length).run();
                let took = outage.delivered.expect("it is") - outage.lasts.1;
                // With a probe every 100 ms, the bound is 100 ms and half a round trip, if that is longer.
                let most = (3 * rtt / 2 + 50).max(100 + rtt / 2);
                let count = outage.sent.len() as u64;
                if took > most {
                    late.push((profile, rtt, length, took, most, count));
                }
            }
        }
    }
    assert!(late.is_empty(), "profile, RTT, length, took, most, packets: {late:#?}");
}

/// Each probe of a silent path has new messages, too: a message waits for the next probe at most. With longer round trips,
/// T3-rtx expires before the path is silent, and new messages wait between the two.
#[test]
fn new_messages_arrive_while_only_acks_are_lost() {
    let mut late = Vec::new();
    for profile in ["interactive", "interactive-redundant"] {
        for rtt in [20, 50, 100] {
            for length in [500, 2000, 9000] {
                let mut outage = Outage::new(profile, rtt, length);
                outage.is_of_acks = true;
                let outage = outage.run();
                let most = (rtt + 50).max(100) + rtt / 2;
                let (sent, paced) = (Pace::of(&outage.sent, outage.lasts.0), Pace::most(rtt));
                if outage.latest > most || !sent.is_within(paced) {
                    late.push((profile, rtt, length, outage.latest, most, sent));
                }
            }
        }
    }
    assert!(late.is_empty(), "profile, RTT, length, latest, most, packets: {late:#?}");
}

/// New data that does not fit into half of a probe takes no room from retransmissions.
#[test]
fn a_large_message_does_not_halve_the_probes_of_a_silent_path() {
    let count = |is_large| {
        let mut outage = Outage::new("interactive", 50, 60_000);
        (FIRST_MS..outage.lasts.0 + 1000).for_each(|ms| outage.step(ms));
        if is_large {
            outage.script.send(&[7; 4000]);
        }
        let until = outage.lasts.0 + 1500;
        let mut most = 0;
        outage.script.each_until(until, |_, packet| {
            let data = packet.chunks().into_iter().filter(|chunk| matches!(chunk, Data(_)));
            most = most.max(data.count());
        });
        most
    };
    assert_eq!(count(true), count(false));
}

/// One packet per round trip, or per 100 ms, once the path is silent; T3-rtx expires as well.
#[test]
fn little_is_sent_while_an_outage_lasts() {
    let mut many = Vec::new();
    for profile in ["interactive", "interactive-redundant"] {
        for rtt in [20, 50, 100, 200] {
            let outage = Outage::new(profile, rtt, 30_000).run();
            let (sent, most) = (Pace::of(&outage.sent, outage.lasts.0), Pace::most(rtt));
            if !sent.is_within(most) {
                many.push((profile, rtt, sent, most));
            }
        }
    }
    assert!(many.is_empty(), "profile, RTT, packets, most: {many:#?}");
}
