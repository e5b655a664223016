//! Data between ordinary clients and an ordinary service.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use socket2::SockRef;

use crate::place::{Place, accept, expect, rest, say};

/// A lossy link, as in the demo.
const LOSSY: &str = "delay 10ms loss 5%";

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + at / 251) as u8).collect()
}

fn reset(stream: &TcpStream) {
    SockRef::from(stream).set_linger(Some(Duration::ZERO)).expect("a socket");
}

#[test]
fn every_byte_is_echoed_over_a_lossy_link_and_the_client_address_is_passed_on() {
    let Some(place) = Place::over(LOSSY) else { return };
    let before = place.look();
    let mut proxy = place.proxy(place.echo(), "");
    let client = place.connect();
    let line = proxy.wait_for("connected");
    assert_eq!(line, format!("{}: connected", client.local_addr().unwrap()));
    let sent = pattern(300_000);
    let (mut writing, words) = (client.try_clone().unwrap(), sent.clone());
    let writer = std::thread::spawn(move || {
        writing.write_all(&words).unwrap();
        writing.shutdown(Shutdown::Write).unwrap();
    });
    assert!(rest(&client).unwrap() == sent, "other bytes came back");
    writer.join().unwrap();
    let line = proxy.wait_for("finished");
    assert!(line.contains("300000 bytes to the service, 300000 to the client"), "{line}");
    assert!(!line.contains(" 0 segments retransmitted"), "nothing was lost: {line}");
    proxy.stop();
    assert_eq!(place.look(), before);
}

#[test]
fn half_closes_and_resets_pass_in_both_directions() {
    let Some(place) = Place::over(LOSSY) else { return };
    let (listener, address) = place.service();
    let proxy = place.proxy(address, "");

    // The service finishes first.
    let (client, service) = (place.connect(), accept(&listener));
    say(&service, b"banner");
    service.shutdown(Shutdown::Write).unwrap();
    assert_eq!(rest(&client).unwrap(), b"banner");
    say(&client, b"thanks");
    expect(&service, b"thanks");
    drop(client);
    assert_eq!(rest(&service).unwrap(), b"");

    // The client finishes first.
    let (client, service) = (place.connect(), accept(&listener));
    say(&client, b"request");
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(rest(&service).unwrap(), b"request");
    say(&service, b"answer");
    drop(service);
    assert_eq!(rest(&client).unwrap(), b"answer");

    // The client resets. A RST is sent only once. If it is lost, the service is informed only when the client's host
    // answers further data, as without a proxy.
    let (client, service) = (place.connect(), accept(&listener));
    say(&client, b"x");
    expect(&service, b"x");
    reset(&client);
    drop(client);
    let error = loop {
        if let Err(error) = (&service).write(b"are you there?") {
            break error;
        }
    };
    assert!(matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{error}");

    // The service resets.
    let (client, service) = (place.connect(), accept(&listener));
    say(&client, b"x");
    expect(&service, b"x");
    reset(&service);
    drop(service);
    let error = loop {
        if let Err(error) = (&client).write(b"are you there?") {
            break error;
        }
    };
    assert!(matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{error}");
    proxy.stop();
}

#[test]
fn two_hundred_thin_connections_at_a_time() {
    let Some(place) = Place::over(LOSSY) else { return };
    let proxy = place.proxy(place.echo(), "--quiet --metrics 127.0.0.1:9100");
    let clients: Vec<_> = (0..200).map(|number| (number, place.connect())).collect();
    let threads: Vec<_> = clients
        .into_iter()
        .map(|(number, client)| {
            std::thread::spawn(move || {
                for round in 0..8 {
                    let words = format!("client {number}, round {round}");
                    say(&client, words.as_bytes());
                    expect(&client, words.as_bytes());
                }
                client
            })
        })
        .collect();
    let clients: Vec<_> = threads.into_iter().map(|it| it.join().unwrap()).collect();
    let fetch = || {
        let mut stream = TcpStream::connect("127.0.0.1:9100").unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let mut page = String::new();
        stream.read_to_string(&mut page).unwrap();
        page
    };
    let page = place.host.run(fetch).unwrap();
    let value = |name: &str| -> f64 {
        let line = page.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("{name} is not in {page}")).trim().parse().unwrap()
    };
    assert_eq!(value("rexmit_proxy_connections_open "), 200.0);
    let sent = value("rexmit_proxy_bytes_total{to=\"client\"} ");
    assert_eq!(sent, value("rexmit_proxy_bytes_total{to=\"service\"} "));
    let again: f64 = ["timeout", "fast_retransmit", "probe", "bundled", "window_probe"]
        .map(|cause| value(&format!("rexmit_proxy_retransmissions_total{{cause=\"{cause}\"}} ")))
        .iter()
        .sum();
    assert!(again > 0.0, "{page}");
    let median = value("rexmit_proxy_client_srtt_seconds{quantile=\"0.5\"} ");
    assert!(median >= 0.02, "less than the link takes: {median}");
    drop(clients);
    proxy.stop();
}

#[test]
fn the_service_gets_the_address_of_the_client() {
    let Some(place) = Place::over("delay 1ms") else { return };
    let (listener, address) = place.service();
    let proxy = place.proxy(address, "--proxy-protocol");
    let (client, service) = (place.connect(), accept(&listener));
    say(&client, b"hello");
    let mut header = [0; 33];
    (&service).read_exact(&mut header).unwrap();
    assert_eq!(header[..16], *b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c");
    assert_eq!(header[16..20], [10, 92, 0, 2]);
    assert_eq!(header[24..26], client.local_addr().unwrap().port().to_be_bytes());
    assert_eq!(header[28..], *b"hello");
    drop((client, service));
    proxy.stop();
}

/// Standard error is also closed when the terminal disappears.
#[test]
fn a_hangup_lets_clients_finish() {
    let Some(place) = Place::over("delay 1ms") else { return };
    let before = place.look();
    let mut proxy = place.proxy(place.echo(), "--drain 3600s");
    let client = place.connect();
    say(&client, b"before");
    expect(&client, b"before");
    proxy.stop_listening();
    proxy.signal("HUP");
    // Until the proxy has handled the signal, clients may still be accepted.
    while let Ok(other) = place.try_connect((crate::place::HOST, crate::place::PORT).into()) {
        drop(other);
    }
    say(&client, b"after");
    expect(&client, b"after");
    drop(client);
    let (status, told) = proxy.end();
    assert!(status.success(), "{told}");
    assert_eq!(place.look(), before);
}

#[test]
fn a_stop_lets_clients_finish_and_a_second_one_does_not() {
    let Some(place) = Place::over("delay 1ms") else { return };
    let before = place.look();
    let mut proxy = place.proxy(place.echo(), "--drain 3600s");
    let client = place.connect();
    say(&client, b"before");
    expect(&client, b"before");
    proxy.signal("TERM");
    proxy.wait_for("stopping");
    // No new clients are accepted; present ones continue.
    let refused = place.try_connect((crate::place::HOST, crate::place::PORT).into());
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::ConnectionRefused);
    say(&client, b"after");
    expect(&client, b"after");
    drop(client);
    let (status, told) = proxy.end();
    assert!(status.success(), "{told}");
    assert_eq!(place.look(), before);

    let mut proxy = place.proxy(place.echo(), "--drain 3600s");
    let client = place.connect();
    say(&client, b"before");
    expect(&client, b"before");
    proxy.signal("INT");
    proxy.wait_for("stopping");
    proxy.signal("INT");
    let (status, told) = proxy.end();
    assert_eq!(status.code(), Some(130), "{told}");
    assert_eq!(rest(&client).unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(place.look(), before);
}
