//! A host that changes its network keeps its associations, on loopback (RFC 5061 over RFC 6951).

mod common;

use std::sync::Arc;

use common::{client_config, in_time, server_config};
use rexmit::{AddressChange, Association, Endpoint, Event};

const MESSAGES: u32 = 2_000;

/// The next change of our addresses that the peer has answered.
async fn answered(association: &Association) -> (AddressChange, Option<u16>) {
    loop {
        if let Event::AddressChanged { change, refused } = association.event().await.unwrap() {
            return (change, refused);
        }
    }
}

/// Checks that every message arrives once and in order if `change` is made during the transfer.
async fn transfer(ours: &Association, theirs: &Association, change: impl AsyncFnOnce()) {
    let sending = async {
        let stream = ours.stream(0);
        for number in 0..MESSAGES / 2 {
            stream.send(number.to_be_bytes().to_vec()).await.unwrap();
        }
        change().await;
        for number in MESSAGES / 2..MESSAGES {
            stream.send(number.to_be_bytes().to_vec()).await.unwrap();
        }
    };
    let receiving = async {
        for number in 0..MESSAGES {
            assert_eq!(theirs.recv().await.unwrap().payload[..], number.to_be_bytes());
        }
    };
    in_time(async { tokio::join!(sending, receiving) }).await;
}

#[tokio::test]
async fn a_transfer_survives_another_socket_at_another_address() {
    let server =
        Endpoint::bind_unencrypted("127.0.0.9:0".parse().unwrap(), server_config()).unwrap();
    let client =
        Endpoint::bind_unencrypted("127.0.0.1:0".parse().unwrap(), client_config()).unwrap();
    let (ours, theirs) = tokio::join!(client.connect(server.local_addr(), 5000), server.accept());
    let (ours, theirs) = (ours.unwrap(), theirs.unwrap());
    let before = client.local_addr();
    transfer(&ours, &theirs, async || {
        // The old socket is closed, with whatever it had not read.
        client.rebind("127.0.0.2:0".parse().unwrap()).unwrap();
    })
    .await;
    let after = client.local_addr();
    assert_ne!((before.ip(), before.port()), (after.ip(), after.port()));
    let remotes: Vec<_> = theirs.statistics().paths.iter().map(|path| path.remote).collect();
    assert!(remotes.contains(&after), "{remotes:?} has {after}");
    assert_eq!(ours.close_reason(), None);
    // And the other way.
    theirs.stream(0).send("still there").await.unwrap();
    assert_eq!(in_time(ours.recv()).await.unwrap().payload, "still there");
}

#[tokio::test]
async fn an_endpoint_with_several_addresses_stays_where_it_is() {
    let addresses = ["127.0.0.1", "127.0.0.2"].map(|address| address.parse().unwrap()).into();
    let config = client_config().addresses(addresses);
    let endpoint = Endpoint::bind_unencrypted("0.0.0.0:0".parse().unwrap(), config).unwrap();
    let before = endpoint.local_addr();
    assert!(endpoint.rebind("127.0.0.3:0".parse().unwrap()).is_err());
    assert_eq!(endpoint.local_addr(), before);
}

#[tokio::test]
async fn a_transfer_survives_the_deletion_of_the_first_address() {
    let server =
        Endpoint::bind_unencrypted("127.0.0.9:0".parse().unwrap(), server_config()).unwrap();
    let home = "127.0.0.1".parse().unwrap();
    let config = client_config().addresses(vec![home]);
    let association = Arc::clone(&config.association);
    let client = Endpoint::bind_unencrypted("0.0.0.0:0".parse().unwrap(), config).unwrap();
    let remotes = [server.local_addr()];
    let (ours, theirs) =
        tokio::join!(client.connect_over(&remotes, 5000, association), server.accept());
    let (ours, theirs) = (ours.unwrap(), theirs.unwrap());
    let other = "127.0.0.2".parse().unwrap();
    transfer(&ours, &theirs, async || {
        ours.add_address(other).unwrap();
        assert_eq!(answered(&ours).await, (AddressChange::Added(other), None));
        ours.set_peer_primary(other).unwrap();
        ours.delete_address(home).unwrap();
    })
    .await;
    assert_eq!(in_time(answered(&ours)).await, (AddressChange::Preferred(other), None));
    assert_eq!(in_time(answered(&ours)).await, (AddressChange::Deleted(home), None));
    let locals = ours.statistics().paths.into_iter().map(|path| (path.state, path.local.ip()));
    let live: Vec<_> = locals.filter(|(state, _)| *state == rexmit::PathState::Active).collect();
    assert_eq!(live, [(rexmit::PathState::Active, other)]);
}
