//! Ours.

use std::net::SocketAddr;

use rexmit_core::{Instant, Machine, Route, Seed};
use rexmit_tcp::recovery::RecoveryConfig;
use rexmit_tcp::{ConnectionConfig, ConnectionId, Endpoint, EndpointConfig, Event};

use super::{BUFFER_BYTES, BURST, MSS, PORT, Stack, Way};

pub(super) struct Rexmit {
    endpoint: Endpoint,
    route: Route,
    connection: Option<ConnectionId>,
    is_connected: bool,
}

impl Rexmit {
    pub(super) fn with(is_client: bool, recovery: RecoveryConfig) -> Self {
        let connection = ConnectionConfig::sack()
            .mss(MSS as u16)
            .receive_buffer_bytes(BUFFER_BYTES)
            .send_buffer_bytes(BUFFER_BYTES)
            .timestamps(false)
            .recovery(recovery);
        let config = EndpointConfig::default().connection(connection.into());
        let mut endpoint = Endpoint::new(config, &Seed::from_u64(is_client.into())).expect("valid");
        if !is_client {
            endpoint.listen(PORT, None).expect("a free port");
        }
        let [client, server] = ["192.0.2.1:0", "192.0.2.2:0"].map(|a| a.parse().expect("valid"));
        let from_client = Route { local: client, remote: server };
        Self {
            endpoint,
            route: if is_client { from_client } else { from_client.reversed() },
            connection: None,
            is_connected: false,
        }
    }

    fn take_events(&mut self) {
        while let Some((id, event)) = self.endpoint.poll_event() {
            match event {
                Event::Connected { .. } => {
                    self.connection = Some(id);
                    self.is_connected = true;
                }
                Event::Closed(reason) => panic!("closed: {reason:?}"),
                // There is something to read, or room.
                _ => {}
            }
        }
    }
}

impl Stack for Rexmit {
    const NAME: &'static str = "rexmit";

    fn new(is_client: bool) -> Self {
        Self::with(is_client, ConnectionConfig::sack().recovery)
    }

    fn connect(&mut self, now: Instant) {
        let server = SocketAddr::new(self.route.remote.ip(), PORT);
        self.endpoint.connect(now, self.route.local, server).expect("the first connection");
    }

    fn is_connected(&mut self) -> bool {
        self.take_events();
        self.is_connected
    }

    fn send(&mut self, now: Instant, bytes: &[u8]) -> usize {
        let id = self.connection.expect("connected");
        self.endpoint.send(now, id, bytes).expect("it is open")
    }

    fn receive(&mut self, now: Instant, check: &mut impl FnMut(&[u8])) {
        self.take_events();
        let Some(id) = self.connection else { return };
        let mut read = |bytes: &[u8]| {
            check(bytes);
            bytes.len()
        };
        while self.endpoint.receive_with(now, id, &mut read).is_ok() {}
    }

    fn take(&mut self, now: Instant, way: &mut Way) {
        while let Some(packet) = way.packets.pop_front() {
            self.endpoint.handle_input(now, self.route, &packet);
            way.spare.push(packet);
        }
    }

    fn give(&mut self, now: Instant, way: &mut Way) {
        while way.packets.len() < BURST {
            let mut packet = way.spare.pop().unwrap_or_default();
            if self.endpoint.poll_transmit(now, &mut packet).is_none() {
                way.spare.push(packet);
                return;
            }
            way.packets.push_back(packet);
            way.carried += 1;
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.endpoint.poll_timeout().is_some_and(|at| at <= now) {
            self.endpoint.handle_timeout(now);
        }
    }
}
