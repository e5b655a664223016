//! Networks and endpoints for these tests.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rexmit_core::{Instant, Seed};
use rexmit_lab::hosts::{Bulk, BulkSender, Host, Sink, set_ip_protocols};
use rexmit_netsim::network::{Dumbbell, Network};
use rexmit_netsim::path::PathConfig;
use rexmit_sctp::Endpoint as Sctp;
use rexmit_tcp::{ConnectionConfig, Endpoint as Tcp};

pub(crate) const PORT: u16 = 7000;

pub(crate) const fn seconds(seconds: u64) -> Instant {
    Instant::from_millis(seconds * 1000)
}

/// A TCP endpoint with the profile `profile` that listens on [`PORT`].
pub(crate) fn tcp(profile: &str, seed: &Seed) -> Tcp {
    tcp_with(profile, seed, |_| {})
}

/// As [`tcp`], with changes to the configuration of connections.
pub(crate) fn tcp_with(
    profile: &str,
    seed: &Seed,
    change: impl FnOnce(&mut ConnectionConfig),
) -> Tcp {
    let recovery = rexmit_tcp::recovery::RecoveryConfig::tcp_profile(profile);
    let mut connection = ConnectionConfig::sack()
        .recovery(recovery.expect("a known profile"))
        .with_sack(profile != "tcp-newreno")
        // No thin stream waits for its own acknowledgements.
        .nagle(false);
    change(&mut connection);
    let config = rexmit_tcp::EndpointConfig::default().connection(Arc::new(connection));
    let mut endpoint = Tcp::new(config, seed).expect("a valid configuration");
    endpoint.listen(PORT, None).expect("a free port");
    endpoint
}

/// An SCTP endpoint on [`PORT`].
pub(crate) fn sctp(seed: &Seed) -> Sctp {
    let association = rexmit_sctp::AssociationConfig::rfc9260().into();
    let config =
        rexmit_sctp::EndpointConfig::default().port(PORT).accept(true).association(association);
    Sctp::new(config, seed).expect("a valid configuration")
}

pub(crate) fn path(words: &str) -> PathConfig {
    words.parse().expect("the words of a path")
}

/// Hosts on both sides of a link with 10 Mbit/s, 45 ms, and a queue of 100 packets.
pub(crate) fn dumbbell(
    seed: &Seed,
    left: Vec<Host>,
    right: Vec<Host>,
) -> (Network<Host>, Dumbbell) {
    let bottleneck = path("delay 45ms rate 10mbit limit 100");
    dumbbell_over(&bottleneck, seed, left, right)
}

pub(crate) fn dumbbell_over(
    bottleneck: &PathConfig,
    seed: &Seed,
    left: Vec<Host>,
    right: Vec<Host>,
) -> (Network<Host>, Dumbbell) {
    let mut network = Network::new(seed);
    let access = path("delay 2.5ms rate 100mbit limit 1000");
    let dumbbell = Dumbbell::build(&mut network, left, right, &access, bottleneck).unwrap();
    set_ip_protocols(&mut network, dumbbell.left.iter().chain(&dumbbell.right).copied());
    (network, dumbbell)
}

pub(crate) fn left(n: u32) -> SocketAddr {
    SocketAddr::new(Dumbbell::left_address(n), 0)
}

pub(crate) fn right(n: u32) -> SocketAddr {
    at(Dumbbell::right_address(n))
}

pub(crate) fn at(address: IpAddr) -> SocketAddr {
    SocketAddr::new(address, PORT)
}

/// Bulk transfers over TCP, number n from the n-th left host to the n-th right host.
pub(crate) fn tcp_transfers(
    profile: &str,
    seed: &Seed,
    flows: u32,
    change: impl Fn(u32, &mut Bulk),
) -> (Network<Host>, Dumbbell) {
    let endpoint = |name: String| tcp(profile, &seed.split(&name));
    let sender = |n| {
        let mut bulk = Bulk::new(left(n), right(n));
        change(n, &mut bulk);
        Host::new(endpoint(format!("left {n}")), BulkSender::new(bulk))
    };
    let sink = |n| Host::new(endpoint(format!("right {n}")), Sink::new(Duration::from_secs(1)));
    dumbbell(seed, (0..flows).map(sender).collect(), (0..flows).map(sink).collect())
}

pub(crate) fn run(network: &mut Network<Host>, until: Instant) {
    network.run_until(until, |_, _| {}).expect("the network rests");
}
