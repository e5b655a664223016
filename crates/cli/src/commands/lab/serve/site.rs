//! The requests that the server answers.
//!
//! | request | body | answer |
//! |---|---|---|
//! | `GET /` | | the page |
//! | `POST /run` | settings, JSON | lines of JSON: `{"waiting":true}`, `{"done":3,"runs":15}`, `{}` from time to time, then `{"answer":…}` or `{"problem":"…"}` |
//! | `POST /file` | settings, JSON | the file of the study, TOML |
//! | `POST /settings` | such a file, TOML | its settings, JSON |
//!
//! An invalid request is answered by a text with the reason.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};
use futures_core::Stream;
use rexmit_study::MAX_BYTES;
use rexmit_study::Study;
use rexmit_study::explore::Settings;
use rexmit_study::page::explore;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use super::guard;
use super::queue::{Place, Queue};
use super::work::{self, Ended};

/// The limit of the time in which the body of a request arrives and is accepted, without its runs. That of the head is in
/// `listener`.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);
/// Time between two lines without content: a connection that transmits nothing is closed.
const BEAT: Duration = Duration::from_secs(10);
/// Lines of an answer that wait for the reader.
const LINES: usize = 16;

/// The server's state.
pub(super) struct Site {
    page: String,
    /// Allowed host names.
    names: Vec<String>,
    jobs: usize,
    queue: Queue,
}

/// A refused request, and why.
type Refused = (StatusCode, String);

impl Site {
    pub(super) fn new(page: String, names: Vec<String>, jobs: usize) -> Arc<Self> {
        Arc::new(Self { page, names, jobs, queue: Queue::new() })
    }

    pub(super) fn router(self: Arc<Self>) -> Router {
        Router::new()
            .route("/", get(page))
            .route("/run", post(run))
            .route("/file", post(file))
            .route("/settings", post(settings))
            .layer(DefaultBodyLimit::max(MAX_BYTES))
            .layer(from_fn_with_state(Arc::clone(&self), guarded))
            .with_state(self)
    }
}

/// Serves a request of this page in time, and refuses others.
async fn guarded(State(site): State<Arc<Site>>, request: Request, next: Next) -> Response {
    if let Err(refusal) = guard::check(request.method(), request.headers(), &site.names) {
        // A page of another site cannot occupy connections.
        let close = [(CONNECTION, "close")];
        return (refusal.status(), close, refusal.words()).into_response();
    }
    let answer = tokio::time::timeout(REQUEST_TIMEOUT, next.run(request)).await;
    let mut response = answer.unwrap_or_else(|_| StatusCode::REQUEST_TIMEOUT.into_response());
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // The page has a policy of its own; a policy in the page cannot forbid that it is framed.
    let policy = HeaderValue::from_static("frame-ancestors 'none'");
    headers.insert(CONTENT_SECURITY_POLICY, policy);
    response
}

async fn page(State(site): State<Arc<Site>>) -> Html<String> {
    Html(site.page.clone())
}

async fn file(body: Bytes) -> Result<Response, Refused> {
    let text = blocking(move || asked(&body)?.text().map_err(refused)).await?;
    Ok(([(CONTENT_TYPE, "application/toml")], text).into_response())
}

async fn settings(body: Bytes) -> Result<Response, Refused> {
    let found = blocking(move || {
        let text = std::str::from_utf8(&body).map_err(refused)?;
        Settings::read(text).map_err(refused)
    });
    let json = serde_json::to_string(&found.await?).map_err(refused)?;
    Ok(([(CONTENT_TYPE, "application/json")], json).into_response())
}

async fn run(State(site): State<Arc<Site>>, body: Bytes) -> Result<Response, Refused> {
    let study = blocking(move || asked(&body)?.study().map_err(refused)).await?;
    let place = site.queue.enter().ok_or_else(|| {
        let what = "too many questions at a time: try again in a few seconds";
        (StatusCode::SERVICE_UNAVAILABLE, what.to_owned())
    })?;
    let (lines, read) = mpsc::channel(LINES);
    tokio::spawn(async move {
        tokio::select! {
            () = answer(study, site.jobs, place, lines.clone()) => {}
            () = beat(&lines, BEAT) => {}
        }
    });
    let body = Body::from_stream(Lines(read));
    Ok(([(CONTENT_TYPE, "application/x-ndjson")], body).into_response())
}

fn asked(body: &[u8]) -> Result<Settings, Refused> {
    serde_json::from_slice(body).map_err(refused)
}

#[expect(clippy::needless_pass_by_value, reason = "`map_err` hands the error over")]
fn refused(error: impl ToString) -> Refused {
    (StatusCode::BAD_REQUEST, error.to_string())
}

/// Checks settings on another thread: it reads a trace, and counts its messages.
async fn blocking<T: Send + 'static>(
    check: impl FnOnce() -> Result<T, Refused> + Send + 'static,
) -> Result<T, Refused> {
    let checked = tokio::task::spawn_blocking(check).await;
    checked.unwrap_or_else(|error| Err((StatusCode::INTERNAL_SERVER_ERROR, error.to_string())))
}

/// Writes a line without content every `period` until the client has gone. A full channel needs none.
async fn beat(lines: &mpsc::Sender<String>, period: Duration) {
    loop {
        tokio::time::sleep(period).await;
        if let Err(TrySendError::Closed(_)) = lines.try_send("{}\n".to_owned()) {
            return;
        }
    }
}

/// Runs the study when it is its turn, and writes lines about it until the client has gone.
async fn answer(study: Study, jobs: usize, place: Place, lines: mpsc::Sender<String>) {
    if place.waits() {
        let _ = lines.try_send("{\"waiting\":true}\n".to_owned());
    }
    let turn = tokio::select! {
        turn = place.turn() => turn,
        () = lines.closed() => return,
    };
    let told = lines.clone();
    let run = move || {
        // The turn ends with the runs: a slow reader of the answer delays no other client.
        let _turn = turn;
        let runs = study.runs();
        let is_awaited = |done| {
            let line = format!("{{\"done\":{done},\"runs\":{runs}}}\n");
            // A reader may miss progress, but no run waits for it.
            !matches!(told.try_send(line), Err(TrySendError::Closed(_)))
        };
        last_line(work::run(&study, jobs, is_awaited))
    };
    // A panic of a run is reported by `execute`; one of this code ends the answer without a last line.
    if let Ok(Some(last)) = tokio::task::spawn_blocking(run).await {
        let _ = lines.send(last).await;
    }
}

fn last_line(ended: Ended) -> Option<String> {
    let problem = |what: String| format!("{}\n", json!({ "problem": what }));
    match ended {
        Ended::Page(page) => Some(match explore::answer(&page) {
            Ok(answer) => format!("{{\"answer\":{answer}}}\n"),
            Err(error) => problem(error.to_string()),
        }),
        Ended::Failed(what) => Some(problem(what)),
        Ended::Left => None,
    }
}

/// The lines of an answer as a body.
struct Lines(mpsc::Receiver<String>);

impl Stream for Lines {
    type Item = Result<String, std::convert::Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context).map(|line| line.map(Ok))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_comes_from_time_to_time_until_nobody_reads() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let (lines, mut read) = mpsc::channel(LINES);
            let beat = tokio::spawn(async move { beat(&lines, Duration::from_millis(1)).await });
            for _ in 0..3 {
                assert_eq!(read.recv().await.as_deref(), Some("{}\n"));
            }
            drop(read);
            beat.await.unwrap();
        });
    }
}
