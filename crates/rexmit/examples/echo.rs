//! An echo server and its client: `cargo run -p rexmit --example echo`.

use rexmit::{Association, Endpoint, Identity, SendError, Trust};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

#[tokio::main]
async fn main() -> Result<()> {
    let echo = run("hello").await?;
    println!("{echo}");
    Ok(())
}

/// Sends `text` to a server and returns the echo.
pub(crate) async fn run(text: &str) -> Result<String> {
    // The client knows the server by the fingerprint of its certificate.
    let identity = Identity::generate()?;
    let trust = Trust::only([identity.fingerprint()]);
    let server = Endpoint::listen("127.0.0.1:0", identity).await?;
    let address = server.local_addr();
    let serving = tokio::spawn(async move {
        while let Some(association) = server.accept().await {
            tokio::spawn(echo(association));
        }
    });

    let association = Association::connect(address, trust).await?;
    association.stream(0).send(text.to_owned()).await?;
    let message = association.recv().await.ok_or("the server closed the association")?;
    association.shutdown().await;
    serving.abort();
    Ok(String::from_utf8(message.payload.to_vec())?)
}

/// Sends every message back on the stream on which it arrived.
async fn echo(association: Association) -> std::result::Result<(), SendError> {
    while let Some(message) = association.recv().await {
        association.stream(message.stream).send(message.payload).await?;
    }
    Ok(())
}
