//! ClientHellos of peers without a connection: no state is stored before a cookie is returned (RFC 9147 §5.1).

use std::time::Duration;

use dimpl::Output;
use rexmit_core::{Instant, Route};

use super::{Endpoint, MAX_ANSWERS};
use crate::connection::Connection;
use crate::cookie::{Cookie, with_cookie};
use crate::record::ClientHello;

/// The age from which an unfinished handshake may be dropped in favour of another, when there are
/// `max_handshakes`.
const MIN_HANDSHAKE_TIME: Duration = Duration::from_secs(1);

impl Endpoint {
    /// Handles a datagram with a ClientHello. Returns whether it was one of a new connection.
    pub(super) fn on_client_hello(&mut self, now: Instant, route: Route, datagram: &[u8]) -> bool {
        let Some(hello) = ClientHello::parse(datagram) else { return false };
        let is_known = |index: Option<&usize>| {
            let random = index.and_then(|&index| self.connections[index].random);
            random.is_some_and(|random| random == hello.random())
        };
        let remote = route.remote;
        let is_ours = self.handshake_with(remote).is_some_and(Connection::is_client);
        if is_ours || is_known(self.handshaking.get(&remote)) || is_known(self.secured.get(&remote))
        {
            return false;
        }
        if hello.cookie().is_none() {
            self.send_cookie(now, route, &hello);
        } else if !self.cookies.accepts(now, remote, &hello) {
            self.statistics.cookies_refused += 1;
        } else {
            self.begin(now, route, &hello, datagram);
        }
        true
    }

    /// Answers with a cookie, without keeping state.
    fn send_cookie(&mut self, now: Instant, route: Route, hello: &ClientHello<'_>) {
        if self.queues.answers.len() >= MAX_ANSWERS {
            return;
        }
        let cookie = self.cookies.make(now, route.remote, hello);
        let settings = (&self.encryption, &self.library);
        let mut connection = Connection::new(now, self.clock, route, settings, Some([0; 32]));
        let first = hello.first();
        let result = with_cookie(hello.random(), cookie, || connection.handle_packet(now, &first));
        if result.is_err() {
            return;
        }
        while let Some(output) = connection.poll_output(&mut self.buffers.output) {
            // The source address may be forged: the answer is smaller than the ClientHello.
            if let Output::Packet(answer) = output
                && answer.len() <= first.len()
            {
                self.statistics.cookies_sent += 1;
                self.queues.answers.push_back((route, answer.to_vec()));
            }
        }
    }

    /// Drops the oldest unfinished handshake that has taken at least [`MIN_HANDSHAKE_TIME`], to make room for another:
    /// peers that do not finish their handshakes block others for that time at most.
    fn drop_oldest_handshake(&mut self, now: Instant) {
        let in_progress = self.handshaking.values().filter(|&&index| {
            let connection = &self.connections[index];
            connection.counts_as_in_progress() && now - connection.begun >= MIN_HANDSHAKE_TIME
        });
        if let Some(&oldest) = in_progress.min_by_key(|&&index| self.connections[index].begun) {
            self.statistics.handshakes_dropped += 1;
            self.statistics.handshakes_failed += 1;
            self.forget(oldest);
        }
    }

    /// Called when a ClientHello arrived with a valid cookie, which proves that the peer receives at its address:
    /// begins its connection with both of its ClientHellos.
    fn begin(&mut self, now: Instant, route: Route, hello: &ClientHello<'_>, datagram: &[u8]) {
        if self.in_progress >= self.encryption.max_handshakes {
            self.drop_oldest_handshake(now);
        }
        if self.in_progress >= self.encryption.max_handshakes
            || self.connections.len() >= self.encryption.max_connections
        {
            self.statistics.handshakes_dropped += 1;
            return;
        }
        let random = hello.random().try_into().ok();
        let cookie = hello.cookie().and_then(|cookie| Cookie::try_from(cookie).ok());
        let (Some(random), Some(cookie)) = (random, cookie) else { return };
        let index = self.insert(now, route, Some(random));
        let connection = &mut self.connections[index];
        let first = hello.first();
        // An error shows in the events of the connection.
        let _ = with_cookie(&random, cookie, || connection.handle_packet(now, &first));
        while connection.poll_output(&mut self.buffers.output).is_some() {}
        with_cookie(&random, cookie, || {
            self.advance(now, index, |connection| connection.handle_packet(now, datagram));
        });
    }
}
