//! TCP (RFC 9293) in user space: a host's TCP over a device for IP packets.
//!
//! A [`Stack`] speaks TCP for some addresses of its own on a [`PacketDevice`]: a TUN device, at whose other
//! end the kernel routes, or a link in memory. Its [`TcpListener`]s accept and its [`TcpStream`]s read and
//! write as tokio's do.
//!
//! An echo server on a TUN device, for any program of this machine:
//!
//! ```no_run
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use rexmit::tcp::{Stack, StackConfig};
//! use rexmit::tun::{AsyncTun, Tun, TunConfig};
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! // The kernel is 10.91.0.1, the stack 10.91.0.2.
//! let config = TunConfig::default().ipv4(Some(("10.91.0.1".parse()?, 24)));
//! let tun = AsyncTun::new(Tun::open(&config)?)?;
//! let stack = Stack::new(tun, ["10.91.0.2".parse()?], StackConfig::default())?;
//! let listener = stack.listen(7)?;
//! loop {
//!     let (mut stream, _peer) = listener.accept().await?;
//!     tokio::spawn(async move {
//!         let mut bytes = [0; 4096];
//!         while let Ok(len @ 1..) = stream.read(&mut bytes).await {
//!             if stream.write_all(&bytes[..len]).await.is_err() {
//!                 break;
//!             }
//!         }
//!     });
//! }
//! # #[allow(unreachable_code)]
//! # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
//! ```
//!
//! Loss recovery of a connection is configured by [`ConnectionConfig::recovery`], which has named profiles
//! ([`TCP_PROFILES`]):
//!
//! ```
//! use rexmit::RecoveryConfig;
//! use rexmit::tcp::{ConnectionConfig, StackConfig};
//!
//! let recovery = RecoveryConfig::tcp_cubic();
//! let connection = ConnectionConfig::default().recovery(recovery);
//! let config = StackConfig::default().connection(connection.into());
//! assert_eq!(config.validate(), Ok(()));
//! ```
//!
//! Threads and locks are as [`endpoint`](crate::endpoint) describes them: one lock per stack, the
//! tasks of the application, and one driver. The device receives outside the lock. A stack uses one
//! core.

mod device;
mod entry;
mod error;
mod lifecycle;
mod listener;
mod owner;
mod stack;
mod state;
mod statistics;
mod stream;
mod wakes;

pub use device::{MemoryDevice, PacketDevice, QUEUE_PACKETS};
pub use error::{ConnectError, ListenError, OpenError};
pub use listener::{DEFAULT_BACKLOG, TcpListener};
pub use rexmit_tcp::recovery::TCP_PROFILES;
pub use rexmit_tcp::{
    CloseReason, ConfigError, ConnectionConfig, ConnectionStatistics, CookieStatistics,
    DroppedSegments, EndpointConfig, EndpointStatistics, KeepAlive, State, ThinError,
    TimeWaitStatistics, Traffic, ZeroWindows,
};
pub use stack::{Stack, StackConfig};
pub use statistics::StackStatistics;
pub use stream::{OwnedReadHalf, OwnedWriteHalf, TcpStream};
