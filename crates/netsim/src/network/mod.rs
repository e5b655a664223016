//! The simulator: hosts that run machines, routers, links, and a clock that jumps from event to
//! event.
//!
//! Each direction of a link is a [`PathModel`]. A host runs one [`Machine`] and has one or several
//! IP addresses, each on one of its links; a packet is sent over the link of its local address.
//! Idle hosts are not polled, so an idle network of any size costs no processor time. A run is a
//! function of the machines, the calls and the seed.
//!
//! A packet keeps the ECN field that its machine gave it ([`Machine::transmit_ecn`]), unless a link marks it, and the
//! receiving machine is told the field ([`Machine::handle_input_with_ecn`]).
//!
//! Sizes on links are those of IP packets: 20 bytes (IPv4) or 40 bytes (IPv6) more than the
//! machine's packet, and 8 more if the route has ports and the packet is therefore encapsulated in
//! UDP (RFC 6951). Corruption flips a bit of the machine's packet, not of these headers.

mod agenda;
mod app;
mod build;
mod calls;
mod captures;
mod counts;
mod crossing;
mod deadlines;
mod dual_dumbbell;
mod event;
mod forward;
mod graph;
mod ids;
mod items;
mod link;
mod observer;
mod packets;
mod partition;
mod parts;
mod routing;
mod run;
mod stats;
mod tap;
mod threads;
mod topology;

use std::net::IpAddr;
use std::sync::Arc;

use rexmit_core::{Instant, Machine, Seed};

use self::agenda::Agenda;
use self::calls::CallStore;
use self::crossing::Others;
use self::event::Event;
use self::graph::Graph;
use self::items::Items;
use self::link::{LinkEntry, LinkExit};
use self::observer::Observers;
use self::packets::PacketStore;
use self::routing::{Attachment, Way};
use self::tap::Taps;
#[cfg(doc)]
use crate::path::PathModel;

pub use app::{Context, Occurrence};
pub use build::BuildError;
pub use dual_dumbbell::{DualDumbbell, DumbbellPaths};
pub use ids::{Direction, HostId, LinkId, NodeId, PacketId, RouterId};
pub use observer::{DropCause, ObservedPacket, PacketObserver, PacketStep};
pub use run::Livelock;
pub use stats::{HostStats, LinkStats, NetworkStats};
pub use tap::{SharedBuffer, TapId, TapPoint};
pub use topology::{Dumbbell, PointToPoint};

/// A network in virtual time whose hosts run machines of type `M`.
///
/// For several kinds of machines in one network, `M` is an enum that implements [`Machine`], or a
/// `Box<dyn Machine<Event = E>>`.
///
/// ```
/// use rexmit_core::{Instant, Machine, Route, Seed};
/// use rexmit_netsim::network::{Network, Occurrence, PointToPoint};
/// use rexmit_netsim::path::{Delay, PathConfig};
/// use std::time::Duration;
///
/// /// Sends one packet if it was given one, and says what it receives.
/// struct Greeter(Option<Route>, Option<Vec<u8>>);
/// impl Machine for Greeter {
///     type Event = Vec<u8>;
///     fn handle_input(&mut self, _: Instant, _: Route, packet: &[u8]) {
///         self.1 = Some(packet.to_vec());
///     }
///     fn handle_timeout(&mut self, _: Instant) {}
///     fn poll_transmit(&mut self, _: Instant, packet: &mut Vec<u8>) -> Option<Route> {
///         packet.extend_from_slice(b"hello");
///         self.0.take()
///     }
///     fn poll_event(&mut self) -> Option<Vec<u8>> {
///         self.1.take()
///     }
///     fn poll_timeout(&self) -> Option<Instant> {
///         None
///     }
/// }
///
/// let path = PathConfig {
///     delay: Delay::constant(Duration::from_millis(50)),
///     ..PathConfig::default()
/// };
/// let route = PointToPoint::route();
/// let mut network = Network::new(&Seed::from_u64(1));
/// PointToPoint::build(&mut network, [Greeter(Some(route), None), Greeter(None, None)], &path)?;
/// let mut heard = Vec::new();
/// network.run_until(Instant::from_millis(1000), |context, occurrence| {
///     heard.push((context.now(), occurrence));
/// })?;
/// let hello = Occurrence::Event(b"hello".to_vec());
/// assert_eq!(heard, [(Instant::from_millis(50), hello)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Network<M: Machine> {
    now: Instant,
    seed: Seed,
    graph: Arc<Graph>,
    hosts: Items<Host<M>>,
    entries: Items<LinkEntry>,
    exits: Items<LinkExit>,
    agenda: Agenda<Event>,
    calls: CallStore<M>,
    packets: PacketStore,
    /// Hosts whose machine was called from outside, and must be polled.
    touched: Vec<HostId>,
    /// The other parts, while this is one that runs on a thread of its own.
    others: Option<Others>,
    taps: Taps,
    observers: Observers,
    run: RunState,
    stats: NetworkStats,
}

/// The conditions that end a run early.
struct RunState {
    /// Calls of one host at one instant after which a livelock is reported.
    step_limit: u32,
    /// Whether the application has stopped the run.
    is_stopped: bool,
}

struct Host<M> {
    node: NodeId,
    machine: M,
    attachments: Vec<Attachment>,
    /// The route of the last packet sent, cached because most packets have the same route as the previous one.
    last_way: Option<Way>,
    taps: Vec<tap::Interface>,
    /// The IP protocol of its packets without ports.
    ip_protocol: u8,
    /// The instant of the latest call of the machine or application, and the number of calls at
    /// that instant.
    steps: (Instant, u32),
    stats: HostStats,
}

impl<M: Machine> Host<M> {
    fn has_address(&self, address: IpAddr) -> bool {
        self.attachments.iter().any(|attachment| attachment.address == address)
    }
}
