//! `--metrics`: the counters of an endpoint for Prometheus and `rexmit top`.

use std::net::SocketAddr;

use clap::Args;
use rexmit::{Endpoint, metrics};
use tokio::net::TcpListener;

use crate::failure::{Failure, Kind, Outcome};
use crate::values;

/// The option of commands with an endpoint.
#[derive(Clone, Debug, Args)]
pub(crate) struct MetricsOption {
    /// Address to serve metrics on, for Prometheus and `rexmit top`: http://ADDR:PORT/metrics. A port alone is one of 127.0.0.1.
    /// Everybody who reaches the address may read them: there is no authentication.
    #[arg(long, value_name = "[ADDR:]PORT", value_parser = values::local_address)]
    metrics: Option<SocketAddr>,
}

impl MetricsOption {
    /// Serves the metrics of `endpoint` until the program ends.
    pub(crate) async fn serve(&self, endpoint: &Endpoint) -> Outcome {
        let endpoint = endpoint.clone();
        self.bind().await.map(|listener| listener.serve(move || endpoint.metrics()))
    }

    /// Listens, if the option is given, and says where. Nothing is answered yet.
    pub(crate) async fn bind(&self) -> Result<Listener, Failure> {
        let Some(address) = self.metrics else { return Ok(Listener(None)) };
        let listener = bind(address).await?;
        eprintln!("metrics at http://{}/metrics", listener.local_addr()?);
        Ok(Listener(Some(listener)))
    }
}

/// Where metrics are to be served, if anywhere.
#[derive(Debug)]
pub(crate) struct Listener(Option<TcpListener>);

impl Listener {
    /// Serves `page` until the program ends.
    pub(crate) fn serve(self, page: impl Fn() -> String + Send + Sync + 'static) {
        if let Some(listener) = self.0 {
            tokio::spawn(metrics::serve(listener, page));
        }
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
