//! A server whose peers get back what they send, for browsers and for other implementations.
//!
//! ```text
//! cargo run --release -p rexmit-webrtc --example channels -- [--http 127.0.0.1:8080] [--udp 127.0.0.1:4000]
//!     [--delay 50ms] [--loss 5%] [--profile interactive]
//! ```
//! `GET /` is a page to try it with. `POST /offer` takes an offer and returns the answer (as WHIP, RFC 9725). A peer
//! that prefers to answer gets an offer by `GET /offer`, and POSTs its answer to the `Location` of that response. With
//! `--delay` or `--loss` there is an emulated link in between, with this delay and loss in each direction.
//!
//! A message `close` makes the server close its channel. ICE is restarted at `/restart/N`, with the number `N` of the
//! `Location`: POST of an offer returns the answer, GET an offer, and POST to `/restart/N/answer` takes its answer. A
//! message `restarted` follows on channels with the label `restarts`.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, MutexGuard};

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
use rexmit_webrtc::{
    AgentConfig, Connection, Event, Message, OfferError, Sender, ServeConfig, Server,
};

/// The most offers that wait for their answers, and the most connections that can restart ICE.
const MAX_KEPT: usize = 64;

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
    kept: Arc<Mutex<Kept>>,
}

/// The last connections, by number.
#[derive(Default)]
struct Kept {
    last: u64,
    /// Connections that wait for the answer to their offer.
    offered: BTreeMap<u64, Connection>,
    senders: BTreeMap<u64, Sender>,
}

impl Kept {
    fn add(&mut self, sender: Sender) -> u64 {
        self.last += 1;
        self.senders.insert(self.last, sender);
        if self.senders.len() > MAX_KEPT {
            self.senders.pop_first();
        }
        self.last
    }
}

impl Site {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().expect("no panic before")
    }
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
    let site = Site { server, kept: Arc::default() };
    let router = Router::new()
        .route("/", get(|| async { Html(include_str!("page.html")) }))
        .route("/offer", post(on_offer).get(on_wish))
        .route("/answer/{number}", post(on_answer))
        .route("/restart/{number}", post(on_restart).get(on_restart_wish))
        .route("/restart/{number}/answer", post(on_restart_answer))
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
            let number = site.kept().add(connection.sender());
            tokio::spawn(echo(connection));
            let location = [(header::LOCATION, format!("/restart/{number}"))];
            (StatusCode::CREATED, SDP, location, answer).into_response()
        }
        Err(error) => refusal(&error),
    }
}

async fn on_wish(State(site): State<Site>) -> Response {
    match site.server.offer() {
        Ok((offer, connection)) => {
            let mut kept = site.kept();
            let last = kept.add(connection.sender());
            kept.offered.insert(last, connection);
            if kept.offered.len() > MAX_KEPT {
                kept.offered.pop_first();
            }
            let location = [(header::LOCATION, format!("/answer/{last}"))];
            (SDP, location, offer).into_response()
        }
        Err(error) => refusal(&error),
    }
}

async fn on_answer(State(site): State<Site>, Path(number): Path<u64>, answer: String) -> Response {
    let connection = site.kept().offered.remove(&number);
    let Some(connection) = connection else { return StatusCode::NOT_FOUND.into_response() };
    match connection.accept(&answer) {
        Ok(()) => {
            tokio::spawn(echo(connection));
            StatusCode::NO_CONTENT.into_response()
        }
        Err(error) => refusal(&error),
    }
}

/// Restarts ICE of the connection `number` by `act`.
fn restart(
    site: &Site,
    number: u64,
    act: impl Fn(&Sender) -> Result<String, OfferError>,
) -> Response {
    let sender = site.kept().senders.get(&number).cloned();
    match sender.map(|sender| act(&sender)) {
        Some(Ok(description)) => (SDP, description).into_response(),
        Some(Err(error)) => refusal(&error),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn on_restart(State(site): State<Site>, Path(number): Path<u64>, offer: String) -> Response {
    restart(&site, number, |sender| sender.answer_again(&offer))
}

async fn on_restart_wish(State(site): State<Site>, Path(number): Path<u64>) -> Response {
    restart(&site, number, Sender::restart_ice)
}

async fn on_restart_answer(
    State(site): State<Site>,
    Path(number): Path<u64>,
    answer: String,
) -> Response {
    restart(&site, number, |sender| sender.accept(&answer).map(|()| String::new()))
}

async fn echo(mut connection: Connection) {
    let mut channels = BTreeSet::new();
    while let Some(event) = connection.event().await {
        // Sending fails only if the channel was closed meanwhile.
        match event {
            Event::ChannelOpened { channel, config, .. } if config.label == "restarts" => {
                channels.insert(channel);
            }
            Event::IceRestarted => {
                for &channel in &channels {
                    let _ = connection.send(channel, Message::text("restarted")).await;
                }
            }
            Event::Message { channel, message } if message.as_text() == Some("close") => {
                connection.close_channel(channel);
            }
            Event::Message { channel, message } => {
                let _ = connection.send(channel, message).await;
            }
            Event::Closed(reason) => println!("{reason}"),
            _ => {}
        }
    }
}
