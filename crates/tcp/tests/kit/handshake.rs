//! Shortcuts past the handshake.

use super::*;

impl Script {
    /// An endpoint that listens, with the defaults.
    pub fn server() -> Self {
        Self::with(|_, _| ())
    }

    /// An endpoint after `connect`, whose SYN is still to be polled.
    pub fn client() -> Self {
        Self::client_with(|_, _| ())
    }

    /// As [`client`], with a changed configuration.
    pub fn client_with(change: impl FnOnce(&mut EndpointConfig, &mut ConnectionConfig)) -> Self {
        let mut script = Self::silent_with(change);
        script.connect();
        script
    }

    /// The application connects to the peer.
    pub fn connect(&mut self) {
        let connected = self.endpoint.connect(self.run.now, self.peer.endpoint, self.peer.address);
        self.run.id = Some(connected.expect("a new connection"));
    }

    /// A connection that we opened; all segments and events of the handshake are consumed.
    pub fn established_client() -> Self {
        Self::established_client_with(|_, _| (), |_| ())
    }

    /// As [`established_client`], with a changed configuration and a changed peer.
    #[track_caller]
    pub fn established_client_with(
        change: impl FnOnce(&mut EndpointConfig, &mut ConnectionConfig),
        change_peer: impl FnOnce(&mut Peer),
    ) -> Self {
        let mut script = Self::client_with(change);
        change_peer(&mut script.peer);
        script.expect(syn());
        script.arrives(syn_ack());
        script.expect(ack(1, 1));
        expect_event!(script, Event::Connected { incoming: false, .. });
        script
    }

    /// A connection that the peer opened; all segments and events of the handshake are consumed.
    pub fn established_server() -> Self {
        Self::established_server_with(|_, _| (), |_| ())
    }

    /// As [`established_server`], with a changed configuration and a changed peer.
    #[track_caller]
    pub fn established_server_with(
        change: impl FnOnce(&mut EndpointConfig, &mut ConnectionConfig),
        change_peer: impl FnOnce(&mut Peer),
    ) -> Self {
        let mut script = Self::with(change);
        change_peer(&mut script.peer);
        script.peer_connects();
        script
    }

    /// The peer connects; all segments and events of the handshake are consumed.
    #[track_caller]
    pub fn peer_connects(&mut self) {
        self.arrives(syn());
        self.expect(syn_ack());
        self.arrives(ack(1, 1));
        expect_event!(self, Event::Connected { incoming: true, .. });
    }
}
