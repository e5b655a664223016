//! The cost of an association: memory while idle, work per event independent of the number of associations, and
//! allocations in steady operation. Counted, never timed.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rexmit_core::{Instant, Machine, Route, Seed};
use rexmit_sctp::{AssociationConfig, AssociationId, Endpoint, EndpointConfig, OutboundMessage};

/// One endpoint with many associations, and a peer for each.
struct Server {
    now: Instant,
    endpoint: Endpoint,
    ids: Vec<AssociationId>,
    packet: Vec<u8>,
}

fn endpoint(accept: bool, config: &Arc<AssociationConfig>, seed: u64) -> Endpoint {
    let association = Arc::clone(config);
    let config = EndpointConfig::default().accept(accept).association(association);
    Endpoint::new(config, &Seed::from_u64(seed)).expect("it is valid")
}

fn route_to_peer(number: u32) -> Route {
    let [_, a, b, c] = number.to_be_bytes();
    let address = |bytes: [u8; 4]| SocketAddr::from((bytes, 0));
    Route { local: address([192, 0, 2, 1]), remote: address([10, a, b, c]) }
}

impl Server {
    /// A server with `count` established associations; the peers' endpoints are dropped.
    fn with_associations(count: u32, config: &Arc<AssociationConfig>) -> Self {
        let mut server = Self {
            now: Instant::ZERO,
            endpoint: endpoint(true, config, 1),
            ids: Vec::new(),
            packet: Vec::new(),
        };
        for number in 0..count {
            let mut peer = endpoint(false, config, 2 + u64::from(number));
            server.accept(&mut peer, number);
        }
        server
    }

    fn accept(&mut self, peer: &mut Endpoint, number: u32) {
        let route = route_to_peer(number);
        peer.connect(self.now, route.reversed(), 5000).expect("a first association");
        self.exchange(peer, route);
        let (id, _) = self.endpoint.poll_event().expect("it is established");
        self.ids.push(id);
    }

    /// Exchanges packets until both sides are idle; returns the number of packets that the server sent.
    fn exchange(&mut self, peer: &mut Endpoint, route: Route) -> u32 {
        let mut sent = 0;
        loop {
            let mut is_quiet = true;
            while peer.poll_transmit(self.now, &mut self.packet).is_some() {
                self.endpoint.handle_input(self.now, route, &self.packet);
                is_quiet = false;
            }
            while self.endpoint.poll_transmit(self.now, &mut self.packet).is_some() {
                peer.handle_input(self.now, route.reversed(), &self.packet);
                (is_quiet, sent) = (false, sent + 1);
            }
            if is_quiet {
                return sent;
            }
        }
    }
}

/// Bytes of each idle association in an endpoint with many.
fn idle_bytes(config: AssociationConfig) -> i64 {
    const COUNT: u32 = 1000;
    let config = Arc::new(config);
    // Memory of the first association is not counted.
    let mut server = Server::with_associations(1, &config);
    let allocated = allocation_counter::measure(|| {
        for number in 1..=COUNT {
            server.accept(&mut endpoint(false, &config, 2 + u64::from(number)), number);
        }
        server.packet = Vec::new();
    });
    assert_eq!(server.endpoint.association_count(), 1 + COUNT as usize);
    allocated.bytes_current / i64::from(COUNT)
}

#[test]
fn an_idle_association_uses_at_most_4_kib() {
    let each = idle_bytes(AssociationConfig::rfc9260());
    eprintln!("an idle association takes {each} bytes");
    assert!((500..=4096).contains(&each), "{each} bytes");
}

/// Another implementation uses megabytes for them (libdatachannel#602).
#[test]
fn unused_streams_need_no_memory() {
    let each = idle_bytes(
        AssociationConfig::rfc9260().outbound_streams(u16::MAX).max_inbound_streams(u16::MAX),
    );
    assert!((500..=4096).contains(&each), "{each} bytes");
}

#[test]
fn an_association_that_was_busy_is_small_again_when_idle() {
    let config = Arc::new(AssociationConfig::rfc9260());
    let mut server = Server::with_associations(1, &config);
    let mut peer = endpoint(false, &config, 99);
    let allocated = allocation_counter::measure(|| {
        server.accept(&mut peer, 1);
        let id = server.ids[1];
        for stream in 0..10 {
            for _ in 0..50 {
                let message = OutboundMessage::new(stream, vec![1; 10_000]);
                server.endpoint.send(server.now, id, message).expect("there is room");
            }
            server.run(&mut peer, route_to_peer(1), Duration::from_secs(60));
        }
        peer = endpoint(false, &config, 99);
        server.packet = Vec::new();
    });
    let statistics = server.endpoint.statistics(server.ids[1]).expect("it is open");
    assert_eq!(statistics.send_buffered_bytes, 0);
    eprintln!("after 5 MB an association takes {} bytes", allocated.bytes_current);
    assert!(allocated.bytes_current <= 16 * 1024, "{} bytes", allocated.bytes_current);
}

impl Server {
    /// As [`Self::exchange`], for this time; the peer reads everything.
    fn run(&mut self, peer: &mut Endpoint, route: Route, duration: Duration) {
        let until = self.now + duration;
        loop {
            self.exchange(peer, route);
            while let Some((id, _)) = peer.poll_event() {
                while peer.receive(self.now, id).is_some() {}
            }
            while self.endpoint.poll_event().is_some() {}
            let next = [self.endpoint.poll_timeout(), peer.poll_timeout()];
            let Some(next) = next.into_iter().flatten().min().filter(|&at| at <= until) else {
                return self.now = until;
            };
            self.now = self.now.max(next);
            self.endpoint.handle_timeout(self.now);
            peer.handle_timeout(self.now);
        }
    }
}

/// Allocations and packets of an idle hour and of one message, in an endpoint with `count` associations.
fn work(count: u32) -> (u64, u64, u64) {
    let mut server = Server::with_associations(count, &Arc::default());
    let mut heartbeats = 0;
    // Answers to HEARTBEATs are what the peers, which are gone, would send: none come, so the
    // first two rounds are looked at, in which none is given up.
    let mut timeouts = 0;
    while let Some(at) = server.endpoint.poll_timeout().filter(|&at| at.as_secs_f64() < 32.0) {
        server.now = at;
        server.endpoint.handle_timeout(at);
        timeouts += 1;
        while server.endpoint.poll_transmit(at, &mut server.packet).is_some() {
            heartbeats += 1;
        }
    }
    let id = server.ids[count as usize / 2];
    let now = server.now;
    let allocations = allocation_counter::measure(|| {
        for _ in 0..4 {
            let message = OutboundMessage::new(0, "x");
            server.endpoint.send(now, id, message).expect("there is room");
            server.endpoint.poll_transmit(now, &mut server.packet).expect("DATA");
            assert!(server.endpoint.poll_transmit(now, &mut server.packet).is_none());
        }
    });
    (heartbeats, timeouts, allocations.count_total)
}

#[test]
fn the_work_per_event_does_not_grow_with_the_number_of_associations() {
    let (few, many) = (100, 10_000);
    let (heartbeats, timeouts, allocations) = work(few);
    assert_eq!(heartbeats, u64::from(few), "one each in the first 32 s");
    let (more_heartbeats, more_timeouts, more_allocations) = work(many);
    assert_eq!(more_heartbeats, u64::from(many));
    // A timer that comes due wakes its association and no other.
    assert!(timeouts <= 2 * u64::from(few) && more_timeouts <= 2 * u64::from(many));
    assert!(more_allocations <= allocations + 8, "{allocations}, then {more_allocations}");
}
