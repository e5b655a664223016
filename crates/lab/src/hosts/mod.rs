//! Hosts of a simulated network: a transport and a program that uses it, together one machine.
//!
//! | program | over | what it does |
//! |---|---|---|
//! | [`BulkSender`] | TCP, SCTP | sends as fast as it may, for a time or some bytes |
//! | [`Sink`] | TCP, SCTP | reads everything, checks it, and counts bytes over time |
//! | [`WebClients`] | TCP, SCTP | ask for files, one connection each |
//! | [`WebServer`] | TCP, SCTP | answers them |
//! | [`ThinSender`] | TCP, SCTP, UDP | sends the messages of a [`ThinPlan`] at their times |
//! | [`ThinReceiver`] | TCP, SCTP, UDP | measures how long each of them took |
//!
//! A program is written once for all transports, as a [`Program`] over a [`Transport`]; an own one
//! is an implementation of it. [`Host`] is what a [`Network`] runs: any of them, side by side.
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

mod bulk;
mod content;
mod datagrams;
mod goodput;
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

use rexmit_core::{Instant, Machine, Route};
use rexmit_netsim::network::{HostId, Network};
use rexmit_netsim::source::{Source, UdpSender, UdpSink};

pub use bulk::{Bulk, BulkSender};
pub use datagrams::Datagrams;
pub use goodput::Goodput;
pub use running::{Program, Running};
pub use sctp::{FragmentWatch, Unordered};
pub use sink::{Counter, Sink};
pub use tcp::SegmentWatch;
pub use thin::{
    Gauge, Layer, PlannedMessage, Thin, ThinPlan, ThinReceiver, ThinRecord, ThinSender,
};
pub use transport::{Arrival, Given, News, Taken, Transport, Watch};
pub use web_client::{Fetch, WebClients, WebLoad, WebStats};
pub use web_server::WebServer;

/// UDP's IP protocol number.
pub(crate) const UDP: u8 = 17;

/// A machine that can be a [`Host`].
pub trait Station: Machine<Event = Infallible> + Send {
    /// What [`Host::program`] returns.
    fn program(&self) -> &dyn Any;

    /// What [`Host::transport`] returns; nothing if the machine is its own transport.
    fn transport(&self) -> Option<&dyn Any> {
        None
    }

    /// The IP protocol of its packets, for captures.
    fn ip_protocol(&self) -> u8;
}

/// One host, whatever runs on it.
pub struct Host(Box<dyn Station>);

impl Host {
    /// A host on which `program` uses `transport`.
    #[must_use]
    pub fn new<T: Transport, P: Program<T>>(transport: T, program: P) -> Self {
        Self::of(Running::new(transport, program))
    }

    /// A host that is this machine.
    #[must_use]
    pub fn of(station: impl Station + 'static) -> Self {
        Self(Box::new(station))
    }

    /// The program, or the machine given to [`Host::of`], if it is a `P`.
    #[must_use]
    pub fn program<P: Any>(&self) -> Option<&P> {
        self.0.program().downcast_ref()
    }

    /// What the program uses, if it is a `T`.
    #[must_use]
    pub fn transport<T: Any>(&self) -> Option<&T> {
        self.0.transport()?.downcast_ref()
    }

    /// The IP protocol of its packets.
    #[must_use]
    pub fn ip_protocol(&self) -> u8 {
        self.0.ip_protocol()
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
        self.0.handle_input(now, route, packet);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.0.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, packet: &mut Vec<u8>) -> Option<Route> {
        self.0.poll_transmit(now, packet)
    }

    fn poll_event(&mut self) -> Option<Infallible> {
        self.0.poll_event()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.0.poll_timeout()
    }
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

/// Lets captures show the packets of `hosts` as what they are.
pub fn set_ip_protocols(network: &mut Network<Host>, hosts: impl IntoIterator<Item = HostId>) {
    for host in hosts {
        let protocol = network.machine(host).ip_protocol();
        network.set_ip_protocol(host, protocol);
    }
}
