//! `--metrics`: the counters of an endpoint for Prometheus and `rexmit top`.

use std::net::{Ipv4Addr, SocketAddr};

use clap::Args;
use rexmit::{Endpoint, metrics};
use tokio::net::TcpListener;

use crate::failure::{Failure, Kind, Outcome};

/// The option of commands with an endpoint.
#[derive(Clone, Debug, Args)]
pub(crate) struct MetricsOption {
    /// Address to serve metrics on, for Prometheus and `rexmit top`: http://ADDR:PORT/metrics. A port alone is one of 127.0.0.1.
    /// Everybody who reaches the address may read them: there is no authentication.
    #[arg(long, value_name = "[ADDR:]PORT", value_parser = address)]
    metrics: Option<SocketAddr>,
}

impl MetricsOption {
    /// Serves the metrics of `endpoint`, followed by those of `more`, until the program ends.
    pub(crate) async fn serve(
        &self,
        endpoint: &Endpoint,
        more: impl Fn() -> String + Send + Sync + 'static,
    ) -> Outcome {
        let endpoint = endpoint.clone();
        self.bind().await.map(|listener| listener.serve(move || endpoint.metrics() + &more()))
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

/// Reads the address of `--metrics`.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.parse::<u16>() {
        return Ok((Ipv4Addr::LOCALHOST, port).into());
    }
    text.parse().map_err(|_| "give a port of this machine, or an IP address and port".into())
}

/// A listener for metrics.
pub(crate) async fn bind(address: SocketAddr) -> Result<TcpListener, Failure> {
    let listener = TcpListener::bind(address).await;
    listener.map_err(|error| {
        let message = format!("--metrics {address}: {error}; choose another address or port");
        Failure::new(Kind::Address, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_reached_from_this_machine_only() {
        assert_eq!(address("9100"), Ok(([127, 0, 0, 1], 9100).into()));
        assert_eq!(address("192.0.2.1:9100"), Ok(([192, 0, 2, 1], 9100).into()));
        assert_eq!(address("[::]:9100").map(|it| it.port()), Ok(9100));
        for wrong in ["", "65536", "-1", "localhost:9100", "127.0.0.1", ":9100"] {
            assert!(address(wrong).is_err(), "{wrong}");
        }
    }
}
