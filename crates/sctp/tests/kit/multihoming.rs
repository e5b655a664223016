//! A peer with several addresses, and an endpoint with several of its own.

use std::net::SocketAddr;

use rexmit_core::Route;
use rexmit_sctp::{AssociationConfig, EndpointConfig, Event};

use super::{CookieAck, CookieEcho, Heartbeat, HeartbeatAck, InitAck};
use super::{
    PEER_TAG, PacketScript, Script, Sent, address, expect_event, expect_packet, extensions,
    peer_init,
};

impl Script {
    /// Reads the next packet, which must contain only a HEARTBEAT; returns its destination and content.
    #[track_caller]
    pub fn take_probe(&mut self) -> (SocketAddr, Vec<u8>) {
        let sent = self.next_packet();
        let &[Heartbeat(info)] = &sent.chunks()[..] else { panic!("no HEARTBEAT: {sent:?}") };
        (sent.route.remote, info.to_vec())
    }

    /// The peer sends from its address 192.0.2.`host` from now on.
    pub fn from(&mut self, host: u8) -> &mut Self {
        self.peer.route.remote = address(host, 9899);
        self
    }

    /// The peer answers a HEARTBEAT from the address at which it arrived.
    pub fn answer_probe(&mut self, (at, info): &(SocketAddr, Vec<u8>)) {
        let before = std::mem::replace(&mut self.peer.route.remote, *at);
        self.peer_sends([HeartbeatAck(info)]);
        self.peer.route.remote = before;
    }

    /// The peer at 192.0.2.2, which also lists these addresses, begins an association; nothing else has happened.
    #[track_caller]
    pub fn peer_begins_at(&mut self, others: &[u8]) {
        let init = peer_init(self.peer.tag);
        self.peer_writes_under(0, |p| {
            p.init(&init, |params| {
                extensions(params);
                for &host in others {
                    params.push(&address(host, 0).ip().into());
                }
            })
        });
        let cookie = self.take_init_ack();
        self.peer_sends([CookieEcho(&cookie)]);
        expect_packet!(self, [CookieAck]);
        expect_event!(self, Event::Connected { incoming: true, .. });
    }

    /// Established with a peer at 192.0.2.2 and `others`, all of them confirmed.
    #[track_caller]
    pub fn with_addresses(
        others: &[u8],
        change: impl FnOnce(&mut EndpointConfig, &mut AssociationConfig),
    ) -> Self {
        let mut script = Self::with(change);
        script.peer_begins_at(others);
        for _ in others {
            let probe = script.take_probe();
            script.answer_probe(&probe);
            expect_event!(script, Event::PathStatus { .. });
        }
        script
    }

    /// The host number of a packet's destination.
    #[track_caller]
    pub fn host_of(sent: &Sent) -> u8 {
        match sent.route.remote.ip() {
            std::net::IpAddr::V4(address) => address.octets()[3],
            std::net::IpAddr::V6(address) => panic!("{address} is not one of the kit's"),
        }
    }
}

/// Takes the next packet, which must be sent to 192.0.2.`host`, and matches its chunks as
/// [`expect_packet!`](super::expect_packet) does.
macro_rules! expect_packet_to {
    ($script:expr, $host:expr, [$($chunk:pat),*] $(if $guard:expr)? $(=> $value:expr)?) => {{
        let sent = $script.next_packet();
        assert_eq!(Script::host_of(&sent), $host, "{sent:?}");
        match sent.chunks()[..] {
            [$($chunk),*] $(if $guard)? => ($($value)?),
            _ => panic!(
                "expected [{}], but what was transmitted was {sent:?}",
                stringify!($($chunk),* $(if $guard)?),
            ),
        }
    }};
}
pub(crate) use expect_packet_to;
