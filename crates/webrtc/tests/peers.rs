//! Many peers behind one port: assignment of datagrams, limits, and unknown senders.

mod common;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use common::{DELAY, address, config, settings};
use rexmit_core::{Instant, Machine as _, Rng, Route, Seed};
use rexmit_webrtc::{
    Agent, AgentConfig, ChannelConfig, CloseReason, Event, IceMode, MAX_PEER_ADDRESSES, Message,
    OfferError, PeerId, Peers, ServeConfig,
};

const SERVER: &str = "198.51.100.1:4000";

fn serve() -> ServeConfig {
    ServeConfig::new(config(SERVER))
}

fn peers(config: ServeConfig) -> Peers {
    Peers::new(config, &Seed::from_u64(1)).unwrap()
}

/// A client at its own address, with its events.
struct Client {
    agent: Agent,
    address: SocketAddr,
    events: Vec<Event>,
}

/// Clients and a server; the network has the delay [`DELAY`] and no loss.
struct Net {
    now: Instant,
    server: Peers,
    clients: Vec<Client>,
    events: Vec<(PeerId, Event)>,
    /// Every datagram to the server so far.
    to_server: Vec<(SocketAddr, Vec<u8>)>,
}

impl Net {
    fn new(config: ServeConfig) -> Self {
        Self {
            now: Instant::from_millis(1000),
            server: peers(config),
            clients: Vec::new(),
            events: Vec::new(),
            to_server: Vec::new(),
        }
    }

    fn join(&mut self, n: u16) -> Result<PeerId, OfferError> {
        let own = SocketAddr::new(address("192.0.2.1:1").ip(), 1000 + n);
        let client = AgentConfig::new(rexmit_dtls::Identity::from_seed(&Seed::from_u64(n.into())))
            .addresses(vec![own]);
        let seed = Seed::from_u64(100 + u64::from(n));
        let (mut agent, offer) = Agent::offer(self.now, settings(client), &seed);
        agent.open(self.now, ChannelConfig::new(n.to_string())).unwrap();
        let (id, answer) = self.server.answer(self.now, &offer)?;
        agent.accept(self.now, &answer).unwrap();
        self.clients.push(Client { agent, address: own, events: Vec::new() });
        Ok(id)
    }

    /// A round trip, in four steps.
    fn round(&mut self) {
        for _ in 0..4 {
            let mut packet = Vec::new();
            for client in &mut self.clients {
                let route = Route { local: address(SERVER), remote: client.address };
                while client.agent.poll_transmit(self.now, &mut packet).is_some() {
                    self.to_server.push((client.address, packet.clone()));
                    self.server.handle_input(self.now, route, &packet);
                }
                client.events.extend(std::iter::from_fn(|| client.agent.poll_event()));
            }
            self.events.extend(std::iter::from_fn(|| self.server.poll_event()));
            let of: HashMap<SocketAddr, usize> =
                self.clients.iter().enumerate().map(|(n, client)| (client.address, n)).collect();
            while let Some(route) = self.server.poll_transmit(self.now, &mut packet) {
                if let Some(&n) = of.get(&route.remote) {
                    self.clients[n].agent.handle_input(self.now, route.reversed(), &packet);
                }
            }
            self.now += DELAY / 2;
            self.server.handle_timeout(self.now);
            for client in &mut self.clients {
                client.agent.handle_timeout(self.now);
            }
        }
    }

    fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.round();
        }
    }

    fn connected(&self) -> usize {
        self.events.iter().filter(|(_, event)| *event == Event::Connected).count()
    }
}

#[test]
fn each_of_many_peers_gets_its_own_messages() {
    for mode in [IceMode::Lite, IceMode::Full] {
        let mut config = serve();
        config.agent.ice = mode;
        let mut net = Net::new(config);
        for n in 0..20 {
            net.join(n).unwrap();
        }
        net.run_for(Duration::from_secs(2));
        assert_eq!(net.connected(), 20, "{mode:?}");
        let opened: Vec<_> = net
            .events
            .iter()
            .filter_map(|(id, event)| match event {
                Event::ChannelOpened { channel, config, .. } => {
                    Some((*id, *channel, config.label.clone()))
                }
                _ => None,
            })
            .collect();
        assert_eq!(opened.len(), 20);
        let now = net.now;
        for (id, channel, label) in opened {
            let sent = net.server.call(id, |agent| agent.send(now, channel, &Message::text(label)));
            sent.unwrap().unwrap();
        }
        net.run_for(Duration::from_secs(1));
        for (n, client) in net.clients.iter().enumerate() {
            let texts = client.events.iter().filter_map(|event| match event {
                Event::Message { message, .. } => message.as_text(),
                _ => None,
            });
            assert!(texts.eq([n.to_string()]), "{n}");
        }
    }
}

/// Two thousand at once, each with messages of its own; nothing of them remains.
#[test]
fn two_thousand_peers_get_their_own_messages() {
    const PEERS: u16 = 2000;
    let mut net = Net::new(serve().max_setups(PEERS.into()).offers_per_second(u32::from(PEERS)));
    for n in 0..PEERS {
        net.join(n).unwrap();
    }
    net.run_for(Duration::from_secs(1));
    assert_eq!((net.connected(), net.server.len()), (PEERS.into(), PEERS.into()));
    let opened = |(id, event): &(PeerId, Event)| match event {
        Event::ChannelOpened { channel, config, .. } => Some((*id, *channel, config.label.clone())),
        _ => None,
    };
    let opened: Vec<_> = net.events.iter().filter_map(opened).collect();
    assert_eq!(opened.len(), usize::from(PEERS));
    let now = net.now;
    for (id, channel, label) in opened {
        let sent = net.server.call(id, |agent| agent.send(now, channel, &Message::text(label)));
        sent.unwrap().unwrap();
    }
    net.run_for(Duration::from_millis(200));
    for (n, client) in net.clients.iter().enumerate() {
        let texts = client.events.iter().filter_map(|event| match event {
            Event::Message { message, .. } => message.as_text(),
            _ => None,
        });
        assert!(texts.eq([n.to_string()]), "{n}");
    }
    let now = net.now;
    net.clients.iter_mut().for_each(|client| client.agent.close(now));
    net.run_for(Duration::from_millis(200));
    assert_eq!((net.server.len(), net.server.poll_timeout()), (0, None));
}

#[test]
fn a_closed_peer_leaves_no_state() {
    let mut net = Net::new(serve());
    let (one, two, three) = (net.join(1).unwrap(), net.join(2).unwrap(), net.join(3).unwrap());
    net.run_for(Duration::from_secs(1));
    assert_eq!((net.server.len(), net.connected()), (3, 3));
    // Closed by the peer, closed and forgotten here, and gone without a word.
    let now = net.now;
    net.clients[0].agent.close(now);
    net.server.forget(now, two);
    net.clients.remove(2);
    net.run_for(Duration::from_secs(1));
    assert_eq!(net.server.len(), 1);
    assert!(net.events.contains(&(one, Event::Closed(CloseReason::Peer))));
    assert_eq!(net.clients[1].events.last(), Some(&Event::Closed(CloseReason::Peer)));
    net.run_for(Duration::from_secs(30));
    let end = CloseReason::ConsentExpired(Duration::from_secs(30));
    assert_eq!(net.events.last(), Some(&(three, Event::Closed(end))));
    assert_eq!((net.server.len(), net.server.poll_timeout()), (0, None));
    assert!(net.server.agent(one).is_none() && net.server.call(three, |_| ()).is_none());
    // Its records are a stranger's now.
    let before = net.server.statistics().discarded;
    let (source, datagram) = net.to_server.last().cloned().unwrap();
    net.server.handle_input(now, Route { local: address(SERVER), remote: source }, &datagram);
    assert_eq!(net.server.statistics().discarded, before + 1);
}

#[test]
fn offers_beyond_a_limit_are_refused_and_say_which() {
    let busy = |what, limit| Err(OfferError::Busy { what, limit });
    let mut net = Net::new(serve().max_peers(3));
    for n in 0..3 {
        net.join(n).unwrap();
    }
    assert_eq!(net.join(3), busy("peers", 3));

    let mut net = Net::new(serve().max_setups(2));
    assert!(net.join(0).is_ok() && net.join(1).is_ok());
    assert_eq!(net.join(2), busy("peers in setup", 2));
    net.run_for(Duration::from_secs(1));
    assert!(net.join(3).is_ok(), "the others are set up");

    let mut net = Net::new(serve().offers_per_second(4));
    let taken = (0..10).filter(|&n| net.join(n).is_ok()).count();
    assert_eq!((taken, net.server.statistics().refused), (4, 6));
    assert_eq!(net.join(11), busy("offers per second", 4));
    net.now += Duration::from_millis(500);
    let taken = (20..30).filter(|&n| net.join(n).is_ok()).count();
    assert_eq!(taken, 2);
}

#[test]
fn peers_that_never_connect_are_removed_after_the_setup_time_limit() {
    let mut net = Net::new(serve().max_setups(5));
    for n in 0..5 {
        net.join(n).unwrap();
    }
    net.clients.clear();
    assert!(net.join(5).is_err());
    net.run_for(Duration::from_secs(31));
    assert_eq!(net.server.len(), 0);
    assert!(net.join(6).is_ok());
}

/// Offers whose senders never connect take up all setups. They do not keep others out for the time limit of a setup.
#[test]
fn an_old_setup_makes_room_for_a_new_one() {
    let mut net = Net::new(serve().max_setups(3));
    for n in 0..3 {
        net.join(n).unwrap();
        net.now += Duration::from_millis(100);
    }
    net.clients.clear();
    net.now += Duration::from_millis(1600);
    assert!(net.join(3).is_err(), "the oldest has taken 1.9 s");
    net.now += Duration::from_millis(100);
    let id = net.join(4).unwrap();
    let refused = net.join(5);
    assert_eq!(refused.unwrap_err(), OfferError::Busy { what: "peers in setup", limit: 3 });
    net.run_for(Duration::from_secs(1));
    assert!(net.events.contains(&(id, Event::Connected)), "the new one is set up");
    let ends = net.events.iter().filter(|(_, event)| matches!(event, Event::Closed(_)));
    assert_eq!(ends.count(), 1, "the application is told of the one that ended");
    assert_eq!(net.server.len(), 3);
}

/// STUN and DTLS of unknown senders: STUN with an unknown user name, STUN with a known one and a wrong password, a ServerHello
/// and a ClientHello.
#[test]
fn a_flood_from_unknown_peers_creates_no_state_and_gets_no_response() {
    let mut net = Net::new(serve());
    net.join(1).unwrap();
    net.run_for(Duration::from_secs(1));
    assert_eq!(net.connected(), 1);
    let is_stun = |datagram: &[u8]| datagram[0] < 4;
    let own: Vec<Vec<u8>> = net.to_server.iter().map(|(_, it)| it.clone()).collect();
    let check = own.iter().find(|it| is_stun(it)).unwrap();
    let record = own.iter().find(|it| !is_stun(it)).unwrap();
    let mut forged = check.clone();
    // In the priority or the tie-breaker: no longer what was authenticated.
    let at = forged.len() - 40;
    forged[at] ^= 1;
    // USERNAME (RFC 8489 §14.3) begins with the server's user name fragment.
    let mut unknown = check.clone();
    let name = check.windows(2).position(|it| it == [0, 6]).unwrap() + 4;
    unknown[name] ^= 1;
    // The handshake type of a ClientHello is 1 (RFC 9147 §5.2).
    let mut hello = record.clone();
    hello[13] = 1;
    let timeout = net.server.poll_timeout();
    for n in 0..20_000_u32 {
        let remote = SocketAddr::new([10, (n >> 16) as u8, (n >> 8) as u8, n as u8].into(), 9);
        let route = Route { local: address(SERVER), remote };
        for datagram in [&forged, &unknown, record, &hello] {
            net.server.handle_input(net.now, route, datagram);
        }
        assert_eq!(net.server.poll_transmit(net.now, &mut Vec::new()), None);
    }
    assert_eq!((net.server.len(), net.server.poll_timeout()), (1, timeout));
    net.events.clear();
    net.run_for(Duration::from_secs(1));
    assert_eq!(net.events, []);
}

/// Copies of its checks arrive from many addresses.
#[test]
fn a_peer_has_a_limited_number_of_addresses() {
    let mut net = Net::new(serve());
    let id = net.join(1).unwrap();
    net.run_for(Duration::from_secs(1));
    let check = net.to_server.iter().find(|(_, datagram)| datagram[0] < 4).unwrap().1.clone();
    for n in 0..200 {
        let remote = SocketAddr::new(address("192.0.2.1:1").ip(), 20_000 + n);
        let route = Route { local: address(SERVER), remote };
        net.server.handle_input(net.now, route, &check);
    }
    let known = net.server.agent(id).unwrap().peer_addresses().len();
    assert_eq!(known, MAX_PEER_ADDRESSES);
}

/// Modified datagrams of a real connection, sent from its address before and after it is established.
#[test]
fn changed_datagrams_neither_panic_nor_end_a_connection() {
    let mut net = Net::new(serve());
    net.join(1).unwrap();
    let mut rng: Rng = Seed::from_u64(7).rng();
    for _ in 0..200 {
        net.round();
        let known = net.to_server.clone();
        for _ in 0..50 {
            let (source, mut datagram) = known[rng.below(known.len() as u64) as usize].clone();
            match rng.below(3) {
                0 => datagram.truncate(rng.below(datagram.len() as u64) as usize),
                1 => datagram.extend_from_within(..),
                _ => {}
            }
            for _ in 0..1 + rng.below(3) {
                if !datagram.is_empty() {
                    let at = rng.below(datagram.len() as u64) as usize;
                    datagram[at] ^= 1 << rng.below(8);
                }
            }
            // A handshake may be ended by what is forged in the clear; an established connection may not.
            if net.connected() == 1 || datagram.first().is_some_and(|&first| first < 4) {
                let route = Route { local: address(SERVER), remote: source };
                net.server.handle_input(net.now, route, &datagram);
            }
        }
    }
    assert_eq!(net.connected(), 1);
    assert!(!net.events.iter().any(|(_, event)| matches!(event, Event::Closed(_))));
    let now = net.now;
    let client = &mut net.clients[0];
    let channel = client.agent.open(now, ChannelConfig::new("after")).unwrap();
    client.agent.send(now, channel, &Message::text("still there")).unwrap();
    net.run_for(Duration::from_secs(1));
    let last = net.events.iter().rev().find_map(|(_, event)| match event {
        Event::Message { message, .. } => message.as_text(),
        _ => None,
    });
    assert_eq!(last, Some("still there"));
}

/// A peer sends a check with another peer's address as its source, as is possible on a network without ingress filters.
/// The other's datagrams still reach it, also after that peer has closed.
#[test]
fn a_forged_source_takes_nothing_from_its_owner() {
    let mut net = Net::new(serve());
    net.join(1).unwrap();
    net.run_for(Duration::from_secs(1));
    assert_eq!(net.connected(), 1);
    let owner = net.clients[0].address;
    let forger = net.join(2).unwrap();
    let mut check = Vec::new();
    assert!(net.clients[1].agent.poll_transmit(net.now, &mut check).is_some());
    net.server.handle_input(net.now, Route { local: address(SERVER), remote: owner }, &check);
    let addresses = net.server.agent(forger).unwrap().peer_addresses().to_vec();
    assert_eq!(addresses, [owner], "it was taken for the forger's");
    let opened = |event: &Event| match event {
        Event::ChannelOpened { channel, .. } => Some(*channel),
        _ => None,
    };
    let channel = net.clients[0].events.iter().find_map(opened).unwrap();
    net.clients.truncate(1);
    for is_gone in [false, true] {
        if is_gone {
            net.server.forget(net.now, forger);
        }
        net.events.clear();
        for _ in 0..20 {
            let sent = net.clients[0].agent.send(net.now, channel, &Message::text("mine"));
            sent.unwrap();
            net.run_for(Duration::from_millis(200));
        }
        let is_message = |(_, event): &&(PeerId, Event)| matches!(event, Event::Message { .. });
        assert_eq!(net.events.iter().filter(is_message).count(), 20, "gone: {is_gone}");
    }
}

/// A peer sends one check with another host's address as its source, and nothing more. Until DTLS has shown that the
/// peer is there, the bytes sent to that address are bounded by those received from it; so is data of a connection that
/// is redirected there.
#[test]
fn an_address_where_the_peer_is_not_gets_at_most_14_times_what_came_from_there() {
    let most = |received: usize| 14 * received;
    for is_established in [false, true] {
        let mut net = Net::new(serve());
        let id = net.join(1).unwrap();
        if is_established {
            net.run_for(Duration::from_secs(1));
            assert_eq!(net.connected(), 1);
        }
        // The next check of the peer, from elsewhere.
        let mut check = Vec::new();
        while check.first().is_none_or(|&first| first > 3) {
            net.now += DELAY;
            net.clients[0].agent.handle_timeout(net.now);
            net.clients[0].agent.poll_transmit(net.now, &mut check);
        }
        net.clients.clear();
        let victim = address("203.0.113.77:53");
        net.server.handle_input(net.now, Route { local: address(SERVER), remote: victim }, &check);
        let (mut sent, mut packet) = (0, Vec::new());
        for n in 0..600 {
            if is_established && n < 100 {
                let now = net.now;
                net.server.call(id, |agent| {
                    let channel = agent.open(now, ChannelConfig::new("x".repeat(500)));
                    assert!(channel.is_ok());
                });
            }
            while let Some(route) = net.server.poll_transmit(net.now, &mut packet) {
                sent += if route.remote == victim { packet.len() } else { 0 };
            }
            net.now += DELAY * 2;
            net.server.handle_timeout(net.now);
        }
        assert!((1..=most(check.len())).contains(&sent), "{sent} of {}", check.len());
    }
}
