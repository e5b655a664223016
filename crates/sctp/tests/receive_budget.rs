//! `max_receive_bytes`: what all associations of an endpoint hold until the application reads.

use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rexmit_core::{Instant, Machine, Route, Seed};
use rexmit_sctp::{
    AssociationConfig, AssociationId, Endpoint, EndpointConfig, Event, OutboundMessage,
};

const LIMIT_BYTES: usize = 256 << 10;
const ONE_WAY: Duration = Duration::from_millis(10);
/// What an association may hold beyond the limit.
const RESERVED_BYTES: usize = 16 << 10;

/// A server and the associations of its clients, 10 ms away.
struct Clients {
    now: Instant,
    /// The clients' endpoint, and the server's.
    ends: [Endpoint; 2],
    ids: [Vec<AssociationId>; 2],
    on_the_way: VecDeque<(Instant, usize, Route, Vec<u8>)>,
    /// Numbers of the messages that the server has read, by association.
    read: BTreeMap<AssociationId, Vec<u32>>,
    is_aborting: bool,
}

impl Clients {
    fn new(profile: &AssociationConfig, clients: u32) -> Self {
        let association = profile.clone().send_buffer_bytes(4 << 20);
        let end = |seed, accept| {
            let config = EndpointConfig::default()
                .accept(accept)
                .max_receive_bytes(LIMIT_BYTES)
                .association(Arc::new(association.clone()));
            Endpoint::new(config, &Seed::from_u64(seed)).unwrap()
        };
        let mut all = Self {
            now: Instant::from_millis(1000),
            ends: [end(1, false), end(2, true)],
            ids: Default::default(),
            on_the_way: VecDeque::new(),
            read: BTreeMap::new(),
            is_aborting: false,
        };
        all.connect(clients);
        all
    }

    fn connect(&mut self, clients: u32) {
        for number in 0..clients {
            let at = |network: u32| {
                SocketAddr::new(Ipv4Addr::from_bits((network << 24) + number + 1).into(), 9899)
            };
            self.ends[0].connect(self.now, Route { local: at(10), remote: at(11) }, 5000).unwrap();
        }
        self.run_for(Duration::from_secs(1), |_| {});
        assert!(self.ids.iter().all(|ids| ids.len() == clients as usize));
    }

    /// Each client sends messages of this size, which begin with their numbers.
    fn send(&mut self, messages: u32, bytes: usize) {
        for &id in &self.ids[0] {
            for number in 0..messages {
                let mut payload = vec![0; bytes];
                payload[..4].copy_from_slice(&number.to_be_bytes());
                self.ends[0].send(self.now, id, OutboundMessage::new(0, payload)).unwrap();
            }
        }
    }

    fn read_all(&mut self) {
        for &id in &self.ids[1] {
            while let Some(message) = self.ends[1].receive(self.now, id) {
                let number = u32::from_be_bytes(message.payload[..4].try_into().unwrap());
                self.read.entry(id).or_default().push(number);
            }
        }
    }

    /// `act` is called after every step.
    fn run_for(&mut self, time: Duration, mut act: impl FnMut(&mut Self)) {
        let end = self.now + time;
        loop {
            for from in [0, 1] {
                let mut packet = Vec::new();
                while let Some(route) = self.ends[from].poll_transmit(self.now, &mut packet) {
                    let arrival = (self.now + ONE_WAY, 1 - from, route.reversed(), packet.clone());
                    self.on_the_way.push_back(arrival);
                }
                while let Some((id, event)) = self.ends[from].poll_event() {
                    match event {
                        Event::Connected { .. } => self.ids[from].push(id),
                        Event::Closed(why) => assert!(self.is_aborting, "closed: {why}"),
                        _ => {}
                    }
                }
            }
            act(self);
            let timers = self.ends.iter().filter_map(Machine::poll_timeout);
            let arrival = self.on_the_way.front().map(|packet| packet.0);
            let next = timers.chain(arrival).min().filter(|next| *next < end);
            self.now = next.unwrap_or(end).max(self.now);
            if next.is_none() {
                return;
            }
            while self.on_the_way.front().is_some_and(|packet| packet.0 <= self.now) {
                let (_, to, route, packet) = self.on_the_way.pop_front().expect("a packet");
                self.ends[to].handle_input(self.now, route, &packet);
            }
            for end in &mut self.ends {
                end.handle_timeout(self.now);
            }
        }
    }

    fn held_bytes(&self) -> usize {
        let held = |id: &AssociationId| {
            self.ends[1].statistics(*id).map_or(0, |statistics| statistics.receive_buffered_bytes)
        };
        self.ids[1].iter().map(held).sum()
    }
}

fn profiles() -> [AssociationConfig; 3] {
    [AssociationConfig::rfc9260(), AssociationConfig::interactive(), AssociationConfig::bulk()]
}

#[test]
fn a_program_that_does_not_read_holds_the_limit_and_not_a_buffer_for_each_peer() {
    const CLIENTS: usize = 40;
    const MESSAGES: u32 = 500;
    for profile in profiles() {
        let mut all = Clients::new(&profile, CLIENTS as u32);
        all.send(MESSAGES, 1000);
        // While it reads, the congestion windows grow, and what is on the way is more than the limit.
        all.run_for(Duration::from_millis(200), Clients::read_all);
        let most = LIMIT_BYTES + CLIENTS * RESERVED_BYTES;
        all.run_for(Duration::from_secs(900), |all| {
            assert!(all.held_bytes() <= most, "{} bytes", all.held_bytes());
        });
        assert!(all.held_bytes() >= LIMIT_BYTES - 1000, "{} bytes", all.held_bytes());
        // What the program reads at last is everything, in order, without a wait for the timers of the peers.
        all.run_for(Duration::from_secs(8), Clients::read_all);
        let expected: Vec<_> = (0..MESSAGES).collect();
        assert_eq!(all.read.len(), CLIENTS);
        assert!(all.read.values().all(|numbers| *numbers == expected));
    }
}

#[test]
fn incomplete_messages_of_several_peers_do_not_hold_each_other_up() {
    for profile in profiles() {
        let mut all = Clients::new(&profile, 8);
        all.send(3, 200_000);
        all.run_for(Duration::from_secs(32), Clients::read_all);
        assert_eq!(all.read.len(), 8);
        assert!(all.read.values().all(|numbers| numbers.len() == 3), "{:?}", all.read);
    }
}

#[test]
fn a_peer_of_few_messages_is_served_beside_others_that_are_not_read() {
    for profile in profiles() {
        let mut all = Clients::new(&profile, 10);
        let thin = all.ids[0].pop().unwrap();
        let last = all.ids[1].pop().unwrap();
        all.send(500, 1000);
        all.run_for(Duration::from_secs(10), |_| {});
        for _ in 0..20 {
            all.ends[0].send(all.now, thin, OutboundMessage::new(0, vec![7; 200])).unwrap();
            all.run_for(Duration::from_millis(100), |_| {});
            assert!(all.ends[1].receive(all.now, last).is_some(), "a message of 200 bytes");
        }
    }
}

#[test]
fn what_an_aborted_association_held_is_free_again() {
    let mut all = Clients::new(&AssociationConfig::interactive(), 8);
    // A message of each that is not whole when they are aborted.
    all.send(1, 200_000);
    all.run_for(Duration::from_millis(180), |_| {});
    assert!(all.held_bytes() > LIMIT_BYTES, "{} bytes", all.held_bytes());
    all.is_aborting = true;
    for id in std::mem::take(&mut all.ids[0]) {
        all.ends[0].abort(all.now, id, b"");
    }
    all.run_for(Duration::from_secs(1), |_| {});
    assert_eq!(all.ends[1].association_count(), 0);
    all.ids[1].clear();
    all.connect(1);
    all.send(100, 1000);
    all.run_for(Duration::from_secs(1), |_| {});
    assert_eq!(all.held_bytes(), 100_000);
}

/// Without what is reserved for each association, this took up to 40 s.
#[test]
fn a_burst_to_a_program_that_reads_is_received_beside_others_that_are_not_read() {
    for profile in profiles() {
        for (bytes, others, seconds) in [(300, 1, 1), (1000, 8, 2)] {
            let profile = profile.clone().receive_buffer_bytes(LIMIT_BYTES);
            let mut all = Clients::new(&profile.max_message_bytes(LIMIT_BYTES), others + 1);
            let (client, server) = (all.ids[0].pop().unwrap(), all.ids[1].pop().unwrap());
            all.send(500, 1000);
            all.run_for(Duration::from_secs(10), |_| {});
            assert!(all.held_bytes() > LIMIT_BYTES * 3 / 4, "{} bytes", all.held_bytes());
            let (begun, mut received) = (all.now, 0);
            for _ in 0..200 {
                let message = OutboundMessage::new(0, vec![7; bytes]);
                all.ends[0].send(all.now, client, message).unwrap();
            }
            while received < 200 {
                all.run_for(Duration::from_millis(50), |_| {});
                while all.ends[1].receive(all.now, server).is_some() {
                    received += 1;
                }
                let took = all.now - begun;
                assert!(
                    took < Duration::from_secs(seconds),
                    "{received} of {bytes} bytes after {took:?}"
                );
            }
        }
    }
}

#[test]
fn small_messages_are_charged_with_their_overhead() {
    const CLIENTS: usize = 10;
    let mut all = Clients::new(&AssociationConfig::interactive(), CLIENTS as u32);
    all.send(2000, 4);
    all.run_for(Duration::from_secs(10), |_| {});
    let most = (LIMIT_BYTES + CLIENTS * RESERVED_BYTES) / (4 + 256) * 4;
    assert!((most / 4..=most).contains(&all.held_bytes()), "{} bytes", all.held_bytes());
}

#[test]
fn what_can_never_be_read_is_dropped_when_the_association_ends() {
    let mut all = Clients::new(&AssociationConfig::interactive(), 1);
    all.send(1, 100);
    all.send(1, 200_000);
    all.run_for(Duration::from_millis(100), |_| {});
    assert!(all.held_bytes() > 10_000, "{} bytes", all.held_bytes());
    all.is_aborting = true;
    all.ends[0].abort(all.now, all.ids[0][0], b"");
    all.run_for(Duration::from_secs(1), |_| {});
    assert_eq!(all.held_bytes(), 100);
    all.read_all();
    assert_eq!(all.read.values().next(), Some(&vec![0]));
}
