//! Notifications as `POST` requests to a web server, over plain HTTP: the program has no TLS library, and a hook can
//! call a program that has one (`curl`).

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use hyper_util::rt::TokioIo;
use std::fmt;
use std::io;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::mpsc::Receiver;
use tokio::time::{sleep, timeout};
use tracing::warn;

/// The longest time of a request.
const MAX_TIME: Duration = Duration::from_secs(10);
/// Times before a failed request is tried again; the last failure is not retried.
const RETRIES: [Duration; 3] = [Duration::from_secs(2), Duration::from_secs(10), Duration::from_secs(60)];

/// The address of a web server's page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// Host and port, as in the header `Host`.
    authority: String,
    /// Host and port for the connection.
    server: String,
    path: String,
}

impl std::str::FromStr for Webhook {
    type Err = String;

    /// An address such as `http://192.0.2.1:8080/notify?key=1`.
    fn from_str(text: &str) -> Result<Self, String> {
        let uri: axum::http::Uri = text.parse().map_err(|error| format!("`{text}` is not an address: {error}"))?;
        match (uri.scheme_str(), uri.authority()) {
            (Some("http"), Some(authority)) if !authority.as_str().contains('@') => {
                let server = format!("{}:{}", authority.host(), authority.port_u16().unwrap_or(80));
                let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
                Ok(Self { authority: authority.to_string(), server, path })
            }
            (Some("https"), _) => Err("https is not supported: this program has no TLS".into()),
            _ => Err(format!("`{text}` is not an address such as `http://192.0.2.1:8080/notify`")),
        }
    }
}

impl fmt::Display for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.authority, self.path)
    }
}

impl Webhook {
    /// Sends notifications one after the other until the tunnel ends.
    pub(super) async fn run(self, mut notifications: Receiver<String>) {
        while let Some(text) = notifications.recv().await {
            self.post_with_retries(&text).await;
        }
    }

    async fn post_with_retries(&self, text: &str) {
        for wait in RETRIES.iter().map(Some).chain([None]) {
            let result = timeout(MAX_TIME, self.post(text)).await.unwrap_or_else(|error| Err(error.into()));
            let Err(error) = result else { return };
            // The query of its address may contain a key, and is not shown.
            warn!("the webhook at {}: {error}", self.authority);
            if let Some(wait) = wait {
                sleep(*wait).await;
            }
        }
    }

    async fn post(&self, text: &str) -> io::Result<()> {
        let stream = TcpStream::connect(&self.server).await?;
        let handshake = hyper::client::conn::http1::handshake::<_, Body>(TokioIo::new(stream)).await;
        let (mut sender, connection) = handshake.map_err(io::Error::other)?;
        let driver = tokio::spawn(connection);
        let request = Request::post(&self.path)
            .header(header::HOST, &self.authority)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::USER_AGENT, "ropewalk")
            .body(Body::from(text.to_owned()))
            .map_err(io::Error::other)?;
        let response = sender.send_request(request).await;
        driver.abort();
        match response.map_err(io::Error::other)?.status() {
            status if status.is_success() => Ok(()),
            StatusCode::NOT_FOUND => Err(io::Error::new(io::ErrorKind::NotFound, "404 Not Found")),
            status => Err(io::Error::other(status.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_a_web_server_is_read_and_others_are_refused_with_the_reason() {
        let webhook: Webhook = "http://[2001:db8::1]/notify?key=1".parse().unwrap();
        assert_eq!((webhook.server.as_str(), webhook.path.as_str()), ("[2001:db8::1]:80", "/notify?key=1"));
        assert_eq!(webhook.to_string(), "http://[2001:db8::1]/notify?key=1");
        let error = |text: &str| text.parse::<Webhook>().unwrap_err();
        assert!(error("https://example.org/").contains("no TLS"));
        for text in ["example.org", "ftp://example.org/", "http://user:secret@example.org/", "/notify", ""] {
            assert!(!error(text).is_empty(), "{text}");
        }
    }
}
