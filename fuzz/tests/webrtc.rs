//! Offers, and datagrams from strangers to a server of data channels: STUN, DTLS, anything.

use std::sync::Mutex;

use bolero::check;
use rexmit_core::{Instant, Machine as _, Route, Seed};
use rexmit_webrtc::{Agent, AgentConfig, Description, Peers, ServeConfig, Settings};

fn config() -> AgentConfig {
    let identity = rexmit_dtls::Identity::from_seed(&Seed::from_u64(1));
    AgentConfig::new(identity).addresses(vec!["192.0.2.1:4000".parse().expect("an address")])
}

#[test]
fn description() {
    check!().for_each(|bytes: &[u8]| {
        let Ok(text) = str::from_utf8(bytes) else { return };
        if let Ok(description) = text.parse::<Description>() {
            let again = description.to_string().parse::<Description>();
            assert_eq!(again.as_ref(), Ok(&description));
        }
    });
}

#[test]
fn datagrams_to_a_server() {
    let seed = Seed::from_u64(1);
    let now = Instant::from_millis(1);
    let mut peers = Peers::new(ServeConfig::new(config()), &seed).expect("a configuration");
    let settings = Settings::new(config()).expect("a configuration");
    let (_, offer) = Agent::offer(now, settings, &seed);
    peers.answer(now, &offer).expect("an answer");
    let peers = Mutex::new(std::panic::AssertUnwindSafe(peers));
    let local = "192.0.2.1:4000".parse().expect("an address");
    let remote = "192.0.2.2:5000".parse().expect("an address");
    check!().for_each(|datagram: &[u8]| {
        let mut peers = peers.lock().expect("no panic before");
        peers.handle_input(now, Route { local, remote }, datagram);
        assert_eq!(peers.poll_transmit(now, &mut Vec::new()), None);
        assert_eq!(peers.len(), 1);
    });
}
