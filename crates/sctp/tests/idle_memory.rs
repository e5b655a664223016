//! An idle association needs little memory, whatever it did before.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use rexmit_core::{Instant, Machine, Route, Seed};
use rexmit_sctp::{
    AssociationConfig, AssociationId, Endpoint, EndpointConfig, Event, OutboundMessage,
};

/// The limit for one end of an idle association.
const LIMIT_BYTES: i64 = 4096;
const ASSOCIATIONS: u32 = 200;

struct Pair {
    now: Instant,
    ends: [Endpoint; 2],
    ids: [Vec<AssociationId>; 2],
    packet: Vec<u8>,
    /// One packet in this many is lost.
    loses_one_in: Option<u32>,
    packets: u32,
}

impl Pair {
    fn new() -> Self {
        let end = |seed, accept| {
            let association = AssociationConfig::rfc9260().into();
            let config = EndpointConfig::default().accept(accept).association(association);
            Endpoint::new(config, &Seed::from_u64(seed)).unwrap()
        };
        let mut pair = Self {
            now: Instant::from_millis(1000),
            ends: [end(1, false), end(2, true)],
            ids: Default::default(),
            packet: Vec::new(),
            loses_one_in: None,
            packets: 0,
        };
        for number in 0..ASSOCIATIONS {
            let address = |network: u32| {
                SocketAddr::new(Ipv4Addr::from_bits((network << 24) + number).into(), 9899)
            };
            let route = Route { local: address(10), remote: address(11) };
            pair.ends[0].connect(pair.now, route, 5000).unwrap();
            pair.pump();
        }
        assert!(pair.ids.iter().all(|ids| ids.len() == ASSOCIATIONS as usize));
        pair
    }

    fn pump(&mut self) {
        let mut is_quiet = false;
        while !is_quiet {
            is_quiet = true;
            for from in [0, 1] {
                while let Some(route) = self.ends[from].poll_transmit(self.now, &mut self.packet) {
                    is_quiet = false;
                    self.packets += 1;
                    if !self.loses_one_in.is_some_and(|n| self.packets.is_multiple_of(n)) {
                        let route = route.reversed();
                        self.ends[1 - from].handle_input(self.now, route, &self.packet);
                    }
                }
                while let Some((id, event)) = self.ends[from].poll_event() {
                    if let Event::Connected { .. } = event {
                        self.ids[from].push(id);
                    }
                }
            }
        }
    }

    /// Sends this many messages each way, over all associations at the same time.
    fn exchange(&mut self, messages: u32, bytes: usize) {
        for end in [0, 1] {
            for &id in &self.ids[end] {
                for _ in 0..messages {
                    let message = OutboundMessage::new(0, vec![0; bytes]);
                    self.ends[end].send(self.now, id, message).unwrap();
                }
            }
        }
        self.pump();
        self.pass(Duration::from_secs(3000)); // Until everything has arrived.
        for end in [0, 1] {
            for &id in &self.ids[end] {
                for _ in 0..messages {
                    self.ends[end].receive(self.now, id).expect("it has arrived");
                }
            }
        }
        self.pass(Duration::from_secs(60)); // Idle, with a heartbeat.
        assert!(self.ends.iter().all(Endpoint::is_idle));
    }

    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.now += Duration::from_millis(500);
            self.ends.iter_mut().for_each(|end| end.handle_timeout(self.now));
            self.pump();
        }
    }
}

/// Bytes that one end keeps allocated after `past`.
fn kept_bytes(past: impl FnOnce(&mut Pair)) -> i64 {
    let mut pair = None;
    let info = allocation_counter::measure(|| past(pair.insert(Pair::new())));
    info.bytes_current / i64::from(2 * ASSOCIATIONS)
}

#[test]
fn an_idle_association_is_small_when_it_was_just_established() {
    let bytes = kept_bytes(|_| ());
    assert!((1..=LIMIT_BYTES).contains(&bytes), "{bytes}");
}

#[test]
fn an_idle_association_is_small_after_a_few_messages() {
    let bytes = kept_bytes(|pair| pair.exchange(3, 100));
    assert!((1..=LIMIT_BYTES).contains(&bytes), "{bytes}");
}

#[test]
fn an_idle_association_is_small_after_a_burst() {
    let bytes = kept_bytes(|pair| pair.exchange(40, 3000));
    assert!((1..=LIMIT_BYTES).contains(&bytes), "{bytes}");
}

#[test]
fn an_idle_association_is_small_after_losses() {
    let bytes = kept_bytes(|pair| {
        pair.loses_one_in = Some(9);
        pair.exchange(40, 3000);
    });
    assert!((1..=LIMIT_BYTES).contains(&bytes), "{bytes}");
}
