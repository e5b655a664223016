//! Both ends of an encrypted connection while records between them are changed, lost, repeated and invented: they
//! never panic, deliver nothing that was not sent, and the next handshake succeeds.

use std::collections::VecDeque;
use std::time::Duration;

use bolero::check;
use bolero::generator::TypeGenerator;
use rexmit_core::{Instant, Machine, Route, Seed};
use rexmit_dtls::{Encryption, Endpoint, Event, Identity, Trust};
use rexmit_sctp::{EndpointConfig, Event as Sctp, OutboundMessage};

/// Random inputs as part of `cargo test`: each has two handshakes.
const ITERATIONS: usize = 60;
const MESSAGE: &[u8] = b"this was sent";

/// What becomes of one datagram.
#[derive(Clone, Debug, TypeGenerator)]
enum Fate {
    Arrives,
    IsLost,
    Twice,
    Flipped {
        at: u16,
        bits: u8,
    },
    Truncated {
        to: u16,
    },
    /// A record in the clear, behind it or before it.
    Joined {
        content: u8,
        body: Vec<u8>,
        is_first: bool,
    },
    /// Something else in its place.
    Replaced(Vec<u8>),
    /// The first byte of something else.
    Record {
        first: u8,
        rest: Vec<u8>,
    },
}

impl Fate {
    fn datagrams(&self, mut datagram: Vec<u8>) -> Vec<Vec<u8>> {
        match self {
            Self::Arrives => {}
            Self::IsLost => return Vec::new(),
            Self::Twice => return vec![datagram.clone(), datagram],
            Self::Flipped { at, bits } => {
                let at = usize::from(*at) % datagram.len();
                datagram[at] ^= bits;
            }
            Self::Truncated { to } => datagram.truncate(usize::from(*to) % datagram.len()),
            Self::Joined { content, body, is_first } => {
                let len = (body.len() as u16).to_be_bytes();
                let header = [20 + content % 8, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 7];
                let record = [&header, &len[..], body].concat();
                datagram = match is_first {
                    true => [record, datagram].concat(),
                    false => [datagram, record].concat(),
                };
            }
            Self::Replaced(other) => datagram.clone_from(other),
            Self::Record { first, rest } => {
                datagram = [&[20 + first % 44], &rest[..]].concat();
            }
        }
        vec![datagram]
    }
}

fn route() -> Route {
    let [local, remote] = ["192.0.2.1:4000", "192.0.2.2:9899"].map(|it| it.parse().unwrap());
    Route { local, remote }
}

fn endpoint(number: u64, peer: u64) -> Endpoint {
    let identity = |number| Identity::from_seed(&Seed::from_u64(number));
    let trust = Trust::only([identity(peer).fingerprint()]);
    let config = EndpointConfig::default().accept(number == 2);
    let encryption = Encryption::new(identity(number), trust);
    Endpoint::new(config, encryption, &Seed::from_u64(number)).unwrap()
}

/// Runs until nothing happens any more, or for `limit`; a client that is secured sends a message. How many
/// arrived.
fn run(
    now: &mut Instant,
    limit: Duration,
    ends: &mut [Endpoint; 2],
    mut fates: impl Iterator<Item = Fate>,
) -> usize {
    let (end, mut received) = (*now + limit, 0);
    while *now < end {
        let mut under_way = VecDeque::new();
        for (from, endpoint) in ends.iter_mut().enumerate() {
            received += handle_events(*now, endpoint);
            let mut packet = Vec::new();
            while endpoint.poll_transmit(*now, &mut packet).is_some() {
                let fate = fates.next().unwrap_or(Fate::Arrives);
                under_way
                    .extend(fate.datagrams(packet.clone()).into_iter().map(|it| (1 - from, it)));
            }
        }
        let next = ends.iter().filter_map(Endpoint::poll_timeout).min();
        match under_way.is_empty() {
            true => *now = next.unwrap_or(end).clamp(*now, end),
            false => *now += Duration::from_millis(10),
        }
        for (to, datagram) in under_way {
            let route = if to == 0 { route() } else { route().reversed() };
            ends[to].handle_input(*now, route, &datagram);
        }
        ends.iter_mut().for_each(|endpoint| endpoint.handle_timeout(*now));
    }
    received
}

fn handle_events(now: Instant, endpoint: &mut Endpoint) -> usize {
    let mut received = 0;
    while let Some(event) = endpoint.poll_event() {
        match event {
            Event::Secured { .. } if endpoint.peer(route().remote).is_some() => {
                // There may be one already, if it was secured before.
                if let Ok(id) = endpoint.sctp_mut().connect(now, route(), 5000) {
                    endpoint.sctp_mut().send(now, id, OutboundMessage::new(0, MESSAGE)).unwrap();
                }
            }
            Event::Association(id, Sctp::Readable) => {
                while let Some(message) = endpoint.sctp_mut().receive(now, id) {
                    assert_eq!(message.payload, MESSAGE);
                    received += 1;
                }
            }
            _ => {}
        }
    }
    received
}

#[test]
fn changed_lost_repeated_and_invented_records() {
    check!().with_type::<Vec<Fate>>().with_iterations(ITERATIONS).for_each(|fates| {
        let mut now = Instant::from_millis(1_000_000);
        let mut ends = [endpoint(1, 2), endpoint(2, 1)];
        ends[0].secure(now, route());
        let limit = Duration::from_secs(12);
        let received = run(&mut now, limit, &mut ends, fates.iter().cloned());
        assert!(received <= 1, "a message arrived {received} times");
        assert!(ends.iter().all(|endpoint| endpoint.connection_count() <= 2));
        // Another client in its place.
        ends[0] = endpoint(1, 2);
        ends[0].secure(now, route());
        assert_eq!(run(&mut now, limit, &mut ends, std::iter::empty()), 1);
    });
}
