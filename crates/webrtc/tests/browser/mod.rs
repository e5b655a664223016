//! A page in headless Chromium, with the HTTP server that it comes from: offers are POSTed to `/offer`, and what the
//! page has found to `/result`.

#![allow(dead_code, reason = "not every test uses all of it")]

use std::net::SocketAddr;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse};
use axum::routing::{get, post};
use rexmit_webrtc::{Connection, OfferError, Server};
use serde_json::Value;
use tokio::sync::mpsc;

const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Chromium with a profile of its own; dropping it ends all of its processes.
pub(crate) struct Browser {
    /// Until it is killed.
    child: Option<Child>,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// Opens `url`; `None` where there is no browser.
    pub(crate) fn open(url: &str) -> Option<Self> {
        let program = BROWSERS.into_iter().find(|browser| {
            let mut probe = Command::new(browser);
            probe.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
            probe.status().is_ok_and(|status| status.success())
        });
        let Some(program) = program else {
            eprintln!("not run: chromium is not installed (apt-get install chromium)");
            return None;
        };
        let profile = tempfile::tempdir().expect("a directory");
        let child = Command::new(program)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"])
            .args(["--disable-background-networking", "--disable-component-update"])
            // A page that nobody looks at is not slowed down.
            .args(["--disable-background-timer-throttling", "--disable-renderer-backgrounding"])
            .args(["--disable-sync", "--disable-dev-shm-usage"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .args(["--remote-debugging-port=0", url])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .expect("a browser that has told its version");
        Some(Self { child: Some(child), _profile: profile })
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

/// What the page's server gives the test.
pub(crate) enum Request {
    /// A connection that a page has offered.
    Connection(Connection),
    /// What a page has found.
    Result(Value),
}

/// The HTTP server.
pub(crate) struct Site {
    pub(crate) address: SocketAddr,
    pub(crate) requests: mpsc::UnboundedReceiver<Request>,
}

#[derive(Clone)]
struct Shared {
    server: Arc<Server>,
    page: Arc<str>,
    requests: mpsc::UnboundedSender<Request>,
}

impl Site {
    /// Serves `page` from a free port.
    pub(crate) async fn start(server: Arc<Server>, page: &str) -> Self {
        let (sender, requests) = mpsc::unbounded_channel();
        let shared = Shared { server, page: page.into(), requests: sender };
        let router = Router::new()
            .route(
                "/",
                get(|State(shared): State<Shared>| async move { Html(shared.page.to_string()) }),
            )
            .route("/offer", post(on_offer))
            .route("/result", post(on_result))
            .with_state(shared);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, requests }
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

async fn on_result(State(shared): State<Shared>, result: String) -> StatusCode {
    let result = serde_json::from_str(&result).unwrap_or(Value::String(result));
    let _ = shared.requests.send(Request::Result(result));
    StatusCode::NO_CONTENT
}
