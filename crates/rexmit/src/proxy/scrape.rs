//! The metrics of a proxy over HTTP.

use tokio::net::TcpListener;

use super::{Monitor, metrics};
use crate::metrics::serve;

/// Answers `GET /metrics` until the future is dropped, as [`serve`] does.
pub async fn serve_metrics(listener: TcpListener, monitor: Monitor) {
    serve(listener, move || metrics(&monitor.statistics())).await;
}
