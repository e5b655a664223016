//! Offers, and datagrams from strangers to a server of data channels: STUN, DTLS, anything.

use std::net::SocketAddr;
use std::sync::Mutex;

use bolero::{TypeGenerator, check};
use rexmit_core::{Instant, Machine as _, Route, Seed};
use rexmit_webrtc::{Agent, AgentConfig, Description, Peers, ServeConfig, Settings};

fn config() -> AgentConfig {
    let identity = rexmit_dtls::Identity::from_seed(&Seed::from_u64(1));
    AgentConfig::new(identity).addresses(vec!["192.0.2.1:4000".parse().expect("an address")])
}

#[test]
fn description() {
    check!().for_each(|bytes: &[u8]| {
        let Ok(text) = str::from_utf8(bytes) else { return };
        if let Ok(description) = text.parse::<Description>() {
            let again = description.to_string().parse::<Description>();
            assert_eq!(again.as_ref(), Ok(&description));
        }
    });
}

#[test]
fn datagrams_to_a_server() {
    let seed = Seed::from_u64(1);
    let now = Instant::from_millis(1);
    let mut peers = Peers::new(ServeConfig::new(config()), &seed).expect("a configuration");
    let settings = Settings::new(config()).expect("a configuration");
    let (_, offer) = Agent::offer(now, settings, &seed);
    peers.answer(now, &offer).expect("an answer");
    let peers = Mutex::new(std::panic::AssertUnwindSafe(peers));
    let local = "192.0.2.1:4000".parse().expect("an address");
    let remote = "192.0.2.2:5000".parse().expect("an address");
    check!().for_each(|datagram: &[u8]| {
        let mut peers = peers.lock().expect("no panic before");
        peers.handle_input(now, Route { local, remote }, datagram);
        assert_eq!(peers.poll_transmit(now, &mut Vec::new()), None);
        assert_eq!(peers.len(), 1);
    });
}

/// A change of a datagram; places are taken modulo its length.
#[derive(Debug, TypeGenerator)]
enum Change {
    Flip {
        at: u16,
        bit: u8,
    },
    Set {
        at: u16,
        byte: u8,
    },
    /// A length or a type.
    SetWord {
        at: u16,
        word: u16,
    },
    Insert {
        at: u16,
        byte: u8,
    },
    Remove {
        at: u16,
        bytes: u8,
    },
    Repeat {
        at: u16,
        bytes: u8,
    },
    Truncate(u16),
}

impl Change {
    fn apply(&self, datagram: &mut Vec<u8>) {
        let len = datagram.len();
        if len < 2 {
            return;
        }
        let within = |at: u16| usize::from(at) % len;
        match *self {
            Self::Flip { at, bit } => datagram[within(at)] ^= 1 << (bit % 8),
            Self::Set { at, byte } => datagram[within(at)] = byte,
            Self::SetWord { at, word } => {
                let at = within(at).min(len - 2);
                datagram[at..at + 2].copy_from_slice(&word.to_be_bytes());
            }
            Self::Insert { at, byte } => datagram.insert(within(at), byte),
            Self::Remove { at, bytes } => {
                let at = within(at);
                drop(datagram.drain(at..(at + usize::from(bytes)).min(len)));
            }
            Self::Repeat { at, bytes } => {
                let at = within(at);
                let copy = datagram[at..(at + usize::from(bytes)).min(len)].to_vec();
                datagram.splice(at..at, copy);
            }
            Self::Truncate(at) => datagram.truncate(within(at)),
        }
    }
}

/// A datagram to the server: a real check with changes.
#[derive(Debug, TypeGenerator)]
struct Mutated {
    changes: Vec<Change>,
    /// Whether the length in the header, and FINGERPRINT at the end, are made to fit, so that the changes behind them are
    /// seen.
    is_framed: bool,
}

const STUN_HEADER_BYTES: usize = 20;
/// FINGERPRINT (RFC 8489 §14.7).
const FINGERPRINT_BYTES: usize = 8;
/// MESSAGE-INTEGRITY (RFC 8489 §14.5).
const INTEGRITY: [u8; 4] = [0, 8, 0, 20];

/// CRC-32 as in ITU V.42, bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, &byte: &u8| {
        let shift = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
        (0..8).fold(crc ^ u32::from(byte), shift)
    };
    !bytes.iter().fold(!0, step)
}

/// Makes a header's length and FINGERPRINT fit what is before it.
fn frame(datagram: &mut Vec<u8>) {
    while !datagram.len().is_multiple_of(4) {
        datagram.push(0);
    }
    let Some(body) = datagram.len().checked_sub(STUN_HEADER_BYTES + FINGERPRINT_BYTES) else {
        return;
    };
    let len = (body + FINGERPRINT_BYTES) as u16;
    datagram[2..4].copy_from_slice(&len.to_be_bytes());
    let at = datagram.len() - FINGERPRINT_BYTES;
    let value = crc32(&datagram[..at]) ^ 0x5354_554e;
    datagram[at..at + 4].copy_from_slice(&[0x80, 0x28, 0, 4]);
    datagram[at + 4..].copy_from_slice(&value.to_be_bytes());
}

/// A server with one peer, and a check of that peer.
fn server_and_check() -> (Peers, Vec<u8>) {
    let (now, seed) = (Instant::from_millis(1), Seed::from_u64(1));
    let mut peers = Peers::new(ServeConfig::new(config()), &seed).expect("a configuration");
    let (mut client, offer) =
        Agent::offer(now, Settings::new(config()).expect("a configuration"), &seed);
    let (_, answer) = peers.answer(now, &offer).expect("an answer");
    client.accept(now, &answer).expect("a peer");
    let mut check = Vec::new();
    client.poll_transmit(now, &mut check).expect("a check");
    (peers, check)
}

/// A check whose authenticated part was changed has no effect: no answer, no address, no other peer.
#[test]
fn changed_checks_to_a_server() {
    let local: SocketAddr = "192.0.2.1:4000".parse().expect("an address");
    let remote: SocketAddr = "192.0.2.2:5000".parse().expect("an address");
    let now = Instant::from_millis(1);
    let (mut peers, genuine) = server_and_check();
    let integrity = genuine.windows(4).position(|bytes| bytes == INTEGRITY).expect("an attribute");
    let authenticated = genuine[..integrity + 24].to_vec();
    let mut framed = genuine.clone();
    frame(&mut framed);
    assert_eq!(framed, genuine, "the frame of a genuine check fits");
    peers.handle_input(now, Route { local, remote }, &genuine);
    assert!(peers.poll_transmit(now, &mut Vec::new()).is_some(), "a genuine one is answered");

    let (peers, _) = server_and_check();
    let peers = Mutex::new(std::panic::AssertUnwindSafe(peers));
    check!().with_type::<Mutated>().for_each(|mutated| {
        let mut datagram = genuine.clone();
        mutated.changes.iter().take(8).for_each(|change| change.apply(&mut datagram));
        if mutated.is_framed {
            frame(&mut datagram);
        }
        // The length in the header is not authenticated as such: what follows the attribute is ignored.
        let is_same = |bytes: &[u8]| {
            bytes.len() == authenticated.len()
                && bytes[..2] == authenticated[..2]
                && bytes[4..] == authenticated[4..]
        };
        if datagram.get(..authenticated.len()).is_some_and(is_same) {
            return;
        }
        let mut peers = peers.lock().expect("no panic before");
        peers.handle_input(now, Route { local, remote }, &datagram);
        assert_eq!(peers.poll_transmit(now, &mut Vec::new()), None, "{datagram:?}");
        assert_eq!(peers.len(), 1);
    });
}
