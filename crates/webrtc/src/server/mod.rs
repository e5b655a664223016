//! Peers on a UDP socket of tokio.

mod connection;
mod driver;
mod socket;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rexmit_core::{Instant, Seed};
use rexmit_sctp::ConfigError;
use thiserror::Error;
use tokio::net::UdpSocket;
use tokio::sync::Notify;

use crate::{Candidate, Description, OfferError, PeerId, Peers, ServeConfig, ServeStatistics};

use connection::Waiters;
pub use connection::{Connection, Sender};
use socket::Socket;

/// Why a server could not be started.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BindError {
    /// The socket could not be bound.
    #[error("the UDP socket cannot be bound: {0}")]
    Socket(#[from] std::io::Error),
    /// The configuration of associations is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The address of the socket is not one that peers can send to.
    #[error(
        "{0} is not an address that peers can send to: bind to one, or list those of this host in \
         AgentConfig::addresses"
    )]
    NoAddress(SocketAddr),
    /// The system gives no random numbers.
    #[error("the system provides no random numbers: {0}")]
    Entropy(String),
}

/// State that the server, its connections and its driver share.
struct Shared {
    inner: Mutex<Inner>,
    /// Notified when there may be something to transmit, or another deadline.
    changed: Notify,
    /// Notified when all STUN and TURN servers have answered, or the time limit is over.
    gathered: Notify,
    origin: std::time::Instant,
}

struct Inner {
    peers: Peers,
    waiters: BTreeMap<PeerId, Arc<Waiters>>,
    is_closed: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[expect(clippy::disallowed_methods, reason = "the driver's clock")]
    fn now(&self) -> Instant {
        let passed = std::time::Instant::now().saturating_duration_since(self.origin);
        // Not 0, which is before everything.
        Instant::ZERO + Duration::from_millis(1) + passed
    }

    fn at(&self, instant: Instant) -> std::time::Instant {
        self.origin + (instant - (Instant::ZERO + Duration::from_millis(1)))
    }
}

/// A UDP socket for many peers, such as browsers.
///
/// The application transports offers and answers, for example an offer in a POST over HTTPS and the answer in
/// its response. Dropping the server ends all connections.
///
/// ```no_run
/// use rexmit_dtls::Identity;
/// use rexmit_webrtc::{AgentConfig, Event, Message, ServeConfig, Server};
///
/// # async fn on_post(offer: &str) -> Result<String, Box<dyn std::error::Error>> {
/// let config = ServeConfig::new(AgentConfig::new(Identity::generate()?));
/// let server = Server::bind("192.0.2.1:4000".parse()?, config).await?;
/// // For each POST:
/// let (answer, mut connection) = server.answer(offer)?;
/// tokio::spawn(async move {
///     while let Some(event) = connection.event().await {
///         if let Event::Message { channel, message } = event {
///             let _ = connection.send(channel, message).await; // An echo.
///         }
///     }
/// });
/// # Ok(answer) }
/// ```
pub struct Server {
    shared: Arc<Shared>,
    local: SocketAddr,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("local", &self.local).finish_non_exhaustive()
    }
}

impl Server {
    /// Binds a UDP socket, and runs it as a task of the current runtime. Its ICE candidates are
    /// [`AgentConfig::addresses`](crate::AgentConfig::addresses), or the address of the socket if the list is
    /// empty, and those that [`ServeConfig::servers`] assign, for which it waits.
    ///
    /// # Errors
    /// See [`BindError`].
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub async fn bind(address: SocketAddr, config: ServeConfig) -> Result<Self, BindError> {
        let server = Self::with_socket(UdpSocket::bind(address).await?, config)?;
        server.gathered().await;
        Ok(server)
    }

    /// Returns when the STUN and TURN servers have answered, or after [`GATHER_TIMEOUT`](crate::GATHER_TIMEOUT).
    pub async fn gathered(&self) {
        loop {
            let gathered = self.shared.gathered.notified();
            tokio::pin!(gathered);
            gathered.as_mut().enable();
            if !self.shared.lock().peers.is_gathering() {
                return;
            }
            gathered.await;
        }
    }

    /// The addresses in new descriptions: see [`Peers::candidates`].
    #[must_use]
    pub fn candidates(&self) -> Vec<Candidate> {
        self.shared.lock().peers.candidates().to_vec()
    }

    /// Runs a server on a UDP socket that the application has bound. Returns before the STUN and TURN servers have
    /// answered; [`gathered`](Self::gathered) waits for them.
    ///
    /// # Errors
    /// See [`BindError`].
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    #[expect(clippy::disallowed_methods, reason = "the origin of the driver's clock")]
    pub fn with_socket(socket: UdpSocket, mut config: ServeConfig) -> Result<Self, BindError> {
        let local = socket.local_addr()?;
        let socket = Socket::new(socket)?;
        if config.agent.addresses.is_empty() {
            if local.ip().is_unspecified() {
                return Err(BindError::NoAddress(local));
            }
            config.agent.addresses.push(local);
        }
        let mut entropy = [0; 32];
        getrandom::fill(&mut entropy).map_err(|error| BindError::Entropy(error.to_string()))?;
        let peers = Peers::new(config, &Seed::from_bytes(entropy))?;
        let inner = Inner { peers, waiters: BTreeMap::new(), is_closed: false };
        let shared = Arc::new(Shared {
            inner: Mutex::new(inner),
            changed: Notify::new(),
            gathered: Notify::new(),
            origin: std::time::Instant::now(),
        });
        tokio::spawn(driver::run(Arc::clone(&shared), socket));
        Ok(Self { shared, local })
    }

    /// The address of the socket.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Answers an offer; returns the answer and the connection.
    ///
    /// # Errors
    /// If the offer cannot be parsed or cannot lead to a connection, or a limit was reached.
    pub fn answer(&self, offer: &str) -> Result<(String, Connection), OfferError> {
        let offer: Description = offer.parse()?;
        self.begin(|peers, now| peers.answer(now, &offer))
    }

    /// Makes an offer for a new connection; [`Connection::accept`] takes the answer.
    ///
    /// # Errors
    /// If a limit was reached.
    pub fn offer(&self) -> Result<(String, Connection), OfferError> {
        self.begin(Peers::offer)
    }

    fn begin(
        &self,
        act: impl FnOnce(&mut Peers, Instant) -> Result<(PeerId, Description), OfferError>,
    ) -> Result<(String, Connection), OfferError> {
        let now = self.shared.now();
        let mut inner = self.shared.lock();
        let (id, description) = act(&mut inner.peers, now)?;
        let waiters = Arc::new(Waiters::default());
        inner.waiters.insert(id, Arc::clone(&waiters));
        drop(inner);
        self.shared.changed.notify_one();
        Ok((description.to_string(), Connection::new(Arc::clone(&self.shared), id, waiters)))
    }

    /// The number of peers, including those being set up.
    #[must_use]
    pub fn peer_count(&self) -> usize {
        self.shared.lock().peers.len()
    }

    /// The present counters.
    #[must_use]
    pub fn statistics(&self) -> ServeStatistics {
        self.shared.lock().peers.statistics()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let now = self.shared.now();
        let mut inner = self.shared.lock();
        inner.is_closed = true;
        let ids: Vec<PeerId> = inner.waiters.keys().copied().collect();
        for id in ids {
            inner.peers.call(id, |agent| agent.close(now));
        }
        drop(inner);
        self.shared.changed.notify_one();
    }
}
