//! Marks of a router between two endpoints over real sockets.

#![cfg(target_os = "linux")]

mod common;

use std::io;
use std::mem::MaybeUninit;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use common::{client_config, in_time, server_config};
use rexmit::emulator::{Emulator, EmulatorConfig};
use rexmit::{AssociationConfig, Encryption, Endpoint, Identity, TimeLimits, Trust};
use socket2::{MaybeUninitSlice, MsgHdrMut, SockAddr, SockRef};

/// The codepoints of the ECN field (RFC 3168 §5).
const ECT_0: u8 = 0b10;
const CE: u8 = 0b11;

fn any() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

/// Receives a datagram. Returns its length, its sender, and its ECN field.
fn receive(
    socket: &UdpSocket,
    packet: &mut [MaybeUninit<u8>],
) -> io::Result<(usize, SocketAddr, u8)> {
    let (mut from, mut control) = (SockAddr::from(any()), [MaybeUninit::new(0_u8); 64]);
    let mut buffers = [MaybeUninitSlice::new(packet)];
    let mut message = MsgHdrMut::new().with_addr(&mut from);
    message = message.with_buffers(&mut buffers).with_control(&mut control);
    let len = SockRef::from(socket).recvmsg(&mut message, 0)?;
    // SAFETY: it was initialised above. The only control message is that of the field.
    let field = unsafe { control[size_of::<libc::cmsghdr>()].assume_init() };
    Ok((len, from.as_socket().unwrap(), field & CE))
}

/// A router in front of `server` that marks what it may mark. Returns its address.
fn marking_router(server: SocketAddr) -> SocketAddr {
    let [front, back] = [(); 2].map(|()| UdpSocket::bind(any()).unwrap());
    SockRef::from(&front).set_recv_tos_v4(true).unwrap();
    back.connect(server).unwrap();
    let address = front.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut packet = [MaybeUninit::new(0); 2000];
        let mut answers = None;
        while let Ok((len, client, field)) = receive(&front, &mut packet) {
            let (front, there) = (front.try_clone().unwrap(), back.try_clone().unwrap());
            answers.get_or_insert_with(|| {
                std::thread::spawn(move || {
                    let mut packet = [0; 2000];
                    while let Ok(len) = there.recv(&mut packet) {
                        front.send_to(&packet[..len], client).unwrap();
                    }
                })
            });
            let field = if field == ECT_0 { CE } else { field };
            SockRef::from(&back).set_tos_v4(field.into()).unwrap();
            // SAFETY: all of them were initialised above.
            let datagram = packet[..len].iter().map(|byte| unsafe { byte.assume_init() });
            let _ = back.send(&datagram.collect::<Vec<_>>());
        }
    });
    address
}

async fn marks_are_reported(client: Endpoint, server: Endpoint) {
    let [client, server] = [client, server].map(|it| it.with_time_limits(TimeLimits::NONE));
    let router = marking_router(server.local_addr());
    let connecting = client.connect(router, server.port());
    let (ours, theirs) = in_time(async { tokio::join!(connecting, server.accept()) }).await;
    let (ours, theirs) = (ours.unwrap(), theirs.unwrap());
    for number in 0..20_u8 {
        ours.stream(0).send(vec![number; 1000]).await.unwrap();
        assert_eq!(in_time(theirs.recv()).await.unwrap().payload[0], number);
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert!(theirs.statistics().marks.marks_received >= 20, "{:?}", theirs.statistics().marks);
    assert!(ours.statistics().marks.echoes_received > 0, "{:?}", ours.statistics().marks);
    assert_eq!(ours.statistics().marks.marks_received, 0);
}

fn association() -> Arc<AssociationConfig> {
    Arc::new(AssociationConfig::default().ecn(true))
}

#[tokio::test]
async fn marks_of_udp_datagrams_are_reported() {
    let client = client_config().association(association());
    let server = server_config().association(association());
    let [client, server] = [client, server].map(|it| Endpoint::bind_unencrypted(any(), it));
    marks_are_reported(client.unwrap(), server.unwrap()).await;
}

#[tokio::test]
async fn marks_of_encrypted_datagrams_are_reported() {
    let [one, other] = [(); 2].map(|()| Identity::generate().unwrap());
    let encryption = |own: &Identity, peer: &Identity| {
        Encryption::new(own.clone(), Trust::only([peer.fingerprint()]))
    };
    let client = client_config().association(association());
    let client = Endpoint::bind(any(), client, encryption(&one, &other)).unwrap();
    let server = server_config().association(association());
    let server = Endpoint::bind(any(), server, encryption(&other, &one)).unwrap();
    marks_are_reported(client, server).await;
}

/// Batches that a sender passes to the kernel (GSO), through an emulated router that marks the more packets the longer its queue is: if
/// the emulator lost their ECN field, it would drop them.
#[tokio::test]
async fn the_emulator_marks_packets_of_batches() {
    let config = Arc::new(AssociationConfig::bulk());
    let server = common::bind(server_config().association(Arc::clone(&config)));
    let path = "delay 5ms rate 20mbit limit 1000 red 1 40 100% 1 ecn".parse().unwrap();
    let router = EmulatorConfig::new(any(), server.local_addr()).forward(path);
    let router = Emulator::start(&router).unwrap();
    let client = common::bind(client_config().association(config));
    let connecting = client.connect(router.local_addr(), server.port());
    let (ours, theirs) = in_time(async { tokio::join!(connecting, server.accept()) }).await;
    let (ours, theirs) = (ours.unwrap(), theirs.unwrap());
    for number in 0..40_u8 {
        ours.stream(0).send(vec![number; 50_000]).await.unwrap();
        assert_eq!(in_time(theirs.recv()).await.unwrap().payload[0], number);
    }
    let path = router.statistics().forward.path;
    assert!(path.aqm.marked > 10 && path.lost() * 20 < path.aqm.marked, "{path:?}");
}
