//! A picture of the page, by the browser's debugging protocol (Chrome DevTools Protocol).

use std::error::Error;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

/// A connection with a browser.
struct Browser {
    socket: WebSocketStream<TcpStream>,
    /// The number of the last command.
    number: u64,
}

impl Browser {
    /// Connects to the browser that has written into `profile` where it listens.
    async fn connect(profile: &Path) -> Result<Self, Box<dyn Error>> {
        let listening = std::fs::read_to_string(profile.join("DevToolsActivePort"))?;
        let (port, path) = listening.split_once('\n').ok_or("no path in DevToolsActivePort")?;
        let stream = TcpStream::connect(("127.0.0.1", port.parse()?)).await?;
        let url = format!("ws://127.0.0.1:{port}{}", path.trim_end());
        let (socket, _) = tokio_tungstenite::client_async(url, stream).await?;
        Ok(Self { socket, number: 0 })
    }

    /// The result of a command, for the session of a page if one is named.
    async fn call(
        &mut self,
        session: Option<&str>,
        method: &str,
        params: Value,
    ) -> Result<Value, Box<dyn Error>> {
        self.number += 1;
        let mut command = json!({ "id": self.number, "method": method, "params": params });
        if let Some(session) = session {
            command["sessionId"] = session.into();
        }
        self.socket.send(Message::text(command.to_string())).await?;
        // Events of the browser are in between.
        while let Some(message) = self.socket.next().await {
            let mut reply: Value = serde_json::from_str(message?.to_text()?)?;
            if reply["id"] == self.number {
                return match reply["error"].take() {
                    Value::Null => Ok(reply["result"].take()),
                    error => Err(format!("{method}: {error}").into()),
                };
            }
        }
        Err("the browser has ended".into())
    }
}

/// The page of the browser with this profile, as a PNG file.
pub(crate) async fn screenshot(profile: &Path) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut browser = Browser::connect(profile).await?;
    let targets = browser.call(None, "Target.getTargets", json!({})).await?;
    let targets = targets["targetInfos"].as_array().ok_or("no targets")?;
    let page = targets.iter().find(|it| it["type"] == "page").ok_or("no page")?;
    let params = json!({ "targetId": page["targetId"], "flatten": true });
    let attached = browser.call(None, "Target.attachToTarget", params).await?;
    let session = attached["sessionId"].as_str().ok_or("no session")?;
    let params = json!({ "format": "png" });
    let shot = browser.call(Some(session), "Page.captureScreenshot", params).await?;
    Ok(STANDARD.decode(shot["data"].as_str().ok_or("no picture")?)?)
}
