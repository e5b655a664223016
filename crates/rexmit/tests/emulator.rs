//! The emulator between plain UDP sockets on loopback.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use rexmit::BindError;
use rexmit::emulator::{Emulator, EmulatorConfig, EmulatorError, EmulatorStatistics};
use rexmit_core::Seed;
use rexmit_netsim::network::SharedBuffer;
use rexmit_netsim::path::{Delay, Loss, PathConfig};

/// Time limit that only a failing test reaches.
const TIME_LIMIT: Duration = Duration::from_secs(60);

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(TIME_LIMIT)).unwrap();
    socket
}

fn config(server: &UdpSocket) -> EmulatorConfig {
    EmulatorConfig::new("127.0.0.1:0".parse().unwrap(), server.local_addr().unwrap())
}

fn receive(socket: &UdpSocket) -> (Vec<u8>, SocketAddr) {
    let mut packet = vec![0; 2000];
    let (len, from) = socket.recv_from(&mut packet).expect("a packet in time");
    packet.truncate(len);
    (packet, from)
}

/// Polls the statistics until they are as expected; fails after the time limit.
fn wait_until(emulator: &Emulator, wanted: impl Fn(&EmulatorStatistics) -> bool) {
    let start = rexmit::clock::now();
    while !wanted(&emulator.statistics()) {
        assert!(rexmit::clock::now() - start < TIME_LIMIT, "{:#?}", emulator.statistics());
        std::thread::yield_now();
    }
}

#[test]
fn each_client_gets_the_replies_to_its_own_packets() {
    let server = socket();
    let emulator = Emulator::start(&config(&server)).unwrap();
    let clients = [socket(), socket(), socket()];
    for (number, client) in clients.iter().enumerate() {
        client.send_to(&[number as u8], emulator.local_addr()).unwrap();
    }
    for _ in &clients {
        let (packet, from) = receive(&server);
        server.send_to(&[packet[0], b'!'], from).unwrap();
    }
    for (number, client) in clients.iter().enumerate() {
        assert_eq!(receive(client), (vec![number as u8, b'!'], emulator.local_addr()));
    }
    let statistics = emulator.stop().unwrap();
    assert_eq!(statistics.clients, 3);
    assert_eq!(statistics.forward.arrivals.delivered, 3);
    assert_eq!(statistics.backward.arrivals.delivered_bytes, 6);
    assert_eq!(statistics.lateness.count, 6);
}

#[test]
fn a_kept_destination_is_that_of_the_client_in_both_directions() {
    let first = socket();
    let port = first.local_addr().unwrap().port();
    let second = UdpSocket::bind(("127.0.0.2", port)).unwrap();
    second.set_read_timeout(Some(TIME_LIMIT)).unwrap();
    let config = EmulatorConfig::new("0.0.0.0:0".parse().unwrap(), first.local_addr().unwrap());
    let emulator = Emulator::start(&config.keep_destination(true)).unwrap();
    let client = socket();
    for (server, address) in [(&first, "127.0.0.1"), (&second, "127.0.0.2")] {
        let relayed: SocketAddr =
            (address.parse::<IpAddr>().unwrap(), emulator.local_addr().port()).into();
        client.send_to(address.as_bytes(), relayed).unwrap();
        let (packet, from) = receive(server);
        assert_eq!(packet, address.as_bytes());
        server.send_to(b"answer", from).unwrap();
        assert_eq!(receive(&client), (b"answer".to_vec(), relayed));
    }
    assert_eq!(emulator.stop().unwrap().clients, 1);
}

#[test]
fn configurations_that_would_hang_or_lose_everything_are_refused() {
    let start = |listen: &str, to: &str, batch| {
        let config = EmulatorConfig::new(listen.parse().unwrap(), to.parse().unwrap());
        Emulator::start(&config.keep_destination(true).batch(batch)).unwrap_err()
    };
    let none = Duration::ZERO;
    let same = start("0.0.0.0:9", "127.0.0.1:9", none);
    assert!(matches!(same, EmulatorError::SamePort(9)), "{same}");
    let family = start("[::1]:0", "127.0.0.1:9", none);
    assert!(matches!(family, EmulatorError::OtherFamily), "{family}");
    let long = start("127.0.0.1:0", "127.0.0.1:9", Duration::from_millis(101));
    assert!(matches!(long, EmulatorError::BatchTooLong(_)), "{long}");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "packets are sent at different times of a batch")]
fn packets_of_a_batch_wait_for_its_end_and_all_arrive() {
    let server = socket();
    let emulator = Emulator::start(&config(&server).batch(Duration::from_millis(50))).unwrap();
    let client = socket();
    for number in 0..20 {
        client.send_to(&[number], emulator.local_addr()).unwrap();
        std::thread::sleep(Duration::from_millis(5));
    }
    for number in 0..20 {
        assert_eq!(receive(&server).0, [number]);
    }
    // One of ten that are sent during a batch is sent in its first half.
    wait_until(&emulator, |statistics| statistics.lateness.count == 20);
    let latest = emulator.stop().unwrap().lateness.max;
    assert!(latest >= Duration::from_millis(25), "{latest:?}");
}

#[test]
fn each_direction_follows_its_own_path() {
    let server = socket();
    let forward = PathConfig {
        loss: Loss { packets: vec![0, 2], ..Loss::default() },
        ..PathConfig::default()
    };
    let backward = PathConfig { duplicate: 1.0, corrupt: 1.0, ..PathConfig::default() };
    let config = config(&server).forward(forward).backward(backward);
    let emulator = Emulator::start(&config).unwrap();
    let client = socket();
    for number in 0..4 {
        client.send_to(&[number; 100], emulator.local_addr()).unwrap();
    }
    let (packet, from) = receive(&server);
    assert_eq!(packet, [1; 100]);
    assert_eq!(receive(&server).0, [3; 100]);

    server.send_to(&[0; 100], from).unwrap();
    let (first, second) = (receive(&client).0, receive(&client).0);
    assert_eq!(first.iter().map(|byte| byte.count_ones()).sum::<u32>(), 1);
    assert_eq!(first, second);
    let statistics = emulator.stop().unwrap();
    assert_eq!(statistics.forward.path.lost_listed, 2);
    assert_eq!(statistics.backward.path.duplicated, 1);
}

#[test]
fn the_same_seed_loses_the_same_packets() {
    let run = |seed: Option<u64>| {
        let server = socket();
        let mut config = config(&server);
        config.forward.loss.uniform = 0.5;
        if let Some(seed) = seed {
            config.seed = Seed::from_u64(seed);
        }
        let emulator = Emulator::start(&config).unwrap();
        let client = socket();
        for number in 0..200 {
            client.send_to(&[number], emulator.local_addr()).unwrap();
        }
        wait_until(&emulator, |now| now.forward.path.offered == 200);
        let arrived = emulator.stop().unwrap().forward.arrivals.delivered;
        (0..arrived).map(|_| receive(&server).0[0]).collect::<Vec<_>>()
    };
    let first = run(None);
    assert_eq!(run(None), first);
    assert_ne!(run(Some(99)), first);
}

/// Sends `count` packets as ECT(0) over the path at once. Returns how many arrive marked.
fn marked(path: &str, count: usize) -> (u64, EmulatorStatistics) {
    let server = socket();
    let emulator = Emulator::start(&config(&server).forward(path.parse().unwrap())).unwrap();
    let client = socket();
    let [sending, receiving] =
        [&client, &server].map(|socket| quinn_udp::UdpSocketState::new(socket.into()).unwrap());
    for _ in 0..count {
        let packet = quinn_udp::Transmit {
            destination: emulator.local_addr(),
            ecn: Some(quinn_udp::EcnCodepoint::Ect0),
            contents: &[0; 1000],
            segment_size: None,
            src_ip: None,
        };
        sending.try_send((&client).into(), &packet).unwrap();
    }
    server.set_nonblocking(false).unwrap();
    let (mut arrived, mut marked) = (0, 0);
    while arrived < count {
        let mut buffer = vec![0; 1 << 16];
        let mut meta = [quinn_udp::RecvMeta::default()];
        let mut slices = [std::io::IoSliceMut::new(&mut buffer)];
        receiving.recv((&server).into(), &mut slices, &mut meta).expect("a packet in time");
        let packets = meta[0].len.div_ceil(meta[0].stride);
        let ecn = meta[0].ecn.expect("the field is not cleared");
        arrived += packets;
        marked += if ecn == quinn_udp::EcnCodepoint::Ce { packets as u64 } else { 0 };
    }
    (marked, emulator.stop().unwrap())
}

#[test]
fn congestion_is_marked_in_the_ip_header() {
    for queue in ["fq_codel target 1ms interval 10ms", "red 5 40 100% 1 ecn"] {
        let (marked, statistics) = marked(&format!("rate 2mbit {queue}"), 60);
        assert!(marked > 0, "{queue}: {statistics:?}");
        assert_eq!(marked, statistics.forward.path.aqm.marked, "{queue}");
        assert_eq!(statistics.forward.path.lost(), 0, "{queue}");
    }
    assert_eq!(marked("rate 2mbit", 60).0, 0);
}

#[test]
fn packets_that_codel_drops_are_in_the_capture() {
    let server = socket();
    let path = "rate 2mbit fq_codel target 1ms interval 10ms noecn".parse().unwrap();
    let buffer = SharedBuffer::default();
    let config = config(&server).forward(path);
    let mut emulator = Emulator::start_capturing(&config, buffer.clone()).unwrap();
    let client = socket();
    for _ in 0..60 {
        client.send_to(&[0; 1000], emulator.local_addr()).unwrap();
    }
    wait_until(&emulator, |now| {
        let forward = now.forward;
        forward.arrivals.delivered + forward.path.aqm.lost_codel == 60
    });
    emulator.finish_capture().unwrap();
    let dropped = emulator.stop().unwrap().forward.path.aqm.lost_codel;
    let comment = b"lost: too long in the queue (CoDel)";
    let file = buffer.bytes();
    let comments = file.windows(comment.len()).filter(|text| text == comment).count();
    assert!(dropped > 0);
    assert_eq!(comments as u64, dropped);
}

#[test]
fn packets_that_the_kernel_coalesced_stay_separate_packets() {
    let server = socket();
    let emulator = Emulator::start(&config(&server)).unwrap();
    let client = socket();
    let state = quinn_udp::UdpSocketState::new((&client).into()).unwrap();
    let segments = state.max_gso_segments().min(30);
    let packets: Vec<Vec<u8>> = (0..segments as u8).map(|number| vec![number; 1000]).collect();
    let contents = [packets.concat(), b"and a short one".to_vec()].concat();
    let batch = quinn_udp::Transmit {
        destination: emulator.local_addr(),
        ecn: None,
        contents: &contents,
        segment_size: Some(1000),
        src_ip: None,
    };
    state.try_send((&client).into(), &batch).unwrap();
    for packet in packets {
        assert_eq!(receive(&server).0, packet);
    }
    assert_eq!(receive(&server).0, b"and a short one");
}

#[test]
fn one_client_too_many_is_refused_until_another_has_been_idle() {
    let server = socket();
    let config = config(&server).max_clients(1).client_idle_timeout(Duration::from_secs(2));
    let emulator = Emulator::start(&config).unwrap();
    let (first, second) = (socket(), socket());
    first.send_to(b"first", emulator.local_addr()).unwrap();
    second.send_to(b"second", emulator.local_addr()).unwrap();
    let (_, relay) = receive(&server);
    wait_until(&emulator, |now| now.clients == 0);

    // The first client is forgotten, and the second takes its place.
    server.send_to(b"late", relay).unwrap();
    let mut next = emulator.statistics().refused;
    loop {
        second.send_to(b"again", emulator.local_addr()).unwrap();
        wait_until(&emulator, |now| now.refused > next || now.forward.path.offered >= 2);
        if emulator.statistics().forward.path.offered >= 2 {
            break;
        }
        next = emulator.statistics().refused;
    }
    assert!(receive(&server).0.starts_with(b"a"), "the refused packet got through");
}

#[test]
fn drops_packets_beyond_the_limit_of_packets_in_flight() {
    let server = socket();
    let mut config = config(&server).max_packets_in_flight(10);
    config.forward.delay = Delay::constant(Duration::from_secs(3600));
    let emulator = Emulator::start(&config).unwrap();
    let client = socket();
    for _ in 0..25 {
        client.send_to(b"packet", emulator.local_addr()).unwrap();
    }
    wait_until(&emulator, |now| now.forward.overflowed + now.forward.path.offered == 25);
    assert_eq!(emulator.stop().unwrap().forward.overflowed, 15);
}

#[test]
fn packets_of_other_senders_do_not_reach_a_client() {
    let server = socket();
    let emulator = Emulator::start(&config(&server)).unwrap();
    let client = socket();
    client.send_to(b"hello", emulator.local_addr()).unwrap();
    let (_, relay) = receive(&server);
    socket().send_to(b"stranger", relay).unwrap();
    server.send_to(b"server", relay).unwrap();
    assert_eq!(receive(&client).0, b"server");
    assert_eq!(emulator.stop().unwrap().backward.path.offered, 1);
}

#[test]
fn says_that_the_address_is_in_use() {
    let server = socket();
    let taken = socket().local_addr().unwrap();
    let guard = UdpSocket::bind(taken).unwrap();
    let result = Emulator::start(&config(&server).listen(taken));
    drop(guard);
    let error = result.expect_err("the address is in use");
    assert!(matches!(error, EmulatorError::Bind(BindError::InUse { address }) if address == taken));
    assert!(error.to_string().contains("is in use: choose another"), "{error}");
}

#[test]
fn says_which_path_cannot_be() {
    let server = socket();
    let mut config = config(&server);
    config.backward.duplicate = 1.5;
    let error = Emulator::start(&config).expect_err("no such probability");
    assert!(error.to_string().starts_with("the backward path: duplicate is 1.5"), "{error}");
}

#[test]
fn stops_at_once_with_packets_in_flight_and_frees_its_address() {
    let server = socket();
    let mut config = config(&server);
    config.forward.delay = Delay::constant(Duration::from_secs(3600));
    let emulator = Emulator::start(&config).unwrap();
    let client = socket();
    client.send_to(b"packet", emulator.local_addr()).unwrap();
    wait_until(&emulator, |now| now.forward.path.offered == 1);
    let address = emulator.local_addr();
    drop(emulator);
    UdpSocket::bind(address).unwrap();
}
