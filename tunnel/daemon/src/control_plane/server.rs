//! The HTTP server on the tunnel's socket.
//!
//! | request | response |
//! |---|---|
//! | `GET /v1/status` | the [status](crate::status::TunnelStatus) as JSON |
//! | `GET /v1/events?since=N` | the kept [events](crate::event::Event) with a sequence above N (0 without it) as a JSON list |
//! | `POST /v1/events` | adds an event of this host, from `ropewalk setup keep` |
//! | `GET /v1/clients` | the [clients](super::KnownClient) that have said hello, as a JSON list |
//! | `GET /v1/history` | [the samples](crate::dashboard) between two times, as JSON |
//! | `GET /v1/stream` | the samples of each second, and each event, as server-sent events |
//! | `GET /metrics?max-peers=N` | the status as metrics, in the format that `Accept` prefers |
//! | `POST /v1/reload` | reads the file again; the changes, one line each |
//! | `POST /v1/down` | ends the tunnel |
//! | `POST /v1/paths` | adds the path of the body, a `[[path]]` in TOML |
//! | `DELETE /v1/paths/NAME` | removes the path |
//! | `POST /v1/alone/NAME` | makes the other paths backups for at most a minute, to test this one |
//! | `DELETE /v1/alone` | ends that |

use super::clients::{Clients, Hello};
use super::handle::{DataPlaneHandle, PendingStatus};
use super::metrics::{MAX_PEERS, MetricsFormat, encode_metrics};
use super::monitor::Observer;
use super::privileges::process_status;
use crate::config::{Announcement, ClientIdentity, LOCKED};
use crate::event::{Event, EventKind, HostEvent};
use crate::status::TunnelStatus;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use axum::{Json, Router};
use std::net::IpAddr;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// The longest wait for the data plane's status.
const TIMEOUT: Duration = Duration::from_secs(2);

/// A request to the control loop.
#[derive(Debug)]
pub(super) enum Request {
    Down,
    Reload,
    AddPath(String),
    RemovePath(String),
    /// The client with the inner address has sent its own keys, and the networks behind it.
    Enrol(IpAddr, ClientIdentity),
    /// A client with a key of its own says what it is; the result is what the server announces.
    Hello(IpAddr, Hello),
    /// The client with the inner address has sent other keys.
    Rotate(IpAddr, ClientIdentity),
    /// The client has read its answer: its key replaces the one-time key, or its earlier key.
    EndEnrolment,
    /// The other paths become backups until [`Request::AllPaths`] or the end of [`ALONE_LEASE`].
    PathAlone(String),
    AllPaths,
}

/// Why a request was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The configuration is wrong: all of its errors.
    Configuration(String),
    /// Another process holds the lock of the list of peers.
    Busy,
    /// Anything else.
    Other(String),
}

impl Refusal {
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Configuration(text) | Self::Other(text) => text,
            Self::Busy => LOCKED,
        }
    }
}

/// A request, and the channel of its result, a text.
pub(super) type PendingRequest = (Request, oneshot::Sender<Result<String, Refusal>>);

/// State shared by the handlers.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) data_plane: Arc<dyn DataPlaneHandle>,
    pub(super) requests: mpsc::Sender<PendingRequest>,
    pub(super) observer: Arc<Observer>,
    pub(super) program_version: String,
    clients: Arc<Clients>,
    announcement_file: Option<PathBuf>,
}

impl Shared {
    pub(super) fn new(
        data_plane: Arc<dyn DataPlaneHandle>,
        requests: mpsc::Sender<PendingRequest>,
        observer: &Arc<Observer>,
        program_version: &str,
    ) -> Self {
        Self {
            data_plane,
            requests,
            observer: Arc::clone(observer),
            program_version: program_version.to_owned(),
            clients: Arc::default(),
            announcement_file: None,
        }
    }

    /// With a server's clients.
    pub(super) fn with_clients(self, clients: &Arc<Clients>, peers_file: Option<&FilePath>) -> Self {
        Self { clients: Arc::clone(clients), announcement_file: peers_file.map(Announcement::file), ..self }
    }

    /// The status, with the control thread's additions.
    async fn status(&self) -> Option<TunnelStatus> {
        let status = request_status(&*self.data_plane).await?;
        let program_version = Some(self.program_version.clone());
        Some(self.observer.annotate(TunnelStatus { program_version, process: process_status(), ..status }))
    }
}

/// The query of `GET /v1/events`.
#[derive(Debug, Default, serde::Deserialize)]
struct EventsQuery {
    #[serde(default)]
    since: u64,
}

/// The query of `GET /metrics`.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
struct MetricsQuery {
    max_peers: Option<usize>,
}

/// Requests the status of the data plane; `None` if it does not answer.
pub(super) async fn request_status(data_plane: &dyn DataPlaneHandle) -> Option<TunnelStatus> {
    let (sender, receiver) = oneshot::channel();
    let is_requested = data_plane.request_status(Box::new(move |status| {
        // The receiver is gone after a timeout.
        let _ = sender.send(status);
    }));
    if !is_requested {
        return None;
    }
    let pending: PendingStatus = tokio::time::timeout(TIMEOUT, receiver).await.ok()?.ok()?;
    pending()
}

/// The routes that change nothing and reveal no more than `ropewalk show`.
pub(super) fn read_only_routes(shared: Shared) -> Router {
    let routes = Router::new().route("/metrics", get(metrics_text)).route("/v1/status", get(status));
    routes.route("/v1/events", get(events)).with_state(shared)
}

/// The route of the metrics only.
pub(super) fn metrics_routes(shared: Shared) -> Router {
    Router::new().route("/metrics", get(metrics_text)).with_state(shared)
}

/// The routes of the control socket.
pub(super) fn routes(shared: Shared) -> Router {
    let router = Router::new()
        .route("/v1/clients", get(clients))
        .route("/v1/down", post(|shared| handle(shared, Request::Down)))
        .route("/v1/events", post(add_event))
        .route("/v1/reload", post(|shared| handle(shared, Request::Reload)))
        .route("/v1/paths", post(|shared, text: String| handle(shared, Request::AddPath(text))))
        .route("/v1/alone", delete(|shared| handle(shared, Request::AllPaths)))
        .route("/v1/alone/{name}", post(|shared, Path(name)| handle(shared, Request::PathAlone(name))))
        .route("/v1/paths/{name}", delete(|shared, Path(name)| handle(shared, Request::RemovePath(name))));
    router.with_state(shared.clone()).merge(read_only_routes(shared))
}

/// A router over a data plane without a control loop: only the status and the metrics work.
pub fn router(data_plane: Arc<dyn DataPlaneHandle>) -> Router {
    let (requests, _) = mpsc::channel(1);
    routes(Shared::new(data_plane, requests, &Arc::default(), ""))
}

async fn status(State(shared): State<Shared>) -> Response {
    match shared.status().await {
        Some(status) => Json(status).into_response(),
        None => unavailable(),
    }
}

async fn events(State(shared): State<Shared>, Query(query): Query<EventsQuery>) -> Json<Vec<Event>> {
    Json(shared.observer.events.since(query.since))
}

async fn clients(State(shared): State<Shared>) -> Response {
    let announcement = shared.announcement_file.as_deref().and_then(|file| Announcement::read(file).ok());
    Json(shared.clients.list(&announcement.unwrap_or_default())).into_response()
}

async fn add_event(State(shared): State<Shared>, text: String) -> Response {
    let Ok(HostEvent { level, message, remedy }) = serde_json::from_str(&text) else {
        return (StatusCode::UNPROCESSABLE_ENTITY, "an event has `level`, `message` and `remedy`\n").into_response();
    };
    shared.observer.events.push(Event { remedy, ..Event::new(level, EventKind::Host, message) });
    StatusCode::OK.into_response()
}

async fn metrics_text(State(shared): State<Shared>, Query(query): Query<MetricsQuery>, headers: HeaderMap) -> Response {
    let Some(status) = shared.status().await else { return unavailable() };
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    let format = MetricsFormat::preferred(accept.unwrap_or_default());
    let text = encode_metrics(&status, &shared.observer.events.counts(), query.max_peers.unwrap_or(MAX_PEERS), format);
    ([(header::CONTENT_TYPE, format.media_type())], text).into_response()
}

fn unavailable() -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, "the data plane does not answer\n").into_response()
}

async fn handle(State(shared): State<Shared>, request: Request) -> Response {
    let (sender, receiver) = oneshot::channel();
    if shared.requests.send((request, sender)).await.is_err() {
        return (StatusCode::SERVICE_UNAVAILABLE, "the tunnel is going down\n").into_response();
    }
    match receiver.await {
        Ok(Ok(text)) => text.into_response(),
        Ok(Err(Refusal::Configuration(errors))) => (StatusCode::UNPROCESSABLE_ENTITY, errors).into_response(),
        Ok(Err(refusal)) => (StatusCode::BAD_REQUEST, refusal.text().to_owned()).into_response(),
        Err(_) => unavailable(),
    }
}
