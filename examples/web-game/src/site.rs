//! The requests of the page: offers, the WebSocket, and the addresses of the servers.

use std::collections::BTreeMap;
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;

use axum::Router;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};
use rexmit_dtls::Identity;
use rexmit_sctp::AssociationConfig;
use rexmit_webrtc::{AgentConfig, ServeConfig, Server};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::game::{self, Opening};
use crate::rival::Rival;

/// The profiles that are compared.
const PROFILES: [&str; 3] = ["rfc9260", "interactive", "interactive-redundant"];

/// A server for each profile, and one for WebSockets, at one address.
pub(crate) struct Servers {
    profiles: BTreeMap<&'static str, Server>,
    websocket: SocketAddr,
}

type Sockets = std::io::Result<(TcpListener, Vec<UdpSocket>)>;

impl Servers {
    /// Starts the servers; `at` binds their sockets in the right namespace.
    pub(crate) fn start(
        address: Ipv4Addr,
        at: impl FnOnce(&(dyn Fn() -> Sockets + Sync)) -> Result<Sockets, Box<dyn Error>>,
    ) -> Result<Self, Box<dyn Error>> {
        let bind = || {
            let udp = PROFILES.iter().map(|_| UdpSocket::bind((address, 0)));
            Ok((TcpListener::bind((address, 0))?, udp.collect::<Result<_, _>>()?))
        };
        let (tcp, udp) = at(&bind)??;
        let websocket = tcp.local_addr()?;
        tcp.set_nonblocking(true)?;
        let tcp = tokio::net::TcpListener::from_std(tcp)?;
        let router = Router::new().route("/", get(on_websocket));
        tokio::spawn(async move { axum::serve(tcp, router).await });
        let mut profiles = BTreeMap::new();
        for (profile, udp) in PROFILES.into_iter().zip(udp) {
            let association = AssociationConfig::profile(profile).ok_or("no such profile")?;
            let agent = AgentConfig::new(Identity::generate()?).association(association);
            udp.set_nonblocking(true)?;
            let udp = tokio::net::UdpSocket::from_std(udp)?;
            profiles.insert(profile, Server::with_socket(udp, ServeConfig::new(agent))?);
        }
        Ok(Self { profiles, websocket })
    }
}

/// Everything that the page can request.
pub(crate) struct Site {
    pub(crate) clear: Servers,
    /// Behind the emulated link.
    pub(crate) lossy: Option<Servers>,
    /// Servers of other implementations, also behind the link.
    pub(crate) rivals: Vec<Rival>,
    /// Receives the page's measurements.
    pub(crate) results: mpsc::Sender<Value>,
}

impl Site {
    fn servers(&self, link: &str) -> Option<&Servers> {
        match link {
            "clear" => Some(&self.clear),
            _ => self.lossy.as_ref(),
        }
    }
}

pub(crate) fn router(site: Arc<Site>) -> Router {
    Router::new()
        .route("/", get(|| async { Html(include_str!("page.html")) }))
        .route("/config", get(on_config))
        .route("/offer/{link}/{profile}/{opening}", post(on_offer))
        .route("/rival/{name}", post(on_rival))
        .route("/result", post(on_result))
        .with_state(site)
}

/// The available links, with the addresses of their WebSockets, and the profiles.
async fn on_config(State(site): State<Arc<Site>>) -> String {
    let url = |servers: &Servers| format!("ws://{}/", servers.websocket);
    let lossy = site.lossy.as_ref().map(url);
    let rivals: Vec<_> = site.rivals.iter().map(|rival| &rival.name).collect();
    json!({ "clear": url(&site.clear), "lossy": lossy, "profiles": PROFILES, "rivals": rivals })
        .to_string()
}

async fn on_offer(
    State(site): State<Arc<Site>>,
    Path((link, profile, opening)): Path<(String, String, String)>,
    offer: String,
) -> Response {
    let opening = if opening == "dcep" { Opening::Dcep } else { Opening::Negotiated };
    let server = site.servers(&link).and_then(|servers| servers.profiles.get(&profile[..]));
    let Some(server) = server else { return StatusCode::NOT_FOUND.into_response() };
    match server.answer(&offer) {
        Ok((answer, connection)) => {
            tokio::spawn(game::play(connection, opening));
            (StatusCode::CREATED, answer).into_response()
        }
        Err(error) => (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
    }
}

async fn on_rival(
    State(site): State<Arc<Site>>,
    Path(name): Path<String>,
    offer: String,
) -> Response {
    let answer = tokio::task::spawn_blocking(move || {
        let rival = site.rivals.iter().find(|rival| rival.name == name)?;
        Some(rival.answer(&offer))
    });
    match answer.await {
        Ok(Some(Ok(answer))) => (StatusCode::CREATED, answer).into_response(),
        Ok(None) => StatusCode::NOT_FOUND.into_response(),
        _ => StatusCode::BAD_GATEWAY.into_response(),
    }
}

async fn on_result(State(site): State<Arc<Site>>, result: String) -> StatusCode {
    let result = serde_json::from_str(&result).unwrap_or(Value::String(result));
    let _ = site.results.try_send(result);
    StatusCode::NO_CONTENT
}

async fn on_websocket(upgrade: WebSocketUpgrade) -> Response {
    upgrade.on_upgrade(play)
}

/// Sends snapshots on a WebSocket until it ends.
async fn play(mut socket: WebSocket) {
    let mut ticks = tokio::time::interval(game::INTERVAL);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    let mut number = 0;
    loop {
        let text = tokio::select! {
            _ = ticks.tick() => {
                number += 1;
                game::snapshot(number)
            }
            received = socket.recv() => match received {
                Some(Ok(Message::Text(text))) if game::is_clock_question(&text) => {
                    game::clock_answer(&text)
                }
                Some(Ok(_)) => continue,
                _ => return,
            },
        };
        if socket.send(Message::Text(text.into())).await.is_err() {
            return;
        }
    }
}
