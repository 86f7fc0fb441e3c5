//! HTTP on the tunnel's socket: what is asked and demanded of a running daemon.
//!
//! | request | answer |
//! |---|---|
//! | `GET /v1/status` | the [status](crate::status::Status) as JSON |
//! | `GET /metrics` | the same as OpenMetrics text |
//! | `POST /v1/reload` | reads the file again; what changed, a line each |
//! | `POST /v1/down` | ends the tunnel |
//! | `POST /v1/paths` | the body is a `[[path]]` in TOML: takes it into use |
//! | `DELETE /v1/paths/NAME` | takes the path away |

use super::metrics;
use super::plane::DataPlane;
use crate::status::Status;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use axum::{Json, Router};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// How long the data plane may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// What the control loop is asked to do.
#[derive(Debug)]
pub(super) enum Demand {
    Down,
    Reload,
    AddPath(String),
    RemovePath(String),
}

/// A demand, and where its outcome goes: text for people.
pub(super) type Order = (Demand, oneshot::Sender<Result<String, String>>);

/// What the handlers share.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) plane: Arc<dyn DataPlane>,
    pub(super) orders: mpsc::Sender<Order>,
}

/// Asks the data plane for its numbers.
pub(super) async fn status_of(plane: &dyn DataPlane) -> Option<Status> {
    let (answer, asked) = oneshot::channel();
    let asks = plane.ask(Box::new(move |status| {
        // Who asked may have given up.
        let _ = answer.send(status);
    }));
    if !asks {
        return None;
    }
    tokio::time::timeout(PATIENCE, asked).await.ok()?.ok()
}

/// All requests; `demands` is false where only reading is allowed (metrics on TCP).
pub(super) fn routes(shared: Shared, demands: bool) -> Router {
    let read = Router::new().route("/metrics", get(metrics_text));
    let all = || {
        read.clone()
            .route("/v1/status", get(status))
            .route("/v1/down", post(|shared| order(shared, Demand::Down)))
            .route("/v1/reload", post(|shared| order(shared, Demand::Reload)))
            .route("/v1/paths", post(|shared, text: String| order(shared, Demand::AddPath(text))))
            .route("/v1/paths/{name}", delete(|shared, Path(name)| order(shared, Demand::RemovePath(name))))
    };
    if demands { all() } else { read.clone() }.with_state(shared)
}

/// A router that answers questions only, for who has a plane and nothing else.
pub fn router(plane: Arc<dyn DataPlane>) -> Router {
    let (orders, _) = mpsc::channel(1);
    routes(Shared { plane, orders }, true)
}

async fn status(State(shared): State<Shared>) -> Response {
    match status_of(&*shared.plane).await {
        Some(status) => Json(status).into_response(),
        None => silent(),
    }
}

async fn metrics_text(State(shared): State<Shared>) -> Response {
    match status_of(&*shared.plane).await {
        Some(status) => ([(header::CONTENT_TYPE, metrics::MEDIA_TYPE)], metrics::text(&status)).into_response(),
        None => silent(),
    }
}

fn silent() -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, "the data plane does not answer\n").into_response()
}

async fn order(State(shared): State<Shared>, demand: Demand) -> Response {
    let (answer, done) = oneshot::channel();
    if shared.orders.send((demand, answer)).await.is_err() {
        return (StatusCode::SERVICE_UNAVAILABLE, "the tunnel is going down\n").into_response();
    }
    match done.await {
        Ok(Ok(said)) => said.into_response(),
        Ok(Err(wrong)) => (StatusCode::BAD_REQUEST, wrong).into_response(),
        Err(_) => silent(),
    }
}
