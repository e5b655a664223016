//! Ours.

use std::sync::Arc;

use rexmit_core::{Instant, Machine, Route, Seed};
use rexmit_sctp::recovery::RecoveryConfig;
use rexmit_sctp::{
    AssociationConfig, AssociationId, Endpoint, EndpointConfig, Event, OutboundMessage,
};

use super::{MAX_PACKET_BYTES, PORT, RECEIVE_BUFFER_BYTES, Stack};

pub(super) struct Rexmit {
    endpoint: Endpoint,
    route: Route,
    association: Option<AssociationId>,
    is_connected: bool,
}

impl Rexmit {
    pub(super) fn with(is_client: bool, recovery: RecoveryConfig) -> Self {
        let association = Arc::new(
            AssociationConfig::rfc9260()
                .max_packet_bytes(MAX_PACKET_BYTES)
                .receive_buffer_bytes(RECEIVE_BUFFER_BYTES)
                .recovery(recovery),
        );
        let config =
            EndpointConfig::default().port(PORT).accept(!is_client).association(association);
        let addresses = ["192.0.2.1:9899", "192.0.2.2:9899"].map(|a| a.parse().expect("valid"));
        let [client, server] = addresses;
        let from_client = Route { local: client, remote: server };
        Self {
            endpoint: Endpoint::new(config, &Seed::from_u64(is_client.into())).expect("valid"),
            route: if is_client { from_client } else { from_client.reversed() },
            association: None,
            is_connected: false,
        }
    }

    fn take_events(&mut self) {
        while let Some((id, event)) = self.endpoint.poll_event() {
            if let Event::Connected { .. } = event {
                self.association = Some(id);
                self.is_connected = true;
            }
        }
    }
}

impl Stack for Rexmit {
    const NAME: &'static str = "rexmit";
    type Packet = Vec<u8>;

    fn new(is_client: bool) -> Self {
        Self::with(is_client, RecoveryConfig::rfc9260())
    }

    fn connect(&mut self, now: Instant) {
        self.endpoint.connect(now, self.route, PORT).expect("the first association");
    }

    fn is_connected(&mut self) -> bool {
        self.take_events();
        self.is_connected
    }

    fn send(&mut self, now: Instant, message: Vec<u8>) {
        let id = self.association.expect("connected");
        self.endpoint.send(now, id, OutboundMessage::new(0, message)).expect("there is room");
    }

    fn receive(&mut self, now: Instant, check: &mut impl FnMut(&[u8])) -> bool {
        self.take_events();
        let message = self.association.and_then(|id| self.endpoint.receive(now, id));
        message.inspect(|message| check(&message.payload)).is_some()
    }

    fn handle_input(&mut self, now: Instant, packet: Vec<u8>, spare: &mut Vec<Vec<u8>>) {
        self.endpoint.handle_input(now, self.route, &packet);
        spare.push(packet);
    }

    fn poll_transmit(&mut self, now: Instant, spare: &mut Vec<Vec<u8>>) -> Option<Vec<u8>> {
        let mut packet = spare.pop().unwrap_or_default();
        if self.endpoint.poll_transmit(now, &mut packet).is_some() {
            return Some(packet);
        }
        spare.push(packet);
        None
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        self.endpoint.poll_timeout()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
    }
}
