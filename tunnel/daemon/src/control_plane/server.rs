//! The HTTP server on the tunnel's socket.
//!
//! | request | response |
//! |---|---|
//! | `GET /v1/status` | the [status](crate::status::TunnelStatus) as JSON |
//! | `GET /metrics` | the same as OpenMetrics text |
//! | `POST /v1/reload` | reads the file again; the changes, one line each |
//! | `POST /v1/down` | ends the tunnel |
//! | `POST /v1/paths` | adds the path of the body, a `[[path]]` in TOML |
//! | `DELETE /v1/paths/NAME` | removes the path |

use super::handle::DataPlaneHandle;
use super::metrics;
use super::privileges::process_status;
use crate::status::TunnelStatus;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use axum::{Json, Router};
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
}

/// A request, and the channel of its result, a text.
pub(super) type PendingRequest = (Request, oneshot::Sender<Result<String, String>>);

/// State shared by the handlers.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) data_plane: Arc<dyn DataPlaneHandle>,
    pub(super) requests: mpsc::Sender<PendingRequest>,
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
    tokio::time::timeout(TIMEOUT, receiver).await.ok()?.ok()
}

/// The routes: the metrics, and all others if `is_control_socket` (the TCP address serves the metrics only).
pub(super) fn routes(shared: Shared, is_control_socket: bool) -> Router {
    let metrics = Router::new().route("/metrics", get(metrics_text));
    let router = if is_control_socket {
        metrics
            .route("/v1/status", get(status))
            .route("/v1/down", post(|shared| handle(shared, Request::Down)))
            .route("/v1/reload", post(|shared| handle(shared, Request::Reload)))
            .route("/v1/paths", post(|shared, text: String| handle(shared, Request::AddPath(text))))
            .route("/v1/paths/{name}", delete(|shared, Path(name)| handle(shared, Request::RemovePath(name))))
    } else {
        metrics
    };
    router.with_state(shared)
}

/// A router over a data plane without a control loop: only the status and the metrics work.
pub fn router(data_plane: Arc<dyn DataPlaneHandle>) -> Router {
    let (requests, _) = mpsc::channel(1);
    routes(Shared { data_plane, requests }, true)
}

async fn status(State(shared): State<Shared>) -> Response {
    match request_status(&*shared.data_plane).await {
        Some(status) => Json(TunnelStatus { process: process_status(), ..status }).into_response(),
        None => unavailable(),
    }
}

async fn metrics_text(State(shared): State<Shared>) -> Response {
    match request_status(&*shared.data_plane).await {
        Some(status) => ([(header::CONTENT_TYPE, metrics::MEDIA_TYPE)], metrics::encode_openmetrics(&Arc::new(status)))
            .into_response(),
        None => unavailable(),
    }
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
        Ok(Err(error)) => (StatusCode::BAD_REQUEST, error).into_response(),
        Err(_) => unavailable(),
    }
}
