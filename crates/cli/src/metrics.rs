//! `--metrics`: the counters of an endpoint for Prometheus and `rexmit top`.

use std::net::SocketAddr;

use clap::Args;
use rexmit::{Endpoint, metrics};
use tokio::net::TcpListener;

use crate::failure::{Failure, Kind, Outcome};

/// The option of commands with an endpoint.
#[derive(Clone, Debug, Args)]
pub(crate) struct MetricsOption {
    /// Address to serve metrics on, for Prometheus and `rexmit top`: http://ADDR:PORT/metrics. Everybody who reaches it may read
    /// them, so take an address of this machine, such as 127.0.0.1:9100.
    #[arg(long, value_name = "ADDR:PORT")]
    metrics: Option<SocketAddr>,
}

impl MetricsOption {
    /// Serves the metrics of `endpoint`, followed by those of `more`, until the program ends.
    pub(crate) async fn serve(
        &self,
        endpoint: &Endpoint,
        more: impl Fn() -> String + Send + Sync + 'static,
    ) -> Outcome {
        let Some(address) = self.metrics else { return Ok(()) };
        let listener = bind(address).await?;
        eprintln!("metrics at http://{}/metrics", listener.local_addr()?);
        let endpoint = endpoint.clone();
        tokio::spawn(metrics::serve(listener, move || endpoint.metrics() + &more()));
        Ok(())
    }
}

/// A listener for metrics.
pub(crate) async fn bind(address: SocketAddr) -> Result<TcpListener, Failure> {
    let listener = TcpListener::bind(address).await;
    listener.map_err(|error| {
        let message = format!("--metrics {address}: {error}; choose another address or port");
        Failure::new(Kind::Address, message)
    })
}
