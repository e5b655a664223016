//! A connection that cannot be set up does not end the others.

use std::sync::Arc;
use std::time::Duration;

use rexmit::{Endpoint, EndpointConfig};
use rexmit_perf::load::result::Sent;
use rexmit_perf::load::schedule::ThinLoad;
use rexmit_perf::load::{LoadError, Target, send};

/// The result of `connections` to a server that accepts at most `most`, or to no server.
async fn send_to_server_of(most: Option<usize>, connections: u32) -> Result<Sent, LoadError> {
    let config = EndpointConfig::default().port(5000).accept(most.is_some());
    let config = config.max_associations(most.unwrap_or(1));
    let server = Endpoint::bind_unencrypted("127.0.0.1:0".parse().unwrap(), config).unwrap();
    let target = Target {
        remote: server.local_addr(),
        more_remotes: Vec::new(),
        locals: Vec::new(),
        sctp_port: 5000,
        raw: false,
        encryption: None,
        association: Arc::default(),
        setup_timeout: Duration::from_secs(60),
    };
    let serving = tokio::spawn(async move {
        while let Some(association) = server.accept().await {
            tokio::spawn(async move { while association.recv().await.is_some() {} });
        }
        std::future::pending::<()>().await;
    });
    let load = ThinLoad {
        first_connection: 0,
        connections,
        interval: Duration::from_millis(10),
        message_bytes: 100,
        duration: Duration::from_millis(100),
        poisson: false,
        unordered: false,
        seed: 1,
    };
    let sent = send::thin(&target, &load, std::future::pending(), |_| {}).await;
    serving.abort();
    sent.map(|(sent, _)| sent)
}

#[tokio::test]
async fn one_that_is_refused_does_not_end_the_others() {
    let sent = send_to_server_of(Some(2), 3).await.expect("two of three");
    assert_eq!((sent.connections, sent.not_set_up, sent.broken), (2, 1, 0));
    assert_eq!((sent.messages, sent.undelivered), (20, 0));
    assert!(sent.table(false).contains("1 connections could not be set up"));
}

#[tokio::test]
async fn where_all_are_refused_the_error_says_why() {
    let result = send_to_server_of(None, 3).await;
    assert!(matches!(result, Err(LoadError::Connect(_))), "{result:?}");
}
