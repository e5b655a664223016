//! Remote procedure calls over one association: `cargo run -p rexmit --example rpc`.
//!
//! Each call has a number, which its answer repeats, and goes over one of several streams, so that a
//! lost packet delays only the calls of its stream. A call has a deadline.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rexmit::{Association, Endpoint, Identity, Trust};
use tokio::sync::oneshot;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// The deadline of a call.
const DEADLINE: Duration = Duration::from_secs(2);

#[tokio::main]
async fn main() -> Result<(), Error> {
    let squares = squares(10).await?;
    println!("{squares:?}");
    Ok(())
}

/// Has a server compute the squares of the numbers below `count`, all calls at the same time.
pub(crate) async fn squares(count: u32) -> Result<Vec<u64>, Error> {
    let identity = Identity::generate()?;
    let trust = Trust::only([identity.fingerprint()]);
    let server = Endpoint::listen("127.0.0.1:0", identity).await?;
    let address = server.local_addr();
    let serving = tokio::spawn(async move {
        while let Some(association) = server.accept().await {
            tokio::spawn(serve(association));
        }
    });
    let client = Arc::new(Client::new(Association::connect(address, trust).await?));
    let calls: Vec<_> = (0..count)
        .map(|number| {
            let client = Arc::clone(&client);
            tokio::spawn(async move { client.square(number).await })
        })
        .collect();
    let mut squares = Vec::new();
    for call in calls {
        squares.push(call.await??);
    }
    client.association.shutdown().await;
    serving.abort();
    Ok(squares)
}

/// Answers calls: the number of the call, then the square.
async fn serve(association: Association) {
    while let Some(call) = association.recv().await {
        let Some((id, argument)) = call.payload.split_at_checked(4) else { continue };
        let Ok(argument) = argument.try_into().map(u32::from_be_bytes) else { continue };
        let square = u64::from(argument).pow(2);
        let answer = [id, &square.to_be_bytes()[..]].concat();
        // It fails only when the association is closing.
        let _ = association.stream(call.stream).send(answer).await;
    }
}

type Waiting = Arc<Mutex<HashMap<u32, oneshot::Sender<u64>>>>;

struct Client {
    association: Association,
    waiting: Waiting,
}

impl Client {
    fn new(association: Association) -> Self {
        let waiting = Waiting::default();
        tokio::spawn(receive(association.clone(), Arc::clone(&waiting)));
        Self { association, waiting }
    }

    async fn square(&self, number: u32) -> Result<u64, Error> {
        let (answer, answered) = oneshot::channel();
        self.waiting.lock().expect("no panic").insert(number, answer);
        let streams = u32::from(self.association.outbound_streams());
        let stream = self.association.stream((number % streams) as u16);
        // Both parts are the same here: the number of the call, and its argument.
        stream.send([number.to_be_bytes(), number.to_be_bytes()].concat()).await?;
        match tokio::time::timeout(DEADLINE, answered).await {
            Ok(answer) => Ok(answer?),
            Err(_) => {
                self.waiting.lock().expect("no panic").remove(&number);
                Err("the server did not answer in time".into())
            }
        }
    }
}

/// Passes answers to the calls that wait for them.
async fn receive(association: Association, waiting: Waiting) {
    while let Some(message) = association.recv().await {
        let Some((id, square)) = message.payload.split_at_checked(4) else { continue };
        let id = id.try_into().map(u32::from_be_bytes).unwrap_or_default();
        let Ok(square) = square.try_into().map(u64::from_be_bytes) else { continue };
        if let Some(call) = waiting.lock().expect("no panic").remove(&id) {
            let _ = call.send(square); // Its deadline may be over.
        }
    }
    // Calls that wait fail now.
    waiting.lock().expect("no panic").clear();
}
