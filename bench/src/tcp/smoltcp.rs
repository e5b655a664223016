//! smoltcp, the TCP/IP stack of embedded Rust.

use rexmit_core::Instant;
use smoltcp::iface::{
    Config, Interface, PollIngressSingleResult, PollResult, SocketHandle, SocketSet,
};
use smoltcp::phy::{Checksum, Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp::{Socket, SocketBuffer, State};
use smoltcp::time::Instant as Time;
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};

use super::{BUFFER_BYTES, BURST, MSS, PORT, Stack, Way};

/// Headers of IPv4 and TCP.
const HEADER_BYTES: usize = 40;

pub(super) struct Smoltcp {
    interface: Interface,
    sockets: SocketSet<'static>,
    socket: SocketHandle,
}

/// One direction of the wire, seen from one end.
enum End<'a> {
    Inbound(&'a mut Way),
    Outbound(&'a mut Way),
}

struct Arrived<'a>(Vec<u8>, &'a mut Vec<Vec<u8>>);

/// Room for a packet, if the device accepts one.
struct Room<'a>(&'a mut Way);

impl RxToken for Arrived<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        let result = read(&self.0);
        self.1.push(self.0);
        result
    }
}

impl TxToken for Room<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, write: F) -> R {
        let mut packet = self.0.spare.pop().unwrap_or_default();
        packet.resize(len, 0);
        let result = write(&mut packet);
        self.0.packets.push_back(packet);
        self.0.carried += 1;
        result
    }
}

/// Discards answers sent during reception: none are needed.
struct NoRoom;

impl TxToken for NoRoom {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, write: F) -> R {
        write(&mut vec![0; len])
    }
}

/// A buffer for an outgoing packet, in either direction.
enum Out<'a> {
    Room(Room<'a>),
    NoRoom(NoRoom),
}

impl TxToken for Out<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, write: F) -> R {
        match self {
            Self::Room(room) => room.consume(len, write),
            Self::NoRoom(none) => none.consume(len, write),
        }
    }
}

impl Device for End<'_> {
    type RxToken<'a>
        = Arrived<'a>
    where
        Self: 'a;
    type TxToken<'a>
        = Out<'a>
    where
        Self: 'a;

    fn receive(&mut self, _: Time) -> Option<(Arrived<'_>, Out<'_>)> {
        let Self::Inbound(way) = self else { return None };
        let packet = way.packets.pop_front()?;
        Some((Arrived(packet, &mut way.spare), Out::NoRoom(NoRoom)))
    }

    fn transmit(&mut self, _: Time) -> Option<Out<'_>> {
        match self {
            Self::Outbound(way) if way.packets.len() < BURST => Some(Out::Room(Room(way))),
            _ => None,
        }
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = MSS + HEADER_BYTES;
        capabilities.checksum.ipv4 = Checksum::None;
        capabilities
    }
}

fn time(now: Instant) -> Time {
    Time::from_micros((now.as_nanos() / 1000) as i64)
}

const CLIENT: IpAddress = IpAddress::v4(192, 0, 2, 1);
const SERVER: IpAddress = IpAddress::v4(192, 0, 2, 2);

impl Smoltcp {
    fn socket(&mut self) -> &mut Socket<'static> {
        self.sockets.get_mut(self.socket)
    }
}

impl Stack for Smoltcp {
    const NAME: &'static str = "smoltcp 0.14.0";

    fn new(is_client: bool) -> Self {
        let mut none = Way::default();
        let config = Config::new(HardwareAddress::Ip);
        let mut interface = Interface::new(config, &mut End::Inbound(&mut none), Time::ZERO);
        let own = if is_client { CLIENT } else { SERVER };
        interface.update_ip_addrs(|addresses| {
            addresses.push(IpCidr::new(own, 24)).expect("the first address");
        });
        let buffer = || SocketBuffer::new(vec![0; BUFFER_BYTES]);
        let mut socket = Socket::new(buffer(), buffer());
        // It would hold back the end of each buffer.
        socket.set_nagle_enabled(false);
        if !is_client {
            socket.listen(PORT).expect("it is new");
        }
        let mut sockets = SocketSet::new(Vec::new());
        let socket = sockets.add(socket);
        Self { interface, sockets, socket }
    }

    fn connect(&mut self, _: Instant) {
        let socket = self.sockets.get_mut::<Socket<'_>>(self.socket);
        socket.connect(self.interface.context(), (SERVER, PORT), 50_000).expect("it is new");
    }

    fn is_connected(&mut self) -> bool {
        self.socket().state() == State::Established
    }

    fn send(&mut self, _: Instant, bytes: &[u8]) -> usize {
        self.socket().send_slice(bytes).expect("it is open")
    }

    fn receive(&mut self, _: Instant, check: &mut impl FnMut(&[u8])) {
        while self.socket().can_recv() {
            let read = self.socket().recv(|bytes| {
                check(bytes);
                (bytes.len(), ())
            });
            read.expect("it is open");
        }
    }

    fn take(&mut self, now: Instant, way: &mut Way) {
        let mut end = End::Inbound(way);
        let Self { interface, sockets, .. } = self;
        while interface.poll_ingress_single(time(now), &mut end, sockets)
            != PollIngressSingleResult::None
        {}
    }

    fn give(&mut self, now: Instant, way: &mut Way) {
        let mut end = End::Outbound(way);
        let Self { interface, sockets, .. } = self;
        while interface.poll_egress(time(now), &mut end, sockets) != PollResult::None {}
    }

    fn handle_timeout(&mut self, _: Instant) {
        // Due packets are sent with the next burst.
    }
}
