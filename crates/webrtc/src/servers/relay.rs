//! An address at a TURN server (RFC 8656). The crate `turn-client-proto` implements transactions, refreshes and
//! authentication; this module adds limits, and queues datagrams that wait for a permission.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use rexmit_core::Instant;
use turn_client_proto::api::{
    Transmit, TransmitBuild, TurnClientApi as _, TurnConfig, TurnEvent, TurnPollRet, TurnRecvRet,
};
use turn_client_proto::types::{TransportType, TurnCredentials};
use turn_client_proto::udp::TurnClientUdp;

/// The most hosts that the relay may send to and receive from. A permission is refreshed as long as the allocation
/// lives.
pub const MAX_RELAYED_HOSTS: usize = 1024;
/// The most datagrams to one host that wait for its permission; older ones are dropped, and retransmitted by ICE.
const MAX_WAITING: usize = 4;
/// The number of datagrams to one address, with 36 bytes of header each, after which a channel is bound, whose header
/// has 4.
const BEFORE_CHANNEL: u32 = 8;
/// The most channels (RFC 8656 §12: numbers 0x4000 to 0x4FFF); datagrams to further peers keep the longer header.
const MAX_CHANNELS: usize = 2048;
/// Retransmissions of requests: the first after 250 ms, five in all.
const INITIAL_RTO: Duration = Duration::from_millis(250);
const MAX_RTO: Duration = Duration::from_secs(2);
const TRANSMISSIONS: u32 = 5;

/// The time after which a new allocation is requested, if the server has refused one, has not answered, or has dropped
/// it.
const RETRY_AFTER: Duration = Duration::from_secs(30);

const UDP: TransportType = TransportType::Udp;

/// The most rounds of the client in one call, and the least time between two calls by its timer.
const MAX_ROUNDS: usize = 8;
const MIN_WAIT: Duration = Duration::from_millis(10);

/// A placeholder for the address of our socket, which the client does not need.
const fn local_for(server: SocketAddr) -> SocketAddr {
    match server {
        SocketAddr::V4(_) => SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 9),
        SocketAddr::V6(_) => SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 9),
    }
}

fn at(now: Instant) -> turn_client_proto::stun::Instant {
    turn_client_proto::stun::Instant::from_nanos(i64::try_from(now.as_nanos()).unwrap_or(i64::MAX))
}

/// A datagram of a peer that arrived by the relay.
pub(super) struct Relayed {
    pub(super) peer: SocketAddr,
    pub(super) data: Vec<u8>,
}

enum Permission {
    /// The permission was requested; datagrams wait for it.
    Asked(VecDeque<(SocketAddr, Vec<u8>)>),
    Granted,
}

/// The client of one TURN server.
pub(super) struct Relay {
    client: TurnClientUdp,
    config: TurnConfig,
    address: Option<SocketAddr>,
    has_failed: bool,
    permissions: BTreeMap<IpAddr, Permission>,
    /// The number of datagrams sent to each peer, until a channel is bound.
    sent: BTreeMap<SocketAddr, u32>,
    ready: VecDeque<Vec<u8>>,
    timeout: Instant,
}

impl Relay {
    pub(super) fn new(now: Instant, server: SocketAddr, user: &str, password: &str) -> Self {
        let mut config = TurnConfig::new(TurnCredentials::new(user, password));
        config.set_request_retransmits(INITIAL_RTO, MAX_RTO, TRANSMISSIONS, MAX_RTO);
        Self {
            client: TurnClientUdp::allocate(local_for(server), server, config.clone()),
            config,
            address: None,
            has_failed: false,
            permissions: BTreeMap::new(),
            sent: BTreeMap::new(),
            ready: VecDeque::new(),
            timeout: now,
        }
    }

    pub(super) fn server(&self) -> SocketAddr {
        self.client.remote_addr()
    }

    /// The relayed address; `None` before it is allocated, and after the allocation has ended.
    pub(super) const fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Whether there is no allocation, and none can be expected soon.
    pub(super) const fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Sends a datagram to a peer, once the server permits it.
    pub(super) fn send(&mut self, now: Instant, peer: SocketAddr, data: &[u8]) {
        let has_room = self.permissions.len() < MAX_RELAYED_HOSTS;
        match self.permissions.get_mut(&peer.ip()) {
            Some(Permission::Granted) => self.send_permitted(now, peer, data),
            Some(Permission::Asked(waiting)) => {
                if waiting.len() >= MAX_WAITING {
                    waiting.pop_front();
                }
                waiting.push_back((peer, data.to_vec()));
            }
            None => {
                if has_room && self.client.create_permission(UDP, peer.ip(), at(now)).is_ok() {
                    let waiting = VecDeque::from([(peer, data.to_vec())]);
                    self.permissions.insert(peer.ip(), Permission::Asked(waiting));
                }
            }
        }
        self.poll(now);
    }

    fn send_permitted(&mut self, now: Instant, peer: SocketAddr, data: &[u8]) {
        if self.sent.len() < MAX_CHANNELS || self.sent.contains_key(&peer) {
            let sent = self.sent.entry(peer).or_default();
            *sent = sent.saturating_add(1);
            if *sent == BEFORE_CHANNEL {
                // If it fails, Send indications go on.
                let _ = self.client.bind_channel(UDP, peer, at(now));
            }
        }
        if let Ok(Some(transmit)) = self.client.send_to(UDP, peer, data, at(now)) {
            self.ready.push_back(TransmitBuild::build(transmit).data);
        }
    }

    /// Handles a datagram of the server: returns the peer's datagram in it, if any.
    pub(super) fn handle_input(&mut self, now: Instant, data: &[u8]) -> Option<Relayed> {
        let server = self.server();
        let received = Transmit::new(data, UDP, server, local_for(server));
        let relayed = match self.client.recv(received, at(now)) {
            TurnRecvRet::PeerData(it) => Some(Relayed { peer: it.peer, data: it.data().to_vec() }),
            _ => None,
        };
        self.poll(now);
        relayed
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if now < self.timeout {
            return;
        }
        if self.has_failed {
            let server = self.server();
            self.client = TurnClientUdp::allocate(local_for(server), server, self.config.clone());
            self.has_failed = false;
            self.permissions.clear();
            self.sent.clear();
        }
        self.poll(now);
    }

    fn poll(&mut self, now: Instant) {
        let had_address = self.address.is_some();
        let mut next = self.client.poll(at(now));
        // A few rounds suffice: each one reports what the one before has caused.
        for _ in 0..MAX_ROUNDS {
            while let Some(event) = self.client.poll_event() {
                self.on_event(now, &event);
            }
            while let Some(transmit) = self.client.poll_transmit(at(now)) {
                self.ready.push_back(transmit.data.to_vec());
            }
            match next {
                TurnPollRet::WaitUntil(next) if next > at(now) => break,
                TurnPollRet::WaitUntil(_) => {}
                _ => {
                    self.has_failed = true;
                    break;
                }
            }
            next = self.client.poll(at(now));
        }
        self.address = self.client.relayed_addresses().next().map(|(_, address)| address);
        self.has_failed |= had_address && self.address.is_none();
        if self.has_failed {
            self.address = None;
            self.timeout = now + RETRY_AFTER;
            return;
        }
        self.timeout = match next {
            // The client is not asked again at once without an end.
            TurnPollRet::WaitUntil(next) => {
                let nanos = u64::try_from(next.as_nanos()).unwrap_or(0);
                (Instant::ZERO + Duration::from_nanos(nanos)).max(now + MIN_WAIT)
            }
            _ => now + RETRY_AFTER,
        };
    }

    fn on_event(&mut self, now: Instant, event: &TurnEvent) {
        match *event {
            TurnEvent::AllocationCreateFailed(_) => self.has_failed = true,
            TurnEvent::PermissionCreated(_, ip) => {
                let granted = self.permissions.insert(ip, Permission::Granted);
                if let Some(Permission::Asked(waiting)) = granted {
                    for (peer, data) in waiting {
                        self.send_permitted(now, peer, &data);
                    }
                }
            }
            TurnEvent::PermissionCreateFailed(_, ip) => {
                self.permissions.remove(&ip);
            }
            _ => {}
        }
    }

    pub(super) fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.ready.pop_front()
    }

    pub(super) const fn poll_timeout(&self) -> Instant {
        self.timeout
    }
}

#[cfg(test)]
mod tests {
    use is::stun::{StunMessage, StunMessageBuilder};
    use is::{DefaultSha1HmacProvider, Sha1HmacProvider as _};
    use rexmit_core::Seed;

    use super::*;

    const SERVER: &str = "192.0.2.1:3478";
    const RELAYED: &str = "192.0.2.1:50000";
    /// MD5 of `user:rexmit:password` (RFC 8489 §9.2.2).
    const KEY: [u8; 16] = [
        0x07, 0x39, 0x13, 0x3e, 0x3d, 0xfa, 0x94, 0x1c, 0xb5, 0xa4, 0x37, 0x19, 0xa7, 0xd9, 0x6b,
        0xf4,
    ];

    fn hmac(key: &[u8], parts: &[&[u8]]) -> [u8; 20] {
        DefaultSha1HmacProvider.sha1_hmac(key, parts)
    }

    fn bytes(message: StunMessage<'_>) -> Vec<u8> {
        with_key(message, None)
    }

    fn with_key(message: StunMessage<'_>, key: Option<&[u8]>) -> Vec<u8> {
        let mut data = vec![0; 512];
        let len = message.to_bytes(key, &mut data, hmac).unwrap();
        data.truncate(len);
        data
    }

    /// A relay with an allocation, from a server that grants all requests.
    struct Served {
        relay: Relay,
        now: Instant,
        /// The packets sent by the relay, without requests.
        sent: Vec<Vec<u8>>,
    }

    impl Served {
        fn new() -> Self {
            let now = Instant::from_millis(1);
            let relay = Relay::new(now, SERVER.parse().unwrap(), "user", "password");
            let mut it = Self { relay, now, sent: Vec::new() };
            it.run();
            assert_eq!(it.relay.address(), Some(RELAYED.parse().unwrap()));
            it
        }

        /// Answers all requests of the client, which sends them 50 ms apart.
        fn run(&mut self) {
            for _ in 0..20 {
                self.relay.handle_timeout(self.now);
                while let Some(data) = self.relay.poll_transmit() {
                    match answer(&data) {
                        Some(answer) => assert!(
                            self.relay.handle_input(self.now, &answer).is_none(),
                            "an answer is no datagram of a peer"
                        ),
                        None => self.sent.push(data),
                    }
                }
                self.now += Duration::from_millis(60);
            }
        }
    }

    fn answer(request: &[u8]) -> Option<Vec<u8>> {
        let message = StunMessage::parse(request).ok()?;
        let (build, address) = (StunMessageBuilder::new(), RELAYED.parse().unwrap());
        if message.is_allocate_request() && message.username().is_none() {
            let challenge = build.allocate().failure().error_code(401, "Unauthorized");
            return Some(bytes(challenge.realm("rexmit").nonce("1").build(message.trans_id())));
        }
        let answer = if message.is_allocate_request() {
            let success = build.allocate().success().xor_relayed_address(address);
            success.xor_mapped_address(address).lifetime(600)
        } else if message.is_create_permission_request() {
            build.create_permission().success()
        } else if message.is_channel_bind_request() {
            build.channel_bind().success()
        } else {
            return None;
        };
        assert!(message.verify(&KEY, hmac));
        Some(with_key(answer.build(message.trans_id()), Some(&KEY)))
    }

    #[test]
    fn hosts_that_are_relayed_to_are_limited() {
        let mut it = Served::new();
        let peer = |n: u32| SocketAddr::new(Ipv4Addr::from(0x0a00_0000 + n).into(), 9);
        for n in 0..2 * MAX_RELAYED_HOSTS as u32 {
            it.relay.send(it.now, peer(n), b"data");
        }
        assert_eq!(it.relay.permissions.len(), MAX_RELAYED_HOSTS);
    }

    #[test]
    fn data_waits_for_the_permission_within_its_limit() {
        let mut it = Served::new();
        let peer: SocketAddr = "198.51.100.1:9".parse().unwrap();
        for n in 0..10_u8 {
            it.relay.send(it.now, peer, &[n; 5]);
        }
        it.run();
        assert_eq!(it.sent.len(), MAX_WAITING);
        for (n, data) in it.sent.iter().enumerate() {
            let kept = [(10 - MAX_WAITING + n) as u8; 5];
            assert!(data.windows(5).any(|bytes| bytes == kept), "{n}");
        }
        // With a channel, the header gets shorter.
        for _ in 0..2 * BEFORE_CHANNEL {
            it.relay.send(it.now, peer, b"12345678");
            it.run();
        }
        assert_eq!(it.sent.last().map(Vec::len), Some(12));
    }

    #[test]
    fn what_is_forged_in_the_servers_name_changes_nothing() {
        let mut it = Served::new();
        let permitted: SocketAddr = "198.51.100.1:9".parse().unwrap();
        it.relay.send(it.now, permitted, b"data");
        it.run();
        let number = StunMessage::parse(&bytes(
            StunMessageBuilder::new().send().indication().build(is::stun::TransId::new()),
        ))
        .unwrap()
        .trans_id();
        let other: SocketAddr = "203.0.113.1:9".parse().unwrap();
        let build = StunMessageBuilder::new;
        // Answers to no request of ours.
        for forged in [
            build().allocate().success().xor_relayed_address(other).lifetime(0),
            build().refresh().success().lifetime(0),
            build().refresh().failure().error_code(437, "Allocation Mismatch"),
            build().create_permission().failure().error_code(403, "Forbidden"),
            // And data of a peer that nothing was sent to.
            build().data().indication().xor_peer_address(other).data(b"data"),
        ] {
            let forged = bytes(forged.build(number));
            assert!(it.relay.handle_input(it.now, &forged).is_none());
        }
        assert!(it.relay.handle_input(it.now, &[0x40, 0, 0, 4, 1, 2, 3, 4]).is_none());
        it.run();
        assert_eq!(it.relay.address(), Some(RELAYED.parse().unwrap()));
        let data = build().data().indication().xor_peer_address(permitted).data(b"data");
        let relayed = it.relay.handle_input(it.now, &bytes(data.build(number))).unwrap();
        assert_eq!((relayed.peer, &relayed.data[..]), (permitted, &b"data"[..]));
    }

    #[test]
    fn random_datagrams_of_the_server_neither_panic_nor_end_the_allocation() {
        let mut it = Served::new();
        let mut rng = Seed::from_u64(1).rng();
        let build = StunMessageBuilder::new;
        let address = RELAYED.parse().unwrap();
        let number = is::stun::TransId::new();
        let whole = [
            bytes(build().data().indication().xor_peer_address(address).data(b"x").build(number)),
            bytes(
                build()
                    .allocate()
                    .failure()
                    .error_code(401, "x")
                    .realm("r")
                    .nonce("n")
                    .build(number),
            ),
            vec![0x40, 0, 0, 4, 1, 2, 3, 4],
        ];
        for n in 0..20_000 {
            let mut data = whole[n % whole.len()].clone();
            data.truncate(1 + rng.below(data.len() as u64) as usize);
            for _ in 0..rng.below(4) {
                let at = rng.below(data.len() as u64) as usize;
                data[at] = rng.u64() as u8;
            }
            it.relay.handle_input(it.now, &data);
        }
        it.run();
        assert_eq!(it.relay.address(), Some(RELAYED.parse().unwrap()));
    }

    #[test]
    fn a_silent_server_is_asked_again_later() {
        let now = Instant::from_millis(1);
        let mut relay = Relay::new(now, SERVER.parse().unwrap(), "user", "password");
        let (mut sent, mut failures) = (Vec::new(), 0);
        let end = now + Duration::from_secs(100);
        let mut had_failed = false;
        while relay.poll_timeout() < end {
            let now = relay.poll_timeout();
            relay.handle_timeout(now);
            failures += u32::from(relay.has_failed() && !had_failed);
            had_failed = relay.has_failed();
            sent.extend(std::iter::from_fn(|| relay.poll_transmit()));
        }
        assert!(
            failures >= 2 && sent.len() <= 4 * TRANSMISSIONS as usize,
            "{failures} {}",
            sent.len()
        );
    }
}
