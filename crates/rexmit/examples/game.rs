//! A game server with 100 clients: `cargo run --release -p rexmit --example game`.
//!
//! Clients send their inputs 20 times a second, in order and reliably: the profile retransmits lost inputs early. The
//! server sends every client a snapshot of the world 20 times a second, unordered, and drops it when the next one is
//! due: an old snapshot is of no use.

use std::time::Duration;

use rexmit::{
    Association, AssociationConfig, CloseReason, Delivery, Encryption, Endpoint, Identity,
    SendError, Trust,
};
use tokio::task::JoinSet;

const TICK: Duration = Duration::from_millis(50);
/// Streams do not wait for each other's losses.
const INPUTS: u16 = 0;
const SNAPSHOTS: u16 = 1;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Messages that arrived.
#[derive(Debug, Default)]
pub(crate) struct Score {
    pub(crate) inputs: u64,
    pub(crate) snapshots: u64,
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let (clients, ticks) = (100, 100);
    let score = play(clients, ticks).await?;
    let sent = u64::from(clients) * u64::from(ticks);
    println!("{} of {sent} inputs and {} snapshots arrived", score.inputs, score.snapshots);
    Ok(())
}

/// Runs `clients` for this many ticks.
pub(crate) async fn play(clients: u32, ticks: u32) -> Result<Score, Error> {
    // A server that is killed is reported to a player after 5 s.
    let config = AssociationConfig::interactive().dead_after(Some(Duration::from_secs(5)));
    // Players know the server by its certificate, and the server accepts any player.
    let identity = Identity::generate()?;
    let trust = Trust::only([identity.fingerprint()]);
    let server = Endpoint::listen("127.0.0.1:0", identity).await?;
    let address = server.local_addr();

    let serving = tokio::spawn(async move {
        let mut players = JoinSet::new();
        for _ in 0..clients {
            let Some(association) = server.accept().await else { break };
            players.spawn(serve(association));
        }
        let inputs = players.join_all().await;
        inputs.iter().sum::<u64>()
    });
    let mut players = JoinSet::new();
    for _ in 0..clients {
        let encryption = Encryption::new(Identity::generate()?, trust.clone());
        let connecting = Association::connect_with(address, encryption, config.clone());
        players.spawn(async move { player(connecting.await?, ticks).await });
    }
    let mut score = Score::default();
    while let Some(snapshots) = players.join_next().await {
        score.snapshots += snapshots??;
    }
    score.inputs = serving.await?;
    Ok(score)
}

/// Serves one client: receives its inputs and sends it snapshots. Returns the number of inputs received.
async fn serve(association: Association) -> u64 {
    let snapshots = {
        let association = association.clone();
        tokio::spawn(async move {
            let mut tick = tokio::time::interval(TICK);
            loop {
                tick.tick().await;
                let snapshot = association.stream(SNAPSHOTS);
                let delivery = Delivery::unordered().lifetime(TICK);
                if snapshot.send_with(vec![0; 400], delivery).await.is_err() {
                    return; // The client is leaving.
                }
            }
        })
    };
    let mut inputs = 0;
    while association.recv().await.is_some() {
        inputs += 1;
    }
    snapshots.abort();
    inputs
}

/// Plays for `ticks`. Returns the number of snapshots received.
async fn player(association: Association, ticks: u32) -> Result<u64, Error> {
    let receiving = {
        let association = association.clone();
        tokio::spawn(async move {
            let mut snapshots = 0;
            while association.recv().await.is_some() {
                snapshots += 1;
            }
            snapshots
        })
    };
    let mut tick = tokio::time::interval(TICK);
    for number in 0..ticks {
        tick.tick().await;
        match association.stream(INPUTS).send(number.to_be_bytes().to_vec()).await {
            Ok(_) => {}
            // The server has shut down, or does not respond: `closed` says which.
            Err(SendError::Closing) => return Err(association.closed().await.to_string().into()),
            Err(error) => return Err(error.into()),
        }
    }
    match association.shutdown().await {
        CloseReason::Shutdown => Ok(receiving.await?),
        // Inputs that were on the way may be lost.
        reason => Err(reason.to_string().into()),
    }
}
