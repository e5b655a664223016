//! Sessions: one DTLS connection each, over a network that loses and changes datagrams.

use std::time::Duration;

use rexmit_core::{Instant, Rng, Seed};
use rexmit_dtls::{
    Fingerprint, HandshakeError, Identity, Session, SessionOutput, SessionSettings, Trust, Version,
};

const LIMIT: Duration = Duration::from_secs(10);

/// A session, with its outputs.
struct Side {
    session: Session,
    outgoing: Vec<Vec<u8>>,
    packets: Vec<Vec<u8>>,
    secured: Option<Fingerprint>,
    ended: Option<HandshakeError>,
}

impl Side {
    fn new(now: Instant, identity: &Identity, is_client: bool, trust: Trust) -> Self {
        let settings =
            SessionSettings::new(identity.clone(), 1200, Duration::from_millis(250), LIMIT);
        let session = Session::new(now, &settings, is_client, trust);
        let (outgoing, packets) = (Vec::new(), Vec::new());
        Self { session, outgoing, packets, secured: None, ended: None }
    }

    /// Calls the session with a sink.
    fn call(&mut self, act: impl FnOnce(&mut Session, &mut dyn FnMut(SessionOutput<'_>))) {
        let Self { session, outgoing, packets, secured, ended } = self;
        act(session, &mut |output| match output {
            SessionOutput::Transmit(datagram) => outgoing.push(datagram.to_vec()),
            SessionOutput::Packet(packet) => packets.push(packet.to_vec()),
            SessionOutput::Secured(peer) => *secured = Some(peer),
            SessionOutput::Ended(error) => {
                assert_eq!(ended.replace(error), None, "it ends once");
            }
            _ => {}
        });
    }
}

struct Pair {
    now: Instant,
    client: Side,
    server: Side,
    rng: Rng,
    loss: f64,
}

impl Pair {
    fn new(identities: [&Identity; 2], trust: [Trust; 2], seed: u64) -> Self {
        let now = Instant::from_millis(1000);
        let [client, server] = trust;
        Self {
            now,
            client: Side::new(now, identities[0], true, client),
            server: Side::new(now, identities[1], false, server),
            rng: Seed::from_u64(seed).rng(),
            loss: 0.0,
        }
    }

    /// Advances the time, and delivers or loses the datagrams.
    fn step(&mut self) {
        let now = self.now;
        for side in [&mut self.client, &mut self.server] {
            if side.session.poll_timeout().is_some_and(|at| at <= now) {
                side.call(|session, sink| session.handle_timeout(now, sink));
            }
        }
        for (from, to) in [(true, false), (false, true)] {
            let sent = std::mem::take(&mut self.side(from).outgoing);
            for datagram in sent {
                if !self.rng.chance(self.loss) {
                    self.side(to).call(|session, sink| session.handle_input(now, &datagram, sink));
                }
            }
        }
        self.now += Duration::from_millis(10);
    }

    fn side(&mut self, is_client: bool) -> &mut Side {
        if is_client { &mut self.client } else { &mut self.server }
    }

    fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.step();
        }
    }
}

fn trusting() -> (Pair, [Fingerprint; 2]) {
    let [client, server] = [1, 2].map(|seed| Identity::from_seed(&Seed::from_u64(seed)));
    let known = [client.fingerprint(), server.fingerprint()];
    let trust = [Trust::only([known[1]]), Trust::only([known[0]])];
    (Pair::new([&client, &server], trust, 1), known)
}

#[test]
fn both_sides_know_each_other_without_a_cookie_and_packets_go_both_ways() {
    let (mut pair, known) = trusting();
    pair.step();
    pair.step();
    // A flight each way, and the end of the client's: a cookie would be another round trip.
    assert_eq!((pair.client.secured, pair.server.secured), (Some(known[1]), Some(known[0])));
    assert_eq!(pair.client.session.version(), Some(Version::Dtls13));
    let now = pair.now;
    pair.client.call(|session, sink| session.seal(now, b"ping", sink));
    pair.server.call(|session, sink| session.seal(now, b"pong", sink));
    pair.step();
    assert_eq!(
        (&pair.client.packets, &pair.server.packets),
        (&vec![b"pong".to_vec()], &vec![b"ping".to_vec()])
    );
    pair.server.call(|session, sink| session.close(now, sink));
    pair.step();
    assert_eq!(pair.client.ended, Some(HandshakeError::EndedByPeer));
}

#[test]
fn lost_flights_are_sent_again() {
    for seed in 0..20 {
        let (mut pair, _) = trusting();
        pair.rng = Seed::from_u64(seed).rng();
        pair.loss = 0.2;
        pair.run_for(LIMIT);
        assert!(pair.client.session.is_secured() && pair.server.session.is_secured(), "{seed}");
    }
}

#[test]
fn the_untrusted_peer_is_named() {
    let [client, server] = [1, 2].map(|seed| Identity::from_seed(&Seed::from_u64(seed)));
    let other = || Trust::only([Fingerprint::of(b"another")]);
    let mut pair = Pair::new([&client, &server], [other(), Trust::anyone()], 1);
    pair.run_for(LIMIT * 2);
    assert_eq!(pair.client.ended, Some(HandshakeError::Untrusted(server.fingerprint())));
    assert_eq!((pair.client.secured, pair.server.secured), (None, None));

    let mut pair = Pair::new([&client, &server], [Trust::anyone(), other()], 1);
    pair.run_for(LIMIT * 2);
    assert_eq!(pair.server.ended, Some(HandshakeError::Untrusted(client.fingerprint())));
    assert_eq!(pair.server.secured, None);
    assert!(pair.server.packets.is_empty());
}

#[test]
fn a_peer_that_does_not_answer_ends_the_handshake() {
    let (mut pair, _) = trusting();
    pair.loss = 1.0;
    pair.run_for(LIMIT + Duration::from_secs(1));
    assert!(matches!(pair.client.ended, Some(HandshakeError::NoAnswer(_))));
    assert_eq!(pair.client.session.poll_timeout(), None);
}

#[test]
fn changed_and_repeated_records_do_not_end_a_session_or_arrive() {
    let (mut pair, _) = trusting();
    let mut known = Vec::new();
    for round in 0..300_u32 {
        let now = pair.now;
        if round > 10 {
            pair.client.call(|session, sink| session.seal(now, &round.to_be_bytes(), sink));
        }
        known.extend(pair.client.outgoing.iter().cloned());
        pair.step();
        for _ in 0..if known.is_empty() { 0 } else { 10 } {
            let mut datagram = known[pair.rng.below(known.len() as u64) as usize].clone();
            if pair.rng.chance(0.7) {
                let at = pair.rng.below(datagram.len() as u64) as usize;
                datagram[at] ^= 1 << pair.rng.below(8);
            }
            if pair.server.session.is_secured() {
                pair.server.call(|session, sink| session.handle_input(now, &datagram, sink));
            }
        }
    }
    assert_eq!(pair.server.ended, None);
    let expected: Vec<_> = (11..300_u32).map(|round| round.to_be_bytes().to_vec()).collect();
    assert_eq!(pair.server.packets, expected);
}

/// A HelloVerifyRequest (RFC 6347 §4.2.1) with this cookie.
fn hello_verify_request(cookie: [u8; 20]) -> Vec<u8> {
    let body = [&[0xfe, 0xff, 20][..], &cookie].concat();
    let len = [0, 0, body.len() as u8];
    let message = [&[3][..], &len, &[0; 2], &[0; 3], &len, &body].concat();
    [&[22, 0xfe, 0xff], &[0; 9][..], &[message.len() as u8], &message].concat()
}

#[test]
fn a_retransmitted_client_hello_is_no_replay() {
    const COOKIE: [u8; 20] = [7; 20];
    let (pair, _) = trusting();
    let Pair { mut client, mut now, .. } = pair;
    let mut hellos = Vec::new();
    for round in 0..6 {
        now += Duration::from_secs(1);
        client.call(|session, sink| session.handle_timeout(now, sink));
        if round == 2 {
            let request = hello_verify_request(COOKIE);
            client.call(|session, sink| session.handle_input(now, &request, sink));
        }
        hellos.append(&mut client.outgoing);
    }
    let number = |hello: &Vec<u8>| hello[3..11].iter().fold(0, |n, &b| n << 8 | u64::from(b));
    let numbers: Vec<u64> = hellos.iter().map(number).collect();
    assert!(numbers.len() > 4 && numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    let has_cookie = |hello: &Vec<u8>| hello.windows(20).any(|bytes| bytes == COOKIE);
    let with_cookie = hellos.iter().filter(|hello| has_cookie(hello)).count();
    assert!(with_cookie >= 2 && hellos.len() - with_cookie >= 2, "{with_cookie}");
}
