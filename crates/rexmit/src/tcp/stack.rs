//! Stacks: a device, and the connections over it.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use rexmit_core::Seed;
use rexmit_core::trace::TraceSink;
use rexmit_tcp::{self as tcp, CloseReason, ConnectionConfig, EndpointConfig};

use super::device::PacketDevice;
use super::entry::{Cell, Established};
use super::error::{ConnectError, ListenError, OpenError};
use super::listener::{DEFAULT_BACKLOG, TcpListener};
use super::owner::Owner;
use super::state::{Shared, StackState};
use super::statistics::StackStatistics;
use super::stream::{Handle, TcpStream};
use crate::clock::{self, Alarm};
use crate::limits::{TimeLimits, while_it_falls, within};
use crate::tun::Batch;
use crate::tun::ip::HeaderConfig;
use crate::turns::Driver;

/// Fixed TCP header (RFC 9293 §3.1).
const TCP_HEADER_BYTES: u16 = 20;

/// The configuration of a stack and its TCP.
pub type StackConfig = EndpointConfig;

/// A host's TCP on a device for IP packets.
///
/// Clones are handles of the same stack. When the last one and the last listener are dropped, the stack
/// accepts no more connections, continues to serve existing ones, and drops its device when the last of them
/// has ended.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// use rexmit::tcp::{MemoryDevice, Stack, StackConfig};
/// use tokio::io::{AsyncReadExt, AsyncWriteExt};
///
/// let (here, there) = MemoryDevice::pair(1500);
/// let client = Stack::new(here, ["10.0.0.1".parse()?], StackConfig::default())?;
/// let server = Stack::new(there, ["10.0.0.2".parse()?], StackConfig::default())?;
///
/// let listener = server.listen(80)?;
/// let (ours, accepted) = tokio::join!(client.connect("10.0.0.2:80".parse()?), listener.accept());
/// let (mut ours, (mut theirs, peer)) = (ours?, accepted?);
/// assert_eq!(peer, ours.local_addr());
///
/// ours.write_all(b"hello").await?;
/// ours.shutdown().await?; // The end of what is written; reading goes on.
/// let mut heard = String::new();
/// theirs.read_to_string(&mut heard).await?;
/// assert_eq!(heard, "hello");
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct Stack {
    owner: Arc<Owner>,
}

impl Stack {
    /// A stack with the addresses `addresses` on `device`.
    ///
    /// The addresses must be unused ones in the device's network, or be routed to it. An
    /// [`mss`](ConnectionConfig::mss) that does not fit the device's MTU is lowered.
    ///
    /// # Errors
    /// If there is no usable address, or the configuration is invalid.
    ///
    /// # Panics
    /// Outside a tokio runtime with its I/O driver enabled.
    pub fn new(
        device: impl PacketDevice,
        addresses: impl IntoIterator<Item = IpAddr>,
        mut config: StackConfig,
    ) -> Result<Self, OpenError> {
        let addresses: Vec<IpAddr> = addresses.into_iter().collect();
        check_addresses(&addresses)?;
        let mtu = device.mtu();
        check_mtu(mtu, &addresses)?;
        fit_mss(&mut config.connection, mtu);
        let mut entropy = [0; 32];
        getrandom::fill(&mut entropy).map_err(|error| OpenError::Entropy(error.into()))?;
        let tcp = tcp::Endpoint::new(config, &Seed::from_bytes(entropy))?;
        let alarm = Alarm::new().map_err(OpenError::Timer)?;
        let state = StackState::new(tcp, Arc::new(device), &addresses, alarm);
        let shared = Arc::new(Shared::new(state, Arc::default()));
        tokio::spawn(Driver::new(Arc::clone(&shared), Batch::new(mtu)).run());
        Ok(Self { owner: Arc::new(Owner { shared, addresses, mtu }) })
    }

    /// Sets how long calls of this stack wait for a peer. Applies to all its handles.
    #[must_use]
    pub fn with_time_limits(self, limits: TimeLimits) -> Self {
        self.owner.shared.lock().time_limits = limits;
        self
    }

    /// The time limits of calls that wait for a peer.
    #[must_use]
    pub fn time_limits(&self) -> TimeLimits {
        self.owner.shared.lock().time_limits
    }

    /// The addresses of the stack.
    #[must_use]
    pub fn addresses(&self) -> &[IpAddr] {
        &self.owner.addresses
    }

    /// Listens on `port` of every address, with the stack's configuration of connections and the
    /// [`DEFAULT_BACKLOG`].
    ///
    /// # Errors
    /// If the port has a listener already, or is 0.
    pub fn listen(&self, port: u16) -> Result<TcpListener, ListenError> {
        self.begin_listening(port, None, DEFAULT_BACKLOG)
    }

    /// As [`listen`](Self::listen), with the configuration `config` for its connections, and room for
    /// `backlog` connections that wait to be accepted. Further ones are aborted and counted in
    /// [`StackStatistics::not_accepted`].
    ///
    /// # Errors
    /// As [`listen`](Self::listen).
    pub fn listen_with(
        &self,
        port: u16,
        mut config: Arc<ConnectionConfig>,
        backlog: usize,
    ) -> Result<TcpListener, ListenError> {
        fit_mss(&mut config, self.owner.mtu);
        self.begin_listening(port, Some(config), backlog)
    }

    fn begin_listening(
        &self,
        port: u16,
        config: Option<Arc<ConnectionConfig>>,
        backlog: usize,
    ) -> Result<TcpListener, ListenError> {
        let waiting = self.owner.shared.with(|state, _now| state.listen(port, config, backlog))?;
        Ok(TcpListener::new(Arc::clone(&self.owner), port, waiting))
    }

    /// Connects to `remote` from the first address of its family and an ephemeral port, and waits
    /// until the connection is established.
    ///
    /// The time limit is [`TimeLimits::connect`], 10 s by default. Dropping the future cancels the attempt.
    ///
    /// # Errors
    /// If the peer does not answer or refuses, or the stack has been shut down.
    pub async fn connect(&self, remote: SocketAddr) -> Result<TcpStream, ConnectError> {
        let local = self.local_for(remote)?;
        self.establish(local, remote, None).await
    }

    /// As [`connect`](Self::connect), from the local address and port `local` (port 0 chooses one), and with
    /// the configuration `config`.
    ///
    /// # Errors
    /// As [`connect`](Self::connect), or if `local` is not one of the stack's addresses, or its port is in
    /// use towards this peer.
    pub async fn connect_with(
        &self,
        local: Option<SocketAddr>,
        remote: SocketAddr,
        mut config: Arc<ConnectionConfig>,
    ) -> Result<TcpStream, ConnectError> {
        let local = match local {
            Some(local) if self.owner.addresses.contains(&local.ip()) => local,
            Some(_) => return Err(ConnectError::NoLocalAddress { remote }),
            None => self.local_for(remote)?,
        };
        fit_mss(&mut config, self.owner.mtu);
        self.establish(local, remote, Some(config)).await
    }

    fn local_for(&self, remote: SocketAddr) -> Result<SocketAddr, ConnectError> {
        let mut addresses = self.owner.addresses.iter();
        let local = addresses.find(|address| address.is_ipv4() == remote.is_ipv4());
        local.map(|&address| (address, 0).into()).ok_or(ConnectError::NoLocalAddress { remote })
    }

    async fn establish(
        &self,
        local: SocketAddr,
        remote: SocketAddr,
        config: Option<Arc<ConnectionConfig>>,
    ) -> Result<TcpStream, ConnectError> {
        let start = clock::now();
        let shared = &self.owner.shared;
        let cell = shared.with(|state, now| state.connect(now, local, remote, config))?;
        let handle = Handle::new(Arc::clone(shared), Arc::clone(&cell));
        match within(self.time_limits().connect, self.wait_for_outcome(&cell)).await {
            Some(Ok(established)) => Ok(TcpStream::new(handle, established)),
            None | Some(Err(CloseReason::ConnectTimedOut | CloseReason::TimedOut)) => {
                Err(ConnectError::NoAnswer { remote, waited: clock::now() - start })
            }
            Some(Err(CloseReason::Refused)) => Err(ConnectError::RefusedByPeer { remote }),
            Some(Err(reason)) => Err(ConnectError::Ended { remote, reason }),
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
        let state = self.owner.shared.lock();
        let entry = state.connections.get(&cell.id)?;
        // Established first: it may have ended already, with data to be read.
        entry.established.map(Ok).or_else(|| entry.closed.map(Err))
    }

    /// Accepts no more connections, and waits until existing ones have ended, that is, were dropped or shut
    /// down on both sides; data written before is then delivered, while a program that exits without waiting
    /// may lose it. After [`TimeLimits::shutdown`] (5 s by default) without progress the remaining connections are
    /// aborted.
    pub async fn shutdown(&self) {
        self.owner.shared.with(StackState::shut_down);
        let left = || self.owner.shared.lock().send_buffered_bytes();
        let limit = self.time_limits().shutdown;
        if while_it_falls(limit, left, self.wait_for_end()).await.is_none() {
            self.abort();
            self.wait_for_end().await;
        }
    }

    async fn wait_for_end(&self) {
        let shared = &self.owner.shared;
        loop {
            let changed = shared.changed.notified();
            if shared.lock().has_ended() {
                return;
            }
            changed.await;
        }
    }

    /// Accepts no more connections, and resets existing ones at once.
    pub fn abort(&self) {
        self.owner.shared.with(StackState::abort);
    }

    /// The number of connections that have not ended, including those that are being set up. Connections in
    /// TIME-WAIT have ended.
    #[must_use]
    pub fn connection_count(&self) -> usize {
        self.owner.shared.lock().open
    }

    /// The present counters.
    #[must_use]
    pub fn statistics(&self) -> StackStatistics {
        self.owner.shared.lock().statistics()
    }

    /// Passes all trace events of the protocol to `sink`, while the endpoint is locked: `sink` must not block. `None`
    /// disables tracing.
    pub fn set_trace(&self, sink: Option<Box<dyn TraceSink>>) {
        self.owner.shared.lock().tcp.set_trace(sink);
    }
}

impl fmt::Debug for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stack").field("addresses", &self.addresses()).finish_non_exhaustive()
    }
}

fn check_addresses(addresses: &[IpAddr]) -> Result<(), OpenError> {
    if addresses.is_empty() {
        return Err(OpenError::NoAddress);
    }
    let is_bad = |address: &&IpAddr| {
        address.is_unspecified()
            || address.is_multicast()
            || matches!(address, IpAddr::V4(address) if address.is_broadcast())
    };
    addresses.iter().find(is_bad).map_or(Ok(()), |&address| Err(OpenError::BadAddress(address)))
}

/// Checks that the MTU has room for the longest IP header of these addresses and the least MSS.
fn check_mtu(mtu: u16, addresses: &[IpAddr]) -> Result<(), OpenError> {
    let headers = addresses.iter().map(|&address| HeaderConfig::header_bytes(address)).max();
    let headers = u16::try_from(headers.unwrap_or(0)).unwrap_or(u16::MAX);
    let least = headers + TCP_HEADER_BYTES + tcp::MIN_MSS;
    if mtu < least { Err(OpenError::MtuTooSmall { mtu, least }) } else { Ok(()) }
}

/// Lowers the MSS so that a segment fits the device's MTU over IPv4 (RFC 6691). The protocol deducts the
/// longer header of IPv6.
fn fit_mss(config: &mut Arc<ConnectionConfig>, mtu: u16) {
    let header_bytes = HeaderConfig::header_bytes(IpAddr::from([0; 4]));
    let headers = TCP_HEADER_BYTES + u16::try_from(header_bytes).unwrap_or(u16::MAX);
    let most = mtu.saturating_sub(headers);
    if config.mss > most {
        Arc::make_mut(config).mss = most;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::MemoryDevice;

    /// Otherwise these segments would be sent with the next arrival, or never.
    #[tokio::test]
    async fn the_driver_is_called_for_what_is_not_sent_at_once() {
        let (here, there) = MemoryDevice::pair(1500);
        let prompt = ConnectionConfig::default().nagle(false);
        let config = StackConfig::default().connection(Arc::new(prompt));
        let client = Stack::new(here, [[10, 0, 0, 1].into()], config.clone()).unwrap();
        let server = Stack::new(there, [[10, 0, 0, 2].into()], config).unwrap();
        let _listener = server.listen(80).unwrap();
        let stream = client.connect("10.0.0.2:80".parse().unwrap()).await.unwrap();
        let is_called = || client.owner.shared.lock().next_turn.driver.is_made();
        while is_called() {
            tokio::task::yield_now().await;
        }
        let mut sent = 0;
        while !is_called() {
            stream.try_write(b"message").unwrap();
            sent += 1;
            assert!(sent < 100_000, "every message of a burst is sent at once");
        }
        assert!(sent > 1, "not even one message is sent at once");
    }
}
