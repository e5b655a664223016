//! The processing cost of a datagram of a malicious host, compared with that of a record of a peer of the same size: the table of
//! docs/security.md. `cargo test --release -p rexmit-dtls --test cost -- --ignored --nocapture`

mod common;

use std::time::Duration;

use common::{CLIENT, Pair, SERVER, endpoint, identity, route};
use rexmit_core::{Instant, Machine as _};
use rexmit_dtls::{Encryption, Endpoint, Trust};
use rexmit_testkit::cost::{PACKETS, Table, median, timed};

/// Costs more: the signature and the key exchange of a handshake, for a client that has returned a cookie.
const HANDSHAKE: &str = "ClientHello with a valid cookie";
const EXCEPTIONS: [(&str, f64); 1] = [(HANDSHAKE, f64::INFINITY)];
/// The address of a host without a connection.
const STRANGER: &str = "192.0.2.66:4000";

/// The processing time of a datagram at the server, and the datagrams that it answers.
fn cost(server: &mut Endpoint, now: Instant, from: &str, datagram: &[u8]) -> (Duration, Answers) {
    timed(|| {
        let (mut answers, mut answer) = (Vec::new(), Vec::new());
        server.handle_input(now, route(SERVER, from), datagram);
        while server.poll_transmit(now, &mut answer).is_some() {
            answers.push(std::mem::take(&mut answer));
        }
        while server.poll_event().is_some() {}
        answers
    })
}

type Answers = Vec<Vec<u8>>;

/// What hosts send to the server of a connection, before or after the record that they have seen.
const OF_STRANGERS: [&str; 5] = [
    "a record of no connection",
    "a forged record from another port of a peer's address",
    "a forged record from the peer's address",
    "a datagram without a record",
    "a record again",
];

/// The costs of [`OF_STRANGERS`] and of a record with a message of this many bytes, and the length of the datagrams.
fn of_records(bytes: usize) -> ([Duration; 5], Duration, usize) {
    let mut pair = Pair::trusting();
    pair.connect();
    let (mut strange, mut benign, mut len) = ([const { Vec::new() }; 5], Vec::new(), 0);
    for _ in 0..PACKETS {
        pair.now += Duration::from_millis(250);
        for end in &mut pair.ends {
            end.endpoint.handle_timeout(pair.now);
        }
        pair.send(&vec![7; bytes]);
        let (now, mut record) = (pair.now, Vec::new());
        let [client, server] = &mut pair.ends;
        while client.endpoint.poll_transmit(now, &mut record).is_some() {
            let forged = damaged(&record);
            let garbage = vec![0x2F; record.len()];
            let before = [
                (STRANGER, &record),
                ("192.0.2.1:4001", &forged),
                (CLIENT, &forged),
                (CLIENT, &garbage),
            ];
            let mut answers = Vec::new();
            for (times, (from, datagram)) in strange.iter_mut().zip(before) {
                times.push(cost(&mut server.endpoint, now, from, datagram).0);
            }
            let (time, of_record) = cost(&mut server.endpoint, now, CLIENT, &record);
            answers.extend(of_record);
            if record.len() > bytes {
                benign.push(time);
                len = record.len();
            }
            strange[4].push(cost(&mut server.endpoint, now, CLIENT, &record).0);
            for answer in answers {
                client.endpoint.handle_input(now, route(CLIENT, SERVER), &answer);
            }
        }
    }
    assert!(benign.len() >= PACKETS as usize, "{}", benign.len());
    (strange.map(median), median(benign), len)
}

fn trusting(number: u64, trusted: u64) -> Encryption {
    Encryption::new(identity(number), Trust::only([identity(trusted).fingerprint()]))
}

/// The first ClientHellos of clients, and the second ones, which have the server's cookies.
fn client_hellos(server: &mut Endpoint, now: Instant) -> [Vec<Vec<u8>>; 2] {
    let hellos = (0..u64::from(PACKETS)).map(|seed| {
        let mut client = endpoint(false, trusting(1, 2), 100 + seed);
        let (mut first, mut answer, mut second) = (Vec::new(), Vec::new(), Vec::new());
        client.begin_handshake(now, route(STRANGER, SERVER));
        client.poll_transmit(now, &mut first).expect("a ClientHello");
        server.handle_input(now, route(SERVER, STRANGER), &first);
        server.poll_transmit(now, &mut answer).expect("a HelloRetryRequest");
        client.handle_input(now, route(STRANGER, SERVER), &answer);
        client.poll_transmit(now, &mut second).expect("another ClientHello");
        (first, second)
    });
    let (first, second) = hellos.unzip();
    [first, second]
}

/// With another last byte.
fn damaged(datagram: &[u8]) -> Vec<u8> {
    let mut changed = datagram.to_vec();
    *changed.last_mut().expect("a byte") ^= 1;
    changed
}

#[test]
#[ignore = "measures"]
fn datagrams_cost_at_most_twenty_times_a_record_of_a_peer() {
    let mut table = Table::new("datagram", &EXCEPTIONS);
    for bytes in [100, 1000] {
        let (strange, benign, len) = of_records(bytes);
        for (name, time) in OF_STRANGERS.into_iter().zip(strange) {
            table.row(name, (time, len), benign);
        }
    }
    let mut server = endpoint(true, trusting(2, 1), 2);
    let now = Instant::from_millis(1000);
    let [first, second] = client_hellos(&mut server, now);
    let forged: Vec<_> = second.iter().map(|hello| damaged(hello)).collect();
    let hellos =
        [("ClientHello", first), ("ClientHello with a forged cookie", forged), (HANDSHAKE, second)];
    for (name, datagrams) in hellos {
        let len = datagrams[0].len();
        let times = datagrams.iter().map(|it| cost(&mut server, now, STRANGER, it).0);
        table.row(name, (median(times.collect()), len), of_records(len - 60).1);
    }
    table.end();
}
