//! The ECN field on the wire, seen by plain sockets.

use std::io;
use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use rexmit_core::{Ecn, Route};
use socket2::{Domain, MaybeUninitSlice, MsgHdrMut, Protocol, SockRef, Type};

use super::{Inbox, Outbox, Socket};

/// Bound addresses, and the host that the other socket is on.
const PAIRS: [(&str, &str); 4] = [
    ("127.0.0.1:0", "127.0.0.1"),
    ("[::1]:0", "::1"),
    ("[::]:0", "127.0.0.1"), // Mapped IPv4 addresses.
    ("[::]:0", "::1"),
];
const FIELDS: [Ecn; 6] = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect0, Ecn::Ect1, Ecn::Ce, Ecn::NotEct];
const TIME_LIMIT: Duration = Duration::from_secs(20);

/// Has the kernel report the field of received packets.
fn report_field(socket: &SockRef<'_>, is_ipv6: bool) {
    socket.set_read_timeout(Some(TIME_LIMIT)).unwrap();
    if is_ipv6 {
        socket.set_recv_tclass_v6(true).unwrap();
    } else {
        socket.set_recv_tos_v4(true).unwrap();
    }
}

fn send_with(socket: &SockRef<'_>, is_ipv6: bool, ecn: Ecn) {
    let field = ecn.bits().into();
    if is_ipv6 {
        socket.set_tclass_v6(field).unwrap();
    } else {
        socket.set_tos_v4(field).unwrap();
    }
}

/// Receives a packet. Returns its first byte, and its field.
fn receive(socket: &SockRef<'_>) -> io::Result<(u8, Ecn)> {
    let mut control = [MaybeUninit::new(0_u8); 64];
    let mut packet = [MaybeUninit::new(0_u8); 2000];
    let mut buffers = [MaybeUninitSlice::new(&mut packet)];
    let mut message = MsgHdrMut::new().with_buffers(&mut buffers).with_control(&mut control);
    socket.recvmsg(&mut message, 0)?;
    // SAFETY: all of them were initialised above.
    let control = control.map(|byte| unsafe { byte.assume_init() });
    let int = |at: usize| i32::from_ne_bytes(control[at..at + 4].try_into().unwrap());
    let value = size_of::<libc::cmsghdr>();
    let field = match (int(value - 8), int(value - 4)) {
        (libc::IPPROTO_IP, libc::IP_TOS) => control[value],
        (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => int(value) as u8,
        other => panic!("a control message {other:?}"),
    };
    // SAFETY: as above.
    Ok((unsafe { packet[0].assume_init() }, Ecn::from_bits(field)))
}

/// The fields of the next packets that `socket` receives, one for each of `FIELDS`.
async fn receive_all(socket: &Socket) -> Vec<(SocketAddr, Ecn)> {
    let (mut inbox, mut received) = (Inbox::default(), Vec::new());
    while received.len() < FIELDS.len() {
        std::future::poll_fn(|cx| socket.poll_receive(cx, &mut inbox)).await.unwrap();
        let packets = inbox.packets(socket);
        received.extend(packets.map(|(route, ecn, _)| (route.remote, ecn)));
        inbox.release();
    }
    received
}

#[tokio::test]
async fn packets_are_sent_with_their_fields() {
    for (own, host) in PAIRS {
        let socket = Socket::bind_udp(own.parse().unwrap()).unwrap();
        assert!(socket.max_segments() > 1, "this kernel does not cut batches");
        let receiver = UdpSocket::bind((host, 0)).unwrap();
        let remote = receiver.local_addr().unwrap();
        report_field(&SockRef::from(&receiver), remote.is_ipv6());
        let (local, mut outbox) = (socket.local_addr(), Outbox::default());
        // An error of another destination changes nothing.
        let nowhere = Route { local, remote: SocketAddr::new(remote.ip(), 0) };
        assert!(socket.try_send(nowhere, Ecn::Ect0, b"packet", 6).is_err());
        for (n, ecn) in FIELDS.into_iter().enumerate() {
            outbox.push(&socket, (Route { local, remote }, ecn), &mut vec![n as u8; 100]);
        }
        outbox.flush(&socket);
        assert_eq!((outbox.sent, outbox.failed), (FIELDS.len() as u64, 0));
        for (n, ecn) in FIELDS.into_iter().enumerate() {
            let received = receive(&SockRef::from(&receiver)).unwrap();
            assert_eq!(received, (n as u8, ecn), "{own} to {host}");
        }
    }
}

#[tokio::test]
async fn the_fields_of_received_packets_are_reported() {
    for (own, host) in PAIRS {
        let socket = Socket::bind_udp(own.parse().unwrap()).unwrap();
        let sender = UdpSocket::bind((host, 0)).unwrap();
        let from = sender.local_addr().unwrap();
        let to: IpAddr = host.parse().unwrap();
        for ecn in FIELDS {
            send_with(&SockRef::from(&sender), from.is_ipv6(), ecn);
            sender.send_to(&[0; 100], (to, socket.local_addr().port())).unwrap();
        }
        let expected = FIELDS.map(|ecn| (from, ecn));
        assert_eq!(receive_all(&socket).await, expected, "{own} from {host}");
    }
}

/// The kernel of the receiver gets the batch as a whole.
#[tokio::test]
async fn the_field_of_a_coalesced_batch_is_reported() {
    for (own, host) in PAIRS {
        let receiver = Socket::bind_udp(own.parse().unwrap()).unwrap();
        let sender = Socket::bind_udp((host.parse::<IpAddr>().unwrap(), 0).into()).unwrap();
        let remote = SocketAddr::new(host.parse().unwrap(), receiver.local_addr().port());
        let route = Route { local: sender.local_addr(), remote };
        let bytes = vec![0; 100 * FIELDS.len()];
        sender.try_send(route, Ecn::Ce, &bytes, 100).unwrap();
        let expected = FIELDS.map(|_| (sender.local_addr(), Ecn::Ce));
        assert_eq!(receive_all(&receiver).await, expected, "{own} from {host}");
    }
}

#[cfg(feature = "raw")]
#[tokio::test]
async fn raw_sockets_send_and_receive_the_field() {
    /// A port that no other test uses.
    const PORT: u16 = 61_132;
    let packet = [[0, 9].as_slice(), &PORT.to_be_bytes(), &[0; 16]].concat();
    for (own, host) in [("127.0.0.1", "127.0.0.2"), ("::1", "::1")] {
        let own: IpAddr = own.parse().unwrap();
        let socket = match Socket::bind_raw(own, PORT) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return rexmit_testkit::not_run(format_args!("needs CAP_NET_RAW: {error}"));
            }
            socket => socket.unwrap(),
        };
        let remote = SocketAddr::new(host.parse().unwrap(), 0);
        let domain = Domain::for_address(remote);
        let plain = socket2::Socket::new(domain, Type::RAW, Some(Protocol::from(132))).unwrap();
        plain.bind(&remote.into()).unwrap();
        report_field(&SockRef::from(&plain), remote.is_ipv6());
        for ecn in FIELDS {
            send_with(&SockRef::from(&plain), remote.is_ipv6(), ecn);
            plain.send_to(&packet, &SocketAddr::new(own, 0).into()).unwrap();
        }
        let received = receive_all(&socket).await;
        assert_eq!(received, FIELDS.map(|ecn| (remote, ecn)));
        let other_end = SockRef::from(&plain);
        if own == remote.ip() {
            // Both sockets receive all packets of this address.
            for _ in FIELDS {
                receive(&other_end).unwrap();
            }
        }
        let (local, mut outbox) = (socket.local_addr(), Outbox::default());
        for ecn in FIELDS {
            outbox.push(&socket, (Route { local, remote }, ecn), &mut packet.clone());
        }
        outbox.flush(&socket);
        let sent = FIELDS.map(|_| receive(&other_end).unwrap().1);
        assert_eq!(sent, FIELDS);
    }
}
