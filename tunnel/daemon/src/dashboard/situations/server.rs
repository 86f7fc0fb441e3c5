//! The dashboard's server with made statuses, another site, and a proxy.

use super::super::web::Dashboard;
use super::super::{Access, GuardedListener, Recorder, page_routes, serve, unix_seconds};
use crate::event::Event;
use crate::status::TunnelStatus;
use axum::Json;
use axum::Router;
use axum::response::Html;
use axum::routing::get;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::runtime::Runtime;

/// The server of a daemon. It ends with this value.
pub(super) struct Daemon {
    pub(super) address: SocketAddr,
    status: Arc<Mutex<TunnelStatus>>,
    dashboard: Arc<Dashboard>,
    runtime: Option<Runtime>,
}

impl Daemon {
    pub(super) fn start(status: TunnelStatus) -> Self {
        Self::start_with(status, Recorder::default(), None, "127.0.0.1:0", Value::Null)
    }

    /// A server at an address, with a history, a token, and fields that this version does not know.
    pub(super) fn start_with(
        status: TunnelStatus,
        recorder: Recorder,
        token: Option<&str>,
        address: &str,
        more: Value,
    ) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = runtime.block_on(tokio::net::TcpListener::bind(address)).unwrap();
        let address = listener.local_addr().unwrap();
        let access = Access::of_tcp(address, token.map(|token| token.to_owned().into())).unwrap();
        let (status, dashboard) = (Arc::new(Mutex::new(status)), Arc::new(Dashboard::new(recorder)));
        let current = Arc::clone(&status);
        let answer = move || {
            let mut status = serde_json::to_value(&*current.lock().unwrap()).unwrap();
            status["unix_ms"] = (unix_seconds() * 1000).into();
            more.as_object().into_iter().flatten().for_each(|(key, value)| status[key] = value.clone());
            std::future::ready(Json(status))
        };
        let current = Arc::clone(&status);
        let events = move || std::future::ready(Json(current.lock().unwrap().events.clone()));
        let routes = Router::new().route("/v1/status", get(answer)).route("/v1/events", get(events));
        runtime.spawn(serve(GuardedListener::new(listener), access, page_routes(&dashboard, routes)));
        runtime.spawn(tick(Arc::clone(&status), Arc::clone(&dashboard)));
        Self { address, status, dashboard, runtime: Some(runtime) }
    }

    pub(super) fn url(&self, rest: &str) -> String {
        format!("http://{}/{rest}", self.address)
    }

    /// Changes the status, and tells of it by an event.
    pub(super) fn change(&self, change: impl FnOnce(&mut TunnelStatus)) {
        change(&mut self.status.lock().unwrap());
        self.dashboard.send_event(&Event::default());
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.runtime.take().into_iter().for_each(Runtime::shutdown_background);
    }
}

/// Records a status each second, in which each path has sent 5 Mbit.
async fn tick(status: Arc<Mutex<TunnelStatus>>, dashboard: Arc<Dashboard>) {
    let mut interval = tokio::time::interval(Duration::from_secs(1));
    loop {
        interval.tick().await;
        let mut status = status.lock().unwrap();
        status.uptime_s += 1.0;
        for path in status.peers.iter_mut().flat_map(|peer| &mut peer.paths).filter(|path| path.condition.works()) {
            path.sent.bytes += 625_000;
            path.sent.packets += 500;
        }
        dashboard.record(unix_seconds(), &status).unwrap();
    }
}

/// Another site, whose only page has a link to `target`.
pub(super) fn site(runtime: &Runtime, target: &str) -> SocketAddr {
    let page = format!("<!doctype html><title>wiki</title><a href=\"{target}\">dashboard</a>");
    let routes = Router::new().route("/", get(|| std::future::ready(Html(page))));
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    runtime.spawn(async move { axum::serve(listener, routes).await });
    address
}

/// A web server that passes what is below `/site7/` on to `upstream`, as nginx does by `location /site7/ { proxy_pass
/// http://UPSTREAM/; }`, and answers everything else by a page of an error.
pub(super) fn proxy(upstream: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || pass(stream, upstream));
        }
    });
    address
}

/// Passes one request on, and its answer back.
fn pass(mut client: TcpStream, upstream: SocketAddr) -> std::io::Result<()> {
    let mut lines = BufReader::new(client.try_clone()?).lines();
    let request = lines.next().transpose()?.unwrap_or_default();
    let headers: Vec<String> = lines.map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
    if !request.starts_with("GET /site7/") {
        let page = "<html>\r\n<head><title>404 Not Found</title></head>\r\n<body><h1>404 Not Found</h1></body></html>";
        let head = "HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\nConnection: close\r\n";
        return write!(client, "{head}Content-Length: {}\r\n\r\n{page}", page.len());
    }
    let mut server = TcpStream::connect(upstream)?;
    write!(server, "{}\r\nHost: {upstream}\r\nConnection: close\r\n", request.replacen("/site7/", "/", 1))?;
    let is_passed = |line: &&String| {
        let line = line.to_ascii_lowercase();
        !line.starts_with("host:") && !line.starts_with("connection:")
    };
    for line in headers.iter().filter(is_passed) {
        write!(server, "{line}\r\n")?;
    }
    write!(server, "\r\n")?;
    std::io::copy(&mut server, &mut client).map(drop)
}
