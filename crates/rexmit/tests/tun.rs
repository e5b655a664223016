//! TUN devices and namespaces, with the kernel's UDP at the other end.

mod common;

use std::net::{IpAddr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use common::in_time;
use common::netns::{self, KERNEL_V4, KERNEL_V6, OURS_V4, OURS_V6};
use rexmit::tun::ip::{HeaderConfig, PacketFilter, Route};
use rexmit::tun::{AsyncTun, Batch, NetNamespace, Tun, TunConfig, TunError};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

const UDP: u8 = 17;

fn kernel_socket(kernel: &NetNamespace, address: IpAddr) -> UdpSocket {
    let socket = kernel.run(|| UdpSocket::bind((address, 0))).unwrap().unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    socket
}

/// A UDP datagram with its checksum.
fn datagram(route: Route, payload: &[u8]) -> Vec<u8> {
    let (from, to) = (route.local, route.remote);
    let (ports, payload) = ((from.port(), to.port()), payload);
    let header = match (from.ip(), to.ip()) {
        (IpAddr::V4(a), IpAddr::V4(b)) => etherparse::UdpHeader::with_ipv4_checksum(
            ports.0,
            ports.1,
            &etherparse::Ipv4Header {
                source: a.octets(),
                destination: b.octets(),
                ..Default::default()
            },
            payload,
        ),
        (IpAddr::V6(a), IpAddr::V6(b)) => etherparse::UdpHeader::with_ipv6_checksum(
            ports.0,
            ports.1,
            &etherparse::Ipv6Header {
                source: a.octets(),
                destination: b.octets(),
                ..Default::default()
            },
            payload,
        ),
        _ => panic!("two families"),
    };
    [&header.unwrap().to_bytes()[..], payload].concat()
}

#[test]
fn the_kernel_and_we_exchange_packets_of_both_families() {
    let Some((kernel, tun)) = netns::tun_to_kernel() else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let tun = AsyncTun::new(tun).unwrap();
        let ours: [IpAddr; 2] = [OURS_V4.into(), OURS_V6.into()];
        let mut filter = PacketFilter::new(UDP, ours);
        let mut batch = Batch::new(tun.mtu());
        for (theirs, ours) in [IpAddr::from(KERNEL_V4), KERNEL_V6.into()].into_iter().zip(ours) {
            let socket = kernel_socket(&kernel, theirs);
            for number in 0..40_u8 {
                socket.send_to(&[number; 100], (ours, 7)).unwrap();
            }
            let mut next = 0;
            while next < 40 {
                in_time(tun.receive(&mut batch)).await.unwrap();
                for packet in batch.iter() {
                    // The kernel also speaks ICMPv6 of its own accord.
                    let Some((route, datagram)) = filter.accept(packet) else { continue };
                    let expected = Route { local: (ours, 0).into(), remote: (theirs, 0).into() };
                    assert_eq!(route, expected);
                    assert_eq!(datagram[8..], [next; 100]);
                    next += 1;
                }
            }
            let route = Route { local: (ours, 7).into(), remote: socket.local_addr().unwrap() };
            let datagram = datagram(route, b"answer");
            let header = HeaderConfig::new(UDP).header(route, datagram.len()).unwrap();
            tun.try_send(&header, &datagram).unwrap();
            let mut answer = [0; 10];
            let (len, from) = socket.recv_from(&mut answer).unwrap();
            assert_eq!((&answer[..len], from), (&b"answer"[..], route.local));
        }
        assert_eq!(filter.statistics().accepted, 80);
    });
}

#[test]
fn without_ipv6_addresses_no_unsolicited_packets_arrive() {
    let Some(kernel) = netns::namespace() else { return };
    let config = TunConfig::default().ipv4(Some((KERNEL_V4, 24)));
    let Some(tun) = netns::if_permitted(Tun::open_in(&kernel, &config)) else { return };
    let socket = kernel_socket(&kernel, KERNEL_V4.into());
    socket.send_to(b"the first", (OURS_V4, 7)).unwrap();
    let mut packet = [0; 100];
    assert_eq!(tun.receive(&mut packet).unwrap(), 20 + 8 + 9);
    assert_eq!(tun.receive(&mut packet).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

#[test]
fn a_device_has_its_configuration_and_is_removed_when_dropped() {
    let Some(kernel) = netns::namespace() else { return };
    let config = TunConfig::default()
        .name(Some("wire".into()))
        .mtu(1400)
        .ipv4(Some((KERNEL_V4, 24)))
        .ipv6(vec![(KERNEL_V6, 64)])
        .queue_packets(77)
        .is_default_route(true);
    let Some(tun) = netns::if_permitted(Tun::open_in(&kernel, &config)) else { return };
    assert_eq!((tun.name(), tun.mtu()), ("wire", 1400));
    let shown = netns::ip(&kernel, "address show wire");
    for expected in ["mtu 1400", "qlen 77", ",UP", "inet 10.91.0.1/24", "inet6 fd91::1/64"] {
        assert!(shown.contains(expected), "{expected} is not in {shown}");
    }
    for (family, address) in [("-4", "198.51.100.1"), ("-6", "2001:db8::1")] {
        let route = netns::ip(&kernel, &format!("{family} route get {address}"));
        assert!(route.contains("dev wire"), "{route}");
    }

    let again = Tun::open_in(&kernel, &config.clone().ipv4(None).ipv6(vec![]));
    let error = again.expect_err("the name is taken").to_string();
    assert!(error.starts_with("there is a network interface wire already"), "{error}");
    let again = Tun::open_in(&kernel, &config.clone().name(None).ipv6(vec![]));
    let error = again.expect_err("the address is taken");
    assert!(matches!(&error, TunError::AddressTaken { interface, .. } if interface == "wire"));

    drop(tun);
    assert!(!netns::ip(&kernel, "link").contains("wire"));
    Tun::open_in(&kernel, &config).expect("everything is free again");
}

/// The kernel ends its check for duplicate addresses in a worker, which the load of the machine delays.
#[test]
fn addresses_can_be_bound_as_soon_as_the_device_is_open() {
    let Some(kernel) = netns::namespace() else { return };
    for round in 0..50 {
        // Another network each time: the kernel may still list that of a device that was just closed.
        let address = Ipv6Addr::from_bits(KERNEL_V6.to_bits() + (round << 64));
        let mut config = TunConfig::default();
        config.ipv6 = vec![(address, 64)];
        let Some(tun) = netns::if_permitted(Tun::open_in(&kernel, &config)) else { return };
        let bound = kernel.run(|| UdpSocket::bind((address, 0))).unwrap();
        assert!(bound.is_ok(), "round {round}: {bound:?}");
        drop(tun);
    }
}

#[test]
fn an_impossible_device_is_refused() {
    let impossible = [
        TunConfig::default().mtu(67),
        TunConfig::default().mtu(1279).ipv6(vec![(KERNEL_V6, 64)]),
        TunConfig::default().ipv4(Some((KERNEL_V4, 33))),
    ];
    for config in impossible {
        let error = Tun::open(&config).expect_err("refused");
        assert!(matches!(error, TunError::InvalidConfig(_)), "{error}");
    }
    assert!(matches!(NetNamespace::named("../../etc/passwd"), Err(TunError::NoNamespace { .. })));
}

#[test]
fn commands_and_closures_live_in_their_namespace() {
    let Some([a, b]) = netns::cabled([&["10.92.0.1/24", "fd92::1/64"], &["10.92.0.2/24"]]) else {
        return;
    };
    assert!(!a.is_same_as(&b).unwrap());
    assert!(netns::ip(&a, "address").contains("fd92::1/64"));
    assert!(a.run(NetNamespace::current).unwrap().unwrap().is_same_as(&a).unwrap());
    let server = kernel_socket(&b, "10.92.0.2".parse().unwrap());
    let client = kernel_socket(&a, "10.92.0.1".parse().unwrap());
    client.send_to(b"over the cable", server.local_addr().unwrap()).unwrap();
    let (len, from): (usize, SocketAddr) = server.recv_from(&mut [0; 100]).unwrap();
    assert_eq!((len, from), (14, client.local_addr().unwrap()));
}

#[test]
fn a_missing_capability_is_named_with_the_command_that_grants_it() {
    // In a thread, because capabilities belong to threads.
    let errors = std::thread::spawn(|| {
        let mut sets = capabilities(None).unwrap();
        let lost = CapabilitySet::NET_ADMIN | CapabilitySet::SYS_ADMIN;
        sets.effective.remove(lost);
        set_capabilities(None, sets).unwrap();
        [Tun::open(&TunConfig::default()).map(drop), NetNamespace::new().map(drop)]
            .map(|result| result.expect_err("not permitted"))
    })
    .join()
    .unwrap();
    for error in errors {
        if matches!(error, TunError::NoDriver | TunError::NodePermission) {
            rexmit_testkit::not_run(error);
            continue;
        }
        assert!(error.is_not_permitted());
        let (needs, grants) = (error.to_string(), "sudo setcap cap_net_admin,cap_sys_admin+ep /");
        assert!(needs.contains("needs CAP_") && needs.contains(grants), "{needs}");
    }
}
