//! In steady operation, (almost) no memory is allocated per packet.

use std::sync::Arc;

use bytes::Bytes;
use rexmit_core::{Instant, Machine, Route, Seed};
use rexmit_netsim::network::PointToPoint;
use rexmit_sctp::{AssociationConfig, AssociationId, Endpoint, EndpointConfig, OutboundMessage};

/// Two endpoints that exchange packets without delay.
struct Pair {
    now: Instant,
    ends: [(Endpoint, Route, Option<AssociationId>); 2],
    packet: Vec<u8>,
    packets: u64,
    /// Messages that were read.
    messages: u64,
}

impl Pair {
    fn established(profile: &str) -> Self {
        let association = AssociationConfig::profile(profile).expect("it exists");
        let association = Arc::new(association);
        let end = |accept, seed, route| {
            let config =
                EndpointConfig::default().accept(accept).association(Arc::clone(&association));
            (Endpoint::new(config, &Seed::from_u64(seed)).expect("it is valid"), route, None)
        };
        let route = PointToPoint::route();
        let mut client = end(false, 1, route);
        let now = Instant::ZERO;
        client.2 = Some(client.0.connect(now, route, 5000).expect("a first association"));
        let ends = [client, end(true, 2, route.reversed())];
        let mut pair = Self { now, ends, packet: Vec::new(), packets: 0, messages: 0 };
        pair.exchange();
        pair
    }

    /// Exchanges packets until both sides are idle; both applications read everything.
    fn exchange(&mut self) {
        loop {
            let before = self.packets;
            for from in 0..2 {
                while self.ends[from].0.poll_transmit(self.now, &mut self.packet).is_some() {
                    self.packets += 1;
                    let (to, route, _) = &mut self.ends[1 - from];
                    to.handle_input(self.now, *route, &self.packet);
                }
            }
            for (endpoint, _, known) in &mut self.ends {
                while let Some((id, _)) = endpoint.poll_event() {
                    *known = Some(id);
                }
                while known.is_some_and(|id| endpoint.receive(self.now, id).is_some()) {
                    self.messages += 1;
                }
            }
            if self.packets == before {
                return;
            }
        }
    }

    fn send(&mut self, from: usize, payload: &Bytes) {
        let (endpoint, _, id) = &mut self.ends[from];
        let message = OutboundMessage::new(0, payload.clone());
        endpoint.send(self.now, id.expect("established"), message).expect("there is room");
    }

    /// Advances the time, and handles timers that are due.
    fn wait_ms(&mut self, ms: u64) {
        self.now += std::time::Duration::from_millis(ms);
        for (endpoint, ..) in &mut self.ends {
            endpoint.handle_timeout(self.now);
        }
        self.exchange();
    }
}

/// The allocations per packet of `run`, after a first round that is not counted. The one allocation of each received
/// message is not counted either (docs/security.md).
fn allocations_per_packet(profile: &str, mut run: impl FnMut(&mut Pair)) -> f64 {
    let mut pair = Pair::established(profile);
    run(&mut pair);
    let before = (pair.packets, pair.messages);
    let allocations = allocation_counter::measure(|| run(&mut pair)).count_total;
    let (packets, messages) = (pair.packets - before.0, pair.messages - before.1);
    assert!(packets > 1000, "{packets} packets only");
    allocations.saturating_sub(messages) as f64 / packets as f64
}

#[test]
fn a_thin_ping_pong_allocates_next_to_nothing() {
    let payload = Bytes::from_static(&[7; 100]);
    for profile in ["rfc9260", "interactive-redundant"] {
        let each = allocations_per_packet(profile, |pair| {
            for _ in 0..1000 {
                pair.send(0, &payload);
                pair.wait_ms(100);
                pair.send(1, &payload);
                pair.wait_ms(250);
            }
        });
        eprintln!("{each:.3} allocations per packet, thin, {profile}");
        assert!(each < 0.1, "{each} allocations per packet, {profile}");
    }
}

#[test]
fn bulk_allocates_next_to_nothing() {
    let payload = Bytes::from_static(&[7; 1024]);
    let each = allocations_per_packet("rfc9260", |pair| {
        for _ in 0..100 {
            for _ in 0..50 {
                pair.send(0, &payload);
            }
            pair.exchange();
            pair.wait_ms(300);
        }
    });
    eprintln!("{each:.3} allocations per packet, bulk");
    assert!(each < 0.1, "{each} allocations per packet");
}
