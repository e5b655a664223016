//! Associations between sockets on the loopback.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use rexmit::emulator::{Emulator, EmulatorConfig};
use rexmit::{
    Association, AssociationConfig, Endpoint, EndpointConfig, OutboundMessage, TimeLimits,
};
use rexmit_core::trace::TraceSink;
use rexmit_lab::connections::{Connections, MAX_MESSAGES, Measured};
use rexmit_sctp::recovery::RecoveryStatistics;
use tokio::task::JoinSet;

use super::arrivals::Arrivals;
use super::ended::Ended;
use super::sender::{Course, Sender, times};
use crate::realtime::error::RealtimeError;
use crate::realtime::lane::FIRST_CLIENT_PORT;

const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// All messages go over this stream.
const STREAM: u16 = 0;

/// Bits of the payload protocol identifier that hold the message's number; those above hold the
/// connection's number.
const NUMBER_BITS: u32 = 20;

const _: () = assert!(MAX_MESSAGES == 1 << NUMBER_BITS);

/// The receivers' endpoint and the link to it.
pub(super) struct Link {
    receivers: Endpoint,
    emulator: Emulator,
    sender: Arc<AssociationConfig>,
}

impl Link {
    pub(super) fn new(
        connections: &Connections,
        sender: &AssociationConfig,
        receiver: AssociationConfig,
    ) -> Result<Self, RealtimeError> {
        let config = EndpointConfig::default().accept(true).association(Arc::new(receiver));
        let receivers = Endpoint::bind_unencrypted(LOOPBACK, config)?;
        let emulator = Emulator::start(
            &EmulatorConfig::new(LOOPBACK, receivers.local_addr())
                .forward(connections.forward.clone())
                .backward(connections.backward.clone())
                .seed(connections.seed.clone()),
        )?;
        Ok(Self { receivers, emulator, sender: Arc::new(sender.clone()) })
    }

    /// The endpoint of sender `n`. Behind the emulator all senders have one address, so their SCTP
    /// ports distinguish them.
    fn sender(&self, n: u16, trace: Box<dyn TraceSink>) -> Result<Endpoint, RealtimeError> {
        let config = EndpointConfig::default()
            .port(FIRST_CLIENT_PORT + n)
            .association(Arc::clone(&self.sender));
        let endpoint =
            Endpoint::bind_unencrypted(LOOPBACK, config)?.with_time_limits(TimeLimits::NONE);
        endpoint.set_trace(Some(trace));
        Ok(endpoint)
    }
}

/// Runs all associations.
pub(super) async fn run(
    connections: &Connections,
    link: Link,
    unordered: bool,
    mut trace: impl FnMut() -> Box<dyn TraceSink>,
) -> Result<Measured, RealtimeError> {
    let arrivals = Arrivals::of(connections, unordered);
    let times = times(connections);
    let mut flows = JoinSet::new();
    for (n, planned) in (0..).zip(&connections.flows) {
        let endpoint = link.sender(n, trace())?;
        let (remote, port) = (link.emulator.local_addr(), link.receivers.port());
        let index = usize::from(n);
        let course = Course { index, planned: planned.clone(), arrivals: arrivals.clone(), times };
        flows.spawn(course.run(async move {
            let association = endpoint.connect(remote, port).await.ok()?;
            Some(Outgoing { association, connection: n.into(), unordered, _endpoint: endpoint })
        }));
    }
    let receivers = link.receivers;
    let ended = tokio::select! {
        ended = Ended::wait(flows) => ended?,
        () = accept(&receivers, &arrivals) => unreachable!("the endpoint accepts until the end"),
    };
    ended.measured(times.0, &arrivals, link.emulator.stop()?)
}

/// Receives on every association that is accepted.
async fn accept(receivers: &Endpoint, arrivals: &Arrivals) {
    let mut receiving = JoinSet::new();
    while let Some(association) = receivers.accept().await {
        let arrivals = arrivals.clone();
        receiving.spawn(async move {
            while let Some(message) = association.recv().await {
                let (connection, number) =
                    (message.ppid >> NUMBER_BITS, message.ppid % (1 << NUMBER_BITS));
                arrivals.on_arrival(connection as usize, number, &message.payload);
            }
        });
    }
}

/// The sending end of an association.
struct Outgoing {
    association: Association,
    connection: u32,
    unordered: bool,
    _endpoint: Endpoint,
}

impl Sender for Outgoing {
    async fn send(&mut self, number: u32, message: Vec<u8>) -> bool {
        let message = OutboundMessage::new(STREAM, message)
            .ppid(self.connection << NUMBER_BITS | number)
            .unordered(self.unordered);
        self.association.send(message).await.is_ok()
    }

    fn is_closed(&self) -> bool {
        self.association.close_reason().is_some()
    }

    fn recovery(&self) -> RecoveryStatistics {
        self.association.statistics().recovery
    }
}
