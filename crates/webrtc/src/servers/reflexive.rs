//! The address of the socket as a STUN server sees it (RFC 8489 §7, method Binding, without credentials).

use std::net::SocketAddr;
use std::time::Duration;

use rexmit_core::{Instant, Rng};
use turn_client_proto::types::stun::attribute::XorMappedAddress;
use turn_client_proto::types::stun::message::{
    BINDING, Message, MessageClass, MessageType, MessageWrite as _, MessageWriteVec, TransactionId,
};

/// The time until a request is retransmitted first; it doubles with each retransmission.
const INITIAL_RTO: Duration = Duration::from_millis(250);
/// The longest time between two requests, which also keeps the binding of a NAT (RFC 8445 §11).
const KEEPALIVE: Duration = Duration::from_secs(15);

/// Requests our address from one server, periodically.
pub(super) struct Reflexive {
    server: SocketAddr,
    /// The transaction ID of the last request.
    number: u128,
    send_at: Instant,
    rto: Duration,
    mapped: Option<SocketAddr>,
}

impl Reflexive {
    pub(super) const fn new(now: Instant, server: SocketAddr) -> Self {
        Self { server, number: 0, send_at: now, rto: INITIAL_RTO, mapped: None }
    }

    pub(super) const fn mapped(&self) -> Option<SocketAddr> {
        self.mapped
    }

    pub(super) const fn poll_timeout(&self) -> Instant {
        self.send_at
    }

    /// The request to be sent now. A lost request is replaced by one with another transaction ID; answers to the former
    /// are then ignored.
    pub(super) fn poll_transmit(
        &mut self,
        now: Instant,
        rng: &mut Rng,
    ) -> Option<(SocketAddr, Vec<u8>)> {
        if now < self.send_at {
            return None;
        }
        self.send_at = now + self.rto;
        self.rto = (self.rto * 2).min(KEEPALIVE);
        // 96 bits.
        let number = TransactionId::from(u128::from(rng.u64()) << 64 | u128::from(rng.u64()));
        self.number = number.into();
        let kind = MessageType::from_class_method(MessageClass::Request, BINDING);
        let request = Message::builder(kind, number, MessageWriteVec::new());
        Some((self.server, request.finish()))
    }

    /// Returns whether the datagram is the answer to the last request; anything else is ignored.
    pub(super) fn handle_input(&mut self, now: Instant, source: SocketAddr, data: &[u8]) -> bool {
        let Some(message) = Message::from_bytes(data).ok().filter(|_| source == self.server) else {
            return false;
        };
        let number = message.transaction_id();
        let is_answer = message.has_class(MessageClass::Success) && message.has_method(BINDING);
        let is_expected = u128::from(number) == self.number && self.number != 0;
        let Some(mapped) =
            message.attribute::<XorMappedAddress>().ok().filter(|_| is_answer && is_expected)
        else {
            return false;
        };
        self.mapped = Some(mapped.addr(number));
        self.number = 0;
        self.rto = INITIAL_RTO;
        self.send_at = now + KEEPALIVE;
        true
    }
}

#[cfg(test)]
mod tests {
    use rexmit_core::Seed;
    use turn_client_proto::types::stun::message::MessageWriteExt as _;

    use super::*;

    fn answer(number: u128, mapped: SocketAddr) -> Vec<u8> {
        let kind = MessageType::from_class_method(MessageClass::Success, BINDING);
        let mut answer = Message::builder(kind, number.into(), MessageWriteVec::new());
        answer.add_attribute(&XorMappedAddress::new(mapped, number.into())).unwrap();
        answer.finish()
    }

    #[test]
    fn only_the_servers_answer_to_the_last_request_is_believed() {
        let now = Instant::from_millis(1);
        let [server, other, mapped]: [SocketAddr; 3] =
            ["192.0.2.1:3478", "192.0.2.2:3478", "203.0.113.1:9"].map(|it| it.parse().unwrap());
        let mut rng = Seed::from_u64(1).rng();
        let mut it = Reflexive::new(now, server);
        // Before anything was asked.
        assert!(!it.handle_input(now, server, &answer(0, mapped)));
        let (to, request) = it.poll_transmit(now, &mut rng).unwrap();
        assert_eq!((to, request.len()), (server, 20));
        let number: u128 = Message::from_bytes(&request).unwrap().transaction_id().into();
        let whole = answer(number, mapped);
        assert!(!it.handle_input(now, other, &whole));
        assert!(!it.handle_input(now, server, &answer(number ^ 1, mapped)));
        assert!(!it.handle_input(now, server, &request));
        for length in 0..whole.len() {
            assert!(!it.handle_input(now, server, &whole[..length]), "{length}");
        }
        assert_eq!(it.mapped(), None);
        assert!(it.handle_input(now, server, &whole) && it.mapped() == Some(mapped));
        // Not twice.
        assert!(!it.handle_input(now, server, &answer(number, other)));
        assert_eq!(it.poll_timeout(), now + KEEPALIVE);
    }

    #[test]
    fn a_request_that_is_not_answered_is_repeated_ever_more_rarely() {
        let mut now = Instant::from_millis(1);
        let mut rng = Seed::from_u64(1).rng();
        let mut it = Reflexive::new(now, "192.0.2.1:3478".parse().unwrap());
        let mut waits = Vec::new();
        for _ in 0..9 {
            assert!(it.poll_transmit(now, &mut rng).is_some());
            assert!(it.poll_transmit(now, &mut rng).is_none());
            waits.push((it.poll_timeout() - now).as_millis());
            now = it.poll_timeout();
        }
        assert_eq!(waits, [250, 500, 1000, 2000, 4000, 8000, 15_000, 15_000, 15_000]);
    }
}
