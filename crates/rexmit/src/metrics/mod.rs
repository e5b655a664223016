//! Metrics in Prometheus' text format (version 0.0.4), and a small HTTP server for them.
//!
//! [`Endpoint::metrics`](crate::Endpoint::metrics) has the counters of an endpoint and of its associations; [`serve`] answers
//! `GET /metrics` with any text. `rexmit top` shows them on a terminal.
//!
//! ```no_run
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! use rexmit::{Endpoint, EndpointConfig, metrics};
//! let endpoint = Endpoint::bind_unencrypted("0.0.0.0:9899".parse()?, EndpointConfig::default())?;
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:9100").await?;
//! tokio::spawn(metrics::serve(listener, move || endpoint.metrics()));
//! # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
//! ```

#[cfg(feature = "udp")]
mod endpoint;
mod server;
mod text;

#[cfg(feature = "udp")]
pub use endpoint::MAX_SHOWN_ASSOCIATIONS;
#[cfg(feature = "udp")]
pub(crate) use endpoint::{AssociationMetrics, EndpointMetrics};
pub use server::serve;
pub use text::Metrics;
#[cfg(any(feature = "udp", all(feature = "proxy", target_os = "linux")))]
pub(crate) use text::by_cause;
