//! Several addresses over one socket each, on loopback.

mod common;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use common::{client_config, in_time, server_config};
use rexmit::{
    Association, BindError, Endpoint, EndpointConfig, Event, PathState, PathStatistics,
    PrimaryError,
};

const ANY: &str = "0.0.0.0:0";

fn with(addresses: [&str; 2], config: EndpointConfig) -> EndpointConfig {
    config.addresses(addresses.map(|ip| ip.parse().unwrap()).to_vec())
}

async fn until_active(association: &Association, paths: usize) -> Vec<PathStatistics> {
    loop {
        let known = association.statistics().paths;
        if known.len() == paths && known.iter().all(|path| path.state == PathState::Active) {
            return known;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

fn ends(path: &PathStatistics) -> [String; 2] {
    [path.local.ip(), path.remote.ip()].map(|ip: IpAddr| ip.to_string())
}

#[tokio::test]
async fn both_ends_have_a_path_from_each_address_and_data_take_the_primary_one() {
    let server = with(["127.0.1.1", "127.0.2.1"], server_config());
    let server = Endpoint::bind_unencrypted(ANY.parse().unwrap(), server).unwrap();
    let client = with(["127.0.1.2", "127.0.2.2"], client_config());
    let association = Arc::clone(&client.association);
    let client = Endpoint::bind_unencrypted(ANY.parse().unwrap(), client).unwrap();
    let remote = SocketAddr::new("127.0.2.1".parse().unwrap(), server.local_addr().port());
    let remotes = [remote];
    let (ours, theirs) =
        tokio::join!(client.connect_over(&remotes, 5000, association), server.accept());
    let (ours, theirs) = (ours.unwrap(), theirs.unwrap());
    let paths = in_time(until_active(&ours, 2)).await;
    let expected = [["127.0.2.2", "127.0.2.1"], ["127.0.1.2", "127.0.1.1"]];
    assert_eq!([ends(&paths[0]), ends(&paths[1])], expected);
    let paths = in_time(until_active(&theirs, 2)).await;
    assert_eq!(ends(&paths[0]), ["127.0.2.1", "127.0.2.2"]);
    assert_eq!(ours.set_primary(2), Err(PrimaryError::NoSuchPath));
    ours.set_primary(1).unwrap();
    let moved = async {
        loop {
            if let Some(Event::DataPathChanged { path, .. }) = ours.event().await {
                return path;
            }
        }
    };
    assert_eq!(in_time(moved).await, 1);
    ours.stream(0).send("hello").await.unwrap();
    assert_eq!(in_time(theirs.recv()).await.unwrap().payload, "hello");
    let packets: Vec<_> =
        ours.statistics().paths.iter().map(|path| path.counters.packets).collect();
    assert_eq!(packets, [0, 1]);
}

/// The first address of the peer does not answer.
#[tokio::test]
async fn another_address_of_the_peer_is_tried() {
    let server = Endpoint::bind_unencrypted(ANY.parse().unwrap(), server_config()).unwrap();
    let client = Endpoint::bind_unencrypted(ANY.parse().unwrap(), client_config()).unwrap();
    let port = server.local_addr().port();
    let association = Arc::clone(&client_config().association);
    // The first one is dead: nothing listens on that UDP port.
    let silent = std::net::UdpSocket::bind("127.0.3.1:0").unwrap();
    let remotes =
        [silent.local_addr().unwrap(), SocketAddr::new("127.0.4.1".parse().unwrap(), port)];
    let (ours, theirs) = in_time(async {
        tokio::join!(client.connect_over(&remotes, 5000, association), server.accept())
    })
    .await;
    theirs.unwrap();
    let primary = ours.unwrap().statistics().paths.into_iter().find(|path| path.is_primary);
    assert_eq!(primary.unwrap().remote, remotes[1]);
}

#[tokio::test]
async fn an_address_of_another_machine_is_refused_by_name() {
    for addresses in [["127.0.1.1", "192.0.2.1"], ["192.0.2.1", "127.0.1.1"]] {
        let error =
            Endpoint::bind_unencrypted(ANY.parse().unwrap(), with(addresses, client_config()));
        let error = error.unwrap_err();
        assert!(matches!(error, BindError::NotLocal { .. }), "{error}");
        assert!(error.to_string().starts_with("192.0.2.1 is not an address of this machine"));
    }
}

#[tokio::test]
async fn several_addresses_take_a_wildcard_socket() {
    let config = with(["127.0.1.1", "127.0.2.1"], client_config());
    let error = Endpoint::bind_unencrypted("127.0.1.1:0".parse().unwrap(), config).unwrap_err();
    assert!(matches!(error, BindError::NotWildcard { .. }), "{error}");
    assert!(error.to_string().contains("bind a wildcard address"));
}
