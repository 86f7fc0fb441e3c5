//! The dashboard over HTTP: a page, the history, and a stream of samples as server-sent events. It only reads.

use super::access::{Access, Decision};
use super::guard::{Accept, ConnectionPlace, GuardedListener};
use super::query::Query;
use super::recorder::{Recorder, unix_seconds};
use super::sample::Sample;
use super::series::SeriesKey;
use crate::event::Event as TunnelEvent;
use crate::status::TunnelStatus;
use axum::Json;
use axum::Router;
use axum::extract::{ConnectInfo, RawQuery, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use futures_util::Stream;
use seal::{Entropy as _, SystemEntropy};
use serde::Serialize;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::broadcast::{self, error::RecvError};

/// Number of messages by which a slow reader of the stream may fall behind; beyond it the oldest are lost.
const MAX_MESSAGES_BEHIND: usize = 64;

/// The history of a tunnel and the viewers of its stream.
pub(crate) struct Dashboard {
    recorder: Mutex<Recorder>,
    messages: broadcast::Sender<Message>,
}

/// A server-sent event: its name and its JSON.
#[derive(Clone)]
struct Message(&'static str, Arc<str>);

/// The samples of one second.
#[derive(Serialize)]
struct Tick<'a> {
    time_s: u64,
    series: Vec<SeriesTick<'a>>,
}

#[derive(Serialize)]
struct SeriesTick<'a> {
    #[serde(flatten)]
    key: &'a SeriesKey,
    state: Option<&'static str>,
    worked_ratio: Option<f64>,
    send_rate_bps: u64,
    receive_rate_bps: u64,
    rtt_ms: Option<f64>,
    queue_ms: Option<f64>,
    loss_ratio: Option<f64>,
}

impl Dashboard {
    pub(crate) fn new(recorder: Recorder) -> Self {
        Self { recorder: Mutex::new(recorder), messages: broadcast::channel(MAX_MESSAGES_BEHIND).0 }
    }

    /// Records a status, and sends its samples to the viewers.
    ///
    /// # Errors
    /// The history was not written to its file.
    pub(crate) fn record(&self, time_s: u64, status: &TunnelStatus) -> std::io::Result<()> {
        let (samples, written) = self.lock().record(time_s, status);
        if self.messages.receiver_count() > 0 {
            let series = samples.iter().map(|(key, sample)| SeriesTick::new(key, sample)).collect();
            self.send("sample", &Tick { time_s, series });
        }
        written
    }

    /// Sends an event to the viewers.
    pub(crate) fn send_event(&self, event: &TunnelEvent) {
        self.send("event", event);
    }

    fn send(&self, name: &'static str, value: &impl Serialize) {
        let text = serde_json::to_string(value).unwrap_or_default();
        // There may be no viewers left.
        let _ = self.messages.send(Message(name, text.into()));
    }

    /// Writes the rest of the history, at the end.
    ///
    /// # Errors
    /// As [`Dashboard::record`].
    pub(crate) fn finish(&self) -> std::io::Result<()> {
        self.lock().finish_minute()
    }

    /// The recorder; poisoned only if this code panicked.
    fn lock(&self) -> std::sync::MutexGuard<'_, Recorder> {
        self.recorder.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'a> SeriesTick<'a> {
    fn new(key: &'a SeriesKey, sample: &Sample) -> Self {
        Self {
            key,
            state: sample.state.name(),
            worked_ratio: sample.worked_ratio(),
            send_rate_bps: sample.send_bps as u64,
            receive_rate_bps: sample.receive_bps as u64,
            rtt_ms: sample.rtt_ms(),
            queue_ms: sample.queue_ms(),
            loss_ratio: sample.loss_ratio(),
        }
    }
}

/// The history and the stream.
pub(crate) fn read_routes(dashboard: &Arc<Dashboard>, rest: Router) -> Router {
    let routes = Router::new().route("/v1/history", get(history)).route("/v1/stream", get(stream));
    rest.merge(routes.with_state(Arc::clone(dashboard)))
}

/// As [`read_routes`], with the page for browsers.
pub(crate) fn page_routes(dashboard: &Arc<Dashboard>, rest: Router) -> Router {
    read_routes(dashboard, rest).route("/", get(page))
}

/// Serves `routes` to the clients that `access` allows. This is the only place that serves HTTP, so that every listener
/// has access rules and limits.
pub(crate) async fn serve<L: Accept>(listener: GuardedListener<L>, access: Access, routes: Router) {
    let routes = routes.layer(from_fn_with_state(access, guard));
    // `serve` never returns.
    let _ = axum::serve(listener, routes.into_make_service_with_connect_info::<ConnectionPlace>()).await;
}

/// Refuses requests that `access` does not allow, and sets the headers that keep out pages of other sites.
async fn guard(
    State(access): State<Access>,
    ConnectInfo(place): ConnectInfo<ConnectionPlace>,
    request: Request,
    next: Next,
) -> Response {
    let decision = access.decide(request.uri(), request.headers());
    place.note(!matches!(decision, Decision::Refuse(_)));
    let mut response = match decision {
        Decision::Allow => next.run(request).await,
        Decision::SetCookie(cookie) => {
            (StatusCode::SEE_OTHER, [(header::SET_COOKIE, cookie), (header::LOCATION, "./".into())]).into_response()
        }
        Decision::Refuse(reason) if matches!(access, Access::Token(_)) => {
            let challenge = [(header::WWW_AUTHENTICATE, "Bearer")];
            (StatusCode::UNAUTHORIZED, challenge, format!("{reason}\n")).into_response()
        }
        Decision::Refuse(reason) => (StatusCode::FORBIDDEN, format!("{reason}\n")).into_response(),
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// The page with its style and script inline. A random number per response makes them the only ones that a browser
/// uses.
async fn page() -> Response {
    let nonce = format!("{:032x}", u128::from_le_bytes(nonce_bytes()));
    let text = include_str!("page/index.html")
        .replace("/*STYLE*/", include_str!("page/style.css"))
        .replace("/*SCRIPT*/", concat!(include_str!("page/tables.js"), include_str!("page/script.js")))
        .replace("NONCE", &nonce);
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; img-src data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    ([(header::CONTENT_SECURITY_POLICY, policy)], Html(text)).into_response()
}

fn nonce_bytes() -> [u8; 16] {
    let mut bytes = [0; 16];
    SystemEntropy.fill(&mut bytes);
    bytes
}

async fn history(State(dashboard): State<Arc<Dashboard>>, RawQuery(query): RawQuery) -> Response {
    let now_s = unix_seconds();
    match Query::parse(query.as_deref().unwrap_or_default(), now_s) {
        Ok(query) => Json(dashboard.lock().history(query, now_s)).into_response(),
        Err(error) => (StatusCode::BAD_REQUEST, format!("{error}\n")).into_response(),
    }
}

async fn stream(State(dashboard): State<Arc<Dashboard>>) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let events = futures_util::stream::unfold(dashboard.messages.subscribe(), |mut messages| async move {
        loop {
            match messages.recv().await {
                Ok(Message(name, text)) => return Some((Ok(Event::default().event(name).data(&*text)), messages)),
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return None,
            }
        }
    });
    Sse::new(events).keep_alive(KeepAlive::default())
}
