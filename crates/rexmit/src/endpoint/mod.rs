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
//! One endpoint uses one core; with several [`shards`](EndpointConfig::shards) there is a lock, a protocol, a socket and a driver
//! for each.

#[cfg(feature = "dtls")]
mod encrypted;
mod entry;
#[cfg(all(feature = "netlink", target_os = "linux"))]
mod following;
mod group;
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only Linux has several shards"))]
mod handover;
#[cfg(feature = "dtls")]
mod handshakes;
mod lifecycle;
mod listen;
mod protocol;
mod refusals;
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only Linux has several shards"))]
mod shards;
mod state;
mod statistics;
mod trace;
mod wakes;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rexmit_core::trace::TraceSink;
use rexmit_core::{Instant, Seed};
use rexmit_sctp::{
    self as sctp, AssociationConfig, CloseReason, ConfigError, EndpointConfig, TagClass,
};

use crate::association::{Association, Cell, Handle};
use crate::clock::{self, Alarm};
use crate::limits::{SHUTDOWN_TOO_LONG, TimeLimits, while_it_falls, within};
use crate::log;
use crate::socket::{Inbox, Socket, is_foreign};
use crate::turns::Driver;
use crate::{BindError, ConnectError};
pub(crate) use entry::{Established, Recipients};
use group::Shards;
use handover::Member;
use protocol::Protocol;
use refusals::{Watch, first_of, refused};
use shards::{Steering, part};
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
    shards: Shards,
    /// The shard from which the next association is accepted first.
    next_accepting: Arc<AtomicUsize>,
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
    /// With several [`shards`](EndpointConfig::shards) (Linux) there are as many sockets at the address, each with a driver.
    /// Packets are steered by their verification tags, so that an association may change its addresses. A peer that has
    /// lost its state and connects again from another address than before is not recognized: the former association ends when its peer
    /// is unreachable.
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
        let (sockets, steering) = bind_shards(address, config.shards, true)?;
        let shards = config.shards as u32;
        let protocol = |config, index, seed: &Seed| {
            let mut sctp = sctp::Endpoint::new(config, seed)?;
            // Tags of each shard are those that are steered to it.
            sctp.set_tags(TagClass::new(shards, index as u32).unwrap_or_default());
            Ok(Protocol::Unencrypted(Box::new(sctp)))
        };
        Self::with_sockets(sockets, steering, &config, protocol)
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
        if config.shards > 1 {
            return Err(BindError::Shards { reason: "raw sockets have no ports" });
        }
        let refused = |error| BindError::raw(address, error);
        let socket = Socket::bind_raw(address, config.port).map_err(refused)?;
        let protocol = |config, _, seed: &Seed| {
            Ok(Protocol::Unencrypted(Box::new(sctp::Endpoint::new(config, seed)?)))
        };
        Self::with_sockets(vec![socket], None, &config, protocol).map_err(refused)
    }

    /// An endpoint with a shard for each of `sockets`.
    fn with_sockets(
        sockets: Vec<Socket>,
        steering: Option<Steering>,
        config: &EndpointConfig,
        protocol: impl Fn(EndpointConfig, usize, &Seed) -> Result<Protocol, ConfigError>,
    ) -> std::io::Result<Self> {
        let (count, is_raw) = (sockets.len(), sockets.iter().any(Socket::is_raw));
        let mut members = steering.map(Member::all).unwrap_or_default().into_iter();
        let changed = Arc::default();
        let mut all = Vec::new();
        for (index, socket) in sockets.into_iter().enumerate() {
            let mut entropy = [0; 32];
            getrandom::fill(&mut entropy)?;
            let shard = shards::config_of(config, index);
            let sctp = protocol(shard, index, &Seed::from_bytes(entropy));
            let sctp = sctp.map_err(std::io::Error::other)?;
            let mut state = State::new(sctp, config.accept, socket, Alarm::new()?);
            state.incoming.max_waiting = part(ACCEPT_BACKLOG, index, count);
            state.shard = members.next();
            state.want_sizes(&config.association);
            all.push(Arc::new(Shared::new(state, Arc::clone(&changed))));
        }
        for shared in &all {
            tokio::spawn(Driver::new(Arc::clone(shared), Inbox::default()).run());
        }
        let endpoint = Self {
            shards: Shards::new(all, steering),
            next_accepting: Arc::default(),
            port: config.port,
            is_raw,
            told_addresses: config.addresses.len(),
            association: Arc::clone(&config.association),
        };
        endpoint.set_trace(None);
        Ok(endpoint)
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
        for shared in self.shards.all() {
            shared.lock().life.time_limits = limits;
        }
        self
    }

    /// The time limits of calls that wait for a peer.
    #[must_use]
    pub fn time_limits(&self) -> TimeLimits {
        self.shards.first().lock().life.time_limits
    }

    /// The address and UDP port that the endpoint is bound to; port 0 for SCTP directly over IP.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.shards.first().lock().local_addr
    }

    /// Replaces the UDP socket by one bound to `address`, after the host has changed its network. Each
    /// association reports the new address to its peer (RFC 5061) and continues from there. If a peer does
    /// not support that, its associations continue if the peer accepts packets from the new address. A
    /// wildcard address lets the system choose.
    ///
    /// # Errors
    /// If the address cannot be bound, or the endpoint has several addresses or shards, or uses SCTP directly over IP.
    pub fn rebind(&self, address: SocketAddr) -> Result<(), BindError> {
        let refused = |error| BindError::new(address, error);
        if self.is_raw || self.told_addresses > 1 || self.shards.are_several() {
            return Err(refused(std::io::ErrorKind::Unsupported.into()));
        }
        let socket = Socket::bind_udp(address).map_err(refused)?;
        let is_told = self.told_addresses > 0;
        self.shards.first().with(|state, now| state.rebind(now, socket, is_told));
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
        let watch = |reporting| Watch::new(&self.shards, reporting, remote);
        let watches: Vec<_> = self.shards.all().iter().map(watch).collect();
        let established = first_of(self.set_up(remotes, port, config), refused(&watches)).await;
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
        let shared = self.shards.home(remotes.first().copied());
        if self.shards.are_several() {
            // The kernel may give an ICMP error to the socket of any shard.
            self.shards.all().iter().for_each(|it| it.with(|state, _| state.want_sizes(&config)));
        }
        let cell = shared.with(|state, now| state.connect(now, &remotes, port, config))?;
        let remote = remotes[0]; // Without any there is no cell.
        // Dropped without an association, it cancels the attempt.
        let handle = Handle::new(Arc::clone(shared), Arc::clone(&cell));
        let limit = limit.map(|limit| limit.saturating_sub(clock::now() - start));
        let outcome = within(limit, wait_for_outcome(shared, &cell)).await;
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

    /// Waits for the next association that a peer begins; `None` once the endpoint has been shut down or
    /// [accepts no more](Self::stop_accepting), or if its configuration accepts none. Dropping the future loses no association. At most [`ACCEPT_BACKLOG`]
    /// associations wait.
    pub async fn accept(&self) -> Option<Association> {
        loop {
            let changed = self.shards.first().changed.notified();
            if !self.shards.first().lock().accepts() {
                return None;
            }
            let all = self.shards.all();
            // In turns, so that no shard has to wait for others.
            let first = self.next_accepting.fetch_add(1, Ordering::Relaxed);
            for n in 0..all.len() {
                let shared = &all[first.wrapping_add(n) % all.len()];
                let accepted = shared.lock().accept();
                if let Some((cell, established)) = accepted {
                    let handle = Handle::new(Arc::clone(shared), cell);
                    return Some(Association::new(handle, established));
                }
            }
            changed.await;
        }
    }

    /// Refuses further associations of peers, and aborts those that wait for [`accept`](Self::accept). Existing ones go on. Until
    /// then the endpoint acknowledges the data of peers that wait.
    pub fn stop_accepting(&self) {
        self.with_all(State::stop_accepting);
    }

    /// Accepts no more associations, ends existing ones gracefully, and waits until all have ended, at most
    /// for [`TimeLimits::shutdown`] (5 s by default) without progress; then it aborts the rest.
    ///
    /// Afterwards, while a handle exists, the endpoint still answers peers that missed the last packet of an
    /// association: keep it for some seconds if the path is lossy.
    pub async fn shutdown(&self) {
        self.with_all(State::shut_down);
        let limit = self.time_limits().shutdown;
        let left = || self.sum(State::send_buffered_bytes);
        if while_it_falls(limit, left, self.wait_for_end()).await.is_none() {
            self.abort(SHUTDOWN_TOO_LONG);
            self.wait_for_end().await;
        }
    }

    async fn wait_for_end(&self) {
        loop {
            let changed = self.shards.first().changed.notified();
            if self.shards.all().iter().all(|shared| shared.lock().has_ended()) {
                return;
            }
            changed.await;
        }
    }

    /// Accepts no more associations and aborts existing ones at once; their peers get `reason`.
    pub fn abort(&self, reason: &[u8]) {
        self.with_all(|state, now| state.abort(now, reason));
    }

    /// The number of associations that have not ended, including those that are being set up.
    #[must_use]
    pub fn association_count(&self) -> usize {
        self.sum(|state| state.open)
    }

    /// The present counters.
    #[must_use]
    pub fn statistics(&self) -> EndpointStatistics {
        let mut sum = EndpointStatistics::default();
        self.shards.all().iter().for_each(|shared| sum += shared.lock().statistics());
        sum
    }

    /// The number of associations on each [shard](EndpointConfig::shards) that have not ended.
    #[must_use]
    pub fn association_counts(&self) -> Vec<usize> {
        self.shards.all().iter().map(|shared| shared.lock().open).collect()
    }

    fn with_all(&self, act: impl Fn(&mut State, Instant)) {
        self.shards.all().iter().for_each(|shared| shared.with(&act));
    }

    fn sum(&self, count: impl Fn(&State) -> usize) -> usize {
        self.shards.all().iter().map(|shared| count(&shared.lock())).sum()
    }

    /// The counters of the endpoint and of its associations in Prometheus' text format: those that began first, if
    /// there are more than [`MAX_SHOWN_ASSOCIATIONS`](crate::metrics::MAX_SHOWN_ASSOCIATIONS). Names begin with
    /// `rexmit_`.
    #[cfg(feature = "metrics")]
    #[must_use]
    pub fn metrics(&self) -> String {
        // The text is made without the lock.
        self.metrics_of_shards(crate::metrics::MAX_SHOWN_ASSOCIATIONS).text()
    }

    #[cfg(feature = "metrics")]
    fn metrics_of_shards(&self, room: usize) -> crate::metrics::EndpointMetrics {
        let mut all = crate::metrics::EndpointMetrics::default();
        for shared in self.shards.all() {
            let metrics = shared.lock().metrics(room - all.associations.len());
            all.add_shard(metrics);
        }
        all
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
            all.add(position, endpoint.metrics_of_shards(room));
        }
        all.text()
    }

    /// Passes all trace events of the protocol to `sink`, while the endpoint is locked: `sink` must not block. `None`
    /// disables tracing.
    ///
    /// Several [shards](EndpointConfig::shards) share `sink`, and wait for each other there. Each passes the events of one of its turns together, so that
    /// no event of another shard is among those of a packet. The times of one shard's events do not decrease; those of a turn may be
    /// earlier than events of other shards before it.
    pub fn set_trace(&self, sink: Option<Box<dyn TraceSink>>) {
        let sink = log::sink(sink);
        if !self.shards.are_several() {
            return self.shards.first().lock().sctp.set_trace(sink);
        }
        let sink = sink.map(|sink| Arc::new(Mutex::new(sink)));
        for shared in self.shards.all() {
            let mut state = shared.lock();
            let sink = state.shard.as_mut().and_then(|shard| shard.set_trace(sink.as_ref()));
            state.sctp.set_trace(sink);
        }
    }
}

async fn wait_for_outcome(shared: &Shared, cell: &Cell) -> Result<Established, CloseReason> {
    loop {
        let changed = cell.changed.notified();
        if let Some(outcome) = outcome(shared, cell) {
            return outcome;
        }
        changed.await;
    }
}

/// The result of an attempt to connect; `None` while it is in progress.
fn outcome(shared: &Shared, cell: &Cell) -> Option<Result<Established, CloseReason>> {
    let state = shared.lock();
    let entry = state.associations.get(&cell.id)?;
    // Established first: it may have ended already, with messages to be received.
    entry.established.map(Ok).or_else(|| entry.closed.clone().map(Err))
}

/// The sockets of an endpoint's shards at `address`, and how packets are steered to several of them.
fn bind_shards(
    address: SocketAddr,
    count: usize,
    by_tag: bool,
) -> Result<(Vec<Socket>, Option<Steering>), BindError> {
    let refused = |error| BindError::new(address, error);
    if count == 1 {
        return Ok((vec![Socket::bind_udp(address).map_err(refused)?], None));
    }
    #[cfg(target_os = "linux")]
    {
        let steering = Steering::new(count, by_tag);
        let steering = steering.map_err(|error| BindError::Entropy(error.into()))?;
        let sockets = Socket::bind_group(address, count, &steering.program()).map_err(refused)?;
        Ok((sockets, Some(steering)))
    }
    #[cfg(not(target_os = "linux"))]
    {
        _ = by_tag;
        Err(BindError::Shards { reason: "only Linux steers packets to several sockets" })
    }
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
        self.shards.all().iter().for_each(|shared| shared.lock().life.handles += 1);
        Self {
            shards: self.shards.clone(),
            next_accepting: Arc::clone(&self.next_accepting),
            association: Arc::clone(&self.association),
            ..*self
        }
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.shards.all().iter().for_each(|shared| shared.with_on_drop(State::release_handle));
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
        let is_called = || client.shards.first().lock().is_driver_called();
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
        assert_eq!(server.shards.first().lock().associations.len(), 1, "it waits");
        server.stop_accepting();
        assert!(server.shards.first().lock().associations.is_empty());
        assert_eq!(server.statistics().not_accepted, 0);
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn each_shard_has_its_part_of_the_backlog() {
        let config = EndpointConfig::default().accept(true).shards(3);
        let any = "127.0.0.1:0".parse().unwrap();
        let endpoint = Endpoint::bind_unencrypted(any, config).unwrap();
        let parts = endpoint.shards.all().iter().map(|it| it.lock().incoming.max_waiting);
        assert_eq!(parts.collect::<Vec<_>>(), [342, 341, 341]);
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn time_limits_are_those_of_all_shards() {
        let any = "127.0.0.1:0".parse().unwrap();
        let endpoint = Endpoint::bind_unencrypted(any, EndpointConfig::default().shards(3));
        let endpoint = endpoint.unwrap().with_time_limits(TimeLimits::NONE);
        let limits = endpoint.shards.all().iter().map(|it| it.lock().life.time_limits);
        assert!(limits.into_iter().all(|limits| limits == TimeLimits::NONE));
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn associations_are_accepted_from_the_shards_in_turns() {
        const SHARDS: usize = 2;
        let any = "127.0.0.1:0".parse().unwrap();
        let config = EndpointConfig::default().accept(true).shards(SHARDS);
        let server = Endpoint::bind_unencrypted(any, config).unwrap();
        let waiting = |shard: &Arc<Shared>| shard.lock().incoming.waiting.len();
        let mut kept = Vec::new();
        while server.shards.all().iter().any(|shard| waiting(shard) < 3) {
            let client = Endpoint::bind_unencrypted(any, EndpointConfig::default()).unwrap();
            let association = client.connect(server.local_addr(), 5000).await.unwrap();
            kept.push((client, association));
        }
        for n in 0..3 * SHARDS {
            let accepted = server.accept().await.unwrap();
            assert_eq!(accepted.trace_number() as usize % SHARDS, n % SHARDS);
        }
    }

    /// As with a batch of several associations, which the kernel delivers to one socket as a whole.
    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn packets_that_arrive_at_another_shard_are_handed_over() {
        let any = "127.0.0.1:0".parse().unwrap();
        let config = EndpointConfig::default().accept(true).shards(5);
        let server = Endpoint::bind_unencrypted(any, config).unwrap();
        let first = server.shards.first().lock().socket.clone().unwrap();
        // "Return 1": all packets go to the second socket.
        let second = [libc::sock_filter { code: 6, jt: 0, jf: 0, k: 1 }];
        crate::socket::steer(&first, &second).unwrap();
        let mut kept = Vec::new();
        for _ in 0..40 {
            let client = Endpoint::bind_unencrypted(any, EndpointConfig::default()).unwrap();
            let connecting = client.connect(server.local_addr(), 5000);
            let both = async { tokio::join!(connecting, server.accept()) };
            let (ours, theirs) = tokio::time::timeout(std::time::Duration::from_secs(60), both)
                .await
                .expect("it takes too long");
            let (ours, theirs) = (ours.unwrap(), theirs.unwrap());
            ours.stream(0).send("message").await.unwrap();
            assert_eq!(theirs.recv().await.unwrap().payload, "message");
            kept.push((client, ours, theirs));
        }
        let counts = server.association_counts();
        assert!(counts.iter().all(|&count| count > 0), "{counts:?}");
        assert!(server.statistics().packets_redirected > 100);
    }

    /// The driver of one shard waits for its lock, while the other receives more for it than may wait.
    #[cfg(target_os = "linux")]
    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn packets_that_find_no_room_at_another_shard_are_counted_as_dropped() {
        const SENT: usize = 3000;
        let any = "127.0.0.1:0".parse().unwrap();
        let config = EndpointConfig::default().accept(true).shards(2);
        let server = Endpoint::bind_unencrypted(any, config).unwrap();
        let first = server.shards.first().lock().socket.clone().unwrap();
        // "Return 0": all packets go to the first socket.
        let all = [libc::sock_filter { code: 6, jt: 0, jf: 0, k: 0 }];
        crate::socket::steer(&first, &all).unwrap();
        let address = server.local_addr();
        let busy = std::sync::Arc::clone(&server.shards.all()[1]);
        let received = {
            let first = server.shards.first();
            let held = busy.lock();
            let sender = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            // Verification tag 1.
            let packet = [0x13, 0x88, 0x13, 0x88, 0, 0, 0, 1, 0, 0, 0, 0];
            for _ in 0..SENT {
                sender.send_to(&packet, address).unwrap();
            }
            for _ in 0..60_000 {
                if first.lock().counts.packets_dropped > 0 {
                    break;
                }
                std::thread::park_timeout(std::time::Duration::from_millis(1));
            }
            let counts = first.lock().counts;
            drop(held);
            counts
        };
        assert!(received.packets_dropped > 0, "{received:?}");
        assert!(received.packets_redirected <= 1024, "{received:?}");
    }
}
