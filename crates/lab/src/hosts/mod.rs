//! Hosts of a simulated network: a transport and a program that uses it, combined into one machine.
//!
//! | program | over | function |
//! |---|---|---|
//! | [`BulkSender`] | TCP, SCTP | sends at full speed, for a given time or number of bytes |
//! | [`Sink`] | TCP, SCTP | receives everything, verifies it, and counts bytes over time |
//! | [`WebClients`] | TCP, SCTP | request files, one connection each |
//! | [`WebServer`] | TCP, SCTP | sends these files |
//! | [`ThinSender`] | TCP, SCTP, UDP | sends the messages of a [`ThinPlan`] at their times |
//! | [`ThinReceiver`] | TCP, SCTP, UDP | measures the latency of each of them |
//!
//! A program implements [`Program`] for any [`Transport`]. A [`Network`] runs [`Host`]s, each with
//! any program and transport.
//!
//! ```
//! use rexmit_core::{Instant, Seed};
//! use rexmit_lab::hosts::{Bulk, BulkSender, Host, Sink, set_ip_protocols};
//! use rexmit_netsim::network::{Network, PointToPoint};
//! use rexmit_tcp::Endpoint as Tcp;
//! use std::net::SocketAddr;
//! use std::time::Duration;
//!
//! let seed = Seed::from_u64(1);
//! let endpoint = |name: &str| Tcp::new(Default::default(), &seed.split(name));
//! let [from, to] = PointToPoint::ADDRESSES;
//! let bulk = Bulk {
//!     limit_bytes: Some(100_000),
//!     ..Bulk::new(SocketAddr::new(from, 0), SocketAddr::new(to, 9))
//! };
//! let mut server = endpoint("server")?;
//! server.listen(9, None)?;
//! let machines = [
//!     Host::new(endpoint("client")?, BulkSender::new(bulk)),
//!     Host::new(server, Sink::new(Duration::from_secs(1))),
//! ];
//! let mut network = Network::new(&seed);
//! let pair = PointToPoint::build(&mut network, machines, &"delay 50ms rate 10mbit".parse()?)?;
//! set_ip_protocols(&mut network, pair.hosts);
//! network.run_until(Instant::from_millis(5000), |_, _| {})?;
//! let sink = network.machine(pair.hosts[1]).program::<Sink<Tcp>>().expect("it runs there");
//! assert_eq!(sink.goodput().total_bytes(), 100_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod beside;
mod bulk;
mod content;
mod datagrams;
mod goodput;
mod kernel;
mod running;
mod sctp;
mod sink;
mod tcp;
mod thin;
mod transport;
mod web_client;
mod web_server;

use std::any::Any;
use std::convert::Infallible;
use std::fmt;

use rexmit_core::{Ecn, Instant, Machine, Route};
use rexmit_netsim::network::{HostId, Network};
use rexmit_netsim::source::{Source, UdpSender, UdpSink};

pub use beside::WithTransfer;
pub use bulk::{Bulk, BulkSender};
pub use datagrams::Datagrams;
pub use goodput::Goodput;
pub use kernel::{KernelMachine, Protocol, Sctp as KernelSctp, Tcp as KernelTcp};
pub use running::{Program, Running};
pub use sctp::{FragmentWatch, Unordered};
pub use sink::{Counter, Sink};
pub use tcp::SegmentWatch;
pub use thin::{
    Gauge, Layer, PlannedMessage, Thin, ThinPlan, ThinReceiver, ThinRecord, ThinSender,
};
pub use transport::{Arrival, ConnectionEvent, ReadResult, Transport, Watch, WriteResult};
pub use web_client::{Fetch, WebClients, WebLoad, WebStats};
pub use web_server::WebServer;

/// UDP's IP protocol number.
pub(crate) const UDP: u8 = 17;

/// A machine that can be part of a [`Host`].
pub trait Station: Machine<Event = Infallible> + Send {
    /// The value returned by [`Host::program`].
    fn program(&self) -> &dyn Any;

    /// The value returned by [`Host::transport`]; `None` if the machine is its own transport.
    fn transport(&self) -> Option<&dyn Any> {
        None
    }

    /// The IP protocol of its packets, for captures.
    fn ip_protocol(&self) -> u8;
}

/// The UDP port of SCTP in UDP, at both ends (RFC 6951 §5.1).
const UDP_PORT: u16 = 9899;

/// A host with any program and transport.
pub struct Host {
    station: Box<dyn Station>,
    is_over_udp: bool,
}

impl Host {
    /// A host on which `program` uses `transport`.
    #[must_use]
    pub fn new<T: Transport, P: Program<T>>(transport: T, program: P) -> Self {
        Self::of(Running::new(transport, program))
    }

    /// A host that consists of one machine.
    #[must_use]
    pub fn of(station: impl Station + 'static) -> Self {
        Self { station: Box::new(station), is_over_udp: false }
    }

    /// The host with its packets encapsulated in UDP (RFC 6951). The machine still uses routes
    /// without ports, and its peer must be such a host, too.
    #[must_use]
    pub fn over_udp(self) -> Self {
        Self { is_over_udp: true, ..self }
    }

    /// The program, or the machine passed to [`Host::of`], if its type is `P`.
    #[must_use]
    pub fn program<P: Any>(&self) -> Option<&P> {
        self.station.program().downcast_ref()
    }

    /// The transport, if its type is `T`.
    #[must_use]
    pub fn transport<T: Any>(&self) -> Option<&T> {
        self.station.transport()?.downcast_ref()
    }

    /// The IP protocol of its packets.
    #[must_use]
    pub fn ip_protocol(&self) -> u8 {
        if self.is_over_udp { UDP } else { self.station.ip_protocol() }
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("ip_protocol", &self.ip_protocol()).finish_non_exhaustive()
    }
}

impl Machine for Host {
    type Event = Infallible;

    fn handle_input(&mut self, now: Instant, route: Route, packet: &[u8]) {
        self.handle_input_with_ecn(now, route, Ecn::NotEct, packet);
    }

    fn handle_input_with_ecn(&mut self, now: Instant, route: Route, ecn: Ecn, packet: &[u8]) {
        let route = if self.is_over_udp { with_port(route, 0) } else { route };
        self.station.handle_input_with_ecn(now, route, ecn, packet);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.station.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, packet: &mut Vec<u8>) -> Option<Route> {
        let route = self.station.poll_transmit(now, packet)?;
        Some(if self.is_over_udp { with_port(route, UDP_PORT) } else { route })
    }

    fn transmit_ecn(&self) -> Ecn {
        self.station.transmit_ecn()
    }

    fn poll_event(&mut self) -> Option<Infallible> {
        self.station.poll_event()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.station.poll_timeout()
    }
}

/// `route` with this port at both ends.
fn with_port(Route { mut local, mut remote }: Route, port: u16) -> Route {
    local.set_port(port);
    remote.set_port(port);
    Route { local, remote }
}

impl<S: Source + Send + 'static> Station for UdpSender<S> {
    fn program(&self) -> &dyn Any {
        self
    }

    fn ip_protocol(&self) -> u8 {
        UDP
    }
}

impl Station for UdpSink {
    fn program(&self) -> &dyn Any {
        self
    }

    fn ip_protocol(&self) -> u8 {
        UDP
    }
}

/// Sets the IP protocols of `hosts` for captures.
pub fn set_ip_protocols(network: &mut Network<Host>, hosts: impl IntoIterator<Item = HostId>) {
    for host in hosts {
        let protocol = network.machine(host).ip_protocol();
        network.set_ip_protocol(host, protocol);
    }
}
