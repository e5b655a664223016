//! Endpoints: a socket, and the associations that are served on it.
//!
//! # Threads and locks
//!
//! One lock per endpoint protects the protocol (which does no I/O), the packets to be sent, the timer, and
//! the lists of waiting tasks. All work is done in turns under this lock, and each turn ends by sending the
//! packets that have become due. Two kinds of callers take turns:
//!
//! - **Handles**, in the tasks of the application: if congestion and flow control allow, the system has the
//!   packet when `send` returns, without a switch to another task. Only messages of a busy sender (more than
//!   16 in a row, and more than 20,000 a second) are left to the driver, which sends several at a time.
//! - **The driver**, one task per endpoint: it waits for packets, for the timer and for a full socket to
//!   drain, and passes received packets to the protocol.
//!
//! System calls that receive are made outside the lock, those that send under it, since order matters there.
//! Tasks are woken up after the lock is released. Each turn sends and receives a bounded number of packets
//! before the next. No lock is held across an `await`.
//!
//! One endpoint uses one core. A server with more work than that binds several endpoints.

#[cfg(feature = "dtls")]
mod encrypted;
mod entry;
#[cfg(all(feature = "netlink", target_os = "linux"))]
mod following;
#[cfg(feature = "dtls")]
mod handshakes;
mod lifecycle;
mod listen;
mod protocol;
mod refusals;
mod state;
mod statistics;
mod wakes;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use rexmit_core::Seed;
use rexmit_core::trace::TraceSink;
use rexmit_sctp::{self as sctp, AssociationConfig, CloseReason, ConfigError, EndpointConfig};

use crate::association::{Association, Cell, Handle};
use crate::clock::{self, Alarm};
use crate::limits::{SHUTDOWN_TOO_LONG, TimeLimits, while_it_falls, within};
use crate::log;
use crate::socket::{Inbox, Socket, is_foreign};
use crate::turns::Driver;
use crate::{BindError, ConnectError};
pub(crate) use entry::{Established, Recipients};
use protocol::Protocol;
use refusals::{Watch, first_of};
use state::State;
pub(crate) use state::{Received, Shared};
pub use statistics::{ACCEPT_BACKLOG, EndpointStatistics};

/// The UDP port of SCTP encapsulated in UDP (RFC 6951 §5.1).
pub const ENCAPSULATION_PORT: u16 = 9899;

/// A socket with the associations that are served on it.
///
/// Clones are handles of the same endpoint. When the last one is dropped, the endpoint accepts no more
/// associations, continues to serve existing ones, and closes its socket when the last of them has ended.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// use rexmit::{Endpoint, EndpointConfig};
///
/// let config = EndpointConfig::default().accept(true);
/// let server = Endpoint::bind_unencrypted("127.0.0.1:0".parse()?, config)?;
/// let client = Endpoint::bind_unencrypted("127.0.0.1:0".parse()?, EndpointConfig::default())?;
///
/// let (ours, theirs) = tokio::join!(client.connect(server.local_addr(), 5000), server.accept());
/// let (ours, theirs) = (ours?, theirs.ok_or("the server was shut down")?);
/// ours.stream(0).send("hello").await?;
/// assert_eq!(theirs.recv().await.ok_or("the association has ended")?.payload, "hello");
/// ours.shutdown().await;
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
pub struct Endpoint {
    shared: Arc<Shared>,
    port: u16,
    is_raw: bool,
    /// The number of configured addresses.
    told_addresses: usize,
    association: Arc<AssociationConfig>,
}

impl Endpoint {
    /// An endpoint whose associations are not encrypted: a host on the path can read, change and end them.
    /// It encapsulates SCTP in UDP (RFC 6951) on `address`, whose port is
    /// [`ENCAPSULATION_PORT`] by convention, or 0 for any.
    ///
    /// With SCTP port 0 in `config` one is chosen from the dynamic range (RFC 6335 §6). Clients may all have
    /// the same SCTP port, also behind one NAT: a server distinguishes them by their UDP ports, too.
    ///
    /// To reach other machines, bind to a wildcard address, `0.0.0.0:0` or `[::]:0`: a socket on `127.0.0.1` reaches
    /// this machine only.
    ///
    /// A wildcard address serves all addresses of the machine; the one of IPv6 serves IPv4 too. Several
    /// [`addresses`](EndpointConfig::addresses) require a wildcard address, because one socket sends from all
    /// of them.
    ///
    /// # Errors
    /// If the address cannot be bound, or the configuration is invalid.
    ///
    /// # Panics
    /// Outside a tokio runtime with its I/O driver enabled.
    pub fn bind_unencrypted(
        address: SocketAddr,
        mut config: EndpointConfig,
    ) -> Result<Self, BindError> {
        prepare(&mut config, address.ip())?;
        let socket = Socket::bind_udp(address).map_err(|error| BindError::new(address, error))?;
        Self::with_socket(socket, config, unencrypted)
            .map_err(|error| BindError::new(address, error))
    }

    /// An endpoint that speaks SCTP directly over IP (protocol 132) on `address`, not encrypted.
    ///
    /// This needs `CAP_NET_RAW`. While the endpoint exists, the kernel answers no packet to `address` with
    /// "protocol unreachable". Several endpoints can share an address if their SCTP ports differ; the system
    /// does not detect a conflict.
    ///
    /// # Errors
    /// As [`bind_unencrypted`](Self::bind_unencrypted), or if raw sockets are not permitted, or the kernel's
    /// own SCTP is loaded, which would abort our associations.
    ///
    /// # Panics
    /// Outside a tokio runtime with its I/O driver enabled.
    #[cfg(all(feature = "raw", target_os = "linux"))]
    pub fn bind_raw(address: IpAddr, mut config: EndpointConfig) -> Result<Self, BindError> {
        prepare(&mut config, address)?;
        if std::path::Path::new("/proc/net/sctp").exists() {
            return Err(BindError::KernelSctp { address });
        }
        let refused = |error| BindError::raw(address, error);
        let socket = Socket::bind_raw(address, config.port).map_err(refused)?;
        Self::with_socket(socket, config, unencrypted).map_err(refused)
    }

    fn with_socket(
        socket: Socket,
        config: EndpointConfig,
        protocol: impl FnOnce(EndpointConfig, &Seed) -> Result<Protocol, ConfigError>,
    ) -> std::io::Result<Self> {
        let mut entropy = [0; 32];
        getrandom::fill(&mut entropy)?;
        let (accepts, port, told_addresses) = (config.accept, config.port, config.addresses.len());
        let association = Arc::clone(&config.association);
        let mut sctp =
            protocol(config, &Seed::from_bytes(entropy)).map_err(std::io::Error::other)?;
        sctp.set_trace(log::sink(None));
        let is_raw = socket.is_raw();
        let mut state = State::new(sctp, accepts, socket, Alarm::new()?);
        state.want_sizes(&association);
        let shared = Arc::new(Shared::new(state));
        tokio::spawn(Driver::new(Arc::clone(&shared), Inbox::default()).run());
        Ok(Self { shared, port, is_raw, told_addresses, association })
    }

    /// Sets how long calls of this endpoint and of its associations wait for a peer. Applies to all its
    /// handles.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// use rexmit::{Endpoint, EndpointConfig, TimeLimits};
    /// use std::time::Duration;
    ///
    /// let limits = TimeLimits::default().shutdown(Some(Duration::from_secs(60)));
    /// let endpoint = Endpoint::bind_unencrypted("127.0.0.1:0".parse()?, EndpointConfig::default())?
    ///     .with_time_limits(limits);
    /// assert_eq!(endpoint.time_limits().connect, Some(Duration::from_secs(10)));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn with_time_limits(self, limits: TimeLimits) -> Self {
        self.shared.lock().time_limits = limits;
        self
    }

    /// The time limits of calls that wait for a peer.
    #[must_use]
    pub fn time_limits(&self) -> TimeLimits {
        self.shared.lock().time_limits
    }

    /// The address and UDP port that the endpoint is bound to; port 0 for SCTP directly over IP.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.shared.lock().local_addr
    }

    /// Replaces the UDP socket by one bound to `address`, after the host has changed its network. Each
    /// association reports the new address to its peer (RFC 5061) and continues from there. If a peer does
    /// not support that, its associations continue if the peer accepts packets from the new address. A
    /// wildcard address lets the system choose.
    ///
    /// # Errors
    /// If the address cannot be bound, or the endpoint has several addresses, or uses SCTP directly over IP.
    pub fn rebind(&self, address: SocketAddr) -> Result<(), BindError> {
        let refused = |error| BindError::new(address, error);
        if self.is_raw || self.told_addresses > 1 {
            return Err(refused(std::io::ErrorKind::Unsupported.into()));
        }
        let socket = Socket::bind_udp(address).map_err(refused)?;
        let is_told = self.told_addresses > 0;
        self.shared.with(|state, now| state.rebind(now, socket, is_told));
        Ok(())
    }

    /// The local SCTP port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Begins an association with SCTP port `port` of the endpoint at `remote`, and waits until it
    /// is established.
    ///
    /// The time limit is [`TimeLimits::connect`], 10 s by default. Dropping the future cancels the attempt.
    ///
    /// # Errors
    /// If the peer does not answer or refuses, or the endpoint has been shut down.
    pub async fn connect(
        &self,
        remote: SocketAddr,
        port: u16,
    ) -> Result<Association, ConnectError> {
        self.connect_with(remote, port, Arc::clone(&self.association)).await
    }

    /// As [`connect`](Self::connect), with the configuration `config` for this association.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub async fn connect_with(
        &self,
        remote: SocketAddr,
        port: u16,
        config: Arc<AssociationConfig>,
    ) -> Result<Association, ConnectError> {
        self.connect_over(&[remote], port, config).await
    }

    /// As [`connect_with`](Self::connect_with), with several known addresses of the peer: INIT is sent to the
    /// first, and to the others while it does not answer. The peer may report further addresses.
    ///
    /// # Errors
    /// As [`connect`](Self::connect), or if there are no addresses or more than
    /// [`MAX_ADDRESSES`](sctp::MAX_ADDRESSES).
    pub async fn connect_over(
        &self,
        remotes: &[SocketAddr],
        port: u16,
        config: Arc<AssociationConfig>,
    ) -> Result<Association, ConnectError> {
        let mut remotes = remotes.to_vec();
        if self.is_raw {
            remotes.iter_mut().for_each(|remote| remote.set_port(0)); // There is no UDP.
        }
        // One of several addresses may refuse while the others do not.
        let &[remote] = &remotes[..] else { return self.set_up(remotes, port, config).await };
        if self.is_raw {
            return self.set_up(remotes, port, config).await;
        }
        let watch = Watch::new(&self.shared, remote);
        let established = first_of(self.set_up(remotes, port, config), watch.refused()).await;
        established.unwrap_or(Err(ConnectError::PortUnreachable { remote }))
    }

    /// Begins an association and waits until it is established.
    async fn set_up(
        &self,
        remotes: Vec<SocketAddr>,
        port: u16,
        config: Arc<AssociationConfig>,
    ) -> Result<Association, ConnectError> {
        let start = clock::now();
        let limit = self.time_limits().connect;
        #[cfg(feature = "dtls")]
        let mut remotes = remotes;
        #[cfg(feature = "dtls")]
        let attempt = self.begin_handshake(&mut remotes, limit).await?;
        let cell = self.shared.with(|state, now| state.connect(now, &remotes, port, config))?;
        let remote = remotes[0]; // Without any there is no cell.
        // Dropped without an association, it cancels the attempt.
        let handle = Handle::new(Arc::clone(&self.shared), Arc::clone(&cell));
        let limit = limit.map(|limit| limit.saturating_sub(clock::now() - start));
        let outcome = within(limit, self.wait_for_outcome(&cell)).await;
        #[cfg(feature = "dtls")]
        if let (Some(Err(_)), Some(source)) = (&outcome, attempt.and_then(|it| it.error())) {
            return Err(ConnectError::Handshake { remote, source });
        }
        match outcome {
            Some(Ok(established)) => Ok(Association::new(handle, established)),
            None | Some(Err(CloseReason::ConnectTimedOut | CloseReason::Unreachable)) => {
                Err(ConnectError::NoAnswer { remote, port, waited: clock::now() - start })
            }
            Some(Err(CloseReason::AbortedByPeer { cause, .. })) => {
                Err(ConnectError::RefusedByPeer { remote, port, cause })
            }
            Some(Err(reason)) => Err(ConnectError::Ended { remote, port, reason }),
        }
    }

    async fn wait_for_outcome(&self, cell: &Cell) -> Result<Established, CloseReason> {
        loop {
            let changed = cell.changed.notified();
            if let Some(outcome) = self.outcome(cell) {
                return outcome;
            }
            changed.await;
        }
    }

    /// The result of an attempt to connect; `None` while it is in progress.
    fn outcome(&self, cell: &Cell) -> Option<Result<Established, CloseReason>> {
        let state = self.shared.lock();
        let entry = state.associations.get(&cell.id)?;
        // Established first: it may have ended already, with messages to be received.
        entry.established.map(Ok).or_else(|| entry.closed.clone().map(Err))
    }

    /// Waits for the next association that a peer begins; `None` once the endpoint has been shut down or
    /// [accepts no more](Self::stop_accepting), or if its configuration accepts none. Dropping the future loses no association. At most [`ACCEPT_BACKLOG`]
    /// associations wait.
    pub async fn accept(&self) -> Option<Association> {
        loop {
            let changed = self.shared.changed.notified();
            let accepted = {
                let mut state = self.shared.lock();
                if !state.accepts() {
                    return None;
                }
                state.accept()
            };
            if let Some((cell, established)) = accepted {
                let handle = Handle::new(Arc::clone(&self.shared), cell);
                return Some(Association::new(handle, established));
            }
            changed.await;
        }
    }

    /// Refuses further associations of peers, and aborts those that wait for [`accept`](Self::accept). Existing ones go on. Until
    /// then the endpoint acknowledges the data of peers that wait.
    pub fn stop_accepting(&self) {
        self.shared.with(State::stop_accepting);
    }

    /// Accepts no more associations, ends existing ones gracefully, and waits until all have ended, at most
    /// for [`TimeLimits::shutdown`] (5 s by default) without progress; then it aborts the rest.
    ///
    /// Afterwards, while a handle exists, the endpoint still answers peers that missed the last packet of an
    /// association: keep it for some seconds if the path is lossy.
    pub async fn shutdown(&self) {
        self.shared.with(State::shut_down);
        let limit = self.time_limits().shutdown;
        let left = || self.shared.lock().send_buffered_bytes();
        if while_it_falls(limit, left, self.wait_for_end()).await.is_none() {
            self.abort(SHUTDOWN_TOO_LONG);
            self.wait_for_end().await;
        }
    }

    async fn wait_for_end(&self) {
        loop {
            let changed = self.shared.changed.notified();
            if self.shared.lock().has_ended() {
                return;
            }
            changed.await;
        }
    }

    /// Accepts no more associations and aborts existing ones at once; their peers get `reason`.
    pub fn abort(&self, reason: &[u8]) {
        self.shared.with(|state, now| state.abort(now, reason));
    }

    /// The number of associations that have not ended, including those that are being set up.
    #[must_use]
    pub fn association_count(&self) -> usize {
        self.shared.lock().open
    }

    /// The present counters.
    #[must_use]
    pub fn statistics(&self) -> EndpointStatistics {
        self.shared.lock().statistics()
    }

    /// The counters of the endpoint and of its associations in Prometheus' text format: those that began first, if
    /// there are more than [`MAX_SHOWN_ASSOCIATIONS`](crate::metrics::MAX_SHOWN_ASSOCIATIONS). Names begin with
    /// `rexmit_`.
    #[cfg(feature = "metrics")]
    #[must_use]
    pub fn metrics(&self) -> String {
        // The text is made without the lock.
        let metrics = self.shared.lock().metrics(crate::metrics::MAX_SHOWN_ASSOCIATIONS);
        metrics.text()
    }

    /// The metrics of several endpoints on one page, such as those of a client with an endpoint for each server.
    ///
    /// The counters of the endpoints are added up. The label `association` is the endpoint's position in the list, a dot,
    /// and the association's number in it. The first
    /// [`MAX_SHOWN_ASSOCIATIONS`](crate::metrics::MAX_SHOWN_ASSOCIATIONS) associations of all have metrics of their own.
    #[cfg(feature = "metrics")]
    #[must_use]
    pub fn metrics_of_all(endpoints: &[Self]) -> String {
        let mut all = crate::metrics::EndpointMetrics::default();
        for (position, endpoint) in endpoints.iter().enumerate() {
            let room = crate::metrics::MAX_SHOWN_ASSOCIATIONS - all.associations.len();
            let metrics = endpoint.shared.lock().metrics(room);
            all.add(position, metrics);
        }
        all.text()
    }

    /// Passes all trace events of the protocol to `sink`, while the endpoint is locked: `sink` must not block. `None`
    /// disables tracing.
    pub fn set_trace(&self, sink: Option<Box<dyn TraceSink>>) {
        self.shared.lock().sctp.set_trace(log::sink(sink));
    }
}

fn unencrypted(config: EndpointConfig, seed: &Seed) -> Result<Protocol, ConfigError> {
    Ok(Protocol::Unencrypted(Box::new(sctp::Endpoint::new(config, seed)?)))
}

/// Chooses the SCTP port if it is 0, and checks the configuration for an endpoint at `address`.
fn prepare(config: &mut EndpointConfig, address: IpAddr) -> Result<(), BindError> {
    if !address.is_unspecified() && config.addresses.iter().any(|&own| own != address) {
        return Err(BindError::NotWildcard { address });
    }
    if let Some(&foreign) = config.addresses.iter().find(|&&own| is_foreign(own)) {
        return Err(BindError::NotLocal { address: (foreign, 0).into() });
    }
    const DYNAMIC_PORTS: u16 = 49_152;
    if config.port == 0 {
        let mut random = [0; 2];
        getrandom::fill(&mut random).map_err(|error| BindError::Entropy(error.into()))?;
        config.port = u16::from_ne_bytes(random) | DYNAMIC_PORTS;
    }
    Ok(config.validate()?)
}

impl Clone for Endpoint {
    fn clone(&self) -> Self {
        self.shared.lock().life.handles += 1;
        let (shared, association) = (Arc::clone(&self.shared), Arc::clone(&self.association));
        Self { shared, association, ..*self }
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.shared.with_on_drop(State::release_handle);
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("port", &self.port).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use rexmit_sctp::OutboundMessage;

    use super::*;

    /// Otherwise these packets would be sent with the next arrival, or never.
    #[tokio::test]
    async fn the_driver_is_called_for_what_is_not_sent_at_once() {
        let bind = |port| {
            let config = EndpointConfig::default().port(port).accept(true);
            Endpoint::bind_unencrypted("127.0.0.1:0".parse().unwrap(), config).unwrap()
        };
        let (server, client) = (bind(5000), bind(6000));
        let association = client.connect(server.local_addr(), 5000).await.unwrap();
        let is_called = || client.shared.lock().is_driver_called();
        while is_called() {
            tokio::task::yield_now().await;
        }
        let mut sent = 0;
        while !is_called() {
            association.try_send(OutboundMessage::new(0, "message")).unwrap();
            sent += 1;
            assert!(sent < 100_000, "every message of a burst is sent at once");
        }
        assert!(sent > 1, "not even one message is sent at once");
    }

    /// An association that ended before it was accepted, with data that was not read.
    #[tokio::test]
    async fn an_ended_association_is_forgotten_when_none_is_accepted_any_more() {
        let config = EndpointConfig::default().accept(true);
        let server = Endpoint::bind_unencrypted("127.0.0.1:0".parse().unwrap(), config).unwrap();
        let config = EndpointConfig::default();
        let client = Endpoint::bind_unencrypted("127.0.0.1:0".parse().unwrap(), config).unwrap();
        let association = client.connect(server.local_addr(), server.port()).await.unwrap();
        association.send(OutboundMessage::new(0, "unread")).await.unwrap();
        association.shutdown().await;
        while server.association_count() > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(server.shared.lock().associations.len(), 1, "it waits");
        server.stop_accepting();
        assert!(server.shared.lock().associations.is_empty());
        assert_eq!(server.statistics().not_accepted, 0);
    }
}
