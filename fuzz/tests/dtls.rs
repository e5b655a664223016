//! SCTP over DTLS under an attacker without keys: no datagram causes a panic, an endless loop or state beyond the
//! limits, and each side receives exactly the messages that the other sent, in order.

use std::panic::AssertUnwindSafe;
use std::sync::Mutex;
use std::time::Duration;

use bolero::{TypeGenerator, check};
use rexmit_core::{Instant, Machine as _, Route};
use rexmit_fuzz::Filled;
use rexmit_fuzz::dtls::{DtlsExchange, DtlsTraffic, Handling, client, server};

/// The number of random inputs per target in `cargo test`.
const ITERATIONS: usize = 2_000;
/// The time limit of a target in `cargo test`.
const TEST_TIME: Duration = Duration::from_secs(4);

/// Two endpoints with traffic, each datagram of which is delivered, lost, duplicated, delayed, changed or replaced.
#[test]
fn records_altered_on_the_path() {
    check!()
        .with_type::<Filled<DtlsTraffic>>()
        .with_iterations(ITERATIONS)
        .with_test_time(TEST_TIME)
        .for_each(|Filled(traffic)| {
            let mut exchange = DtlsExchange::new(traffic.is_connected);
            for &(number, handling) in &traffic.handlings {
                let is_in_share = number < traffic.share;
                exchange.handle_next(if is_in_share { handling } else { Handling::Deliver });
            }
            exchange.run_out(traffic.is_connected);
        });
}

/// ClientHellos without a cookie, changed or not, from any address.
#[derive(Debug, TypeGenerator)]
struct Flood {
    hellos: Vec<Hello>,
}

#[derive(Debug, TypeGenerator)]
struct Hello {
    source: [u8; 4],
    port: u16,
    changes: Vec<(u16, u8)>,
    cut: Option<u16>,
    /// Bytes that replace it.
    other: Option<Vec<u8>>,
}

impl Hello {
    fn datagram(&self, hello: &[u8]) -> Vec<u8> {
        let mut datagram = self.other.clone().unwrap_or_else(|| hello.to_vec());
        let len = datagram.len().max(1);
        for &(at, byte) in &self.changes {
            if let Some(place) = datagram.get_mut(usize::from(at) % len) {
                *place = byte;
            }
        }
        datagram.truncate(self.cut.map_or(len, |cut| usize::from(cut) % len));
        datagram
    }
}

#[test]
fn a_flood_of_client_hellos_keeps_no_state() {
    let now = Instant::from_millis(1_000_000);
    let local = ([192, 0, 2, 2], 4000).into();
    let mut hello = Vec::new();
    let mut first = client();
    first.begin_handshake(now, Route { local: ([192, 0, 2, 1], 4000).into(), remote: local });
    first.poll_transmit(now, &mut hello).expect("a ClientHello");
    let server = Mutex::new(AssertUnwindSafe(server()));
    check!().with_type::<Flood>().with_iterations(ITERATIONS).with_test_time(TEST_TIME).for_each(
        |flood| {
            let mut server = server.lock().expect("no panic before");
            let (mut bytes_in, mut bytes_out, mut answer) = (0, 0, Vec::new());
            for sent in &flood.hellos {
                let datagram = sent.datagram(&hello);
                bytes_in += datagram.len();
                let route = Route { local, remote: (sent.source, sent.port.max(1)).into() };
                server.handle_input(now, route, &datagram);
            }
            while server.poll_transmit(now, &mut answer).is_some() {
                bytes_out += answer.len();
            }
            assert_eq!(server.poll_event(), None);
            assert_eq!((server.connection_count(), server.poll_timeout()), (0, None));
            assert!(bytes_out <= bytes_in, "{bytes_out} bytes for {bytes_in}");
        },
    );
    let server = server.into_inner().expect("no panic before");
    assert!(server.statistics().cookies_sent > 0, "no ClientHello was valid");
}
