//! A process is killed, and no acknowledged data is lost.
//!
//! A client sends numbered records, and the service, which keeps them, acknowledges each in its own
//! protocol. Whichever process is killed, every record that was acknowledged to the client was kept.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::thread::JoinHandle;

use rexmit::tun::NetNamespace;

use crate::place::{HOST, PORT, Place, Running, accept};

/// Stores records until the connection ends, and reports each before it is acknowledged. Returns the stored ones, and
/// whether the end looked orderly.
fn keep(stream: &TcpStream, reported: impl Fn(usize)) -> (Vec<usize>, bool) {
    let mut kept = Vec::new();
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    loop {
        let number: usize = match lines.next() {
            Some(Ok(line)) => line.parse().unwrap(),
            Some(Err(_)) => return (kept, false),
            None => return (kept, true),
        };
        kept.push(number);
        reported(number);
        if { stream }.write_all(format!("{number}\n").as_bytes()).is_err() {
            return (kept, false);
        }
    }
}

/// Sends records, some before earlier ones are acknowledged, until the connection ends. Returns how many were
/// acknowledged, and whether the end looked orderly.
fn send(stream: &TcpStream, reported: impl Fn(usize)) -> (usize, bool) {
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
        reported(acknowledged);
    }
    unreachable!("the numbers do not end")
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

fn begin(place: &Place) -> Exchange {
    let (listener, address) = place.service();
    let proxy = place.proxy(address, "--drain 0s");
    let stream = place.connect();
    let service = std::thread::spawn(move || keep(&accept(&listener), |_| {}));
    let (tell, progress) = std::sync::mpsc::channel();
    let reported = move |count| {
        // No socket listens after the kill.
        let _ = tell.send(count);
    };
    let client = std::thread::spawn(move || send(&stream, reported));
    Exchange { proxy, client, service, progress }
}

#[test]
fn the_proxy_is_killed() {
    let Some(place) = Place::over("delay 5ms loss 5%") else { return };
    let before = place.look();
    for records in [1, 7, 20] {
        let exchange = begin(&place);
        while exchange.progress.recv().unwrap() < records {}
        exchange.proxy.signal("KILL");
        let (status, _) = exchange.proxy.end();
        assert!(!status.success());
        let (acknowledged, is_orderly) = exchange.client.join().unwrap();
        assert!(!is_orderly, "the client takes it for an orderly end");
        let (kept, is_orderly) = exchange.service.join().unwrap();
        assert!(!is_orderly, "the service takes it for an orderly end");
        assert_kept(acknowledged, &kept);
        // The remaining rules forward nothing that the next start does not take over.
        assert!(place.look().contains("forwarding-was-off"));
    }
    let removed = place.rexmit("--remove-setup").output().unwrap();
    assert!(removed.status.success(), "{removed:?}");
    assert_eq!(place.look(), before);
    let again = place.rexmit("--remove-setup").output().unwrap();
    assert!(String::from_utf8_lossy(&again.stderr).contains("there was nothing"), "{again:?}");
}

#[test]
fn the_next_start_cleans_up_after_a_killed_proxy() {
    let Some(place) = Place::over("delay 1ms") else { return };
    let before = place.look();
    let echo = place.echo();
    for firewall in ["nft", "iptables"] {
        if std::process::Command::new(firewall).arg("-V").output().is_err() {
            rexmit_testkit::not_run(format_args!("`{firewall}` is not installed"));
            continue;
        }
        let proxy = place.proxy(echo, &format!("--firewall {firewall}"));
        proxy.signal("KILL");
        proxy.end();
        // Clients get a RST, and no packet is forwarded elsewhere.
        let refused = place.try_connect((HOST, PORT).into()).unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
        let proxy = place.proxy(echo, "--firewall nft");
        assert!(proxy.output.contains("removed the rules"), "{}", proxy.output);
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

/// The side of an exchange that a process of this program plays: `client`, or `service`.
const SIDE: &str = "REXMIT_SIDE_OF_EXCHANGE";

/// A process of this program that plays a side in `namespace`, and reports on its standard error. It shares no memory
/// with the test.
fn process(namespace: &NetNamespace, side: &str) -> Running {
    let mut command = namespace.command(std::env::current_exe().expect("this program"));
    command.args(["killing::a_side_of_an_exchange", "--exact", "--ignored", "--nocapture"]);
    Running::start(command.env(SIDE, side).stdout(Stdio::null()))
}

#[test]
#[ignore = "a side of other tests, in a process of its own"]
fn a_side_of_an_exchange() {
    match std::env::var(SIDE).as_deref() {
        Ok("client") => {
            let stream = TcpStream::connect((HOST, PORT)).expect("a connection");
            send(&stream, |count| eprintln!("acknowledged {count}."));
        }
        Ok("service") => {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
            eprintln!("serving at {}", listener.local_addr().expect("an address"));
            // A record is reported as kept before it is acknowledged.
            keep(&accept(&listener), |number| eprintln!("kept {number}."));
        }
        _ => println!("a part of other tests"),
    }
}

/// The numbers that a process reported after `word`.
fn reported(said: &str, word: &str) -> Vec<usize> {
    let numbers = said.lines().filter_map(|line| line.strip_prefix(word)?.strip_suffix('.'));
    numbers.map(|number| number.trim().parse().expect("a number")).collect()
}

#[test]
fn the_client_is_killed() {
    let Some(place) = Place::over("delay 5ms loss 5%") else { return };
    let before = place.look();
    let (listener, address) = place.service();
    let proxy = place.proxy(address, "--drain 0s");
    let mut client = process(&place.clients, "client");
    let service = std::thread::spawn(move || keep(&accept(&listener), |_| {}));
    client.wait_for("acknowledged 30.");
    client.signal("KILL");
    let (status, said) = client.end();
    assert_eq!(status.signal(), Some(9), "{said}");
    // Its kernel ends the connection, and the service hears of it.
    let (kept, _) = service.join().unwrap();
    assert_kept(*reported(&said, "acknowledged").last().unwrap(), &kept);
    proxy.signal("TERM");
    proxy.end();
    assert_eq!(place.look(), before);
}

#[test]
fn the_service_is_killed() {
    let Some(place) = Place::over("delay 5ms loss 5%") else { return };
    let before = place.look();
    let mut service = process(&place.host, "service");
    let line = service.wait_for("serving at ");
    let address = line.trim_start_matches("serving at ").parse().expect("an address");
    let proxy = place.proxy(address, "--drain 0s");
    let stream = place.connect();
    let client = std::thread::spawn(move || send(&stream, |_| {}));
    service.wait_for("kept 30.");
    service.signal("KILL");
    let (status, said) = service.end();
    assert_eq!(status.signal(), Some(9), "{said}");
    let (acknowledged, _) = client.join().unwrap();
    assert_kept(acknowledged, &reported(&said, "kept"));
    proxy.signal("TERM");
    proxy.end();
    assert_eq!(place.look(), before);
}
