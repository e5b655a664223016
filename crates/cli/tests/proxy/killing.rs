//! Somebody is killed, and what was acknowledged is there.
//!
//! A client sends numbered records, and the service, which keeps them, acknowledges each in its own
//! protocol. Whatever happens to whom, what the client has an acknowledgement for was kept.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::thread::JoinHandle;

use crate::place::{HOST, PORT, Place, Running, accept};

/// Keeps records until its connection ends, or so many are kept; tells how it ended.
fn keep(stream: &TcpStream, at_most: usize) -> (Vec<usize>, bool) {
    let mut kept = Vec::new();
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    while kept.len() < at_most {
        let number: usize = match lines.next() {
            Some(Ok(line)) => line.parse().unwrap(),
            Some(Err(_)) => return (kept, false),
            None => return (kept, true),
        };
        kept.push(number);
        if { stream }.write_all(format!("{number}\n").as_bytes()).is_err() {
            return (kept, false);
        }
    }
    (kept, true)
}

/// Sends records, some ahead of their acknowledgements, until the connection ends, or so many are
/// acknowledged; how many were, and whether the end looked orderly.
fn send(stream: &TcpStream, at_most: usize, told: impl Fn(usize)) -> (usize, bool) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let mut acknowledged = 0;
    for number in 0.. {
        if { stream }.write_all(format!("{number}\n").as_bytes()).is_err() {
            return (acknowledged, false);
        }
        if number < 5 {
            continue;
        }
        match lines.next() {
            Some(Ok(line)) => assert_eq!(line.parse(), Ok(acknowledged)),
            Some(Err(_)) => return (acknowledged, false),
            None => return (acknowledged, true),
        }
        acknowledged += 1;
        told(acknowledged);
        if acknowledged == at_most {
            break;
        }
    }
    (acknowledged, true)
}

fn assert_kept(acknowledged: usize, kept: &[usize]) {
    assert!(kept.iter().copied().eq(0..kept.len()), "out of order: {kept:?}");
    assert!(acknowledged <= kept.len(), "{acknowledged} acknowledged, {} kept", kept.len());
}

/// A client that sends and a service that keeps, with a proxy between them.
struct Exchange {
    proxy: Running,
    client: JoinHandle<(usize, bool)>,
    service: JoinHandle<(Vec<usize>, bool)>,
    progress: std::sync::mpsc::Receiver<usize>,
}

fn begin(place: &Place, client_records: usize, service_records: usize) -> Exchange {
    let (listener, address) = place.service();
    let proxy = place.proxy(address, "--drain 0s");
    let stream = place.connect();
    let service = std::thread::spawn(move || keep(&accept(&listener), service_records));
    let (tell, progress) = std::sync::mpsc::channel();
    let told = move |count| {
        // Nobody listens after the kill.
        let _ = tell.send(count);
    };
    let client = std::thread::spawn(move || send(&stream, client_records, told));
    Exchange { proxy, client, service, progress }
}

const ENDLESS: usize = usize::MAX;

#[test]
fn the_proxy_is_killed() {
    let Some(place) = Place::over("delay 5ms loss 5%") else { return };
    let before = place.look();
    for records in [1, 7, 20] {
        let exchange = begin(&place, ENDLESS, ENDLESS);
        while exchange.progress.recv().unwrap() < records {}
        exchange.proxy.signal("KILL");
        let (status, _) = exchange.proxy.end();
        assert!(!status.success());
        let (acknowledged, is_orderly) = exchange.client.join().unwrap();
        assert!(!is_orderly, "the client takes it for an orderly end");
        let (kept, is_orderly) = exchange.service.join().unwrap();
        assert!(!is_orderly, "the service takes it for an orderly end");
        assert_kept(acknowledged, &kept);
        // What is left forwards nothing but what the next start takes over.
        assert!(place.look().contains("forwarding-was-off"));
    }
    let removed = place.rexmit("--remove-setup").output().unwrap();
    assert!(removed.status.success(), "{removed:?}");
    assert_eq!(place.look(), before);
    let again = place.rexmit("--remove-setup").output().unwrap();
    assert!(String::from_utf8_lossy(&again.stderr).contains("there was nothing"), "{again:?}");
}

#[test]
fn the_next_start_takes_over_what_a_killed_proxy_left() {
    let Some(place) = Place::over("delay 1ms") else { return };
    let before = place.look();
    let echo = place.echo();
    for firewall in ["nft", "iptables"] {
        if std::process::Command::new(firewall).arg("-V").output().is_err() {
            println!("not run: `{firewall}` is not installed");
            continue;
        }
        let proxy = place.proxy(echo, &format!("--firewall {firewall}"));
        proxy.signal("KILL");
        proxy.end();
        // Clients are told, and nothing goes astray.
        let refused = place.try_connect((HOST, PORT).into()).unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
        let proxy = place.proxy(echo, "--firewall nft");
        assert!(proxy.told.contains("had left were removed"), "{}", proxy.told);
        let client = place.connect();
        crate::place::say(&client, b"again");
        crate::place::expect(&client, b"again");
        drop(client);
        proxy.stop();
        let remains = place.look();
        // The tables that iptables makes for itself stay, empty.
        let has_rules = remains.contains("rexmit") || remains.contains("dnat");
        assert!(!has_rules, "{remains}");
        let switches = |text: &str| {
            text.lines().filter(|it| it.contains("/forwarding:")).collect::<Vec<_>>().join("\n")
        };
        assert_eq!(switches(&remains), switches(&before));
    }
}

#[test]
fn the_client_is_killed() {
    let Some(place) = Place::over("delay 5ms loss 5%") else { return };
    let before = place.look();
    let exchange = begin(&place, 30, ENDLESS);
    // It ends with records unacknowledged, and their acknowledgements unread: the kernel resets.
    let (acknowledged, _) = exchange.client.join().unwrap();
    assert_eq!(acknowledged, 30);
    let (kept, _) = exchange.service.join().unwrap();
    assert_kept(acknowledged, &kept);
    exchange.proxy.signal("TERM");
    exchange.proxy.end();
    assert_eq!(place.look(), before);
}

#[test]
fn the_service_is_killed() {
    let Some(place) = Place::over("delay 5ms loss 5%") else { return };
    let before = place.look();
    let exchange = begin(&place, ENDLESS, 30);
    let (kept, _) = exchange.service.join().unwrap();
    assert_eq!(kept.len(), 30);
    let (acknowledged, _) = exchange.client.join().unwrap();
    assert_kept(acknowledged, &kept);
    exchange.proxy.signal("TERM");
    exchange.proxy.end();
    assert_eq!(place.look(), before);
}
