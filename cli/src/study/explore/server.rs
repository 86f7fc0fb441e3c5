//! The server of the page, on loopback. The page's address has a random token, which each request repeats; the `Host` header must
//! name this server, so that a page of another site cannot reach it under another name (DNS rebinding).
//!
//! A request runs in one of as many places as there are cores. When its connection closes, because the page has a newer
//! question or is closed, its runs stop.

use super::answer::{Answers, Question, Refusal};
use super::source::Sources;
use crate::Failure;
use axum::extract::{Request, State};
use axum::http::header::{self, AUTHORIZATION, HOST};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use runner::Driver;
use serde_json::{Value, json};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use subtle::ConstantTimeEq;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// The server.
pub(super) struct Explorer {
    address: SocketAddr,
    token: String,
    answers: Answers,
    /// A place for each run that may be under way.
    places: Arc<Semaphore>,
}

impl Explorer {
    /// A server at `address`, with a new token.
    pub(super) fn new(
        address: SocketAddr,
        sources: Sources,
        driver: Box<dyn Driver + Send>,
    ) -> Result<Arc<Self>, Failure> {
        let places = Arc::new(Semaphore::new(runner::available_cores()));
        Ok(Arc::new(Self { address, token: random()?, answers: Answers::new(sources, driver), places }))
    }

    /// The address of the page.
    pub(super) fn url(&self) -> String {
        format!("http://{}/?token={}", self.address, self.token)
    }

    /// Serves until the program ends.
    pub(super) async fn serve(self: Arc<Self>, listener: TcpListener) -> io::Result<()> {
        let routes = Router::new()
            .route("/", get(page))
            .route("/v1/scenarios", get(scenarios))
            .route("/v1/describe", post(describe))
            .route("/v1/run", post(run))
            .route("/v1/sweep", post(sweep));
        let guard = from_fn_with_state(Arc::clone(&self), guard);
        axum::serve(listener, routes.with_state(self).layer(guard)).await
    }

    /// Whether a request may be answered, or why not.
    fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), &'static str> {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let hosts = [self.address.to_string(), format!("localhost:{}", self.address.port())];
        if !text(HOST).is_some_and(|host| hosts.iter().any(|own| own == host)) {
            return Err("the Host header names another host than this one");
        }
        let given = match uri.path() {
            "/" => uri.query().and_then(|query| query.strip_prefix("token=")),
            _ => text(AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer ")),
        };
        let is_equal = |given: &str| given.as_bytes().ct_eq(self.token.as_bytes()).into();
        match given.is_some_and(is_equal) {
            true => Ok(()),
            false => Err("the token is missing or wrong: open the address that `ropewalk explore` prints"),
        }
    }
}

/// 128 random bits in hexadecimal digits.
fn random() -> Result<String, Failure> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| Failure::Environment(format!("the system has no random numbers: {error}")))?;
    Ok(format!("{:032x}", u128::from_le_bytes(bytes)))
}

/// Refuses requests of others, and sets the headers that keep out pages of other sites.
async fn guard(State(explorer): State<Arc<Explorer>>, request: Request, next: Next) -> Response {
    let mut response = match explorer.check(request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(reason) => (StatusCode::FORBIDDEN, format!("{reason}\n")).into_response(),
    };
    for (name, value) in [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// The script of the page.
const SCRIPT: &str =
    concat!(include_str!("page/controls.js"), include_str!("page/sweep.js"), include_str!("page/script.js"));

/// The page with its style and script inline. A random number per response makes its script the only one that a browser runs. The
/// figures have their colours in `style` attributes.
async fn page() -> Response {
    let Ok(nonce) = random() else { return StatusCode::INTERNAL_SERVER_ERROR.into_response() };
    let style = format!("{}\n{}", report::live_style(), include_str!("page/style.css"));
    let text = include_str!("page/index.html")
        .replace("/*STYLE*/", &style)
        .replace("/*SCRIPT*/", SCRIPT)
        .replace("NONCE", &nonce);
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'unsafe-inline'; connect-src 'self'; img-src data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    ([(header::CONTENT_SECURITY_POLICY, policy)], Html(text)).into_response()
}

async fn scenarios(State(explorer): State<Arc<Explorer>>) -> Json<Value> {
    Json(explorer.answers.sources.list())
}

async fn describe(State(explorer): State<Arc<Explorer>>, Json(question): Json<Question>) -> Response {
    work(explorer, move |answers, _| answers.describe(&question)).await
}

async fn run(State(explorer): State<Arc<Explorer>>, Json(question): Json<Question>) -> Response {
    work(explorer, move |answers, cancelled| answers.answer(&question, cancelled)).await
}

async fn sweep(State(explorer): State<Arc<Explorer>>, Json(question): Json<Question>) -> Response {
    work(explorer, move |answers, cancelled| answers.sweep(&question, cancelled)).await
}

/// A flag that is set when the request that holds it is answered, or dropped because its connection closed.
#[derive(Default)]
struct Cancel(Arc<AtomicBool>);

impl Drop for Cancel {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The response of `answer`, which works on another thread, in its turn, until the request is dropped.
async fn work(
    explorer: Arc<Explorer>,
    answer: impl FnOnce(&Answers, &AtomicBool) -> Result<Value, Refusal> + Send + 'static,
) -> Response {
    let cancel = Cancel::default();
    let cancelled = Arc::clone(&cancel.0);
    let Ok(place) = Arc::clone(&explorer.places).acquire_owned().await else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    let worker = tokio::task::spawn_blocking(move || {
        let _place = place;
        answer(&explorer.answers, &cancelled)
    });
    let failed = |message: &str| {
        (StatusCode::INTERNAL_SERVER_ERROR, Json(json!({ "key": "", "message": message, "help": "" }))).into_response()
    };
    match worker.await {
        Ok(Ok(answer)) => Json(answer).into_response(),
        Ok(Err(Refusal::Scenario(message))) => (StatusCode::UNPROCESSABLE_ENTITY, Json(message)).into_response(),
        Ok(Err(Refusal::Unknown)) => StatusCode::NOT_FOUND.into_response(),
        Ok(Err(Refusal::Cancelled)) => StatusCode::SERVICE_UNAVAILABLE.into_response(),
        Ok(Err(Refusal::Failed(message))) => failed(&message),
        Err(_) => failed("the run ended by a bug of Ropewalk; its output in the terminal says where"),
    }
}
