//! Connected endpoints on loopback.

// Not every test uses everything.
#![allow(dead_code)]

pub(crate) mod netns;
pub(crate) mod site;
pub(crate) mod tshark;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use rexmit::{Association, AssociationConfig, Endpoint, EndpointConfig, TimeLimits};

/// Waits for `future` with a time limit that only a failing test reaches.
pub(crate) async fn in_time<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future).await.expect("it takes too long")
}

pub(crate) fn server_config() -> EndpointConfig {
    EndpointConfig::default().accept(true)
}

/// A configuration with its own SCTP port, which distinguishes clients on the same address.
pub(crate) fn client_config() -> EndpointConfig {
    static NEXT_PORT: AtomicU16 = AtomicU16::new(20_000);
    let port = NEXT_PORT.fetch_add(1, Ordering::Relaxed);
    EndpointConfig::default().port(port)
}

/// Binds an endpoint without time limits, because the machine may be busy.
pub(crate) fn bind(config: EndpointConfig) -> Endpoint {
    let endpoint = Endpoint::bind_unencrypted("127.0.0.1:0".parse().unwrap(), config).unwrap();
    endpoint.with_time_limits(TimeLimits::NONE)
}

/// Two endpoints and both ends of their association.
pub(crate) struct Pair {
    pub(crate) client: Endpoint,
    pub(crate) server: Endpoint,
    pub(crate) ours: Association,
    pub(crate) theirs: Association,
}

impl Pair {
    pub(crate) async fn connect() -> Self {
        Self::connect_with(AssociationConfig::default()).await
    }

    pub(crate) async fn connect_with(config: AssociationConfig) -> Self {
        let association = Arc::new(config);
        let client = bind(client_config().association(association.clone()));
        let server = bind(server_config().association(association));
        let connecting = client.connect(server.local_addr(), server.port());
        let (ours, theirs) = in_time(async { tokio::join!(connecting, server.accept()) }).await;
        let (ours, theirs) = (ours.unwrap(), theirs.unwrap());
        Self { client, server, ours, theirs }
    }
}
