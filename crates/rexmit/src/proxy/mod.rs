//! A proxy that terminates clients' TCP with our TCP, and uses the kernel's TCP to a service on this machine, so that
//! data to the clients has the loss recovery of a profile. Service and clients stay unchanged.
//!
//! A [`Proxy`] connects each client that a [`TcpListener`](crate::tcp::TcpListener) accepts to one upstream
//! address: half-closes and resets pass in both directions, a slow reader slows down the writer, and buffers
//! are limited. A [`Monitor`] has statistics, also as text for Prometheus ([`metrics`], [`serve_metrics`]).
//! [`setup`] directs the packets of an address of this machine to the stack, and undoes that.
//!
//! ```no_run
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use std::sync::Arc;
//! use rexmit::proxy::{Proxy, ProxyConfig};
//! use rexmit::tcp::Stack;
//! use rexmit::tun::{AsyncTun, Tun, TunConfig};
//!
//! let tun = TunConfig::default().ipv4(Some(("10.94.0.1".parse()?, 30)));
//! let config = ProxyConfig::new("127.0.0.1:22".parse()?);
//! let device = AsyncTun::new(Tun::open(&tun)?)?;
//! let stack = Stack::new(device, ["10.94.0.2".parse()?], config.stack())?;
//! let proxy = Proxy::new(stack.listen(22)?, config);
//! // Until ^C: then present clients may continue for some time.
//! let stop = async { drop(tokio::signal::ctrl_c().await) };
//! proxy.run(stop, std::future::pending()).await;
//! # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
//! ```
//!
//! # Data lost when a process is killed
//! Data that one of the two programs has acknowledged in its own protocol is never lost, whichever process is
//! killed, because the proxy acknowledges nothing at that level. A TCP acknowledgement only means that the
//! proxy has the bytes, as one of the kernel means that the kernel has them. When the proxy is killed, both
//! sides are reset.

mod config;
mod event;
mod header;
mod metrics;
mod pump;
mod scrape;
mod server;
mod session;
pub mod setup;
mod statistics;

pub use config::ProxyConfig;
pub use event::{EndReason, Observer, ProxyEvent, Refusal};
pub use metrics::metrics;
pub use scrape::serve_metrics;
pub use server::Proxy;
pub use statistics::{Monitor, ProxyStatistics, RoundTrips, TransferredBytes};
