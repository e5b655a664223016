//! A server whose peers get back what they send, for browsers and for other implementations.
//!
//! ```text
//! cargo run --release -p rexmit-webrtc --example echo -- [--http 127.0.0.1:8080] [--udp 127.0.0.1:4000]
//!     [--delay 50ms] [--loss 5%] [--profile interactive]
//! ```
//! `GET /` is a page to try it with. `POST /offer` takes an offer and returns the answer (as WHIP, RFC 9725). A peer
//! that would rather answer gets an offer by `GET /offer`, and POSTs its answer to the `Location` of that response.
//! With `--delay` or `--loss` there is an emulated link in between, with as much of them each way.
//!
//! A message `close` has its channel closed by the server.

use std::collections::BTreeMap;
use std::error::Error;
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};
use rexmit::emulator::netem::{parse_duration, parse_probability};
use rexmit::emulator::{Emulator, EmulatorConfig};
use rexmit::path::{Delay, Loss, PathConfig};
use rexmit_dtls::Identity;
use rexmit_sctp::AssociationConfig;
use rexmit_webrtc::{AgentConfig, Connection, Event, OfferError, ServeConfig, Server};

/// Offers that wait for their answers, at most.
const MAX_OFFERS: usize = 64;

struct Options {
    http: SocketAddr,
    udp: SocketAddr,
    path: PathConfig,
    has_link: bool,
    profile: String,
}

impl Options {
    fn read() -> Result<Self, Box<dyn Error>> {
        let mut options = Self {
            http: "127.0.0.1:8080".parse()?,
            udp: "127.0.0.1:4000".parse()?,
            path: PathConfig::default(),
            has_link: false,
            profile: "interactive".to_owned(),
        };
        let mut arguments = std::env::args().skip(1);
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or(format!("{name} needs a value"))?;
            match &name[..] {
                "--http" => options.http = value.parse()?,
                "--udp" => options.udp = value.parse()?,
                "--delay" => options.path.delay = Delay::constant(parse_duration(&value)?),
                "--loss" => {
                    let uniform = parse_probability(&value)?;
                    options.path.loss = Loss { uniform, ..Loss::default() };
                }
                "--profile" => options.profile = value,
                _ => {
                    return Err(format!(
                        "{name} is no option; there are --http, --udp, --delay, --loss, --profile"
                    )
                    .into());
                }
            }
            options.has_link |= name == "--delay" || name == "--loss";
        }
        Ok(options)
    }
}

#[derive(Clone)]
struct Site {
    server: Arc<Server>,
    /// Connections that wait for the answer to their offer.
    offered: Arc<Mutex<(u64, BTreeMap<u64, Connection>)>>,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::read()?;
    let association = AssociationConfig::profile(&options.profile)
        .ok_or("no such profile: see `rexmit profiles`")?
        .outbound_streams(1024);
    let mut agent = AgentConfig::new(Identity::generate()?).association(association);
    // Peers send to the link, and the link to the server.
    let link = if options.has_link {
        let behind = UdpSocket::bind("127.0.0.1:0")?.local_addr()?;
        let config = EmulatorConfig::new(options.udp, behind);
        let link = config.forward(options.path.clone()).backward(options.path);
        Some((Emulator::start(&link)?, behind))
    } else {
        None
    };
    let udp = link.as_ref().map_or(options.udp, |(link, behind)| {
        agent.addresses = vec![link.local_addr()];
        *behind
    });
    let server = Arc::new(Server::bind(udp, ServeConfig::new(agent)).await?);
    let site = Site { server, offered: Arc::default() };
    let router = Router::new()
        .route("/", get(|| async { Html(include_str!("page.html")) }))
        .route("/offer", post(on_offer).get(on_wish))
        .route("/answer/{number}", post(on_answer))
        .with_state(site);
    let listener = tokio::net::TcpListener::bind(options.http).await?;
    println!("open http://{}/", listener.local_addr()?);
    axum::serve(listener, router).await?;
    Ok(())
}

fn refusal(error: &OfferError) -> Response {
    let status = match error {
        OfferError::Busy { .. } => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::BAD_REQUEST,
    };
    (status, error.to_string()).into_response()
}

const SDP: [(header::HeaderName, &str); 1] = [(header::CONTENT_TYPE, "application/sdp")];

async fn on_offer(State(site): State<Site>, offer: String) -> Response {
    match site.server.answer(&offer) {
        Ok((answer, connection)) => {
            tokio::spawn(echo(connection));
            (StatusCode::CREATED, SDP, answer).into_response()
        }
        Err(error) => refusal(&error),
    }
}

async fn on_wish(State(site): State<Site>) -> Response {
    match site.server.offer() {
        Ok((offer, connection)) => {
            let mut offered = site.offered.lock().expect("no panic before");
            let (last, waiting) = &mut *offered;
            *last += 1;
            waiting.insert(*last, connection);
            if waiting.len() > MAX_OFFERS {
                waiting.pop_first();
            }
            let location = [(header::LOCATION, format!("/answer/{last}"))];
            (SDP, location, offer).into_response()
        }
        Err(error) => refusal(&error),
    }
}

async fn on_answer(State(site): State<Site>, Path(number): Path<u64>, answer: String) -> Response {
    let connection = site.offered.lock().expect("no panic before").1.remove(&number);
    let Some(connection) = connection else { return StatusCode::NOT_FOUND.into_response() };
    match connection.accept(&answer) {
        Ok(()) => {
            tokio::spawn(echo(connection));
            StatusCode::NO_CONTENT.into_response()
        }
        Err(error) => refusal(&error),
    }
}

async fn echo(mut connection: Connection) {
    while let Some(event) = connection.event().await {
        match event {
            Event::Message { channel, message } if message.as_text() == Some("close") => {
                connection.close_channel(channel);
            }
            Event::Message { channel, message } => {
                // Fails only if the channel was closed meanwhile.
                let _ = connection.send(channel, message).await;
            }
            Event::Closed(reason) => println!("{reason}"),
            _ => {}
        }
    }
}
