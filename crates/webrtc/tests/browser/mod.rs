//! A page in a headless browser, with the HTTP server that serves it: the page POSTs offers to `/offer`, and its
//! results to `/result`. To answer instead, it GETs an offer, and POSTs the answer to its `Location`.

#![allow(dead_code, reason = "not every test uses all of it")]

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Path as UrlPath, State};
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse};
use axum::routing::{get, post};
use rexmit_webrtc::{Connection, OfferError, Server};
use serde_json::Value;
use tokio::sync::mpsc;

/// The address of this machine from which it would reach other hosts; that of the loopback interface if there is no
/// network.
pub(crate) fn own_address() -> IpAddr {
    let socket = UdpSocket::bind("0.0.0.0:0").expect("a socket");
    // Nothing is sent; the system only chooses a route.
    let _ = socket.connect("203.0.113.1:9");
    let ip = socket.local_addr().map_or(Ipv4Addr::LOCALHOST.into(), |local| local.ip());
    if ip.is_unspecified() { Ipv4Addr::LOCALHOST.into() } else { ip }
}

/// Settings without which Firefox has no candidates for a peer on the same machine.
const FIREFOX_PREFERENCES: &str = "user_pref('media.peerconnection.ice.default_address_only', false);\n\
     user_pref('media.peerconnection.ice.loopback', true);\n";

/// A kind of browser.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Chromium,
    Firefox,
}

impl Kind {
    /// The names of its program.
    const fn programs(self) -> &'static [&'static str] {
        match self {
            Self::Chromium => &["chromium", "chromium-browser", "google-chrome"],
            Self::Firefox => &["firefox-esr", "firefox"],
        }
    }

    fn arguments(self, profile: &Path) -> Vec<String> {
        let profile = profile.display();
        match self {
            Self::Chromium => [
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--disable-dev-shm-usage",
                // A page in the background is not slowed down.
                "--disable-background-timer-throttling",
                "--disable-renderer-backgrounding",
                // Runs until it is ended.
            ]
            .map(str::to_owned)
            .into_iter()
            .chain([format!("--user-data-dir={profile}")])
            .collect(),
            Self::Firefox => {
                let fixed = ["--headless", "--no-remote", "--new-instance", "--profile"];
                fixed.map(str::to_owned).into_iter().chain([profile.to_string()]).collect()
            }
        }
    }
}

/// A browser with a profile of its own; dropping it ends all of its processes.
pub(crate) struct Browser {
    /// `None` once it is killed.
    child: Option<Child>,
    profile: tempfile::TempDir,
}

impl Browser {
    /// Opens `url`; `None` where there is no such browser.
    pub(crate) fn open(kind: Kind, url: &str) -> Option<Self> {
        let program = kind.programs().iter().find(|browser| {
            let mut probe = Command::new(browser);
            probe.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
            probe.status().is_ok_and(|status| status.success())
        });
        let Some(program) = program else {
            let package = kind.programs()[0];
            rexmit_testkit::not_run(format_args!(
                "{package} is not installed (apt-get install {package})"
            ));
            return None;
        };
        if kind == Kind::Firefox && own_address().is_loopback() {
            rexmit_testkit::not_run(
                "Firefox connects to other addresses than the loopback interface's",
            );
            return None;
        }
        let profile = tempfile::tempdir().expect("a directory");
        if kind == Kind::Firefox {
            std::fs::write(profile.path().join("user.js"), FIREFOX_PREFERENCES).expect("a file");
        }
        let child = Command::new(program)
            .args(kind.arguments(profile.path()))
            .arg(url)
            .env("HOME", profile.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .expect("a browser that has told its version");
        Some(Self { child: Some(child), profile })
    }

    /// Kills all of its processes, as when a device is switched off.
    pub(crate) fn kill(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        let group = format!("-{}", child.id());
        let _ = Command::new("kill").args(["-9", "--", &group]).status();
        let _ = child.wait();
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A request of the page, for the test.
pub(crate) enum Request {
    /// A connection that a page has offered.
    Connection(Connection),
    /// The findings of a page.
    Result(Value),
}

/// The HTTP server.
pub(crate) struct Site {
    pub(crate) address: SocketAddr,
    pub(crate) requests: mpsc::UnboundedReceiver<Request>,
    /// One for each time that a browser has fetched the page.
    pub(crate) fetched: mpsc::UnboundedReceiver<()>,
}

#[derive(Clone)]
struct Shared {
    server: Arc<Server>,
    page: Arc<str>,
    requests: mpsc::UnboundedSender<Request>,
    fetched: mpsc::UnboundedSender<()>,
    /// Connections that wait for the answer to the server's offer, by the number in their URL.
    offered: Arc<Mutex<BTreeMap<usize, Connection>>>,
}

impl Site {
    /// Serves `page` from a free port.
    pub(crate) async fn start(server: Arc<Server>, page: &str) -> Self {
        let (sender, requests) = mpsc::unbounded_channel();
        let (on_fetched, fetched) = mpsc::unbounded_channel();
        let shared = Shared {
            server,
            page: page.into(),
            requests: sender,
            fetched: on_fetched,
            offered: Arc::default(),
        };
        let router = Router::new()
            .route(
                "/",
                get(|State(shared): State<Shared>| async move {
                    let _ = shared.fetched.send(());
                    Html(shared.page.to_string())
                }),
            )
            .route("/offer", post(on_offer).get(on_wish))
            .route("/answer/{number}", post(on_answer))
            .route("/result", post(on_result))
            .with_state(shared);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, requests, fetched }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }
}

async fn on_offer(State(shared): State<Shared>, offer: String) -> impl IntoResponse {
    match shared.server.answer(&offer) {
        Ok((answer, connection)) => {
            let _ = shared.requests.send(Request::Connection(connection));
            (StatusCode::CREATED, [(header::CONTENT_TYPE, "application/sdp")], answer)
        }
        Err(error) => {
            let status = match error {
                OfferError::Busy { .. } => StatusCode::SERVICE_UNAVAILABLE,
                _ => StatusCode::BAD_REQUEST,
            };
            (status, [(header::CONTENT_TYPE, "text/plain")], error.to_string())
        }
    }
}

async fn on_wish(State(shared): State<Shared>) -> impl IntoResponse {
    let (offer, connection) = shared.server.offer().expect("room for a peer");
    let mut offered = shared.offered.lock().expect("no panic before");
    let number = offered.last_key_value().map_or(0, |(last, _)| last + 1);
    offered.insert(number, connection);
    ([(header::LOCATION, format!("/answer/{number}"))], offer)
}

async fn on_answer(
    State(shared): State<Shared>,
    UrlPath(number): UrlPath<usize>,
    answer: String,
) -> (StatusCode, String) {
    let connection = shared.offered.lock().expect("no panic before").remove(&number);
    let Some(connection) = connection else { return (StatusCode::NOT_FOUND, String::new()) };
    match connection.accept(&answer) {
        Ok(()) => {
            let _ = shared.requests.send(Request::Connection(connection));
            (StatusCode::NO_CONTENT, String::new())
        }
        Err(error) => (StatusCode::BAD_REQUEST, error.to_string()),
    }
}

async fn on_result(State(shared): State<Shared>, result: String) -> StatusCode {
    let result = serde_json::from_str(&result).unwrap_or(Value::String(result));
    let _ = shared.requests.send(Request::Result(result));
    StatusCode::NO_CONTENT
}
