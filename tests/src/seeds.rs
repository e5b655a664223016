//! Seeds of endpoints whose TSNs begin just below the wrap.
//!
//! An endpoint must draw its initial TSN at random. Runs near the wrap therefore use seeds found by a search:
//! `examples/seeds_near_wrap.rs`.

use rexmit_core::{Instant, Machine, Route, Seed};
use rexmit_netsim::network::PointToPoint;
use rexmit_sctp::wire::{Chunk, Packet};
use rexmit_sctp::{Endpoint, EndpointConfig};

/// The largest distance of the first TSN from the wrap.
pub const MOST_BELOW_WRAP: u32 = 600;

/// Endpoint seeds whose first association has an initial TSN at most [`MOST_BELOW_WRAP`] below the wrap.
pub const NEAR_WRAP: [u64; 6] =
    [3_127_296, 3_145_196, 6_314_898, 10_756_119, 1_003_489_351, 1_013_114_743];

/// The initial TSN of the first association of an endpoint made from `seed`, as announced in its INIT.
///
/// # Panics
/// If an endpoint that connects sends no INIT.
#[must_use]
pub fn first_tsn(seed: u64) -> u32 {
    let config = EndpointConfig::default();
    let mut endpoint = Endpoint::new(config, &Seed::from_u64(seed)).expect("the default is valid");
    let route: Route = PointToPoint::route();
    endpoint.connect(Instant::ZERO, route, 5000).expect("the first association");
    let mut packet = Vec::new();
    endpoint.poll_transmit(Instant::ZERO, &mut packet).expect("an INIT");
    let packet = Packet::parse(&packet).expect("our own packet");
    match packet.chunks().flatten().next().map(|raw| raw.decode()) {
        Some(Ok(Chunk::Init(init))) => init.initial_tsn,
        other => panic!("not an INIT: {other:?}"),
    }
}
