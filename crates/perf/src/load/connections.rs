//! Set-up and shutdown of the associations of a load.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rexmit::clock::{now, sleep_until};
use rexmit::{
    Association, AssociationConfig, AssociationStatistics, CloseReason, ConnectError, Encryption,
    Endpoint, EndpointConfig, Event, TimeLimits,
};
use rexmit_core::Seed;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::task::JoinSet;

use super::LoadError;

/// Associations set up concurrently.
const SETUPS_AT_A_TIME: u32 = 32;
/// The first of the dynamic ports, from which local SCTP ports are drawn (RFC 6335 §6).
const FIRST_PORT: u16 = 49_152;
const PORTS: u16 = u16::MAX - FIRST_PORT;

/// Address and protocol settings of the receiver.
#[derive(Clone, Debug)]
pub struct Target {
    /// The receiver: its address, and its UDP port unless [`raw`](Self::raw).
    pub remote: SocketAddr,
    /// Further receivers, at these addresses with the same UDP port. Connections to different receivers share an
    /// endpoint.
    pub more_receivers: Vec<IpAddr>,
    /// Further addresses of the receiver, with the same UDP port.
    pub more_remotes: Vec<IpAddr>,
    /// Local addresses, if there are several.
    pub locals: Vec<IpAddr>,
    /// The receiver's SCTP port.
    pub sctp_port: u16,
    /// Whether SCTP is sent directly over IP instead of UDP.
    pub raw: bool,
    /// The encryption of associations; `None` if they are not encrypted.
    pub encryption: Option<Encryption>,
    /// Configuration of the associations.
    pub association: Arc<AssociationConfig>,
    /// Time limit for setting up an association.
    pub setup_timeout: Duration,
}

/// Endpoints whose associations have ended. They still answer a peer that missed the last packet of
/// the shutdown; dropping this value closes them.
#[derive(Debug)]
pub struct Lingering(Vec<Endpoint>);

/// How a connection ended.
#[derive(Debug)]
pub(super) struct Ended {
    /// The counters when everything was acknowledged, or the last ones read before the association
    /// failed.
    pub(super) statistics: AssociationStatistics,
    reason: CloseReason,
    /// Messages that were accepted but not, or possibly not, delivered.
    pub(super) failed: u64,
}

impl Target {
    /// Sets up one association, on an endpoint of its own.
    ///
    /// # Errors
    /// As [`Endpoint::bind_unencrypted`] and [`Endpoint::connect`], and if the peer does not answer within the
    /// time limit.
    pub async fn connect(&self) -> Result<(Association, Endpoint), LoadError> {
        let endpoint = self.bind(draw_port())?;
        Ok((self.connect_over(&endpoint, self.remote.ip()).await?, endpoint))
    }

    /// Sets up `count` associations. One that cannot be set up ends no other; if none can, the first error is returned.
    ///
    /// Two associations with the same peer need different ports (RFC 9260 §1.3), so that an endpoint has one association
    /// with each receiver.
    pub(super) async fn connect_all(&self, count: u32) -> Result<SetUp, LoadError> {
        raise_descriptor_limit();
        let first = draw_port();
        let receivers: Vec<_> =
            std::iter::once(self.remote.ip()).chain(self.more_receivers.iter().copied()).collect();
        let mut set_up = SetUp::default();
        let mut setups = JoinSet::new();
        for number in 0..count {
            if setups.len() as u32 >= SETUPS_AT_A_TIME {
                set_up.collect(&mut setups).await?;
            }
            let place = number as usize % receivers.len();
            if place == 0 {
                let endpoints = set_up.endpoints.len() as u32;
                let offset = (u32::from(first - FIRST_PORT) + endpoints) % u32::from(PORTS);
                set_up.endpoints.push(self.bind(FIRST_PORT + offset as u16)?);
            }
            let endpoint = set_up.endpoints.last().cloned().expect("one was just bound");
            let (target, receiver) = (self.clone(), receivers[place]);
            setups.spawn(async move { target.connect_over(&endpoint, receiver).await });
        }
        while !setups.is_empty() {
            set_up.collect(&mut setups).await?;
        }
        match set_up.failed.first.take() {
            Some(error) if set_up.connections.is_empty() => Err(error.into()),
            _ => Ok(set_up),
        }
    }

    /// An endpoint for one association with each receiver.
    fn bind(&self, port: u16) -> Result<Endpoint, LoadError> {
        let config = EndpointConfig::default()
            .port(port)
            .association(Arc::clone(&self.association))
            .addresses(self.locals.clone());
        let any = self.unspecified();
        let endpoint = if self.raw {
            Endpoint::bind_raw(any, config)?
        } else if let Some(encryption) = self.encryption.clone() {
            Endpoint::bind((any, 0).into(), config, encryption)?
        } else {
            Endpoint::bind_unencrypted((any, 0).into(), config)?
        };
        // Shutdown waits without limit until all sent messages are delivered.
        let limits = TimeLimits::default().connect(Some(self.setup_timeout)).shutdown(None);
        Ok(endpoint.with_time_limits(limits))
    }

    async fn connect_over(
        &self,
        endpoint: &Endpoint,
        receiver: IpAddr,
    ) -> Result<Association, ConnectError> {
        let ips = std::iter::once(receiver).chain(self.more_remotes.iter().copied());
        let remotes: Vec<_> = ips.map(|ip| SocketAddr::new(ip, self.remote.port())).collect();
        let config = Arc::clone(&self.association);
        endpoint.connect_over(&remotes, self.sctp_port, config).await
    }

    /// The unspecified address of the receivers' family; the IPv6 one also serves IPv4.
    fn unspecified(&self) -> IpAddr {
        if self.remote.is_ipv4() && self.more_remotes.iter().all(IpAddr::is_ipv4) {
            IpAddr::from([0; 4])
        } else {
            IpAddr::from([0; 16])
        }
    }
}

/// A random local SCTP port. A fixed port would not work, because the receiver may still have state for a port that was
/// used just before.
fn draw_port() -> u16 {
    FIRST_PORT + Seed::from_u64(now().as_nanos()).rng().below(PORTS.into()) as u16
}

/// Raises the limit on open files to the maximum that the system allows: each connection has a
/// socket and a timer.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    // If this fails, connections beyond the limit report an error.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// Associations that were set up.
#[derive(Debug, Default)]
pub(super) struct SetUp {
    pub(super) connections: Vec<Association>,
    /// The endpoints of these associations.
    pub(super) endpoints: Vec<Endpoint>,
    pub(super) failed: Failed,
}

/// Associations that could not be set up.
#[derive(Debug, Default)]
pub(super) struct Failed {
    pub(super) count: u32,
    first: Option<ConnectError>,
}

impl SetUp {
    /// Waits for one more.
    async fn collect(
        &mut self,
        setups: &mut JoinSet<Result<Association, ConnectError>>,
    ) -> Result<(), LoadError> {
        let Some(setup) = setups.join_next().await else { return Ok(()) };
        match setup.map_err(std::io::Error::other)? {
            Ok(association) => self.connections.push(association),
            Err(error) => {
                self.failed.count += 1;
                self.failed.first.get_or_insert(error);
            }
        }
        Ok(())
    }
}

impl Ended {
    /// Shuts `association` down gracefully: waits until everything is acknowledged.
    pub(super) async fn by_shutdown(association: Association) -> Self {
        let reason = association.shutdown().await;
        let statistics = association.statistics();
        let mut failed = 0;
        while let Some(event) = association.try_event() {
            failed += match event {
                Event::MessageFailed { .. } => 1,
                Event::EventsDropped(missed) => missed.messages_failed,
                _ => 0,
            };
        }
        Self { statistics, reason, failed }
    }

    /// Whether all messages were delivered, according to the acknowledgements.
    pub(super) fn is_graceful(&self) -> bool {
        self.reason == CloseReason::Shutdown
    }
}

impl Lingering {
    pub(super) const fn new(endpoints: Vec<Endpoint>) -> Self {
        Self(endpoints)
    }

    /// Keeps the endpoints open for `duration`.
    pub async fn linger(self, duration: Duration) {
        sleep_until(now() + duration).await;
        drop(self.0);
    }
}
