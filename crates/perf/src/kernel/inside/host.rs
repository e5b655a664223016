//! A host: a network namespace with a TUN device, and sockets in it.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::path::Path;

use bytes::{Buf, Bytes};
use rexmit::tun::ip::{HeaderConfig, PacketFilter};
use rexmit::tun::{NetNamespace, Tun, TunConfig};
use rexmit_core::Route;
use rexmit_lab::hosts::{ConnectionEvent, ReadResult, WriteResult};
use rexmit_lab::kernel::{
    HostPlan, KernelError, KernelHost, KernelProtocol, SctpCounters, SocketId,
};
use rustix::event::epoll::EventFlags;
use socket2::Socket;

use super::queue::Reports;
use super::socket::{self, Connection};

/// The most packets that wait in the kernel until they are read: enough that only the simulated network limits and
/// drops packets.
const QUEUE_PACKETS: u32 = 10_000;
/// The most connections that wait to be accepted.
const BACKLOG: i32 = 1024;
/// The most bytes read at once; packets are never longer.
const BUFFER_BYTES: usize = 1 << 16;
/// Marks the device and the listener among the sockets.
const DEVICE: u32 = u32::MAX;
const LISTENER: u32 = u32::MAX - 1;
/// The directory of the kernel's settings.
const SETTINGS: &str = "/proc/sys";
/// The SCTP counters of the namespace of the calling thread.
const SCTP_COUNTERS: &str = "/proc/thread-self/net/sctp/snmp";

/// A host.
pub(super) struct Namespace {
    plan: HostPlan,
    namespace: NetNamespace,
    device: Tun,
    /// Events of the device and the sockets.
    reports: Reports,
    header: HeaderConfig,
    filter: PacketFilter,
    listener: Option<Socket>,
    connections: Vec<Connection>,
    events: VecDeque<(SocketId, ConnectionEvent)>,
    /// Whether the device may have packets.
    has_packets: bool,
    /// A buffer for one packet, or for one read from a socket.
    buffer: Vec<u8>,
}

impl Namespace {
    pub(super) fn new(plan: HostPlan, reports: Reports) -> Result<Self, KernelError> {
        let words = |error: &dyn std::fmt::Display| KernelError::Failed(error.to_string());
        let namespace = NetNamespace::new().map_err(|error| words(&error))?;
        let IpAddr::V4(address) = plan.address else {
            return Err(KernelError::Failed("hosts of a kernel have IPv4 addresses".into()));
        };
        let config = TunConfig::default().mtu(plan.mtu).ipv4(Some((address, 32)));
        let config = config.queue_packets(QUEUE_PACKETS).is_default_route(true);
        let device = Tun::open_in(&namespace, &config).map_err(|error| words(&error))?;
        namespace.run(|| set(&plan.settings)).map_err(|error| words(&error))??;
        let io = |error: io::Error| KernelError::Failed(error.to_string());
        let protocol = socket::ip_protocol(plan.protocol);
        let mut host = Self {
            header: HeaderConfig::new(protocol),
            filter: PacketFilter::new(protocol, [plan.peer]),
            buffer: vec![0; BUFFER_BYTES],
            namespace,
            device,
            reports,
            listener: None,
            connections: Vec::new(),
            events: VecDeque::new(),
            has_packets: true,
            plan,
        };
        host.reports.watch(host.device.as_fd(), DEVICE).map_err(io)?;
        host.listen().map_err(io)?;
        Ok(host)
    }

    fn socket(&self) -> io::Result<Socket> {
        self.namespace.run(|| socket::open(&self.plan)).map_err(io::Error::other)?
    }

    fn listen(&mut self) -> io::Result<()> {
        let Some(port) = self.plan.listens_on else { return Ok(()) };
        let listener = self.socket()?;
        listener.bind(&SocketAddr::new(self.plan.address, port).into())?;
        listener.listen(BACKLOG)?;
        self.reports.watch(listener.as_fd(), LISTENER)?;
        self.listener = Some(listener);
        Ok(())
    }

    fn add(&mut self, connection: Connection) -> io::Result<SocketId> {
        let id = self.connections.len() as SocketId;
        self.reports.watch(connection.socket().as_fd(), id)?;
        self.connections.push(connection);
        Ok(id)
    }

    fn try_connect(&mut self, remote: SocketAddr) -> io::Result<SocketId> {
        let socket = self.socket()?;
        match socket.connect(&remote.into()) {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
            _ => self.add(Connection::new(socket, self.plan.protocol, false)),
        }
    }

    fn accept(&mut self) {
        // Without a connection the call fails.
        while let Some(Ok((socket, _))) = self.listener.as_ref().map(Socket::accept) {
            let made = socket::configure(&socket, &self.plan)
                .and_then(|()| self.add(Connection::new(socket, self.plan.protocol, true)));
            if let Ok(id) = made {
                self.events.push_back((id, ConnectionEvent::Connected { incoming: true }));
            }
        }
    }

    /// Reads the events of the device and of the sockets.
    fn look(&mut self) {
        while let Some((number, flags)) = self.reports.next() {
            match number {
                DEVICE => self.has_packets |= flags.contains(EventFlags::IN),
                LISTENER => self.accept(),
                id => {
                    let Self { connections, events, .. } = self;
                    if let Some(connection) = connections.get_mut(id as usize) {
                        connection.on_event(flags, &mut |one| events.push_back((id, one)));
                    }
                }
            }
        }
    }

    /// The connection `id`, for a call after which the kernel may have packets to send.
    fn used(&mut self, id: SocketId) -> Option<&mut Connection> {
        self.reports.on_call();
        self.connections.get_mut(id as usize)
    }
}

impl KernelHost for Namespace {
    fn deliver(&mut self, route: Route, packet: &[u8]) {
        if let Ok(header) = self.header.header(route.reversed(), packet.len()) {
            // A packet that the kernel refuses is lost, as on any host.
            let _ = self.device.send_parts(&header, packet);
        }
        self.reports.on_call();
    }

    fn transmit(&mut self, packet: &mut Vec<u8>) -> Option<Route> {
        self.look();
        while self.has_packets {
            let Ok(length) = self.device.receive(&mut self.buffer) else {
                self.has_packets = false;
                break;
            };
            if let Some((route, payload)) = self.filter.accept(&self.buffer[..length]) {
                packet.clear();
                packet.extend_from_slice(payload);
                return Some(route.reversed());
            }
        }
        None
    }

    fn connection_event(&mut self) -> Option<(SocketId, ConnectionEvent)> {
        self.look();
        self.events.pop_front()
    }

    fn connect(&mut self, remote: SocketAddr) -> Option<SocketId> {
        self.reports.on_call();
        self.try_connect(remote).ok()
    }

    fn write(&mut self, id: SocketId, bytes: &mut Bytes) -> WriteResult {
        let keeps_boundaries = self.plan.protocol != KernelProtocol::Tcp;
        let Some(connection) = self.used(id) else { return WriteResult::Ended };
        match connection.send(bytes) {
            Ok(sent) if keeps_boundaries || sent == bytes.len() => {
                bytes.clear();
                WriteResult::All
            }
            Ok(sent) => {
                bytes.advance(sent);
                // The next call returns `WouldBlock`, after which the kernel reports when there is room.
                self.write(id, bytes)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => WriteResult::Full,
            Err(_) => WriteResult::Ended,
        }
    }

    fn read(&mut self, id: SocketId, each: &mut dyn FnMut(&[u8])) -> ReadResult {
        self.reports.on_call();
        let Self { connections, buffer, .. } = self;
        let connection = connections.get_mut(id as usize);
        connection.map_or(ReadResult::End, |connection| connection.receive(buffer, each))
    }

    fn finish(&mut self, id: SocketId) {
        if let Some(connection) = self.used(id) {
            connection.finish();
        }
    }

    fn abort(&mut self, id: SocketId) {
        if let Some(connection) = self.used(id) {
            connection.abort();
        }
    }

    fn sctp_counters(&self) -> Option<SctpCounters> {
        matches!(self.plan.protocol, KernelProtocol::Sctp { .. }).then_some(())?;
        let text = self.namespace.run(|| std::fs::read_to_string(SCTP_COUNTERS)).ok()?.ok()?;
        let of = |name: &str| {
            let mut lines = text.lines().filter_map(|line| line.split_once(char::is_whitespace));
            let (_, value) = lines.find(|(known, _)| *known == name)?;
            value.trim().parse().ok()
        };
        let timeouts = of("SctpT3RtxExpireds")?;
        Some(SctpCounters { timeouts, fast_retransmits: of("SctpFastRetransmits")? })
    }
}

/// Applies these settings in the namespace of the calling thread.
fn set(settings: &[(String, String)]) -> Result<(), KernelError> {
    for (name, value) in settings {
        let place = Path::new(SETTINGS).join(name.replace('.', "/"));
        std::fs::write(&place, value).map_err(|error| {
            KernelError::Failed(format!("the kernel refuses `{name} = {value}`: {error}"))
        })?;
    }
    Ok(())
}
