//! An echo server and its client: `cargo run -p rexmit --example echo`.

use rexmit::{Association, Endpoint, EndpointConfig, SendError};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

#[tokio::main]
async fn main() -> Result<()> {
    let echo = run("hello").await?;
    println!("{echo}");
    Ok(())
}

/// Sends `text` to a server and returns what comes back.
pub(crate) async fn run(text: &str) -> Result<String> {
    let config = EndpointConfig::default().accept(true);
    let server = Endpoint::bind_unencrypted("127.0.0.1:0".parse()?, config)?;
    let (address, port) = (server.local_addr(), server.port());
    let serving = tokio::spawn(async move {
        while let Some(association) = server.accept().await {
            tokio::spawn(echo(association));
        }
    });

    // Port 0: any. Clients on one address need different SCTP ports.
    let client =
        Endpoint::bind_unencrypted("127.0.0.1:0".parse()?, EndpointConfig::default().port(0))?;
    let association = client.connect(address, port).await?;
    association.stream(0).send(text.to_owned()).await?;
    let message = association.recv().await.ok_or("the server closed the association")?;
    association.shutdown().await;
    serving.abort();
    Ok(String::from_utf8(message.payload.to_vec())?)
}

/// Sends everything back, on the stream that it came on.
async fn echo(association: Association) -> std::result::Result<(), SendError> {
    while let Some(message) = association.recv().await {
        association.stream(message.stream).send(message.payload).await?;
    }
    Ok(())
}
