//! Several addresses, and the events that report their failure: `cargo run -p rexmit --example failover` (Linux: it
//! uses several addresses of the loopback device).
//!
//! The server has two addresses, and loses the one that data is sent to. Messages are delivered over the other, each
//! once and in order.

use std::net::{IpAddr, Ipv4Addr};

use rexmit::{Association, Endpoint, EndpointConfig, Event, PathState};

type Error = Box<dyn std::error::Error + Send + Sync>;

const FIRST: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 11));
const SECOND: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 12));

#[tokio::main]
async fn main() -> Result<(), Error> {
    let events = run(100).await?;
    for event in events {
        println!("{event}");
    }
    Ok(())
}

/// Sends messages before and after the server loses its first address. Returns the events that the client gets.
pub(crate) async fn run(messages: u32) -> Result<Vec<String>, Error> {
    // One socket sends from all addresses, so that it is bound to the wildcard address.
    let config = EndpointConfig::default().addresses(vec![FIRST, SECOND]);
    let server = Endpoint::listen_unencrypted("0.0.0.0:0", config).await?;
    let remote = (FIRST, server.local_addr().port()).into();
    let client =
        Endpoint::bind_unencrypted("0.0.0.0:0".parse()?, EndpointConfig::default().port(0))?;
    let (ours, theirs) = tokio::join!(client.connect(remote, server.port()), server.accept());
    let (ours, theirs) = (ours?, theirs.ok_or("the server was shut down")?);
    let watching = tokio::spawn(watch(ours.clone()));

    // Data takes a path once it is confirmed (RFC 9260 §5.4).
    while ours.statistics().paths.iter().filter(|path| path.state == PathState::Active).count() < 2
    {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    for number in 0..messages {
        if number == messages / 2 {
            theirs.delete_address(FIRST)?;
        }
        ours.stream(0).send(number.to_be_bytes().to_vec()).await?;
        let message = theirs.recv().await.ok_or("the association ended")?;
        assert_eq!(message.payload[..], number.to_be_bytes());
    }
    ours.shutdown().await;
    Ok(watching.await?)
}

/// Events of the association until it ends.
async fn watch(association: Association) -> Vec<String> {
    let mut told = Vec::new();
    while let Some(event) = association.event().await {
        told.push(match event {
            Event::PathStatus { address, state, .. } => format!("{}: {state:?}", address.ip()),
            Event::DataPathChanged { address, .. } => format!("data is sent to {}", address.ip()),
            Event::PeerAddressDeleted { address, .. } => format!("{} is gone", address.ip()),
            Event::Closed(reason) => reason.to_string(),
            other => format!("{other:?}"),
        });
    }
    told
}
